"""A statistics file carries forward what ancestors' files have: engines look into one file only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.table.update import SetCurrentSchemaUpdate

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.table_state import MOST_CARRIED_BYTES
from icestats.errors import MetadataError
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import read_puffin_footer
from tests.committed_statistics import (
    KLL,
    ROWS,
    THETA,
    blob,
    commit,
    entries,
    kll,
    listed,
    register,
    stored,
    theta,
    write_foreign,
)

MANIFESTS = "icestats-manifest-stats-v1"


def append(table):
    table.append(ROWS)
    return table.current_snapshot()


def made_for(table):
    """Which snapshot each blob of the current snapshot's file says that it was made for."""
    path = next(e.statistics_path for e in entries(table) if e.snapshot_id == table.current_snapshot().snapshot_id)
    footer = read_puffin_footer(Storage(), path)
    return {(b.type, b.field_ids): (b.snapshot_id, b.sequence_number) for b in footer.blobs}


def test_each_kind_and_field_comes_from_the_nearest_ancestor_that_has_it(table):
    first = table.current_snapshot()
    commit(table, theta(table, 1, b"a1"), theta(table, 2, b"b1", ndv="7"), kll(table, 1, b"kll1"))
    second = append(table)
    commit(table, theta(table, 1, b"a2", ndv="3"), keep_earlier=False)
    third = append(table)
    result = commit(table, kll(table, 3, b"c3"))
    assert stored(table) == {
        (KLL, (3,)): b"c3",
        (THETA, (1,)): b"a2",
        (THETA, (2,)): b"b1",
        (KLL, (1,)): b"kll1",
    }
    of = {name: (s.snapshot_id, s.sequence_number) for name, s in (("1", first), ("2", second), ("3", third))}
    assert made_for(table) == {
        (KLL, (3,)): of["3"],
        (THETA, (1,)): of["2"],
        (THETA, (2,)): of["1"],
        (KLL, (1,)): of["1"],
    }
    entry = next(e for e in entries(table) if e.snapshot_id == third.snapshot_id)
    assert [(b.fields, b.snapshot_id, b.properties["ndv"]) for b in entry.blob_metadata] == [
        ([1], second.snapshot_id, "3"),
        ([2], first.snapshot_id, "7"),
    ]
    assert result.replaced == ()
    assert f"of snapshot {first.snapshot_id}" in prepare_commit(table, [kll(table, 3)]).describe()


def test_earlier_blobs_are_left_out_when_asked_for(table):
    commit(table, theta(table, 1), kll(table, 2))
    append(table)
    commit(table, kll(table, 3))
    assert len(stored(table)) == 3
    commit(table, kll(table, 3, b"alone"), keep_earlier=False)
    assert stored(table) == {(KLL, (3,)): b"alone"}
    assert [e.blob_metadata for e in entries(table) if e.snapshot_id == table.current_snapshot().snapshot_id] == [[]]


def test_leaving_earlier_blobs_out_is_a_change_of_its_own_and_is_shown(table):
    commit(table, kll(table, 2))
    append(table)
    commit(table, theta(table, 1))
    assert len(stored(table)) == 2
    plan = prepare_commit(table.refresh(), [theta(table, 1)], keep_earlier=False)
    assert plan.is_new
    assert "1 blob of the present file, made for earlier snapshots, left out as keep_earlier=False" in plan.describe()
    commit_statistics(plan)
    again = prepare_commit(table.refresh(), [theta(table, 1)], keep_earlier=False)
    assert (again.is_new, again.warnings) == (False, ())


def test_an_earlier_blob_that_is_made_anew_is_replaced_and_not_left_out(table):
    commit(table, theta(table, 1), kll(table, 2))
    append(table)
    commit(table, kll(table, 3))
    plan = prepare_commit(table.refresh(), [theta(table, 1), kll(table, 2)], keep_earlier=False)
    assert {(blob.type, blob.field_ids) for blob in plan.replaced} == {(THETA, (1,)), (KLL, (2,))}
    assert not any("left out" in warning for warning in plan.warnings)


def test_a_column_that_the_nearer_file_does_not_list_stays_unlisted(table):
    commit(table, theta(table, 1), theta(table, 2))
    append(table)
    commit(table, theta(table, 1, ndv="4"), theta(table, 2, ndv="5"), list_ndv=["a"], keep_earlier=False)
    append(table)
    commit(table, kll(table, 1))
    newest = table.current_snapshot().snapshot_id
    [entry] = [e for e in entries(table) if e.snapshot_id == newest]
    assert [(b.fields, b.properties["ndv"]) for b in entry.blob_metadata] == [([1], "4")]


def test_what_no_reader_wants_is_not_carried_forward(table):
    """Sketches of a column that was dropped since, deletion vectors, and what Hive takes for the snapshot's own."""
    vector, of_hive = blob(table, "deletion-vector-v1", 1, b"vector"), blob(table, "ColumnStatisticsObj", 1, b"java")
    commit(table, theta(table, 3), kll(table, 1), vector, of_hive)
    with table.update_schema() as update:
        update.delete_column("c")
    table.append(ROWS.drop_columns("c"))
    commit(table, theta(table, 1))
    assert set(stored(table)) == {(THETA, (1,)), (KLL, (1,))}


