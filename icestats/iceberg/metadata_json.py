"""metadata.json -> `TableMetadata`.

PyIceberg refuses a whole table because of one statistics blob of unknown type, so icestats reads the JSON itself.
Source: Iceberg spec, "Table Metadata" and "Appendix C: JSON serialization".
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from icestats.answers.text import one_line
from icestats.errors import MetadataError
from icestats.iceberg.metadata import (
    BlobMetadata,
    Field,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Schema,
    Snapshot,
    SnapshotRef,
    StatisticsFile,
    TableMetadata,
)
from icestats.iceberg.storage import FileReader

METADATA_SIZE_LIMIT_BYTES = 1 << 30
"""A metadata.json that inflates to more than this is refused."""


def read_metadata(storage: FileReader, location: str) -> TableMetadata:
    """Read a metadata.json, plain or gzipped.

    Parameters
    ----------
    storage : FileReader
        Where to read it from.
    location : str
        The file.

    Raises
    ------
    MetadataError
        The file is missing, truncated, damaged, or not Iceberg table metadata; with the byte offset if known.
    """
    return build_metadata(read_document(storage, location), location)


def read_document(storage: FileReader, location: str) -> Any:
    """Return a metadata.json, plain or gzipped, as parsed JSON.

    Raises
    ------
    MetadataError
        The file is missing, truncated or not JSON.
    """
    data = storage.read(location)
    if data[:2] == b"\x1f\x8b":
        data = _inflate(data, location)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        offset = error.pos if isinstance(error, json.JSONDecodeError) else None
        raise MetadataError(f"not a metadata.json: {one_line(error)}", location, offset) from error


def _inflate(data: bytes, location: str) -> bytes:
    inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        inflated = inflater.decompress(data, METADATA_SIZE_LIMIT_BYTES)
    except zlib.error as error:
        raise MetadataError(f"damaged gzip: {error}", location) from error
    if inflater.unconsumed_tail:
        raise MetadataError(f"inflates to more than {METADATA_SIZE_LIMIT_BYTES:,} bytes", location)
    if not inflater.eof:
        raise MetadataError("the gzip stream is cut", location, len(data))
    return inflated


def build_metadata(document: Mapping[str, Any], path: str) -> TableMetadata:
    """Build table metadata from the JSON document of a metadata file.

    Parameters
    ----------
    document : mapping
        The parsed JSON.
    path : str
        Where it came from, for messages.

    Raises
    ------
    MetadataError
        A required part is missing, or is not what the spec says.
    """
    if not isinstance(document, Mapping) or "format-version" not in document:
        raise MetadataError("not an Iceberg table metadata document: it has no format-version", path)
    version = document["format-version"]
    if version not in (1, 2, 3):
        raise MetadataError(f"format-version is {version!r}, expected 1, 2 or 3", path)
    try:
        return _build(document, version)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise MetadataError(f"not valid Iceberg table metadata: {what}", path) from error


def _build(doc: Mapping[str, Any], version: int) -> TableMetadata:
    schemas = {s.get("schema-id", 0): _schema(s) for s in doc.get("schemas") or [doc["schema"]]}
    specs = {s["spec-id"]: _spec(s["spec-id"], s["fields"]) for s in doc.get("partition-specs") or []}
    if not specs:
        specs = {0: _spec(0, doc.get("partition-spec") or [])}
    current = doc.get("current-snapshot-id")
    refs = {
        str(name): SnapshotRef(int(ref["snapshot-id"]), str(ref.get("type", "branch")))
        for name, ref in (doc.get("refs") or {}).items()
    }
    # Java writes -1 for a table without snapshots.
    current = None if current is None or current == -1 else int(current)
    if current is not None:
        refs.setdefault("main", SnapshotRef(current, "branch"))
    current_schema_id = doc.get("current-schema-id", next(iter(schemas)))
    if current_schema_id not in schemas:
        raise ValueError(f"current-schema-id {current_schema_id} is not among the schemas")
    return TableMetadata(
        format_version=version,
        table_uuid=str(doc.get("table-uuid", "")),
        location=str(doc["location"]),
        last_updated_ms=int(doc.get("last-updated-ms", 0)),
        schemas=schemas,
        current_schema_id=current_schema_id,
        specs=specs,
        default_spec_id=int(doc.get("default-spec-id", next(iter(specs)))),
        snapshots={int(s["snapshot-id"]): _snapshot(s) for s in doc.get("snapshots") or []},
        current_snapshot_id=current,
        snapshot_log=tuple((int(e["timestamp-ms"]), int(e["snapshot-id"])) for e in doc.get("snapshot-log") or []),
        refs=refs,
        properties={str(k): str(v) for k, v in (doc.get("properties") or {}).items()},
        statistics=tuple(_statistics(s) for s in doc.get("statistics") or []),
        partition_statistics=tuple(
            PartitionStatisticsFile(int(p["snapshot-id"]), str(p["statistics-path"]), int(p["file-size-in-bytes"]))
            for p in doc.get("partition-statistics") or []
        ),
        metadata_log=tuple((int(e["timestamp-ms"]), str(e["metadata-file"])) for e in doc.get("metadata-log") or []),
    )


def _schema(document: Mapping[str, Any]) -> Schema:
    fields: list[Field] = []
    for column in document["fields"]:
        _flatten(
            column["id"], column["name"], column["type"], bool(column["required"]), fields, top=True, repeated=False
        )
    return Schema(int(document.get("schema-id", 0)), tuple(fields))


def _flatten(
    field_id: int, name: str, kind: Any, required: bool, out: list[Field], *, top: bool, repeated: bool
) -> None:
    if isinstance(kind, str):
        out.append(Field(int(field_id), str(name), kind, required, top, repeated))
        return
    out.append(Field(int(field_id), str(name), str(kind["type"]), required, top, repeated))
    if kind["type"] == "struct":
        for f in kind["fields"]:
            _flatten(f["id"], f"{name}.{f['name']}", f["type"], bool(f["required"]), out, top=False, repeated=repeated)
    elif kind["type"] == "list":
        element_required = bool(kind["element-required"])
        _flatten(
            kind["element-id"], f"{name}.element", kind["element"], element_required, out, top=False, repeated=True
        )
    elif kind["type"] == "map":
        _flatten(kind["key-id"], f"{name}.key", kind["key"], True, out, top=False, repeated=True)
        value_required = bool(kind["value-required"])
        _flatten(kind["value-id"], f"{name}.value", kind["value"], value_required, out, top=False, repeated=True)
    else:
        raise ValueError(f"field {name!r} has the unknown nested type {kind['type']!r}")


def _spec(spec_id: int, fields: list[Mapping[str, Any]]) -> PartitionSpec:
    # Field ids of v1 specs may be absent: they count up from 1000.
    return PartitionSpec(
        int(spec_id),
        tuple(
            PartitionField(
                int(f.get("field-id", 1000 + i)),
                int(f["source-id"] if "source-id" in f else f["source-ids"][0]),
                str(f["name"]),
                str(f["transform"]),
            )
            for i, f in enumerate(fields)
        ),
    )


def _snapshot(doc: Mapping[str, Any]) -> Snapshot:
    parent = doc.get("parent-snapshot-id")
    schema_id = doc.get("schema-id")
    return Snapshot(
        snapshot_id=int(doc["snapshot-id"]),
        parent_snapshot_id=None if parent is None else int(parent),
        sequence_number=int(doc.get("sequence-number") or 0),
        timestamp_ms=int(doc["timestamp-ms"]),
        manifest_list=doc.get("manifest-list"),
        manifests=tuple(str(m) for m in doc.get("manifests") or ()),
        schema_id=None if schema_id is None else int(schema_id),
        summary={str(k): str(v) for k, v in (doc.get("summary") or {}).items()},
    )


def _statistics(doc: Mapping[str, Any]) -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=int(doc["snapshot-id"]),
        statistics_path=str(doc["statistics-path"]),
        file_size_in_bytes=int(doc["file-size-in-bytes"]),
        file_footer_size_in_bytes=int(doc["file-footer-size-in-bytes"]),
        blobs=tuple(
            BlobMetadata(
                type=str(b["type"]),
                snapshot_id=int(b["snapshot-id"]),
                sequence_number=int(b["sequence-number"]),
                field_ids=tuple(int(f) for f in b["fields"]),
                properties={str(k): str(v) for k, v in (b.get("properties") or {}).items()},
            )
            for b in doc.get("blob-metadata") or []
        ),
    )
