"""Through a REST catalog a commit loses nothing of others either, though it is put right afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

import icestats
from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.statistics_removal import commit_removal, prepare_removal
from icestats.errors import CatalogError, CommitError, StatisticsMissingError
from tests.committed_statistics import (
    KLL,
    ROWS,
    THETA,
    blob,
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
from tests.rest_catalog import Rest, serve


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


def test_what_others_carry_over_of_a_commit_does_not_make_it_newer(table, rest_table, monkeypatch):
    """The second of them carries what the first one, which is about to be put back, has replaced."""
    commit(table, kll(table, 2, b"old"), kll(table, 3, b"old"))
    theirs, post = [kll(table, 2, b"first"), kll(table, 3, b"second")], Rest.do_POST

    def answer(request):
        if theirs:
            commit(table.refresh(), theirs.pop(0))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    result = commit(rest_table, theta(table, 1, b"mine"))
    assert result.attempts == 3
    assert stored(table) == {(THETA, (1,)): b"mine", (KLL, (2,)): b"first", (KLL, (3,)): b"second"}


def test_what_a_commit_that_arrives_late_carries_over_is_no_newer_than_what_it_has_replaced(
    table, rest_table, monkeypatch
):
    commit(table, kll(table, 1, b"old"), kll(table, 2, b"old"))
    late = prepare_commit(table.refresh(), [theta(table, 3, b"late")])
    Path(late.statistics_path.removeprefix("file://")).write_bytes(late.puffin.data)
    commit(table, kll(table, 1, b"new"))
    done, post = [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(register(table, late.statistics_path, [3], ndv="2"))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    assert stored(table) == {
        (THETA, (1,)): b"mine",
        (THETA, (3,)): b"late",
        (KLL, (1,)): b"new",
        (KLL, (2,)): b"old",
    }


def test_the_same_bytes_that_others_commit_after_a_removal_stay(table, rest_table, monkeypatch):
    """The commit on its way carries them over from before the removal, and takes them out again."""
    commit(table, theta(table, 2, b"same"))
    steps, done, post = [], [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(remove(table.refresh()))
        post(request)

    def interfere(name):
        steps.append(name)
        if steps.count("committed") == 1 and name == "committed":
            commit(rest_table.refresh(), theta(table, 2, b"same"))

    monkeypatch.setattr(Rest, "do_POST", answer)
    commit_statistics(prepare_commit(rest_table.refresh(), [theta(table, 1, b"mine")]), on_step=interfere)
    assert stored(table) == {(THETA, (1,)): b"mine", (THETA, (2,)): b"same"}
    assert sorted(listed(table)) == [(THETA, (1,), "2"), (THETA, (2,), "2")]


def test_what_others_remove_before_a_commit_puts_back_what_it_has_replaced_stays_out(table, rest_table):
    steps = []

    def interfere(name):
        steps.append(name)
        if steps.count("committing") == 1 and name == "committing":
            commit(table.refresh(), theta(table, 2, b"theirs"))
        if steps.count("committed") == 1 and name == "committed":
            remove(table.refresh())

    commit_statistics(prepare_commit(rest_table, [theta(table, 1, b"mine")]), on_step=interfere)
    assert entries(table) == []


def test_through_a_rest_catalog_too_a_type_that_pyiceberg_does_not_know_stays_listed(table, rest_table):
    presto = replace(kll(table, 2, b"theirs"), type="presto-kll-sketch-bytes-v1")
    listing = {"type": presto.type, "snapshot-id": presto.snapshot_id, "sequence-number": 1, "fields": [2]}
    register(table, write_foreign(table, presto), [], **{"blob-metadata": [listing]})
    commit(rest_table.refresh(), theta(table, 1))
    assert listed(table) == [(THETA, (1,), "2"), (presto.type, (2,), None)]
    remove(rest_table.refresh())
    assert listed(table) == []


def test_a_server_that_says_that_it_takes_no_commits_is_asked_for_none(table, tmp_path):
    """Nothing of a long scan is lost, and no file is left in case the commit still arrives."""
    backend, reads = (
        open_catalog(tmp_path, "?check_same_thread=false"),
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    )
    with backend, serve(backend, endpoints=[reads]) as uri, RestCatalog("r", uri=uri) as rest:
        plan = prepare_commit(rest.load_table("db.t"), [theta(table, 1)])
        assert plan.warnings[0].startswith(
            "cannot be committed: db.t takes no commit of PyIceberg: Server does not support"
        )
        with pytest.raises(CommitError, match="takes no commit of PyIceberg"):
            commit_statistics(plan)
    assert statistics_files(table) == []


def test_through_a_rest_catalog_both_files_are_committed_together_and_once(table, rest_table):
    """What was overridden is put back by a second commit, which needs no second partition statistics file."""
    done = []

    def interfere(name):
        if name == "committing" and not done:
            done.append(name)
            commit(table.refresh(), theta(table, 2, b"theirs"))

    partitions = prepare_partition_commit(rest_table, table.current_snapshot().snapshot_id, b"PAR1", "parquet")
    plan = replace(prepare_commit(rest_table, [theta(table, 1, b"mine")]), partitions=partitions)
    result = commit_statistics(plan, on_step=interfere)
    assert result.attempts == 2
    assert stored(table) == {(THETA, (1,)): b"mine", (THETA, (2,)): b"theirs"}
    [entry] = table.refresh().metadata.partition_statistics
    assert entry.statistics_path == result.partitions.file.statistics_path == partitions.file.statistics_path
    remove(rest_table)
    assert (entries(table), table.refresh().metadata.partition_statistics) == ([], [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 419])
def test_a_commit_that_was_taken_though_the_catalog_says_no_loses_no_file(table, rest_table, status, monkeypatch):
    """A proxy has sent the request again, since it lost the first answer, or lets nothing through that it is told."""
    monkeypatch.setattr(Rest, "taken_and", status)
    result = commit(rest_table, theta(table, 1))
    assert stored(table) == {(THETA, (1,)): b"theta"}
    assert statistics_files(table) == [Path(result.statistics_path).name]


def test_a_commit_of_which_nothing_is_known_is_not_said_to_be_none(table, rest_table, monkeypatch):
    """A token that has run out shows no table any more: what was refused may have been taken before."""
    gone = {"error": {"message": "gone", "type": "NoSuchTableException", "code": 404}}
    taken = Rest.do_POST

    def take_and_hide(request):
        monkeypatch.setattr(Rest, "do_GET", lambda own: own.answer(404, gone))
        taken(request)

    monkeypatch.setattr(Rest, "taken_and", 403)
    monkeypatch.setattr(Rest, "do_POST", take_and_hide)
    with pytest.raises(CommitError, match=r"is unknown \(.* no longer in its catalog\), and") as caught:
        commit(rest_table, theta(table, 1))
    assert "nothing was committed" not in str(caught.value)
    assert [name in str(caught.value) for name in statistics_files(table)] == [True]


def test_a_commit_of_which_others_have_replaced_a_part_by_then_loses_no_file(table, rest_table, monkeypatch):
    """The catalog says no to a request that was sent again, and logs no versions (Nessie)."""
    now, answer, done = table.current_snapshot().snapshot_id, Rest.answer, []

    def answer_late(request, status, document):
        document.get("metadata", {}).pop("metadata-log", None)
        if status == 409 and not done:
            done.append(commit_partition_statistics(table, prepare_partition_commit(table, now, b"theirs", "parquet")))
            monkeypatch.setattr(Rest, "taken_and", 0)
        answer(request, status, document)

    monkeypatch.setattr(Rest, "taken_and", 409)
    monkeypatch.setattr(Rest, "answer", answer_late)
    partitions = prepare_partition_commit(rest_table, now, b"mine", "parquet")
    commit_statistics(replace(prepare_commit(rest_table, [theta(table, 1)]), partitions=partitions))
    assert stored(table) == {(THETA, (1,)): b"theta"}
    [entry] = table.refresh().metadata.partition_statistics
    assert Path(entry.statistics_path[7:]).read_bytes() == b"theirs"


@pytest.mark.parametrize("restore", [False, True])
def test_through_a_rest_catalog_a_removal_takes_nothing_that_others_commit_in_between(
    table, rest_table, restore, monkeypatch
):
    """A server does as it is told, though the file is another than the one that the removal was planned with."""
    commit(rest_table, theta(table, 1, b"first"))
    commit(rest_table, theta(table, 1, b"second"))
    plan = prepare_removal(rest_table, table.current_snapshot().snapshot_id, restore=restore)
    done, post = [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(commit(table.refresh(), theta(table, 2, b"theirs")))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert stored(table) == {(THETA, (1,)): b"second", (THETA, (2,)): b"theirs"}
    assert entries(table)[0].statistics_path == done[0].statistics_path
    remove(rest_table, restore=restore)
    assert listed(table) == ([(THETA, (1,), "2")] if restore else [])


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("restore", [False, True])
def test_two_removals_of_both_files_at_once_leave_what_the_first_one_has(
    table, rest_table, restore, theirs, monkeypatch
):
    """The partition statistics that both take out are not put back, and what the first one has put back stays."""
    now = table.current_snapshot().snapshot_id
    commit(rest_table, theta(table, 1, b"first"))
    partitions = prepare_partition_commit(rest_table, now, b"PAR1", "parquet")
    commit_statistics(replace(prepare_commit(rest_table, [theta(table, 1, b"second")]), partitions=partitions))
    plan, done, post = prepare_removal(rest_table, now, restore=restore), [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(commit_removal(prepare_removal(table.refresh(), now, restore=theirs)))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    if restore or theirs:
        with pytest.raises(CommitError, match="meanwhile: nothing was removed, try again") as caught:
            commit_removal(plan)
        named = f"{caught.value} {entries(table)}"
        assert [name for name in statistics_files(table) if "-copy-of-" in name and name not in named] == []
        assert ("left on storage as an orphan" in str(caught.value)) == restore
    else:
        commit_removal(plan)
    assert table.refresh().metadata.partition_statistics == []
    assert ([] if not entries(table) else stored(table)) == ({(THETA, (1,)): b"first"} if theirs else [])


def test_what_is_put_back_of_a_snapshot_that_expires_at_that_moment_is_taken_out_again(table, rest_table, monkeypatch):
    """As Iceberg's Java library expires it, with its entries."""
    old = table.current_snapshot()
    table.append(ROWS)
    for payload in (b"first", b"second"):
        made = prepare_commit(rest_table.refresh(), [blob(table, KLL, 1, payload, old)], snapshot_id=old.snapshot_id)
        partitions = prepare_partition_commit(rest_table, old.snapshot_id, b"PAR1", "parquet")
        commit_statistics(replace(made, partitions=partitions if payload == b"second" else None))
    plan, done, post = prepare_removal(rest_table, old.snapshot_id, restore=True), [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(remove(table.refresh(), old.snapshot_id))
            table.refresh().maintenance.expire_snapshots().by_id(old.snapshot_id).commit()
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert (entries(table), table.refresh().metadata.partition_statistics) == ([], [])


@pytest.mark.parametrize("conflicts", [False, True])
@pytest.mark.parametrize("restore", [False, True])
def test_what_is_committed_while_a_removal_is_taken_back_is_kept_too(
    table, rest_table, restore, conflicts, monkeypatch
):
    """The first writer comes before the removal arrives, the second before what the first one wrote is put back."""
    commit(rest_table, theta(table, 1, b"first"))
    commit(rest_table, theta(table, 1, b"second"))
    plan = prepare_removal(rest_table, table.current_snapshot().snapshot_id, restore=restore)
    theirs, post = [[theta(table, 1, b"third"), kll(table, 2, b"theirs")], [kll(table, 3, b"others")]], Rest.do_POST
    sent = []

    def answer(request):
        sent.append(request)
        if theirs:
            commit(table.refresh(), *theirs.pop(0))
        if conflicts and len(sent) == 2:
            request.rfile.read(int(request.headers["Content-Length"]))
            request.answer(409, {"error": {"message": "changed", "type": "CommitFailedException", "code": 409}})
            return
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert stored(table) == {(THETA, (1,)): b"third", (KLL, (2,)): b"theirs", (KLL, (3,)): b"others"}
    assert listed(table) == [(THETA, (1,), "2")]


@pytest.mark.parametrize("conflicts", [False, True])
@pytest.mark.parametrize("restore", [False, True])
def test_what_others_carry_over_from_before_a_removal_that_is_taken_back_does_not_make_it_newer(
    table, rest_table, restore, conflicts, monkeypatch
):
    """The second of them looked before the removal arrived, and the first one: it carries what the first replaced."""
    commit(rest_table, kll(table, 1, b"old"))
    commit(rest_table, kll(table, 1, b"second"), kll(table, 2, b"second"), theta(table, 3, b"second"))
    plan = prepare_removal(rest_table, table.current_snapshot().snapshot_id, restore=restore)
    late = prepare_commit(rest_table.refresh(), [kll(table, 2, b"late"), kll(table, 3, b"late")])
    Path(late.statistics_path.removeprefix("file://")).write_bytes(late.puffin.data)
    sent, post = [], Rest.do_POST

    def answer(request):
        sent.append(request)
        if len(sent) == 1:
            commit(table.refresh(), kll(table, 1, b"first"), kll(table, 2, b"first"))
        if len(sent) == 2:
            register(table, late.statistics_path, [3], ndv="2")
        if len(sent) == 2 and conflicts:
            request.rfile.read(int(request.headers["Content-Length"]))
            request.answer(409, {"error": {"message": "changed", "type": "CommitFailedException", "code": 409}})
            return
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    with pytest.raises(CommitError, match="meanwhile: nothing was removed"):
        commit_removal(plan)
    assert stored(table) == {
        (KLL, (1,)): b"first",
        (KLL, (2,)): b"late",
        (KLL, (3,)): b"late",
        (THETA, (3,)): b"second",
    }
    assert listed(table) == [(THETA, (3,), "2")]


@pytest.mark.parametrize("restore", [False, True])
def test_what_others_remove_while_a_commit_is_on_its_way_does_not_come_back(table, rest_table, restore, monkeypatch):
    """The commit carries it over, as it was there when it looked; what an ancestor has is carried as before."""
    commit(table, kll(table, 3, b"ancestor"))
    table.append(ROWS)
    rest_table.refresh()
    commit(table, kll(table, 2, b"old"), keep_earlier=False)
    commit(table, theta(table, 2, b"removed"), keep_earlier=False)
    done, post = [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(remove(table.refresh(), restore=restore))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    result = commit(rest_table, theta(table, 1, b"mine"))
    kept = {(KLL, (2,)): b"old"} if restore else {}
    assert stored(table) == {(THETA, (1,)): b"mine", (KLL, (3,)): b"ancestor", **kept}
    assert (listed(table), result.attempts) == ([(THETA, (1,), "2")], 2)


@pytest.mark.parametrize("is_put_back", [False, True])
def test_what_others_commit_after_a_removal_is_what_a_commit_on_its_way_is_put_together_with(
    table, rest_table, is_put_back, monkeypatch
):
    commit(table, kll(table, 2, b"removed"))
    [before], done, post = entries(table), [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(remove(table.refresh()))
            if is_put_back:
                with table.refresh().update_statistics() as update:
                    update.set_statistics(before)
            commit(table.refresh(), kll(table, 3, b"theirs"))
        post(request)

    monkeypatch.setattr(Rest, "do_POST", answer)
    result = commit(rest_table, theta(table, 1, b"mine"))
    back = {(KLL, (2,)): b"removed"} if is_put_back else {}
    assert (result.attempts, stored(table)) == (2, {(THETA, (1,)): b"mine", (KLL, (3,)): b"theirs", **back})


def test_what_others_have_removed_and_cannot_be_left_out_again_is_said(table, rest_table, monkeypatch):
    commit(table, kll(table, 2, b"removed"))
    done, post = [], Rest.do_POST

    def answer(request):
        if not done:
            done.append(remove(table.refresh()))
            post(request)
        else:
            request.rfile.read(int(request.headers["Content-Length"]))
            request.answer(403, {"error": {"message": "no more", "type": "ForbiddenException", "code": 403}})

    monkeypatch.setattr(Rest, "do_POST", answer)
    said = "committed, but not together with what others committed, or took out, meanwhile .*no more"
    with pytest.raises(CommitError, match=said):
        commit(rest_table, theta(table, 1, b"mine"))
    monkeypatch.undo()
    remove(rest_table.refresh(), restore=True)
    commit(rest_table.refresh(), theta(table, 1, b"mine"))
    assert stored(table) == {(THETA, (1,)): b"mine"}


def test_where_the_catalog_logs_no_versions_a_commit_and_a_removal_say_that_they_could_not_look(
    table, rest_table, monkeypatch
):
    """So does Nessie."""
    answer = Rest.answer

    def answer_without_log(request, status, document):
        document.get("metadata", {}).pop("metadata-log", None)
        answer(request, status, document)

    monkeypatch.setattr(Rest, "answer", answer_without_log)
    result = commit(rest_table, theta(table, 1))
    assert [line for line in result.warnings if "could not be checked: the catalog logs no versions" in line]
    removed = commit_removal(prepare_removal(rest_table, result.snapshot_id))
    assert [note for note in removed.notes if "could not be checked: the catalog logs no versions" in note]


def test_a_removal_says_that_it_could_not_look_where_a_version_is_gone(table, rest_table, monkeypatch):
    """Others commit just before it, and their version of the metadata is deleted as soon as it is replaced."""
    commit(rest_table, theta(table, 1))
    plan, post = prepare_removal(rest_table, table.current_snapshot().snapshot_id), Rest.do_POST
    answer = Rest.answer

    def answer_late(request, status, document):
        if request.command == "POST":
            metadata_files(table)[-2].unlink()
        answer(request, status, document)

    def post_late(request):
        commit(table.refresh(), theta(table, 2, b"theirs"))
        post(request)

    monkeypatch.setattr(Rest, "answer", answer_late)
    monkeypatch.setattr(Rest, "do_POST", post_late)
    [note] = commit_removal(plan).notes
    assert "could not be checked: " in note
    assert "no such file" in note


@pytest.mark.parametrize("answer", ["a redirection", "the table as it was"])
def test_a_commit_that_the_catalog_has_not_done_is_not_said_to_be_done(table, rest_table, answer, monkeypatch):
    """A client follows a redirection of a commit by reading the table; a server may pass over what it does not know."""
    commit(rest_table, theta(table, 1))
    before = entries(table)

    def answer_without_doing(request):
        request.rfile.read(int(request.headers["Content-Length"]))
        if answer == "the table as it was":
            request.do_GET()
            return
        request.send_response(302)
        request.send_header("Location", request.path)
        request.send_header("Content-Length", "0")
        request.end_headers()

    monkeypatch.setattr(Rest, "do_POST", answer_without_doing)
    with pytest.raises(
        CommitError, match=r"has not done the commit of db\.t: .*it is not seen in the metadata"
    ) as error:
        commit(rest_table, theta(table, 2))
    assert all(name in str(error.value) for name in statistics_files(table) if name not in before[0].statistics_path)
    with pytest.raises(CommitError, match=r"has not done the commit of db\.t"):
        remove(rest_table)
    assert entries(table) == before


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


def test_snapshots_that_a_server_gives_only_when_asked_are_not_taken_for_expired(table, tmp_path):
    commit(table, theta(table, 1))
    table.append(ROWS)
    lazy = {"snapshot-loading-mode": "refs"}
    with open_catalog(tmp_path, "?check_same_thread=false") as backend, serve(backend, defaults=lazy) as uri:
        opened = icestats.load("db.t", catalog={"type": "rest", "uri": uri})
        with pytest.raises(StatisticsMissingError):
            opened.remove_statistics(expired=True)
        opened.compute(manifests=True).commit()
    assert (THETA, (1,)) in stored(table.refresh())


def test_earlier_versions_of_the_metadata_are_the_servers_to_delete(table, tmp_path, monkeypatch):
    table.transaction().set_properties({"write.metadata.delete-after-commit.enabled": "true"}).commit_transaction()
    kept = metadata_files(table)

    def answer_table(request, metadata, location):
        if request.command == "POST":
            metadata = metadata.model_copy(update={"metadata_log": metadata.metadata_log[-1:]})
        answered(request, metadata, location)

    answered = Rest.answer_table
    monkeypatch.setattr(Rest, "answer_table", answer_table)
    with open_catalog(tmp_path, "?check_same_thread=false") as backend, serve(backend) as uri:
        opened = icestats.load("db.t", catalog={"type": "rest", "uri": uri})
        assert opened.compute(manifests=True).commit().committed
    assert set(kept) < set(metadata_files(table))


def test_through_a_rest_catalog_a_changed_schema_is_noticed(table, rest_table):
    def drop(name):
        if name == "committing" and "c" in table.refresh().schema().column_names:
            with table.update_schema() as update:
                update.delete_column("c")

    result = commit_statistics(prepare_commit(rest_table, [theta(table, 1), theta(table, 3)]), on_step=drop)
    assert result.attempts == 2
    assert listed(table) == [(THETA, (1,), "2")]
    remove(rest_table)
    assert entries(table) == []


def test_interrupted_in_the_catalogs_call_the_command_names_the_file_that_it_leaves(table, tmp_path, monkeypatch):
    started = []

    def interrupt(request):
        request.rfile.read(int(request.headers["Content-Length"]))
        [command] = started
        command.send_signal(signal.SIGINT)
        command.wait(60)
        request.close_connection = True

    monkeypatch.setattr(Rest, "do_POST", interrupt)
    with open_catalog(tmp_path, "?check_same_thread=false") as backend, serve(backend) as uri:
        environment = {**os.environ, "PYICEBERG_CATALOG__R__TYPE": "rest", "PYICEBERG_CATALOG__R__URI": uri}
        program = "from icestats.cli.entry import main; main()"
        call = [sys.executable, "-c", program, "compute", "r.db.t", "--manifests", "--commit"]
        started.append(subprocess.Popen(call, env=environment, stderr=subprocess.PIPE, text=True))
        _, said = started[0].communicate(timeout=600)
    [left] = statistics_files(table)
    assert started[0].returncode == 130
    assert f"/{left} is left on storage" in said


IMPATIENT = {"type": "rest", "rest.client.socket-timeout-ms": "500"}


@pytest.mark.parametrize("at", ["/v1/config", "/v1/oauth/tokens", "/tables/t"])
def test_a_server_that_does_not_answer_is_not_waited_for_without_end(table, tmp_path, at, monkeypatch):
    parse, ended = Rest.parse_request, threading.Event()

    def parse_and_stall(request):
        return parse(request) and not (at in request.path and ended.wait(60))

    monkeypatch.setattr(Rest, "parse_request", parse_and_stall)
    backend = open_catalog(tmp_path, "?check_same_thread=false")
    with backend, serve(backend) as uri:
        keys = {"credential": "a:b", "oauth2-server-uri": f"{uri}{at}"} if "oauth" in at else {}
        with pytest.raises(CatalogError, match=r"Read timed out"):
            icestats.load("db.t", catalog={**IMPATIENT, **keys, "uri": uri})
        ended.set()


def test_a_commit_that_is_answered_too_late_is_found_to_be_done(table, tmp_path, monkeypatch):
    answer, ended = Rest.answer, threading.Event()

    def answer_late(request, *arguments):
        if request.command != "POST" or not ended.wait(60):
            answer(request, *arguments)

    monkeypatch.setattr(Rest, "answer", answer_late)
    backend = open_catalog(tmp_path, "?check_same_thread=false")
    with backend, serve(backend) as uri:
        report = icestats.load("db.t", catalog={**IMPATIENT, "uri": uri}).compute(manifests=True).commit()
        ended.set()
    assert report.committed
    assert [entry.statistics_path for entry in entries(table)] == [report.files[0]["path"]]
