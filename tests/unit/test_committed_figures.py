"""The exact figures that are committed for a column: shown where they are of this snapshot, told apart where not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.read.puffin.statistics_files import COLUMN_STATISTICS, FREQUENT_ITEMS, JOINT_STATISTICS, THETA
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import prepare_scan, scan_here
from icestats.snapshot.evaluation.column_metrics import single_value_metrics
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.table_statistics import PartitionKey, ScannedPartitions, read_column_statistics
from icestats.table.metadata_statistics import compute_metadata_statistics, expand_columns
from icestats.table.statistics import Statistics
from tests.committed_statistics import register, write_foreign
from tests.computed_statistics import compute_here, scan_table

LONG = "the same sixteen characters and more: "


def rows(start, stop):
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([f"{LONG}{i:05d}" for i in numbers], pa.string()),
            "price": pa.array([None if i % 10 == 0 else float("nan") if i % 10 == 1 else float(i) for i in numbers]),
            "small": pa.array(numbers, pa.int32()),
            "nothing": pa.nulls(len(numbers), pa.binary()),
        }
    )


@pytest.fixture
def table(catalog):
    """1,000 rows; no counts in the metadata of `price`, and bounds of 16 characters."""
    fields = (("id", LongType()), ("text", StringType()), ("price", DoubleType()))
    fields += (("small", IntegerType()), ("nothing", BinaryType()))
    schema = Schema(*(NestedField(i, *field, required=False) for i, field in enumerate(fields, 1)))
    properties = {"write.metadata.metrics.column.price": "none"}
    table = catalog.create_table("db.t", schema, properties=properties)
    table.append(rows(0, 1_000))
    return table


@pytest.fixture
def load(table, catalog_properties):
    return lambda: icestats.load("db.t", catalog=catalog_properties)


def commit(opened):
    compute_here(opened).commit()


def columns(opened):
    found = {row["name"]: row for row in opened.columns().to_pylist()}
    return found, {name: dict(row["provenance"]) for name, row in found.items()}


def test_an_earlier_ndv_is_at_most_the_rows_where_files_count_no_values(table, load):
    commit(load())
    table.delete("id >= 10")
    found, words = columns(load())
    assert (found["price"]["value_count"], found["price"]["ndv"]) == (None, 10)
    assert "to the number of rows" in words["price"]["ndv"]
    assert "cut from 1,000 to the number of values that are not null" in words["id"]["ndv"]


def test_partitions_keep_their_sketches_where_their_column_is_promoted(catalog, catalog_properties):
    """The keys of the sketches are as wide as the column was."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    made = catalog.create_table(
        "db.days", Schema(NestedField(1, "day", IntegerType(), required=False)), partition_spec=spec
    )
    made.append(pa.table({"day": pa.array([-1, -1, 1, None], pa.int32())}))
    opened = icestats.load("db.days", catalog=catalog_properties)
    plan, parts = prepare_scan(opened._source, opened.snapshot, opened.schema), {}
    for value, count in ((b"\xff\xff\xff\xff", 2), (b"\1\0\0\0", 1), (None, 1)):
        accumulator = ColumnAccumulator(plan.fields[0])
        day = None if value is None else int.from_bytes(value, "little", signed=True)
        accumulator.update(pa.array([day] * count, pa.int32()))
        parts[PartitionKey(0, ((1000, value),))] = accumulator.result()
    sizes = Sizes(200, 12, 200, 12)
    found = replace(scan_here(plan, sizes), by_partition=ScannedPartitions({"day": parts}, {"day": (200, 12)}))
    Statistics(opened._source, found).commit()
    before = icestats.load("db.days", catalog=catalog_properties)
    with made.refresh().update_schema() as update:
        update.update_column("day", LongType())
    after = icestats.load("db.days", catalog=catalog_properties)
    assert after.schema.find("day").type == "long"
    assert [row["ndvs"] for row in after.partitions().to_pylist()] == [[(1, 0)], [(1, 1)], [(1, 1)]]
    for table in (before, after):
        assert table.estimate("day != 7")["kll-by-partition"].rows == 3
        assert table.histogram("day", where="day = -1").n == 2


