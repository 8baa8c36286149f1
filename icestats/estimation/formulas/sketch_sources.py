"""Estimates from sketches: of the table, of each partition by its own, and the best that is known of each predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.grouped_sources import (
    Basis,
    GroupedEvidence,
    KeptGroups,
    Question,
    apply_partitions,
    build_source_estimate,
    count_values,
    estimate_kept,
    keep_by_partition,
)
from icestats.estimation.formulas.selectivity import (
    GroupEvidence,
    Selectivity,
    build_selectivity,
    combine_leaves,
    estimate_uniform,
)
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.iceberg.value_order import Floats, Longs
from icestats.plan.evaluation.partition_projection import judge_leaf
from icestats.plan.filters.value_sets import (
    BOTTOM,
    TOP,
    Cut,
    Interval,
    Leaf,
    ValueSet,
    above,
    below,
    build_prefix,
    close,
    is_discrete,
)
from icestats.stats.kll import TEXT_LENGTH, KllSketch
from icestats.stats.theta import LEAVES_OUT_EMPTY, ThetaSketch

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Distribution:
    """A column's KLL sketch, with the share of rows that it leaves out."""

    sketch: KllSketch
    null_share: float | None
    """None: unknown."""
    nan_share: float | None
    size_bytes: int
    """Of the committed blob."""


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """A column's Theta sketch: how many distinct values it has."""

    theta: ThetaSketch
    size_bytes: int
    """Of the committed blob."""

    def count(self, table: GroupEvidence, field_id: int) -> float:
        """Return how many there are, no more than the table has values that are not null."""
        column, estimate = table.columns.get(field_id), self.theta.estimate()
        values = np.nan if column is None else float((table.row_counts * (1.0 - column.null_share)).sum())
        return estimate if np.isnan(values) else min(estimate, values)

    def describe(self, table: GroupEvidence, leaf: Leaf) -> Iterator[str]:
        """Say what the number of distinct values of a predicate's column leaves out, and whether it is cut."""
        if leaf.type in LEAVES_OUT_EMPTY:
            yield f"the NDV of {leaf.column} does not count an empty value"
        if self.count(table, leaf.field_id) < self.theta.estimate():
            yield f"the NDV of {leaf.column} is cut to the number of values that are not null"


def estimate_kll(
    leaf: Leaf, distributions: Sequence[Distribution | None], *, rare_is_unknown: bool = True
) -> Selectivity:
    """Estimate which share of the live rows satisfies a predicate, from ranks of KLL sketches of its column.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    distributions : sequence of Distribution or None
        The sketch of each group; None: it has none.
    rare_is_unknown : bool
        Whether a single value is unknown where its share is not beyond what the sketch may miss.

    Returns
    -------
    Selectivity
        Each end of an interval inside a sketch's extremes is off by at most the rank error, at 99 % confidence: the
        bounds.
    """
    found = [_estimate_group(leaf, one, rare_is_unknown) for one in distributions]
    estimates, lower, upper, reasons = zip(*found, strict=True)
    said = next((reason for reason in reasons if reason), "")
    return build_selectivity(np.asarray(estimates), np.asarray(lower), np.asarray(upper), (said,) if said else ())


def _estimate_group(
    leaf: Leaf, distribution: Distribution | None, rare_is_unknown: bool
) -> tuple[float, float, float, str]:
    """Return the estimate, NaN where it is unknown, its bounds, and why it is unknown."""
    if distribution is None:
        return np.nan, 0.0, 1.0, f"{leaf.text}: no KLL sketch of {leaf.column} is committed"
    nulls, nans = distribution.null_share, distribution.nan_share
    if nulls is None or nans is None:
        reason = f"{leaf.text}: the sketch of {leaf.column} does not say how many nulls and NaN there are"
        return np.nan, 0.0, 1.0, reason
    sketch = distribution.sketch
    share, error, reason = 0.0, 0.0, ""
    for interval in leaf.values.intervals if sketch.n else ():
        part, off = _between(close(interval) if is_discrete(leaf.type) else interval, sketch)
        share, error = share + part, error + off
        if rare_is_unknown and interval.is_point and off and part <= off:
            why = (
                "too rare for" if _find_alike(interval.high) is None else "longer than the characters that are kept by"
            )
            reason = f"{leaf.text}: {why} the sketch, at most {part + off:.2%} of the values"
    of_values = 1.0 - nulls - nans
    others = (nulls if leaf.values.has_null else 0.0) + (nans if leaf.values.has_nan else 0.0)
    lower = max(0.0, share - error) * of_values + others
    upper = min(1.0, share + error) * of_values + others
    return np.nan if reason else share * of_values + others, lower, upper, reason


