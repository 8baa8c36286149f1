"""Statistics by partition: what a partition statistics file holds, reading one, and merging.

Iceberg's own columns come first, in its order, then the kit's optional ones. Columns are found by their field ids; a
file whose ids are not the spec's (Iceberg before 1.10 counted from 0) is refused. A map has only the columns whose
figure is known; another map has the number of files that lack it, where there are any: without that, a reader could
not tell *no value to bound* from *unknown*.

Source: Iceberg spec, "Partition Statistics File"; "Extending standardized statistics in Iceberg", part 2.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import COUNTS, ROLLUP_CELLS, STATISTICS, partition_groups_schema
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import FIRST_TIME_MS, LAST_TIME_MS, Field, PartitionSpec
from icestats.iceberg.partition_columns import VOID, PartitionColumn, avro_value_type, struct_type
from icestats.iceberg.types import to_arrow_type
from icestats.read.avro.avro_file import read_header
from icestats.read.avro.avro_records import Wanted, read_records
from icestats.read.rollups.rollup_merge import LATEST, merge_cells, merge_partition_groups
from icestats.read.rollups.stored_table import (
    OWN_FIELDS,
    arrays_by_id,
    damage_in,
    field_id_of,
    open_parquet,
    read_column_types,
    read_parquet,
    stored_field,
    stored_type,
)
from icestats.stats.rollup_cells import KnownCells, build_known_cells

LENGTH_MAPS = ("avg_lengths", "max_lengths")
"""Bytes of a column's values, rounded, where a scan has made them."""
_MAPS = (*(f"{name}s" for name in STATISTICS), *LENGTH_MAPS, *(f"{name}s_missing_files" for name in STATISTICS))
ADDED = ("last_added_at", "last_added_snapshot_id")
"""The kit's own: when the latest known snapshot added a live file, in ms, and which; Iceberg's `last_updated` counts
removals too."""
_ICEBERG = (
    *(("spec_id", pa.int32()), ("data_record_count", pa.int64()), ("data_file_count", pa.int32())),
    *(("total_data_file_size_in_bytes", pa.int64()), ("position_delete_record_count", pa.int64())),
    *(("position_delete_file_count", pa.int32()), ("equality_delete_record_count", pa.int64())),
    *(("equality_delete_file_count", pa.int32()), ("total_record_count", pa.int64())),
    *(("last_updated_at", pa.int64()), ("last_updated_snapshot_id", pa.int64()), ("dv_count", pa.int32())),
)
"""Iceberg's columns, with ids from 2 on."""
_PARTITION = 1
_DELETES = (6, 7, 8, 9)
"""The ids of the counts of deletes."""
_TIME = pa.timestamp("ms", tz="UTC")
_PROMOTED = (
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
    (pa.large_string(), pa.string()),
    (pa.large_binary(), pa.binary()),
)


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """Statistics of partitions at one snapshot."""

    groups: pa.Table
    """`schemas.partition_groups_schema`, and `last_added_at` and `last_added_snapshot_id`. One row a partition of one
    spec, sorted; also of those whose last live file is gone, where the snapshot's manifests still say so."""
    cells: pa.Table
    """`schemas.ROLLUP_CELLS` of `groups`, for `columns`."""
    columns: tuple[Field, ...]
    """The columns that have statistics; none where only files and rows were counted."""
    knows_added: bool = True
    """Whether `last_added` is known: it is not in a file that Iceberg wrote."""
    lengths: Mapping[str, pa.Array] | None = None
    """`avg_lengths` and `max_lengths` of `groups`, `schemas.COUNTS`, where a scan of the snapshot has made them."""


def merge_partition_statistics(parts: Sequence[PartitionStatistics]) -> PartitionStatistics:
    """Merge the statistics of distinct manifests, each with the same columns; or rows of one file for one partition."""
    groups = pa.concat_tables([part.groups for part in parts], promote_options="permissive").combine_chunks()
    columns = parts[0].columns
    if not len(groups):
        return parts[0]
    merged, places = merge_partition_groups(groups, (LATEST, ADDED))
    if len(parts) > 1 or len(merged) < len(groups):
        # What deletes leave of a partition is no sum of what they leave of parts.
        place = merged.column_names.index("total_record_count")
        merged = merged.set_column(place, merged.schema.field(place), pa.nulls(len(merged), pa.int64()))
    cells = ROLLUP_CELLS.empty_table()
    if columns:
        cells = merge_cells([part.cells for part in parts], places, len(merged), columns)
    return PartitionStatistics(merged, cells, columns, all(part.knows_added for part in parts))


