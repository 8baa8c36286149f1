"""How a metadata.json is read, with limits, and checked against the spec.

PyIceberg refuses a whole table because of one statistics blob of unknown type, so icestats reads the JSON itself.
Source: Iceberg spec, "Table Metadata" and "Appendix C: JSON serialization".
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from icestats.answers.text import one_line
from icestats.errors import MetadataError
from icestats.iceberg.metadata import (
    FIRST_TIME_MS,
    LAST_TIME_MS,
    NO_COLUMN,
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
    split_transform,
)
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, FileReader, check_value_count, expanded_limit
from icestats.iceberg.types import TIMESTAMPS, spell_type, to_arrow_type

GZIP_MAGIC = b"\x1f\x8b"


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
    return parse_document(inflate(data, location) if data.startswith(GZIP_MAGIC) else data, location)


def parse_document(data: bytes, location: str) -> Any:
    """Return what the bytes of a metadata.json say.

    Raises
    ------
    MetadataError
        They are not JSON, or more values than the limits allow.
    """
    try:
        check_value_count(data, MAX_JSON_VALUES)
        document = json.loads(data)
        if b"\\u" in data:
            # A surrogate alone is no text: nothing could be written or sent of it.
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except (ValueError, RecursionError) as error:
        offset = error.pos if isinstance(error, json.JSONDecodeError) else None
        raise MetadataError(f"not a metadata.json: {one_line(error)}", location, offset) from error


def inflate(data: bytes, location: str) -> bytes:
    """Return what the bytes of a gzipped metadata.json are.

    Raises
    ------
    MetadataError
        They are damaged, cut, or more than the limits allow.
    """
    inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    limit = min(MAX_FILE_SIZE_BYTES, expanded_limit(len(data)))
    try:
        inflated = inflater.decompress(data, limit + 1)
    except zlib.error as error:
        raise MetadataError(f"damaged gzip: {error}", location) from error
    if len(inflated) > limit:
        raise MetadataError(f"{len(data):,} bytes that inflate to more than {limit:,}", location)
    if not inflater.eof:
        raise MetadataError("the gzip stream is cut", location, len(data))
    try:
        check_value_count(inflated, max(_FREE_VALUES, len(data)))
    except ValueError as error:
        raise MetadataError(f"{len(data):,} bytes that inflate to {error}", location) from error
    return inflated


MAX_JSON_VALUES = 20_000_000
"""Most values of a metadata.json."""
_FREE_VALUES = 1 << 22
"""What a gzipped one may have in any case; else one a byte."""


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
    if "view-uuid" in document:
        raise MetadataError("it is the metadata of a view, which has no files: give a table that the view reads", path)
    version = document["format-version"]
    if version not in (1, 2, 3):
        raise MetadataError(f"format-version is {version!r:.40}, expected 1, 2 or 3", path)
    try:
        return _build(document, version)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise MetadataError(f"not valid Iceberg table metadata: {what}", path) from error


def _build(doc: Mapping[str, Any], version: int) -> TableMetadata:
    names = _Names()
    schemas = {_int(s.get("schema-id", 0)): _schema(s, names) for s in doc.get("schemas") or [doc["schema"]]}
    specs = {_int(s["spec-id"]): _spec(s["spec-id"], s["fields"]) for s in doc.get("partition-specs") or []}
    if not specs:
        specs = {0: _spec(0, doc.get("partition-spec") or [])}
    _check_transforms(specs.values(), schemas.values())
    current = doc.get("current-snapshot-id")
    refs = {
        str(name): SnapshotRef(_long(ref["snapshot-id"]), str(ref.get("type", "branch")))
        for name, ref in (doc.get("refs") or {}).items()
    }
    # Java writes -1 for a table without snapshots.
    current = None if current is None or current == -1 else _long(current)
    if current is not None:
        refs.setdefault("main", SnapshotRef(current, "branch"))
    if "main" in refs and refs["main"].snapshot_id != current:
        # Iceberg's Java library refuses such a table; PyIceberg goes by the current snapshot.
        raise ValueError(f"current-snapshot-id is {current}, and the branch main is at {refs['main'].snapshot_id}")
    current_schema_id = _int(doc.get("current-schema-id", next(iter(schemas))))
    if current_schema_id not in schemas:
        raise ValueError(f"current-schema-id {current_schema_id} is not among the schemas")
    default_spec_id = _int(doc.get("default-spec-id", next(iter(specs))))
    if default_spec_id not in specs:
        raise ValueError(f"default-spec-id {default_spec_id} is not among the partition specs")
    return TableMetadata(
        format_version=version,
        table_uuid=str(doc.get("table-uuid", "")),
        location=str(doc["location"]),
        last_updated_ms=_time(doc.get("last-updated-ms", 0)),
        schemas=schemas,
        current_schema_id=current_schema_id,
        specs=specs,
        default_spec_id=default_spec_id,
        snapshots={_long(s["snapshot-id"]): _snapshot(s) for s in doc.get("snapshots") or []},
        current_snapshot_id=current,
        snapshot_log=tuple((_time(e["timestamp-ms"]), _long(e["snapshot-id"])) for e in doc.get("snapshot-log") or []),
        refs=refs,
        properties={str(k): str(v) for k, v in (doc.get("properties") or {}).items()},
        statistics=tuple(_statistics(s) for s in doc.get("statistics") or []),
        partition_statistics=tuple(
            PartitionStatisticsFile(_long(p["snapshot-id"]), str(p["statistics-path"]), _long(p["file-size-in-bytes"]))
            for p in doc.get("partition-statistics") or []
        ),
        metadata_log=tuple((_time(e["timestamp-ms"]), str(e["metadata-file"])) for e in doc.get("metadata-log") or []),
    )


_MOST_LEVELS = 50
"""PyIceberg reads a type by a recursion that Python ends at some 90."""


MAX_NAME_CHARACTERS = 256 << 20
"""Most characters of the full names of all columns of a metadata.json: what is in a struct repeats its name."""
_MOST_OF_A_SCHEMA = 8 << 20
"""Most of the columns of one schema: some answers name a column two hundred times, once a statistic and an engine."""


class _Names:
    """The full names of all columns so far."""

    def __init__(self) -> None:
        self._character_count = 0

    def join(self, *parts: Any) -> str:
        """Return a full name; raise ValueError where all together are too long."""
        self._character_count += sum(len(str(part)) + 1 for part in parts)
        if self._character_count > MAX_NAME_CHARACTERS:
            raise ValueError(f"the full names of its columns have more than {MAX_NAME_CHARACTERS:,} characters")
        return ".".join(map(str, parts))


def _schema(document: Mapping[str, Any], names: _Names) -> Schema:
    fields: list[Field] = []
    if not isinstance(document["fields"], list):
        raise ValueError("the fields of a schema are no list")
    for column in document["fields"]:
        part = (column["id"], column["name"], column["type"], column["required"])
        _flatten(part, fields, names, level=0, repeated=False)
    if len({field.field_id for field in fields}) < len(fields):
        raise ValueError(f"two columns of schema {_int(document.get('schema-id', 0))} have one id")
    if sum(len(field.name) for field in fields) > _MOST_OF_A_SCHEMA:
        raise ValueError(f"the full names of the columns of a schema have more than {_MOST_OF_A_SCHEMA:,} characters")
    return Schema(_int(document.get("schema-id", 0)), tuple(fields))


_Part = tuple[Any, Any, Any, Any]
"""Id, name, type and `required` of a field, as they stand in JSON."""


def _flatten(part: _Part, out: list[Field], names: _Names, *, level: int, repeated: bool) -> None:
    field_id, name, kind, required = part
    if level > _MOST_LEVELS:
        raise ValueError(f"a column is nested more than {_MOST_LEVELS} levels deep")
    own = spell_type(kind) if isinstance(kind, str) else str(kind["type"])
    out.append(Field(_int(field_id), str(name), own, bool(required), level == 0, repeated))
    if isinstance(kind, str):
        to_arrow_type(kind)
    else:
        for inner_id, inner_name, inner_kind, inner_required in _parts(name, kind):
            inner = (inner_id, names.join(name, inner_name), inner_kind, inner_required)
            _flatten(inner, out, names, level=level + 1, repeated=repeated or own != "struct")


def _parts(name: str, kind: Mapping[str, Any]) -> list[_Part]:
    if kind["type"] == "struct":
        return [(f["id"], f["name"], f["type"], f["required"]) for f in kind["fields"]]
    if kind["type"] == "list":
        return [(kind["element-id"], "element", kind["element"], kind["element-required"])]
    if kind["type"] == "map":
        key = (kind["key-id"], "key", kind["key"], True)
        return [key, (kind["value-id"], "value", kind["value"], kind["value-required"])]
    raise ValueError(f"field {name!r} has the unknown nested type {kind['type']!r}")


def _spec(spec_id: int, fields: list[Mapping[str, Any]]) -> PartitionSpec:
    # Field ids of v1 specs may be absent: they count up from 1000.
    found = tuple(
        PartitionField(_int(f.get("field-id", 1000 + i)), _source_id(f), str(f["name"]), _transform(f["transform"]))
        for i, f in enumerate(fields)
    )
    if min(len({field.name for field in found}), len({field.field_id for field in found})) < len(found):
        raise ValueError(f"two fields of partition spec {_int(spec_id)} have one name or one id")
    return PartitionSpec(_int(spec_id), found)


def find_source_ids(field: Mapping[str, Any]) -> list[Any]:
    """Return the ids of the columns that a partition field of metadata.json is made of: in format v3 more than one."""
    return list(field["source-ids"]) if "source-ids" in field else [field["source-id"]]


def _source_id(field: Mapping[str, Any]) -> int:
    """Return the column; of a field of several columns, as of one whose column is gone, no value tells anything."""
    source_ids = find_source_ids(field)
    return _int(source_ids[0]) if len(source_ids) == 1 else NO_COLUMN


def _transform(value: Any) -> str:
    text = str(value)
    word, number = split_transform(text)
    if word in _COUNTED and not (0 < number < 1 << 31 and text == f"{word}[{number}]"):
        raise ValueError(f"the transform {text!r:.40}, expected {word}[...] with a number from 1 on")
    return text


_COUNTED = ("bucket", "truncate")
_NUMBERS = frozenset({"int", "long", "decimal"})
_TRANSFORMED = {
    "bucket": _NUMBERS | TIMESTAMPS | {"date", "time", "string", "uuid", "fixed", "binary"},
    "truncate": _NUMBERS | {"string", "binary"},
    **dict.fromkeys(("year", "month", "day"), TIMESTAMPS | {"date"}),
    "hour": TIMESTAMPS,
}
"""The types that a transform takes. Source: Iceberg spec, "Partition Transforms"."""


def _check_transforms(specs: Iterable[PartitionSpec], schemas: Iterable[Schema]) -> None:
    fields = [field for spec in specs for field in spec.fields if field.transform not in ("identity", "void")]
    types: dict[int, set[str]] = {field.source_id: set() for field in fields}
    for column in (column for schema in schemas for column in schema.fields if column.field_id in types):
        types[column.field_id].add(_TYPE_NAME.split(column.type)[0])
    for field in fields:
        taken, there = _TRANSFORMED.get(split_transform(field.transform)[0]), types[field.source_id]
        if taken is not None and there and not there & taken:
            shown = " or ".join(sorted(there))
            raise ValueError(f"partition field {field.name!r:.80} is the {field.transform} of a column of type {shown}")


_TYPE_NAME = re.compile(r"[(\[]")


def _snapshot(doc: Mapping[str, Any]) -> Snapshot:
    parent = doc.get("parent-snapshot-id")
    schema_id, manifest_list = doc.get("schema-id"), doc.get("manifest-list")
    return Snapshot(
        snapshot_id=_long(doc["snapshot-id"]),
        parent_snapshot_id=None if parent is None else _long(parent),
        sequence_number=_long(doc.get("sequence-number") or 0),
        timestamp_ms=_time(doc["timestamp-ms"]),
        manifest_list=None if manifest_list is None else str(manifest_list),
        manifests=tuple(str(m) for m in doc.get("manifests") or ()),
        schema_id=None if schema_id is None else _int(schema_id),
        summary={str(k): str(v) for k, v in (doc.get("summary") or {}).items()},
    )


def _statistics(doc: Mapping[str, Any]) -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=_long(doc["snapshot-id"]),
        statistics_path=str(doc["statistics-path"]),
        file_size_in_bytes=_long(doc["file-size-in-bytes"]),
        file_footer_size_in_bytes=_long(doc["file-footer-size-in-bytes"]),
        blobs=tuple(
            BlobMetadata(
                type=str(b["type"]),
                snapshot_id=_long(b["snapshot-id"]),
                sequence_number=_long(b["sequence-number"]),
                field_ids=tuple(_int(f) for f in b["fields"]),
                properties={str(k): str(v) for k, v in (b.get("properties") or {}).items()},
            )
            for b in doc.get("blob-metadata") or []
        ),
        key_metadata=None if doc.get("key-metadata") is None else str(doc["key-metadata"]),
    )


def _int(value: Any) -> int:
    return _whole(value, 32)


def _long(value: Any) -> int:
    return _whole(value, 64)


def _whole(value: Any, bits: int) -> int:
    number = int(value)
    if number.bit_length() >= bits:
        raise ValueError(f"{number:.6g} where an integer of {bits} bits belongs")
    return number


def _time(value: Any) -> int:
    number = int(value)
    if not FIRST_TIME_MS <= number <= LAST_TIME_MS:
        raise ValueError(f"{number:.6g} where milliseconds since 1970 belong, of the years 1 to 9999")
    return number
