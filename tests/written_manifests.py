"""Manifests in memory, written as Java writes them: of which table, with which entries, and what their cells are."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import fastavro

from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.metadata_json import build_metadata
from icestats.read.manifests.manifests import ManifestToRead, read_rollups

METRICS = {
    "column_sizes": (108, 117, "long"),
    "value_counts": (109, 119, "long"),
    "null_value_counts": (110, 121, "long"),
    "nan_value_counts": (137, 138, "long"),
    "lower_bounds": (125, 126, "bytes"),
    "upper_bounds": (128, 129, "bytes"),
}
IDENTITY = [(1000, 1, "key", "identity")]


def table(*columns: tuple[int, str], specs: dict[int, list[Any]] | None = None, **more: Any) -> TableMetadata:
    """Metadata of a table with columns (id, type) named c<id>, and specs of (field id, source id, name, transform)."""
    keys = ("field-id", "source-id", "name", "transform")
    return build_metadata(
        {
            "format-version": 2,
            "location": "s3://bucket/table",
            "schemas": [{"fields": [{"id": i, "name": f"c{i}", "type": t, "required": False} for i, t in columns]}],
            "partition-specs": [
                {"spec-id": spec_id, "fields": [dict(zip(keys, field, strict=True)) for field in fields]}
                for spec_id, fields in (specs or {0: []}).items()
            ],
            **more,
        },
        "v1.metadata.json",
    )


def named(name: str, avro: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": avro, "field-id": field_id}


def entry_schema(partition: Iterable[tuple[int, Any]] = (), *, version: int = 3) -> dict[str, Any]:
    """The schema as Java writes it."""

    def option(name: str, avro: Any, field_id: int) -> dict[str, Any]:
        return named(name, ["null", avro], field_id)

    def metric(name: str) -> dict[str, Any]:
        field_id, key_id, value = METRICS[name]
        item = {"type": "record", "name": f"k{key_id}", "fields": [named("key", "int", key_id)]}
        item["fields"].append(named("value", value, key_id + 1))
        return option(name, {"type": "array", "items": item, "logicalType": "map"}, field_id)

    values = [named(f"p{i}", ["null", avro], i) for i, avro in partition]
    files = [
        named("file_path", "string", 100),
        named("file_format", "string", 101),
        named("partition", {"type": "record", "name": "r102", "fields": values}, 102),
        named("record_count", "long", 103),
        named("file_size_in_bytes", "long", 104),
        *(metric(name) for name in METRICS),
        option("split_offsets", {"type": "array", "items": "long"}, 132),
        option("sort_order_id", "int", 140),
    ]
    entries = [named("status", "int", 0), option("snapshot_id", "long", 1)]
    if version > 1:
        files.insert(0, named("content", "int", 134))
        files.append(option("equality_ids", {"type": "array", "items": "int"}, 135))
        entries += [option("sequence_number", "long", 3), option("file_sequence_number", "long", 4)]
    if version > 2:
        files += [option("first_row_id", "long", 142), option("referenced_data_file", "string", 143)]
        files += [option("content_offset", "long", 144), option("content_size_in_bytes", "long", 145)]
    entries.append(named("data_file", {"type": "record", "name": "r2", "fields": files}, 2))
    return {"type": "record", "name": "manifest_entry", "fields": entries}


def entry(partition: dict[int, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An entry of a data file with metrics given as dicts; `status` and the like are the entry's own."""
    own = {name: more.pop(name) for name in ("status", "snapshot_id", "sequence_number") if name in more}
    data_file = {
        "content": 0,
        "file_path": "f",
        "file_format": "PARQUET",
        "record_count": 10,
        "file_size_in_bytes": 100,
    }
    for name in METRICS:
        if name in more:
            more[name] = [{"key": key, "value": value} for key, value in more[name].items()]
    data_file |= more | {"partition": {f"p{i}": value for i, value in (partition or {}).items()}}
    return {"status": 1, "data_file": data_file} | own


class Files:
    """Manifests in memory, read as a storage is."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.manifests: list[ManifestToRead] = []

    def add(self, *entries: dict[str, Any], schema: Any = None, **more: Any) -> Files:
        out = io.BytesIO()
        fastavro.writer(out, schema or entry_schema(), entries, codec="deflate", sync_interval=500)
        path = f"m{len(self.data)}.avro"
        self.data[path] = out.getvalue()
        known = {"length": len(self.data[path]), "spec_id": 0, "content": "data", "sequence_number": 7}
        self.manifests.append(ManifestToRead(path, **(known | {"added_snapshot_id": 100} | more)))
        return self

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[location][offset:][:length]

    def size(self, location: str) -> int:
        return len(self.data[location])


def cells(files: Files, metadata: TableMetadata, **more: Any) -> list[dict[str, Any]]:
    return read_rollups(files.manifests, metadata, files, **more).table_cells.to_pylist()


def integer(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little", signed=True)