def test_what_is_of_a_column_that_comes_back_is_carried_forward_again(table):
    """As by a rollback of the schema: an older file has it, the nearer ones have not."""
    commit(table, theta(table, 3, b"c1"))
    with table.update_schema() as update:
        update.delete_column("c")
    for _ in range(2):
        table.append(ROWS.drop_columns("c"))
        commit(table, theta(table, 1))
    with table.transaction() as change:
        change._apply((SetCurrentSchemaUpdate(schema_id=0),), ())
    append(table)
    commit(table, kll(table, 2))
    assert stored(table) == {(KLL, (2,)): b"kll", (THETA, (1,)): b"theta", (THETA, (3,)): b"c1"}


def test_a_statistics_file_of_an_ancestor_that_is_gone_hinders_no_commit(table):
    first = commit(table, theta(table, 1))
    append(table)
    commit(table, kll(table, 2), keep_earlier=False)
    Path(first.statistics_path[7:]).unlink()
    append(table)
    result = commit(table, kll(table, 3))
    assert set(stored(table)) == {(KLL, (2,)), (KLL, (3,))}
    assert any("not carried forward" in warning and first.statistics_path in warning for warning in result.warnings)


def test_the_walk_back_ends_at_a_file_that_has_it_all(table):
    """Each of many appends reads one file, not all before it."""
    first = commit(table, theta(table, 1))
    append(table)
    second = commit(table, kll(table, 2))
    Path(first.statistics_path[7:]).unlink()
    append(table)
    assert commit(table, kll(table, 3)).warnings == second.warnings
    assert set(stored(table)) == {(THETA, (1,)), (KLL, (2,)), (KLL, (3,))}


def test_what_an_ancestor_gets_later_is_carried_forward_too(table):
    first = table.current_snapshot()
    commit(table, theta(table, 1))
    second = append(table)
    commit(table, kll(table, 2))
    late = [blob(table, KLL, 3, b"late", first), blob(table, KLL, 2, b"farther", first)]
    commit_statistics(prepare_commit(table, late, snapshot_id=first.snapshot_id))
    commit(table, kll(table, 1))
    expected = {(THETA, (1,)): b"theta", (KLL, (1,)): b"kll", (KLL, (2,)): b"kll", (KLL, (3,)): b"late"}
    assert stored(table) == expected
    append(table)
    commit(table, kll(table, 1))
    assert stored(table) == expected
    assert made_for(table)[KLL, (2,)] == (second.snapshot_id, second.sequence_number)


def test_what_an_ancestor_gets_later_takes_the_place_of_what_is_carried_from_farther(table):
    commit(table, theta(table, 1, b"a1", ndv="10"), kll(table, 1, b"kll1"))
    second = append(table)
    append(table)
    commit(table, kll(table, 3))
    # A long scan of the second snapshot ends after what has been committed to the third.
    late = [blob(table, THETA, 1, b"a2", second, ndv="30")]
    commit_statistics(prepare_commit(table, late, snapshot_id=second.snapshot_id))
    expected = {(THETA, (1,)): b"a2", (KLL, (1,)): b"kll1", (KLL, (3,)): b"kll"}
    for change in (lambda: None, lambda: append(table)):
        change()
        commit(table, kll(table, 3))
        assert stored(table) == expected
        assert made_for(table)[THETA, (1,)] == (second.snapshot_id, second.sequence_number)
        assert [ndv for *_, ndv in listed(table)][-1] == "30"


def test_what_others_register_without_carrying_is_walked_past(table):
    commit(table, theta(table, 1), kll(table, 1))
    append(table)
    register(table, write_foreign(table, theta(table, 2)), [2])
    append(table)
    commit(table, kll(table, 3))
    assert set(stored(table)) == {(THETA, (1,)), (THETA, (2,)), (KLL, (1,)), (KLL, (3,))}


def test_siblings_have_no_part_in_it(table):
    base = table.current_snapshot().snapshot_id
    append(table)
    commit(table, theta(table, 1))
    table.manage_snapshots().create_branch(base, "other").commit()
    table.refresh().append(ROWS, branch="other")
    tip = table.refresh().metadata.snapshot_by_id(table.metadata.refs["other"].snapshot_id)
    plan = prepare_commit(table, [blob(table, KLL, 1, b"kll", tip)], snapshot_id=tip.snapshot_id)
    commit_statistics(plan)
    assert stored(table, tip.snapshot_id) == {(KLL, (1,)): b"kll"}


