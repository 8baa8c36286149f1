"""Statistics by partition -> the bytes of a partition statistics file, Parquet or Avro."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from icestats.answers.arrays import combine_chunks
from icestats.answers.schemas import STATISTICS
from icestats.errors import UnsupportedError
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.types import parse_type
from icestats.read.partitions.partition_statistics import PartitionStatistics, map_names, partition_file_schema
from icestats.read.rollups.stored_table import describe_columns, field_id_of, write_parquet
from icestats.stats.rollup_cells import find_known_cells, has_column_statistic

FileFormat = Literal["parquet", "avro"]
_Lengths = Mapping[str, pa.Array]
"""`avg_lengths` and `max_lengths`: a map field id -> bytes for each partition."""


def build_stored_table(
    statistics: PartitionStatistics,
    partition: Sequence[PartitionColumn],
    format_version: int,
    lengths: _Lengths | None = None,
) -> pa.Table:
    """Build the columns of a partition statistics file.

    Parameters
    ----------
    statistics : PartitionStatistics
        What was computed.
    partition : sequence of PartitionColumn
        The partition fields of all specs.
    format_version : int
        The table's.
    lengths : mapping, optional
        Average and largest lengths of values, in bytes, where a scan has made them.

    Raises
    ------
    UnsupportedError
        The type of a partition field is unknown.
    """
    unknown = [column.name for column in partition if column.type is None]
    if unknown:
        raise UnsupportedError(
            f"partition field {unknown[0]!r}: its source column is gone and no manifest says its type, so partition "
            "statistics cannot be written"
        )
    maps = map_names(with_lengths=bool(lengths)) if statistics.columns else ()
    schema = partition_file_schema(format_version, partition, maps)
    groups = statistics.groups
    arrays: dict[str, pa.Array] = {"partition": groups["partition"].combine_chunks()}
    arrays |= {name: groups[name].combine_chunks() for name in schema.names if name in groups.column_names}
    for name in schema.names:
        if name.endswith("_at"):
            arrays[name] = arrays[name].cast(pa.int64())
    if statistics.columns:
        arrays |= _build_maps(statistics) | dict(lengths or {})
    columns = [_fit(arrays[field.name], field.type) for field in schema]
    return pa.table(columns, schema=schema.with_metadata(describe_columns(statistics.columns) if maps else None))


def _fit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind):
        fields = [_fit(array.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    if isinstance(kind, pa.UuidType):
        return pa.ExtensionArray.from_storage(kind, array.cast(pa.binary(16)))
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=kind)
    return array.cast(kind)


def _build_maps(statistics: PartitionStatistics) -> dict[str, pa.Array]:
    columns, live = statistics.columns, statistics.groups["data_file_count"].to_numpy()
    known = find_known_cells(statistics.cells, live, len(columns))
    out = {}
    for statistic in STATISTICS:
        applies = np.tile(np.array([has_column_statistic(c, statistic) for c in columns], np.bool_), len(live))
        # A partition without live files has no figures: its sums of nothing are left out.
        applies &= np.repeat(live > 0, len(columns))
        values, missing = known.values[statistic], known.missing[statistic]
        out[f"{statistic}s"] = _map(values, np.asarray(values.is_valid()) & applies, statistics)
        out[f"{statistic}s_missing_files"] = _map(pa.array(missing), (missing > 0) & applies, statistics)
    return out


def _map(values: pa.Array, present: np.ndarray, statistics: PartitionStatistics) -> pa.Array:
    width = len(statistics.columns)
    ids = np.tile(np.array([c.field_id for c in statistics.columns], np.int32), len(statistics.groups))
    offsets = np.zeros(len(statistics.groups) + 1, np.int32)
    np.cumsum(present.reshape(-1, width).sum(axis=1), out=offsets[1:])
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(ids[present]), values.filter(pa.array(present)))


def write_stored_table(table: pa.Table, partition: Sequence[PartitionColumn], file_format: FileFormat) -> bytes:
    """Return the bytes of a partition statistics file."""
    return _write_avro(table, partition) if file_format == "avro" else write_parquet(table, "zstd")


def _write_avro(table: pa.Table, partition: Sequence[PartitionColumn]) -> bytes:
    import fastavro

    columns = {name: _plain_values(combine_chunks(table[name]), partition) for name in table.column_names}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    file = io.BytesIO()
    # By default it is random: the same statistics would be another file each time.
    marker = hashlib.sha256(repr(rows).encode()).digest()[:16]
    schema = _avro_schema(table.schema, partition)
    fastavro.writer(file, schema, rows, codec="deflate", metadata=metadata, sync_marker=marker)
    return file.getvalue()


def _avro_schema(schema: pa.Schema, partition: Sequence[PartitionColumn]) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for field in schema:
        field_id = field_id_of(field)
        if field.name == "partition":
            inner = [_optional(c.name, _avro_type(c), c.field_id) for c in partition]
            record = {"type": "record", "name": "r1", "fields": inner}
            fields.append({"name": field.name, "type": record, "field-id": field_id})
        elif pa.types.is_map(field.type):
            fields.append(_optional(field.name, _avro_map(field.type), field_id))
        else:
            kind = "int" if pa.types.is_int32(field.type) else "long"
            if field.nullable:
                fields.append(_optional(field.name, kind, field_id))
            else:
                fields.append({"name": field.name, "type": kind, "field-id": field_id})
    return {"type": "record", "name": "table", "fields": fields}


def _avro_map(kind: pa.MapType) -> dict[str, Any]:
    key_id, value_id = field_id_of(kind.key_field), field_id_of(kind.item_field)
    value = "bytes" if pa.types.is_binary(kind.item_type) else "long"
    entries = [
        {"name": "key", "type": "int", "field-id": key_id},
        {"name": "value", "type": value, "field-id": value_id},
    ]
    return {
        "type": "array",
        "items": {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": entries},
        "logicalType": "map",
    }


def _optional(name: str, kind: Any, field_id: int | None) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


_AVRO_TYPES: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}


def _avro_type(column: PartitionColumn) -> Any:
    kind = parse_type(column.type or "unknown")
    if kind.name == "uuid":
        return {"type": "fixed", "name": f"uuid_{column.field_id}", "size": 16, "logicalType": "uuid"}
    if kind.name == "fixed":
        return {"type": "fixed", "name": f"fixed_{column.field_id}", "size": kind.length}
    if kind.name == "decimal":
        return {
            "type": "fixed",
            "name": f"decimal_{column.field_id}",
            "size": _decimal_size(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    return _AVRO_TYPES[kind.name]


def _decimal_size(precision: int) -> int:
    """Bytes of the largest unscaled value (spec, Appendix A)."""
    size: int = ((10**precision - 1).bit_length() + 8) // 8
    return size


def _plain_values(array: pa.Array, partition: Sequence[PartitionColumn]) -> list[Any]:
    if pa.types.is_map(array.type):
        return [None if v is None else [{"key": k, "value": x} for k, x in v] for v in array.to_pylist()]
    if not pa.types.is_struct(array.type):
        return list(array.to_pylist())
    columns = [_plain_field(array.field(place)) for place in range(len(partition))]
    return [dict(zip((c.name for c in partition), row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_field(array: pa.Array) -> list[Any]:
    # As fastavro takes them whatever year they are of, and whatever zone this machine is in.
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    elif pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return list(array.to_pylist())
