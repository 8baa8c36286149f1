"""All live data files of a snapshot as arrays: what layout and what-if are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import Field, PartitionField, Schema, TableMetadata
from icestats.iceberg.partition_values import partition_field_type
from icestats.plan.layout.ranks import build_ranks
from icestats.plan.pruning.figures import MISSING, ColumnFigures, file_figures, value_figures
from icestats.plan.pruning.funnel import partition_places
from icestats.plan.pruning.keys import Keys, Longs


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
    partition_figures: Mapping[int, ColumnFigures]
    """By partition field id; null where the file's spec has no such field."""
    column_figures: Mapping[int, ColumnFigures]
    """By field id of the columns that were read."""

    def __len__(self) -> int:
        return len(self.manifest_index)

    @cached_property
    def partitions(self) -> Longs:
        """A number for each file's partition; it orders by spec, then by the partition's fields."""
        numbers = build_ranks(self.spec_ids)[0]
        for field in self.partition_fields:
            figures = self.partition_figures[field.field_id]
            known = figures.lower.known
            values, distinct = build_ranks(figures.lower.ranks()[0][known])
            # Nulls first, NaN last.
            ranks = np.where(figures.nan_counts > 0, len(distinct) + 1, 0)
            ranks[known] = values + 1
            numbers = build_ranks(numbers * (len(distinct) + 2) + ranks)[0]
        return numbers


def build_file_set(files: pa.Table, manifests: pa.Table, metadata: TableMetadata, schema: Schema) -> FileSet:
    """Build the set of a snapshot's data files.

    Parameters
    ----------
    files : pyarrow.Table
        `file_figures_schema`: the live files of `manifests`, with the statistics of some columns.
    manifests : pyarrow.Table
        `schemas.MANIFEST_FILES`: manifests of data.
    metadata : TableMetadata
        Partition specs and schemas.
    schema : Schema
        The schema that the snapshot is read with.
    """
    spec_ids = to_numpy(files["spec_id"]).astype(np.int64)
    used = sorted(
        files["spec_id"].unique().to_pylist(), key=lambda spec_id: (spec_id != metadata.default_spec_id, -spec_id)
    )
    fields: dict[int, PartitionField] = {}
    for spec_id in used:
        for field in metadata.specs[spec_id].fields:
            if field.transform != "void" and partition_field_type(field, schema) is not None:
                fields.setdefault(field.field_id, field)
    places = partition_places(metadata, schema)
    partition = combine_chunks(files["partition"])
    wanted = [int(name.rpartition("_")[2]) for name in files.column_names if name.startswith("lower_bound_")]
    columns = [column for field_id in wanted if (column := schema.get(field_id)) is not None]
    return FileSet(
        manifests=manifests,
        manifest_index=to_numpy(files["manifest_index"]).astype(np.int64),
        spec_ids=spec_ids,
        record_counts=to_numpy(files["record_count"]),
        sizes=to_numpy(files["file_size_in_bytes"]),
        sequence_numbers=to_numpy(files["sequence_number"], null=0),
        partition_fields=tuple(fields.values()),
        partition_figures={
            field_id: value_figures(partition.field(places[field_id]), partition_field_type(field, schema) or "unknown")
            for field_id, field in fields.items()
        },
        column_figures={one.field_id: file_figures(files, one.field_id, one.type) for one in columns},
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


def aggregate(figures: ColumnFigures, groups: Longs, count: int) -> ColumnFigures:
    """Roll figures up: a statistic that one member of a group lacks is unknown for the group.

    Parameters
    ----------
    figures : ColumnFigures
        A row a file.
    groups : numpy.ndarray of int64
        The group of each file.
    count : int
        How many groups there are.
    """
    lower, upper = (_extremes(figures, groups, count, side) for side in ("lower", "upper"))
    value_counts, null_counts, nan_counts = (
        _sums(counts, groups, count) for counts in (figures.value_counts, figures.null_counts, figures.nan_counts)
    )
    members = np.bincount(groups, minlength=count)
    nothing = pa.nulls(count, pa.binary())
    return ColumnFigures(
        type=figures.type,
        value_counts=value_counts,
        null_counts=null_counts,
        nan_counts=nan_counts,
        lower=lower,
        upper=upper,
        lower_bytes=nothing,
        upper_bytes=nothing,
        valueless=np.bincount(groups[figures.valueless], minlength=count) == members,
    )


def _sums(counts: Longs, groups: Longs, count: int) -> Longs:
    lacking = np.bincount(groups[counts == MISSING], minlength=count) > 0
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, np.maximum(counts, 0))
    return np.where(lacking, MISSING, sums)


def _extremes(figures: ColumnFigures, groups: Longs, count: int, side: str) -> Keys:
    keys = figures.lower if side == "lower" else figures.upper
    rows = np.flatnonzero(keys.known)
    lacking = np.bincount(groups[~keys.known & ~figures.valueless], minlength=count) > 0
    ranks = keys.ranks()[0][rows]
    limits = np.iinfo(np.int64)
    extremes = np.full(count, limits.max if side == "lower" else limits.min)
    (np.minimum if side == "lower" else np.maximum).at(extremes, groups[rows], ranks)
    known = np.bincount(groups[rows], minlength=count) > 0
    extremes[~known] = 0
    if isinstance(keys.values, np.ndarray):
        return Keys(extremes, known & ~lacking)
    # Of each rank one row stands for all: ranks are dense.
    row_of = np.zeros(int(ranks.max(initial=0)) + 1, np.int64)
    row_of[ranks] = rows
    return Keys(keys.values.take(pa.array(row_of[extremes], mask=~known)), known & ~lacking)