def test_a_sketch_that_is_not_listed_takes_the_place_of_none_that_is(table):
    """A commit for an earlier snapshot left it out; engines would lose the NDV by a commit of other kinds."""
    first = table.refresh().current_snapshot()
    commit(table, theta(table, 1, ndv="4"))
    append(table)
    between = table.refresh().current_snapshot()
    append(table)
    commit(table, kll(table, 1))
    made = blob(table, THETA, 1, b"theta", between, ndv="5")
    commit_statistics(prepare_commit(table, [made], snapshot_id=between.snapshot_id, list_ndv=[]))
    commit(table, kll(table, 2))
    assert listed(table) == [(THETA, (1,), "4")] * 2
    assert made_for(table)[THETA, (1,)][0] == first.snapshot_id


def test_a_copy_gives_way_to_what_its_snapshot_s_file_has_now(table):
    """ANALYZE of Trino copies what stood there; a commit for that snapshot then replaces it there alone."""
    first = table.refresh().current_snapshot()
    commit(table, theta(table, 1, b"old", ndv="4"))
    append(table)
    register(table, write_foreign(table, blob(table, THETA, 1, b"old", first, ndv="4")), [1], ndv="4")
    made = blob(table, THETA, 1, b"new", first, ndv="5")
    commit_statistics(prepare_commit(table.refresh(), [made], snapshot_id=first.snapshot_id))
    kit = icestats.load("db.t", catalog={**table.catalog.properties, "name": "c"})
    assert kit._reader.blobs.nearest[0].ndv == 5
    commit(table.refresh(), kll(table, 2))
    assert stored(table)[THETA, (1,)] == b"new"
    assert not prepare_commit(table.refresh(), [kll(table, 2)]).is_new


def test_a_commit_of_one_kind_hides_no_other(table):
    """A person sees each kind with its own age, wherever it is read from."""
    commit(table, theta(table, 1), theta(table, 2, ndv="2"))
    append(table)
    empty = NewBlob(MANIFESTS, (), *_ids(table), b"no Parquet")
    commit(table, empty, keep_earlier=False)
    kit = icestats.load("db.t", catalog={**table.catalog.properties, "name": "c"})
    overview = kit.overview()
    assert (overview.statistics_column_count, overview.statistics_commits_behind) == (2, 1)
    assert overview.statistics_rows_behind == ROWS.num_rows
    behind = {(r["type"], tuple(r["field_ids"])): r["commits_behind"] for r in kit.sketches().to_pylist()}
    assert behind == {(MANIFESTS, ()): 0, (THETA, (1,)): 1, (THETA, (2,)): 1}
    commit(table, theta(table, 1, ndv="3"))
    overview = icestats.load("db.t", catalog={**table.catalog.properties, "name": "c"}).overview()
    assert (overview.statistics_stale_column_count, overview.statistics_commits_behind) == (1, 1)
    assert overview.findings[0].startswith("The statistics of 1 of 2 columns are 1 commit old")


def _ids(table):
    snapshot = table.current_snapshot()
    return snapshot.snapshot_id, snapshot.sequence_number


def test_no_more_files_of_a_snapshot_are_read_than_it_can_have(table):
    """Entries may name one file any number of times, with a footer that takes seconds to read."""
    commit(table, theta(table, 1))
    path = Path(table.refresh().metadata_location[7:])
    document = json.loads(path.read_text())
    document["statistics"] *= 17
    path.write_text(json.dumps(document))
    many = r"has more than 16 statistics files, expected one: remove_statistics\(\)"
    with pytest.raises(MetadataError, match=many):
        prepare_commit(table.refresh(), [theta(table, 1)])
    with pytest.raises(MetadataError, match=many):
        icestats.load("db.t", catalog={**table.catalog.properties, "name": "c"}).check_commit()


def write_hole(table, name, snapshot_id):
    """Register a file whose one blob is a hole on the disk of more than a commit carries."""
    path = Path(f"{table.location()[7:]}/metadata/{name}.stats")
    described = {"type": "hole", "fields": [1], "snapshot-id": snapshot_id, "sequence-number": 1, "offset": 4}
    footer = json.dumps({"blobs": [described | {"length": MOST_CARRIED_BYTES + 1}]}).encode()
    with path.open("wb") as file:
        file.write(b"PFA1")
        file.seek(MOST_CARRIED_BYTES + 5)
        file.write(b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1")
    register(table, f"file://{path}", [], snapshot_id=snapshot_id)


def test_no_more_is_carried_than_fits_in_memory(table):
    """A file of eight kilobytes on the disk may have blobs of any length."""
    write_hole(table, "ancestor", table.current_snapshot().snapshot_id)
    append(table)
    plan = prepare_commit(table, [theta(table, 1)])
    assert [line for line in plan.warnings if "ancestor.stats: its blobs have 1,073,741,825 bytes" in line]
    write_hole(table, "own", table.current_snapshot().snapshot_id)
    with pytest.raises(
        MetadataError, match=r"own\.stats: .*its blobs have 1,073,741,825 bytes, expected 1,073,741,824"
    ):
        prepare_commit(table.refresh(), [theta(table, 1)])
