"""The cache gives what a full reading gives, reads only what it lacks, and is never believed when it is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import FloatType, IntegerType, LongType, NestedField, StringType

import icestats
from icestats.read import rollup_cache
from icestats.read.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.rollup_cache import read_cached_rollups
from icestats.storage import local_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder of roll-ups, empty."""
    monkeypatch.setenv("ICESTATS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rollups"


@pytest.fixture
def load(catalog_properties):
    return lambda name="db.small": icestats.load(name, catalog=catalog_properties)


def what_to_read(table: icestats.Table) -> tuple[Any, ...]:
    return manifests_to_read(table.manifest_files()), table.metadata, table._source.storage, table.schema


def read(table: icestats.Table) -> RollUps:
    return read_cached_rollups(*what_to_read(table))


def read_all(table: icestats.Table) -> RollUps:
    return read_rollups(*what_to_read(table))


def differing(first: RollUps, second: RollUps) -> list[str]:
    return [f.name for f in fields(RollUps) if not getattr(first, f.name).equals(getattr(second, f.name))]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*"))


def manifest_paths(table: icestats.Table) -> list[Path]:
    return [path for name in table.manifest_files()["manifest_path"].to_pylist() if (path := local_path(name))]


def spoil(paths: list[Path]) -> None:
    """Overwrite files with as many zeros: whoever reads them raises."""
    for path in paths:
        path.write_bytes(bytes(path.stat().st_size))


def more_rows(first: int) -> pa.Table:
    ids = range(first, first + 5)
    at = pa.array([1_756_684_800_000_000 + i for i in ids], pa.timestamp("us", tz="UTC"))
    names = [f"new {i}" for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "at": at, "price": [-0.0, 0.0, 1.0, 2.0, None], "name": names})


def test_what_was_read_once_is_not_read_again(small_table, load, folder):
    table = load()
    expected = read_all(table)
    assert differing(read(table), expected) == []
    spoil(manifest_paths(table))
    with pytest.raises(icestats.MetadataError):
        read_all(table)
    assert differing(read(table), expected) == []


def test_what_the_cache_gives_is_aligned_as_arrow_wants_it(small_table, load, folder):
    """Arrow's engine prints a warning over each array whose numbers begin at odd addresses."""
    read(load())
    cached = read(load())
    chunks = [chunk for f in fields(RollUps) for column in getattr(cached, f.name).columns for chunk in column.chunks]
    addresses = [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None]
    assert addresses
    assert [address for address in addresses if address % 8] == []


def test_a_manifest_of_the_same_name_that_another_snapshot_added_is_read(small_table, load, folder):
    """A table may be dropped and made again at the same place with the same names: its manifests are others."""
    manifests, *rest = what_to_read(load())
    read_cached_rollups(manifests, *rest)
    spoil(manifest_paths(load()))
    read_cached_rollups(manifests, *rest)
    remade = [replace(manifest, added_snapshot_id=7) for manifest in manifests]
    with pytest.raises(icestats.MetadataError):
        read_cached_rollups(remade, *rest)


def test_after_a_commit_only_its_manifest_is_read(small_table, load, folder):
    before = load()
    read(before)
    small_table.append(more_rows(1_000))
    after = load()
    expected = read_all(after)
    old = manifest_paths(before)
    new = [path for path in manifest_paths(after) if path not in old]
    assert len(new) == 1
    spoil(old)
    assert differing(read(after), expected) == []
    # The second reading takes the new manifest from the cache too.
    spoil(new)
    assert differing(read(after), expected) == []


def test_every_commit_of_a_history_is_right(catalog, load, folder):
    """Appends, deletes and overwrites in turn, unpartitioned: the cache is a full reading after each of them."""
    table = catalog.create_table("db.small", more_rows(0).schema)
    for step in range(6):
        table.append(more_rows(10 * step))
        if step == 3:
            table.delete("id < 12")
        if step == 4:
            table.overwrite(more_rows(500), "id = 20")
        loaded = load()
        assert differing(read(loaded), read_all(loaded)) == []


def test_manifests_that_are_gone_do_not_count(small_table, load, folder):
    """A delete writes a manifest anew; what the old one had is not in the answer."""
    before = load()
    read(before)
    small_table.delete("id < 50")
    after = load()
    assert not set(manifest_paths(before)) <= set(manifest_paths(after))
    assert differing(read(after), read_all(after)) == []
    assert read(after).partitions != read(before).partitions


