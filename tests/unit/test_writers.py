"""A write leaves manifest statistics that are those of the manifests; when they fail, the rows are there."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CallError, CatalogError, CommitError, UnsupportedError
from icestats.iceberg.confined_io import ConfinedFileIO
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_age import THETA
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch
from icestats.table import writers
from tests.computed_statistics import compute_here
from tests.rest_catalog import Rest, serve
from tests.unit.conftest import small_rows

pytestmark = pytest.mark.usefixtures("no_cache")


def rows(ids: list[int]) -> pa.Table:
    at = pa.array([1_756_684_800_000_000 + i for i in ids], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "at": at, "price": [1.5] * len(ids), "name": ["w"] * len(ids)})


def answered_from_the_blob(table: icestats.Table) -> pa.Table:
    found = table.manifests()
    assert table._reader.known_rollups() is None
    return found


@pytest.mark.parametrize(
    "write",
    [
        lambda table: writers.append(table, rows([500, 501]), snapshot_properties={"who": "me"}),
        lambda table: writers.overwrite(table, rows([500])),
    ],
)
def test_after_each_kind_of_write_the_statistics_are_those_of_the_manifests(small_table, load, write):
    load().compute(manifests=True).commit()
    written = write(load())
    assert (written.message, written.statistics.committed) == ("", True)
    assert written.table.snapshot.snapshot_id == written.snapshot_id == load().snapshot.snapshot_id
    assert answered_from_the_blob(load()).equals(load().read().manifests())


def test_only_the_new_manifests_are_read(small_table, load):
    load().compute(manifests=True).commit()
    for location in load().manifest_files()["manifest_path"].to_pylist():
        path = local_path(location)
        path.write_bytes(bytes(path.stat().st_size))
    written = writers.append(load(), rows([700]))
    assert written.message == ""
    assert sum(answered_from_the_blob(load())["total_record_count"].to_pylist()) == 201


def test_where_the_statistics_fail_the_rows_are_there_and_the_message_says_how_to_catch_up(small_table, load, caplog):
    """The older manifests are damaged and nothing of them is known: their figures cannot be had."""
    for location in load().manifest_files()["manifest_path"].to_pylist():
        path = local_path(location)
        path.write_bytes(bytes(path.stat().st_size))
    with caplog.at_level(logging.WARNING, "icestats"):
        written = writers.append(load(), rows([700]))
    assert written.statistics is None
    assert "table.compute(manifests=True).commit()" in written.message
    assert written.message in caplog.messages
    assert load().snapshot.snapshot_id == written.snapshot_id
    assert load().snapshot.summary["total-records"] == "201"


@pytest.mark.parametrize("reads", [0, 1])
def test_where_the_catalog_fails_after_the_rows_they_are_said_to_be_there(small_table, load, reads, monkeypatch):
    refresh, done = icestats.Table.refresh, []

    def fail_late(table):
        if len(done) == reads:
            raise CatalogError("it does not answer")
        done.append(table)
        return refresh(table)

    monkeypatch.setattr(icestats.Table, "refresh", fail_late)
    written = writers.append(load(), rows([700]))
    assert load().metadata.current_snapshot_id == written.snapshot_id
    assert f"the rows are in snapshot {written.snapshot_id}" in written.message
    assert (written.statistics is not None, "catch up" in written.message) == (reads == 1, reads == 0)


def test_rows_that_do_not_fit_are_not_written(small_table, load):
    before = load().snapshot.snapshot_id
    with pytest.raises(CommitError, match="took no rows"):
        writers.append(load(), pa.table({"other": [1]}))
    assert load().snapshot.snapshot_id == before


def test_a_snapshot_that_others_make_right_after_is_not_the_writes(small_table, load, monkeypatch):
    refresh = icestats.Table.refresh

    def refresh_late(table):
        monkeypatch.undo()
        small_table.refresh().append(rows([900]))
        return refresh(table)

    table = load()
    monkeypatch.setattr(icestats.Table, "refresh", refresh_late)
    written = writers.append(table, rows([700]))
    assert written.snapshot_id == load().snapshot.parent_snapshot_id


def commit_ndv(table) -> int:
    snapshot = table.current_snapshot()
    sketch = ThetaSketch()
    sketch.update(hash_values(pa.array([1, 2, 3], pa.int64()), "long"))
    of = (snapshot.snapshot_id, snapshot.sequence_number)
    commit_statistics(prepare_commit(table, [NewBlob(THETA, (1,), *of, sketch.to_bytes(), {"ndv": "3"})]))
    return snapshot.snapshot_id


def test_a_write_hides_no_ndv_from_engines_nor_its_age_from_people(small_table, load):
    made_for = commit_ndv(small_table)
    report = writers.append(load(), rows([700])).statistics
    table = load()
    [file] = [file for file in table.metadata.statistics if file.snapshot_id == table.snapshot.snapshot_id]
    assert [(b.type, b.snapshot_id, b.properties["ndv"]) for b in file.blobs] == [(THETA, made_for, "3")]
    overview = table.overview()
    assert (overview.statistics_column_count, overview.statistics_commits_behind) == (1, 1)
    assert (overview.statistics_files_behind, overview.statistics_rows_behind) == (1, 1)
    assert "Trino and Spark still use what this snapshot's file lists" in overview.findings[0]
    provenance = dict(table.columns().to_pylist()[0]["provenance"])
    assert f"snapshot {made_for}, 1 commit behind" in provenance["ndv"]
    assert f"the kept NDV of id was made for snapshot {made_for}" in str(report)
    used = [row["used_by"] for row in table.sketches().to_pylist() if row["type"] == THETA]
    assert used == [["Spark", "Trino", "Impala", "icestats"], []]


def test_a_file_that_hides_ndvs_from_trino_says_so(small_table, load):
    made_for = commit_ndv(small_table)
    load().compute(manifests=True).commit()
    small_table.refresh().append(rows([700]))
    report = load().compute(manifests=True).commit(keep_earlier=False)
    assert f"hides those of snapshot {made_for}" in str(report)
    overview = load().overview()
    assert (overview.statistics_column_count, overview.statistics_commits_behind) == (1, 1)
    assert "Spark only those of the exact snapshot" in overview.findings[0]


def test_a_file_that_hides_ndvs_of_some_columns_from_trino_names_them(small_table, load):
    made_for = load().snapshot
    compute_here(load(), columns=["id", "price", "name"]).commit()
    small_table.refresh().append(rows([700]))
    found = compute_here(load(), columns=["id", "price"])
    hides = f"lists no NDV of {{}}, hides those of snapshot {made_for.snapshot_id};"
    assert hides.format("name") in str(found.commit(dry_run=True, keep_earlier=False))
    assert hides.format("price") in str(found.commit(dry_run=True, list_ndv=["id"]))
    assert "hides those" not in str(found.commit(dry_run=True))


def test_ndvs_that_were_listed_after_a_table_was_opened_are_not_hidden_without_a_word(small_table, load):
    made_for = load()
    small_table.refresh().append(rows([700]))
    opened = load()
    compute_here(made_for, columns=["id", "price"]).commit()
    report = compute_here(opened, columns=["id"]).commit(dry_run=True, keep_earlier=False)
    assert f"lists no NDV of price, hides those of snapshot {made_for.snapshot.snapshot_id};" in str(report)


@pytest.mark.parametrize("pin", [{"ref": "staging"}, {"ref": "release"}, {"as_of": "2100-01-01"}])
@pytest.mark.parametrize(
    "write",
    [
        lambda table: writers.append(table, rows([500])),
        lambda table: writers.overwrite(table, rows([500])),
        lambda table: writers.append_dataframe(table, None),
        lambda table: writers.overwrite_partitions(table, None),
    ],
)
def test_main_is_not_written_to_through_a_table_that_shows_something_else(catalog_properties, small_table, pin, write):
    snapshot_id = small_table.current_snapshot().snapshot_id
    small_table.manage_snapshots().create_branch(snapshot_id, "staging").create_tag(snapshot_id, "release").commit()
    table = icestats.load("db.small", catalog=catalog_properties, **pin)
    with pytest.raises(CallError, match="rows are written to main"):
        write(table)
    main = icestats.load("db.small", catalog=catalog_properties, ref="main")
    assert main.snapshot.snapshot_id == snapshot_id
    assert writers.append(main, rows([500])).statistics.committed


@pytest.mark.parametrize("name", ["spark.wap.id", "spark.wap.branch"])
def test_a_session_that_stages_its_writes_is_refused(catalog_properties, small_table, name):
    with small_table.transaction() as change:
        change.set_properties({"write.wap.enabled": "TRUE"})
    table = icestats.load("db.small", catalog=catalog_properties)
    known = {f"spark.sql.catalog.{table._source.catalog_name}": "known", name: "audit"}
    frame = SimpleNamespace(sparkSession=SimpleNamespace(conf=known, sparkContext=None))
    with pytest.raises(CallError, match=f"the session {name}, unset it"):
        writers.append_dataframe(table, frame)


def test_a_table_of_format_version_3_is_refused_before_a_file_is_written(small_table, load):
    path = local_path(small_table.metadata_location)
    document = json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 0}
    path.write_text(json.dumps(document))
    before = sorted(path.parent.parent.rglob("*"))
    with pytest.raises(UnsupportedError, match="has format version 3: PyIceberg"):
        writers.append(load(), rows([1]))
    assert sorted(path.parent.parent.rglob("*")) == before


def test_null_lists_and_maps_of_structs_stay_as_they_are(catalog, catalog_properties):
    """PyIceberg makes empty ones of them."""
    place = pa.struct([("x", pa.int64())])
    kept = pa.table(
        {
            "id": [1, 2, 3, 4],
            "items": pa.array([None, None, [{"x": None}, None], []], pa.list_(place)),
            "by_name": pa.array([[], None, [("k", None)], [("k", {"x": 1})]], pa.map_(pa.string(), place)),
        }
    )
    table = catalog.create_table("db.nested", kept.schema)
    writers.append(icestats.load("db.nested", catalog=catalog_properties), kept)
    tasks = table.refresh().scan().plan_files()
    found = [pq.read_table(task.file.file_path.removeprefix("file://")) for task in tasks]
    assert [one.to_pylist() for one in found] == [kept.to_pylist()]
    assert all(field.metadata[b"PARQUET:field_id"] for one in found for field in one.schema)


@pytest.fixture
def empty_table(catalog):
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("at", pa.int64()), ("name", pa.string())])
    return catalog.create_table("db.empty", schema)


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("write", [writers.append, writers.overwrite])
@pytest.mark.parametrize("give", [lambda rows: rows, pa.Table.to_reader])
def test_columns_go_by_their_names_whatever_the_field_ids_of_the_file_that_they_were_read_from(
    empty_table, catalog_properties, write, give
):
    def of(name, kind, field_id):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})

    other = pa.table([[1, 2], [3, 4]], pa.schema([of("at", pa.int64(), 1), of("id", pa.int64(), 3)]))
    write(icestats.load("db.empty", catalog=catalog_properties), give(other))
    found = empty_table.refresh().scan().to_arrow().select(["id", "at"])
    assert found.to_pydict() == {"id": [3, 4], "at": [1, 2]}


def test_no_bounds_are_written_where_a_row_group_has_none(empty_table, catalog_properties):
    """Parquet has none of values of more than 4,096 bytes; PyIceberg takes the other row groups for the file."""
    with empty_table.transaction() as transaction:
        transaction.set_properties({"write.parquet.row-group-limit": "100"})
    rows = {"id": range(200), "price": [math.nan] * 100 + [1.0] * 100, "name": ["m"] * 100 + ["z" * 5_000] * 100}
    writers.append(icestats.load("db.empty", catalog=catalog_properties), pa.table(rows))
    (file,) = [task.file for task in empty_table.refresh().scan().plan_files()]
    assert (file.lower_bounds.keys(), file.upper_bounds.keys()) == ({1, 2}, {1, 2})
    found = icestats.load("db.empty", catalog=catalog_properties)
    assert found.estimate("name > 'n'", actual=True).actual == 100


@pytest.mark.parametrize("status", [504, 403])
def test_rows_that_may_still_arrive_are_not_said_to_be_refused(small_table, status, monkeypatch):
    """A gateway gives up while the server is still at work; a server's no is one."""
    small_table.catalog.rename_table("db.small", "db.t")
    monkeypatch.setattr(Rest, "do_POST", lambda own: own.answer(status, {"error": {"message": "late", "type": "E"}}))
    with serve(small_table.catalog) as uri:
        table = icestats.load("r.db.t", catalog={"type": "rest", "uri": uri})
        with pytest.raises(CommitError) as caught:
            writers.append(table, rows([700]))
    assert ("took no rows" in str(caught.value), "may still arrive" in str(caught.value)) == (
        status == 403,
        status == 504,
    )


