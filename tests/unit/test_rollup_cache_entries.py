"""What lies in the cache is bounded, is never believed when it is damaged, and may be missing altogether."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

import icestats
from icestats.iceberg.catalog import open_in_foreign_catalog
from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.storage import Storage, local_path
from icestats.read.rollups import rollup_cache
from icestats.read.rollups.rollup_cache import read_cached_rollups
from tests.cached_rollups import differing, entries, manifest_paths, more_rows, read, read_all, spoil, what_to_read


def test_a_damaged_entry_is_never_believed_and_is_written_anew(small_table, load, folder):
    """Whatever bit is flipped and wherever the file is cut, the answer is the full reading's."""
    table = load()
    expected = read(table)
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    places = [*range(100), *range(100, len(whole), max(1, len(whole) // 100)), len(whole) - 1]
    damages = [whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :] for i in places]
    damages += [whole[:i] for i in places]
    damages += [
        whole + b"x",
        whole[:72] + b"\xff" * 8 + whole[80:],
        whole[:72] + (1 << 60).to_bytes(8, "little") + whole[80:],
    ]
    for damage in damages:
        entry.write_bytes(damage)
        assert differing(read(table), expected) == []
        assert entry.read_bytes() == whole, "the next reading finds a sound entry"
    assert len(entries(folder)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_place_of_an_entry_is_not_waited_for(small_table, load, folder):
    expected = read(load())
    (entry,) = entries(folder)
    entry.unlink()
    os.mkfifo(entry)
    assert differing(read(load()), expected) == []
    assert entry.is_file()


def test_an_entry_under_another_name_or_of_another_table_is_not_taken(small_table, catalog, load, folder):
    """Two tables with the same schema share nothing, whatever lies in their folders."""
    other = catalog.create_table("db.other", small_table.schema())
    other.append(more_rows(0))
    read(load())
    read(load("db.other"))
    first, second = entries(folder)
    assert first.parent != second.parent
    (second.parent / "x.rollup").write_bytes(first.read_bytes())
    (first.parent / "x.rollup").write_bytes(second.read_bytes())
    for name in ("db.small", "db.other"):
        assert differing(read(load(name)), read_all(load(name))) == []


def test_a_table_that_claims_to_be_another_leaves_it_no_entry(small_table, load, folder, tmp_path):
    """Whatever UUID, location and manifests a metadata.json names: what is read for it is kept for its own place."""
    document = json.loads(Path(local_path(small_table.metadata_location)).read_text())
    for snapshot in document["snapshots"]:
        snapshot["timestamp-ms"] += 86_400_000
    (tmp_path / "claims").mkdir()
    claims = tmp_path / "claims" / "v1.metadata.json"
    claims.write_text(json.dumps(document))
    later = read(icestats.load(str(claims))).partitions["last_updated_at"]
    assert later != read_all(load()).partitions["last_updated_at"]
    assert differing(read(load()), read_all(load())) == []


@pytest.mark.parametrize(
    "name",
    ["hdfs.host", "hdfs.port", "adls.account-name", "adls.dfs-storage-authority", "gcs.service.host", "s3.endpoint"],
)
def test_what_says_where_a_location_is_tells_entries_apart(small_table, load, folder, name):
    """A location may name no host: the same one is another table's with other properties."""
    table = load()
    manifests = what_to_read(table)[0]
    for host in ("mine", "theirs"):
        storage = Storage({name: host, "s3.session-token": host}, table._source.metadata_location)
        read_cached_rollups(manifests, table.metadata, storage, table.schema)
    assert len(entries(folder)) == 2


@pytest.mark.parametrize(("file_io", "count"), [(PyArrowFileIO(), 2), (None, 1)])
def test_catalogs_of_a_spark_session_that_open_files_themselves_have_entries_of_their_own(
    file_io, count, small_table, load, folder
):
    """Of their endpoints nothing is known here: one may give another bucket of the same name."""

    class Session(ForeignCatalog):
        def load_table(self, identifier):
            return small_table

    for name in ("mine", "theirs"):
        catalog = Session(name)
        catalog.file_io = file_io
        source = open_in_foreign_catalog(catalog, f"{name}.db.small", ("db", "small"))
        read_cached_rollups(what_to_read(load())[0], source.metadata, source.storage, load().schema)
    assert len(entries(folder)) == count


READER = """
import sys
from dataclasses import fields, replace
from pathlib import Path

import icestats
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.rollups.rollup_cache import read_cached_rollups

location, folder = sys.argv[1:]
table = icestats.load(location)
work = manifests_to_read(table.manifest_files()), table.metadata, table._source.storage, table.schema
parts = [work[0][:1], work[0][1:], work[0]]
expected = [read_rollups(part, *work[1:]) for part in parts]
print("ready", flush=True)
sys.stdin.readline()
for turn in range(60):
    for part, whole in zip(parts, expected):
        found = read_cached_rollups(part, *work[1:])
        assert all(getattr(found, f.name).equals(getattr(whole, f.name)) for f in fields(RollUps)), turn
    for path in list(Path(folder).glob("*/*.rollup"))[turn % 4 :]:
        path.unlink(missing_ok=True)
print("right", flush=True)
"""


def test_two_processes_at_once_do_not_disturb_each_other(small_table, folder):
    """Both read, write and remove the same entries; each always gets the full reading's answer."""
    command = [sys.executable, "-c", READER, small_table.metadata_location, str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        said, complaint = process.communicate(timeout=600)
        assert (said, complaint) == ("right\n", "")
    assert all(path.suffix == ".rollup" for path in entries(folder))


@pytest.mark.parametrize("setting", ["off", "OFF"])
def test_the_cache_can_be_turned_off(small_table, load, tmp_path, monkeypatch, setting):
    monkeypatch.setenv("ICESTATS_CACHE", setting)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    table = load()
    assert differing(read(table), read_all(table)) == []
    assert not list((tmp_path / "home").glob("**/*.rollup"))
    assert not (tmp_path / setting).exists()
    spoil(manifest_paths(table))
    with pytest.raises(icestats.MetadataError):
        read(table)


def test_the_cache_is_bounded(small_table, catalog, load, folder):
    """A table keeps its newest entries, the cache as many bytes as it may, the least recently used go first."""
    used: list[Path] = []
    for step in range(rollup_cache.MOST_ENTRIES_A_TABLE + 2):
        small_table.append(more_rows(1_000 * step))
        read(load())
        used += [path for path in entries(folder) if path not in used]
    kept = used[-rollup_cache.MOST_ENTRIES_A_TABLE :]
    assert entries(folder) == sorted(kept)
    for age, path in enumerate(reversed(kept)):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    catalog.create_table("db.other", small_table.schema()).append(more_rows(0))
    # A third table's entry fills the cache up to the last byte, and takes no room: it is sparse.
    filler = folder / ("3" * 32) / "x.rollup"
    filler.parent.mkdir()
    with filler.open("wb") as sparse:
        sparse.truncate(rollup_cache.MOST_CACHE_BYTES - sum(path.stat().st_size for path in kept))
    os.utime(filler, (1_000_001, 1_000_001))
    read(load("db.other"))
    left = entries(folder)
    assert sum(path.stat().st_size for path in left) <= rollup_cache.MOST_CACHE_BYTES
    left.remove(filler)
    assert kept[0] not in left, "the oldest has gone"
    assert kept[-1] in left
    assert len({path.parent for path in left}) == 2


def test_the_cache_keeps_as_many_entries_as_it_may(small_table, catalog, load, folder, monkeypatch):
    """However small they are; tables that have none left have no folder either."""
    monkeypatch.setattr(rollup_cache, "MOST_ENTRIES", 2)
    names = [f"db.t{i}" for i in range(4)]
    for age, name in enumerate(names):
        catalog.create_table(name, small_table.schema()).append(more_rows(age))
        read(load(name))
        (newest,) = set(entries(folder)) - {path for path in entries(folder) if path.stat().st_mtime < 1_000_010}
        os.utime(newest, (1_000_000 + age, 1_000_000 + age))
    assert sorted(path.stat().st_mtime for path in entries(folder)) == [1_000_002, 1_000_003]
    assert sorted(folder.iterdir()) == sorted(path.parent for path in entries(folder))


def test_what_else_is_in_the_folder_stays(small_table, load, folder, monkeypatch):
    """ICESTATS_CACHE may name a folder that has one of this name already."""
    monkeypatch.setattr(rollup_cache, "MOST_ENTRIES", 1)
    monkeypatch.setattr(rollup_cache, "MOST_CACHE_BYTES", 1)
    own = [folder / "2026-01" / f"{day}.rollup" for day in range(3)]
    (folder / "empty").mkdir(parents=True)
    own[0].parent.mkdir()
    read(load())
    own += [next(folder.glob("[0-9a-f]" * 32), folder) / "notes.txt"]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"the user's")
    read(load())
    assert all(path.exists() for path in (*own, folder / "empty"))


@pytest.mark.parametrize("where", ["a file", "below a file", "no such device"])
def test_a_folder_that_cannot_be_written_is_no_error(small_table, load, tmp_path, monkeypatch, where):
    (tmp_path / "file").write_text("")
    places = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "cache", "no such device": "/proc/none"}
    monkeypatch.setenv("ICESTATS_CACHE", str(places[where]))
    table = load()
    for _ in range(2):
        assert differing(read(table), read_all(table)) == []


def test_a_reading_that_fails_or_is_stopped_leaves_no_entry(small_table, load, folder):
    table = load()

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_cached_rollups(*what_to_read(table), progress=stop)
    spoil(manifest_paths(table)[:1])
    with pytest.raises(icestats.MetadataError):
        read(table)
    assert entries(folder) == []


def test_a_table_without_a_snapshot_needs_no_cache(empty_table, load, folder):
    assert read(load("db.empty")).manifests.num_rows == 0
    assert entries(folder) == []
