"""Another partition spec as a prediction: what a table that is really written so reads, and what cannot be asked."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform, parse_transform
from pyiceberg.types import (
    DoubleType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

import icestats
from icestats.iceberg.metadata import Field
from icestats.iceberg.metadata import PartitionField as Term
from icestats.iceberg.metadata import Schema as Columns
from icestats.snapshot.evaluation.column_metrics import table_metrics
from icestats.snapshot.layout.partition_terms import order_fields, parse_partition_fields, write_term
from icestats.snapshot.layout.row_points import NULL, ColumnPoints, draw_points

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "at", TimestamptzType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "price", DoubleType(), required=False),
)
START = dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
FILES, ROWS = 6, 2_400
"""Rows of ten days, one every 6 minutes."""


def rows_of(numbers):
    """Rows by their number: `id` is spread over all times, `name` is one of six and goes with nothing."""
    return pa.table(
        {
            "id": numbers * 1483 % ROWS,
            "at": pa.array([START + dt.timedelta(minutes=6 * int(n)) for n in numbers], pa.timestamp("us", "UTC")),
            "name": [f"{'abcdef'[n % FILES]}-name" for n in numbers],
            "price": numbers / 4.0,
        },
        schema=SCHEMA.as_arrow(),
    )


@pytest.fixture
def events(catalog, load):
    """Six files of all the days and ids, and of one name each, so that nothing but the name rules a file out."""
    table = catalog.create_table("db.events", SCHEMA)
    for commit in range(FILES):
        table.append(rows_of(np.arange(commit, ROWS, FILES)))
    return load("db.events")


@pytest.fixture
def write_by(catalog, load):
    """Write the same rows by another spec, a file a partition."""

    def write(*fields):
        parts = [
            PartitionField(SCHEMA.find_field(name).field_id, 1000 + place, parse_transform(transform), f"f{place}")
            for place, (name, transform) in enumerate(fields)
        ]
        table = catalog.create_table("db.written", SCHEMA, partition_spec=PartitionSpec(*parts))
        table.append(rows_of(np.arange(ROWS)))
        return load("db.written")

    return write


@pytest.mark.parametrize(
    ("partition_by", "fields", "row_filter", "tolerance"),
    [
        ("days(at)", [("at", "day")], "at >= '2026-09-04' and at < '2026-09-08'", 0.02),
        ("hour(at)", [("at", "hour")], "at < '2026-09-02T05:30:00+00:00'", 0.05),
        ("month(at)", [("at", "month")], "at < '2026-09-04'", 0.0),
        ("truncate(600, id)", [("id", "truncate[600]")], "id in (5, 700, 710)", 0.02),
        ("bucket(8, id)", [("id", "bucket[8]")], "id = 77", 0.15),
        ("`name`", [("name", "identity")], "name > 'c-name'", 0.0),
        ("truncate(1, name)", [("name", "truncate[1]")], "name in ('b-name', 'e-name')", 0.0),
        ("bucket(4, name)", [("name", "bucket[4]")], "name = 'c-name'", 0.0),
        ("day(at), bucket(4, id)", [("at", "day"), ("id", "bucket[4]")], "at < '2026-09-03' and id = 1200", 0.25),
        ("day(at), name", [("at", "day"), ("name", "identity")], "at >= '2026-09-09' and name = 'd-name'", 0.05),
        ("day(at), truncate(600, id)", [("at", "day"), ("id", "truncate[600]")], "at < '2026-09-06' and id < 900", 0.1),
    ],
)
def test_a_prediction_is_near_what_a_table_written_so_reads(
    events, write_by, partition_by, fields, row_filter, tolerance
):
    """Partitions and kept records; a prediction has files of today's size, the written table one a partition."""
    found = events.layout().what_if([row_filter], partition_by=partition_by)
    written = write_by(*fields)
    truth = written.plan(row_filter).steps[-1]
    last = found.to_arrow().to_pylist()[-1]
    assert last["kept_rows_then"] == pytest.approx(truth.kept_rows, rel=tolerance)
    partitions = written.partitions().num_rows
    assert f"some {partitions:,} partition" in found.change
    if partitions > FILES:
        kept = {str(partition) for partition in written.plan(row_filter).files()["partition"].to_pylist()}
        assert last["kept_then"] == pytest.approx(len(kept), rel=tolerance)