def partition_file_schema(format_version: int, partition: Sequence[PartitionColumn], maps: Iterable[str]) -> pa.Schema:
    """Return the schema of a file, with field ids, in Parquet's terms.

    Parameters
    ----------
    format_version : int
        The table's: before version 3 there is no `dv_count`, and counts of deletes are optional.
    partition : sequence of PartitionColumn
        The partition fields of all specs.
    maps : iterable of str
        Of `map_names`.
    """
    fields = [stored_field(c.name, stored_type(c.type or "") or pa.binary(), c.field_id) for c in partition]
    required = {2, 3, 4, 5} | ({6, 7, 8, 9, 13} if format_version >= 3 else set())
    columns = [stored_field("partition", pa.struct(fields), _PARTITION, nullable=False)]
    for field_id, (name, kind) in enumerate(_ICEBERG, 2):
        if field_id < 13 or format_version >= 3:
            columns.append(stored_field(name, kind, field_id, nullable=field_id not in required))
    own = [*(stored_field(name, pa.int64(), _own_id(name)) for name in ADDED), *map(_map_field, maps)]
    return pa.schema(columns + own if len(own) > len(ADDED) else columns)


def map_names(*, with_lengths: bool) -> list[str]:
    """Return the names of the maps of a file with column statistics."""
    return [name for name in _MAPS if with_lengths or name not in LENGTH_MAPS]


def _own_id(name: str) -> int:
    return OWN_FIELDS + (ADDED.index(name) if name in ADDED else 100 + 3 * _MAPS.index(name))


def _map_field(name: str) -> pa.Field:
    first = _own_id(name)
    value = pa.binary() if name in ("lower_bounds", "upper_bounds") else pa.int64()
    entries = (("key", pa.int32(), first + 1), ("value", value, first + 2))
    return stored_field(name, pa.map_(*(stored_field(*entry, nullable=False) for entry in entries)), first)


def read_partition_statistics(
    data: bytes,
    path: str,
    partition: Sequence[PartitionColumn],
    columns: Sequence[Field],
    specs: Mapping[int, PartitionSpec],
) -> PartitionStatistics:
    """Read a partition statistics file, Parquet or Avro.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        Its location; the end of its name says the format.
    partition : sequence of PartitionColumn
        The partition fields of all specs. Those that the file does not have are null; no row's spec has them.
    columns : sequence of Field
        The columns whose statistics are wanted. The result has those of them that the file has, of their type now.
    specs : mapping of int to PartitionSpec
        The table's specs by id.

    Raises
    ------
    MetadataError
        The file is cut or damaged, a figure in it is impossible, or it lacks a partition field of its rows.
    UnsupportedError
        Its field ids are not the spec's, it does not count deletes, or it is of another format.
    """
    if path.endswith(".parquet"):
        with damage_in(path, "the Parquet file is cut or damaged"):
            table = read_parquet(open_parquet(data))
    elif path.endswith(".avro"):
        with damage_in(path, "not partition statistics"):
            table = _read_avro(data, path, partition)
    else:
        raise UnsupportedError(f"{path}: partition statistics are read from Parquet and Avro files only")
    with damage_in(path, "not partition statistics"):
        names = {field.name: field_id_of(field) for field in table.schema}
        by_id = arrays_by_id(table)
    _check_ids(names, path)
    _check_deletes(by_id, path)
    with damage_in(path, "not partition statistics"):
        groups = _build_groups(by_id, partition)
        _check_partition(by_id[_PARTITION].type, groups["spec_id"].unique().to_pylist(), specs)
        types = read_column_types(table.schema.metadata or {}) or {}
        has_maps = all(_own_id(name) in by_id for name in map_names(with_lengths=False))
        found = tuple(c for c in columns if has_maps and types.get(c.field_id) == c.type)
        live = to_numpy(groups["data_file_count"])
        cells = build_known_cells(_known(by_id, found), found, live) if found else ROLLUP_CELLS.empty_table()
        lengths = {name: _read_lengths(by_id[_own_id(name)]) for name in LENGTH_MAPS if _own_id(name) in by_id}
    return PartitionStatistics(groups, cells, found, all(_own_id(name) in by_id for name in ADDED), lengths)