@pytest.mark.parametrize(("before", "after"), [(IntegerType(), LongType()), (FloatType(), DoubleType())], ids=str)
def test_partitions_are_found_at_a_tag_from_before_their_column_was_promoted(
    catalog, catalog_properties, before, after
):
    """The keys of the sketches, made since, are wider than the column is there."""
    spec, schema = (
        PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part")),
        Schema(NestedField(1, "a", before)),
    )
    made = catalog.create_table("db.p", schema, partition_spec=spec)
    made.append(pa.table({"a": [1, 1, 2, 3]}).cast(made.schema().as_arrow()))
    made.manage_snapshots().create_tag(made.current_snapshot().snapshot_id, "old").commit()
    with made.refresh().update_schema() as update:
        update.update_column("a", after)
    opened = icestats.load("db.p", catalog=catalog_properties)
    compute_here(opened, by_partition=True).commit()
    table = icestats.load("db.p", catalog=catalog_properties, ref="old")
    assert table.schema.find("a").type == str(before)
    for row_filter, count in (("a = 2", 1), ("a > 1", 2), ("a is null", 0), ("a is not null", 4)):
        merged = table.merge_partition_sketches("a", row_filter)
        assert (merged.value_count, merged.partial_partition_count) == (count, 0), row_filter
    assert [row["ndvs"] for row in table.partitions().to_pylist()] == [[(1, 1)]] * 3
    assert table.estimate("a > 1", sources=["kll-by-partition"])["kll-by-partition"].rows == 2


