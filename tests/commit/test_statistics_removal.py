"""Removing statistics undoes a commit, puts back what it replaced, and takes nothing of others."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pyiceberg.table
import pytest
from sqlalchemy import event

from icestats.commit import table_state
from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.statistics_removal import commit_removal, prepare_expired_removal, prepare_removal
from icestats.errors import CommitError, StatisticsMissingError
from icestats.iceberg.metadata import PartitionStatisticsFile, StatisticsFile
from icestats.iceberg.metadata_json import read_metadata
from icestats.table.statistics import build_removal_report
from tests.committed_statistics import (
    KLL,
    ROWS,
    THETA,
    commit,
    entries,
    kll,
    listed,
    metadata_files,
    open_catalog,
    register,
    remove,
    statistics_files,
    stored,
    theta,
    write_foreign,
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


def test_a_removal_says_where_spark_estimates_no_rows_by_an_ndv_that_it_lists_again(table):
    commit(table, theta(table, 1), theta(table, 3))
    commit(table, theta(table, 1), list_ndv=[])
    said = [remove(table, restore=True).describe() for _ in range(2)]
    assert "estimates 0 rows for an equality on a" in said[0]
    assert "estimates 0 rows" not in said[1]


@pytest.mark.parametrize("versions", [25, 4])
def test_what_others_have_committed_since_is_not_in_the_way_of_what_is_put_back(table, versions, monkeypatch):
    if versions == 4:
        monkeypatch.setattr(table_state, "_LOG_ENTRIES_TO_SEARCH", 3)
    snapshot_id = table.current_snapshot().snapshot_id
    first = commit(table, theta(table, 1, ndv="1"))
    commit(table, theta(table, 1, ndv="2"))
    for i in range(versions):
        with table.refresh().transaction() as transaction:
            transaction.set_properties({"owner": str(i)})
    plan = prepare_removal(table, snapshot_id, restore=True)
    if versions == 25:
        assert [removal.after for removal in plan.removals] == [first.after]
        assert plan.notes == ()
    else:
        assert "cannot be put back: " in plan.notes[0]
        assert "they stand in each of the last 3 versions, and no more are looked through" in plan.notes[0]


def test_an_encrypted_file_is_put_back_with_its_key(table):
    register(table, write_foreign(table, theta(table, 1)), [1], **{"key-metadata": "c2VjcmV0"})
    before = entries(table)
    register(table, write_foreign(table, theta(table, 2)), [2])
    remove(table, restore=True)
    [after] = entries(table)
    assert after.model_copy(update={"statistics_path": before[0].statistics_path}) == before[0]
    assert before[0].key_metadata == "c2VjcmV0"


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


def register_partitions(table, snapshot_id=None, name="p"):
    """Register a partition statistics file as Iceberg for Java does."""
    snapshot_id = snapshot_id or table.current_snapshot().snapshot_id
    return commit_partition_statistics(
        table, prepare_partition_commit(table, snapshot_id, b"PAR1" + name.encode(), "parquet")
    )


def partition_entries(table):
    return [f.statistics_path for f in table.catalog.load_table(table.name()).metadata.partition_statistics]


def test_partition_statistics_go_with_the_rest_in_one_commit_unless_they_are_to_stay(table):
    commit(table, theta(table, 1))
    registered = register_partitions(table).file.statistics_path
    before = len(metadata_files(table))
    plan = remove(table, partitions=False)
    assert f"would take {registered}" not in plan.describe()
    assert (entries(table), partition_entries(table)) == ([], [registered])
    commit(table, theta(table, 1))
    plan = remove(table)
    assert len(metadata_files(table)) == before + 3
    assert f"would take {registered} out of the table: 5 bytes, statistics of partitions" in plan.describe()
    assert (entries(table), partition_entries(table)) == ([], [])
    registered = register_partitions(table).file.statistics_path
    remove(table)
    assert partition_entries(table) == []


def test_partition_statistics_that_are_to_stay_are_not_in_the_way_of_what_is_put_back(table):
    commit(table, theta(table, 1))
    before = entries(table)
    registered = register_partitions(table).file.statistics_path
    commit(table, theta(table, 2))
    plan = remove(table, restore=True, partitions=False)
    assert registered not in plan.describe()
    assert [entry.blob_metadata for entry in entries(table)] == [entry.blob_metadata for entry in before]
    assert partition_entries(table) == [registered]


def test_what_others_replace_while_a_removal_is_committed_is_not_taken_for_removed(table, tmp_path):
    commit(table, theta(table, 1))
    registered = register_partitions(table).file.statistics_path
    plan = prepare_removal(table, table.current_snapshot().snapshot_id)
    engine, done = table.catalog.engine, []

    def commit_first(connection, cursor, statement, *rest):
        if statement.startswith("UPDATE") and not done:
            done.append(statement)
            with open_catalog(tmp_path) as other:
                commit(other.load_table("db.t"), theta(table, 2))

    event.listen(engine, "before_cursor_execute", commit_first)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert done
    assert partition_entries(table) == [registered]
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (2,), "2")]


def test_a_removal_is_not_taken_for_done_where_an_older_version_is_registered_meanwhile(table, tmp_path):
    """Though the log of that version has one that looks as the removal would have made the table look."""
    commit(table, theta(table, 1, ndv="1"))
    commit(table, theta(table, 1, ndv="2"))
    plan, done = prepare_removal(table.refresh(), table.current_snapshot().snapshot_id), []

    def register_older(connection, cursor, statement, parameters, context, many):
        if statement.startswith("UPDATE") and not done:
            done.append(True)
            with open_catalog(tmp_path) as other:
                older = table.refresh().metadata.metadata_log[-1].metadata_file
                other.drop_table("db.t")
                other.register_table("db.t", older)

    event.listen(table.catalog.engine, "before_cursor_execute", register_older)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert done
    assert listed(table) == [(THETA, (1,), "1")]


def test_a_restore_that_did_not_arrive_is_an_error(table, tmp_path):
    """Though the metadata log has a version that looks as it would have made the table look."""
    commit(table, theta(table, 1, ndv="1"))
    commit(table, theta(table, 1, ndv="2"))
    other = sqlite3.connect(tmp_path / "catalog.db")
    with open_catalog(tmp_path, "?timeout=0.05") as impatient:
        plan = prepare_removal(impatient.load_table("db.t"), table.current_snapshot().snapshot_id, restore=True)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CommitError, match=r"database is locked.* not seen in the metadata"):
            commit_removal(plan)
    other.rollback()
    other.close()
    assert listed(table) == [(THETA, (1,), "2")]
    commit_removal(plan)
    assert listed(table) == [(THETA, (1,), "1")]


def test_a_removal_goes_back_to_before_the_last_commit_and_no_further(table):
    """What that commit did not touch stays; what both kinds were before comes back."""
    snapshot_id = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1, ndv="1"))
    old = register_partitions(table, name="old").file.statistics_path
    commit(table, theta(table, 1, ndv="2"))
    assert len(remove(table, snapshot_id, restore=True).removals) == 1
    assert (listed(table), partition_entries(table)) == ([(THETA, (1,), "1")], [old])
    new = prepare_partition_commit(table.refresh(), snapshot_id, b"PAR1new", "parquet")
    commit_statistics(replace(prepare_commit(table, [theta(table, 1, ndv="3")]), partitions=new))
    assert (listed(table), partition_entries(table)) == ([(THETA, (1,), "3")], [new.file.statistics_path])
    remove(table, snapshot_id, restore=True)
    assert listed(table) == [(THETA, (1,), "1")]
    assert [Path(path[7:]).read_bytes() for path in partition_entries(table)] == [b"PAR1old"]


def test_going_back_again_and_again_ends_before_the_first_commit(table):
    """What has been put back is a copy, and what stood before it was made comes next: not what it has replaced."""
    snapshot_id = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1, ndv="1"))
    register_partitions(table, name="old")
    commit(table, theta(table, 1, ndv="2"))
    new = prepare_partition_commit(table.refresh(), snapshot_id, b"PAR1new", "parquet")
    commit_statistics(replace(prepare_commit(table, [theta(table, 1, ndv="3")]), partitions=new))
    seen = []
    for _ in range(4):
        remove(table, snapshot_id, restore=True)
        partitions = [Path(path[7:]).read_bytes() for path in partition_entries(table)]
        seen.append(([ndv for _, _, ndv in listed(table)], partitions))
    assert seen == [(["2"], [b"PAR1old"]), (["1"], [b"PAR1old"]), (["1"], []), ([], [])]


def test_going_back_again_and_again_goes_by_what_others_have_committed_too(table):
    """Their files say nothing of themselves, and those of partition statistics could not."""
    for field_id in (1, 2, 3):
        register(table, write_foreign(table, theta(table, field_id)), [field_id])
    for name in "abc":
        register_partitions(table, name=name)
    seen = []
    for _ in range(6):
        remove(table, restore=True)
        partitions = [Path(path[7:]).read_bytes()[4:].decode() for path in partition_entries(table)]
        seen.append(([ids[0] for _, ids, _ in listed(table)], partitions))
    assert seen == [([3], ["b"]), ([3], ["a"]), ([3], []), ([2], []), ([1], []), ([], [])]


def test_what_is_committed_after_a_restore_is_undone_before_it(table):
    snapshot_id = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1, ndv="1"))
    commit(table, theta(table, 1, ndv="2"))
    remove(table, snapshot_id, restore=True)
    register_partitions(table, name="new")
    remove(table, snapshot_id, restore=True)
    assert (listed(table), partition_entries(table)) == ([(THETA, (1,), "1")], [])
    commit(table, theta(table, 2, ndv="4"))
    remove(table, snapshot_id, restore=True)
    assert listed(table) == [(THETA, (1,), "1")]
    remove(table, snapshot_id, restore=True)
    assert entries(table) == []


def test_what_is_put_back_does_not_go_with_the_earlier_files_that_others_remove_as_orphans(table):
    """They do it while the restore is committed: it has looked for the files before."""
    snapshot_id = table.current_snapshot().snapshot_id
    files = [
        Path(commit(table, theta(table, 1, b"first", ndv="1")).statistics_path[7:]),
        Path(register_partitions(table, name="first").file.statistics_path[7:]),
    ]
    new = prepare_partition_commit(table.refresh(), snapshot_id, b"PAR1new", "avro")
    commit_statistics(replace(prepare_commit(table, [theta(table, 1, ndv="2")]), partitions=new))

    def remove_orphans(connection, cursor, statement, *rest):
        if statement.startswith("UPDATE"):
            for file in files:
                file.unlink()

    event.listen(table.catalog.engine, "before_cursor_execute", remove_orphans)
    done = remove(table, restore=True)
    assert not any(file.exists() for file in files)
    assert stored(table) == {(THETA, (1,)): b"first"}
    [restored] = partition_entries(table)
    assert (Path(restored[7:]).read_bytes(), Path(restored).suffix) == (b"PAR1first", ".parquet")
    assert [removal.after.statistics_path for removal in done.removals] == [
        entries(table)[0].statistics_path,
        restored,
    ]
    assert f"wrote a copy of file://{files[0]}: " in done.describe(done=True)


def test_a_restore_whose_earlier_file_goes_before_it_is_read_removes_nothing(table):
    first = commit(table, theta(table, 1))
    commit(table, theta(table, 2))
    plan = prepare_removal(table, table.current_snapshot().snapshot_id, restore=True)
    before = entries(table)
    Path(first.statistics_path[7:]).unlink()
    with pytest.raises(CommitError, match=r"nothing was removed, as .* cannot be put back: .*\.stats"):
        commit_removal(plan)
    assert entries(table) == before


def test_a_file_of_which_only_a_part_is_read_is_not_put_back(table):
    """The look at its length was before, and the beginning of partition statistics says nothing of their end."""
    old = register_partitions(table, name="old").file.statistics_path
    register_partitions(table, name="new")
    plan = prepare_removal(table, table.current_snapshot().snapshot_id, restore=True)
    assert [removal.after.statistics_path for removal in plan.removals] == [old]
    Path(old[7:]).write_bytes(b"PAR1ol")
    with pytest.raises(CommitError, match=r"nothing was removed, .* 6 bytes were read, expected 7"):
        commit_removal(plan)


def test_a_file_that_is_longer_than_its_entry_says_is_not_put_back(table):
    path = write_foreign(table, theta(table, 1))
    register(table, path, [1])
    commit(table, theta(table, 2))
    with Path(path[7:]).open("ab") as stream:
        stream.write(b"x")
    plan = prepare_removal(table, table.current_snapshot().snapshot_id, restore=True)
    assert [removal.after for removal in plan.removals] == [None]
    assert "bytes, expected " in plan.notes[0]


@pytest.mark.parametrize("kind", ["statistics", "partition-statistics"])
def test_what_is_no_file_of_statistics_is_not_put_back(table, tmp_path, kind):
    """A metadata log may name any file: a copy of it would lie where the table does."""
    commit(table, theta(table, 1))
    secret = tmp_path / "secret.parquet"
    secret.write_text("mine alone")
    path = Path(table.refresh().metadata_location[7:])
    document = json.loads(path.read_text())
    snapshot_id, size = document["current-snapshot-id"], secret.stat().st_size
    named = {"snapshot-id": snapshot_id, "statistics-path": f"file://{secret}", "file-size-in-bytes": size}
    earlier = document | {"statistics": [], kind: [named | {"file-footer-size-in-bytes": 4, "blob-metadata": []}]}
    path.with_name("0.metadata.json").write_text(json.dumps(earlier))
    document["metadata-log"] += [{"metadata-file": f"file://{path.with_name('0.metadata.json')}", "timestamp-ms": 1}]
    document["metadata-log"][-1]["timestamp-ms"] = document["last-updated-ms"]
    path.write_text(json.dumps(document))
    plan = prepare_removal(table, snapshot_id, restore=True)
    assert [removal.after for removal in plan.removals] == [None]
    assert "cannot be put back: " in plan.notes[0]
    planned = replace(plan.removals[0], after=_entry(secret, snapshot_id, kind))
    with pytest.raises(CommitError, match="nothing was removed, as what was there before cannot be put back"):
        commit_removal(replace(plan, removals=(planned,)))
    assert not [one for one in path.parent.iterdir() if b"mine alone" in one.read_bytes()]


def _entry(path, snapshot_id, kind):
    size = path.stat().st_size
    if kind == "statistics":
        return StatisticsFile(snapshot_id, f"file://{path}", size, 4, ())
    return PartitionStatisticsFile(snapshot_id, f"file://{path}", size)


def test_a_version_that_the_log_names_again_and_again_is_read_once(table, monkeypatch):
    commit(table, theta(table, 1))
    path = Path(table.refresh().metadata_location[7:])
    document = json.loads(path.read_text())
    document["metadata-log"] = [{"metadata-file": f"file://{path}", "timestamp-ms": document["last-updated-ms"]}] * 50
    path.write_text(json.dumps(document))
    read: list[str] = []
    monkeypatch.setattr(table_state, "read_metadata", lambda files, one: read.append(one) or read_metadata(files, one))
    prepare_removal(table, table.current_snapshot().snapshot_id, restore=True)
    assert read == [f"file://{path}"]


def test_an_interrupt_of_a_restore_names_the_copy_that_it_leaves(table):
    commit(table, theta(table, 1))
    commit(table, theta(table, 2))
    plan = prepare_removal(table, table.current_snapshot().snapshot_id, restore=True)
    before = set(statistics_files(table))

    def interrupt(_connection, _cursor, statement, *_):
        if statement.startswith("UPDATE"):
            raise KeyboardInterrupt

    event.listen(plan.table.catalog.engine, "before_cursor_execute", interrupt)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        commit_removal(plan)
    [copy] = set(statistics_files(table)) - before
    assert f"/{copy} is left on storage" in interrupted.value.__notes__[0]


@pytest.mark.parametrize("is_link", [False, True])
def test_no_file_but_those_beside_the_metadata_is_copied_to_be_put_back(table, tmp_path, is_link):
    """Statistics of another table, say: the copy would be where others read."""
    private = Path(write_foreign(table, theta(table, 1))[7:]).rename(tmp_path / "private.stats")
    links = [Path(table.location()[7:], "metadata", "link.stats")] if is_link else []
    for link in links:
        link.symlink_to(private)
    register(table, f"file://{[private, *links][-1]}", [1])
    register(table, write_foreign(table, theta(table, 2)), [2])
    before = set(statistics_files(table))
    done = remove(table, restore=True)
    assert "it is not beside the table's metadata.json" in done.notes[0]
    assert (entries(table), set(statistics_files(table))) == ([], before)


def test_nothing_is_put_back_for_a_snapshot_that_has_expired(table):
    old = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1))
    second = commit(table, theta(table, 2))
    table.append(ROWS)
    table.refresh().maintenance.expire_snapshots().by_id(old).commit()
    register(table, second.statistics_path, [1, 2], snapshot_id=old)
    done = remove(table, old, restore=True)
    assert done.notes == ("what these statistics have replaced is not put back: the snapshot has expired",)
    assert entries(table) == []


def test_a_restore_whose_snapshot_expires_before_it_is_made_says_so_at_once(table):
    """PyIceberg's expiry leaves the entry of partition statistics, which looks as if nothing had happened."""
    snapshot_id = table.current_snapshot().snapshot_id
    for data in (b"PAR1 first", b"PAR1 second"):
        commit_partition_statistics(table, prepare_partition_commit(table.refresh(), snapshot_id, data, "parquet"))
    plan = prepare_removal(table, snapshot_id, restore=True)
    table.refresh().append(ROWS)
    table.maintenance.expire_snapshots().by_id(snapshot_id).commit()
    with pytest.raises(CommitError, match=f"snapshot {snapshot_id} of db.t was expired meanwhile: nothing"):
        commit_removal(plan)