def _between(interval: Interval, sketch: KllSketch) -> tuple[float, float]:
    low, low_error = _rank(interval.low, sketch)
    high, high_error = _rank(interval.high, sketch)
    return max(0.0, high - low), low_error + high_error


def _rank(cut: Cut, sketch: KllSketch) -> tuple[float, float]:
    """The share of values before a cut, and how far it may be off."""
    alike = _find_alike(cut)
    if alike is not None:
        (low, low_error), (high, high_error) = _rank(alike.low, sketch), _rank(alike.high, sketch)
        return (low + high) / 2, (high - low) / 2 + max(low_error, high_error)
    if cut == BOTTOM or (cut != TOP and cut <= below(sketch.min_value)):
        return 0.0, 0.0
    if cut == TOP or cut >= above(sketch.max_value):
        return 1.0, 0.0
    return sketch.ranks([cut[1]], inclusive=cut[2] == 1)[0], sketch.rank_error


def _find_alike(cut: Cut) -> Interval | None:
    """Return the texts that a sketch does not tell apart at a cut, as it keeps their beginnings; None: it does."""
    if len(cut) == 1 or not isinstance(cut[1], str) or len(cut[1]) < TEXT_LENGTH:
        return None
    kept = cut[1][:TEXT_LENGTH]
    return None if cut == below(kept) else build_prefix(kept).intervals[0]


def estimate_ndv(leaf: Leaf, distinct: DistinctValues | None, table: GroupEvidence) -> Selectivity:
    """Estimate which share of the rows satisfies a predicate, from the number of distinct values.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    distinct : DistinctValues or None
        Of its column; None: unknown.
    table : GroupEvidence
        Bounds and null counts over the table: one group.

    Returns
    -------
    Selectivity
        One group. Each value between the bounds has the same share of the rows; ranges are estimated as by
        `estimate_uniform`. At most all rows but one for each other value can have one value.
    """
    uniform, evidence = estimate_uniform(leaf, table), table.columns.get(leaf.field_id)
    # `!=` and `not in` are all but some points.
    points = leaf.values.points or leaf.values.gaps
    if not points:
        return uniform
    if distinct is None or evidence is None:
        reason = f"{leaf.text}: no NDV of {leaf.column} is committed"
        return build_selectivity(np.full(1, np.nan), uniform.lower, uniform.upper, (reason,))

    def estimate_part(*intervals: Interval) -> Selectivity:
        return estimate_uniform(replace(leaf, values=ValueSet(intervals)), table)

    inside = sum(bool(estimate_part(point).upper[0] > 0) for point in points)
    of_points = min(1.0, inside / max(distinct.count(table, leaf.field_id), 1.0))
    of_values = 1.0 - evidence.null_share - np.nan_to_num(evidence.nan_share, nan=0.0)
    if leaf.values.points:
        estimate = of_points * of_values + estimate_part(*leaf.values.ranges).estimate
    else:
        estimate = (1.0 - of_points) * of_values
    if leaf.values.has_null:
        estimate = estimate + evidence.null_share
    if leaf.values.has_nan:
        estimate = estimate + evidence.nan_share
    return build_selectivity(estimate, uniform.lower, uniform.upper, uniform.reasons)


@dataclass(frozen=True, slots=True)
class Sketched:
    """The selectivity of a predicate in some partitions, by their sketches."""

    selectivity: Selectivity
    values_read: int = 0
    bytes_read: int = 0


ReadSketches = Callable[[Leaf, Longs], Sketched]
"""Gives the selectivity of a predicate in some partitions, by their places, and what that took."""


