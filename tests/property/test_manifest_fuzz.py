"""Damaged manifests: always a MetadataError or an answer, never anything else, in bounded time."""

from __future__ import annotations

import io
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.errors import MetadataError
from icestats.iceberg.metadata import build_metadata
from icestats.read.manifests.manifests import ManifestToRead, read_files, read_rollups

FUZZ = int(os.environ.get("ICESTATS_FUZZ", "1"))
"""How many times the usual number of damaged files: `make fuzz`."""
TYPES = {"id": "long", "name": "string", "price": "decimal(20, 2)", "weight": "double"}
METADATA = build_metadata(
    {
        "format-version": 2,
        "location": "s3://bucket/table",
        "schemas": [
            {
                "fields": [
                    {"id": i, "name": n, "type": t, "required": False} for i, (n, t) in enumerate(TYPES.items(), 1)
                ]
            }
        ],
        "partition-specs": [
            {"spec-id": 0, "fields": [{"field-id": 1000, "source-id": 2, "name": "name", "transform": "identity"}]}
        ],
    },
    "v1.metadata.json",
)


def named(name: str, avro: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": avro, "field-id": field_id}


def metrics_map(key_id: int, value: str) -> list[Any]:
    fields = [named("key", "int", key_id), named("value", value, key_id + 1)]
    item = {"type": "record", "name": f"k{key_id}", "fields": fields}
    return ["null", {"type": "array", "items": item, "logicalType": "map"}]


DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        named("content", "int", 134),
        named("file_path", "string", 100),
        named("file_format", "string", 101),
        named(
            "partition", {"type": "record", "name": "r102", "fields": [named("name", ["null", "string"], 1000)]}, 102
        ),
        named("record_count", "long", 103),
        named("file_size_in_bytes", "long", 104),
        named("column_sizes", metrics_map(117, "long"), 108),
        named("value_counts", metrics_map(119, "long"), 109),
        named("null_value_counts", metrics_map(121, "long"), 110),
        named("nan_value_counts", metrics_map(138, "long"), 137),
        named("lower_bounds", metrics_map(126, "bytes"), 125),
        named("upper_bounds", metrics_map(129, "bytes"), 128),
        named("split_offsets", ["null", {"type": "array", "items": "long"}], 132),
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [named("status", "int", 0), named("snapshot_id", ["null", "long"], 1), named("data_file", DATA_FILE, 2)],
}


def entry(i: int) -> dict[str, Any]:
    def column_map(values: list[Any]) -> list[dict[str, Any]]:
        return [{"key": column, "value": value} for column, value in enumerate(values, 1)]

    bounds = [i.to_bytes(8, "little"), b"name-%030d" % i, (-i).to_bytes(3, "big", signed=True), bytes(8)]
    data_file = {
        "content": 0,
        "file_path": f"s3://bucket/table/data/{i}.parquet",
        "file_format": "PARQUET",
        "partition": {"name": None if i % 7 == 0 else f"p{i % 3}"},
        "record_count": i,
        "file_size_in_bytes": 1000 * i,
        "column_sizes": column_map([i, i, i, i]),
        "value_counts": column_map([i, i, i, i]),
        "null_value_counts": column_map([0, 1, 0, 0]),
        "nan_value_counts": None,
        "lower_bounds": column_map(bounds),
        "upper_bounds": column_map(bounds),
        "split_offsets": [4, 2**30],
    }
    return {"status": i % 3, "snapshot_id": None, "data_file": data_file}


def manifest(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, ENTRY, [entry(i) for i in range(40)], codec=codec, sync_interval=2000, sync_marker=b"s" * 16)
    return out.getvalue()


WHOLE = {codec: manifest(codec) for codec in ("null", "deflate", "snappy", "bzip2")}


@dataclass
class Memory:
    data: bytes

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[offset:][:length]

    def size(self, location: str) -> int:
        return len(self.data)


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert or repeat a few bytes, more often behind the header."""
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(damaged)) if rng.random() < 0.3 else rng.randrange(len(damaged) // 3, len(damaged))
        kind = rng.randrange(5)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del damaged[at : at + rng.choice([1, 2, 9, len(damaged)])]
        elif kind == 3:
            damaged[at:at] = rng.choice([b"\xff" * 9 + b"\x01", b"\x80" * 12, rng.randbytes(5)])
        else:
            damaged[at:at] = damaged[at : at + rng.randrange(1, 200)]
        if not damaged:
            break
    return bytes(damaged)


MANIFEST = ManifestToRead("m.avro", 0, 0, "data", 1, 7, None)


def attempt(read: Callable[[], Any], size: int) -> Any:
    """An answer, or None for the one error that there may be."""
    try:
        return read()
    except MetadataError as error:
        found = error
    assert found.path == "m.avro"
    assert found.offset is None or 0 <= found.offset <= size
    return None


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """No example is to wait until the kernels are compiled."""
    storage = Memory(WHOLE["null"])
    read_rollups([MANIFEST], METADATA, storage, threads=1)
    read_files([MANIFEST], METADATA, storage, (1, 2, 3, 4), threads=1)


@settings(max_examples=400 * FUZZ)
@given(st.sampled_from(sorted(WHOLE)), st.integers(0, 2**32 - 1))
def test_damage_is_an_error_or_an_answer(codec: str, seed: int) -> None:
    """Whatever is flipped, cut or inserted: MetadataError with the path, or tables that are valid and agree."""
    storage = Memory(damage(WHOLE[codec], random.Random(seed)))
    size = len(storage.data)
    start = time.monotonic()
    rollups = attempt(lambda: read_rollups([MANIFEST], METADATA, storage, threads=1), size)
    files = attempt(lambda: read_files([MANIFEST], METADATA, storage, (1, 2, 3, 4), threads=1), size)
    if rollups is not None:
        for table in (rollups.manifest_cells, rollups.partitions, rollups.partition_cells, rollups.table_cells):
            table.validate(full=True)
    if files is not None:
        files.validate(full=True)
    if rollups is not None and files is not None:
        assert rollups.manifests["live_file_count"].to_pylist() == [files.num_rows]
        assert sum(rollups.manifests["record_count"].to_pylist()) == sum(files["record_count"].to_pylist())
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("codec", sorted(WHOLE))
def test_every_cut_is_noticed(codec: str) -> None:
    """A manifest shorter than the manifest list says is an error, wherever it is cut."""
    data = WHOLE[codec]
    manifest = replace(MANIFEST, length=len(data))
    for length in range(0, len(data), 97):
        with pytest.raises(MetadataError):
            read_rollups([manifest], METADATA, Memory(data[:length]), threads=1)


@pytest.mark.parametrize("codec", sorted(WHOLE))
def test_the_whole_files_are_read(codec: str) -> None:
    """Without damage there is an answer: the tests above do not pass because everything fails."""
    rollups = read_rollups([MANIFEST], METADATA, Memory(WHOLE[codec]), threads=1)
    assert rollups.manifests["live_file_count"].to_pylist() == [27]
