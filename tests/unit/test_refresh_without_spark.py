"""Few new files are read in this process: no JVM, and a damaged file is an error in one line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, UUIDType

import icestats
from icestats.iceberg.storage import local_path
from icestats.read.puffin.committed_columns import read_committed_column
from icestats.read.puffin.statistics_files import CommittedBlobs, read_committed_blobs
from icestats.scan.scan_plan import SMALL_SCAN_BYTES, is_small, prepare_scan, scan_here
from icestats.stats.theta import ThetaSketch
from icestats.table.statistics import Statistics, find_unlisted
from tests.committed_statistics import THETA, blob, commit
from tests.computed_statistics import compute_here, scan_table

REFRESH = """
import sys
import icestats
properties = dict(type="sql", uri=sys.argv[1], warehouse=sys.argv[2])
found = icestats.load("db.t", catalog=properties).refresh_statistics()
assert not {"pyspark", "py4j"} & set(sys.modules), "Spark was imported"
print(found.added_file_count, found.added_row_count, found.found.row_count)
"""


def rows(start, stop):
    ids = np.arange(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i % 50}" for i in ids])})


@pytest.fixture
def appended(catalog, catalog_properties):
    """1,000 rows with committed statistics, then 10 more."""
    table = catalog.create_table("db.t", rows(0, 1).schema)
    table.append(rows(0, 1000))
    opened = icestats.load("db.t", catalog=catalog_properties)
    compute_here(opened).commit()
    table.append(rows(5000, 5010))
    return table


def test_a_refresh_of_few_files_imports_no_spark(appended, catalog_properties):
    command = [sys.executable, "-c", REFRESH, catalog_properties["uri"], catalog_properties["warehouse"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.split() == ["1", "10", "1010"]


def test_what_was_added_to_is_counted_exactly(appended, catalog_properties):
    refreshed = icestats.load("db.t", catalog=catalog_properties).refresh_statistics(columns=["id"])
    column = refreshed.found.find("id")
    assert (column.value_count, column.max_value) == (1010, (5009).to_bytes(8, "little"))
    assert refreshed.to_arrow()["ndv"].to_pylist() == [1010]
    assert refreshed.commit().committed
    fresh = icestats.load("db.t", catalog=catalog_properties)
    assert fresh.histogram("id", bins=2).n == 1010


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"PAR1 cut PAR1")])
def test_a_file_that_cannot_be_read_is_an_error_of_one_line(appended, catalog_properties, damage):
    newest = next(t.file for t in appended.refresh().scan().plan_files() if t.file.record_count == 10)
    damage(local_path(newest.file_path))
    with pytest.raises(icestats.IcestatsError, match=r"a data file of db\.t cannot be read") as caught:
        icestats.load("db.t", catalog=catalog_properties).refresh_statistics()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"Obj1 cut")])
@pytest.mark.parametrize("lost", ["manifest list", "manifest"])
def test_what_only_the_earlier_snapshot_has_is_no_loss(lost, damage, appended, catalog_properties, monkeypatch):
    """All live files are read, as where the table has changed otherwise; the reason is said."""
    monkeypatch.setattr(
        "icestats.spark.statistics_refresh.run_scan", lambda _, plan, sizes, **__: scan_here(plan, sizes)
    )
    monkeypatch.setattr("icestats.spark.statistics_refresh.find_session", lambda *_: None)
    merging = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    appended.transaction().set_properties(merging).commit_transaction()
    appended.append(rows(6000, 6010))
    first, *_, newest = appended.refresh().metadata.snapshots
    (manifest,) = first.manifests(appended.io)
    assert manifest.manifest_path not in [one.manifest_path for one in newest.manifests(appended.io)]
    path = first.manifest_list if lost == "manifest list" else manifest.manifest_path
    damage(local_path(path))
    refreshed = icestats.load("db.t", catalog=catalog_properties).refresh_statistics(columns=["id"])
    assert refreshed.found.find("id").value_count == 1020
    assert path in refreshed.scanned["id"]
    assert refreshed.commit().committed


def test_only_what_is_one_task_counts_as_small(appended, catalog_properties):
    opened = icestats.load("db.t", catalog=catalog_properties)
    plan = prepare_scan(opened._source, opened.snapshot, opened.schema)
    assert is_small(plan)
    size = sum(task.file.file_size_in_bytes for task in plan.tasks)
    assert not is_small(replace(plan, tasks=plan.tasks * (SMALL_SCAN_BYTES // size + 1)))
    assert not is_small(replace(plan, fallback="the table has equality deletes"))


def test_columns_that_were_left_unlisted_stay_so_unless_told(appended, catalog_properties):
    first = icestats.load("db.t", catalog=catalog_properties).refresh_statistics()
    assert first.unlisted == ()
    first.commit(list_ndv=["name"])
    appended.refresh().append(rows(6000, 6010))
    again = icestats.load("db.t", catalog=catalog_properties).refresh_statistics()
    assert again.unlisted == ("id",)
    for listed, options in ((["name"], {}), (["id", "name"], {"list_ndv": ["id", "name"]})):
        blobs = again.commit(dry_run=True, **options).files[0]["blobs"]
        assert [blob["columns"][0] for blob in blobs if blob["listed"]] == listed


@pytest.mark.parametrize(("asked", "listed"), [(None, ["id", "name"]), (["at"], ["at"])])
def test_a_refresh_lists_what_was_listed_whatever_is_read_for_it(asked, listed, catalog, catalog_properties):
    """Spark fails on a timestamp's NDV, and estimates 0 rows by a number's: who has left it out means so."""
    data = rows(0, 10).append_column("at", pa.array(range(10), pa.timestamp("us")))
    table = catalog.create_table("db.t", data.schema)
    table.append(data)
    opened = icestats.load("db.t", catalog=catalog_properties)
    found = scan_table(opened)
    assert set(find_unlisted(found, ())) == {"at"}, "nothing is committed yet"
    Statistics(opened._source, found).commit(list_ndv=asked)
    table.append(data)
    refreshed = icestats.load("db.t", catalog=catalog_properties).refresh_statistics()
    blobs = refreshed.commit().files[0]["blobs"]
    assert [blob["columns"][0] for blob in blobs if blob["listed"]] == listed
    fresh = icestats.load("db.t", catalog=catalog_properties)
    assert set(find_unlisted(found, fresh._reader.blobs)) == {"id", "name", "at"} - set(listed)


def test_a_refresh_lists_what_another_has_listed_since(appended, catalog_properties):
    """Such as ANALYZE of Trino, after a commit that left the column out."""
    icestats.load("db.t", catalog=catalog_properties).refresh_statistics().commit(list_ndv=["name"])
    appended.refresh().append(rows(6000, 6010))
    commit(appended, blob(appended, THETA, 1, ThetaSketch().to_bytes(), ndv="0"), keep_earlier=False)
    again = icestats.load("db.t", catalog=catalog_properties).refresh_statistics()
    assert again.unlisted == ()


def test_a_refresh_lists_what_is_listed_of_a_snapshot_that_has_expired(catalog, catalog_properties):
    data = pa.table({"at": pa.array(range(10), pa.timestamp("us")), "id": pa.array(range(10))})
    table = catalog.create_table("db.t", data.schema)
    table.append(data)
    first = table.current_snapshot().snapshot_id
    compute_here(icestats.load("db.t", catalog=catalog_properties)).commit(list_ndv=["at"])
    table.refresh().append(data)
    commit(table, blob(table, "x-other", 1, b"other"))
    table.refresh().maintenance.expire_snapshots().by_id(first).commit()
    opened = icestats.load("db.t", catalog=catalog_properties)
    assert find_unlisted(scan_table(opened), opened._reader.blobs) == ["id"]


def test_a_refresh_of_what_is_up_to_date_writes_nothing(appended, catalog_properties):
    def load():
        return icestats.load("db.t", catalog=catalog_properties)

    assert load().refresh_statistics().commit().committed
    folder = local_path(appended.metadata_location).parent
    before, location = sorted(folder.iterdir()), load()._source.metadata_location
    for dry_run in (True, False):
        report = load().refresh_statistics().commit(dry_run=dry_run)
        assert (report.committed, report.files) == (False, ())
        assert "nothing to commit" in str(report)
    assert (sorted(folder.iterdir()), load()._source.metadata_location) == (before, location)
    assert load().refresh_statistics().commit(list_ndv=["id"]).committed, "what is listed changes"


def test_a_theta_sketch_that_its_ndv_contradicts_is_not_added_to(appended, catalog_properties):
    """Another engine's, of the snapshot that the kit's own KLL sketch is of."""
    earlier = appended.refresh().metadata.snapshots[0]
    empty = blob(appended, THETA, 1, ThetaSketch().to_bytes(), earlier, ndv="1000")
    commit(appended, empty, snapshot_id=earlier.snapshot_id)
    opened = icestats.load("db.t", catalog=catalog_properties)
    blobs = CommittedBlobs(read_committed_blobs(opened._source.storage, opened._source.metadata, opened.snapshot))
    found = [read_committed_column(opened._source.storage, blobs, field) for field in opened.schema.columns]
    assert found[0] == "its Theta sketch has 0 distinct values, and its ndv says 1000"
    assert found[1].snapshot_id == earlier.snapshot_id


def test_a_theta_sketch_that_is_hashed_in_another_form_is_not_added_to(catalog, catalog_properties):
    """Trino keeps the kit's other blobs of a snapshot that it analyzes. Its hashes are of bytes, not of the text."""
    made = catalog.create_table("db.u", Schema(NestedField(1, "id", UUIDType())))
    made.append(pa.table({"id": pa.array([bytes([i] * 16) for i in range(9)], pa.uuid())}))
    opened = icestats.load("db.u", catalog=catalog_properties)
    compute_here(opened).commit()
    opened = icestats.load("db.u", catalog=catalog_properties)
    storage, (field,) = opened._source.storage, opened.schema.columns
    blobs = CommittedBlobs(read_committed_blobs(storage, opened._source.metadata, opened.snapshot))
    assert read_committed_column(storage, blobs, field).snapshot_id == opened.snapshot.snapshot_id
    for writer, whose in (("Trino version 476", "Trino's"), ("presto-0.287", "Presto's")):
        theirs = CommittedBlobs(replace(one, created_by=writer) for one in blobs)
        assert f"its Theta sketch is {whose}" in read_committed_column(storage, theirs, field)


