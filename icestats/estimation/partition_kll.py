"""KLL sketches by partition, as estimates ask for them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.text import counted
from icestats.errors import StatisticsMissingError
from icestats.estimation.formulas.selectivity import Selectivity, build_selectivity
from icestats.estimation.formulas.sketch_sources import Distribution, estimate_kll
from icestats.estimation.formulas.sketched_sources import Sketched
from icestats.iceberg.metadata import Field
from icestats.iceberg.value_order import Longs
from icestats.plan.evaluation.partition_groups import build_partition_keys
from icestats.plan.filters.value_sets import Leaf
from icestats.read.puffin.committed_partitions import CommittedPartitions, read_kll_by_partition, read_partition_index
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import PartitionEntry, PartitionKey


@dataclass
class _Column:
    """A column's committed index, and the sketches that have been read."""

    committed: CommittedPartitions
    entries: dict[PartitionKey, PartitionEntry]
    sketches: dict[PartitionKey, KllSketch] = field(default_factory=dict)


class PartitionDistributions:
    """Reads the sketches of partitions, each once.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._columns: dict[int, _Column | None] = {}
        partitions = reader.partition_rollups.partitions
        partitions = partitions.filter(pc.greater(partitions["data_file_count"], 0))
        self._keys = build_partition_keys(
            combine_chunks(partitions["partition"]),
            to_numpy(partitions["spec_id"]),
            reader.source.metadata,
            reader.schema,
        )

    def estimate(self, leaf: Leaf, places: Longs) -> Sketched:
        """Estimate a predicate in some partitions, by their places in `schemas.partition_groups_schema`."""
        column = self._open(self._reader.schema.find(leaf.column))
        nothing = build_selectivity(
            np.full(len(places), np.nan),
            np.zeros(len(places)),
            np.ones(len(places)),
            (f"{leaf.text}: no sketches of {leaf.column} by partition are committed",),
        )
        if column is None:
            return Sketched(nothing, 0, 0)
        keys = [self._keys[place] for place in places.tolist()]
        missing = sum(key is None or key not in column.entries for key in keys)
        if missing:
            reason = f"{leaf.text}: no sketch of {leaf.column} for {missing:,} of {counted(len(keys), 'partition')}"
            return Sketched(build_selectivity(nothing.estimate, nothing.lower, nothing.upper, (reason,)), 0, 0)
        known = [key for key in keys if key is not None]
        self._read(column, known)
        return _estimate(leaf, column, known)

    def _open(self, wanted: Field) -> _Column | None:
        if wanted.field_id not in self._columns:
            try:
                committed = read_partition_index(self._reader.source.storage, self._reader.blobs, wanted)
            except StatisticsMissingError:
                self._columns[wanted.field_id] = None
            else:
                entries = {entry.key: entry for entry in committed.index.partitions}
                self._columns[wanted.field_id] = _Column(committed, entries)
        return self._columns[wanted.field_id]

    def _read(self, column: _Column, keys: list[PartitionKey]) -> None:
        lacking = [column.entries[key] for key in keys if key not in column.sketches]
        if lacking:
            column.sketches |= read_kll_by_partition(self._reader.source.storage, column.committed, lacking)


def _estimate(leaf: Leaf, column: _Column, keys: list[PartitionKey]) -> Sketched:
    found = [_estimate_one(leaf, column, key) for key in keys]
    estimate, lower, upper = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("estimate", "lower", "upper")
    )
    reasons = tuple(dict.fromkeys(reason for one in found for reason in one.reasons))
    read = sum(column.sketches[key].retained_count for key in keys if key in column.sketches)
    size = sum(column.entries[key].kll_length for key in keys)
    return Sketched(build_selectivity(estimate, lower, upper, reasons[:1]), read, size)


def _estimate_one(leaf: Leaf, column: _Column, key: PartitionKey) -> Selectivity:
    # What is rare in each of many partitions may be frequent enough in all of them together.
    return estimate_kll(leaf, _distribution(column.entries[key], column.sketches.get(key)), rare_is_unknown=False)


def _distribution(entry: PartitionEntry, sketch: KllSketch | None) -> Distribution | None:
    if sketch is None:
        return None
    rows = max(entry.value_count, 1)
    return Distribution(sketch, entry.null_value_count / rows, entry.nan_value_count / rows, entry.kll_length)
