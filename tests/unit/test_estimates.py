from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThan, In, LessThan, Not, NotEqualTo
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

import icestats
from icestats.cli.command_line import cli
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.estimation import evidence
from icestats.estimation.changed_rows import find_changed_rows
from icestats.estimation.formulas.grouped_sources import (
    GroupedEvidence,
    count_live_rows,
    fit_equality_deletes,
    round_bounds,
)
from icestats.estimation.formulas.selectivity import GroupEvidence, as_floats
from icestats.estimation.formulas.source_estimates import q_error
from icestats.estimation.row_level_deletes import FileDeletes, TableDeletes
from icestats.estimation.sources import SOURCES
from icestats.iceberg.metadata import PartitionField as SpecField
from icestats.iceberg.metadata import PartitionSpec as TableSpec
from icestats.iceberg.storage import local_path
from icestats.iceberg.value_order import literal_keys
from icestats.snapshot.evaluation.column_metrics import value_metrics
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import TableStatistics
from icestats.table.statistics import Statistics
from tests.committed_statistics import KLL, blob, theta
from tests.computed_statistics import compute_here
from tests.written_deletes import compact, delete_equal, delete_positions, list_data_files

END = "T23:59:59.999999"


@pytest.fixture
def table(read_table: IcebergTable) -> icestats.Table:
    return icestats.load("db.small", catalog=dict(read_table.catalog.properties))


def test_every_source_is_listed_and_says_why_it_is_unknown(table: icestats.Table) -> None:
    """No source is left out; without committed statistics, NDV and KLL are unknown, not 0."""
    estimates = table.estimate("id = 5 and price < 3")
    assert tuple(one.source for one in estimates) == SOURCES
    assert estimates["kll"].rows is None
    assert "no KLL sketch of id is committed" in estimates["kll"].reason
    assert estimates["ndv"].rows is None
    assert "no NDV of id is committed" in estimates["ndv"].reason


def test_the_manifest_formula_does_not_filter_twice(table: icestats.Table) -> None:
    """A filter on a partition column drops manifests and is not applied again, unless the switch asks to see that."""
    row_filter = "at >= '2025-09-05T00:00:00' and at < '2025-09-07T00:00:00'"
    estimates = table.estimate(row_filter, double_filtering=True)
    assert estimates["manifests"].rows == 200
    assert estimates["manifests-double-filtered"].rows == pytest.approx(200 * 48 / 199, rel=0.01)
    assert estimates["partitions"].rows == 48


