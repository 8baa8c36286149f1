"""Files added since a snapshot are found exactly; any other change is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import icestats
from icestats.errors import MetadataError
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.storage import Storage, local_path
from icestats.read.avro.avro_file import read_header
from icestats.scan.appended_files import find_appended_files, read_changed_files

ROWS = pa.table({"a": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def find(table, base_id):
    metadata = read_metadata(Storage(), table.metadata_location)
    snapshot = metadata.find_snapshot()
    changed = read_changed_files(Storage(), metadata, base_id, snapshot)
    return find_appended_files(table, metadata, base_id, snapshot, changed)


def paths(table, snapshot_id=None):
    return {task.file.file_path for task in table.scan(snapshot_id=snapshot_id).plan_files()}


def forge_operation(table, operation):
    """The table with another operation in the summary of its current snapshot: as a writer that lies."""
    path = local_path(table.metadata_location)
    document = json.loads(path.read_bytes())
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] == document["current-snapshot-id"]:
            snapshot["summary"]["operation"] = operation
    forged = path.with_name("forged.metadata.json")
    forged.write_text(json.dumps(document))
    return StaticTable.from_metadata(f"file://{forged}")


@pytest.mark.parametrize("merging", ["false", "true"])
def test_exactly_the_files_of_the_appends_are_found(table, merging):
    """Also where manifests have been merged, so that old files stand in new manifests."""
    table.transaction().set_properties(
        {"commit.manifest-merge.enabled": merging, "commit.manifest.min-count-to-merge": "2"}
    ).commit_transaction()
    base_id, before = table.current_snapshot().snapshot_id, paths(table)
    for _ in range(3):
        table.append(ROWS)
    assert (len(table.current_snapshot().manifests(table.io)) == 1) == (merging == "true")
    found = find(table, base_id)
    assert found.reason is None
    assert {task.file.file_path for task in found.tasks} == paths(table) - before
    assert (len(found.tasks), found.row_count) == (3, 9)


@pytest.mark.parametrize("merging", ["false", "true"])
def test_a_file_that_was_added_again_is_read_again(table, merging):
    """Also where one manifest has both: its rows are in the table as often as it is."""
    properties = {"commit.manifest-merge.enabled": merging, "commit.manifest.min-count-to-merge": "1"}
    table.transaction().set_properties(properties).commit_transaction()
    base_id, (path,) = table.current_snapshot().snapshot_id, paths(table)
    for _ in range(2):
        table.add_files([path.removeprefix("file://")], check_duplicate_files=False)
    assert (len(table.current_snapshot().manifests(table.io)) == 1) == (merging == "true")
    found = find(table, base_id)
    assert (found.reason, found.row_count, len(found.tasks)) == (None, 2 * len(ROWS), 2)


def test_nothing_came_since_the_snapshot_itself(table):
    found = find(table, table.current_snapshot().snapshot_id)
    assert (found.reason, found.tasks) == (None, ())


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (lambda table: table.delete("a = 1"), "overwrite"),
        (lambda table: table.delete("a > 0"), "delete"),
        (lambda table: table.overwrite(ROWS), "delete"),
    ],
)
def test_anything_but_appends_is_named(table, change, operation):
    base_id = table.current_snapshot().snapshot_id
    change(table)
    table.append(ROWS)
    found = find(table, base_id)
    assert found.tasks == ()
    assert f"of the operation {operation}" in found.reason or "append" not in found.reason


@pytest.mark.parametrize("operation", ["append", "replace"])
def test_an_operation_that_is_not_true_is_seen_by_the_manifests(table, operation):
    base_id = table.current_snapshot().snapshot_id
    table.append(ROWS)
    table.delete("a = 1")
    assert find(forge_operation(table, operation), base_id).reason == "data files have been removed since"


def test_a_snapshot_that_is_no_ancestor_is_refused(table):
    base_id = table.current_snapshot().snapshot_id
    table.append(ROWS)
    table.manage_snapshots().create_branch(base_id, "dev").commit()
    table.append(ROWS, branch="dev")
    branch_id = table.refresh().metadata.refs["dev"].snapshot_id
    assert "no ancestor" in find(table, branch_id).reason


def test_a_missing_manifest_is_an_error_and_no_empty_answer(table):
    base_id = table.current_snapshot().snapshot_id
    table.append(ROWS)
    for manifest in table.current_snapshot().manifests(table.io):
        Path(local_path(manifest.manifest_path)).unlink()
    with pytest.raises(MetadataError, match="no such file"):
        find(table, base_id)


def cut_manifest(table):
    """Cut the newest manifest behind its header, where PyIceberg sees no entries and no damage."""
    manifest = table.current_snapshot().manifests(table.io)[0]
    path = local_path(manifest.manifest_path)
    data = path.read_bytes()
    path.write_bytes(data[: read_header(data, str(path)).size_bytes])
    assert manifest.fetch_manifest_entry(table.io) == []


def test_a_manifest_that_ends_behind_its_header_is_no_empty_one(table):
    base_id = table.current_snapshot().snapshot_id
    table.append(ROWS)
    cut_manifest(table)
    with pytest.raises(MetadataError, match="bytes long, the manifest list says"):
        find(table, base_id)


def test_no_statistics_are_made_of_a_scan_that_lacks_files(table, catalog_properties):
    cut_manifest(table)
    with pytest.raises(MetadataError, match="bytes long, the manifest list says"):
        icestats.load("db.t", catalog={**catalog_properties, "name": "catalog"}).compute(table=True)