def test_rows_whose_answer_is_lost_are_found_behind_those_of_others(small_table, monkeypatch):
    small_table.catalog.rename_table("db.small", "db.t")
    table = small_table.catalog.load_table("db.t")

    def lose(request):
        commit(request)
        table.refresh().append(rows([900]))

    commit = Rest.do_POST
    monkeypatch.setattr(Rest, "taken_and", 504)
    monkeypatch.setattr(Rest, "do_POST", lose)
    with serve(small_table.catalog) as uri:
        loaded = icestats.load("r.db.t", catalog={"type": "rest", "uri": uri})
        with pytest.raises(CommitError, match="do not write them again") as caught:
            writers.append(loaded, rows([700]))
    assert f"in snapshot {table.current_snapshot().parent_snapshot_id}:" in str(caught.value)


def test_rows_stay_where_the_last_refusal_is_of_a_commit_that_was_taken(small_table, monkeypatch):
    """A proxy sends a request twice. PyIceberg deletes the files of what it takes for refused."""
    with small_table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "0"})
    small_table.catalog.rename_table("db.small", "db.t")
    monkeypatch.setattr(Rest, "taken_and", 409)
    with serve(small_table.catalog) as uri:
        written = writers.append(icestats.load("r.db.t", catalog={"type": "rest", "uri": uri}), rows([700]))
    table = small_table.catalog.load_table("db.t")
    assert (written.message, written.snapshot_id) == ("", table.metadata.current_snapshot_id)
    assert table.scan().to_arrow().num_rows == 201