def test_entries_of_expired_snapshots_are_taken_out_together(table):
    """PyIceberg leaves the partition statistics of what it expires, and others may leave both."""
    old = table.current_snapshot().snapshot_id
    commit(table, theta(table, 1))
    orphaned = register_partitions(table).file.statistics_path
    table.append(ROWS)
    commit(table, kll(table, 1))
    kept = register_partitions(table).file.statistics_path
    path = entries(table)[0].statistics_path
    table.refresh().maintenance.expire_snapshots().by_id(old).commit()
    register(table, path, [1], snapshot_id=old)
    assert len(partition_entries(table)) == len(entries(table)) == 2
    without = prepare_expired_removal(table, partitions=False)
    assert [removal.before.statistics_path for removal in without.removals] == [path]
    plan = prepare_expired_removal(table)
    assert {removal.before.statistics_path for removal in plan.removals} == {path, orphaned}
    before = len(metadata_files(table))
    commit_removal(plan)
    assert len(metadata_files(table)) == before + 1
    assert partition_entries(table) == [kept]
    assert [entry.snapshot_id for entry in entries(table)] == [table.refresh().current_snapshot().snapshot_id]
    with pytest.raises(StatisticsMissingError, match="no statistics of expired snapshots"):
        prepare_expired_removal(table)