def estimate_by_sketches(
    source: str, question: Question, evidence: GroupedEvidence, read_sketches: ReadSketches
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
        Reads the sketches of partitions that partition values do not decide.

    Notes
    -----
    The sketches of partitions err independently of each other: where one predicate alone is left to them, the bound of
    the sum is the root of the sum of their squared bounds, at the same confidence.
    """
    kept = keep_by_partition(question, evidence)
    row_counts = kept.groups.row_counts
    read: list[Sketched] = []

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        ranges = kept.leaves[leaf]
        undecided = np.flatnonzero(ranges.may & ~ranges.must)
        if not len(undecided):
            decided = ranges.must.astype(np.float64)
            return Selectivity(decided, decided, decided)
        read.append(read_sketches(leaf, kept.places[undecided]))
        return _among(kept, leaf, undecided, read[-1].selectivity)

    selectivity = combine_leaves(question.predicate, len(row_counts), estimate_leaf)
    basis = Basis(
        assumes="ranks of each partition's sketch, partition values where they decide; columns independent within it",
        bound="99 % confidence (the sketches' rank errors), Fréchet's inequalities",
        values_read=count_values(question, evidence, 0) + sum(one.values_read for one in read),
        bytes_read=sum(one.bytes_read for one in read),
        of_live_rows=True,
    )
    found = build_source_estimate(source, question, kept, selectivity, basis)
    if len(read) > 1 or found.rows is None:
        return found
    error = _error(row_counts, selectivity)
    return replace(
        found,
        rows_lower=round(max(0.0, found.rows - error), 6),
        rows_upper=round(found.rows + error, 6),
        bound="99 % confidence: the rank errors of partitions' sketches, which err independently",
    )


def _among(kept: KeptGroups, leaf: Leaf, undecided: Longs, found: Selectivity) -> Selectivity:
    """Put what sketches say of some groups among what partition values say of the others."""
    estimate, lower, upper = (kept.leaves[leaf].must.astype(np.float64) for _ in range(3))
    estimate[undecided], lower[undecided], upper[undecided] = found.estimate, found.lower, found.upper
    row_counts, reasons = kept.groups.row_counts[undecided], found.reasons
    off = _error(row_counts, found)
    if leaf.values.points and off and float((row_counts * found.estimate).sum()) <= off:
        estimate[undecided] = np.nan
        reasons = (f"{leaf.text}: too rare for the sketches, at most {off:,.0f} rows",)
    return build_selectivity(estimate, lower, upper, reasons)


def _error(row_counts: Floats, selectivity: Selectivity) -> float:
    """How far the sum may be off where each group errs by itself."""
    off = np.maximum(selectivity.upper - selectivity.estimate, selectivity.estimate - selectivity.lower)
    return float(np.sqrt(((row_counts * off) ** 2).sum()))


def estimate_combined(
    source: str,
    question: Question,
    evidence: GroupedEvidence,
    read_sketches: ReadSketches,
    of_table: Callable[[Leaf], Selectivity],
) -> SourceEstimate:
    """Estimate with the best that is known of each predicate.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The partitions.
    read_sketches : callable
        Reads the sketches of partitions.
    of_table : callable
        Gives the estimate over the whole table (one group) where partitions have no sketches.
    """
    kept = keep_by_partition(question, evidence)

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        ranges = kept.leaves[leaf]
        bounds = apply_partitions(leaf, estimate_uniform(leaf, kept.groups), ranges)
        undecided = np.flatnonzero(ranges.may & ~ranges.must)
        if not len(undecided):
            return bounds
        found = _among(kept, leaf, undecided, read_sketches(leaf, kept.places[undecided]).selectivity)
        if not np.isnan(found.estimate).any():
            return build_selectivity(found.estimate, bounds.lower, bounds.upper)
        if ranges.is_used.all() and not np.isnan(bounds.estimate).any():
            return bounds
        return _as_in_table(leaf, of_table(leaf), kept)

    assumes = (
        "partition values where they decide, else KLL of partitions, KLL, NDV and bounds of the table, in this order; "
        "columns independent"
    )
    return estimate_kept(source, kept, estimate_leaf, assumes=assumes)


def _as_in_table(leaf: Leaf, table: Selectivity, kept: KeptGroups) -> Selectivity:
    """The table's matching rows, spread over groups as evenly as each group's own bounds allow."""
    every = kept.evidence.groups
    ranges = judge_leaf(leaf, kept.evidence.by_spec, len(every.row_counts), kept.question.row_filter.schema)
    own = apply_partitions(leaf, estimate_uniform(leaf, every), ranges)
    spread = spread_evenly(float(table.estimate[0]), every.row_counts, own.lower, own.upper)[kept.places]
    return build_selectivity(spread, own.lower[kept.places], own.upper[kept.places], table.reasons)


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
