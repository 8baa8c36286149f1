from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.types import LongType, NestedField, StructType, UUIDType

import icestats
from icestats.cli.command_line import cli
from icestats.estimation.formulas.source_estimates import q_error
from icestats.estimation.row_level_deletes import FileDeletes
from icestats.estimation.sources import SOURCES
from icestats.iceberg.value_order import literal_keys
from icestats.plan.evaluation.column_metrics import value_metrics


@pytest.fixture
def table(small_table: IcebergTable, catalog_properties: dict[str, str]) -> icestats.Table:
    return icestats.load("db.small", catalog=catalog_properties)


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


def test_the_command_line_prints_the_contract(small_table: IcebergTable) -> None:
    """`estimate --format json` is an array, an object a source, with the fields that the contract names."""
    run = CliRunner().invoke(
        cli, ["estimate", small_table.metadata_location, "price < 3", "--format", "json"], catch_exceptions=False
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
    """What rests on a statistics file that is gone is unknown and names it; what rests on manifests answers."""
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
    for source in ("ndv", "kll", "kll-by-partition", "combined"):
        assert estimates[source].rows is None
    assert "gone.stats" in estimates["kll"].reason


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
    assert [found.lower.compare(operator, least).tolist() for operator in (">=", "<=")] == [[True, False]] * 2
    assert found.may_be_null.tolist() == [False, True]
