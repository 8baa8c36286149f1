"""Orphans are the statistics files that no metadata refers to, and nothing else is ever deleted."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.table.statistics import PartitionStatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate

from icestats.commit.metadata_versions import MOST_GONE, ListedFolder, list_replaced_versions
from icestats.commit.orphans import ORPHANS, find_orphans, remove_orphans
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.table_state import TableFiles
from icestats.errors import CallError, CommitError, MetadataError
from icestats.iceberg.metadata_json import read_metadata
from tests import failing_storage
from tests.committed_statistics import ROWS, register, remove
from tests.failing_storage import Failure

DAY = 86_400
NOWHERE = ListedFolder("", frozenset())


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


def test_statistics_that_were_replaced_or_removed_are_orphans(table):
    first, second = commit(table, b"1"), commit(table, b"2")
    replaced_at = table.refresh().metadata.last_updated_ms
    orphans = find_orphans(table)
    assert orphans["path"].to_pylist() == [first]
    assert orphans["referred_by"].to_pylist() == [None]
    assert orphans["last_referred_at"].to_pylist()[0].timestamp() * 1000 == pytest.approx(replaced_at, abs=1)
    remove(table)
    assert find_orphans(table)["path"].to_pylist() == sorted([first, second])


def test_versions_that_the_log_has_forgotten_are_still_earlier_ones(table):
    """Their files stay: what they refer to is an orphan, no other catalog's, and its readers' time runs too."""
    table.transaction().set_properties({"write.metadata.previous-versions-max": "1"}).commit_transaction()
    committed, replaced_ms = [], []
    for payload in (b"1", b"2", b"3", b"4"):
        committed.append(commit(table, payload))
        replaced_ms.append(table.refresh().metadata.last_updated_ms)
    rows = {row["path"]: row for row in find_orphans(table).to_pylist()}
    assert list(rows) == sorted(committed[:-1])
    assert [row["referred_by"] for row in rows.values()] == [None] * 3
    found = [rows[path]["last_referred_at"].timestamp() * 1000 for path in committed[:-1]]
    assert found == pytest.approx(replaced_ms[1:], abs=1)
    age_everything(table)
    kept = remove_orphans(table, dry_run=False).to_pylist()
    assert ["replaced less than 1 day" in row["kept_because"] for row in kept] == [True] * 3


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


@pytest.mark.parametrize("spelled", ["{}/", "{}/.", "{}#part", "{}?version=1", "{}/../{name}"])
def test_a_file_that_is_referred_to_by_another_spelling_of_its_path_is_no_orphan(table, spelled):
    path = put(table, "metadata/1-x.stats")
    register(table, "file://" + spelled.format(path, name=path.name), [1], size=8)
    assert names(find_orphans(table)) == []


def test_old_metadata_that_is_gone_or_cut_is_passed_over(table):
    commit(table, b"1")
    put(table, "metadata/1-x.stats")
    log = table.refresh().metadata.metadata_log
    Path(log[0].metadata_file[7:]).unlink()
    Path(log[1].metadata_file[7:]).write_bytes(b"{")
    assert names(find_orphans(table)) == ["1-x.stats"]


@pytest.mark.parametrize("ends", [("",), ("#{}",), ("?{}",), ("", "#{}")])
def test_a_version_that_a_log_names_any_number_of_times_is_read_once(table, ends):
    """Each entry was read: 300,000 of them may name a file of any size."""
    metadata = read_metadata(TableFiles(table.io), table.metadata_location)
    before = list(list_replaced_versions(TableFiles(table.io), metadata, NOWHERE))
    *others, (written_ms, location) = metadata.metadata_log
    again = [(written_ms, location + end.format(i)) for i in range(100) for end in ends]
    found = list_replaced_versions(TableFiles(table.io), replace(metadata, metadata_log=(*others, *again)), NOWHERE)
    assert [replaced_at for _, replaced_at in found] == [replaced_at for _, replaced_at in before]


def with_log(table, location, count) -> StaticTable:
    """The table with a log of versions that are not there."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    last_ms = document["last-updated-ms"]
    document["metadata-log"] = [
        {"metadata-file": f"{location}/{i}.metadata.json", "timestamp-ms": last_ms} for i in range(count)
    ]
    path.with_name("long.metadata.json").write_text(json.dumps(document))
    return StaticTable.from_metadata(str(path.with_name("long.metadata.json")))


