"""The Avro schemas of manifests and manifest lists of format version 2, as Iceberg's Java library writes them."""

from __future__ import annotations

from typing import Any

import fastavro


def _field(name: str, field_id: int, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if not optional:
        return {"name": name, "type": kind, "field-id": field_id}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(key_id: int, value_id: int, kind: str) -> dict[str, Any]:
    entry = _record(f"k{key_id}_v{value_id}", _field("key", key_id, "int"), _field("value", value_id, kind))
    return {"type": "array", "items": entry, "logicalType": "map"}


def _list(element_id: int, kind: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind, "element-id": element_id}


def _manifest_entry() -> Any:
    """The schema of an entry, whose partition is a day and a bucket."""
    partition = _record(
        "r102",
        _field("event_time_day", 1000, {"type": "int", "logicalType": "date"}, optional=True),
        _field("device_id_bucket", 1001, "int", optional=True),
    )
    data_file = _record(
        "r2",
        _field("content", 134, "int"),
        _field("file_path", 100, "string"),
        _field("file_format", 101, "string"),
        _field("partition", 102, partition),
        _field("record_count", 103, "long"),
        _field("file_size_in_bytes", 104, "long"),
        _field("column_sizes", 108, _map(117, 118, "long"), optional=True),
        _field("value_counts", 109, _map(119, 120, "long"), optional=True),
        _field("null_value_counts", 110, _map(121, 122, "long"), optional=True),
        _field("nan_value_counts", 137, _map(138, 139, "long"), optional=True),
        _field("lower_bounds", 125, _map(126, 127, "bytes"), optional=True),
        _field("upper_bounds", 128, _map(129, 130, "bytes"), optional=True),
        _field("key_metadata", 131, "bytes", optional=True),
        _field("split_offsets", 132, _list(133, "long"), optional=True),
        _field("equality_ids", 135, _list(136, "int"), optional=True),
        _field("sort_order_id", 140, "int", optional=True),
        _field("referenced_data_file", 143, "string", optional=True),
    )
    entry = _record(
        "manifest_entry",
        _field("status", 0, "int"),
        _field("snapshot_id", 1, "long", optional=True),
        _field("sequence_number", 3, "long", optional=True),
        _field("file_sequence_number", 4, "long", optional=True),
        _field("data_file", 2, data_file),
    )
    return fastavro.parse_schema(entry)


MANIFEST_ENTRY = _manifest_entry()
MANIFEST_FILE = fastavro.parse_schema(
    _record(
        "manifest_file",
        _field("manifest_path", 500, "string"),
        _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"),
        _field("content", 517, "int"),
        _field("sequence_number", 515, "long"),
        _field("min_sequence_number", 516, "long"),
        _field("added_snapshot_id", 503, "long"),
        _field("added_files_count", 504, "int"),
        _field("existing_files_count", 505, "int"),
        _field("deleted_files_count", 506, "int"),
        _field("added_rows_count", 512, "long"),
        _field("existing_rows_count", 513, "long"),
        _field("deleted_rows_count", 514, "long"),
        _field(
            "partitions",
            507,
            _list(
                508,
                _record(
                    "r508",
                    _field("contains_null", 509, "boolean"),
                    _field("contains_nan", 518, "boolean", optional=True),
                    _field("lower_bound", 510, "bytes", optional=True),
                    _field("upper_bound", 511, "bytes", optional=True),
                ),
            ),
            optional=True,
        ),
        _field("key_metadata", 519, "bytes", optional=True),
    )
)
