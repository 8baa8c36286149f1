"""Orphans are the statistics files that no metadata refers to, and nothing else is ever deleted."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.table.statistics import PartitionStatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate

from icestats.commit.orphans import ORPHANS, find_orphans, remove_orphans
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit, remove_statistics
from icestats.errors import CallError, CommitError, MetadataError

ROWS = pa.table({"a": pa.array([1, 2], pa.int64())})
DAY = 86_400


@pytest.fixture
def catalog(tmp_path):
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    with SqlCatalog("c", uri=uri, warehouse=warehouse) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
        yield catalog


@pytest.fixture
def table(catalog):
    return catalog.load_table("db.t")


def folder(table) -> Path:
    return Path(table.location().removeprefix("file://"))


def put(table, name, content=b"PFA1 cut", age_seconds=2 * DAY) -> Path:
    path = folder(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - age_seconds,) * 2)
    return path


def commit(table, payload=b"x"):
    snapshot = table.current_snapshot()
    new = NewBlob("apache-datasketches-kll-v1", (1,), snapshot.snapshot_id, 1, payload)
    return commit_statistics(prepare_commit(table.refresh(), [new])).statistics_path


def names(orphans):
    return [Path(path).name for path in orphans["path"].to_pylist()]


def files(table):
    return sorted(str(path) for path in folder(table).rglob("*") if path.is_file())


def age_everything(table, seconds=400 * DAY):
    for path in files(table):
        os.utime(path, (time.time() - seconds,) * 2)


def test_every_figure_of_an_orphan_is_true(table):
    put(table, "metadata/1-x.stats", b"12345", age_seconds=1000)
    put(table, "metadata/partition-stats-1-x.parquet", b"123", age_seconds=5)
    orphans = find_orphans(table)
    assert orphans.schema == ORPHANS
    assert orphans["kind"].to_pylist() == ["table statistics", "partition statistics"]
    assert orphans["path"].to_pylist()[0] == f"{table.location()}/metadata/1-x.stats"
    assert orphans["size_bytes"].to_pylist() == [5, 3]
    ages = orphans["age_seconds"].to_pylist()
    assert 1000 <= ages[0] < 1100
    assert 5 <= ages[1] < 105
    modified = orphans["modified_at"].to_pylist()[0]
    assert abs(modified - (datetime.now(UTC) - timedelta(seconds=1000))) < timedelta(seconds=100)


def test_nothing_is_an_orphan_on_a_table_with_nothing_left(table):
    commit(table)
    assert find_orphans(table).num_rows == 0


def test_only_names_of_statistics_in_the_metadata_folder_are_orphans(table):
    for name in (
        "data/1-x.stats",
        "metadata/deep/1-x.stats",
        "metadata/snap-1.avro",
        "metadata/x.metadata.json",
        "metadata/deletes.puffin",
        "metadata/version-hint.text",
        "1-x.stats",
        "../other/metadata/1-x.stats",
    ):
        put(table, name)
    assert find_orphans(table).num_rows == 0


def test_statistics_that_were_replaced_or_removed_are_orphans_when_history_does_not_count(table):
    first, second = commit(table, b"1"), commit(table, b"2")
    assert find_orphans(table).num_rows == 0
    assert find_orphans(table, history=False)["path"].to_pylist() == [first]
    remove_statistics(table, table.current_snapshot().snapshot_id)
    assert find_orphans(table).num_rows == 0
    assert sorted(find_orphans(table, history=False)["path"].to_pylist()) == sorted([first, second])


def test_replaced_statistics_are_orphans_once_the_log_has_forgotten_them(table):
    table.transaction().set_properties({"write.metadata.previous-versions-max": "1"}).commit_transaction()
    first = commit(table, b"1")
    commit(table, b"2")
    assert find_orphans(table).num_rows == 0
    commit(table, b"3")
    assert find_orphans(table)["path"].to_pylist() == [first]


def test_a_stale_table_finds_no_orphan_that_was_committed_since(catalog, table):
    stale = catalog.load_table("db.t")
    commit(table)
    assert find_orphans(stale).num_rows == 0


def test_a_metadata_file_counts_those_that_came_after_it(table):
    static = StaticTable.from_metadata(table.metadata_location)
    commit(table)
    put(table, "metadata/1-x.stats")
    assert names(find_orphans(static)) == ["1-x.stats"]


def test_partition_statistics_that_are_registered_are_no_orphans(table):
    put(table, "metadata/partition-stats-1-a.parquet")
    put(table, "metadata/partition-stats-1-b.parquet")
    # Java spells the location with one slash.
    path = f"file:{folder(table)}/metadata/partition-stats-1-a.parquet"
    entry = PartitionStatisticsFile.model_validate(
        {"snapshot-id": table.current_snapshot().snapshot_id, "statistics-path": path, "file-size-in-bytes": 8}
    )
    update = SetPartitionStatisticsUpdate.model_validate({"partition-statistics": entry})
    table.catalog.commit_table(table, (), (update,))
    assert names(find_orphans(table)) == ["partition-stats-1-b.parquet"]


def test_old_metadata_that_is_gone_is_passed_over_and_one_that_is_damaged_is_not(table):
    commit(table, b"1")
    put(table, "metadata/1-x.stats")
    log = table.refresh().metadata.metadata_log
    Path(log[0].metadata_file[7:]).unlink()
    assert names(find_orphans(table)) == ["1-x.stats"]
    Path(log[1].metadata_file[7:]).write_bytes(b"{")
    with pytest.raises(MetadataError):
        remove_orphans(table, dry_run=False)
    assert (folder(table) / "metadata/1-x.stats").exists()
    assert names(find_orphans(table, history=False)) == ["1-x.stats"]


def test_by_default_nothing_is_deleted(table):
    put(table, "metadata/1-x.stats")
    before = files(table)
    shown = remove_orphans(table)
    assert names(shown) == ["1-x.stats"]
    assert shown["removed"].to_pylist() == [False]
    assert files(table) == before


def test_exactly_the_old_orphans_are_deleted(table):
    commit(table, b"1")
    commit(table, b"2")
    age_everything(table)
    kept = files(table)
    old = put(table, "metadata/1-old.stats")
    partition = put(table, "metadata/partition-stats-1-old.parquet")
    young = put(table, "metadata/1-young.stats", age_seconds=DAY - 100)
    removed = remove_orphans(table, dry_run=False)
    assert names(removed) == [old.name, partition.name]
    assert removed["removed"].to_pylist() == [True, True]
    assert files(table) == sorted([*kept, str(young)])
    assert table.refresh().scan().to_arrow().num_rows == 2


def test_files_younger_than_a_day_are_refused_unless_told(table):
    young = put(table, "metadata/1-young.stats", age_seconds=60)
    with pytest.raises(CallError, match="allow_recent"):
        remove_orphans(table, timedelta(hours=23), dry_run=False)
    assert young.exists()
    assert names(remove_orphans(table, timedelta(hours=1), dry_run=False, allow_recent=True)) == []
    assert names(remove_orphans(table, timedelta(seconds=30), dry_run=False, allow_recent=True)) == [young.name]
    assert not young.exists()


def test_a_deletion_vector_is_never_deleted(table):
    vector = write_puffin([NewBlob("deletion-vector-v1", (1,), 1, 1, b"x", {}, None)]).data
    path = put(table, "metadata/1-vector.stats", vector)
    assert remove_orphans(table, dry_run=False).num_rows == 0
    assert path.exists()


def test_from_a_bare_metadata_file_nothing_is_deleted(table):
    put(table, "metadata/1-x.stats")
    static = StaticTable.from_metadata(table.metadata_location)
    assert names(remove_orphans(static)) == ["1-x.stats"]
    with pytest.raises(CommitError, match="read-only"):
        remove_orphans(static, dry_run=False)
    assert (folder(table) / "metadata/1-x.stats").exists()


@pytest.mark.parametrize("place", ["{base}/elsewhere", "{table}/../elsewhere", "{table}-other/metadata"])
def test_a_metadata_folder_outside_the_table_is_never_looked_at(catalog, tmp_path, place):
    moved = place.format(base=f"file://{tmp_path}", table=f"file://{tmp_path}/warehouse/db/moved")
    properties = {"write.metadata.path": moved}
    table = catalog.create_table("db.moved", schema=ROWS.schema, properties=properties)
    for name in ("elsewhere", "warehouse/db/elsewhere", "warehouse/db/moved-other/metadata"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "1-x.stats").write_bytes(b"theirs")
    assert find_orphans(table).num_rows == 0


def test_a_metadata_folder_below_the_table_is_looked_at(catalog, tmp_path):
    properties = {"write.metadata.path": f"file://{tmp_path}/warehouse/db/inside/meta"}
    table = catalog.create_table("db.inside", schema=ROWS.schema, properties=properties)
    put(table, "meta/1-x.stats")
    assert names(find_orphans(table)) == ["1-x.stats"]
