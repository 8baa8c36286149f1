"""Manifest lists: every codec, other writers' field names, and damage that never goes unnoticed."""

from __future__ import annotations

import contextlib
import io
import os
import random
from collections.abc import Callable

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.iceberg.metadata import Snapshot
from icestats.read.avro.avro_file import parse_schema, read_header
from icestats.read.manifests.manifest_list import read_by_fastavro, read_manifest_list
from icestats.read.manifests.manifest_list_rows import read_rows
from icestats.read.manifests.row_store import CAPACITY

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


@pytest.fixture(scope="module")
def kernel_rows(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], pa.Table | None]:
    """Read a list by the kernel, which is compiled by the first look at a table's files."""
    catalog = SqlCatalog("catalog", uri="sqlite://", warehouse=f"file://{tmp_path_factory.mktemp('kernel')}")
    catalog.create_namespace("db")
    rows = pa.table({"id": [1]})
    catalog.create_table("db.t", rows.schema).append(rows)
    icestats.load(catalog.load_table("db.t").metadata_location).files()
    catalog.close()

    def read(data: bytes) -> pa.Table | None:
        header = read_header(data, "snap-7.avro")
        return read_rows(data, header, parse_schema(header))

    return read


OPTIONAL = {
    "sequence_number": (515, "long"),
    "min_sequence_number": (516, "long"),
    "added_snapshot_id": (503, "long"),
    "existing_files_count": (505, "int"),
    "deleted_files_count": (506, "int"),
    "added_rows_count": (512, "long"),
    "existing_rows_count": (513, "long"),
    "deleted_rows_count": (514, "long"),
    "key_metadata": (519, "bytes"),
    "first_row_id": (520, "long"),
    "of_a_later_version": (9000, {"type": "map", "values": ["null", "double", {"type": "array", "items": "string"}]}),
}
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
LATER = {"x": 1.5, "y": None, "z": ["a", "b"]}


@st.composite
def lists(draw: st.DrawFn) -> bytes:
    """Some fields or others, in any order, null or not, of values of every width."""
    fields = {name: (i, kind if isinstance(kind, str) else kind[1]) for name, (i, kind, _) in FIELDS.items()}
    fields |= {name: OPTIONAL[name] for name in draw(st.sets(st.sampled_from(sorted(OPTIONAL))))}
    if draw(st.booleans()):
        fields["partitions"] = (507, SUMMARIES)
    names = draw(st.permutations(sorted(fields)))
    nullable = draw(st.sets(st.sampled_from(names))) - {"manifest_path", "manifest_length", "partition_spec_id"}
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": n, "field-id": fields[n][0], "type": ["null", fields[n][1]] if n in nullable else fields[n][1]}
            for n in names
        ],
    }
    bound = st.none() | st.binary(max_size=70)
    summary = st.fixed_dictionaries(
        {
            "contains_null": st.booleans(),
            "of_a_later_version": st.text(max_size=3),
            "contains_nan": st.none() | st.booleans(),
            "lower_bound": bound,
            "upper_bound": bound,
        }
    )
    values = {
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "string": st.text(),
        "bytes": st.binary(max_size=200),
    }
    by_name = {name: values.get(str(kind), st.just(LATER)) for name, (_, kind) in fields.items()}
    by_name["content"] = st.integers(0, 1)
    if "partitions" in fields:
        by_name["partitions"] = st.lists(summary, max_size=4)
    records = [
        {name: draw(st.none() | by_name[name] if name in nullable else by_name[name]) for name in names}
        for _ in range(draw(st.integers(0, 5)))
    ]
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, codec="deflate", sync_interval=draw(st.sampled_from([1, 16_000])))
    return stream.getvalue()


@given(data=lists())
def test_the_kernel_and_fastavro_read_the_same_rows(kernel_rows, data):
    assert kernel_rows(data).equals(read_by_fastavro(data, "snap-7.avro"))


def test_more_rows_than_are_captured_at_once_are_all_there(kernel_rows):
    data = write(rows=CAPACITY + 2)
    found = kernel_rows(data)
    assert found.num_rows == CAPACITY + 2
    assert found.equals(read_by_fastavro(data, "snap-7.avro"))


def test_a_list_of_summaries_in_several_blocks_is_read_by_fastavro(kernel_rows):
    """Allowed by Avro, written by none: two blocks of one summary each, and one with its length in bytes."""
    fields = {**FIELDS, "partitions": (507, SUMMARIES, [])}
    data = write(fields, rows=1, codec="null")
    summary = b"\x01\x00\x00\x00\x02\xff\x00"
    for array in (b"\x02" + summary + b"\x02" + summary + b"\x00", b"\x01\x0e" + summary + b"\x02" + summary + b"\x00"):
        sync = data[-16:]
        body = data.index(sync) + 16
        record = data[body + 2 : -17] + array
        whole = data[:body] + b"\x02" + bytes([2 * len(record)]) + record + sync
        assert kernel_rows(whole) is None
        (row,) = read_manifest_list(OneFile(whole), snapshot()).to_pylist()
        assert [found["lower_bound"] for found in row["partitions"]] == [b"\xff", b"\xff"]


@pytest.mark.parametrize("by_kernel", [True, False])
def test_damage_is_an_error_or_another_valid_list(kernel_rows, by_kernel):
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
            if by_kernel:
                read_manifest_list(OneFile(bytes(broken)), snapshot())
            else:
                read_by_fastavro(bytes(broken), "snap-7.avro")
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