def _read_lengths(stored: pa.Array) -> pa.Array:
    lengths = stored.cast(COUNTS)
    if len(lengths.items) and pc.min(lengths.items).as_py() < 0:
        raise ValueError("a length is negative")
    return lengths


def _check_ids(names: dict[str, int | None], path: str) -> None:
    expected = {"partition": _PARTITION} | {name: field_id for field_id, (name, _) in enumerate(_ICEBERG, 2)}
    for name, field_id in expected.items():
        found = names.get(name)
        if found is not None and found != field_id:
            raise UnsupportedError(
                f"{path}: its field {name} has id {found}, expected {field_id}: Iceberg before 1.10 wrote such "
                "partition statistics; compute them again"
            )
        if field_id <= 5 and field_id not in names.values():
            raise MetadataError(f"not partition statistics: no field {name} (id {field_id})", path)


def _check_partition(stored: pa.StructType, spec_ids: Iterable[int], specs: Mapping[int, PartitionSpec]) -> None:
    """Refuse rows whose partitions the file does not tell apart."""
    found = {field_id_of(field) for field in stored}
    for field in (field for spec_id in spec_ids if spec_id in specs for field in specs[spec_id].fields):
        if field.transform != VOID and field.field_id not in found:
            raise ValueError(f"partition lacks the field {field.name} (id {field.field_id}) of a spec of its rows")


def _check_deletes(by_id: Mapping[int | None, pa.Array], path: str) -> None:
    """Refuse rows whose deletes are not counted: format versions 1 and 2 let a writer leave that out."""
    for field_id in _DELETES:
        if field_id not in by_id or by_id[field_id].null_count:
            name = _ICEBERG[field_id - 2][0]
            raise UnsupportedError(f"{path}: {name} is not known for each partition; compute these statistics again")


def _build_groups(by_id: dict[int | None, pa.Array], partition: Sequence[PartitionColumn]) -> pa.Table:
    schema = partition_groups_schema(struct_type(partition))
    arrays = {"partition": _build_partition(by_id[_PARTITION], partition)}
    count = len(arrays["partition"])
    numbered = [(field_id, name) for field_id, (name, _) in enumerate(_ICEBERG, 2)]
    for field_id, name in (*numbered, *((_own_id(name), name) for name in ADDED)):
        numbers = by_id.get(field_id, pa.nulls(count, pa.int64())).cast(pa.int64())
        if name.endswith(("_count", "_in_bytes")) and name != "total_record_count":
            numbers = pc.fill_null(numbers, 0)
            if count and pc.min(numbers).as_py() < 0:
                raise ValueError(f"{name} is negative (apache/iceberg#17915)")
            if count and pc.max(numbers).as_py() > 2**53:
                raise ValueError(f"{name} is above 2**53")
        if name.endswith("_at") and numbers.null_count < count:
            least, most = pc.min_max(numbers).values()
            if least.as_py() < FIRST_TIME_MS or most.as_py() > LAST_TIME_MS:
                raise ValueError(f"{name} is no time of the years 1 to 9999")
        arrays[name] = numbers.cast(_TIME) if name.endswith("_at") else numbers
    for name in ADDED:
        schema = schema.append(pa.field(name, arrays[name].type))
    return pa.table([arrays[name] for name in schema.names], schema.names).cast(schema)