def test_few_versions_that_are_gone_are_asked_for(table, monkeypatch):
    """A log may name any number, each a request to the storage; those of the folder that is listed need none."""
    asked = []
    read = TableFiles.read

    def count(files, location, *args):
        asked.append(location)
        return read(files, location, *args)

    monkeypatch.setattr(TableFiles, "read", count)
    orphan = put(table, "metadata/old.stats")
    home = f"{table.location()}/metadata"
    found = find_orphans(with_log(table, home, 5_000))
    assert names(found) == [orphan.name]
    assert len(asked) < 20
    with pytest.raises(MetadataError, match="no such file, like 1,000 other versions that the metadata log names"):
        find_orphans(with_log(table, f"{home}/elsewhere", 5_000))
    assert len(asked) < MOST_GONE + 40


@pytest.mark.parametrize("metadata", ["of the log", "of another catalog"])
def test_an_answer_that_is_cut_is_not_taken_for_a_file_that_is(table, tmp_path, metadata, monkeypatch):
    first = Path(commit(table, b"1").removeprefix("file://"))
    commit(table, b"2")
    age_everything(table)
    wanted = table.refresh().metadata.metadata_log[-1].metadata_file
    if metadata == "of another catalog":
        wanted = str(put(table, "metadata/00009-x.metadata.json", Path(wanted[7:]).read_bytes()))
    read, cut = TableFiles.read, []

    def read_once_cut(files, location, *args):
        data = read(files, location, *args)
        if not cut and Path(location).name == Path(wanted).name:
            cut.append(location)
            return data[: len(data) // 2]
        return data

    monkeypatch.setattr(TableFiles, "read", read_once_cut)
    with pytest.raises(MetadataError, match=r"metadata\.json at byte"):
        remove_orphans(table, dry_run=False)
    assert cut
    assert first.exists()


@pytest.mark.parametrize(
    ("data", "said"), [(b'{"format-version": 9}', "format-version is 9"), (b"[" * 100_000, "maximum recursion depth")]
)
def test_metadata_that_others_may_be_able_to_read_stops_everything(table, data, said):
    old = put(table, "metadata/1-x.stats")
    put(table, "metadata/9-x.metadata.json", data)
    with pytest.raises(MetadataError, match=said):
        remove_orphans(table, dry_run=False)
    assert old.exists()


def other_catalog(table, tmp_path):
    """Another catalog in which the table is registered, as it is now."""
    other = SqlCatalog("o", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/warehouse")
    other.create_namespace("db")
    return other, other.register_table("db.t", table.refresh().metadata_location)


def test_what_another_catalog_of_the_same_table_refers_to_is_never_deleted(table, tmp_path):
    other, theirs = other_catalog(table, tmp_path)
    with other:
        path = commit(theirs)
        commit(table)
        age_everything(table)
        [row] = find_orphans(table).to_pylist()
        assert (row["path"], row["last_referred_at"]) == (path, None)
        assert row["referred_by"] == theirs.refresh().metadata_location
        [kept] = remove_orphans(table, dry_run=False).to_pylist()
        assert "another catalog" in kept["kept_because"]
        assert Path(path[7:]).exists()
        assert remove_orphans(table, allow_referred=True)["kept_because"].to_pylist() == [None]
        assert commit(theirs) != path, "their next commit still carries the file's blobs over"


def test_what_was_replaced_a_moment_ago_is_kept_however_old_the_file_is(table):
    first = commit(table, b"1")
    commit(table, b"2")
    age_everything(table)
    [row] = remove_orphans(table, dry_run=False).to_pylist()
    assert (row["path"], row["removed"]) == (first, False)
    assert "replaced less than 1 day" in row["kept_because"]
    [row] = remove_orphans(table, timedelta(0), dry_run=False, allow_recent=True).to_pylist()
    assert (row["removed"], row["kept_because"]) == (True, None)
    assert not Path(first[7:]).exists()
    assert find_orphans(table).num_rows == 0


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
    rows = {Path(row["path"]).name: row for row in remove_orphans(table, dry_run=False).to_pylist()}
    assert {name for name, row in rows.items() if row["removed"]} == {old.name, partition.name}
    assert rows[young.name]["kept_because"] == "it is younger than 1 day"
    assert files(table) == sorted([*kept, str(young)])
    assert table.refresh().scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("said", ["false", "no"])
def test_files_that_other_tables_may_share_are_kept(table, said):
    with table.transaction() as change:
        change.set_properties({"gc.enabled": said})
    old = put(table, "metadata/1-old.stats")
    [row] = remove_orphans(table, dry_run=False).to_pylist()
    assert (row["removed"], "gc.enabled is not true" in row["kept_because"]) == (False, True)
    assert old.exists()


def test_files_younger_than_a_day_are_refused_unless_told(table):
    young = put(table, "metadata/1-young.stats", age_seconds=60)
    with pytest.raises(CallError, match="allow_recent"):
        remove_orphans(table, timedelta(hours=23), dry_run=False)
    assert young.exists()
    shown = remove_orphans(table, timedelta(hours=1), dry_run=False, allow_recent=True)
    assert (names(shown), shown["removed"].to_pylist()) == ([young.name], [False])
    shown = remove_orphans(table, timedelta(seconds=30), dry_run=False, allow_recent=True)
    assert (names(shown), shown["removed"].to_pylist()) == ([young.name], [True])
    assert not young.exists()


def test_a_deletion_vector_is_never_deleted(table):
    vector = write_puffin([NewBlob("deletion-vector-v1", (1,), 1, 1, b"x", {}, None)]).data
    path = put(table, "metadata/1-vector.stats", vector)
    assert remove_orphans(table, dry_run=False)["kept_because"].to_pylist() == ["it holds a deletion vector"]
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


@pytest.mark.parametrize("end", [".stats#x.stats", ".stats?x.stats", "\n.stats"])
def test_a_name_that_no_location_can_hold_does_not_stand_for_another_file(table, end):
    """PyIceberg takes the rest of such a name for no part of the path."""
    live = Path(commit(table).removeprefix("file://"))
    put(table, f"metadata/{live.name.removesuffix('.stats')}{end}")
    put(table, "metadata/orphan.stats")
    before = files(table)
    age_everything(table)
    removed = remove_orphans(table, dry_run=False)
    assert (names(removed), removed["removed"].to_pylist()) == (["orphan.stats"], [True])
    assert files(table) == [path for path in before if "orphan" not in path]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone takes such names everywhere")
def test_a_name_that_is_no_utf_8_is_passed_over(table):
    """Arrow raises where such a file is asked for its name; no metadata can name it."""
    put(table, "metadata/1-x.stats")
    put(table, os.fsdecode(b"metadata/1-\xff.stats"))
    assert names(find_orphans(table)) == ["1-x.stats"]


def test_a_file_that_cannot_be_read_is_kept_and_the_others_go(tmp_path):
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with SqlCatalog("c", **options, **{"py-io-impl": "tests.failing_storage.FailingIO"}) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", ROWS.schema)
        for name in ("a", "b", "c"):
            put(table, f"metadata/{name}.stats")
        failing_storage.PLAN = Failure()
        remove_orphans(table)
        failing_storage.PLAN = Failure(at=len(failing_storage.PLAN.calls))
        removed = remove_orphans(table, dry_run=False)
        failing_storage.PLAN = Failure()
    assert removed["removed"].to_pylist() == [True, False, True]
    assert "b.stats: cannot be read: the storage failed" in removed["kept_because"].to_pylist()[1]
    assert sorted(p.name for p in (folder(table) / "metadata").glob("*.stats")) == ["b.stats"]
