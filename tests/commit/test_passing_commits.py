"""Statistics commits that pass each other on their way to a REST catalog: what stands there after both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CommitError
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
    remove,
    stored,
    theta,
    write_foreign,
)
from tests.rest_catalog import Rest


@pytest.fixture
def before_post(monkeypatch):
    """Take functions that others act by, each between the last look of a commit through REST and its arrival."""

    def choose(*functions):
        acts, post = [*reversed(functions)], Rest.do_POST

        def answer(request):
            if acts:
                acts.pop()()
            post(request)

        monkeypatch.setattr(Rest, "do_POST", answer)

    return choose


def test_an_ancestor_s_sketch_is_no_newer_than_the_snapshot_s_own(table, rest_table, before_post):
    commit(table, theta(table, 1, b"ancestor"))
    table.append(ROWS)
    before_post(lambda: commit(table.refresh(), theta(table, 1, b"fresh")))
    commit(rest_table.refresh(), theta(table, 2, b"mine"))
    assert stored(table) == {(THETA, (1,)): b"fresh", (THETA, (2,)): b"mine"}


def test_what_others_removed_does_not_come_back_as_an_ancestor_s(table, rest_table):
    commit(table, kll(table, 3, b"ancestor"))
    table.append(ROWS)
    steps = []

    def interfere(name):
        steps.append(name)
        if name == "committing" and steps.count(name) == 1:
            commit(table.refresh(), theta(table, 2, b"theirs"))
        if name == "committed" and steps.count(name) == 1:
            remove(table.refresh())

    commit_statistics(prepare_commit(rest_table.refresh(), [theta(table, 1, b"mine")]), on_step=interfere)
    now = table.current_snapshot().snapshot_id
    assert [entry for entry in entries(table) if entry.snapshot_id == now] == []


def test_an_unrelated_commit_behind_a_short_log_hides_nothing(table, rest_table, before_post):
    with table.transaction() as changed:
        changed.set_properties({"write.metadata.previous-versions-max": "1"})
    before_post(lambda: commit(table.refresh(), theta(table, 2, b"theirs")))

    def change(name):
        if name == "committed":
            with table.refresh().transaction() as changed:
                changed.set_properties({"x": "y"})

    plan = prepare_commit(rest_table.refresh(), [theta(table, 1, b"mine")])
    assert commit_statistics(plan, on_step=change).attempts == 2
    assert stored(table) == {(THETA, (1,)): b"mine", (THETA, (2,)): b"theirs"}


@pytest.mark.parametrize("removes", [False, True])
def test_a_log_of_one_version_hides_no_commit_before_the_last(table, rest_table, before_post, removes):
    with table.transaction() as changed:
        changed.set_properties({"write.metadata.previous-versions-max": "1"})
    commit(table, theta(table, 1, b"base"))

    def act():
        commit(table.refresh(), theta(table, 2, b"theirs"))
        commit(table.refresh(), kll(table, 3, b"last"))

    before_post(act)
    if removes:
        with pytest.raises(CommitError, match="nothing was removed, try again"):
            remove(rest_table.refresh())
    else:
        commit(rest_table.refresh(), theta(table, 1, b"mine"))
    own = b"base" if removes else b"mine"
    assert stored(table) == {(THETA, (1,)): own, (THETA, (2,)): b"theirs", (KLL, (3,)): b"last"}


def test_an_entry_without_its_blob_stays_listed(table, rest_table, before_post):
    register(table, write_foreign(table, kll(table, 3, b"k")), [2], ndv="7")
    before_post(lambda: commit(table.refresh(), kll(table, 1, b"theirs")))
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (2,), "7")]


def test_a_type_with_a_blank_hides_no_change(table, rest_table, before_post):
    register(table, write_foreign(table, replace(kll(table, 3, b"s"), type="my type")), [])
    table.append(ROWS)
    commit(table.refresh(), kll(table, 2, b"base"))
    late = prepare_commit(table.refresh(), [kll(table, 1, b"late")], keep_earlier=False)
    Path(late.statistics_path.removeprefix("file://")).write_bytes(late.puffin.data)
    commit(table.refresh(), kll(table, 3, b"new"))
    before_post(lambda: register(table, late.statistics_path, []))
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    assert stored(table)[KLL, (3,)] == b"new"


def test_the_same_bytes_of_another_snapshot_are_another_sketch(table, rest_table, before_post):
    commit(table, kll(table, 2, b"same"))
    table.append(ROWS)
    commit(table.refresh(), kll(table, 3, b"base"))
    now = table.current_snapshot().snapshot_id
    before_post(lambda: commit(table.refresh(), kll(table, 2, b"same")))
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    path = next(entry.statistics_path for entry in entries(table) if entry.snapshot_id == now)
    made_for = {(blob.type, blob.field_ids): blob.snapshot_id for blob in read_puffin_footer(Storage(), path).blobs}
    assert made_for[KLL, (2,)] == now


def test_a_damaged_file_that_was_removed_again_is_in_no_way(table, rest_table, before_post):
    def act():
        damaged = f"{table.location()}/metadata/damaged.stats"
        Path(damaged.removeprefix("file://")).write_bytes(b"junk")
        register(table, damaged, [])
        remove(table.refresh())

    before_post(act)
    commit(rest_table, theta(table, 1, b"mine"))
    assert stored(table) == {(THETA, (1,)): b"mine"}


def write_partitions(table, data):
    now = table.refresh().current_snapshot().snapshot_id
    commit_partition_statistics(table, prepare_partition_commit(table, now, data, "parquet"))


def test_partition_statistics_that_are_put_back_replace_no_newer_ones(table, rest_table, before_post):
    commit(table, kll(table, 3, b"k"))
    write_partitions(table, b"PAR1first")
    before_post(lambda: write_partitions(table, b"PAR1second"), lambda: write_partitions(table, b"PAR1third"))
    with pytest.raises(CommitError, match="nothing was removed, try again"):
        remove(rest_table.refresh())
    [entry] = table.refresh().metadata.partition_statistics
    assert Path(entry.statistics_path[7:]).read_bytes() == b"PAR1third"
    assert stored(table) == {(KLL, (3,)): b"k"}


def test_what_was_left_out_stays_so_where_a_removal_puts_back(table, rest_table, before_post):
    commit(table, kll(table, 3, b"ancestor"))
    table.append(ROWS)
    path = commit(table, kll(table, 2, b"k"), keep_earlier=False).statistics_path
    write_partitions(table, b"PAR1first")
    before_post(lambda: write_partitions(table, b"PAR1second"))
    with pytest.raises(CommitError, match="nothing was removed, try again"):
        remove(rest_table.refresh())
    assert path in [entry.statistics_path for entry in entries(table)]
    assert stored(table) == {(KLL, (2,)): b"k"}


def test_an_ancestor_s_sketches_come_back_with_the_next_commit(table, rest_table, before_post, monkeypatch):
    commit(table, kll(table, 3, b"ancestor"))
    table.append(ROWS)
    commit(table.refresh(), kll(table, 2, b"removed"))
    before_post(lambda: remove(table.refresh()))
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    monkeypatch.undo()
    commit(table.refresh(), theta(table, 2, b"later"))
    assert (KLL, (3,)) in stored(table)


def test_a_sketch_that_is_put_back_is_newer_than_an_ancestor_s(table, rest_table, before_post):
    commit(table, kll(table, 3, b"ancestor"))
    table.append(ROWS)
    path = commit(table, kll(table, 3, b"fresh")).statistics_path
    remove(table.refresh())
    before_post(lambda: register(table, path, []))
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    assert stored(table) == {(KLL, (3,)): b"fresh", (THETA, (1,)): b"mine"}


def test_blobs_of_one_type_and_field_stay_together(table, rest_table, before_post):
    """Hive writes one for each partition."""
    parts = [blob(table, "ColumnStatisticsObj", 1, value, partition=f"p={value}") for value in (b"1", b"2")]
    register(table, write_foreign(table, *parts), [])
    before_post(lambda: commit(table.refresh(), theta(table, 3, b"theirs")))
    commit(rest_table.refresh(), theta(table, 2, b"mine"))
    [entry] = entries(table)
    found = read_puffin_footer(Storage(), entry.statistics_path).blobs
    assert [one.properties for one in found if one.type == "ColumnStatisticsObj"] == [one.properties for one in parts]
    assert {(THETA, (2,)), (THETA, (3,))} < stored(table).keys()


def test_what_was_asked_for_keeps_its_warnings(table, rest_table, before_post):
    before_post(lambda: commit(table.refresh(), theta(table, 2, b"theirs")))
    two = replace(theta(table, 1, b"two"), field_ids=(1, 2))
    plan = prepare_commit(rest_table.refresh(), [theta(table, 1, b"mine"), two])
    assert plan.warnings
    assert set(plan.warnings) <= set(commit_statistics(plan).warnings)


def test_leaving_earlier_blobs_out_takes_no_fresh_one_of_others(table, rest_table, before_post):
    commit(table, kll(table, 2, b"earlier"), kll(table, 3, b"earlier"))
    table.append(ROWS)
    commit(table, theta(table, 1, b"first"))
    before_post(lambda: commit(table.refresh(), kll(table, 2, b"fresh")))
    commit(rest_table.refresh(), theta(table, 1, b"mine"), keep_earlier=False)
    assert stored(table) == {(THETA, (1,)): b"mine", (KLL, (2,)): b"fresh"}
