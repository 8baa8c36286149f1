"""The fields of all partition specs of a table, as one type, and their values as readable text.

Source: Iceberg spec, "Partitioning", "Partition Transforms" and "Partition Evolution".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import NESTED_TYPES, PartitionField, PartitionSpec, Schema, split_transform
from icestats.iceberg.types import encode_value, json_value, parse_type, to_arrow_type

VOID = "void"
MAX_PARTITION_FIELDS = 10_000
"""Of all specs: each file has room for each of them, whatever its spec."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition field of one spec or of several."""

    field_id: int
    name: str
    """Its name in the newest spec that has it."""
    type: str | None
    """Iceberg's type of the values; None if the source column is in no known schema, or the transform is not known."""


def find_partition_columns(
    specs: Mapping[int, PartitionSpec], schemas: Iterable[Schema]
) -> tuple[PartitionColumn, ...]:
    """Return the partition fields of all specs, by field id.

    Parameters
    ----------
    specs : mapping of int to PartitionSpec
        The table's specs by id.
    schemas : iterable of Schema
        Where to look up source columns; the first schema that has a column wins.

    Raises
    ------
    UnsupportedError
        Two specs use one field id for different things, as early v1 writers did; or there are more than
        `MAX_PARTITION_FIELDS`.
    """
    known = list(schemas)
    found: dict[int, PartitionField] = {}
    for spec_id in sorted(specs, reverse=True):
        for field in specs[spec_id].fields:
            before = found.get(field.field_id)
            if before is None or before.transform == VOID:
                found[field.field_id] = field
            if before is not None and not _are_compatible(before, field):
                raise UnsupportedError(
                    f"partition field {field.field_id} is {before.transform} of column {before.source_id} in one spec, "
                    f"and {field.transform} of column {field.source_id} in another: such tables cannot be read"
                )
    if len(found) > MAX_PARTITION_FIELDS:
        raise UnsupportedError(
            f"the partition specs have {len(found):,} fields, expected {MAX_PARTITION_FIELDS:,} at most"
        )
    names = _name_fields(specs)
    return tuple(
        PartitionColumn(field_id, names[field_id], _value_type(found[field_id], known)) for field_id in sorted(found)
    )


def find_retyped_fields(specs: Mapping[int, PartitionSpec], schemas: Iterable[Schema]) -> dict[int, tuple[str, ...]]:
    """Return the types of partition fields that have had some that are no promotions of one another, by field id.

    `create or replace table` gives a column of the same name its id again, whatever its type.

    Parameters
    ----------
    specs : mapping of int to PartitionSpec
        The table's specs by id.
    schemas : iterable of Schema
        Where to look up source columns; the types are in their order.
    """
    every = {field.field_id: field for spec in specs.values() for field in spec.fields}.values()
    fields = [field for field in every if split_transform(field.transform)[0] in ("identity", "truncate")]
    types: dict[int, dict[str, None]] = {field.source_id: {} for field in fields}
    for column in (column for schema in schemas for column in schema.fields if column.field_id in types):
        if column.type not in NESTED_TYPES and column.type != "unknown":
            types[column.field_id][column.type] = None
    replaced = {source_id for source_id, known in types.items() if len(set(map(find_family, known))) > 1}
    return {field.field_id: tuple(types[field.source_id]) for field in fields if field.source_id in replaced}


def find_family(type_text: str) -> str:
    """Return what a type has in common with those that it may be promoted to, or from.

    Examples
    --------
    >>> find_family("int") == find_family("long"), find_family("decimal(9, 2)") == find_family("decimal(9, 4)")
    (True, False)
    """
    kind = parse_type(type_text)
    return f"decimal, {kind.scale}" if kind.name == "decimal" else _FAMILIES.get(kind.name, type_text)


_FAMILIES = {"int": "long", "float": "double", "date": "timestamp", "timestamp_ns": "timestamp"}


def name_specs(specs: Mapping[int, PartitionSpec]) -> dict[int, PartitionSpec]:
    """Return partition specs whose fields have the names that `partition` of answers has, which may be those of later.

    A field may get another name, and its name may become that of another field. DuckDB finds a field of a struct
    whatever the case of its name, so that no two names differ by that alone.
    """
    names = _name_fields(specs)
    return {
        spec_id: replace(spec, fields=tuple(replace(field, name=names[field.field_id]) for field in spec.fields))
        for spec_id, spec in specs.items()
    }


