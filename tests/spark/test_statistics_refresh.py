"""A refresh reads only the files added since, and finds what a full scan finds."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import IntegerType, LongType

import icestats
from icestats.errors import StatisticsMissingError
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.storage import local_path
from icestats.scan.appended_files import find_appended_files, read_changed_files
from icestats.stats.kll import KllSketch

pytestmark = pytest.mark.spark


def rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    prices = np.where(ids % 10 == 0, np.nan, ids / 4)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([None if i % 5 == 0 else f"n{i % 9_000}" for i in ids], pa.string()),
            "price": pa.array(prices, mask=ids % 7 == 0),
            "code": pa.array([i.to_bytes(4, "big") for i in ids.tolist()], pa.binary()),
        }
    )


@pytest.fixture
def properties(spark, tmp_path):
    return {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}


@pytest.fixture
def iceberg_table(properties):
    """30,000 rows with committed statistics, then two appends of 300."""
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows(0, 1).schema)
    table.append(rows(0, 30_000))
    icestats.load("db.t", catalog=properties).compute(k=400).commit()
    table.append(rows(29_900, 30_200))
    table.append(rows(90_000, 90_300))
    yield table
    catalog.close()


def without_kll(statistics):
    return {name: replace(column, kll=None, frequent_items=b"") for name, column in statistics.found.columns.items()}


def test_appended_files_alone_are_read_and_the_result_is_that_of_a_full_scan(spark, iceberg_table, properties):
    table = icestats.load("db.t", catalog=properties)
    full = table.compute(k=400)
    first = next(task for task in iceberg_table.scan().plan_files() if task.file.record_count == 30_000)
    local_path(first.file.file_path).unlink()
    refreshed = table.refresh_statistics()
    assert (refreshed.added_file_count, refreshed.added_row_count, refreshed.scanned) == (2, 600, {})
    assert set(refreshed.added_to) == {"id", "name", "price", "code"}
    assert "2 files with 600 rows were added since" in repr(refreshed)
    assert without_kll(refreshed) == without_kll(full)
    assert without_kll(table.refresh_statistics(spark=spark)) == without_kll(full), "by Spark as in this process"
    assert refreshed.found.row_count == 30_600
    prices = np.sort(np.concatenate([rows(a, b)["price"].drop_null() for a, b in RANGES]))
    prices = prices[~np.isnan(prices)]
    column = refreshed.found.find("price")
    sketch = KllSketch.from_bytes(column.item_type, column.kll)
    assert (sketch.n, sketch.k) == (len(prices), 400)
    points = prices[:: len(prices) // 50]
    truth = np.searchsorted(prices, points, side="right") / len(prices)
    assert np.abs(np.asarray(sketch.ranks(list(points))) - truth).max() <= sketch.rank_error

    assert refreshed.commit().committed
    again = table.refresh()
    assert {
        row["commits_behind"]
        for row in again.sketches().to_pylist()
        if row["snapshot_id"] == again.snapshot.snapshot_id
    } == {0}
    assert again.histogram("price", bins=4).n == len(prices)
    unchanged = again.refresh_statistics()
    assert unchanged.added_file_count == 0
    assert unchanged.found.columns == refreshed.found.columns


RANGES = ((0, 30_000), (29_900, 30_200), (90_000, 90_300))


def test_after_a_delete_the_table_is_scanned_in_full_and_the_reason_said(iceberg_table, properties):
    iceberg_table.refresh().delete("id < 100")
    refreshed = icestats.load("db.t", catalog=properties).refresh_statistics(columns=["id"])
    assert refreshed.added_to == {}
    assert "operation overwrite" in refreshed.scanned["id"]
    assert f"scanned in full, as {refreshed.scanned['id']}: id" in repr(refreshed)
    assert (refreshed.found.row_count, refreshed.found.find("id").min_value) == (30_500, (100).to_bytes(8, "little"))


def test_a_column_of_another_type_or_without_statistics_is_scanned_in_full(iceberg_table, properties):
    with iceberg_table.refresh().update_schema() as update:
        update.add_column("later", IntegerType())
    iceberg_table.refresh().append(rows(0, 10).append_column("later", pa.array(range(10), pa.int32())))
    refreshed = icestats.load("db.t", catalog=properties).refresh_statistics(columns=["id", "later"])
    assert refreshed.scanned == {"later": "nothing has been committed for it"}
    assert set(refreshed.added_to) == {"id"}
    assert refreshed.added_row_count == 610
    assert [c.value_count for c in refreshed.found.columns.values()] == [30_610, 30_610]
    assert refreshed.found.find("later").null_value_count == 30_600
    refreshed.commit()
    with iceberg_table.refresh().update_schema() as update:
        update.update_column("later", LongType())
    promoted = icestats.load("db.t", catalog=properties).refresh_statistics(columns=["later"])
    assert promoted.scanned == {"later": "its type was int and is long now"}


def test_nothing_to_refresh_is_said(iceberg_table, properties):
    first = icestats.load("db.t", catalog=properties)
    shutil.rmtree(local_path(first.metadata.location) / "data")
    oldest = list(first.metadata.ancestors(first.snapshot))[-1]
    assert (
        icestats.load("db.t", catalog=properties, snapshot=oldest.snapshot_id).refresh_statistics().added_file_count
        == 0
    )
    other = iceberg_table.catalog.create_table("db.other", rows(0, 1).schema)
    with pytest.raises(StatisticsMissingError, match="no snapshot"):
        icestats.load("db.other", catalog=properties).refresh_statistics()
    other.append(rows(0, 10))
    with pytest.raises(StatisticsMissingError, match="compute SOURCE --commit"):
        icestats.load("db.other", catalog=properties).refresh_statistics()


def test_new_delete_files_are_seen_whatever_the_operation_says(demo_home):
    table = icestats.load("demo.events")
    snapshots = table.metadata.snapshots
    deleting = next(s for s in snapshots.values() if int(s.summary.get("added-delete-files", 0)))
    lying = {i: replace(s, summary={**s.summary, "operation": "append"}) for i, s in snapshots.items()}
    metadata = replace(table.metadata, snapshots=lying)
    base_id = deleting.parent_snapshot_id
    changed = read_changed_files(table._source.storage, metadata, base_id, lying[deleting.snapshot_id])
    opened = load_iceberg_table(table._source)
    found = find_appended_files(opened, metadata, base_id, lying[deleting.snapshot_id], changed)
    assert (found.reason, found.tasks) == ("rows have been deleted since: the delete files have changed", ())


@pytest.fixture
def partitioned(spark, properties):
    """Three partitions with committed sketches, then rows for one of them and a new one."""
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.parts", part_rows(0, 0, 1).schema)
    with table.update_spec() as update:
        update.add_identity("part")
    for part in range(3):
        table.append(part_rows(part, 1_000 * part, 1_000 * part + 500))
    icestats.load("db.parts", catalog=properties).compute(by="partition", max_size_bytes=1 << 20).commit()
    table.append(part_rows(1, 5_000, 5_010))
    table.append(part_rows(7, 6_000, 6_010))
    yield table
    catalog.close()


def part_rows(part, start, stop):
    ids = np.arange(start, stop)
    return pa.table({"part": pa.array([part] * len(ids), pa.int32()), "id": pa.array(ids, pa.int32())})


def parts_of(statistics, column="id"):
    columns = statistics.found.by_partition.columns[column]
    return {dict(key.values)[1000][0]: replace(one, kll=None, frequent_items=b"") for key, one in columns.items()}


def test_partitions_are_refreshed_by_spark_as_in_this_process(spark, partitioned, properties):
    table = icestats.load("db.parts", catalog=properties)
    whole = table.compute(by="partition", max_size_bytes=1 << 20)
    here, there = table.refresh_statistics(), table.refresh_statistics(spark=spark)
    assert parts_of(here) == parts_of(there) == parts_of(whole)
    assert {found.added_file_count for found in (here, there)} == {2}
    assert [one.value_count for one in parts_of(here).values()] == [500, 510, 500, 10]
    assert there.commit().committed
    assert icestats.load("db.parts", catalog=properties).histogram("id", where="part = 1").n == 510


def test_partitions_are_read_whole_where_the_table_is(spark, partitioned, properties):
    """After a delete, and after a promotion: by the same scan, and with the sizes that they had."""
    partitioned.refresh().delete("id < 100")
    deleted = icestats.load("db.parts", catalog=properties).refresh_statistics()
    assert (deleted.added_partitions, deleted.added_to, set(deleted.scanned)) == ({}, {}, {"part", "id"})
    assert [one.value_count for one in parts_of(deleted).values()] == [400, 510, 500, 10]
    deleted.commit()
    with partitioned.refresh().update_schema() as update:
        update.update_column("id", LongType())
    partitioned.refresh().append(part_rows(1, 7_000, 7_001).cast(pa.schema([("part", pa.int32()), ("id", pa.int64())])))
    promoted = icestats.load("db.parts", catalog=properties).refresh_statistics()
    assert promoted.scanned == {"id": "its type was int and is long now"}
    assert set(promoted.added_partitions) == {"part"}
    assert [one.value_count for one in parts_of(promoted).values()] == [400, 511, 500, 10]
    assert parts_of(promoted)[1].max_value == (7_000).to_bytes(8, "little")
    assert promoted.found.by_partition.sizes == deleted.found.by_partition.sizes