def test_partitions_keep_their_sketches_where_their_column_is_gone(catalog, catalog_properties):
    fields = (NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    made = catalog.create_table("db.p", Schema(*fields), partition_spec=spec)
    made.append(pa.table({"a": [1, 1, None], "b": ["x", "y", "x"]}).cast(made.schema().as_arrow()))
    opened = icestats.load("db.p", catalog=catalog_properties)
    compute_here(opened, by_partition=True).commit()
    with made.refresh().update_schema() as update:
        update.update_column("a", LongType())
    with made.update_spec() as update_spec:
        update_spec.remove_field("part")
    with made.update_schema() as update:
        update.delete_column("a")
    table = icestats.load("db.p", catalog=catalog_properties)
    assert [row["ndvs"] for row in table.partitions().to_pylist()] == [[(2, 1)], [(2, 2)]]


def test_a_decimal_is_the_same_type_however_it_is_spelled(catalog, catalog_properties):
    """Java writes `decimal(9, 2)`, others `decimal(9,2)`: each writes the whole metadata anew."""
    made = catalog.create_table("db.p", Schema(NestedField(1, "d", DecimalType(9, 2))))
    made.append(pa.table({"d": [Decimal("1.50"), Decimal("1.50"), None]}).cast(made.schema().as_arrow()))
    opened = icestats.load("db.p", catalog=catalog_properties)
    commit(opened)
    opened.refresh().compute(manifests=True).commit()
    location = Path(made.refresh().metadata_location.removeprefix("file://"))
    other = location.with_name("x.metadata.json")
    other.write_text(location.read_text().replace("decimal(9, 2)", "decimal(9,2)"))
    table = icestats.load(str(other))
    found, provenance = columns(table)
    assert found["d"]["common_values"][0]["value"] == "1.50"
    assert provenance["d"]["lower_bound"].startswith("exact")
    assert table._reader.findings == ()
    assert not table.refresh_statistics().scanned


def test_a_key_that_is_no_value_of_its_type_is_not_taken_for_nan():
    found = single_value_metrics(pa.array([b"abc", None, b"\1\0\0\0"], pa.binary()), "int")
    assert (found.valueless.tolist(), found.has_bounds.tolist()) == ([False, True, False], [False, False, True])


def test_lengths_by_partition_of_a_column_outlive_a_commit_of_those_of_another(catalog, catalog_properties):
    schema = Schema(*(NestedField(i, name, StringType()) for i, name in enumerate(("part", "one", "other"), 1)))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    made = catalog.create_table("db.p", schema, partition_spec=spec)
    made.append(pa.table({"part": ["a", "a", "b"], "one": ["x", "xyz", ""], "other": ["12345", "1", None]}))
    for columns in (["part", "one", "other"], ["one"]):
        opened = icestats.load("db.p", catalog=catalog_properties)
        found, fields = scan_table(opened, columns=columns, by_partition=True), expand_columns(opened.schema, ["one"])
        of_metadata = compute_metadata_statistics(
            opened._reader, opened.snapshot, fields, manifests=False, scanned=found.by_partition
        )
        Statistics(opened._source, found, of_metadata).commit()
    rows = icestats.load("db.p", catalog=catalog_properties).partitions().to_pylist()
    assert [dict(row["max_lengths"]) for row in rows] == [{1: 1, 2: 3, 3: 5}, {1: 1, 2: 0}]
    assert [dict(row["avg_lengths"]) for row in rows] == [{1: 1, 2: 2, 3: 3}, {1: 1, 2: 0}]


def test_committed_figures_of_this_snapshot_are_shown_as_exact(load):
    before, _ = columns(load())
    assert before["text"]["lower_bound"] == LONG[:16].encode()
    assert before["price"]["null_value_count"] is None
    assert dict(before["price"]["missing_files"])["null_value_count"] == 1
    commit(load())
    found, provenance = columns(load())
    assert found["text"]["lower_bound"] == f"{LONG}00000".encode()
    assert found["text"]["upper_bound"] == f"{LONG}00999".encode()
    price = found["price"]
    assert (price["value_count"], price["null_value_count"], price["nan_value_count"]) == (1_000, 100, 100)
    assert "null_value_count" not in dict(price["missing_files"])
    for name in ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound"):
        assert provenance["price"][name] == "exact: over the live rows, this snapshot"
    assert found["nothing"]["lower_bound"] is None
    assert provenance["nothing"]["lower_bound"] == "none: no value in the live rows, this snapshot"
    assert provenance["nothing"]["max_length"] == "none: no value in the live rows, this snapshot"
    assert provenance["text"]["nan_value_count"].startswith("not applicable")


def test_committed_figures_of_an_earlier_snapshot_promise_nothing(table, load):
    commit(load())
    earlier = table.current_snapshot().snapshot_id
    table.append(rows(1_000, 1_010))
    found, provenance = columns(load())
    assert found["text"]["lower_bound"] == LONG[:16].encode()
    assert found["id"]["upper_bound"] == (1_009).to_bytes(8, "little")
    assert found["price"]["null_value_count"] is None
    apart = f"; the exact one that is committed is of snapshot {earlier}, 1 commit behind"
    assert provenance["id"]["upper_bound"] == f"bound: at least the largest value, over 2 data files{apart}"
    assert provenance["price"]["null_value_count"] == f"unknown: 2 of 2 data files lack it{apart}"
    assert found["text"]["max_length"] == len(LONG) + 5
    assert provenance["text"]["max_length"] == (
        f"estimate: exact over the live rows of snapshot {earlier}, 1 commit behind"
    )


def test_a_length_that_a_type_does_not_have_is_not_applicable(load):
    for step in (lambda: None, lambda: commit(load())):
        step()
        _, provenance = columns(load())
        for name in ("avg_length", "max_length"):
            assert provenance["id"][name] == "not applicable: only strings and binaries have lengths"
            assert provenance["price"][name] == provenance["id"][name]
    assert provenance["text"]["avg_length"].startswith("exact")


def test_figures_of_another_type_are_not_used(table, load):
    """Bounds are bytes of the type that the column had."""
    commit(load())
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.update_column("small", LongType())
    found, provenance = columns(load())
    assert provenance["number"]["lower_bound"].startswith("exact: over the live rows")
    assert provenance["small"]["lower_bound"].startswith("bound")
    assert provenance["small"]["value_count"].startswith("exact: sum over")
    assert int.from_bytes(found["small"]["upper_bound"], "little") == 999


def test_no_more_blobs_are_read_than_columns_have_figures(table, load, caplog):
    """Of a field that no column has, or of several fields, there may be any number: each is a request to a storage."""
    figures, snapshot_id = columns(load()), table.current_snapshot().snapshot_id
    others = [
        NewBlob(kind, field_ids, snapshot_id, 1, b"damaged", {"ndv": "3"})
        for kind in (COLUMN_STATISTICS, FREQUENT_ITEMS, THETA, JOINT_STATISTICS)
        for field_ids in ((99,), (1, 99), (99, 98))
    ]
    register(table, write_foreign(table, *others), [])
    assert columns(load()) == figures
    assert not load().columns_together().num_rows
    assert not caplog.records


@pytest.mark.parametrize(
    "change",
    [
        '"value-count": -1', '"null-value-count": 11', '"value-count": 1e999', '"value-count": 9223372036854775808',
        '"lower-bound": "00"', '"lower-bound": 5', '"avg-length": NaN', '"avg-length": -1.5',
        '"max-length": 1e999', '"field-id": null', '"upper-bound": "zz"',
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_refused(change):
    """A table is hostile input: what is shown as exact is at least possible."""
    sound = '"field-id": 1, "type": "long", "value-count": 10, "null-value-count": 1, "nan-value-count": 0'
    assert read_column_statistics(f'{{"columns": [{{{sound}}}]}}'.encode())[1].value_count == 10
    with pytest.raises(ValueError, match="not column statistics"):
        read_column_statistics(f'{{"columns": [{{{sound}, {change}}}]}}'.encode())
