"""Spark's metadata tables are the oracle: manifests, partitions, files and columns of both demo tables equal them."""

from __future__ import annotations

import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icestats
from icestats.cli.output import build_manifest_records, build_partition_records
from icestats.iceberg.storage import local_path
from icestats.iceberg.types import decode_json
from icestats.snapshot.snapshot_reader import build_column_table
from icestats.spark.optimizer import count_with_spark

pytestmark = pytest.mark.spark

TABLES = ("events", "flights")


@pytest.fixture(scope="module", params=TABLES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def table(demo_home, name) -> icestats.Table:
    return icestats.load(f"demo.{name}")


@pytest.fixture(scope="module")
def entries(spark, name) -> list[dict]:
    """Live entries by Spark, with the manifest that each stands in by none: Spark's files table does not say."""
    rows = spark.sql(f"select to_json(struct(*), map('ignoreNullFields', 'false')) from icestats.demo.{name}.files")
    return [json.loads(row[0]) for row in rows.collect()]


def test_manifests_equal_sparks(spark, table, name):
    rows = {row["path"]: row for row in spark.table(f"icestats.demo.{name}.manifests").collect()}
    manifests = table.manifests().to_pylist()
    assert {m["manifest_path"] for m in manifests} == set(rows)
    for manifest in manifests:
        row = rows[manifest["manifest_path"]]
        kind = "data" if manifest["content"] == "data" else "delete"
        assert manifest["manifest_length"] == row["length"]
        assert manifest["partition_spec_id"] == row["partition_spec_id"]
        assert manifest["added_snapshot_id"] == row["added_snapshot_id"]
        live = row[f"added_{kind}_files_count"] + row[f"existing_{kind}_files_count"]
        assert manifest["live_file_count"] == live
        assert manifest["deleted_files_count"] == row[f"deleted_{kind}_files_count"]


def test_partitions_equal_sparks(spark, table, name):
    rows = spark.table(f"icestats.demo.{name}.partitions").collect()
    records = list(build_partition_records(table.partitions(), table.schema, table.metadata.specs))
    by_partition = {tuple(_plain(v) for v in row["partition"]): row for row in rows}
    assert len(records) == len(rows)
    for record in records:
        row = by_partition[tuple(record["partition"].values())]
        assert record["spec_id"] == row["spec_id"]
        assert record["data_record_count"] == row["record_count"]
        assert record["data_file_count"] == row["file_count"]
        assert record["total_data_file_size_in_bytes"] == row["total_data_file_size_in_bytes"]
        assert record["position_delete_record_count"] == row["position_delete_record_count"]
        assert record["position_delete_file_count"] == row["position_delete_file_count"]
        assert record["equality_delete_file_count"] == row["equality_delete_file_count"]
        assert record["last_updated_snapshot_id"] == str(row["last_updated_snapshot_id"])


def _plain(value):
    return value.isoformat() if hasattr(value, "isoformat") else value


def test_files_equal_sparks(table, entries):
    files = {row["file_path"]: row for row in table.files().to_pylist()}
    assert set(files) == {entry["file_path"] for entry in entries}
    contents = ("data", "position_deletes", "equality_deletes")
    for entry in entries:
        found = files[entry["file_path"]]
        assert found["content"] == contents[entry["content"]]
        assert found["record_count"] == entry["record_count"]
        assert found["file_size_in_bytes"] == entry["file_size_in_bytes"]
        assert found["spec_id"] == entry["spec_id"]


def read_file_columns(table) -> list[dict]:
    """The columns by their files alone, without committed statistics."""
    reader = table._reader
    return build_column_table(reader.manifest_files, reader.manifest_rollups, table.schema, {}).to_pylist()


def test_columns_equal_the_sums_over_sparks_readable_metrics(table, entries):
    """A sum is given where every data file has the figure, and only there; bounds are the extremes."""
    data = [entry for entry in entries if entry["content"] == 0]
    for row in read_file_columns(table):
        metrics = [entry["readable_metrics"][row["name"]] for entry in data]
        for statistic in ("column_size", "value_count", "null_value_count", "nan_value_count"):
            if statistic == "nan_value_count" and row["type"] not in ("float", "double"):
                continue
            values = [metric[statistic] for metric in metrics]
            expected = None if None in values else sum(values)
            assert row[statistic] == expected, (row["name"], statistic)
            assert dict(row["missing_files"]).get(statistic, 0) == values.count(None)
        if row["type"] in ("int", "long", "double"):
            lows = [m["lower_bound"] for m in metrics if m["lower_bound"] is not None]
            highs = [m["upper_bound"] for m in metrics if m["upper_bound"] is not None]
            assert decode_json(row["type"], row["lower_bound"]) == min(lows), row["name"]
            assert decode_json(row["type"], row["upper_bound"]) == max(highs), row["name"]


def test_the_manifests_roll_ups_add_up_to_the_columns(table):
    """Where every manifest knows a figure, its sum is the table's."""
    records = build_manifest_records(table.manifests(), table.schema)
    data = [record for record in records if record["content"] == "data"]
    for row in read_file_columns(table):
        counts = [record["total_value_counts"][str(row["field_id"])] for record in data]
        assert row["value_count"] == (None if None in counts else sum(counts))


def test_the_column_that_was_added_half_way_is_unknown_for_older_files(demo_home):
    table = icestats.load("demo.events")
    column = next(row for row in read_file_columns(table) if row["name"] == "app_version")
    assert column["value_count"] is None
    assert 0 < dict(column["missing_files"])["value_count"] < column["live_file_count"]


def test_committed_figures_of_columns_equal_duckdbs_aggregates(live_rows, table, name):
    """Counts of live rows, nulls and NaN, the smallest and the largest value."""
    rows, wanted = table.columns().to_pylist(), []
    for column, kind in ((row["name"], row["type"]) for row in rows):
        nan = f"count_if(isnan({column}))" if kind in ("float", "double") else "null"
        ends = f"min({column}), max({column})" if kind in ("int", "long", "string") else "null, null"
        wanted.append(f"row(count(*), count_if({column} is null), {nan}, {ends})")
    expected = live_rows.sql(f"select {', '.join(wanted)} from {name}").fetchall()[0]
    for row, (count, nulls, nans, *ends) in zip(rows, expected, strict=True):
        assert (row["value_count"], row["null_value_count"], row["nan_value_count"]) == (count, nulls, nans)
        if ends != [None, None]:
            assert [decode_json(row["type"], row[f"{side}_bound"]) for side in ("lower", "upper")] == ends
        assert dict(row["provenance"])["lower_bound"] == "exact: over the live rows, this snapshot"


def test_delete_files_are_never_counted_as_data_files(demo_home):
    table = icestats.load("demo.events")
    manifests = table.manifests()
    deletes = manifests.filter(pc.equal(manifests["content"], "deletes"))
    assert pc.sum(deletes["position_delete_file_count"]).as_py() > 0
    assert deletes["value_counts"].null_count == deletes.num_rows
    overview = table.overview()
    assert overview.data_file_count == pc.sum(table.partitions()["data_file_count"]).as_py()
    assert overview.delete_file_count == pc.sum(deletes["live_file_count"]).as_py()


def test_a_manifest_that_the_list_names_twice_counts_once_in_spark(spark, catalog, catalog_properties):
    """What the kit says of such a table is what Spark reads; PyIceberg reads its rows twice."""
    made = catalog.create_table("db.repeated", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.array(range(10), pa.int64())}))
    path = Path(local_path(made.current_snapshot().manifest_list))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, records = reader.writer_schema, list(reader)
    with path.open("wb") as file:
        fastavro.writer(file, schema, [*records, *records])
    table = icestats.load("db.repeated", catalog=catalog_properties)
    assert count_with_spark(spark, table._source, table.snapshot, table.schema, ["id < 100", "id = 9"]) == [10, 1]
    assert table.columns()["value_count"].to_pylist() == [10]
    assert made.scan().count() == 20
