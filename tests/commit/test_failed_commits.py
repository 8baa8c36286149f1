"""A commit that fails at any step leaves the table as before or as after, and no file that nobody knows of."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from sqlalchemy import event
from sqlalchemy.orm import Session

import icestats
from icestats.commit.orphans import find_orphans
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CommitError
from tests.committed_statistics import (
    KLL,
    THETA,
    commit,
    entries,
    kll,
    listed,
    open_catalog,
    statistics_files,
    stored,
    theta,
)

KILLED = """
import os, signal, sys
from sqlalchemy import event
from pyiceberg.catalog.sql import SqlCatalog
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
folder, place = sys.argv[1:]
catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
table = catalog.load_table("db.t")
snapshot = table.current_snapshot()

def kill_at(here):
    if here == place:
        os.kill(os.getpid(), signal.SIGKILL)

def on_statement(when):
    def listener(connection, cursor, statement, *rest):
        if statement.startswith("UPDATE"):
            kill_at(when + " swap")
    return listener

event.listen(catalog.engine, "before_cursor_execute", on_statement("before"))
event.listen(catalog.engine, "after_cursor_execute", on_statement("after"))
theta = NewBlob("apache-datasketches-theta-v1", (1,), snapshot.snapshot_id, 1, b"new" * 1000, {"ndv": "9"})
commit_statistics(prepare_commit(table, [theta]), on_step=kill_at)
"""


@pytest.mark.parametrize(
    ("place", "committed", "left"),
    [
        ("prepared", False, 0),
        ("writing", False, 1),
        ("written", False, 1),
        ("committing", False, 1),
        ("before swap", False, 1),
        ("after swap", False, 1),
        ("committed", True, 0),
    ],
)
def test_killed_at_any_step_the_table_is_as_before_or_as_after(table, tmp_path, place, committed, left):
    commit(table, theta(table, 1, b"old"), kll(table, 2, b"kept"))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), place], timeout=600, check=False)
    assert killed.returncode == -9
    after = {(THETA, (1,)): b"new" * 1000 if committed else b"old", (KLL, (2,)): b"kept"}
    assert stored(table) == after
    assert listed(table) == [(THETA, (1,), "9" if committed else "2")]
    assert table.catalog.load_table("db.t").scan().to_arrow().num_rows == 2
    kit = icestats.load("db.t", catalog={**table.catalog.properties, "name": "c"})
    assert [(r["type"], r["ndv"]) for r in kit.sketches().to_pylist()] == [(THETA, 9 if committed else 2), (KLL, None)]
    assert kit.manifests()["total_record_count"].to_pylist() == [2]
    orphans = kit.orphans().to_pylist()
    assert [row["last_referred_at"] is not None for row in orphans].count(True) == committed, "what was replaced"
    killed_files = [row for row in orphans if row["last_referred_at"] is None]
    assert len(killed_files) == left
    assert all(("swap" in place) == (row["referred_by"] is not None) for row in killed_files)
    commit(table.refresh(), kll(table, 3, b"next"))
    assert stored(table) == {**after, (KLL, (3,)): b"next"}


@pytest.mark.parametrize("step", ["prepared", "writing", "written", "committing"])
def test_a_failure_before_the_commit_leaves_nothing(table, step):
    def fail(name):
        if name == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_statistics(prepare_commit(table, [theta(table, 1)]), on_step=fail)
    assert statistics_files(table) == []
    assert entries(table) == []


def test_without_an_answer_the_file_stays_and_the_error_says_so(table, tmp_path):
    with open_catalog(tmp_path, "?timeout=0.05") as impatient:
        plan = prepare_commit(impatient.load_table("db.t"), [theta(table, 1)])
        other = sqlite3.connect(tmp_path / "catalog.db")

        def lock(name):
            if name == "committing":
                other.execute("BEGIN IMMEDIATE")

        with pytest.raises(CommitError, match="database is locked") as caught:
            commit_statistics(plan, on_step=lock)
        other.rollback()
        other.close()
    assert plan.statistics_path in str(caught.value)
    assert "is left" in str(caught.value)
    assert find_orphans(table)["path"].to_pylist() == [plan.statistics_path]
    assert entries(table) == []


def test_the_last_error_names_what_every_attempt_has_left(table, monkeypatch):
    plan = prepare_commit(table, [theta(table, 1)])

    def refuse(*_):
        raise OSError("read-only")

    attempts = []

    def be_in_the_way(step):
        if step != "committing":
            return
        attempts.append(step)
        if len(attempts) > 1:
            table.catalog.rename_table("db.t", "db.other")
        else:
            commit(table.refresh(), kll(table, 2))
            monkeypatch.setattr(PyArrowFileIO, "delete", refuse)

    with pytest.raises(CommitError) as caught:
        commit_statistics(plan, on_step=be_in_the_way)
    assert plan.statistics_path in str(caught.value)
    assert "no answer" in str(caught.value)
    assert "may be left on storage as an orphan" in str(caught.value)


@pytest.mark.parametrize("others", [False, True])
def test_an_error_after_the_commit_is_no_failure(table, others):
    plan = prepare_commit(table, [theta(table, 1)])
    broken = []

    def break_off(session):
        if broken:
            return
        broken.append(session)
        if others:
            commit(table.refresh(), kll(table, 2))
        raise OSError("connection lost")

    def arm(name):
        if name == "committing" and not broken:
            event.listen(Session, "after_commit", break_off)

    try:
        result = commit_statistics(plan, on_step=arm)
    finally:
        event.remove(Session, "after_commit", break_off)
    assert broken
    assert result.attempts == 1
    assert stored(table) == {(THETA, (1,)): b"theta", **({(KLL, (2,)): b"kll"} if others else {})}
