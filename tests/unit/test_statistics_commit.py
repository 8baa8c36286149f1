"""Committing statistics does what was planned, loses nothing of others, and leaves nothing behind when it fails."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest, StaticTable
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.table.statistics import StatisticsFile
from sqlalchemy import event
from sqlalchemy.orm import Session

import icestats
from icestats.commit.orphans import find_orphans
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.statistics_removal import commit_removal, prepare_removal, remove_statistics
from icestats.errors import (
    CallError,
    ColumnNotFoundError,
    CommitError,
    MetadataError,
    SnapshotNotFoundError,
    StatisticsMissingError,
    UnsupportedError,
)
from icestats.read.puffin import read_blob, read_puffin_footer
from icestats.storage import Storage

THETA = "apache-datasketches-theta-v1"
KLL = "apache-datasketches-kll-v1"
ROWS = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"], "c": [0.5, 1.5]})


def open_catalog(folder: Path, options: str = "") -> SqlCatalog:
    return SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db{options}", warehouse=f"file://{folder}/warehouse")


@pytest.fixture
def catalog(tmp_path):
    with open_catalog(tmp_path) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
        yield catalog


@pytest.fixture
def table(catalog):
    return catalog.load_table("db.t")


def blob(table, kind, field_id, payload, snapshot=None, **properties):
    snapshot = snapshot or table.current_snapshot()
    return NewBlob(kind, (field_id,), snapshot.snapshot_id, snapshot.sequence_number, payload, properties)


def theta(table, field_id, payload=b"theta", ndv="2"):
    return blob(table, THETA, field_id, payload, ndv=ndv)


def kll(table, field_id, payload=b"kll"):
    return blob(table, KLL, field_id, payload, k="200")


def commit(table, *blobs, **options):
    return commit_statistics(prepare_commit(table, list(blobs), **options))


def entries(table):
    return table.catalog.load_table(table.name()).metadata.statistics


def listed(table):
    return [(b.type, tuple(b.fields), (b.properties or {}).get("ndv")) for e in entries(table) for b in e.blob_metadata]


def stored(table, snapshot_id=None):
    """What the committed file of a snapshot holds: (type, fields) -> payload."""
    snapshot_id = snapshot_id or table.current_snapshot().snapshot_id
    path = next(e.statistics_path for e in entries(table) if e.snapshot_id == snapshot_id)
    footer = read_puffin_footer(Storage(), path)
    return {(b.type, b.field_ids): read_blob(Storage(), b, path) for b in footer.blobs}


def metadata_files(table):
    return sorted(Path(table.location().removeprefix("file://"), "metadata").glob("*.metadata.json"))


def statistics_files(table):
    return sorted(p.name for p in Path(table.location().removeprefix("file://"), "metadata").glob("*.stats"))


def test_theta_is_listed_and_everything_else_is_in_the_footer_only(table):
    result = commit(table, theta(table, 1), kll(table, 1), blob(table, "icestats-column-stats-v1", 1, b"{}"))
    entry = entries(table)[0]
    snapshot = table.current_snapshot()
    assert listed(table) == [(THETA, (1,), "2")]
    assert [b.type for b in PuffinFile(Path(entry.statistics_path[7:]).read_bytes()).footer.blobs] == [
        THETA,
        KLL,
        "icestats-column-stats-v1",
    ]
    assert entry.statistics_path == result.statistics_path
    assert Path(entry.statistics_path).name.startswith(f"{snapshot.snapshot_id}-")
    assert entry.statistics_path.startswith(f"{table.location()}/metadata/")
    assert entry.file_size_in_bytes == Path(entry.statistics_path[7:]).stat().st_size == result.file_size_bytes
    footer = read_puffin_footer(Storage(), entry.statistics_path)
    assert entry.file_footer_size_in_bytes == footer.footer_size_bytes
    assert entry.blob_metadata[0].snapshot_id == snapshot.snapshot_id
    assert entry.blob_metadata[0].sequence_number == snapshot.sequence_number
    assert result.metadata_location == table.refresh().metadata_location


def test_preparing_writes_nothing_and_the_plan_is_what_is_committed(table):
    plan = prepare_commit(table, [theta(table, 1), kll(table, 2)])
    assert statistics_files(table) == []
    assert entries(table) == []
    text = plan.describe()
    assert plan.statistics_path in text
    assert f"{len(plan.puffin.data):,} bytes" in text
    assert f"new  {THETA} of a: {plan.blobs[0].blob.length} bytes, listed, ndv 2" in text
    assert f"new  {KLL} of b: {plan.blobs[1].blob.length} bytes, footer only" in text
    assert "before: none" in text
    result = commit_statistics(plan)
    assert result.statistics_path == plan.statistics_path
    assert result.after == plan.after
    assert Path(plan.statistics_path[7:]).read_bytes() == plan.puffin.data


def test_the_plan_names_the_trap_where_it_applies(table):
    numeric = prepare_commit(table, [theta(table, 1), theta(table, 2), theta(table, 3)])
    trap = [effect for effect in numeric.effects if "0 rows" in effect]
    assert len(trap) == 1
    assert "an equality on a, c (" in trap[0]
    assert not any("0 rows" in effect for effect in prepare_commit(table, [theta(table, 2)]).effects)
    assert "Spark plans as before" in prepare_commit(table, [kll(table, 1)]).effects[0]


def test_other_blobs_are_carried_over_and_the_same_ones_are_replaced(table):
    commit(
        table, theta(table, 1, b"old a"), theta(table, 2, b"b", ndv="7"), kll(table, 1, b"old kll"), kll(table, 3, b"c")
    )
    first = entries(table)[0]
    result = commit(table, theta(table, 1, b"new a", ndv="9"), kll(table, 1, b"new kll"))
    assert stored(table) == {
        (THETA, (1,)): b"new a",
        (KLL, (1,)): b"new kll",
        (THETA, (2,)): b"b",
        (KLL, (3,)): b"c",
    }
    assert sorted(listed(table)) == [(THETA, (1,), "9"), (THETA, (2,), "7")]
    assert [(b.blob.type, b.columns, b.listed) for b in result.blobs if b.kept] == [
        (THETA, ("b",), True),
        (KLL, ("c",), False),
    ]
    assert sorted((b.type, b.field_ids) for b in result.replaced) == [(KLL, (1,)), (THETA, (1,))]
    assert result.before.statistics_path == first.statistics_path
    assert Path(first.statistics_path[7:]).exists()


def test_a_file_of_iceberg_for_java_is_carried_over_byte_for_byte(table):
    golden = Path(__file__).parent.parent / "golden" / "compute_table_stats.stats"
    path = f"{table.location()}/metadata/from-java.stats"
    Path(path[7:]).write_bytes(golden.read_bytes())
    register(table, path, [3])
    commit(table, kll(table, 1, b"mine"))
    after = entries(table)[0]
    old = read_puffin_footer(Storage(), path)
    new = read_puffin_footer(Storage(), after.statistics_path)
    data = Path(after.statistics_path[7:]).read_bytes()
    for blob_before, blob_after in zip(old.blobs, new.blobs[1:], strict=True):
        before = golden.read_bytes()[blob_before.offset : blob_before.offset + blob_before.length]
        assert data[blob_after.offset : blob_after.offset + blob_after.length] == before
        assert blob_after.properties == blob_before.properties
    assert listed(table) == [(THETA, (3,), "5")]


def register(table, path, field_ids, ndv="5", size=None, snapshot_id=None, **members):
    """Commit a statistics file as PyIceberg's own update does: whatever was there is replaced."""
    snapshot_id = snapshot_id or table.current_snapshot().snapshot_id
    entry = {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": size or Path(path[7:]).stat().st_size,
        "file-footer-size-in-bytes": 100,
        "blob-metadata": [
            {"type": THETA, "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [i], "properties": {"ndv": ndv}}
            for i in field_ids
        ],
        **members,
    }
    with table.catalog.load_table(table.name()).update_statistics() as update:
        update.set_statistics(StatisticsFile.model_validate(entry))


def write_foreign(table, *blobs):
    path = f"{table.location()}/metadata/foreign-{len(statistics_files(table))}.stats"
    Path(path[7:]).write_bytes(write_puffin(list(blobs)).data)
    return path


def test_list_ndv_chooses_the_columns_that_engines_see(table):
    plan = prepare_commit(table, [theta(table, 1), theta(table, 2)], list_ndv=["b"])
    commit_statistics(plan)
    assert listed(table) == [(THETA, (2,), "2")]
    assert set(stored(table)) == {(THETA, (1,)), (THETA, (2,))}
    with pytest.raises(ColumnNotFoundError):
        prepare_commit(table, [theta(table, 1)], list_ndv=["nope"])
    with pytest.raises(CallError, match="'c'"):
        prepare_commit(table, [theta(table, 1)], list_ndv=["c"])


def test_columns_dropped_before_are_never_listed(table):
    commit(table, theta(table, 3))
    with table.catalog.load_table(table.name()).update_schema() as update:
        update.delete_column("c")
    table.refresh()
    plan = prepare_commit(table, [theta(table, 1)])
    assert any("field 3 is not in the current schema" in warning for warning in plan.warnings)
    assert ("#3",) in [b.columns for b in plan.kept]
    commit_statistics(plan)
    assert listed(table) == [(THETA, (1,), "2")]
    assert (THETA, (3,)) in stored(table)


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


def test_old_snapshots_and_branches_have_statistics_too(table):
    old = table.current_snapshot()
    table.append(ROWS)
    commit_statistics(prepare_commit(table, [blob(table, KLL, 1, b"old", old)], snapshot_id=old.snapshot_id))
    commit(table, kll(table, 1, b"new"))
    assert stored(table, old.snapshot_id) == {(KLL, (1,)): b"old"}
    assert stored(table) == {(KLL, (1,)): b"new"}


@pytest.mark.parametrize(
    ("blobs", "error", "words"),
    [
        (lambda _: [], CallError, "no blobs"),
        (lambda t: [theta(t, 1, ndv="12.5")], CallError, "12.5"),
        (lambda t: [theta(t, 1, ndv="²")], CallError, "integer"),
        (lambda t: [blob(t, THETA, 1, b"no ndv")], CallError, "ndv ''"),
        (lambda _: [NewBlob(KLL, (1,), 5, 1, b"x")], CallError, "snapshot 5"),
    ],
)
def test_a_wrong_call_is_refused(table, blobs, error, words):
    with pytest.raises(error, match=words):
        prepare_commit(table, blobs(table))


def test_a_snapshot_that_does_not_exist_is_refused(catalog, table):
    with pytest.raises(SnapshotNotFoundError, match="no snapshot 5"):
        prepare_commit(table, [NewBlob(KLL, (1,), 5, 1, b"x")], snapshot_id=5)
    empty = catalog.create_table("db.empty", schema=ROWS.schema)
    with pytest.raises(SnapshotNotFoundError, match="no snapshot yet"):
        prepare_commit(empty, [NewBlob(KLL, (1,), 5, 1, b"x")])


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
    attempts = [int(child.communicate(timeout=100)[0]) for child in children]
    expected = {(f"{name}-{i}", (1,)): f"{name} {i}".encode() for name in names for i in range(rounds)}
    assert stored(table) == expected
    assert sum(attempts) >= rounds * len(names) + 2, "of three first commits on the same state two have to come again"


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
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), place], timeout=100, check=False)
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