def test_a_refresh_commits_where_the_snapshot_s_own_file_is_gone(appended, catalog_properties):
    """The same statistics may be in an earlier file, or be listed otherwise: engines look into the snapshot's own."""
    opened = icestats.load("db.t", catalog=catalog_properties)
    opened.refresh_statistics().commit()
    appended.refresh().append(rows(7000, 7010))
    icestats.load("db.t", catalog=catalog_properties).compute(manifests=True).commit()
    opened.remove_statistics()
    again = icestats.load("db.t", catalog=catalog_properties, snapshot=opened.snapshot.snapshot_id)
    refreshed = again.refresh_statistics()
    assert set(refreshed.added_to.values()) == {opened.snapshot.snapshot_id}
    assert refreshed.commit().committed


def test_a_refresh_lists_what_others_have_listed_since_it_was_made(appended, catalog_properties):
    """A scan may take minutes, in which ANALYZE of Trino lists an NDV, or a person takes one out."""
    table = icestats.load("db.t", catalog=catalog_properties)
    found = table.refresh_statistics(columns=["id", "name"])
    others = [blob(appended, THETA, field_id, ThetaSketch().to_bytes(), ndv="0") for field_id in (1, 2)]
    commit(appended, *others, list_ndv=["name"])
    found.commit()
    (entry,) = (one for one in appended.refresh().metadata.statistics if one.snapshot_id == table.snapshot.snapshot_id)
    assert [one.fields for one in entry.blob_metadata] == [[2]]
    found = table.refresh().refresh_statistics()
    found.commit(list_ndv=[])
    commit(appended, *others)
    found.commit()
    (entry,) = (one for one in appended.refresh().metadata.statistics if one.snapshot_id == table.snapshot.snapshot_id)
    assert [one.fields for one in entry.blob_metadata] == [[1], [2]]


def test_statistics_of_one_snapshot_in_two_files_are_not_taken_for_one(appended, catalog_properties):
    """Such as a sketch that Spark's procedure made of the snapshot's own types, and the kit's, of today's."""
    opened = icestats.load("db.t", catalog=catalog_properties)
    blobs = read_committed_blobs(opened._source.storage, opened._source.metadata, opened.snapshot)
    split = [one if one.blob.type == THETA else replace(one, statistics_path="another") for one in blobs]
    found = read_committed_column(opened._source.storage, CommittedBlobs(split), opened.schema.find("id"))
    assert "lack the KLL sketch" in found