def _name_fields(specs: Mapping[int, PartitionSpec]) -> dict[int, str]:
    names: dict[int, str] = {}
    for spec_id in sorted(specs, reverse=True):
        for field in specs[spec_id].fields:
            names.setdefault(field.field_id, field.name)
    newest = {names[field_id].lower(): field_id for field_id in sorted(names)}
    return {field_id: _unique_name(field_id, name, newest) for field_id, name in names.items()}


def struct_type(columns: Iterable[PartitionColumn]) -> pa.StructType:
    """Return the Arrow type of partitions with these fields; a field whose type is not known is null."""
    return pa.struct([(c.name, pa.null() if c.type is None else to_arrow_type(c.type)) for c in columns])


def avro_value_type(avro: Any) -> str | None:
    """Return the Iceberg type of a partition value's Avro type in a manifest; None for null.

    Examples
    --------
    >>> avro_value_type(["null", {"type": "int", "logicalType": "date"}])
    'date'
    """
    if isinstance(avro, list):
        return next((found for found in map(avro_value_type, avro) if found is not None), None)
    if not isinstance(avro, dict):
        return _AVRO_TYPES.get(str(avro))
    logical, base = avro.get("logicalType"), avro.get("type")
    if logical == "decimal":
        return f"decimal({avro.get('precision')}, {avro.get('scale', 0)})"
    if logical == "uuid":
        return "uuid"
    if isinstance(logical, str) and logical in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[logical] + ("tz" if avro.get("adjust-to-utc") and logical.startswith("timestamp") else "")
    if base == "fixed":
        return f"fixed[{avro.get('size')}]"
    return avro_value_type(base)


_AVRO_TYPES = {"string": "string", "bytes": "binary"} | {
    name: name for name in ("boolean", "int", "long", "float", "double")
}
_LOGICAL_TYPES = {"date": "date", "time-micros": "time", "timestamp-micros": "timestamp"}


def _are_compatible(first: PartitionField, second: PartitionField) -> bool:
    if VOID in (first.transform, second.transform):
        return first.source_id == second.source_id
    return (first.source_id, first.transform) == (second.source_id, second.transform)


def _unique_name(field_id: int, name: str, newest: Mapping[str, int]) -> str:
    while newest.get(name.lower(), field_id) != field_id:
        name = f"{name}_{field_id}"
    return name


def _value_type(field: PartitionField, schemas: Iterable[Schema]) -> str | None:
    types = (partition_field_type(field, schema) for schema in schemas)
    found = next((kind for kind in types if kind is not None), None)
    return None if found is None or parse_type(found).name == "unknown" else found


def partition_field_type(field: PartitionField, schema: Schema) -> str | None:
    """Return the Iceberg type of a partition field's values.

    None if its source is gone or nested, or its transform unknown.

    Examples
    --------
    >>> from icestats.iceberg.metadata import Field
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True),))
    >>> partition_field_type(PartitionField(1000, 1, "at_day", "day"), schema)
    'date'
    """
    word, _ = split_transform(field.transform)
    if word == "day":
        return "date"
    if word in ("year", "month", "hour", "bucket"):
        return "int"
    source = schema.get(field.source_id)
    if source is None or source.type in NESTED_TYPES or word not in ("identity", "truncate", VOID):
        return None
    return source.type


def display_partition_value(transform: str, type_text: str, value: Any) -> str:
    """Return a partition value as readable text: years, months and hours as dates, null as `null`.

    Examples
    --------
    >>> display_partition_value("month", "int", 516)
    '2013-01'
    >>> display_partition_value("hour", "int", 0)
    '1970-01-01T00'
    """
    if value is None:
        return "null"
    if transform == "year":
        return f"{1970 + value:04d}"
    if transform == "month":
        return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
    if transform == "hour":
        # Python has no years before 1 and after 9999.
        day, hour = divmod(value, 24)
        return f"{np.datetime64(day, 'D')}T{hour:02d}"
    return str(json_value(type_text, value))


def encode_values(array: pa.Array, type_text: str) -> list[bytes | None]:
    """Return partition values, in the Arrow type of `struct_type`, as single-value bytes."""
    if pa.types.is_temporal(array.type):
        # The number that Iceberg stores, of nanoseconds too.
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    distinct = array.dictionary_encode()
    values = [None if v is None else encode_value(type_text, v) for v in distinct.dictionary.to_pylist()]
    return [None if place is None else values[place] for place in distinct.indices.to_pylist()]