def test_a_plan_committed_again_never_overwrites_a_file(table):
    plan = prepare_commit(table, [theta(table, 1)])
    first = commit_statistics(plan)
    remove_statistics(table, table.current_snapshot().snapshot_id)
    second = commit_statistics(plan)
    assert second.statistics_path != first.statistics_path
    assert len(statistics_files(table)) == 2
    assert stored(table) == {(THETA, (1,)): b"theta"}


def test_a_table_dropped_meanwhile_is_an_error(catalog, table):
    plan = prepare_commit(table, [theta(table, 1)])
    catalog.drop_table("db.t")
    with pytest.raises(CommitError, match="no longer in its catalog"):
        commit_statistics(plan)
    catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
    with pytest.raises(CommitError, match="another table"):
        commit_statistics(plan)
    assert statistics_files(table) == []


def test_a_bare_metadata_file_is_read_only(table):
    static = StaticTable.from_metadata(table.metadata_location)
    plan = prepare_commit(static, [theta(table, 1)])
    assert "cannot be committed" in plan.describe()
    with pytest.raises(CommitError, match="read-only"):
        commit_statistics(plan)
    with pytest.raises(CommitError, match="read-only"):
        remove_statistics(static, table.current_snapshot().snapshot_id)
    assert statistics_files(table) == []


