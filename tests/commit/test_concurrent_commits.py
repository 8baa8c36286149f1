"""What others commit in between is kept, and what they take away is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import icestats
from icestats import writers
from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CommitError, TableNotFoundError
from tests.committed_statistics import (
    KLL,
    ROWS,
    THETA,
    blob,
    commit,
    kll,
    listed,
    metadata_files,
    register,
    statistics_files,
    stored,
    theta,
    write_foreign,
)


def test_a_column_dropped_between_plan_and_commit_is_not_listed(table):
    plan = prepare_commit(table, [theta(table, 1), theta(table, 3)])

    def drop(step):
        if step == "committing" and "c" in table.refresh().schema().column_names:
            with table.update_schema() as update:
                update.delete_column("c")

    result = commit_statistics(plan, on_step=drop)
    assert result.attempts == 2
    assert listed(table) == [(THETA, (1,), "2")]
    assert statistics_files(table) == [Path(result.statistics_path).name]


def test_a_table_registered_anew_elsewhere_gets_its_file_there(table, catalog):
    """Under the same name, with the same snapshots: the old folder may be gone tomorrow."""
    partitions = prepare_partition_commit(table, table.current_snapshot().snapshot_id, b"rows", "parquet")
    plan = replace(prepare_commit(table, [theta(table, 1)]), partitions=partitions)
    there = f"{table.location()}-moved"
    metadata = Path(f"{there}/metadata/{Path(table.metadata_location).name}".removeprefix("file://"))
    metadata.parent.mkdir(parents=True)
    document = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    metadata.write_text(json.dumps(document | {"location": there}))
    catalog.drop_table("db.t")
    catalog.register_table("db.t", f"file://{metadata}")
    result = commit_statistics(plan)
    moved = catalog.load_table("db.t").metadata
    paths = [file.statistics_path for file in (*moved.statistics, *moved.partition_statistics)]
    assert (len(paths), result.statistics_path) == (2, paths[0])
    assert all(path.startswith(there) and Path(path.removeprefix("file://")).is_file() for path in paths)
    assert statistics_files(table) == []


@pytest.mark.parametrize("step", [None, "prepared", "written", "committing"])
def test_a_snapshot_expired_meanwhile_is_an_error_and_leaves_nothing(table, step):
    old = table.current_snapshot()
    plan = prepare_commit(table, [blob(table, KLL, 1, b"old", old)])
    table.append(ROWS)

    def expire(name):
        if name == step:
            table.refresh().maintenance.expire_snapshots().by_id(old.snapshot_id).commit()

    expire(None)
    with pytest.raises(CommitError, match=f"{old.snapshot_id} of db.t was expired meanwhile"):
        commit_statistics(plan, on_step=expire)
    assert statistics_files(table) == []
    assert [json.loads(path.read_text())["statistics"] for path in metadata_files(table)] == [[]] * 4


@pytest.mark.parametrize("step", ["prepared", "writing", "written", "committing"])
def test_what_others_commit_in_between_is_kept(table, step):
    plan = prepare_commit(table, [theta(table, 1, b"mine"), kll(table, 1, b"mine")])
    done = []

    def interfere(name):
        if name == step and not done:
            done.append(step)
            commit(table.catalog.load_table("db.t"), theta(table, 2, b"theirs"), kll(table, 1, b"theirs"))

    result = commit_statistics(plan, on_step=interfere)
    assert result.attempts == 2
    assert stored(table) == {(THETA, (1,)): b"mine", (KLL, (1,)): b"mine", (THETA, (2,)): b"theirs"}
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (2,), "2")]
    assert len(statistics_files(table)) == 2


def test_what_others_registered_with_pyiceberg_in_between_is_kept(table):
    done = []

    def interfere(name):
        if name == "committing" and not done:
            done.append(name)
            register(table, write_foreign(table, theta(table, 3, b"foreign")), [3])

    commit_statistics(prepare_commit(table, [theta(table, 1)]), on_step=interfere)
    assert stored(table) == {(THETA, (1,)): b"theta", (THETA, (3,)): b"foreign"}
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (3,), "5")]


@pytest.mark.parametrize("step", [None, "prepared", "writing", "written", "committing"])
def test_both_files_are_committed_together_whatever_others_do_in_between(table, step):
    snapshot_id = table.current_snapshot().snapshot_id
    partitions = prepare_partition_commit(table, snapshot_id, b"PAR1mine", "parquet")
    done = []

    def interfere(name):
        if name == step and not done:
            done.append(name)
            other = table.catalog.load_table("db.t")
            commit_partition_statistics(other, prepare_partition_commit(other, snapshot_id, b"PAR1theirs", "parquet"))
            commit(table.catalog.load_table("db.t"), theta(table, 2, b"theirs"))

    plan = replace(prepare_commit(table, [theta(table, 1, b"mine")]), partitions=partitions)
    interfere(None)
    result = commit_statistics(plan, on_step=interfere)
    metadata = table.refresh().metadata
    assert stored(table) == {(THETA, (1,)): b"mine", (THETA, (2,)): b"theirs"}
    [entry] = metadata.partition_statistics
    assert Path(entry.statistics_path[7:]).read_bytes() == b"PAR1mine"
    assert result.partitions.file.statistics_path == entry.statistics_path
    assert Path(result.partitions.replaced[7:]).read_bytes() == b"PAR1theirs"
    last = json.loads(Path(metadata.metadata_log[-1].metadata_file[7:]).read_text())
    before = {e["statistics-path"] for e in (*last["statistics"], *last["partition-statistics"])}
    assert not before & {result.statistics_path, entry.statistics_path}, "one new metadata.json has both"


def test_appends_in_between_do_not_disturb(table):
    snapshot_id = table.current_snapshot().snapshot_id
    plan = prepare_commit(table, [theta(table, 1)])

    def append(name):
        if name == "committing":
            table.catalog.load_table("db.t").append(ROWS)

    assert commit_statistics(plan, on_step=append).attempts == 1
    assert stored(table, snapshot_id) == {(THETA, (1,)): b"theta"}
    assert table.refresh().scan().to_arrow().num_rows == 4


COMMITTER = """
import sys
from pathlib import Path
from pyiceberg.catalog.sql import SqlCatalog
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
folder, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
met = []

