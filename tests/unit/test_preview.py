"""The proposed manifest list: read back by the kit, refused by PyIceberg, and never written into the table itself."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import icestats
from icestats.errors import CallError, CommitError
from icestats.table import preview
from tests.full_disk import files_of_at_most


def known(entries):
    return {key: value for key, value in entries if value is not None}


def test_the_copy_has_the_proposals_fields_and_the_table_is_as_it_was(small_table, load, tmp_path):
    before = load()._source.metadata_location
    path = preview.write_preview_manifest_list(load(), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    copy = icestats.load(str(path))
    expected = load().manifests().to_pylist()
    for row, manifest in zip(preview.read_preview_manifest_list(copy).to_pylist(), expected, strict=True):
        assert row["manifest_path"] == manifest["manifest_path"]
        assert row["total_record_count"] == manifest["total_record_count"]
        assert dict(row["total_null_value_counts"]) == known(manifest["null_value_counts"])
        assert dict(row["lower_bounds"]) == known(manifest["lower_bounds"])
    assert copy.manifests().equals(load().manifests())
    assert load()._source.metadata_location == before


def test_nobody_deletes_the_tables_files_by_the_copy_or_writes_beside_them(small_table, load, tmp_path):
    """Iceberg expires no snapshots of a table whose `gc.enabled` is false, and does not purge it."""
    kept, places = {"owner": "ops"}, {"write.data.path": f"file://{tmp_path}/shared", "gc.enabled": "true"}
    with small_table.transaction() as transaction:
        transaction.set_properties(**kept, **places)
    path = preview.write_preview_manifest_list(load(), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    found = icestats.load(str(path)).metadata.properties
    assert (found["owner"], found["gc.enabled"], "write.data.path" in found) == ("ops", "false", False)


def test_metadata_that_is_gzipped_is_copied_too(small_table, load, tmp_path):
    path = Path(load()._source.metadata_location.removeprefix("file://"))
    zipped = path.with_name("9.gz.metadata.json")
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    table = icestats.load(str(zipped))
    copy = preview.write_preview_manifest_list(table, tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    assert icestats.load(str(copy)).manifests().equals(table.manifests())


def test_pyiceberg_cannot_read_the_copy(small_table, load, tmp_path):
    """Should this fail, PyIceberg has learned to skip maps: the page about manifest statistics says that it has not."""
    path = preview.write_preview_manifest_list(load(), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    with pytest.raises(Exception, match="not aligned for map"):
        StaticTable.from_metadata(str(path)).scan().to_arrow()


def test_it_must_be_said(small_table, load, tmp_path):
    with pytest.raises(CallError, match="i_know_this_breaks_pyiceberg=True"):
        preview.write_preview_manifest_list(load(), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_existing_folder_is_not_written_into(small_table, load, tmp_path):
    with pytest.raises(CallError, match="exists"):
        preview.write_preview_manifest_list(load(), tmp_path, i_know_this_breaks_pyiceberg=True)


def test_a_folder_that_somebody_makes_while_the_table_is_read_stays_theirs(small_table, load, tmp_path, monkeypatch):
    read = preview.read_document

    def read_late(*arguments):
        (tmp_path / "copy/metadata").mkdir(parents=True)
        return read(*arguments)

    monkeypatch.setattr(preview, "read_document", read_late)
    with pytest.raises(CallError, match="exists"):
        preview.write_preview_manifest_list(load(), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    assert (tmp_path / "copy/metadata").exists()


def test_a_copy_that_cannot_be_written_leaves_no_folder(small_table, load, tmp_path):
    table = load().read()
    with files_of_at_most(100), pytest.raises(CommitError, match=r"cannot be written: .*File too large"):
        preview.write_preview_manifest_list(table, tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    assert not (tmp_path / "copy").exists()


def test_a_list_without_the_fields_has_none(small_table, load):
    found = preview.read_preview_manifest_list(load())
    assert found["total_record_count"].null_count == len(found) == 2


def test_content_stats_are_typed_and_numbered_as_the_spec_has_them(small_table, load):
    file = pq.ParquetFile(io.BytesIO(preview.build_content_stats(load())))
    field = file.schema_arrow.field("content_stats")
    assert field.metadata[b"PARQUET:field_id"] == b"146"
    identifier = field.type.field("id")
    assert identifier.metadata[b"PARQUET:field_id"] == b"10200"
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in identifier.type}
    assert ids["lower_bound"] == 10201
    assert ids["null_value_count"] == 10205
    assert {f.name: f.metadata for f in field.type.field("price").type}["nan_value_count"] == {
        b"PARQUET:field_id": b"10606"
    }
    rows = file.read()["content_stats"].to_pylist()
    assert [(row["id"]["lower_bound"], row["id"]["upper_bound"]) for row in rows] == [(100, 199), (0, 99)]
    assert {row["price"]["nan_value_count"] for row in rows} == {None}


def test_the_proposals_fields_have_its_ids(small_table, load, tmp_path):
    preview.write_preview_manifest_list(load(), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    path = next((tmp_path / "copy/metadata").glob("snap-*.avro"))
    with path.open("rb") as file:
        fields = fastavro.reader(file).writer_schema["fields"]
    assert {field["field-id"]: field["name"] for field in fields if field["field-id"] > 520} == {
        521: "total_record_count",
        522: "total_file_size_in_bytes",
        523: "total_column_sizes",
        524: "total_null_value_counts",
        525: "total_nan_value_counts",
        526: "lower_bounds",
        527: "upper_bounds",
    }
