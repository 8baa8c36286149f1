"""Selectivities: which share of some groups' rows satisfies a predicate, estimated and bounded, and their combination.

Groups are data files, manifests, partitions or the table. Estimates take values for evenly spread between the smallest
and the largest, and the parts of AND and OR for independent. Bounds do neither: they are what the metrics of each group
leave possible, and Fréchet's inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.filters.value_sets import (
    NUMBERS,
    All,
    Interval,
    Leaf,
    Tree,
    ValueSet,
    build_set,
    close,
    is_discrete,
)
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.iceberg.value_order import Floats, Keys, Longs, Mask, to_floats
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics, cell_metrics
from icestats.snapshot.evaluation.evaluator import count_met, covers, meets_any
from icestats.stats.rollup_cells import known_values

_WITHOUT_WIDTH = frozenset({"string", "uuid", "fixed", "binary"})


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """What one column is known to hold in each group."""

    metrics: ColumnMetrics
    """Bounds are known in pairs, and of no group without values: neither null nor NaN."""
    null_share: Floats
    """Share of the group's rows; NaN: unknown."""
    nan_share: Floats
    """0.0 where the type knows no NaN; NaN: unknown."""
    size_bytes: Floats
    """On disk; NaN: unknown."""

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


def build_column_evidence(metrics: ColumnMetrics, row_counts: Floats, column_size: pa.Array) -> ColumnEvidence:
    """Build the evidence of a column from its metrics in each group, and its size on disk; null is unknown."""
    null_share = _share(metrics.null_counts, row_counts)
    nan_share = _share(metrics.nan_counts, row_counts)
    if metrics.type not in ("float", "double"):
        nan_share = np.zeros(len(row_counts))
    with np.errstate(invalid="ignore"):
        valueless = (row_counts == 0) | (null_share + np.nan_to_num(nan_share, nan=0.0) >= 1.0)
    # Bounds that are the wrong way round are none.
    known = metrics.has_bounds & metrics.lower.is_at_most(metrics.upper) & ~valueless
    lower, upper = Keys(metrics.lower.values, known), Keys(metrics.upper.values, known)
    metrics = replace(metrics, lower=lower, upper=upper, valueless=valueless)
    return ColumnEvidence(metrics, null_share, nan_share, as_floats(column_size))


