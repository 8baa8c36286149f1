"""Groups of rows by the partition spec that they were written with: manifests, partitions, data files.

Source: Iceberg spec, "Manifest Lists", `field_summary`; "Partition Evolution".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import PartitionField, PartitionSpec, Schema, TableMetadata
from icestats.iceberg.partition_columns import (
    VOID,
    PartitionColumn,
    encode_values,
    find_partition_columns,
    partition_field_type,
)
from icestats.iceberg.types import to_arrow_type
from icestats.iceberg.value_order import Longs
from icestats.snapshot.evaluation.column_metrics import (
    ColumnMetrics,
    single_value_metrics,
    summary_metrics,
    value_metrics,
)
from icestats.stats.partition_sketches import PartitionEntry
from icestats.stats.table_statistics import PartitionKey


@dataclass(frozen=True, slots=True)
class SpecGroups:
    """The groups that were written with one spec."""

    spec: PartitionSpec
    groups: Longs
    """Which of all groups they are."""
    metrics: Mapping[int, ColumnMetrics]
    """Of the values of partition fields, by field id; nothing is known of a field that is not there."""
    imported: bool = False
    """Whether files may be in the partition of some of their values: PyIceberg's `add_files` takes it from bounds.

    There may be nulls beside them, and any values where it is null. Of `identity` it may be what a folder says, and the
    files in there have other values.
    """


def group_manifests(
    manifest_files: pa.Table,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    wanted: Mapping[int, Collection[int]] | None = None,
    *,
    imported: bool = False,
) -> list[SpecGroups]:
    """Group manifests, with what the manifest list says of their partitions.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    specs : mapping of int to PartitionSpec
        The table's specs; of a manifest of another one nothing is known.
    schema : Schema
        The schema that partition fields get their types from.
    wanted : mapping of int to collection of int, optional
        By spec, the partition fields that metrics are wanted of; by default all.
    imported : bool, default False
        `SpecGroups.imported`.
    """
    partitions = combine_chunks(manifest_files["partitions"])

    def read(rows: Longs, spec: PartitionSpec, fields: Collection[int]) -> dict[int, ColumnMetrics]:
        own = partitions.take(pa.array(rows))
        starts = to_numpy(own.offsets).astype(np.int64)[:-1]
        lengths = np.where(to_numpy(pc.is_null(own)), 0, np.diff(to_numpy(own.offsets)))
        found = {}
        for place, (field, type_text) in enumerate(_typed(spec, schema)):
            if field.field_id in fields and type_text is not None:
                there = lengths > place
                found[field.field_id] = summary_metrics(
                    own.values.take(pa.array(np.where(there, starts + place, 0), mask=~there)), type_text
                )
        return found

    return _group(to_numpy(manifest_files["partition_spec_id"]), specs, read, wanted, imported=imported)


def group_values(
    groups: pa.Table,
    metadata: TableMetadata,
    schema: Schema,
    wanted: Mapping[int, Collection[int]] | None = None,
    *,
    imported: bool = False,
) -> list[SpecGroups]:
    """Group partitions or data files, which have one value a partition field.

    Parameters
    ----------
    groups : pyarrow.Table
        `partition`, the values of the fields of all specs, and `spec_id` of each.
    metadata : TableMetadata
        The table's specs and schemas.
    schema, wanted, imported
        As in `group_manifests`.
    """
    places, partitions = find_partition_places(metadata, schema), combine_chunks(groups["partition"])

    def read(rows: Longs, spec: PartitionSpec, fields: Collection[int]) -> dict[int, ColumnMetrics]:
        found, own = {}, None if len(rows) == len(partitions) else pa.array(rows)
        for field, type_text in _typed(spec, schema):
            if field.field_id in fields and type_text is not None:
                # The fields of other specs, of which there may be thousands, are not taken.
                values = partitions.field(places[field.field_id])
                if _holds(values.type, type_text):
                    found[field.field_id] = value_metrics(values if own is None else values.take(own), type_text)
        return found

    return _group(to_numpy(groups["spec_id"]), metadata.specs, read, wanted, imported=imported)


def _holds(stored: pa.DataType, type_text: str) -> bool:
    """Whether stored values are of a type, or of one that is promoted to it: a column may have been replaced since."""
    wanted = to_arrow_type(type_text)
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        return bool(stored.scale == wanted.scale)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal)
    return stored == wanted or pa.types.is_null(stored) or any(is_kind(stored) and is_kind(wanted) for is_kind in kinds)


def group_keys(keys: Sequence[PartitionKey], specs: Mapping[int, PartitionSpec], schema: Schema) -> list[SpecGroups]:
    """Group the partitions that sketches are of."""

    def read(rows: Longs, spec: PartitionSpec, fields: Collection[int]) -> dict[int, ColumnMetrics]:
        values = [dict(keys[row].values) for row in rows.tolist()]
        return {
            field.field_id: single_value_metrics(
                pa.array([row[field.field_id] for row in values], pa.binary()), _key_type(type_text)
            )
            for field, type_text in _typed(spec, schema)
            if field.field_id in fields and type_text and all(field.field_id in row for row in values)
        }

    return _group(np.array([key.spec_id for key in keys], np.int64), specs, read, None)


def _key_type(type_text: str) -> str:
    """Return the widest type that values may have: keys may be of after a promotion, for a snapshot of before it."""
    return {"int": "long", "float": "double"}.get(type_text, type_text)


def _group(
    spec_ids: Longs,
    specs: Mapping[int, PartitionSpec],
    read: Callable[[Longs, PartitionSpec, Collection[int]], dict[int, ColumnMetrics]],
    wanted: Mapping[int, Collection[int]] | None,
    *,
    imported: bool = False,
) -> list[SpecGroups]:
    found = []
    for spec_id in np.unique(spec_ids).tolist():
        spec, rows = specs.get(spec_id, PartitionSpec(spec_id, ())), np.flatnonzero(spec_ids == spec_id)
        fields = [field.field_id for field in spec.fields] if wanted is None else wanted.get(spec_id, ())
        found.append(SpecGroups(spec, rows, read(rows, spec, fields) if fields else {}, imported))
    return found


def _typed(spec: PartitionSpec, schema: Schema) -> Iterator[tuple[PartitionField, str | None]]:
    return ((field, partition_field_type(field, schema)) for field in spec.fields)


def find_partition_places(metadata: TableMetadata, schema: Schema) -> Mapping[int, int]:
    """Return the place of each partition field, by field id, in the partition values of files and partitions."""
    return {column.field_id: place for place, column in enumerate(_find_columns(metadata, schema))}


def _find_columns(metadata: TableMetadata, schema: Schema) -> tuple[PartitionColumn, ...]:
    return find_partition_columns(metadata.specs, [schema, *metadata.schemas_by_age])


def build_partition_keys(groups: pa.Table, metadata: TableMetadata, schema: Schema) -> list[PartitionKey | None]:
    """Build the keys that sketches by partition are found by; None where the spec is gone, or a field's type unknown.

    The table has `partition` and `spec_id`, as for `group_values`.
    """
    columns, partitions = _find_columns(metadata, schema), combine_chunks(groups["partition"])
    # The column of an earlier spec's field may be dropped: its type is that of an earlier schema.
    values = {
        column.field_id: encode_values(partitions.field(place), _key_type(column.type))
        for place, column in enumerate(columns)
        if column.type is not None and _holds(partitions.field(place).type, column.type)
    }

    def build(row: int, spec_id: int) -> PartitionKey | None:
        fields = metadata.specs[spec_id].fields if spec_id in metadata.specs else None
        if fields is None or any(one.field_id not in values and one.transform != VOID for one in fields):
            return None
        return PartitionKey(
            spec_id,
            tuple((one.field_id, None if one.transform == VOID else values[one.field_id][row]) for one in fields),
        )

    return [build(row, spec_id) for row, spec_id in enumerate(groups["spec_id"].to_pylist())]


def key_entries(
    entries: Iterable[PartitionEntry], metadata: TableMetadata, schema: Schema
) -> dict[PartitionKey, PartitionEntry]:
    """Return the partitions of sketches by the keys of `build_partition_keys`: columns may be promoted."""
    types = {one.field_id: _key_type(one.type) for one in _find_columns(metadata, schema) if one.type is not None}
    return {one.key.widen(types): one for one in entries}
