"""Committed figures that the manifests refute: not shown, not called exact, not added to; and a finding says so."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import encode_value
from icestats.read.puffin.statistics_files import MANIFEST_STATISTICS
from icestats.read.rollups.manifest_statistics import write_manifest_statistics
from icestats.scan.scan_plan import scan_here
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.table_statistics import ColumnStatistics, TableStatistics
from icestats.table.statistics import Statistics
from tests.committed_statistics import THETA, blob, commit
from tests.computed_statistics import compute_here
from tests.unit.test_lying_partition_sketches import BY_DAY, SCHEMA, write

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.mark.parametrize("name", ["total_record_count", "live_file_count"])
def test_manifest_statistics_of_other_counts_than_the_manifest_list_has_are_not_used(small_table, load, name):
    expected = load().manifests()
    table = load()
    payload = write_manifest_statistics(table.manifest_files(), table._reader.manifest_rollups, table.schema.columns)
    rows = pq.ParquetFile(io.BytesIO(payload)).read()
    place = rows.column_names.index(name)
    less = pa.array([count - 1 for count in rows[name].to_pylist()], pa.int64())
    out = io.BytesIO()
    with pq.ParquetWriter(out, rows.schema, compression="none", store_schema=False) as writer:
        writer.write_table(rows.set_column(place, rows.schema.field(place), less))
        writer.add_key_value_metadata(rows.schema.metadata)
    now = small_table.current_snapshot()
    commit(small_table, NewBlob(MANIFEST_STATISTICS, (), now.snapshot_id, now.sequence_number, out.getvalue(), {}))
    table = load()
    assert table.manifests().equals(expected)
    (finding,) = table._reader.findings
    assert "in the manifest list" in finding.evidence
    found = load().estimate("id >= 0", sources=["table", "combined"], actual=True)
    assert found["table"].rows_lower == found.actual == 200


def test_bounds_that_rest_on_committed_roll_ups_are_certain_only_if_the_file_is_right(small_table, load):
    sources = ["table", "manifests", "data-files"]
    before = load().estimate("id >= 10", sources=sources)
    assert all(one.bound.startswith("certain: what ") for one in before)
    load().compute(columns=[], manifests=True).commit()
    found = load().estimate("id >= 10", sources=sources)
    assert [one.rows_lower for one in found] == [one.rows_lower for one in before]
    assert all(one.bound.startswith("certain if the statistics file is right: what ") for one in found)


def test_bounds_of_sketches_have_their_confidence_only_if_the_file_is_right(table):
    Statistics(table(ROWS)._source, compute_here(table()).found).commit()
    assert table().estimate("key > 2")["kll"].bound.startswith("99% confidence if the statistics file is right: ")


ROWS = {"key": [1, 2, 3, None] * 25, "name": ["b", "c", "d", "e"] * 25}
Change = Callable[[ColumnStatistics], ColumnStatistics]


@pytest.fixture
def read_in_full(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that a refresh reads anew, in this process."""
    names: list[str] = []

    def scan(_: Any, plan: Any, sizes: Any, **__: Any) -> TableStatistics:
        names.extend(field.name for field in plan.fields)
        return scan_here(plan, sizes)

    monkeypatch.setattr("icestats.spark.statistics_refresh.run_scan", scan)
    monkeypatch.setattr("icestats.spark.statistics_refresh.find_session", lambda *_: None)
    return names