def test_no_file_of_an_expired_snapshot_is_opened(table):
    """There may be any number of them, each a request to the storage, most of them for nothing."""
    commit(table, theta(table, 1))
    path = entries(table)[0].statistics_path
    register(table, path, [1], snapshot_id=1)
    Path(path.removeprefix("file://")).unlink()
    report = build_removal_report(prepare_expired_removal(table), removed=False)
    blob = {"type": "apache-datasketches-theta-v1", "columns": ["a"]}
    assert [(one["blobs"], one["is_read"]) for one in report.taken_files] == [([blob], True)]
    assert "1 listed blob" in str(report)


def test_the_metadata_is_not_copied_for_each_of_many_expired_entries(table, monkeypatch):
    """PyIceberg applies all updates anew for each requirement."""
    register_partitions(table)
    path = Path(table.refresh().metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    (entry,) = document["partition-statistics"]
    document["partition-statistics"] += [{**entry, "snapshot-id": i} for i in range(100)]
    path.write_text(json.dumps(document))
    calls, update = [], pyiceberg.table.update_table_metadata
    monkeypatch.setattr(
        pyiceberg.table, "update_table_metadata", lambda *a, **k: calls.append(len(a[1])) or update(*a, **k)
    )
    commit_removal(prepare_expired_removal(table))
    assert partition_entries(table) == [entry["statistics-path"]]
    assert len(calls) < 5


def test_one_expired_snapshot_s_entry_can_be_taken_out_by_its_id(table):
    old = table.current_snapshot().snapshot_id
    register_partitions(table)
    table.append(ROWS)
    table.refresh().maintenance.expire_snapshots().by_id(old).commit()
    remove(table, old)
    assert partition_entries(table) == []
