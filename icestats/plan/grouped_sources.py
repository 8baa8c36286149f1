"""Estimates from statistics of files, manifests, partitions and the table: bounds, counts and partition values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from icestats.plan.group_evidence import ColumnEvidence, Groups
from icestats.plan.partition_ranges import LeafRanges, Longs, SpecRanges, explain_leaf, keep_groups
from icestats.plan.selectivity import Floats, Selectivity, build_selectivity, combine
from icestats.plan.source_estimates import DeleteShares, SourceEstimate, build_source_estimate
from icestats.plan.uniform import estimate_uniform
from icestats.plan.value_predicates import Leaf, Tree, list_leaves

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema

HARD_BOUND = (
    "certain: what the bounds and null counts of each {unit} leave possible, Fréchet's inequalities for AND and OR"
)


_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every source."""

    row_filter: str
    expression: BooleanExpression
    """The same, as PyIceberg scans with it."""
    predicate: Tree
    schema: IcebergSchema
    columns: tuple[int, ...] | None
    """Field ids of the projected columns; None: all."""
    deletes: str
    """One of `source_estimates.DELETES`."""


@dataclass(frozen=True, slots=True)
class GroupedEvidence:
    """The groups that one kind of statistics is about, and what they took to read."""

    groups: Groups
    ranges: Sequence[SpecRanges]
    deletes: DeleteShares
    bytes_read: int


@dataclass(frozen=True, slots=True)
class Sketched:
    """The selectivity of a predicate in some partitions, by their sketches."""

    selectivity: Selectivity
    values_read: int
    bytes_read: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """The groups that partition values leave, and what these say of each leaf."""

    groups: Groups
    leaves: dict[Leaf, LeafRanges]
    places: Longs
    """Which of all groups they are."""
    deletes: DeleteShares


def estimate_each(
    source: str,
    question: Question,
    evidence: GroupedEvidence,
    of_table: Callable[[Leaf], Selectivity] | None = None,
) -> SourceEstimate:
    """Estimate each group by its own statistics, and add up.

    A predicate that a group's partition values satisfy for certain is not applied again; one on a bucketed column is
    taken for given that the row is in that bucket.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The groups.
    of_table : callable, optional
        Gives a better estimate over the whole table (one group), for predicates that no partition field is ordered by.
    """
    kept = _keep(question, evidence)
    count = len(kept.groups.row_counts)
    unit = evidence.groups.unit

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        ranges = kept.leaves[leaf]
        if of_table is None or ranges.is_used.all():
            uniform = estimate_uniform(leaf, kept.groups.columns.get(leaf.field_id), count)
            return _within_partitions(leaf, uniform, ranges, buckets=True)
        own = _within_partitions(leaf, *_estimate_all(leaf, question, evidence), buckets=True)
        return _as_in_table(of_table(leaf), own, evidence.groups, kept, ranges)

    return build_source_estimate(
        source,
        kept.groups,
        combine(question.predicate, count, estimate_leaf),
        kept.deletes,
        how_deletes=question.deletes,
        columns=question.columns,
        assumes=f"values spread evenly between the bounds of each {unit}, columns independent within it",
        bound=HARD_BOUND.format(unit=unit),
        values_read=_count_values(question, evidence, count),
        bytes_read=evidence.bytes_read,
    )