def meet(step):
    if step == "committing" and not met:
        met.append(step)
        print("ready", flush=True)
        sys.stdin.readline()

with SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse") as catalog:
    table = catalog.load_table("db.t")
    snapshot = table.current_snapshot()
    attempts = 0
    for i in range(rounds):
        new = NewBlob(f"{name}-{i}", (1,), snapshot.snapshot_id, snapshot.sequence_number, f"{name} {i}".encode())
        attempts += commit_statistics(prepare_commit(table, [new]), on_step=meet, max_attempts=100).attempts
    print(attempts)
"""


def test_a_race_of_processes_loses_nothing(table, tmp_path):
    """All have written their first file before any of them commits it."""
    names, rounds = ("one", "two", "three"), 5
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(tmp_path), name, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    attempts = [int(child.communicate(timeout=600)[0]) for child in children]
    expected = {(f"{name}-{i}", (1,)): f"{name} {i}".encode() for name in names for i in range(rounds)}
    assert stored(table) == expected
    assert sum(attempts) >= rounds * len(names) + 2, "of three first commits on the same state two have to come again"


def test_a_commit_that_others_always_precede_gives_up_and_leaves_nothing_of_its_own(table):
    table.transaction().set_properties({"commit.retry.min-wait-ms": "1"}).commit_transaction()
    count = 0

    def interfere(name):
        nonlocal count
        if name == "committing":
            count += 1
            commit(table, kll(table, 1, b"theirs %d" % count))

    with pytest.raises(CommitError, match="each of 3 attempts"):
        commit_statistics(prepare_commit(table, [theta(table, 1)]), on_step=interfere, max_attempts=3)
    assert stored(table) == {(KLL, (1,)): b"theirs 3"}
    assert len(statistics_files(table)) == 3


def test_a_table_dropped_meanwhile_is_an_error(catalog, table):
    plan = prepare_commit(table, [theta(table, 1)])
    catalog.drop_table("db.t")
    with pytest.raises(CommitError, match="no longer in its catalog"):
        commit_statistics(plan)
    catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
    with pytest.raises(CommitError, match="another table"):
        commit_statistics(plan)
    assert statistics_files(table) == []


def test_nothing_is_written_to_another_table_that_has_the_name_now(catalog, table):
    opened = icestats.load("db.t", catalog={**catalog.properties, "name": catalog.name})
    computed = opened.compute(manifests=True)
    catalog.drop_table("db.t")
    catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
    made_anew = catalog.load_table("db.t")
    assert "is another table now" in str(computed.commit(dry_run=True))
    acts = (
        computed.commit,
        opened.remove_statistics,
        lambda: opened.remove_statistics(expired=True),
        lambda: writers.append(opened, ROWS),
        lambda: writers.overwrite(opened, ROWS.slice(1)),
        lambda: opened.compute(),
        opened.orphans,
    )
    for act in acts:
        with pytest.raises(TableNotFoundError, match=r"db\.t is another table now, .*: load it anew"):
            act()
    assert catalog.load_table("db.t").metadata == made_anew.metadata
    assert writers.append(opened.refresh(), ROWS).snapshot_id