@pytest.fixture
def table(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> Callable[..., icestats.Table]:
    def load(rows: dict[str, list[Any]] | None = None) -> icestats.Table:
        if rows is not None:
            if not catalog.table_exists("db.t"):
                catalog.create_table("db.t", pa.schema([("key", pa.int64()), ("name", pa.string())]))
            catalog.load_table("db.t").append(pa.table(rows, pa.schema([("key", pa.int64()), ("name", pa.string())])))
        return icestats.load("db.t", catalog=catalog_properties)

    return load


def of_keys(values: list[int | None]) -> ColumnStatistics:
    counted = ColumnAccumulator(Field(1, "key", "long", required=False, top_level=True), k=200, lg_k=12)
    counted.update(pa.array(values, pa.int64()))
    return counted.result()


CHANGES: dict[str, tuple[str, Change, str]] = {
    "fewer rows": ("key", lambda own: replace(own, value_count=99), "99 rows, and its data files have 100"),
    "more rows": ("name", lambda own: replace(own, value_count=101), "101 rows, and its data files have 100"),
    "fewer nulls": (
        "key",
        lambda own: of_keys([1, 2, 3] * 25 + [None] * 24 + [3]),
        "24 nulls, and its data files",
    ),
    "a smaller value": ("key", lambda own: replace(own, min_value=encode_value("long", 0)), "beyond the bounds"),
    "a larger value": ("name", lambda own: replace(own, max_value=b"f"), "beyond the bounds"),
}


@pytest.mark.parametrize(("name", "change", "reason"), CHANGES.values(), ids=CHANGES)
def test_exact_figures_that_data_files_refute_are_not_shown(
    table: Callable[..., icestats.Table], name: str, change: Change, reason: str
) -> None:
    opened = table(ROWS)
    expected = {row["name"]: row for row in opened.columns().to_pylist()}
    found = compute_here(opened).found
    changed = found.columns | {name: change(found.columns[name])}
    Statistics(opened._source, replace(found, columns=changed)).commit()
    opened = table()
    shown = {row["name"]: row for row in opened.columns().to_pylist()}
    assert reason in opened._reader.findings[0].evidence
    assert reason in repr(opened)
    for one in ("value_count", "null_value_count", "lower_bound", "upper_bound"):
        assert shown[name][one] == expected[name][one]
        assert dict(shown[name]["provenance"])[one] == dict(expected[name]["provenance"])[one]
    assert any(reason in note for note in opened.reported_statistics().notes)


def test_what_data_files_refute_is_said_before_it_is_committed(
    table: Callable[..., icestats.Table], catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an import whose writer found the columns of a file in another way than this reads them."""
    monkeypatch.setattr("icestats.spark.statistics_scan.run_scan", lambda _, plan, sizes, **__: scan_here(plan, sizes))
    monkeypatch.setattr("icestats.spark.session_catalog.find_session", lambda *_: None)
    assert table(ROWS).compute().found.findings == ()
    written = catalog.load_table("db.t")
    (task,) = written.scan().plan_files()
    # Its counts of nulls.
    task.file[8] = {1: 24, 2: 0}
    with written.transaction() as transaction:
        transaction.delete("true")
        with transaction.update_snapshot().fast_append() as append:
            append.append_data_file(task.file)
    made = table().compute()
    assert "column 'key': 25 nulls, and its data files have 24" in repr(made)
    assert len(made.found.findings) == 1
    for report in (made.commit(dry_run=True), made.commit()):
        assert "column 'key': 25 nulls, and its data files have 24" in str(report)
        assert len(report.warnings) == 1


def test_a_bound_that_is_cut_inside_of_a_character_refutes_nothing(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    written = catalog.create_table("db.t", pa.schema([("name", pa.string())]))
    written.append(pa.table({"name": ["a", "ä"]}))
    (task,) = written.scan().plan_files()
    # Its upper bounds.
    task.file[11] = {1: "ö".encode()[:1]}
    with written.transaction() as transaction:
        transaction.delete("true")
        with transaction.update_snapshot().fast_append() as append:
            append.append_data_file(task.file)
    opened = icestats.load("db.t", catalog=catalog_properties)
    assert "ALTER TABLE" in opened.export("hive")
    Statistics(opened._source, compute_here(opened).found).commit()
    opened = icestats.load("db.t", catalog=catalog_properties)
    (row,) = opened.columns().to_pylist()
    assert (row["lower_bound"], row["upper_bound"], row["ndv"]) == (b"a", "ä".encode(), 2)
    assert opened._reader.findings == ()
    assert opened.refresh_statistics().added_file_count == 0


@pytest.mark.parametrize("later", [False, True])
def test_statistics_of_another_number_of_rows_are_computed_anew_and_not_added_to(
    table: Callable[..., icestats.Table], read_in_full: list[str], later: bool
) -> None:
    opened = table(ROWS)
    found = compute_here(opened).found
    Statistics(opened._source, replace(found, columns=found.columns | {"key": of_keys([1, 2])})).commit()
    if later:
        table(ROWS)
    refreshed = table().refresh_statistics()
    assert read_in_full == ["key"]
    assert refreshed.scanned["key"].startswith("its committed statistics are of 2 rows, and snapshot ")
    assert refreshed.found.find("key").value_count == refreshed.found.find("name").value_count == 100 * (1 + later)
    refreshed.commit()
    assert table().columns()["value_count"].to_pylist() == [100 * (1 + later)] * 2


VALUES: dict[str, tuple[str, Change]] = {
    "nulls": ("24 nulls, and its data files have 25", CHANGES["fewer nulls"][1]),
    "a value": ("values beyond the bounds", lambda own: of_keys([0, 2, 3, None] * 25)),
}


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("reason", "change"), VALUES.values(), ids=VALUES)
def test_statistics_of_other_values_are_computed_anew_and_not_added_to(
    table: Callable[..., icestats.Table], read_in_full: list[str], reason: str, change: Change, later: bool
) -> None:
    opened = table(ROWS)
    found = compute_here(opened).found
    Statistics(opened._source, replace(found, columns=found.columns | {"key": change(found.columns["key"])})).commit()
    if later:
        table(ROWS)
        reason = reason.replace("24", "49").replace("25", "50")
    refreshed = table().refresh_statistics()
    assert read_in_full == ["key"]
    assert refreshed.scanned["key"].startswith("data files refute its committed statistics: ")
    assert reason in refreshed.scanned["key"]
    refreshed.commit()
    opened = table()
    assert opened.columns()["null_value_count"].to_pylist() == [25 * (1 + later), 0]
    assert dict(opened.columns().to_pylist()[0]["provenance"])["lower_bound"].startswith("exact: ")
    assert not opened._reader.findings


def test_sketches_by_partition_of_another_number_of_rows_are_computed_anew(
    catalog: SqlCatalog, catalog_properties: dict[str, str], read_in_full: list[str]
) -> None:
    opened, found = write(catalog, catalog_properties, "db.lie", 50)
    _, of_other = write(catalog, catalog_properties, "db.other", 10)
    parts = dict(zip(found.by_partition.columns["key"], of_other.by_partition.columns["key"].values(), strict=True))
    lying = replace(found.by_partition, columns={**found.by_partition.columns, "key": parts})
    Statistics(opened._source, replace(found, by_partition=lying)).commit()
    catalog.load_table("db.lie").append(pa.table({"day": [1, 2], "key": [3, 4]}))
    refreshed = icestats.load("db.lie", catalog=catalog_properties).refresh_statistics()
    assert read_in_full == ["key"]
    assert "its sketches by partition are of 20 rows, and snapshot " in refreshed.scanned["key"]
    of_parts = refreshed.found.by_partition.columns["key"].values()
    assert [one.value_count for one in of_parts] == [51, 51]


@pytest.mark.parametrize(
    "change",
    [
        lambda own: replace(own, min_value=encode_value("long", 40)),
        lambda own: replace(own, max_value=encode_value("long", 100)),
    ],
    ids=["a smaller value", "a larger value"],
)
@pytest.mark.parametrize("later", [False, True])
def test_sketches_by_partition_of_other_values_are_computed_anew(
    catalog: SqlCatalog,
    catalog_properties: dict[str, str],
    read_in_full: list[str],
    change: Change,
    later: bool,
) -> None:
    opened, found = write(catalog, catalog_properties, "db.lie", 50, first=50, metrics="full")
    own = found.by_partition.columns["key"]
    changed = {key: change(column) for key, column in own.items()}
    lying = replace(found.by_partition, columns={**found.by_partition.columns, "key": changed})
    Statistics(opened._source, replace(found, by_partition=lying)).commit()
    rows = pa.table({"day": [1, 2], "key": [60, 61]})
    catalog.load_table("db.lie").append(rows if later else rows.slice(0, 0))
    refreshed = icestats.load("db.lie", catalog=catalog_properties).refresh_statistics()
    assert read_in_full == ["key"]
    assert refreshed.scanned["key"].endswith("by partition: column 'key': values beyond the bounds of data files")
    smallest = {one.min_value for one in refreshed.found.by_partition.columns["key"].values()}
    assert smallest == {encode_value("long", 50)}


def test_counts_that_partition_values_refute_prove_nothing(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """As many rows as the table has, no value beyond unknown bounds, but not in these partitions."""
    days = {"db.lie": [1] * 50 + [2] * 50, "db.other": [1] * 10 + [2] * 90}
    properties = {"write.metadata.metrics.default": "counts"}
    found = {}
    for name, values in days.items():
        made = catalog.create_table(name, SCHEMA, partition_spec=BY_DAY, properties=properties)
        made.append(pa.table({"day": values, "key": [*range(100)]}))
        found[name] = compute_here(icestats.load(name, catalog=catalog_properties)).found
    opened = icestats.load("db.lie", catalog=catalog_properties)
    Statistics(opened._source, replace(found["db.lie"], columns=found["db.other"].columns)).commit()
    estimates = icestats.load("db.lie", catalog=catalog_properties).estimate("day = 1", actual=True)
    assert estimates["data-files"].rows_lower == estimates["combined"].rows == estimates.actual == 50
    for source in ("kll", "frequent-items"):
        assert estimates[source].rows is estimates[source].rows_upper is None
        assert "count 10 to 10 rows" in estimates[source].reason
        assert "partition values of data files leave 50 to 50" in estimates[source].reason


@pytest.mark.parametrize(("stated", "is_of_sketch"), [(3, True), (4, True), (2, False), (5, False), (70, False)])
def test_a_stated_ndv_has_the_error_of_its_sketch_only_where_it_is_the_sketch_s(
    table: Callable[..., icestats.Table], catalog: SqlCatalog, stated: int, is_of_sketch: bool
) -> None:
    payload = compute_here(table(ROWS)).found.columns["key"].theta
    made = catalog.load_table("db.t")
    commit(made, blob(made, THETA, 1, payload, ndv=str(stated)))
    row = table().columns().to_pylist()[0]
    said = dict(row["provenance"])["ndv"]
    assert row["ndv"] == stated
    assert ("exact but for hash collisions" in said) == is_of_sketch
    assert ("as its writer states it, whose Theta sketch has 3," in said) != is_of_sketch


def test_an_ndv_of_a_partition_is_no_more_than_the_rows_that_it_has_now(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    opened, found = write(catalog, catalog_properties, "db.shrunk", 50)
    Statistics(opened._source, found).commit()
    catalog.load_table("db.shrunk").overwrite(pa.table({"day": [1] * 3, "key": [7, 8, 9]}), "day == 1")
    rows = icestats.load("db.shrunk", catalog=catalog_properties).partitions().to_pylist()
    assert [dict(row["ndvs"])[2] for row in rows] == [3, 50]
    assert all(dict(row["ndv_commits_behind"])[2] for row in rows)


def test_bounds_in_milliseconds_are_named_as_the_cause(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Of files whose timestamps are in milliseconds Spark's `add_files` takes the bounds for microseconds."""
    rows = pa.table({"at": pa.array([1_577_836_800_000_001, 1_609_459_200_000_000], pa.timestamp("us", "UTC"))})
    made = catalog.create_table("db.migrated", rows.schema)
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in _dataframe_to_data_files(table_metadata=made.metadata, df=rows, io=made.io):
            file.lower_bounds[1], file.upper_bounds[1] = (
                encode_value("long", one.value // 1000) for one in rows["at"].combine_chunks()
            )
            append.append_data_file(file)
    table = load("db.migrated")
    (finding,) = table._say_refuted(compute_here(table).found).findings
    assert finding.severity == "error"
    assert "column 'at': values beyond the bounds of data files, in milliseconds by add_files" in finding.evidence
    assert "set read.parquet.vectorization.enabled to false, then rewrite these files" in finding.evidence
    made.transaction().set_properties({"schema.name-mapping.default": "[]"}).commit_transaction()
    made.append(pa.table({"at": pa.array([1_893_456_000_000_000], pa.timestamp("us", "UTC"))}))
    table = load("db.migrated")
    for row_filter, rows_read in (("at < '2020-06-01T00:00:00Z'", 1), ("at > '1990-01-01T00:00:00Z'", 3)):
        for one in table.estimate(row_filter):
            assert one.rows_lower is None or one.rows_lower <= rows_read <= one.rows_upper, (row_filter, one)
    known = table.columns().to_pylist()[0]
    assert known["lower_bound"] is known["upper_bound"] is None
    assert known["null_value_count"] == 0
    assert "milliseconds" in dict(known["provenance"])["upper_bound"]