def test_format_version_3_is_refused_where_pyiceberg_would_write_the_metadata(catalog, table):
    path = Path(table.metadata_location[7:])
    document = {**json.loads(path.read_text()), "format-version": 3, "next-row-id": 2}
    for snapshot in document["snapshots"]:
        snapshot.update({"first-row-id": 0, "added-rows": 2})
    newer = path.with_name("00009-v3.metadata.json")
    newer.write_text(json.dumps(document))
    third = catalog.register_table("db.v3", f"file://{newer}")
    with pytest.raises(UnsupportedError, match="format version 3"):
        commit(third, theta(table, 1))
    assert statistics_files(table) == []


def test_a_table_that_lists_a_type_that_pyiceberg_refuses_is_unsupported(catalog, table, tmp_path):
    plan = prepare_commit(table, [theta(table, 1)])
    path = Path(table.metadata_location[7:])
    document = json.loads(path.read_text())
    listing = {"type": "presto-kll", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
    entry = {"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1}
    path.write_text(json.dumps({**document, "statistics": [{**entry, "blob-metadata": [listing]}]}))
    with pytest.raises(UnsupportedError, match="type of statistics blob"):
        commit_statistics(plan)
    assert statistics_files(table) == []


def test_statistics_that_cannot_be_read_are_not_silently_dropped(table):
    first = commit(table, theta(table, 1), kll(table, 2))
    Path(first.statistics_path[7:]).write_bytes(b"PFA1 cut")
    with pytest.raises(MetadataError, match="carry_over=False"):
        prepare_commit(table.refresh(), [theta(table, 3)])
    Path(first.statistics_path[7:]).unlink()
    with pytest.raises(MetadataError, match="no such file"):
        prepare_commit(table, [theta(table, 3)])
    plan = prepare_commit(table, [theta(table, 3)], carry_over=False)
    assert any("not carried over" in warning for warning in plan.warnings)
    commit_statistics(plan)
    assert stored(table) == {(THETA, (3,)): b"theta"}


def test_encrypted_statistics_are_unsupported(table):
    register(table, write_foreign(table, theta(table, 3)), [3], **{"key-metadata": "c2VjcmV0"})
    with pytest.raises(UnsupportedError, match="encrypted"):
        prepare_commit(table.refresh(), [theta(table, 1)])


def test_what_is_odd_about_kept_entries_is_said(table):
    register(table, write_foreign(table, theta(table, 3)), [3], ndv="12.5")
    plan = prepare_commit(table.refresh(), [theta(table, 1)])
    assert any("12.5" in warning and "Trino" in warning for warning in plan.warnings)


def test_the_metadata_path_of_the_table_is_honoured(catalog, tmp_path):
    properties = {"write.metadata.path": f"file://{tmp_path}/elsewhere"}
    table = catalog.create_table("db.moved", schema=ROWS.schema, properties=properties)
    table.append(ROWS)
    result = commit(table, theta(table, 1))
    assert Path(result.statistics_path[7:]).parent == tmp_path / "elsewhere"


def test_removing_undoes_a_commit(table):
    snapshot_id = table.current_snapshot().snapshot_id
    first = commit(table, theta(table, 1))
    removed = remove_statistics(table, snapshot_id)
    assert removed.statistics_path == first.statistics_path
    assert entries(table) == []
    assert statistics_files(table) == [Path(first.statistics_path).name]
    second = commit(table.refresh(), theta(table, 2))
    remove_statistics(table, snapshot_id, delete_file=True)
    assert statistics_files(table) == [Path(first.statistics_path).name]
    assert not Path(second.statistics_path[7:]).exists()
    with pytest.raises(StatisticsMissingError):
        remove_statistics(table, snapshot_id)


def test_a_removal_is_shown_before_it_is_done_and_changes_nothing_then(table):
    first = commit(table, theta(table, 1), kll(table, 2))
    before = metadata_files(table)
    text = prepare_removal(table, table.current_snapshot().snapshot_id).describe()
    assert f"would take {first.statistics_path} out of the table: {first.file_size_bytes:,} bytes, 2 blobs" in text
    assert "after:  none" in text
    assert "without the NDV of a" in text
    assert metadata_files(table) == before
    assert listed(table) == [(THETA, (1,), "2")]


def test_a_removal_can_put_back_what_the_commit_replaced(table):
    snapshot_id = table.current_snapshot().snapshot_id
    first = commit(table, theta(table, 1, b"first", ndv="1"), kll(table, 2))
    commit(table, theta(table, 1, b"second", ndv="2"), theta(table, 3))
    plan = prepare_removal(table, snapshot_id, restore=True)
    assert plan.after == first.after
    assert "without the NDV of c" in plan.describe()
    commit_removal(plan)
    assert listed(table) == [(THETA, (1,), "1")]
    assert stored(table) == {(THETA, (1,)): b"first", (KLL, (2,)): b"kll"}
    remove_statistics(table, snapshot_id)
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
    assert plan.after is None
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


class Rest(BaseHTTPRequestHandler):
    """As much of the REST catalog protocol as a commit takes, over PyIceberg's SQL catalog."""

    catalog: SqlCatalog
    requirements: list

    def log_message(self, *_):
        return

    def answer(self, status, document):
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_table(self, metadata, location):
        document = {"metadata-location": location, "metadata": json.loads(metadata.model_dump_json()), "config": {}}
        self.answer(200, document)

    def do_GET(self):
        if self.path.startswith("/v1/config"):
            self.answer(200, {"defaults": {}, "overrides": {}})
            return
        table = self.catalog.load_table("db.t")
        self.answer_table(table.metadata, table.metadata_location)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = CommitTableRequest.model_validate_json(body)
        self.requirements.append([r.type for r in request.requirements])
        table = self.catalog.load_table("db.t")
        try:
            response = self.catalog.commit_table(table, request.requirements, request.updates)
        except CommitFailedException as error:
            self.answer(409, {"error": {"message": str(error), "type": "CommitFailedException", "code": 409}})
            return
        self.answer_table(response.metadata, response.metadata_location)


@pytest.fixture
def rest_table(table, tmp_path):
    with open_catalog(tmp_path, "?check_same_thread=false") as backend:
        handler = type("Handler", (Rest,), {"catalog": backend, "requirements": []})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = False
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            with RestCatalog("r", uri=f"http://127.0.0.1:{server.server_port}") as rest:
                yield rest.load_table("db.t")
            server.shutdown()
            thread.join()


def test_through_a_rest_catalog_what_others_commit_in_between_is_put_back(table, rest_table):
    commit(table, kll(table, 3, b"first"))
    done = []

    def interfere(name):
        if name == "committing" and len(done) < 2:
            done.append(name)
            commit(table.refresh(), theta(table, 2, b"theirs"), kll(table, 1, b"theirs %d" % len(done)))

    plan = prepare_commit(rest_table, [theta(table, 1, b"mine")])
    result = commit_statistics(plan, on_step=interfere)
    assert result.attempts == 3
    assert stored(table) == {
        (THETA, (1,)): b"mine",
        (THETA, (2,)): b"theirs",
        (KLL, (1,)): b"theirs 2",
        (KLL, (3,)): b"first",
    }
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (2,), "2")]


def test_through_a_rest_catalog_a_snapshot_expired_in_between_is_undone(table, rest_table):
    old = table.current_snapshot()
    table.append(ROWS)

    def expire(name):
        if name == "committing":
            table.refresh().maintenance.expire_snapshots().by_id(old.snapshot_id).commit()

    plan = prepare_commit(rest_table, [blob(table, KLL, 1, b"old", old)], snapshot_id=old.snapshot_id)
    with pytest.raises(CommitError, match="was expired meanwhile"):
        commit_statistics(plan, on_step=expire)
    assert entries(table) == []
    assert statistics_files(table) == []


def test_through_a_rest_catalog_a_changed_schema_is_noticed(table, rest_table):
    def drop(name):
        if name == "committing" and "c" in table.refresh().schema().column_names:
            with table.update_schema() as update:
                update.delete_column("c")

    result = commit_statistics(prepare_commit(rest_table, [theta(table, 1), theta(table, 3)]), on_step=drop)
    assert result.attempts == 2
    assert listed(table) == [(THETA, (1,), "2")]
    remove_statistics(rest_table, table.current_snapshot().snapshot_id)
    assert entries(table) == []