def estimate_sketched(
    source: str,
    question: Question,
    evidence: GroupedEvidence,
    read_sketches: Callable[[Leaf, Longs], Sketched],
) -> SourceEstimate:
    """Estimate each partition by its own sketch, and add up.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The partitions.
    read_sketches : callable
        Gives the selectivity of a leaf in some of the partitions, by their places, and the bytes and values that took.

    Notes
    -----
    The sketches of partitions err independently of each other: where one predicate alone is left to them, the bound of
    the sum is the root of the sum of their squared bounds, at the same confidence.
    """
    kept = _keep(question, evidence)
    count = len(kept.groups.row_counts)
    read, uncertain = [0, 0], 0

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        nonlocal uncertain
        ranges = kept.leaves[leaf]
        undecided = np.flatnonzero(ranges.may & ~ranges.must)
        estimate = np.where(ranges.must, 1.0, 0.0)
        lower, upper = estimate.copy(), estimate.copy()
        if not len(undecided):
            return Selectivity(estimate, lower, upper)
        uncertain += 1
        own = read_sketches(leaf, kept.places[undecided])
        read[0], read[1] = read[0] + own.values_read, read[1] + own.bytes_read
        found = own.selectivity
        estimate[undecided], lower[undecided], upper[undecided] = found.estimate, found.lower, found.upper
        return build_selectivity(estimate, lower, upper, found.reasons)

    selectivity = combine(question.predicate, count, estimate_leaf)
    found = build_source_estimate(
        source,
        kept.groups,
        selectivity,
        kept.deletes,
        how_deletes=question.deletes,
        columns=question.columns,
        assumes="ranks of each partition's sketch, partition values where they decide; columns independent within it",
        bound="99 % confidence (the sketches' rank errors), Fréchet's inequalities",
        values_read=_count_values(question, evidence, 0) + read[0],
        bytes_read=read[1],
        of_live_rows=True,
    )
    if uncertain <= 1:
        found = _with_independent_errors(found, kept, selectivity)
    rows, upper = found.rows, found.rows_upper
    has_points = any(leaf.values.points and kept.leaves[leaf].may.any() for leaf in kept.leaves)
    if has_points and rows is not None and upper is not None and upper > 0.0 and rows <= upper - rows:
        return replace(found, rows=None, bytes=None, reason="too rare for the sketches: it may be none")
    return found


def _with_independent_errors(found: SourceEstimate, kept: _Kept, selectivity: Selectivity) -> SourceEstimate:
    if found.rows is None or found.rows_lower is None or found.rows_upper is None:
        return found
    off = np.maximum(selectivity.upper - selectivity.estimate, selectivity.estimate - selectivity.lower)
    widths = kept.groups.row_counts * off
    error = float(np.sqrt((widths**2).sum()))
    return replace(
        found,
        rows_lower=round(max(0.0, found.rows - error), 6),
        rows_upper=round(found.rows + error, 6),
        bound="99 % confidence: the rank errors of partitions' sketches, which err independently",
    )


def estimate_together(
    source: str, question: Question, evidence: GroupedEvidence, *, double_filtering: bool = False
) -> SourceEstimate:
    """Estimate by the manifest-level proposal's formula: roll the groups up that partition filters leave, then filter.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The manifests.
    double_filtering : bool
        Whether predicates that dropped manifests are applied again to what is left: the error that the proposal warns
        of.
    """
    kept = _keep(question, evidence)
    count = len(kept.groups.row_counts)
    rolled_up = {field_id: roll_up(column, kept.groups) for field_id, column in kept.groups.columns.items()}

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        one = estimate_uniform(leaf, rolled_up.get(leaf.field_id), 1)
        spread = [np.repeat(array, count) for array in (one.estimate, one.lower, one.upper)]
        uniform = Selectivity(spread[0], spread[1], spread[2], one.reasons)
        return uniform if double_filtering else _not_again(leaf, uniform, kept.leaves[leaf])

    again = "applied again to the rest (double filtering)" if double_filtering else "not applied again"
    return build_source_estimate(
        source,
        kept.groups,
        combine(question.predicate, count, estimate_leaf),
        kept.deletes,
        how_deletes=question.deletes,
        columns=question.columns,
        assumes=f"partition filters drop {evidence.groups.unit}s and are {again}; "
        "values spread evenly between the bounds of the rest together; columns independent",
        bound=HARD_BOUND.format(unit=evidence.groups.unit),
        values_read=_count_values(question, evidence, count),
        bytes_read=evidence.bytes_read,
    )


def roll_up(column: ColumnEvidence, groups: Groups) -> ColumnEvidence | None:
    """Roll a column's evidence up over groups, to one group; what one of them lacks is unknown, None: no groups."""
    if not len(groups.row_counts):
        return None
    bounded = column.has_bounds
    is_whole = bool((bounded | column.is_valueless).all()) and bool(bounded.any())
    lower, upper = column.lower[:1], column.upper[:1]
    if is_whole:
        # NumPy has no order of objects along an axis; Python has.
        least, most = (min, max) if column.lower.dtype == object else (np.min, np.max)
        lower = np.asarray([least(column.lower[bounded])], column.lower.dtype)
        upper = np.asarray([most(column.upper[bounded])], column.upper.dtype)
    rows = max(float(groups.row_counts.sum()), 1.0)
    nulls, nans = (np.asarray([(s * groups.row_counts).sum() / rows]) for s in (column.null_share, column.nan_share))
    valueless = np.asarray([bool(column.is_valueless.all())])
    sizes = np.asarray([column.size_bytes.sum()])
    return ColumnEvidence(column.type, lower, upper, np.asarray([is_whole]), valueless, nulls, nans, sizes)