def test_a_spec_that_cannot_help_a_filter_brings_nothing(events):
    """Neither the partition nor the bounds of a new file say anything of the filter's column."""
    rows = events.layout().what_if(["id < 50", "price > 3"], partition_by="month(at)").to_arrow().to_pylist()
    assert {row["kept_rows_then"] for row in rows} == {ROWS}
    assert all(row["kept_then"] == row["total_then"] for row in rows)


def test_buckets_are_those_of_today_where_these_say_them(write_by):
    """A bucket of 32 is in one of 8: both tables read the same rows of it, not an eighth."""
    found = write_by(("id", "bucket[32]")).layout().what_if(["id = 77"], partition_by="bucket(8, id)")
    buckets = np.array([parse_transform("bucket[8]").transform(LongType())(number) for number in range(ROWS)])
    assert found.comparisons[0].then[-1].kept_rows == (buckets == buckets[77]).sum()
    assert "DROP PARTITION FIELD bucket(32, `id`);" in found.statement


def test_nulls_are_a_partition_and_unknown_values_are_always_read(catalog, load):
    """A null in a thousand rows is there; the rows of a file without bounds are in no partition that is ruled out."""
    table = catalog.create_table("db.sparse", SCHEMA)
    rows = rows_of(np.arange(1000))
    table.append(rows.set_column(0, "id", pa.array([None, *range(999)], pa.int64())))
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.metrics.column.id": "none"})
    table.append(rows_of(np.arange(200)))
    layout = load("db.sparse").layout()
    found = layout.what_if(["id is null", "id < 100"], partition_by="truncate(100, id)")
    assert found.assumes.endswith("every filter reads the rows of 1 file without bounds of id")
    nulls, low = (comparison.then[-1].kept_rows for comparison in found.comparisons)
    assert (nulls, low) == (201, pytest.approx(300, abs=5))


def test_one_null_in_a_thousand_million_rows_is_there():
    """However few points stand for the rows, one of them is null."""
    ends = {"lower_bound_1": pa.array([b"\0"], pa.binary()), "upper_bound_1": pa.array([b"\1"], pa.binary())}
    counts = {"record_count": [10**9], "value_count_1": [10**9], "null_value_count_1": [1], "nan_value_count_1": [0]}
    metrics = table_metrics(pa.table(counts | ends), [Field(1, "flag", "boolean", required=False, top_level=True)])[1]
    points = draw_points(np.array([10**9]))
    column = ColumnPoints(metrics, points, 0)
    assert len(points.owner) < 10**7
    assert (column.state == NULL).sum() == 1
    assert np.bincount(column.values[column.state != NULL]) / len(points.owner) == pytest.approx([0.5, 0.5], abs=1e-5)


def test_text_between_two_bounds_is_no_partition_of_its_own(catalog, load):
    """What the bounds do not tell apart is read together."""
    table = catalog.create_table("db.text", SCHEMA)
    table.append(rows_of(np.arange(600)))
    found = load("db.text").layout().what_if(["name = 'c-name'", "name > 'z'"], partition_by="name")
    assert "neighbouring bounds of name counts as one partition: there may be many more partitions" in found.assumes
    assert "by name: some 1 partition, " in found.change
    assert [comparison.then[-1].kept_rows for comparison in found.comparisons] == [600, 0]


def test_the_statement_keeps_the_fields_that_are_there(catalog, load):
    """Fields that stay are neither dropped nor added, and names are quoted."""
    schema = Schema(
        NestedField(1, "odd`name", LongType(), required=False),
        NestedField(2, "deep", StructType(NestedField(3, "at", TimestamptzType(), required=False)), required=False),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "part"), PartitionField(3, 1001, DayTransform(), "at_day")
    )
    catalog.create_table("db.named", schema, partition_spec=spec)
    layout = load("db.named").layout()
    found = layout.what_if(["deep.at is null"], partition_by="hour(deep.at), `odd``name`")
    assert found.statement.splitlines() == [
        "ALTER TABLE `catalog`.`db`.`named` DROP PARTITION FIELD day(`deep`.`at`);",
        "ALTER TABLE `catalog`.`db`.`named` ADD PARTITION FIELD hour(`deep`.`at`);",
        "CALL `catalog`.system.rewrite_data_files(table => 'db.named', options => map('rewrite-all', 'true'))",
    ]
    same = layout.what_if([], partition_by="`odd``name`, days(deep.at)")
    assert same.statement.startswith("CALL ")
    assert "some 0 partitions, 0 files" in same.change


