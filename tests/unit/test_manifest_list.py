"""Manifest lists: every codec, other writers' field names, and damage that never goes unnoticed."""

from __future__ import annotations

import contextlib
import io
import os
import random
from pathlib import Path

import fastavro
import pytest
from pyiceberg.table import Table

import icestats
from icestats.metadata import Snapshot
from icestats.read.manifest_list import read_manifest_list
from icestats.spark.scan_job import Sizes
from icestats.spark.scan_plan import plan_scan
from icestats.spark.small_scan import scan_here
from icestats.storage import local_path

FIELDS = {
    "manifest_path": (500, "string", "m0.avro"),
    "manifest_length": (501, "long", 4096),
    "partition_spec_id": (502, "int", 0),
    "content": (517, "int", 1),
    "added_data_files_count": (504, ["null", "int"], 3),
    "added_snapshot_id": (503, ["null", "long"], 7),
}


class OneFile:
    """A storage that holds one file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def size(self, location: str) -> int:
        return len(self.data)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[offset : None if length is None else offset + length]


def snapshot() -> Snapshot:
    return Snapshot(7, None, 1, 0, "snap-7.avro", (), None, {})


def write(fields=FIELDS, rows: int = 2, codec: str = "deflate") -> bytes:
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": n, "field-id": i, "type": t} for n, (i, t, _) in fields.items()],
    }
    stream = io.BytesIO()
    record = {name: value for name, (_, _, value) in fields.items()}
    records = [record | {"manifest_path": f"m{row}.avro"} for row in range(rows)]
    fastavro.writer(stream, schema, records, codec=codec)
    return stream.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz"])
def test_fields_go_by_their_id_in_every_codec(codec):
    """`added_data_files_count` is v1's name of field 504."""
    row = read_manifest_list(OneFile(write(codec=codec)), snapshot()).to_pylist()[1]
    assert (row["manifest_path"], row["content"], row["added_files_count"]) == ("m1.avro", "deletes", 3)
    assert row["existing_files_count"] is None


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
        scanned = scan_here(plan_scan(table._source, table.snapshot, table.schema), Sizes(200, 12, 200, 12))
        assert scanned.row_count == 200
    assert small_table.scan().to_arrow().num_rows > 200, "PyIceberg itself still counts twice"


def test_a_manifest_of_both_contents_is_refused(small_table, catalog_properties):
    name_again(small_table, content=1)
    with pytest.raises(icestats.MetadataError, match="as one of data and as one of deletes"):
        icestats.load("db.small", catalog=catalog_properties).columns()


def test_zstandard_is_read(small_table):
    """Recompressed by hand, because fastavro writes no zstandard without another package."""
    import zstandard

    data = write(codec="null")
    head = data.replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x12zstandard")
    sync = data[-16:]
    body = data.index(sync) + 16
    shift = len(head) - len(data)
    count, block = data[body : body + 1], data[body + 2 : -16]
    packed = zstandard.ZstdCompressor().compress(block)
    size = bytes([(2 * len(packed)) & 0x7F | 0x80, (2 * len(packed)) >> 7])
    changed = head[: body + shift] + count + size + packed + sync
    assert read_manifest_list(OneFile(changed), snapshot()).num_rows == 2


def test_a_list_without_a_required_field_is_named():
    fields = {name: field for name, field in FIELDS.items() if name != "manifest_length"}
    with pytest.raises(icestats.MetadataError, match="no field manifest_length"):
        read_manifest_list(OneFile(write(fields)), snapshot())


def test_damage_is_an_error_or_another_valid_list():
    """Flips and cuts: MetadataError with the path, or rows of the same shape; nothing else, nothing long."""
    data, rng = write(rows=20), random.Random(1)
    readable, attempts = 0, 2000 * int(os.environ.get("ICESTATS_FUZZ", "1"))
    for _ in range(attempts):
        broken = bytearray(data)
        if rng.random() < 0.3:
            del broken[rng.randrange(len(broken)) :]
        for _ in range(rng.randrange(1, 4)):
            if broken:
                broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(icestats.MetadataError):
            read_manifest_list(OneFile(bytes(broken)), snapshot())
            readable += 1
    assert readable < attempts / 4


@pytest.mark.parametrize("length", [2**60, -5])
def test_a_block_of_an_impossible_length_is_refused(length):
    data = write(codec="null")
    body = data.index(data[-16:]) + 16
    value, encoded = (length << 1) ^ (length >> 63), bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    with pytest.raises(icestats.MetadataError) as caught:
        read_manifest_list(OneFile(data[: body + 1] + bytes(encoded) + data[body + 2 :]), snapshot())
    assert caught.value.offset == body + 1
