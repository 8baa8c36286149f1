"""A manifest that a list names more than once is one manifest; what cannot be both is refused."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pytest
from pyiceberg.table import Table

import icestats
from icestats.iceberg.storage import check_distinct, local_path
from tests.computed_statistics import scan_table


def name_again(table: Table, **changes: object) -> str:
    """Add the first manifest of a table's list to it once more, with other values of some fields."""
    path = table.current_snapshot().manifest_list
    with Path(local_path(path)).open("rb") as file:
        reader = fastavro.reader(file)
        schema, records = dict(reader.writer_schema), list(reader)
    fields = [
        field | {"type": ["null", field["type"]]}
        if field["name"] in changes and changes[field["name"]] is None
        else field
        for field in schema["fields"]
    ]
    with Path(local_path(path)).open("wb") as file:
        fastavro.writer(file, schema | {"fields": fields}, [*records, records[0] | changes])
    return path


@pytest.mark.parametrize("changes", [{}, {"added_snapshot_id": None}])
def test_a_manifest_that_is_named_twice_is_read_once(small_table, catalog_properties, caplog, changes):
    """As Iceberg's Java library does, by every way of reading, from the cache too, and in what PyIceberg scans."""
    before = icestats.load("db.small", catalog=catalog_properties)
    expected, live_file_counts = before.columns(), before.manifests()["live_file_count"].to_pylist()
    path = name_again(small_table, **changes)
    for _ in range(2):
        table = icestats.load("db.small", catalog=catalog_properties)
        caplog.clear()
        assert table.manifests()["live_file_count"].to_pylist() == live_file_counts
        assert table.columns().equals(expected)
        assert f"{path} names 1 of its manifests again" in caplog.text
        assert sum(table.partitions()["data_record_count"].to_pylist()) == 200
        assert table.overview().record_count == 200
        assert table.plan("id < 150", rows=True).steps[-1].kept == 150
        assert table.estimate("id < 150", actual=True).actual == 150
        scanned = scan_table(table)
        assert scanned.row_count == 200
    assert small_table.scan().to_arrow().num_rows > 200, "PyIceberg itself still counts twice"


def test_a_manifest_of_both_contents_is_refused(small_table, catalog_properties):
    name_again(small_table, content=1)
    with pytest.raises(icestats.MetadataError, match="as one of data and as one of deletes"):
        icestats.load("db.small", catalog=catalog_properties).columns()


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_manifest_under_two_names_is_refused(small_table, catalog_properties, is_linked):
    """A few bytes of a list would have one small file read, and its entries kept, any number of times."""
    (manifest, *_) = small_table.inspect.manifests()["path"].to_pylist()
    folder, _, name = manifest.rpartition("/")
    if is_linked:
        path = Path(local_path(manifest))
        path.with_name("linked.avro").hardlink_to(path)
    name_again(small_table, manifest_path=f"{folder}/linked.avro" if is_linked else f"{folder}//{name}")
    table = icestats.load("db.small", catalog=catalog_properties)
    for ask in (table.files, table.columns, lambda: table.plan("id < 150")):
        with pytest.raises(icestats.MetadataError, match="it is the same file as"):
            ask()


def test_a_manifest_whose_name_no_file_can_have_is_refused_in_one_line(small_table, catalog_properties):
    """Python raises another error where it looks for such a file than where there is none."""
    name_again(small_table, manifest_path="/a\0b")
    table = icestats.load("db.small", catalog=catalog_properties)
    for ask in (table.manifests, table.files, lambda: table.plan("id < 150")):
        with pytest.raises(icestats.MetadataError, match=r"/a.b: cannot be read: .*embedded null "):
            ask()


def test_what_clients_of_objects_read_as_one_is_one():
    """They end a location at `?` and `#`: so many names have one object read as often."""
    check_distinct(["s3://b/m0", "s3://b/m1", "hdfs://h/a#b/m0", "hdfs://h/a#b/m1", "/a#b/m0", "/a#b/m1"])
    with pytest.raises(icestats.MetadataError, match=r"s3a://b/m0#2: it is the same file as s3://b/m0\?1"):
        check_distinct(["s3://b/m0?1", "s3a://b/m0#2"])
