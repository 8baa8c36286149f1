"""A manifest of forty entries, and a storage that holds one file: what is damaged in tests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import fastavro

from icestats.iceberg.metadata_json import build_metadata
from icestats.read.manifests.manifests import ManifestToRead

TYPES = {"id": "long", "name": "string", "price": "decimal(20, 2)", "weight": "double"}
DOCUMENT: dict[str, Any] = {
    "format-version": 2,
    "location": "s3://bucket/table",
    "schemas": [
        {"fields": [{"id": i, "name": n, "type": t, "required": False} for i, (n, t) in enumerate(TYPES.items(), 1)]}
    ],
    "partition-specs": [
        {"spec-id": 0, "fields": [{"field-id": 1000, "source-id": 2, "name": "name", "transform": "identity"}]}
    ],
}
METADATA = build_metadata(DOCUMENT, "v1.metadata.json")


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


MANIFEST = ManifestToRead("m.avro", 0, 0, "data", 1, 7, None)
