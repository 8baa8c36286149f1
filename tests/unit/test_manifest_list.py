"""Manifest lists: every codec, other writers' field names, and damage that never goes unnoticed."""

from __future__ import annotations

import contextlib
import io
import os
import random
from pathlib import Path

import fastavro
import pytest

import icestats
from icestats.iceberg.metadata import Snapshot
from icestats.read.manifests.manifest_list import read_manifest_list

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


SUMMARIES = {
    "type": "array",
    "element-id": 508,
    "items": {
        "type": "record",
        "name": "r508",
        "fields": [
            {"name": "contains_null", "type": "boolean", "field-id": 509},
            {"name": "of_a_later_version", "type": "string", "field-id": 9001},
            {"name": "contains_nan", "type": ["null", "boolean"], "field-id": 518},
            {"name": "lower_bound", "type": ["bytes", "null"], "field-id": 510},
            {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
        ],
    },
}


def test_a_list_of_summaries_in_several_blocks_is_read():
    """Allowed by Avro, written by none: two blocks of one summary each, and one with its length in bytes."""
    fields = {**FIELDS, "partitions": (507, SUMMARIES, [])}
    data = write(fields, rows=1, codec="null")
    summary = b"\x01\x00\x00\x00\x02\xff\x00"
    for array in (b"\x02" + summary + b"\x02" + summary + b"\x00", b"\x01\x0e" + summary + b"\x02" + summary + b"\x00"):
        sync = data[-16:]
        body = data.index(sync) + 16
        record = data[body + 2 : -17] + array
        whole = data[:body] + b"\x02" + bytes([2 * len(record)]) + record + sync
        (row,) = read_manifest_list(OneFile(whole), snapshot()).to_pylist()
        assert [found["lower_bound"] for found in row["partitions"]] == [b"\xff", b"\xff"]


def test_summaries_without_ids_are_refused():
    """Fields are known by their ids; a summary that says nothing would say that nothing is there."""
    items = SUMMARIES["items"]
    bare = [{key: value for key, value in field.items() if key != "field-id"} for field in items["fields"]]
    fields = {**FIELDS, "partitions": (507, {**SUMMARIES, "items": {**items, "fields": bare}}, [])}
    with pytest.raises(icestats.MetadataError, match="known by their ids"):
        read_manifest_list(OneFile(write(fields)), snapshot())


def test_damage_is_an_error_or_another_valid_list():
    """Flips and cuts: MetadataError with the path, or rows of the same shape; nothing else, nothing long."""
    fields = {**FIELDS, "partitions": (507, SUMMARIES, [dict.fromkeys(["lower_bound", "upper_bound"], b"ab")])}
    fields["partitions"][2][0] |= {"contains_null": True, "of_a_later_version": "", "contains_nan": None}
    data, rng = write(fields, rows=20), random.Random(1)
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


def test_files_of_some_manifests_need_no_other_one(small_table, load):
    """Also where a filter chooses among them."""
    (kept, lost) = load().manifest_files()["manifest_path"].to_pylist()
    expected = load().files(manifest_paths=[kept], row_filter="id >= 0")["file_path"].to_pylist()
    Path(lost.removeprefix("file://")).unlink()
    assert load().files(manifest_paths=[kept], row_filter="id >= 0")["file_path"].to_pylist() == expected != []


@pytest.mark.parametrize(
    ("name", "field_id"), [("manifest_length", 501), ("added_data_files_count", 504), ("added_rows_count", 512)]
)
@pytest.mark.parametrize("count", [-1, 1 << 53])
def test_counts_that_no_manifests_have_are_refused(name, field_id, count):
    """A manifest of -1 files was planned as one of none, and two of 2**62 rows had a negative number of them."""
    fields = {**FIELDS, name: (field_id, "long", count)}
    with pytest.raises(icestats.MetadataError, match="of a manifest is negative, or of all is above"):
        read_manifest_list(OneFile(write(fields)), snapshot())
