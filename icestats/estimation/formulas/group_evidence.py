"""What groups of rows (files, manifests, partitions, the table) are known to hold, as arrays over the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.metadata import Field
from icestats.iceberg.value_order import Floats, Keys, Longs, Mask
from icestats.plan.evaluation.column_metrics import MISSING, ColumnMetrics, cell_metrics
from icestats.stats.rollup_cells import known_values


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """One column in each group."""

    metrics: ColumnMetrics
    """Bounds are known in pairs, and of no group without values: neither null nor NaN."""
    null_share: Floats
    """Share of the group's rows; NaN: unknown."""
    nan_share: Floats
    """0.0 where the type knows no NaN; NaN: unknown."""
    size_bytes: Floats
    """On disk; NaN: unknown."""

    @property
    def has_bounds(self) -> Mask:
        """Whether the bounds are known."""
        return self.metrics.has_bounds

    @property
    def is_valueless(self) -> Mask:
        """Whether the group is known to hold nothing but null and NaN."""
        return self.metrics.valueless

    def take(self, groups: Longs) -> ColumnEvidence:
        """Return the evidence of some of the groups."""
        return ColumnEvidence(
            self.metrics.take(groups), self.null_share[groups], self.nan_share[groups], self.size_bytes[groups]
        )

    def roll_up(self, row_counts: Floats) -> ColumnEvidence:
        """Return the evidence of all groups together, as one group; what one of them lacks is unknown."""
        rows = max(float(row_counts.sum()), 1.0)
        nulls, nans = (np.asarray([(s * row_counts).sum() / rows]) for s in (self.null_share, self.nan_share))
        metrics = self.metrics.roll_up(np.zeros(len(row_counts), np.int64), 1)
        return ColumnEvidence(metrics, nulls, nans, np.asarray([self.size_bytes.sum()]))


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """Groups of rows that make up a table, or a part of it."""

    unit: str
    """`data file`, `manifest`, `partition` or `table`."""
    row_counts: Floats
    size_bytes: Floats
    columns: Mapping[int, ColumnEvidence]
    """By field id: the columns that were asked for."""

    def take(self, groups: Longs) -> GroupEvidence:
        """Return some of the groups."""
        columns = {field_id: column.take(groups) for field_id, column in self.columns.items()}
        return GroupEvidence(self.unit, self.row_counts[groups], self.size_bytes[groups], columns)


def build_groups(
    unit: str,
    row_counts: pa.Array,
    size_bytes: pa.Array,
    live_file_counts: pa.Array,
    cells: pa.Table,
    columns: Sequence[Field],
    field_ids: Sequence[int],
) -> GroupEvidence:
    """Build groups from a roll-up.

    Parameters
    ----------
    unit : str
        What a group is.
    row_counts, size_bytes, live_file_counts : pyarrow.Array
        Of each group's live data files.
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: every one of `columns` for each group in turn.
    columns : sequence of Field
        The columns of the cells.
    field_ids : sequence of int
        The columns that are wanted.
    """
    rows, files = as_floats(row_counts), to_numpy(live_file_counts)
    places = {field.field_id: (place, field) for place, field in enumerate(columns)}
    found: dict[int, ColumnEvidence] = {}
    for field_id in field_ids:
        if field_id not in places:
            continue
        place, field = places[field_id]
        column = cells.take(pa.array(np.arange(len(rows), dtype=np.int64) * len(columns) + place))
        metrics = cell_metrics(column, field, files, rows.astype(np.int64))
        found[field_id] = build_column_evidence(metrics, rows, known_values(column, "column_size", files)[0])
    return GroupEvidence(unit, rows, as_floats(size_bytes), found)


def build_column_evidence(metrics: ColumnMetrics, row_counts: Floats, column_size: pa.Array) -> ColumnEvidence:
    """Build the evidence of a column from its metrics in each group, and its size on disk; null is unknown."""
    null_share = _share(metrics.null_counts, row_counts)
    nan_share = _share(metrics.nan_counts, row_counts)
    if metrics.type not in ("float", "double"):
        nan_share = np.zeros(len(row_counts))
    with np.errstate(invalid="ignore"):
        valueless = (row_counts == 0) | (null_share + np.nan_to_num(nan_share, nan=0.0) >= 1.0)
    known = metrics.has_bounds & ~valueless
    lower, upper = Keys(metrics.lower.values, known), Keys(metrics.upper.values, known)
    metrics = replace(metrics, lower=lower, upper=upper, valueless=valueless)
    return ColumnEvidence(metrics, null_share, nan_share, as_floats(column_size))


def _share(counts: Longs, row_counts: Floats) -> Floats:
    known = np.where(counts == MISSING, np.nan, counts)
    return np.where(row_counts > 0, known / np.maximum(row_counts, 1.0), 0.0)


def as_floats(array: pa.Array | pa.ChunkedArray) -> Floats:
    """Return numbers as floats; NaN for null."""
    return to_numpy(pc.cast(array, pa.float64()), null=np.nan)