def test_null_and_nan_fractions_are_exact(table: icestats.Table) -> None:
    """Null counts answer `is null` exactly, with bounds that meet."""
    found = table.estimate("name is null")["table"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (40, 40, 40)


def test_bytes_are_of_the_projected_columns(table: icestats.Table) -> None:
    """Bytes scale with the sizes of the columns that are asked for."""
    sizes = {row["name"]: row["column_size"] for row in table.columns().to_pylist()}
    found = table.estimate("name is null", columns=["id", "price"])["table"]
    assert found.bytes == pytest.approx((sizes["id"] + sizes["price"]) * 40 / 200)
    assert found.scan_bytes == sizes["id"] + sizes["price"]


def test_combined_reads_data_files_where_they_are_asked(table: icestats.Table) -> None:
    """Else it estimates partitions: no source is slower than those that were chosen."""
    coarse = table.estimate("id = 5 and price < 3", sources=["partitions", "combined"])["combined"]
    assert "bounds of each partition" in coarse.assumes
    assert coarse.bound == "certain: what manifests, manifests-each, partitions, table prove together"
    assert "bounds of each data file" in table.estimate("id = 5 and price < 3")["combined"].assumes


def test_a_wrong_call_is_said_in_one_line(table: icestats.Table) -> None:
    """An unknown source, column or treatment of deletes names what is expected."""
    with pytest.raises(icestats.CallError, match="no source 'hms': expected some of data-files"):
        table.estimate("id = 1", sources=["hms"])
    with pytest.raises(icestats.CallError, match="expected one of deduct, positions, ignore"):
        table.estimate("id = 1", deletes="all")
    with pytest.raises(icestats.ColumnNotFoundError, match="no column 'nope'"):
        table.estimate("id = 1", columns=["nope"])
    with pytest.raises(icestats.FilterError, match="names no column 'nope'"):
        table.estimate("nope = 1")


def test_html_is_escaped(table: icestats.Table) -> None:
    """What a person typed into a filter is no markup."""
    html = table.estimate("name = '<script>alert(1)</script>'")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_table_without_a_snapshot_has_no_rows(empty_table: IcebergTable, catalog_properties: dict[str, str]) -> None:
    """Nothing is written, so nothing matches: certain from the metadata."""
    estimates = icestats.load("db.empty", catalog=catalog_properties).estimate("price < 3")
    assert estimates["manifests"].rows == 0
    assert estimates["manifests"].rows_upper == 0


def test_q_error_of_nothing_is_defined() -> None:
    """Estimate and truth count as one row at least; no estimate has no q-error."""
    assert q_error(0, 0) == 1.0
    assert q_error(0, 10) == q_error(10, 0) == 10.0
    assert q_error(0.01, 1) == 1.0
    assert q_error(None, 10) is None


def test_the_command_line_prints_the_contract(read_table: IcebergTable) -> None:
    """`estimate --format json` is an array, an object a source, with the fields that the contract names."""
    run = CliRunner().invoke(
        cli, ["estimate", read_table.metadata_location, "price < 3", "--format", "json"], catch_exceptions=False
    )
    rows = json.loads(run.stdout)
    names = {"source", "rows", "bytes", "q_error", "assumes", "values_read", "bytes_read"}
    assert all(names <= set(row) for row in rows)
    assert {row["source"] for row in rows} >= {"data-files", "manifests", "kll"}


def test_a_workload_counts_what_each_filter_leaves(table: icestats.Table) -> None:
    """Each filter has its truth, each source its distribution; what it cannot answer is counted as unknown."""
    workload = table.estimate_workload(["id < 50", "name = 'n1'", "price is null"])
    assert [answer.actual for answer in workload.answers] == [50, 10, 29]
    summary = {row["source"]: row for row in workload.summary().to_pylist()}
    assert (summary["table"]["answered_count"], summary["table"]["unknown_count"]) == (2, 1)
    assert summary["table"]["q_error_max"] == pytest.approx(1.0)
    assert (summary["ndv"]["answered_count"], summary["ndv"]["q_error_median"]) == (0, None)
    assert summary["data-files"]["within_bounds_count"] == summary["data-files"]["bounded_count"] == 3
    assert workload.to_arrow().num_rows == 3 * len(SOURCES)
    assert "within bounds" in repr(workload)


def test_a_table_without_rows_has_none_that_match(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> None:
    """Sources that count are certain of 0; the bounds of nothing are not unknown bounds."""
    catalog.create_table("db.empty", Schema(NestedField(1, "id", LongType())))
    estimates = icestats.load("db.empty", catalog=catalog_properties).estimate("id = 5 and id is not null")
    by_source = {one.source: (one.rows, one.rows_lower, one.rows_upper) for one in estimates}
    assert {by_source[name] for name in ("data-files", "manifests", "partitions", "table")} == {(0.0, 0.0, 0.0)}


def test_filters_cannot_be_generated_from_nothing(table: icestats.Table) -> None:
    """Without committed sketches there are no values to take filters from, and the message says what to do."""
    with pytest.raises(icestats.StatisticsMissingError, match=r"give a list of filters, or run table.compute\(\)"):
        table.estimate_workload()


def test_filters_are_generated_of_all_numbers_and_texts(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """The filter language has no exponents, and quotation marks of its own."""
    values = {"real": [5e-5, 1e300, -1e-9, 2.5], "text": ["it's", 'a"b', "100%", "a\\b"]}
    catalog.create_table("db.odd", pa.table(values).schema).append(pa.table(values))
    table = icestats.load("db.odd", catalog=catalog_properties)
    compute_here(table).commit()
    answers = table.refresh().estimate_workload(n=120).answers
    assert len(answers) == 120, "kinds of which all are made are passed over"
    said = " ".join(answer.row_filter for answer in answers)
    assert "0.00005" in said
    assert "'it''s'" in said
    assert all(answer.actual for answer in answers if " = " in answer.row_filter and " and " not in answer.row_filter)


def test_old_files_without_a_column_make_it_unknown(
    small_table: IcebergTable, catalog_properties: dict[str, str]
) -> None:
    """A column that older files say nothing of has no estimate from bounds, and everything is possible."""
    with small_table.update_schema() as update:
        update.add_column("later", LongType())
    found = icestats.load("db.small", catalog=catalog_properties).estimate("later = 3")["table"]
    assert found.rows is None
    assert "no bounds or null counts" in found.reason
    assert (found.rows_lower, found.rows_upper) == (0, 200)


def test_without_deletes_all_three_results_are_the_same(table: icestats.Table) -> None:
    """Deducted or ignored, there is nothing to deduct."""
    found = table.estimate("id < 50")["table"]
    assert found.rows == found.rows_deletes_ignored == found.rows_positions_deducted == found.rows_deletes_deducted


def test_a_missing_statistics_file_leaves_the_other_sources(
    small_table: IcebergTable, catalog_properties: dict[str, str]
) -> None:
    """What rests on a statistics file that is gone is unknown, the file is named; what rests on manifests answers."""
    snapshot = small_table.metadata.current_snapshot_id or 0
    gone = StatisticsFile(
        snapshot_id=snapshot,
        statistics_path=f"{small_table.location()}/metadata/gone.stats",
        file_size_in_bytes=9,
        file_footer_size_in_bytes=9,
        blob_metadata=[],
    )
    with small_table.update_statistics() as update:
        update.set_statistics(gone)
    estimates = icestats.load("db.small", catalog=catalog_properties).estimate("id < 50")
    assert estimates["table"].rows == 50
    for source in ("ndv", "kll", "kll-by-partition"):
        assert estimates[source].rows is None
    assert estimates["combined"].rows == estimates["data-files"].rows
    assert "gone.stats" in str(estimates.findings)


@pytest.mark.parametrize(
    ("filter_text", "is_trapped"),
    [
        ("n = 1", True),
        ("b = true", False),
        ("b in (true, false)", True),
        (f"u = '{uuid.UUID(int=1)}'", False),
        ("p = 1", False),
        ("p = 1 and u is null", False),
        ("p = 1 or u is null", True),
    ],
)
def test_the_trap_of_spark_is_said_where_it_estimates_no_rows(
    catalog: SqlCatalog, catalog_properties: dict[str, str], filter_text: str, is_trapped: bool
) -> None:
    """Spark 4.1 rewrites a boolean's equality, takes a UUID for text, and leaves a filter of partitions to Iceberg."""
    kinds = {"n": LongType(), "b": BooleanType(), "u": UUIDType(), "p": LongType()}
    fields = [NestedField(i, name, kind) for i, (name, kind) in enumerate(kinds.items(), 1)]
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "p"))
    table = catalog.create_table("db.traps", Schema(*fields), partition_spec=spec)
    rows = [{"n": i, "b": i == 1, "u": uuid.UUID(int=i).bytes, "p": i} for i in (1, 2)]
    table.append(pa.Table.from_pylist(rows, schema=schema_to_pyarrow(table.schema(), include_field_ids=False)))
    commit_statistics(prepare_commit(table, [theta(table, field.field_id) for field in fields]))
    findings = icestats.load("db.traps", catalog=catalog_properties).estimate(filter_text).findings
    assert any("estimates 0 rows" in finding.title for finding in findings) is is_trapped


def test_nested_fields_and_uuids_are_asked_about(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> None:
    """A filter on a part of a struct is estimated and counted; a uuid's literal is one to an engine, too."""
    schema = Schema(
        NestedField(1, "place", StructType(NestedField(2, "x", LongType(), required=False)), required=False),
        NestedField(3, "key", UUIDType(), required=False),
    )
    made = catalog.create_table("db.nested", schema)
    rows = [{"place": {"x": i}, "key": uuid.UUID(int=i).bytes} for i in range(50)]
    made.append(pa.Table.from_pylist(rows, schema=made.schema().as_arrow()))
    table = icestats.load("db.nested", catalog=catalog_properties)
    nested = table.estimate("place.x < 10", actual=True, engines=["duckdb"])
    assert nested.actual == 10
    assert nested["table"].rows_lower == 0
    assert nested["table"].rows_upper == 50
    assert nested["duckdb"].rows is not None
    by_key = table.estimate(f"key = '{uuid.UUID(int=5)}'", engines=["duckdb"])
    assert by_key["duckdb"].rows is not None, by_key["duckdb"].reason


def test_a_delete_file_is_about_the_data_file_that_it_names_and_no_newer_one():
    """Of a file with a deletion vector that alone counts; several position delete files may name the same row."""
    files = pa.table(
        {"file_path": ["a", "b", "c", "d"], "sequence_number": [1, 1, 5, 1], "record_count": [100, 100, 100, 100]}
    )
    named = pa.table(
        {
            "file_path": pa.array([b"a", b"a", b"b", b"b", b"c", b"elsewhere"], pa.binary()),
            "is_vector": [True, False, False, False, True, True],
            "record_count": [30, 60, 70, 50, 10, 99],
            "sequence_number": [2, 2, 2, 1, 4, 9],
        }
    )
    found = FileDeletes(named, 0, "", 0).count_rows(files)
    assert found.most.tolist() == [30, 100, 0, 0]
    assert found.least.tolist() == [30, 0, 0, 0]


@pytest.mark.parametrize(
    ("type_text", "kind", "value", "expected"),
    [
        ("uuid", pa.binary(16), bytes(15) + b"\x07", bytes(15) + b"\x07"),
        ("timestamp_ns", pa.timestamp("ns"), 1_700_000_000_000_000_001, 1_700_000_000_000_000_001),
        ("timestamptz", pa.timestamp("us", "UTC"), 1_700_000_000_000_001, 1_700_000_000_000_001),
    ],
)
def test_partition_values_are_taken_as_iceberg_stores_them(type_text: str, kind: pa.DataType, value, expected) -> None:
    """PyIceberg partitions by some of these only; Java by all."""
    found = value_metrics(pa.array([value, None], kind), type_text)
    least = literal_keys(type_text, expected)[0]
    counted = [found.lower.count_passed(*keys).tolist()[0] for keys in (([least], []), ([], [least]))]
    assert (counted, found.lower.known.tolist()) == ([1, 0], [True, False])
    assert found.may_be_null.tolist() == [False, True]


def rows_of(day: int, values: range) -> pa.Table:
    return pa.table({"day": pa.array([day] * len(values), pa.int64()), "v": pa.array(values, pa.int64())})


@pytest.fixture
def days(catalog: SqlCatalog) -> IcebergTable:
    """Three days of 10,000 numbers below 30,000."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    schema = Schema(NestedField(1, "day", LongType()), NestedField(2, "v", LongType()))
    made = catalog.create_table("db.days", schema, partition_spec=spec)
    for day in range(3):
        made.append(rows_of(day, range(day * 10_000, day * 10_000 + 10_000)))
    return made


def commit_sketches(opened: icestats.Table) -> None:
    compute_here(opened).commit()


def test_a_sketch_of_an_earlier_snapshot_promises_what_manifests_prove(
    days: IcebergTable, load: Callable[..., icestats.Table]
) -> None:
    """After 60,000 appended rows and a dropped partition its bounds are that much wider, and each answer says so."""
    commit_sketches(load("db.days"))
    early = days.refresh().metadata.current_snapshot_id
    days.append(rows_of(3, range(85_001, 145_001)))
    days.delete("day = 0")
    table = load("db.days")
    found = table.estimate("v > 100000", actual=True)
    assert found.actual == 45_000
    assert (found["kll"].rows_lower, found["kll"].rows_upper) == (0, 60_000)
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper
    assert found["combined"].q_error < 1.1
    said = (
        f"the sketch of v is of the earlier snapshot {early}, 2 commits behind (up to 60,000 rows added and up to "
        "10,000 rows removed since); its shares are taken for today's"
    )
    assert said in found["kll"].assumes
    assert "earlier snapshots of sketches, less the rows removed since and plus those added" in found["kll"].bound
    assert said in repr(found)
    assert said in table.estimate("v = 5")["ndv"].assumes
    low = table.estimate("v < 15000", actual=True)
    assert low.actual == 5_000
    assert 4_000 < low["kll"].rows_lower < 6_000
    histogram = table.histogram("v")
    assert (histogram.n, histogram.snapshot_id, histogram.commits_behind) == (30_000, early, 2)
    assert histogram.to_json()["commits_behind"] == 2
    assert set(histogram.to_arrow()["commits_behind"].to_pylist()) == {2}
    printed = CliRunner().invoke(cli, ["histogram", days.refresh().metadata_location, "v"], catch_exceptions=False)
    assert f"of snapshot {early}, 2 commits behind" in printed.output
    unknown = table.estimate("v = 15000")["kll"]
    assert unknown.rows is None
    assert said in unknown.reason


def test_of_a_sketch_whose_manifests_are_gone_nothing_is_promised(
    days: IcebergTable, load: Callable[..., icestats.Table]
) -> None:
    """What has changed since is unknown, so any row of today may satisfy the filter or not."""
    commit_sketches(load("db.days"))
    snapshot = days.refresh().current_snapshot()
    days.append(rows_of(0, range(10)))
    local_path(snapshot.manifest_list).unlink()
    found = load("db.days").estimate("v < 15000", sources=["kll"])["kll"]
    assert (found.rows_lower, found.rows_upper) == (0, 30_010)
    assert "any number of rows added and any number of rows removed since" in found.assumes


def test_a_filter_of_all_rows_promises_no_deleted_one(days: IcebergTable, load: Callable[..., icestats.Table]) -> None:
    """A position delete may name rows that are gone already, so that neither least nor most is what is live."""
    (file, *_) = list_data_files(days)
    for _ in range(2):
        delete_positions(days, [(file, 0), (file, 1), (file, 2)])
    found = load("db.days").estimate("true", actual=True)
    assert found.actual == 29_997
    for one in found:
        assert one.source == "ndv" or one.rows_lower <= found.actual <= one.rows_upper
    assert (found["kll"].rows_lower, found["kll"].rows_upper) == (29_994, 30_000)


@pytest.mark.parametrize(
    ("row_filter", "count"),
    [("x = 0.0", 3), ("x in (0.0, 7.0)", 3), ("x in (-0.0, 7.0)", 3), ("x not in (0.0, 7.0)", 3), ("x != -0.0", 2)],
)
def test_zero_with_a_minus_is_zero_when_rows_are_counted(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], row_filter: str, count: int
) -> None:
    """Among several values as alone; a scan keeps a null for `not in`."""
    made = catalog.create_table("db.zeros", pa.schema([("x", pa.float64())]))
    made.append(pa.table({"x": [0.0, -0.0, -0.0, 1.5, None, float("nan")]}))
    table = load("db.zeros")
    assert table.estimate(row_filter, actual=True).actual == count
    assert table.estimate_workload([row_filter]).answers[0].actual == count
    assert table.plan(row_filter, rows=True).steps[-1].kept == count


@pytest.mark.parametrize(
    ("row_filter", "count"),
    [
        ("i in (3000000000, 0)", 1),
        ("i not in (3000000000, 1, 0)", 3),
        ("i not in (-3000000000, 4000000000)", 4),
        ("i < 3000000000", 4),
        ("not i = -3000000000", 4),
        ("l >= -9300000000000000000", 4),
        ("l in (9300000000000000000, 9400000000000000000)", 0),
        (GreaterThan("f", 1e39), 1),
        (LessThan("f", 1e39), 2),
        (EqualTo("f", -1e39), 0),
        (NotEqualTo("f", 1e39), 4),
        (Not(In("f", [1e39, 1.0, 2.0])), 4),
    ],
)
def test_a_number_beyond_a_type_is_no_value_of_it_and_no_null(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], row_filter: str | BooleanExpression, count: int
) -> None:
    """Neither the greatest nor the least value, in partitions of their own; a scan keeps a null for some `not in`."""
    schema = Schema(
        NestedField(1, "i", IntegerType()), NestedField(2, "l", LongType()), NestedField(3, "f", FloatType())
    )
    by_number = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "i"))
    made = catalog.create_table("db.ends", schema, partition_spec=by_number)
    whole = [[2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 0, 1, None] for bits in (32, 64)]
    made.append(pa.table([*whole, [float("inf"), float("-inf"), 1.0, float("nan"), None]], schema_to_pyarrow(schema)))
    table = load("db.ends")
    estimates = table.estimate(row_filter, actual=True)
    assert estimates.actual == count
    assert estimates["combined"].rows_lower <= count <= estimates["combined"].rows_upper
    plan = table.plan(row_filter)
    assert len(plan.kept_file_paths()) >= count
    assert all(step.kept == count for step in plan.steps if step.unit == "row")


@pytest.mark.parametrize(
    ("properties", "values"),
    [({}, [0.5, 1.5]), ({"item-type": "string"}, ["a", "b"]), ({"item-type": "x" * 5_000}, [1.5])],
)
def test_a_sketch_of_items_that_are_no_values_of_the_column_is_none(
    days: IcebergTable, load: Callable[..., icestats.Table], properties: dict[str, str], values: list[Any]
) -> None:
    """Another writer's, whose numbers would be taken for the column's: no item type means double."""
    sketch = KllSketch("string" if isinstance(values[0], str) else "double", 200)
    sketch.update(pa.array(values) if isinstance(values[0], str) else np.array(values))
    new = blob(days, KLL, 2, sketch.to_bytes(), **{"null-count": "0", "nan-count": "0", **properties})
    commit_statistics(prepare_commit(days, [new]))
    table = load("db.days")
    found = table.estimate("v > 100")["kll"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (None, 0, 30_000)
    with pytest.raises(
        icestats.StatisticsMissingError, match=r"have items of type \w{6,80}, and the column is long: run"
    ):
        table.histogram("v")


def test_a_sketch_of_no_ancestor_promises_nothing(
    days: IcebergTable, load: Callable[..., icestats.Table], catalog_properties: dict[str, str]
) -> None:
    """A table that was rolled back has other rows than its later sketches."""
    early = days.metadata.snapshots[1].snapshot_id
    commit_sketches(load("db.days"))
    found = icestats.load("db.days", snapshot=early, catalog=catalog_properties).estimate("v < 15000")["kll"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (None, 0, 20_000)
    assert "no KLL sketch of v is committed for this snapshot or an ancestor of it" in found.reason


def test_a_partition_value_that_decides_needs_no_sketch(
    days: IcebergTable, load: Callable[..., icestats.Table]
) -> None:
    """Of a predicate that nothing is known of, the other side of an `or` may settle the answer all the same."""
    found = load("db.days").estimate("v < 5 or day is not null", sources=["kll-by-partition"])["kll-by-partition"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (30_000, 30_000, 30_000)


def test_the_data_files_of_many_filters_do_not_add_up(
    days: IcebergTable, load: Callable[..., icestats.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each filter leaves other manifests; of a table of 450,000 files each took 150 MB for as long as it was open."""
    monkeypatch.setattr(evidence, "_MOST_FILES", 2)
    table = load("db.days")
    for row_filter in ("day = 0 and v < 5", "day = 1 and v < 15000", "day >= 1 and v < 15000", "v < 15000", "day = 0"):
        assert table.estimate(row_filter)["data-files"].rows == load("db.days").estimate(row_filter)["data-files"].rows
        kept = [files.num_rows for _, files in table._evidence._files.values()]
        assert sum(kept) <= 2 or len(kept) == 1, row_filter


def test_what_manifests_prove_together_is_not_said_of_each(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Four of nine values are null: all of them in the manifest that partition values do not decide."""
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "bucket"))
    made = catalog.create_table("db.buckets", Schema(NestedField(1, "v", LongType())), partition_spec=spec)
    for values in ([1, 2, 3, 4], [5, None, None, None, None]):
        made.append(pa.table({"v": pa.array(values, pa.int64())}))
    for row_filter, truth in (("v is not null", 5), ("v is null", 4)):
        found = load("db.buckets").estimate(row_filter)
        for source in ("manifests", "combined"):
            assert (found[source].rows, found[source].rows_lower, found[source].rows_upper) == (truth, truth, truth)


@pytest.mark.parametrize("transform", [YearTransform(), MonthTransform(), DayTransform()], ids=str)
@pytest.mark.parametrize(("kind", "time"), [(DateType(), ""), (TimestampType(), "T00:00:00"), (TimestampType(), END)])
def test_the_last_and_the_first_day_that_python_knows_are_values_like_others(
    catalog: SqlCatalog, transform: Transform, kind: PrimitiveType, time: str
) -> None:
    """9999-12-31 often stands for `still valid`; the year of the day after it is 10000."""
    ends = [f"{day}{time}" for day in ("0001-01-01", "2026-01-01", "9999-12-31")]
    values = [(dt.datetime if time else dt.date).fromisoformat(end) for end in ends]
    spec = PartitionSpec(PartitionField(1, 1000, transform, "part"))
    made = catalog.create_table("db.ends", Schema(NestedField(1, "t", kind)), partition_spec=spec)
    made.append(pa.table({"t": pa.array(values, schema_to_pyarrow(made.schema()).field("t").type)}))
    table = icestats.load(made.metadata_location)
    for end in (0, 2):
        for operator, truth in {"<": end, "<=": end + 1, "=": 1, "!=": 2, ">=": 3 - end, ">": 2 - end}.items():
            row_filter = f"t {operator} '{ends[end]}'"
            found = table.estimate(row_filter, actual=True)
            assert found.actual == truth, row_filter
            assert all(one.rows_lower <= truth <= one.rows_upper for one in found), found
            steps = table.plan(row_filter, rows=True).steps
            assert steps[-1].unit == "file" or steps[-1].kept == truth, steps


def test_a_compaction_changes_no_row(days: IcebergTable, load: Callable[..., icestats.Table]) -> None:
    """Files that only a commit of the operation `replace` has exchanged do not widen bounds."""
    commit_sketches(load("db.days"))
    early = days.refresh().metadata.current_snapshot_id
    exact = load("db.days").estimate("v < 15000", sources=["kll"])["kll"]
    days.append(rows_of(1, range(5)))
    compact(days, [file for file in list_data_files(days) if file.partition[0] == 2], rows_of(2, range(20_000, 30_000)))
    days.refresh().append(rows_of(2, range(7)))
    reader = load("db.days")._reader
    assert find_changed_rows(reader, early).total == (12, 0)
    found = load("db.days").estimate("v < 15000", sources=["kll"])["kll"]
    assert (found.rows_lower, found.rows_upper) == (exact.rows_lower, exact.rows_upper + 12)


def test_a_compaction_may_put_rows_into_their_right_partition(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Early writers put the last day of 1969 into that of 1970-01-01, where a compaction takes its rows from."""
    spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "day"))
    schema = Schema(NestedField(1, "t", TimestampType()), NestedField(2, "v", LongType()))
    made = catalog.create_table("db.early", schema, partition_spec=spec)

    def rows_of_that_day(*values: int) -> pa.Table:
        return pa.table({"t": [dt.datetime(1969, 12, 31)] * len(values), "v": values})

    made.append(rows_of_that_day(9, 9, 9))
    (right,) = list_data_files(made)
    (late,) = _dataframe_to_data_files(table_metadata=made.metadata, df=rows_of_that_day(4, 5, 6), io=made.io)
    late[3] = Record(0)  # The partition has no setter.
    with made.transaction() as transaction, _FastAppendFiles(Operation.APPEND, transaction, made.io) as append:
        append.append_data_file(late)
    table = load("db.early")
    compute_here(table, by_partition=True).commit()
    delete_positions(made.refresh(), [(right, 0), (right, 1), (right, 2)])
    misplaced = [file for file in list_data_files(made) if file.file_path == late.file_path]
    compact(made, misplaced, rows_of_that_day(4, 5, 6))
    for one in load("db.early").estimate("v = 5", actual=True):
        assert one.rows_lower is None or one.rows_lower <= 1, one
        assert one.rows_upper is None or one.rows_upper >= 1, one


def test_spark_is_told_an_ndv_of_this_snapshot_as_it_is(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """It is not scaled by the rows that an older sketch of another column has counted; what is as old as that is."""
    kinds = {"key": LongType(), "code": LongType(), "word": StringType()}
    fields = [NestedField(i, name, kind) for i, (name, kind) in enumerate(kinds.items(), 1)]
    made = catalog.create_table("db.apart", Schema(*fields))
    for numbers in (range(1_000), range(1_000, 10_000)):
        codes = [number % 2_000 for number in numbers]
        made.append(pa.table({"key": list(numbers), "code": codes, "word": [f"w{code}" for code in codes]}))
        compute_here(load("db.apart"), columns=["key"] if made.scan().count() == 1_000 else ["code", "word"]).commit()
    told = {one.name: one for one in load("db.apart").reported_statistics().columns}
    assert {name: one.ndv for name, one in told.items()} == {"key": 10_000, "code": 2_000, "word": 2_000}
    assert "scaled from 1,000 of 1,000 rows" in told["key"].sources
    assert all("scaled" not in told[name].sources for name in ("code", "word"))


def test_equality_deletes_leave_the_rows_that_a_sketch_has_counted(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Of 110 rows one is deleted: with a sketch of then 109 are live for certain, without one 0 to 110."""
    made = catalog.create_table("db.deleted", Schema(NestedField(1, "v", LongType())))
    made.append(pa.table({"v": pa.array(range(110), pa.int64())}))
    delete_equal(made, pa.table({"v": pa.array([5], pa.int64())}), list_data_files(made)[0])
    for one in load("db.deleted").estimate("v is not null"):
        assert (one.rows_lower, one.rows_upper) == (0, 110), one
    reported = load("db.deleted").reported_statistics()
    for answer in (str(reported), reported._repr_html_()):
        assert "live rows (0 to 110) of 110 in data files" in answer
        assert "Theta and KLL sketches have not both been committed" in answer
    made.refresh()
    accumulator = ColumnAccumulator(load("db.deleted").schema.find("v"), k=200, lg_k=12)
    accumulator.update(pa.array([v for v in range(110) if v != 5], pa.int64()))
    opened = load("db.deleted")
    columns = {"v": accumulator.result()}
    snapshot = opened.snapshot
    Statistics(
        opened._source, TableStatistics(snapshot.snapshot_id, snapshot.sequence_number, 109, 1, 0, columns, {})
    ).commit()
    assert "db.deleted: 109 live rows of 110 in data files" in str(load("db.deleted").reported_statistics())
    for row_filter, truth in {"v is not null": 109, "v < 10": 9, "v >= 10": 100}.items():
        found = load("db.deleted").estimate(row_filter)["kll"]
        assert (found.rows, found.rows_lower, found.rows_upper) == (truth, truth, truth)
        ignored = load("db.deleted").estimate(row_filter, deletes="ignore")["kll"]
        assert (ignored.rows_lower, ignored.rows_upper) == (truth, truth + 1)


def test_equality_deletes_of_a_stream_leave_the_rows_that_are_newer(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Each commit of an upsert deletes the keys that it writes, new ones too: as many deletes as there are rows."""
    made = catalog.create_table("db.upserts", Schema(NestedField(1, "id", LongType()), NestedField(2, "v", LongType())))
    made.append(pa.table({"id": pa.array([-1], pa.int64()), "v": pa.array([None], pa.int64())}))
    for first in (0, 100, 200):
        keys = pa.table({"id": pa.array(range(first, first + 100), pa.int64())})
        delete_equal(made, keys, list_data_files(made)[0])
        made.refresh()
        made.append(keys.append_column("v", pa.array([7] * 99 + [None], pa.int64())))
    reported = load("db.upserts").reported_statistics()
    assert (reported.row_count, reported.row_count_bounds) == (100, (0, 301))
    assert load("db.upserts").estimate("id >= 0")["data-files"].rows == pytest.approx(100, rel=0.02)
    delete_equal(made, pa.table({"id": pa.array(range(500), pa.int64())}), list_data_files(made)[0])
    reported = load("db.upserts").reported_statistics()
    assert (reported.row_count, reported.row_count_bounds) == (1, (0, 301))
    # That no row is left is an estimate: columns are not said to have no value.
    assert [one.bounds for one in reported.columns] == [(-1, 299), (7, 7)]


@pytest.mark.parametrize("absent", [0, 100])
def test_combined_deducts_equality_deletes_as_sketches_have_counted_the_rows(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], absent: int
) -> None:
    """20 keys of one row each are deleted, and some that no row has; the NDV takes them for 222 rows, or for all."""
    made = catalog.create_table("db.skewed", Schema(NestedField(1, "v", LongType()), NestedField(2, "key", LongType())))
    keys = [v % 10 if v < 900 else v for v in range(1_000)]
    rows = pa.table({"v": pa.array(range(1_000), pa.int64()), "key": pa.array(keys, pa.int64())})
    made.append(rows.slice(0, 500))
    made.append(rows.slice(500))
    delete_equal(made, pa.table({"key": pa.array(range(980, 1_000 + absent), pa.int64())}), list_data_files(made)[0])
    made.refresh()
    opened, columns = load("db.skewed"), {}
    for name in ("v", "key"):
        accumulator = ColumnAccumulator(opened.schema.find(name), k=200, lg_k=12)
        accumulator.update(rows[name].slice(0, 980).combine_chunks())
        columns[name] = accumulator.result()
    snapshot = opened.snapshot
    found = TableStatistics(snapshot.snapshot_id, snapshot.sequence_number, 980, 2, 0, columns, {})
    Statistics(opened._source, found).commit()
    combined = load("db.skewed").estimate("v is not null")["combined"]
    assert round(combined.rows) == round(combined.rows_deletes_deducted) == 980
    assert "equality deletes leave as many rows as sketches have counted" in combined.assumes
    assert abs(load("db.skewed").estimate("v < 500")["combined"].rows - 500) < 20
    ignored = load("db.skewed").estimate("v is not null", deletes="ignore")["combined"]
    assert (ignored.rows, round(ignored.rows_deletes_deducted)) == (1_000, 980)


def test_equality_deletes_that_seem_to_delete_nothing_leave_no_row_certain() -> None:
    """Sketches have counted as many rows as there are records: the share becomes 0, the fact stays, in parts too."""
    rows = np.array([100.0, 100.0])
    deletes = TableDeletes(0, 10, 200, 10.0, "", equality_is_by_partition=False).over(rows)
    groups = [GroupEvidence("partition", each, each, {}) for each in (rows, rows.sum(keepdims=True))]
    table = GroupedEvidence(groups[1], [], deletes.take(np.zeros(1, np.int64)), 0)
    fitted = fit_equality_deletes(deletes, table, 200.0)
    assert fitted.equality.tolist() == [0.0, 0.0]
    assert fitted.take(np.array([1])).has_equality.tolist() == [True]
    for how, least in {"deduct": [0.0, 0.0], "positions": [100.0, 100.0]}.items():
        assert count_live_rows(groups[0], fitted, how).least.tolist() == least
    others = pa.table({f"{name}_record_count": [100, 100] for name in ("data", "position_delete")})
    by_partition = TableDeletes(0, 10, 200, 10.0, "", equality_is_by_partition=True)
    own = by_partition.of_partitions(others.append_column("equality_delete_record_count", pa.array([0, 10])))
    assert own.has_equality.tolist() == [False, True]


@pytest.mark.parametrize(("transform", "expected"), [("void", False), ("identity", True)])
def test_equality_deletes_of_a_spec_of_void_fields_are_about_all_partitions(transform: str, expected: bool) -> None:
    """A v1 spec whose field has been dropped has a `void` one, and divides nothing."""
    assert TableSpec(1, (SpecField(1000, 1, "day", transform),)).is_partitioned is expected


@pytest.mark.parametrize(("kind", "least"), [(IntegerType(), -(2**31)), (LongType(), -(2**63))])
@pytest.mark.parametrize(
    ("condition", "count"), [("= {}", 1), ("in ({}, 3)", 1), ("< 0", 2), ("<= 105", 3), ("> 50", 2), ("is not null", 4)]
)
def test_partitions_of_the_least_numbers_are_at_the_top(
    catalog: SqlCatalog, catalog_properties: dict[str, str], kind: PrimitiveType, least: int, condition: str, count: int
) -> None:
    """Cutting them leaves the type: writers wrap, so that the partition value is large and its rows are small."""
    schema = Schema(NestedField(1, "n", kind, required=False))
    spec = PartitionSpec(PartitionField(1, 1000, TruncateTransform(10), "tens"))
    made = catalog.create_table("db.least", schema, partition_spec=spec)
    made.append(pa.table({"n": [least, least + 1, 105, 205]}, schema_to_pyarrow(schema)))
    table = icestats.load("db.least", catalog=catalog_properties)
    found = table.estimate(f"n {condition.format(least)}", actual=True)
    assert found.actual == count
    for one in found:
        assert one.rows_lower is not None
        assert one.rows_upper is not None
        assert one.rows_lower <= count <= one.rows_upper, one


def test_counts_that_add_up_to_more_than_doubles_tell_apart_are_estimated_from() -> None:
    """Each file has no more than 2**53 records, all together have."""
    assert as_floats(pa.array([2**53 + 1, None, 2**63 - 1])).tolist()[::2] == [2.0**53, 2.0**63]
    groups = GroupEvidence("table", as_floats(pa.array([2**60 + 65])), np.zeros(1), {})
    counts = count_live_rows(groups, TableDeletes(0, 0, 2**60 + 65, 0.0, "", True).over(groups.row_counts), "deduct")
    assert round_bounds(counts.least[0], counts.most[0])[1] >= 2**60 + 65