def test_fields_are_read_in_the_words_of_the_ddl():
    columns = Columns(
        0,
        tuple(
            Field(number, name, kind, required=False, top_level=True)
            for number, (name, kind) in enumerate([("day", "date"), ("at", "timestamp_ns"), ("a b,(c)", "string")], 1)
        ),
    )
    text = "day, Days(day) , date_hour(at),truncate(`a b,(c)`, 4), BUCKET( 16 , `at` )"
    found = parse_partition_fields(text, columns)
    assert [(one.source_id, one.transform) for one in found] == [
        (1, "identity"), (1, "day"), (2, "hour"), (3, "truncate[4]"), (2, "bucket[16]"),
    ]  # fmt: skip
    again = ", ".join(write_term(one, columns) for one in found)
    assert parse_partition_fields(again, columns) == found
    old = [Term(1000, 9, "gone_day", "day"), Term(1001, 1, "was", "void"), Term(1002, 1, "day", "identity")]
    fields, dropped, added = order_fields(found, old)
    assert [one.transform for one in fields] == ["identity", "day", "hour", "truncate[4]", "bucket[16]"]
    assert ([write_term(one, columns) for one in dropped], len(added)) == (["`gone_day`"], 4)


def test_what_a_spec_has_twice_the_next_one_has_once():
    """Iceberg makes no such spec, and reads those that others have made."""
    wanted = [Term(1000, 1, "id_bucket[4]", "bucket[4]")]
    twice = [Term(1000, 1, "a", "bucket[4]"), Term(1001, 1, "b", "bucket[4]")]
    assert order_fields(wanted, twice) == (wanted, [], [])


@pytest.mark.parametrize(
    ("partition_by", "said"),
    [
        ("", "'' cannot be read at its end: expected fields such as day(event_time)"),
        ("day(at", "cannot be read at its end"),
        ("day(at) id", "cannot be read at character 9, 'id'"),
        ("id,", "cannot be read at its end"),
        ("`id", "cannot be read at character 1"),
        (".id", "cannot be read at character 1"),
        ("week(at)", "'week(at)' is no partition field"),
        ("day(at, id)", "'day(at, id)' is no partition field"),
        ("bucket(id)", "'bucket(id)' is no partition field"),
        ("bucket(0, id)", "has '0' for its number: expected one from 1 to 2,147,483,647"),
        ("bucket(-1, id)", "has 'id' for its number"),
        (f"truncate({'9' * 400}, name)", "expected one from 1 to"),
        ("day(nope)", "no column 'nope': the table has id"),
        ("day(id)", "day does not fit 'id', a column of type long"),
        ("truncate(4, price)", "truncate does not fit 'price', a column of type double"),
        ("bucket(4, price)", "bucket does not fit 'price'"),
        ("hour(tags)", "'tags' is no column to partition by"),
        ("tags.element", "not one of type string in a list or map"),
        ("id, name, id", "has `id` twice"),
        ("id, name, year(at), month(at), day(at), hour(at)", "has 6 fields: give 5 at most"),
        ("id" * 5000, "is no text of at most 2,000 characters"),
        (7, "partition_by is 7: expected text"),
    ],
)
def test_what_is_no_spec_is_a_line(catalog, load, partition_by, said):
    tags = NestedField(5, "tags", ListType(6, StringType(), element_required=False), required=False)
    catalog.create_table("db.tags", Schema(*SCHEMA.fields, tags))
    with pytest.raises(icestats.CallError) as error:
        load("db.tags").layout().what_if(["id = 1"], partition_by=partition_by)
    assert said in str(error.value)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


def test_too_many_partitions_are_refused(catalog, load):
    table = catalog.create_table("db.many", SCHEMA, partition_spec=UNPARTITIONED_PARTITION_SPEC)
    numbers = np.arange(600_000)
    table.append(pa.table({"id": numbers, "price": numbers / 2.0}))
    layout = load("db.many").layout()
    with pytest.raises(icestats.CallError, match="more than 500,000 partitions: give coarser fields"):
        layout.what_if(["id = 1"], partition_by="id")
    assert "some 6,000 partitions" in layout.what_if(["id = 1"], partition_by="truncate(100, id)").change
