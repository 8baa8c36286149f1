"""Removing statistics undoes a commit, puts back what it replaced, and takes nothing of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestats.commit.statistics_removal import commit_removal, prepare_removal
from icestats.errors import CommitError, StatisticsMissingError
from tests.committed_statistics import (
    KLL,
    THETA,
    commit,
    entries,
    kll,
    listed,
    metadata_files,
    remove,
    statistics_files,
    stored,
    theta,
)


def test_removing_undoes_a_commit(table):
    first = commit(table, theta(table, 1))
    removed = remove(table)
    assert [removal.before.statistics_path for removal in removed.removals] == [first.statistics_path]
    assert entries(table) == []
    assert statistics_files(table) == [Path(first.statistics_path).name]
    with pytest.raises(StatisticsMissingError):
        remove(table)


def test_a_removal_is_shown_before_it_is_done_and_changes_nothing_then(table):
    first = commit(table, theta(table, 1), kll(table, 2))
    before = metadata_files(table)
    text = prepare_removal(table, table.current_snapshot().snapshot_id).describe()
    assert f"would take {first.statistics_path} out of the table: {len(first.puffin.data):,} bytes, 2 blobs" in text
    assert "after:  none" in text
    assert "without the NDV of a" in text
    assert metadata_files(table) == before
    assert listed(table) == [(THETA, (1,), "2")]


def test_a_removal_can_put_back_what_the_commit_replaced(table):
    snapshot_id = table.current_snapshot().snapshot_id
    first = commit(table, theta(table, 1, b"first", ndv="1"), kll(table, 2))
    commit(table, theta(table, 1, b"second", ndv="2"), theta(table, 3))
    plan = prepare_removal(table, snapshot_id, restore=True)
    assert [removal.after for removal in plan.removals] == [first.after]
    assert "without the NDV of c" in plan.describe()
    commit_removal(plan)
    assert listed(table) == [(THETA, (1,), "1")]
    assert stored(table) == {(THETA, (1,)): b"first", (KLL, (2,)): b"kll"}
    remove(table)
    assert entries(table) == []


def test_what_is_put_back_lists_no_column_that_was_dropped_since(table):
    snapshot_id = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1), theta(table, 3))
    commit(table, kll(table, 2))
    with table.refresh().update_schema() as update:
        update.delete_column("c")
    plan = prepare_removal(table, snapshot_id, restore=True)
    assert "left out, as Spark would fail: 1 entry of columns dropped since" in plan.describe()
    commit_removal(plan)
    assert listed(table) == [(THETA, (1,), "2")]


def test_what_cannot_be_put_back_is_said_and_the_removal_still_works(table):
    snapshot_id = table.current_snapshot().snapshot_id
    first = commit(table, theta(table, 1))
    assert "have replaced none" in prepare_removal(table, snapshot_id, restore=True).describe()
    commit(table, theta(table, 2))
    Path(first.statistics_path[7:]).unlink()
    plan = prepare_removal(table, snapshot_id, restore=True)
    assert [removal.after for removal in plan.removals] == [None]
    assert "cannot be put back" in plan.describe()
    commit_removal(plan)
    assert entries(table) == []


def test_a_removal_takes_nothing_that_others_committed_since(table):
    commit(table, theta(table, 1))
    plan = prepare_removal(table, table.current_snapshot().snapshot_id)
    commit(table, theta(table, 2))
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert len(listed(table)) == 2