def _share(counts: Longs, row_counts: Floats) -> Floats:
    known = np.where(counts == MISSING, np.nan, counts)
    return np.where(row_counts > 0, known / np.maximum(row_counts, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """Groups of rows that make up a table, or a part of it."""

    unit: str
    """`data file`, `manifest`, `partition` or `table`."""
    row_counts: Floats
    size_bytes: Floats
    columns: Mapping[int, ColumnEvidence]
    """By field id: the columns that were asked for, as far as they are known."""

    def take(self, groups: Longs) -> GroupEvidence:
        """Return some of the groups."""
        columns = {field_id: column.take(groups) for field_id, column in self.columns.items()}
        return GroupEvidence(self.unit, self.row_counts[groups], self.size_bytes[groups], columns)

    def roll_up(self) -> GroupEvidence:
        """Return all groups as one. Of no groups nothing is known of any column."""
        known = self.columns.items() if len(self.row_counts) else ()
        columns = {field_id: column.roll_up(self.row_counts) for field_id, column in known}
        rows, sizes = (np.asarray([values.sum()]) for values in (self.row_counts, self.size_bytes))
        return GroupEvidence(self.unit, rows, sizes, columns)


def build_groups(
    unit: str,
    live: pa.Table,
    cells: pa.Table,
    columns: Sequence[Field],
    field_ids: Collection[int],
    *,
    imported: bool,
) -> GroupEvidence:
    """Build groups from a roll-up.

    Parameters
    ----------
    unit : str
        What a group is.
    live : pyarrow.Table
        `record_count`, `file_size_in_bytes` and `live_file_count` of each group's live data files.
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: every one of `columns` for each group in turn.
    columns : sequence of Field
        The columns of the cells.
    field_ids : collection of int
        The columns that are wanted.
    imported : bool
        Whether files may have been taken in whose bounds are in milliseconds.
    """
    rows, files = as_floats(live["record_count"]), to_numpy(live["live_file_count"])
    found: dict[int, ColumnEvidence] = {}
    for place, field in enumerate(columns):
        if field.field_id in field_ids:
            column = cells.take(pa.array(np.arange(len(rows), dtype=np.int64) * len(columns) + place))
            metrics = cell_metrics(column, field, files, to_numpy(live["record_count"]))
            metrics = metrics.without_milliseconds() if imported else metrics
            sizes = known_values(column, "column_size", files)[0]
            found[field.field_id] = build_column_evidence(metrics, rows, sizes)
    return GroupEvidence(unit, rows, as_floats(live["file_size_in_bytes"]), found)


def as_floats(array: pa.Array | pa.ChunkedArray) -> Floats:
    """Return numbers as floats, those above 2**53 as the nearest one; NaN for null."""
    return to_numpy(pc.cast(array, pa.float64(), safe=False), null=np.nan)


@dataclass(frozen=True, slots=True)
class Selectivity:
    """Shares of the rows of each group, between 0 and 1."""

    estimate: Floats
    """NaN: unknown."""
    lower: Floats
    upper: Floats
    reasons: tuple[str, ...] = ()
    """Why an estimate is unknown."""


def build_selectivity(estimate: Floats, lower: Floats, upper: Floats, reasons: tuple[str, ...] = ()) -> Selectivity:
    """Build a selectivity: bounds clipped to shares, the estimate to the bounds, and known where the bounds meet."""
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    # Sums of shares that were rounded may cross by as much.
    lower = np.minimum(lower, upper)
    settled = np.where(np.isnan(estimate) & (upper - lower < 1e-12), lower, estimate)
    clipped = np.clip(settled, lower, upper)
    return Selectivity(clipped, lower, upper, reasons if np.isnan(clipped).any() else ())


def build_unknown(reason: str, groups: int = 1) -> Selectivity:
    """Build the selectivity of a predicate of which nothing is known."""
    return build_selectivity(np.full(groups, np.nan), np.zeros(groups), np.ones(groups), (reason,))


def join_groups(parts: Sequence[Selectivity]) -> Selectivity:
    """Join the selectivities of one predicate in some groups, one behind the other."""
    estimate, lower, upper = (
        np.concatenate([np.zeros(0), *(getattr(one, name) for one in parts)]) for name in ("estimate", "lower", "upper")
    )
    return build_selectivity(estimate, lower, upper, next((one.reasons for one in parts if one.reasons), ()))


class LeafGroup(NamedTuple):
    """Predicates whose columns go together, and what they select together."""

    leaves: tuple[Leaf, ...]
    selectivity: Selectivity


def combine_leaves(
    predicate: Tree,
    groups: int,
    estimate_leaf: Callable[[Leaf], Selectivity],
    estimate_together: Callable[[Sequence[Leaf]], Sequence[LeafGroup]] | None = None,
) -> Selectivity:
    """Combine the selectivities of a tree's leaves.

    Parameters
    ----------
    predicate : Leaf, All or Some
        The tree.
    groups : int
        How many groups of rows there are.
    estimate_leaf : callable
        Gives the selectivity of a leaf in each group.
    estimate_together : callable, optional
        Gives the selectivity, in each group, of some leaves of an AND together: no leaf is in two of its answers.

    Returns
    -------
    Selectivity
        Independence for the estimate: a product for AND, one minus the product of the rest for OR. Fréchet's
        inequalities for the bounds: AND holds for at most the least of its parts, and at least for what they cannot
        all miss; OR for at least the largest part and at most their sum.

    Examples
    --------
    >>> half = Selectivity(*[np.array([0.5])] * 3)
    >>> leaf = Leaf(1, "x", "long", ValueSet(()), "x is not null")
    >>> both = combine_leaves(All((leaf, leaf)), 1, lambda _: half)
    >>> float(both.estimate[0]), float(both.lower[0]), float(both.upper[0])
    (0.25, 0.0, 0.5)
    """
    if isinstance(predicate, Leaf):
        return estimate_leaf(predicate)
    together: list[LeafGroup] = []
    if estimate_together is not None and isinstance(predicate, All):
        together = list(estimate_together([part for part in predicate.parts if isinstance(part, Leaf)]))
    done = {leaf for leaves, _ in together for leaf in leaves}
    parts = [found for _, found in together]
    apart = [part for part in predicate.parts if not (isinstance(part, Leaf) and part in done)]
    parts += [combine_leaves(part, groups, estimate_leaf, estimate_together) for part in apart]
    of_no_parts = np.full(groups, float(isinstance(predicate, All)))
    start = Selectivity(of_no_parts, of_no_parts, of_no_parts)
    return reduce(_both if isinstance(predicate, All) else _either, parts, start)


def _both(a: Selectivity, b: Selectivity) -> Selectivity:
    lower, upper = a.lower + b.lower - 1.0, np.minimum(a.upper, b.upper)
    return build_selectivity(a.estimate * b.estimate, lower, upper, _reasons(a, b))


def _either(a: Selectivity, b: Selectivity) -> Selectivity:
    estimate = 1.0 - (1.0 - a.estimate) * (1.0 - b.estimate)
    return build_selectivity(estimate, np.maximum(a.lower, b.lower), a.upper + b.upper, _reasons(a, b))


def _reasons(a: Selectivity, b: Selectivity) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a.reasons, *b.reasons)))