def _keep(question: Question, evidence: GroupedEvidence) -> _Kept:
    count = len(evidence.groups.row_counts)
    leaves = {
        leaf: explain_leaf(leaf, evidence.ranges, count, question.schema) for leaf in list_leaves(question.predicate)
    }
    kept = np.flatnonzero(keep_groups(question.predicate, leaves, count))
    taken = {
        leaf: LeafRanges(r.may[kept], r.must[kept], r.is_used[kept], r.bucket_share[kept]) for leaf, r in leaves.items()
    }
    return _Kept(evidence.groups.take(kept), taken, kept, evidence.deletes.take(kept))


def _estimate_all(leaf: Leaf, question: Question, evidence: GroupedEvidence) -> tuple[Selectivity, LeafRanges]:
    count = len(evidence.groups.row_counts)
    uniform = estimate_uniform(leaf, evidence.groups.columns.get(leaf.field_id), count)
    return uniform, explain_leaf(leaf, evidence.ranges, count, question.schema)


def _as_in_table(table: Selectivity, own: Selectivity, groups: Groups, kept: _Kept, ranges: LeafRanges) -> Selectivity:
    """The table's matching rows, spread over groups as evenly as each group's own bounds allow."""
    spread = spread_evenly(float(table.estimate[0]), groups.row_counts, own.lower, own.upper)[kept.places]
    mixed = np.where(ranges.is_used, own.estimate[kept.places], spread)
    return build_selectivity(mixed, own.lower[kept.places], own.upper[kept.places], (*table.reasons, *own.reasons))


def spread_evenly(share: float, row_counts: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return a share for each group, the same as far as its bounds allow, that makes up a share of all rows.

    Examples
    --------
    >>> shares = spread_evenly(0.5, np.array([100.0, 100.0]), np.array([0.8, 0.0]), np.array([1.0, 1.0]))
    >>> shares.round(2).tolist()
    [0.8, 0.2]
    """
    if np.isnan(share):
        return np.full(len(row_counts), np.nan)
    wanted = share * float(row_counts.sum())
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if float((row_counts * np.clip(middle, lower, upper)).sum()) < wanted:
            low = middle
        else:
            high = middle
    shares: Floats = np.clip(high, lower, upper)
    return shares


def _within_partitions(leaf: Leaf, uniform: Selectivity, ranges: LeafRanges, *, buckets: bool) -> Selectivity:
    estimate = uniform.estimate
    if buckets and not leaf.values.ranges:
        estimate = np.minimum(estimate / ranges.bucket_share, 1.0)
    estimate = np.where(ranges.must, 1.0, np.where(ranges.may, estimate, 0.0))
    lower = np.where(ranges.must, 1.0, uniform.lower)
    upper = np.where(ranges.may, uniform.upper, 0.0)
    return build_selectivity(estimate, lower, np.where(ranges.must, 1.0, upper), uniform.reasons)


def _not_again(leaf: Leaf, uniform: Selectivity, ranges: LeafRanges) -> Selectivity:
    """A predicate that drops groups holds for all rows of those that are left, so the proposal."""
    estimate = uniform.estimate
    if not leaf.values.ranges:
        estimate = np.minimum(estimate / ranges.bucket_share, 1.0)
    may = ranges.may.astype(np.float64)
    estimate = np.where(ranges.is_used, may, np.where(ranges.may, estimate, 0.0))
    lower = np.where(ranges.must, 1.0, np.where(ranges.is_used, 0.0, uniform.lower))
    upper = np.where(ranges.may, np.where(ranges.is_used, 1.0, uniform.upper), 0.0)
    return build_selectivity(estimate, lower, upper, uniform.reasons)


def _count_values(question: Question, evidence: GroupedEvidence, kept: int) -> int:
    leaves = list_leaves(question.predicate)
    filtered = {leaf.field_id for leaf in leaves}
    nan_columns = {leaf.field_id for leaf in leaves if leaf.type in ("float", "double")}
    partition_values = sum(
        len(spec_ranges.groups)
        for spec_ranges in evidence.ranges
        for field in spec_ranges.spec.fields
        if field.source_id in filtered
    )
    sizes = 1 if question.columns is None else len(question.columns)
    return 2 * partition_values + kept * (1 + sizes + 3 * len(filtered) + len(nan_columns))
