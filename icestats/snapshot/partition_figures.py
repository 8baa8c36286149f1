"""Indexes of committed sketches by partition -> what they add to the answer of partitions: NDV, lengths of values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import PARTITION_MAPS
from icestats.iceberg.metadata import Field, Schema, TableMetadata
from icestats.read.partitions.partition_statistics import PartitionStatistics
from icestats.read.puffin.committed_partitions import CommittedPartitions
from icestats.snapshot.evaluation.partition_groups import key_entries
from icestats.stats.rollup_cells import known_values
from icestats.stats.table_statistics import PartitionKey

Lengths = Sequence[tuple[int, int]]
"""Of a partition: field ids, and bytes of the column's values."""


def build_partition_figures(
    indexes: Sequence[CommittedPartitions],
    keys: Sequence[PartitionKey | None],
    value_counts: Mapping[int, Sequence[int]],
    metadata: TableMetadata,
    schema: Schema,
    lengths: Mapping[str, Sequence[Lengths | None]],
) -> dict[str, pa.Array]:
    """Build `schemas.PARTITION_MAPS` of partitions from indexes of sketches, one a column.

    `value_counts` are by field id the values that each partition has at most, and `lengths` those of `align_lengths`:
    the indexes add those of other columns.
    """
    rows: dict[str, list[dict[int, float]]] = {
        field.name: [dict(row or ()) for row in lengths.get(field.name, [None] * len(keys))] for field in PARTITION_MAPS
    }
    for one in indexes:
        field_id, age = one.index.field_id, one.commits_behind
        entries = key_entries((entry for entry in one.index.partitions if entry.ndv is not None), metadata, schema)
        for row, (key, value_count) in enumerate(zip(keys, value_counts[field_id], strict=True)):
            if key is None or (entry := entries.get(key)) is None or entry.ndv is None:
                continue
            figures = {
                "ndvs": min(entry.ndv, max(value_count, 0)),
                "ndv_relative_errors": entry.ndv_relative_error,
                "ndv_commits_behind": age,
            }
            average, longest = entry.figures.avg_length, entry.figures.max_length
            if not age and average is not None and longest is not None:
                figures |= {"avg_lengths": round(average), "max_lengths": longest}
            for name, value in figures.items():
                rows[name][row].setdefault(field_id, value)
    return {
        field.name: pa.array([sorted(row.items()) or None for row in rows[field.name]], field.type)
        for field in PARTITION_MAPS
        if any(rows[field.name])
    }


def count_most_values(
    groups: pa.Table, cells: pa.Table, columns: Sequence[Field], field_ids: Collection[int]
) -> dict[int, list[int]]:
    """Count, for some of the columns of the cells, the values of each partition that are not null, at most."""
    files, records = (to_numpy(groups[name]) for name in ("data_file_count", "data_record_count"))
    nulls, _ = known_values(cells, "null_value_count", np.repeat(files, len(columns)))
    values = records[:, None] - to_numpy(pc.fill_null(nulls, 0)).reshape(len(groups), len(columns))
    return {one.field_id: values[:, i].tolist() for i, one in enumerate(columns) if one.field_id in field_ids}


def align_lengths(
    stored: PartitionStatistics, stored_keys: Sequence[PartitionKey | None], keys: Sequence[PartitionKey | None]
) -> dict[str, list[Lengths | None]]:
    """Return the lengths of values that a partition statistics file has, in the order of other partitions."""
    places = {key: place for place, key in enumerate(stored_keys) if key is not None}
    rows = pa.array([None if key is None else places.get(key) for key in keys], pa.int64())
    return {name: array.take(rows).to_pylist() for name, array in (stored.lengths or {}).items()}