def _build_partition(stored: pa.StructArray, columns: Sequence[PartitionColumn]) -> pa.StructArray:
    kind = struct_type(columns)
    if not columns:
        return pa.Array.from_buffers(kind, len(stored), [None])
    by_id, arrays = arrays_by_id(stored), []
    for column, field in zip(columns, kind, strict=True):
        found = by_id.get(column.field_id, pa.nulls(len(stored), field.type))
        found = found.storage if isinstance(found, pa.ExtensionArray) else found
        if not _is_read_as(found.type, field.type):
            raise ValueError(f"partition field {column.name} is stored as {found.type}, expected {field.type}")
        arrays.append(found.cast(field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _is_read_as(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether values are of a type, or of one that Iceberg promotes to it: Arrow casts an int to a date, too."""
    kinds = pa.types
    if kinds.is_null(stored) or kinds.is_null(expected):
        return True
    if kinds.is_decimal(expected):
        return bool(kinds.is_decimal(stored) and stored.scale == expected.scale)
    if kinds.is_timestamp(expected):
        is_alike = kinds.is_timestamp(stored) and bool(stored.tz) == bool(expected.tz)
        # Avro's readers leave nanoseconds as they are stored.
        return is_alike or kinds.is_date32(stored) or (expected.unit, stored) == ("ns", pa.int64())
    return stored == expected or (stored, expected) in _PROMOTED


def _known(by_id: dict[int | None, pa.Array], columns: Sequence[Field]) -> KnownCells:
    values = {name: _spread(by_id, f"{name}s", columns) for name in STATISTICS}
    missing = {name: to_numpy(_spread(by_id, f"{name}s_missing_files", columns), null=0) for name in STATISTICS}
    return KnownCells(values, missing)


def _spread(by_id: dict[int | None, pa.Array], name: str, columns: Sequence[Field]) -> pa.Array:
    """Return a map's values: every column, for each row in turn; null where the map has no entry."""
    array, kind = by_id[_own_id(name)], _map_field(name).type.item_type
    pairs = array.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", kind)])))
    rows = to_numpy(pc.list_parent_indices(pairs))
    entries = pairs.flatten()
    if not len(entries):
        return pa.nulls(len(array) * len(columns), kind)
    ids = np.array([column.field_id for column in columns], np.int64)
    order = np.argsort(ids)
    keys = to_numpy(entries.field(0)).astype(np.int64)
    near = order[np.minimum(np.searchsorted(ids[order], keys), len(ids) - 1)]
    wanted = ids[near] == keys
    places = np.full(len(array) * len(columns), -1, np.int64)
    places[rows[wanted] * len(columns) + near[wanted]] = np.flatnonzero(wanted)
    return entries.field(1).take(pa.array(np.where(places < 0, 0, places), mask=places < 0))


def _read_avro(data: bytes, path: str, partition: Sequence[PartitionColumn]) -> pa.Table:
    wanted: dict[int, Wanted | None] = {
        **dict.fromkeys((*range(2, 2 + len(_ICEBERG)), *map(_own_id, ADDED))),
        **{_own_id(name): dict.fromkeys((_own_id(name) + 1, _own_id(name) + 2)) for name in _MAPS},
        _PARTITION: dict.fromkeys(column.field_id for column in partition),
    }
    schema, batches = read_records(data, path, wanted)
    metadata = {key.encode(): value for key, value in read_header(data, path).metadata.items()}
    parts = [_build_avro_rows(schema, [])]
    for records in batches:
        parts.append(_build_avro_rows(schema, records))
        records.clear()
    return pa.concat_tables(parts).replace_schema_metadata(metadata)


def _build_avro_rows(schema: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> pa.Table:
    fields, arrays = [], []
    maps = {_own_id(name): _map_field(name).type for name in _MAPS}
    for field in schema["fields"]:
        name, field_id = field["name"], field.get("field-id")
        values = [record[name] for record in records]
        if field_id == _PARTITION:
            kind = _avro_partition_type(field["type"])
            values = [{key: _plain(item) for key, item in value.items()} for value in values]
        elif field_id in maps:
            kind = maps[field_id]
            values = [None if v is None else [(pair["key"], pair["value"]) for pair in v] for v in values]
        else:
            kind = pa.int64()
        fields.append(stored_field(name, kind, field_id))
        arrays.append(pa.array(values, kind))
        changed = [v for v, kept in zip(values, arrays[-1].to_pylist(), strict=True) if v != kept]
        if changed and field_id != _PARTITION:
            raise ValueError(f"{name} is {changed[0]!r:.60}, expected {kind}")
    return pa.table(arrays, pa.schema(fields))


def _avro_partition_type(avro: Any) -> pa.StructType:
    kinds = [(field, avro_value_type(field["type"])) for field in avro["fields"]]
    return pa.struct(
        [
            stored_field(field["name"], pa.null() if text is None else to_arrow_type(text), field["field-id"])
            for field, text in kinds
        ]
    )


def _plain(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value