def estimate_uniform(leaf: Leaf, groups: GroupEvidence) -> Selectivity:
    """Estimate which share of each group's rows satisfies a predicate, from bounds, null and NaN counts.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    groups : GroupEvidence
        The groups.

    Returns
    -------
    Selectivity
        The estimate takes values for evenly spread between the bounds, and no value for NaN where NaN is not counted.
        An equality is estimated where values are whole (one of so many) or the bounds decide; text has no width, so
        that it is estimated where the bounds decide. `lower` and `upper` hold whatever the distribution.
    """
    evidence = groups.columns.get(leaf.field_id)
    if evidence is None:
        return build_unknown(f"{leaf.text}: {leaf.column} has no statistics", len(groups.row_counts))
    shares, covered, touched = _spread(leaf, evidence)
    values = leaf.values
    nulls, nans = evidence.null_share, np.nan_to_num(evidence.nan_share, nan=0.0)
    of_values = np.clip(1.0 - nulls - nans, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        estimate = np.where(shares == 0.0, 0.0, shares * of_values)
    estimate = estimate + (nulls if values.has_null else 0.0) + (evidence.nan_share if values.has_nan else 0.0)
    no_nan_count = np.isnan(evidence.nan_share)
    lower = np.where(no_nan_count, 0.0, np.nan_to_num(of_values, nan=0.0)) * covered
    upper = np.nan_to_num(of_values, nan=1.0) * touched
    if values.has_null:
        lower, upper = lower + np.nan_to_num(nulls, nan=0.0), upper + np.nan_to_num(nulls, nan=1.0)
    if values.has_nan:
        lower, upper = lower + nans, upper + np.nan_to_num(evidence.nan_share, nan=1.0)
    return build_selectivity(estimate, lower, upper, (_reason(leaf, evidence, estimate),))


def _spread(leaf: Leaf, evidence: ColumnEvidence) -> tuple[Floats, Mask, Mask]:
    """Of a group's values (neither null nor NaN): the estimated share, whether all, whether any can be in the set."""
    values, metrics, count = leaf.values, evidence.metrics, len(evidence.null_share)
    if not values.intervals or values.intervals == NUMBERS.intervals:
        every = bool(values.intervals)
        return np.full(count, float(every)), np.full(count, every), np.full(count, every)
    if is_discrete(leaf.type):
        values = build_set(close(interval) for interval in values.intervals)
    covered, touched = covers(values, metrics), meets_any(values, metrics)
    widths = _add_widths(values.points, values.ranges, leaf.values.gaps, evidence)
    shares = np.where(covered, 1.0, np.where(touched, np.minimum(widths, 1.0), 0.0))
    empty = metrics.valueless
    shares = np.where(empty, 0.0, np.where(metrics.has_bounds, shares, np.nan))
    return shares, covered & ~empty, touched & ~empty


def _add_widths(
    points: tuple[Interval, ...], ranges: tuple[Interval, ...], gaps: tuple[Interval, ...], evidence: ColumnEvidence
) -> Floats:
    """Return the share of what lies between the bounds that some intervals take, or all but some gaps."""
    metrics, type_text = evidence.metrics, evidence.metrics.type
    if parse_type(type_text).name in _WITHOUT_WIDTH:
        return np.full(len(evidence.null_share), np.nan)
    step = 1.0 if is_discrete(type_text) else 0.0
    lower, upper = (to_floats(type_text, keys) for keys in (metrics.lower, metrics.upper))
    listed = count_met(ValueSet(gaps or points), metrics)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        extent = upper - lower + step
        shares = listed * step / extent
        if gaps:
            return 1.0 - shares
        shares = np.where((listed > 0) & (step == 0.0), np.nan, shares)
        for one in ranges:
            low = lower if len(one.low) == 1 else np.maximum(lower, float(one.low[1]))
            high = upper if len(one.high) == 1 else np.minimum(upper, float(one.high[1]))
            met = count_met(ValueSet((one,)), metrics) > 0
            shares = shares + np.where(met, np.clip((high - low + step) / extent, 0.0, 1.0), 0.0)
    return np.where(np.isfinite(shares), shares, np.nan)


def _reason(leaf: Leaf, evidence: ColumnEvidence, estimate: Floats) -> str:
    unknown, metrics = np.isnan(estimate), evidence.metrics
    uncounted = int((unknown & np.isnan(evidence.null_share)).sum())
    unbounded = int((unknown & ~metrics.has_bounds & ~metrics.valueless).sum())
    if uncounted or unbounded:
        lacking = max(uncounted, unbounded)
        return f"{leaf.text}: {leaf.column} has no bounds or null counts in {lacking:,} of {len(estimate):,}"
    if leaf.values.has_nan and np.isnan(evidence.nan_share).any():
        return f"{leaf.text}: NaN is not counted"
    if parse_type(leaf.type).name in _WITHOUT_WIDTH:
        return f"{leaf.text}: between bounds, {leaf.type} has no width"
    return f"{leaf.text}: bounds alone say nothing of one value among {leaf.type} values"
