"""All live data files of a snapshot as arrays: what layout and what-if are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import Field, PartitionField, Schema, TableMetadata
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.value_order import Longs
from icestats.snapshot.evaluation.column_metrics import ColumnMetrics, table_metrics, value_metrics

_NARROW = 4
"""Integers are counted instead of sorted where they span this many times as many values as there are of them."""


def build_ranks(values: Longs) -> tuple[Longs, Longs]:
    """Return the dense rank of each of some integers, from 0 on, and the distinct integers, ascending.

    Examples
    --------
    >>> ranks, distinct = build_ranks(np.array([70, -5, 70, 8]))
    >>> ranks.tolist(), distinct.tolist()
    ([2, 0, 2, 1], [-5, 8, 70])
    """
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span <= _NARROW * len(values):
        there = np.zeros(span, np.bool_)
        there[values - least] = True
        return (np.cumsum(there) - 1)[values - least], np.flatnonzero(there) + least
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks, distinct


@dataclass(frozen=True)
class FileSet:
    """Live data files: a row a file in every array."""

    manifests: pa.Table
    """`schemas.MANIFEST_FILES`: those that hold the files."""
    manifest_index: Longs
    """The place of each file's manifest."""
    spec_ids: Longs
    record_counts: Longs
    sizes: Longs
    """In bytes."""
    sequence_numbers: Longs
    partition_fields: tuple[PartitionField, ...]
    """The partition fields of all specs that hold files, voids left out, those of the newest spec first."""
    partition_metrics: Mapping[int, ColumnMetrics]
    """By partition field id; null where the file's spec has no such field."""
    column_metrics: Mapping[int, ColumnMetrics]
    """By field id of the columns that were read."""

    def __len__(self) -> int:
        return len(self.manifest_index)

    @cached_property
    def partitions(self) -> Longs:
        """A number for each file's partition; it orders by spec, then by the partition's fields."""
        numbers = build_ranks(self.spec_ids)[0]
        for field in self.partition_fields:
            metrics = self.partition_metrics[field.field_id]
            known = metrics.lower.known
            values, distinct = build_ranks(metrics.lower.ranks()[0][known])
            # Nulls first, NaN last.
            ranks = np.where(metrics.nan_counts > 0, len(distinct) + 1, 0)
            ranks[known] = values + 1
            numbers = build_ranks(numbers * (len(distinct) + 2) + ranks)[0]
        return numbers


def build_file_set(
    files: pa.Table,
    manifests: pa.Table,
    metadata: TableMetadata,
    schema: Schema,
    partition_columns: Sequence[PartitionColumn],
) -> FileSet:
    """Build the set of a snapshot's data files.

    Parameters
    ----------
    files : pyarrow.Table
        `file_metrics_schema`: the live files of `manifests`, with the statistics of some columns.
    manifests : pyarrow.Table
        `schemas.MANIFEST_FILES`: manifests of data.
    metadata : TableMetadata
        Partition specs and schemas.
    schema : Schema
        The schema that the snapshot is read with.
    partition_columns : sequence of PartitionColumn
        The fields of `files`' partitions: a field whose column no schema has any more tells partitions apart too.
    """
    spec_ids = to_numpy(files["spec_id"]).astype(np.int64)
    used = sorted(
        files["spec_id"].unique().to_pylist(), key=lambda spec_id: (spec_id != metadata.default_spec_id, -spec_id)
    )
    fields: dict[int, PartitionField] = {}
    types = {column.field_id: column.type for column in partition_columns}
    for spec_id in used:
        for field in metadata.specs[spec_id].fields:
            if field.transform != "void" and types[field.field_id] is not None:
                fields.setdefault(field.field_id, field)
    places = {column.field_id: place for place, column in enumerate(partition_columns)}
    partition = combine_chunks(files["partition"])
    wanted = [int(name.rpartition("_")[2]) for name in files.column_names if name.startswith("lower_bound_")]
    return FileSet(
        manifests=manifests,
        manifest_index=to_numpy(files["manifest_index"]).astype(np.int64),
        spec_ids=spec_ids,
        record_counts=to_numpy(files["record_count"]),
        sizes=to_numpy(files["file_size_in_bytes"]),
        sequence_numbers=to_numpy(files["sequence_number"], null=0),
        partition_fields=tuple(fields.values()),
        partition_metrics={
            field_id: value_metrics(partition.field(places[field_id]), types[field_id] or "unknown")
            for field_id in fields
        },
        column_metrics=table_metrics(files, schema.select(wanted)),
    )


def choose_columns(metadata: TableMetadata, schema: Schema, names: Sequence[str] | None) -> list[Field]:
    """Return the columns that layout looks at: those named, or those that partitions are made of.

    Raises
    ------
    ColumnNotFoundError
        There is no such column.
    """
    if names is not None:
        return [schema.find(name) for name in names]
    sources = dict.fromkeys(field.source_id for spec in metadata.specs.values() for field in spec.fields)
    found = [field for source_id in sources if (field := schema.get(source_id)) is not None and field.is_primitive]
    return found or [field for field in schema.top_level if field.is_primitive][:1]
