"""A partition statistics file as it is stored: its columns by field id, Parquet and Avro alike."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.partition_columns import PartitionColumn, avro_value_type, struct_type
from icestats.iceberg.types import to_arrow_type
from icestats.read.avro.avro_file import read_header
from icestats.read.avro.avro_records import read_records
from icestats.read.partitions.partition_statistics_layout import MAPS, map_ids, map_value_type

_FIELD_ID = b"PARQUET:field_id"
_PARTITION = 1


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The columns of a file."""

    path: str
    row_count: int
    names: Mapping[str, int | None]
    """Column to field id."""
    by_id: Mapping[int, pa.Array]
    partition_fields: Mapping[int, pa.Array]
    """The fields of the partition, by their ids."""
    metadata: Mapping[str, str]

    def id_of(self, name: str) -> int | None:
        """Return the field id of a column, None where there is no such column, or it has no id."""
        return self.names.get(name)

    def partition(self, columns: Sequence[PartitionColumn]) -> pa.StructArray:
        """Return the partitions with the fields of `columns`; a field that the file has not is null."""
        kind = struct_type(columns)
        arrays = []
        for column, field in zip(columns, kind, strict=True):
            found = self.partition_fields.get(column.field_id, pa.nulls(self.row_count, field.type))
            arrays.append(found.cast(field.type))
        if not columns:
            return pa.Array.from_buffers(kind, self.row_count, [None])
        return pa.StructArray.from_arrays(arrays, fields=list(kind))


def read_stored_table(data: bytes, path: str) -> StoredTable:
    """Read a file's columns.

    Raises
    ------
    MetadataError
        The file is cut or damaged.
    UnsupportedError
        It is neither Parquet nor Avro.
    """
    if path.endswith(".parquet"):
        return _read_parquet(data, path)
    if path.endswith(".avro"):
        return _read_avro(data, path)
    raise UnsupportedError(f"{path}: partition statistics are read from Parquet and Avro files only")


def _read_parquet(data: bytes, path: str) -> StoredTable:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        table = file.read().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split())[:200]
        raise MetadataError(f"the Parquet file is cut or damaged: {text}", path) from error
    ids = {field.name: _id_of(field) for field in table.schema}
    by_id = {ids[name]: _single(table[name]) for name in table.column_names}
    partition = by_id.get(_PARTITION)
    fields: dict[int, pa.Array] = {}
    if partition is not None and pa.types.is_struct(partition.type):
        for place, field in enumerate(partition.type):
            array = partition.field(place)
            field_id = _id_of(field)
            if field_id is not None:
                fields[field_id] = array.storage if isinstance(array, pa.ExtensionArray) else array
    metadata = {k.decode(): v.decode("utf-8", "replace") for k, v in (file.metadata.metadata or {}).items()}
    known = {field_id: array for field_id, array in by_id.items() if field_id is not None}
    return StoredTable(path, len(table), ids, known, fields, metadata)


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


def _read_avro(data: bytes, path: str) -> StoredTable:
    schema, records = read_records(data, path)
    header = read_header(data, path)
    metadata = {key: value.decode("utf-8", "replace") for key, value in header.metadata.items()}
    ids = {field["name"]: field.get("field-id") for field in schema["fields"]}
    maps = {map_ids(name)[0]: name for name in MAPS}
    by_id: dict[int, pa.Array] = {}
    fields: dict[int, pa.Array] = {}
    try:
        for field in schema["fields"]:
            field_id, values = field.get("field-id"), [record[field["name"]] for record in records]
            if field_id == _PARTITION:
                fields = _avro_partition(field["type"], values)
                by_id[field_id] = pa.nulls(len(values))
            elif field_id in maps:
                by_id[field_id] = _avro_map(maps[field_id], values)
            elif field_id is not None:
                by_id[field_id] = pa.array(values).cast(pa.int64())
    except (pa.ArrowException, TypeError, KeyError, ValueError, OverflowError) as error:
        raise MetadataError(f"not partition statistics: {' '.join(str(error).split())[:200]}", path) from error
    return StoredTable(path, len(records), ids, by_id, fields, metadata)


def _avro_partition(kind: Any, values: list[Any]) -> dict[int, pa.Array]:
    arrays = {}
    for field in kind["fields"]:
        type_text = avro_value_type(field["type"])
        arrow = pa.null() if type_text is None else to_arrow_type(type_text)
        plain = [value[field["name"]] for value in values]
        arrays[field["field-id"]] = pa.array([v.bytes if isinstance(v, uuid.UUID) else v for v in plain], arrow)
    return arrays


def _avro_map(name: str, values: list[Any]) -> pa.Array:
    kind = pa.map_(pa.int32(), pa.binary() if map_value_type(name) == "binary" else pa.int64())
    return pa.array([None if v is None else [(pair["key"], pair["value"]) for pair in v] for v in values], kind)