@pytest.mark.parametrize("is_done", [False, True])
def test_an_answer_without_the_rows_is_not_taken_for_a_write_that_changed_nothing(small_table, is_done, monkeypatch):
    """A client follows a redirection of a commit by reading the table; a server may answer with the table as it was."""
    small_table.catalog.rename_table("db.small", "db.t")
    was = small_table.catalog.load_table("db.t")

    def answer_as_before(request):
        monkeypatch.setattr(Rest, "answer_table", lambda own, *_: answer(own, was.metadata, was.metadata_location))
        post(request)
        monkeypatch.setattr(Rest, "answer_table", answer)

    answer, post = Rest.answer_table, Rest.do_POST if is_done else Rest.do_GET
    monkeypatch.setattr(Rest, "do_POST", answer_as_before)
    with serve(small_table.catalog) as uri:
        table = icestats.load("r.db.t", catalog={"type": "rest", "uri": uri})
        said = "do not write them again" if is_done else "may still arrive"
        with pytest.raises(CommitError, match=f"without what was committed; its rows are .*{said}"):
            writers.append(table, rows([700]))


@pytest.mark.parametrize(("owner", "call"), [(SqlCatalog, "commit_table"), (icestats.Table, "compute")])
def test_an_interrupt_behind_the_commit_says_that_the_rows_are_there(small_table, load, owner, call, monkeypatch):
    """They are there where the catalog has been asked, and where their statistics are made."""

    def interrupted(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    table, real = load(), getattr(owner, call)
    monkeypatch.setattr(owner, call, interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        writers.append(table, rows([700]))
    assert small_table.refresh().scan().to_arrow().num_rows == 201
    assert any("writ" in note and "again" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("is_sent", [False, True])
def test_the_files_of_rows_that_were_not_taken_are_removed(small_table, load, is_sent, monkeypatch):
    """A storage fails at the second file; or others write between the files and their commit."""
    with small_table.transaction() as transaction:
        transaction.set_properties({"write.target-file-size-bytes": "65536"})
    table, give, commit = load(), ConfinedFileIO.new_output, SqlCatalog.commit_table

    def fail(self, location):
        if any(path.endswith(".parquet") for path in self.written):
            raise OSError(28, "No space left on device")
        return give(self, location)

    def commit_late(*arguments):
        monkeypatch.undo()
        small_table.append(rows([800]))
        return commit(*arguments)

    owner, name, call = (SqlCatalog, "commit_table", commit_late) if is_sent else (ConfinedFileIO, "new_output", fail)
    monkeypatch.setattr(owner, name, call)
    with pytest.raises(CommitError, match="took no rows"):
        writers.overwrite(table, rows(list(range(9000))))
    live = {local_path(path) for path in small_table.refresh().inspect.files()["file_path"].to_pylist()}
    assert set(local_path(small_table.location()).rglob("*.parquet")) == live


def test_files_that_are_being_written_when_another_fails_are_removed_too(small_table, load, monkeypatch):
    """PyIceberg writes some at a time, and raises where the first one fails."""
    table, give, begun, given = load(), ConfinedFileIO.new_output, set(), set()
    has_begun, has_failed = threading.Event(), threading.Event()

    def fail_at_first(self, location):
        if "/00000-0-" in location:
            assert has_begun.wait(60)
            has_failed.set()
            raise OSError(28, "No space left on device")
        begun.add(location)
        has_begun.set()
        assert has_failed.wait(60)
        # So long the first one's failure has time to end the write, were nothing waited for.
        time.sleep(0.3)
        given.add(location)
        return give(self, location)

    monkeypatch.setattr(ConfinedFileIO, "new_output", fail_at_first)
    with pytest.raises(CommitError, match="took no rows"):
        writers.append(table, small_rows(3))
    assert begun
    assert begun == given
    live = {local_path(path) for path in small_table.refresh().inspect.files()["file_path"].to_pylist()}
    assert set(local_path(small_table.location()).rglob("*.parquet")) == live
