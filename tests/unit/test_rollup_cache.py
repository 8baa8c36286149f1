"""The cache gives what a full reading gives, and reads only what it lacks."""

from __future__ import annotations

from dataclasses import fields, replace

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import FloatType, IntegerType, LongType, NestedField, StringType

import icestats
from icestats.read.manifests.manifests import RollUps
from icestats.read.rollups import rollup_cache
from icestats.read.rollups.rollup_cache import read_cached_rollups
from tests.cached_rollups import differing, manifest_paths, more_rows, read, read_all, spoil, what_to_read


def test_what_was_read_once_is_not_read_again(small_table, load, folder):
    table = load()
    expected = read_all(table)
    assert differing(read(table), expected) == []
    spoil(manifest_paths(table))
    with pytest.raises(icestats.MetadataError):
        read_all(table)
    assert differing(read(table), expected) == []


def test_roll_ups_that_take_much_memory_are_not_kept(small_table, load, folder, monkeypatch):
    """While they are written they are in memory three times: 3 GB of cells took 10 GB."""
    monkeypatch.setattr(rollup_cache, "MOST_ENTRY_BYTES", 1_000)
    read(load())
    assert list(folder.glob("*/*.rollup")) == []


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


def test_a_user_without_a_home_folder_has_no_cache_and_all_answers(load, small_table, tmp_path, monkeypatch):
    """As in a container, whose user has no name."""
    pwd = pytest.importorskip("pwd")

    def find_none(number):
        raise KeyError(number)

    load().files()  # numba has its own cache.
    monkeypatch.setattr(pwd, "getpwuid", find_none)
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "ICESTATS_CACHE", "ICESTATS_HOME"):
        monkeypatch.delenv(name, raising=False)
    before = sorted(tmp_path.iterdir())
    assert load().partitions().num_rows
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(icestats.CallError, match="no home folder"):
        icestats.load("demo.events")
