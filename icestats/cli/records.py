"""Arrow rows -> the JSON objects that the command line prints.

Numbers are numbers, 64-bit identifiers strings, decimals strings, dates and timestamps ISO 8601, binary hexadecimal,
NaN and infinities strings; null is unknown.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from icestats.answers.schemas import STATISTICS, SUMMED_STATISTICS
from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.iceberg.types import decode_json, json_value

_IDENTIFIERS = frozenset({"added_snapshot_id", "snapshot_id", "parent_snapshot_id", "last_updated_snapshot_id"})
_MAP_NAMES = {
    "column_sizes": "total_column_sizes",
    "value_counts": "total_value_counts",
    "null_value_counts": "total_null_value_counts",
    "nan_value_counts": "total_nan_value_counts",
    "lower_bounds": "lower_bounds",
    "upper_bounds": "upper_bounds",
}
_PLURALS = tuple(f"{statistic}s" for statistic in STATISTICS)
_MAP_COLUMNS = frozenset(_PLURALS) | {f"{name}_missing_files" for name in _PLURALS}


def build_manifest_records(manifests: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    """Build an object a manifest from `Table.manifests()`, in its order."""
    return [_with_maps(row, schema) for row in manifests.drop_columns(["partitions", "key_metadata"]).to_pylist()]


def build_partition_records(
    partitions: pa.Table, schema: Schema, specs: Mapping[int, PartitionSpec]
) -> list[dict[str, Any]]:
    """Build an object a partition from `Table.partitions()`, in its order.

    `partition` holds the fields of the row's own spec.
    """
    records = []
    for row in partitions.to_pylist():
        record = _with_maps(row, schema)
        names = [field.name for field in specs[row["spec_id"]].fields]
        record["partition"] = {name: plain_value(row["partition"][name]) for name in names if name in row["partition"]}
        records.append(record)
    return records


def build_column_records(columns: pa.Table) -> list[dict[str, Any]]:
    """Build an object a column from `Table.columns()`, in its order."""
    records = []
    for row in columns.to_pylist():
        record = {name: plain_value(value) for name, value in row.items()}
        for side in ("lower_bound", "upper_bound"):
            record[side] = decode_json(row["type"], row[side])
        record["missing_files"] = dict(row["missing_files"])
        record["provenance"] = dict(row["provenance"])
        records.append(record)
    return records


def build_sketch_records(sketches: pa.Table) -> list[dict[str, Any]]:
    """Build an object a blob from `Table.sketches()`, in its order."""
    return [
        {**_plain_row(row), "properties": dict(row["properties"]), "field_ids": row["field_ids"]}
        for row in sketches.to_pylist()
    ]


def build_plain_records(table: pa.Table) -> list[dict[str, Any]]:
    """Build an object a row from any Arrow table."""
    return [_plain_row(row) for row in table.to_pylist()]


def plain_value(value: Any) -> Any:
    """Return any Arrow value as JSON has it, without its Iceberg type."""
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, float):
        return json_value("double", value)
    if isinstance(value, Mapping):
        return _plain_row(value)
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    return value


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _identifier(value) if name in _IDENTIFIERS else plain_value(value) for name, value in row.items()}


def _identifier(value: int | None) -> str | None:
    return None if value is None else str(value)


def _with_maps(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    record = _plain_row({name: value for name, value in row.items() if name not in _MAP_COLUMNS})
    for statistic, name in zip(STATISTICS, _PLURALS, strict=True):
        items: Iterable[tuple[int, Any]] = row[name] or ()
        if statistic in SUMMED_STATISTICS:
            record[_MAP_NAMES[name]] = {str(field_id): value for field_id, value in items}
        else:
            record[_MAP_NAMES[name]] = {str(field_id): _bound(schema, field_id, value) for field_id, value in items}
    record["missing_files"] = {
        name: lacking
        for name in _PLURALS
        if (lacking := {str(f): count for f, count in row[f"{name}_missing_files"] or () if count})
    }
    return record


def _bound(schema: Schema, field_id: int, value: bytes | None) -> Any:
    field = schema.get(field_id)
    return decode_json("binary" if field is None else field.type, value)