def test_a_snapshot_is_a_part_of_a_later_one(small_table, load, folder, catalog_properties):
    """Time travel back and forth reads nothing that either snapshot had."""
    now = load()
    first = icestats.load("db.small", catalog=catalog_properties, snapshot=small_table.history()[0].snapshot_id)
    expected = {table: read_all(table) for table in (first, now)}
    for table in (first, now):
        read(table)
    spoil(manifest_paths(now))
    for table in (now, first, now):
        assert differing(read(table), expected[table]) == []


def test_a_changed_schema_is_read_anew(catalog, load, folder):
    """Columns that are added, dropped, renamed or promoted give the figures of a full reading."""
    schema = Schema(
        NestedField(1, "n", IntegerType(), required=False),
        NestedField(2, "f", FloatType(), required=False),
        NestedField(3, "s", StringType(), required=False),
    )
    table = catalog.create_table("db.small", schema)
    rows = {"n": pa.array([-1, 2], pa.int32()), "f": pa.array([-0.0, 1.5], pa.float32()), "s": ["a", None]}
    table.append(pa.table(rows))
    read(load())
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.add_column("more", StringType())
        update.rename_column("s", "text")
    promoted = read(load())
    assert differing(promoted, read_all(load())) == []
    assert len(promoted.table_cells) == 4
    assert promoted.table_cells["lower_bound"][0].as_py() == (-1).to_bytes(8, "little", signed=True)
    with table.update_schema() as update:
        update.delete_column("f")
    assert differing(read(load()), read_all(load())) == []
    assert len(read(load()).table_cells) == 3


def test_a_snapshot_with_its_own_schema_is_no_part_of_one_with_another(small_table, load, folder, catalog_properties):
    """Time travel reads with the snapshot's own schema; the current snapshot has its manifests, but more columns."""
    past = small_table.current_snapshot().snapshot_id
    with small_table.update_schema() as update:
        update.add_column("more", StringType())
    small_table.append(more_rows(1_000).append_column("more", [["x"] * 5]))
    for _ in range(2):
        for table in (icestats.load("db.small", catalog=catalog_properties, snapshot=past), load()):
            assert differing(read(table), read_all(table)) == []
            assert len(read(table).table_cells) == len(table.schema.columns)
    assert len(load().schema.columns) == 5


def test_an_expired_snapshot_is_not_remembered(small_table, load, folder):
    """`last_updated_*` knows the snapshots that the metadata knows, whichever metadata was read before."""
    before = load()
    known = read(before)
    first = small_table.history()[0].snapshot_id
    small_table.maintenance.expire_snapshots().by_id(first).commit()
    after = load()
    found = read(after)
    assert differing(found, read_all(after)) == []
    assert first in known.partitions["last_updated_snapshot_id"].to_pylist()
    assert first not in found.partitions["last_updated_snapshot_id"].to_pylist()
    # Metadata from before the expiry knows it still.
    assert differing(read(before), known) == []
    assert differing(read(after), found) == []


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


READER = """
import sys
from dataclasses import fields, replace
from pathlib import Path

import icestats
from icestats.read.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.rollup_cache import read_cached_rollups

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
        said, complaint = process.communicate(timeout=120)
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


def test_the_cache_is_bounded(small_table, catalog, load, folder, monkeypatch):
    """A table keeps its newest entries, the cache as many bytes as it may, the least recently used go first."""
    used: list[Path] = []
    for step in range(rollup_cache.MOST_ENTRIES_A_TABLE + 2):
        small_table.append(more_rows(1_000 * step))
        read(load())
        used += [path for path in entries(folder) if path not in used]
    assert entries(folder) == sorted(used[-rollup_cache.MOST_ENTRIES_A_TABLE :])
    for age, path in enumerate(reversed(used[-rollup_cache.MOST_ENTRIES_A_TABLE :])):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    catalog.create_table("db.other", small_table.schema()).append(more_rows(0))
    monkeypatch.setattr(rollup_cache, "MOST_CACHE_BYTES", sum(path.stat().st_size for path in entries(folder)))
    read(load("db.other"))
    left = entries(folder)
    assert sum(path.stat().st_size for path in left) <= rollup_cache.MOST_CACHE_BYTES
    assert used[-rollup_cache.MOST_ENTRIES_A_TABLE] not in left, "the oldest has gone"
    assert used[-1] in left
    assert len({path.parent for path in left}) == 2


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
