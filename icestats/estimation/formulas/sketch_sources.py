"""Estimates from sketches: of the table, and of each partition by its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.grouped_sources import (
    Basis,
    GroupedEvidence,
    KeptGroups,
    Question,
    RowCounts,
    build_source_estimate,
    count_live_rows,
    count_values,
    keep_by_partition,
    round_bounds,
)
from icestats.estimation.formulas.selectivity import (
    GroupEvidence,
    Selectivity,
    build_selectivity,
    combine_leaves,
    estimate_uniform,
)
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.iceberg.filters.value_sets import (
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
from icestats.iceberg.value_order import Floats, Longs
from icestats.snapshot.evaluation.evaluator import count_met
from icestats.stats.kll import KllSketch
from icestats.stats.kll_layout import TEXT_LENGTH
from icestats.stats.theta import ThetaSketch, describe_counting


@dataclass(frozen=True, slots=True)
class Distribution:
    """A column's KLL sketch, with the share of rows that it leaves out."""

    sketch: KllSketch
    null_share: float | None
    """None: unknown."""
    nan_share: float | None
    size_bytes: int
    """Of the committed blob."""
    rows: SketchedRows | None = None
    """The table's live rows as the sketch counted them, one group; None for the sketch of a partition."""


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """A column's Theta sketch: how many distinct values it has."""

    theta: ThetaSketch
    size_bytes: int
    """Of the committed blob."""
    notes: tuple[str, ...] = ()
    """What a reader must know of its age."""
    earlier_type: str = ""
    """Another type that the column has had, if the sketch may be of values of that: they have other hashes."""
    hashing: str = "Iceberg"
    """As `CommittedBlob` has it."""
    is_merged: bool = False
    """Likewise."""

    def count(self, table: GroupEvidence, field_id: int) -> float:
        """Return how many there are, no more than the table has values that are not null."""
        column, estimate = table.columns.get(field_id), self.theta.estimate()
        values = np.nan if column is None else float((table.row_counts * (1.0 - column.null_share)).sum())
        return estimate if np.isnan(values) else min(estimate, values)

    def describe(self, table: GroupEvidence, leaf: Leaf) -> Iterator[str]:
        """Say what the number of distinct values of a predicate's column leaves out, and whether it is cut."""
        yield from describe_counting(leaf.column, leaf.type)
        if self.count(table, leaf.field_id) < self.theta.estimate():
            yield f"the NDV of {leaf.column} is cut to the number of values that are not null"


@dataclass(frozen=True, slots=True)
class SketchedRows:
    """The live rows of some groups as a column's sketches counted them, and what has changed since."""

    row_counts: Floats
    """At the sketches' snapshot; NaN: unknown."""
    added: Floats
    """Rows that have come since, at most; infinite: unknown."""
    removed: Floats
    notes: tuple[str, ...] = ()
    """What a reader must know of the sketches' age."""

    def take(self, groups: Longs) -> SketchedRows:
        """Return those of some groups."""
        return SketchedRows(self.row_counts[groups], self.added[groups], self.removed[groups], self.notes)


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The rows of groups as deletes and sketches together prove them."""

    rows: RowCounts
    """Deletes treated as the call says."""
    deleted: Floats
    """How many of these rows may be deleted ones, which no sketch is of."""

    def bring_to_today(self, found: Selectivity, sketched: SketchedRows) -> Selectivity:
        """Return shares of a sketch's rows as shares of `rows.most`; their bounds hold whatever has changed since."""
        most, counts = np.maximum(self.rows.most, 1.0), sketched.row_counts
        lower = (counts * found.lower - sketched.removed) / most
        upper = (counts * found.upper + sketched.added + self.deleted) / most
        lower, upper = np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0)
        return build_selectivity(found.estimate, lower, upper, found.reasons)

    def take(self, groups: Longs) -> LiveRows:
        """Return those of some groups."""
        return LiveRows(self.rows.take(groups), self.deleted[groups])


def count_live(evidence: GroupedEvidence | KeptGroups, how: str, sketched: Sequence[SketchedRows]) -> LiveRows:
    """Count the rows of groups: what deletes leave for certain, and what the sketches of columns have counted."""
    live = count_live_rows(evidence.groups, evidence.deletes, "deduct")
    least, most = live.least, live.most
    for one in sketched:
        least = np.fmax(least, one.row_counts - one.removed)
        most = np.fmin(most, one.row_counts + one.added)
    least = np.minimum(least, most)
    if how == "deduct":
        return LiveRows(RowCounts(least, most, np.clip(live.estimate, least, most)), np.zeros(len(least)))
    rows = count_live_rows(evidence.groups, evidence.deletes, how)
    return LiveRows(rows, np.maximum(rows.most - least, 0.0))


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
        return (
            np.nan,
            0.0,
            1.0,
            f"{leaf.text}: no KLL sketch of {leaf.column} is committed for this snapshot or an ancestor of it",
        )
    nulls, nans = distribution.null_share, distribution.nan_share
    if nulls is None or nans is None:
        reason = f"{leaf.text}: the sketch of {leaf.column} does not say how many nulls and NaN there are"
        return np.nan, 0.0, 1.0, reason
    sketch = distribution.sketch
    share, error, reason = 0.0, 0.0, ""
    for interval in leaf.values.intervals if sketch.n else ():
        part, off = share_between(close(interval) if is_discrete(leaf.type) else interval, sketch)
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


def share_between(interval: Interval, sketch: KllSketch) -> tuple[float, float]:
    """Return the share of a sketch's values that is in an interval, and how far it may be off."""
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
    inside = int(count_met(ValueSet(points), evidence.metrics)[0])
    of_points = min(1.0, inside / max(distinct.count(table, leaf.field_id), 1.0))
    of_values = 1.0 - evidence.null_share - np.nan_to_num(evidence.nan_share, nan=0.0)
    if leaf.values.points:
        ranges = estimate_uniform(replace(leaf, values=ValueSet(leaf.values.ranges)), table)
        estimate = of_points * of_values + ranges.estimate
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
    """Of the live rows at the sketches' snapshot."""
    values_read: int = 0
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class PartitionSketches:
    """Reads what is committed by partition; partitions go by their places among all."""

    read: Callable[[Leaf, Longs], Sketched]
    """Gives the selectivity of a predicate in some partitions."""
    count: Callable[[Leaf, Longs], SketchedRows]
    """Gives the rows that the sketches of a predicate's column have counted in some partitions."""
    assumes: str = "ranks of each partition's sketch, partition values where they decide; columns independent within it"
    """In words, what an estimate takes for granted."""
    is_certain: bool = False
    """Whether the bounds hold for certain, and not with the confidence of KLL's ranks."""


class SketchedPartitions:
    """What the sketches of kept partitions say of predicates."""

    def __init__(self, kept: KeptGroups, sketches: PartitionSketches) -> None:
        self.kept = kept
        self.sketches = sketches
        self.sketched = {leaf: sketches.count(leaf, kept.places) for leaf in kept.question.leaves}
        self.live = count_live(kept, kept.question.deletes, list(self.sketched.values()))
        self.read: dict[Leaf, Sketched] = {}

    @property
    def are_current(self) -> bool:
        """Whether sketches are of exactly the rows that are asked about."""
        rows = self.live.rows
        changed = (self.live.deleted, *(one.added + one.removed for one in self.sketched.values()))
        return np.array_equal(rows.least, rows.most) and not any(one.any() for one in changed)

    def estimate(self, leaf: Leaf) -> Selectivity:
        """Return the share of each partition's rows that satisfies a predicate, partition values where they decide."""
        ranges, rows = self.kept.leaves[leaf], self.live.rows
        undecided = np.flatnonzero(ranges.is_rough | (ranges.may & ~ranges.must))
        estimate = ranges.must.astype(np.float64)
        lower, upper = estimate * rows.least / np.maximum(rows.most, 1.0), ranges.must.astype(np.float64)
        if not len(undecided):
            return build_selectivity(estimate, lower, upper)
        found = self.read[leaf] = self.sketches.read(leaf, self.kept.places[undecided])
        sketched = self.sketched[leaf].take(undecided)
        today = self.live.take(undecided).bring_to_today(found.selectivity, sketched)
        estimate[undecided], lower[undecided], upper[undecided] = today.estimate, today.lower, today.upper
        lower[ranges.is_rough], upper[ranges.is_rough] = 0.0, 1.0
        off = _error(sketched.row_counts, found.selectivity)
        reasons = found.selectivity.reasons
        can_be_rare = leaf.values.points and off and not self.sketches.is_certain
        if can_be_rare and (expected := float((sketched.row_counts * found.selectivity.estimate).sum())) <= off:
            estimate[undecided] = np.nan
            reasons = (f"{leaf.text}: too rare for the sketches, at most {math.floor(expected + off):,} rows",)
        return build_selectivity(estimate, lower, upper, reasons)


def estimate_by_sketches(
    source: str, question: Question, evidence: GroupedEvidence, sketches: PartitionSketches
) -> SourceEstimate:
    """Estimate each partition by its own sketches, and add up.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The partitions.
    sketches : PartitionSketches
        Reads the sketches of partitions that partition values do not decide.

    Notes
    -----
    The sketches of partitions err independently of each other: where one predicate alone is left to them, and they are
    of this snapshot, the bound of the sum is the root of the sum of their squared bounds, at the same confidence, but
    where texts are longer than what sketches keep of them, or where a filter has the predicate twice, whose estimate
    takes it for independent of itself.
    """
    kept = keep_by_partition(question, evidence)
    partitions = SketchedPartitions(kept, sketches)
    selectivity = combine_leaves(question.predicate, len(kept.places), partitions.estimate)
    read = list(partitions.read.items())
    notes = tuple(dict.fromkeys(note for leaf, _ in read for note in partitions.sketched[leaf].notes))
    how = BY_COUNTS if sketches.is_certain else f"{BY_RANK}: the sketches' rank errors"
    basis = Basis(
        assumes=sketches.assumes,
        bound=f"{how}, Fréchet's inequalities{WIDENED if notes else ''}",
        values_read=count_values(question, evidence, 0) + sum(one.values_read for _, one in read),
        bytes_read=sum(one.bytes_read for _, one in read),
        notes=notes,
        rows=partitions.live.rows,
    )
    found = build_source_estimate(source, question, kept, selectivity, basis)
    if sketches.is_certain or len(read) != 1 or found.rows is None or not partitions.are_current:
        return found
    ((leaf, one),) = read
    if question.leaves.count(leaf) > 1:
        return found
    if any(_find_alike(cut) is not None for part in leaf.values.intervals for cut in (part.low, part.high)):
        # What no sketch tells apart is no chance: it may lie on the same side in all of them.
        return found
    ranges = kept.leaves[leaf]
    if ranges.is_rough.any():
        return found
    error = _error(partitions.live.rows.most[ranges.may & ~ranges.must], one.selectivity)
    if np.isnan(error):
        return found
    lower, upper = round_bounds(found.rows - error, found.rows + error)
    return replace(
        found,
        rows_lower=max(found.rows_lower or 0.0, lower),
        rows_upper=min(found.rows_upper or 0.0, upper),
        bound=f"{BY_RANK}: the rank errors of partitions' sketches, which err independently",
    )


IF_RIGHT = "if the statistics file is right"
"""What bounds take for granted that rest on one: what is false in a possible way looks like a truth."""
BY_RANK = f"99% confidence {IF_RIGHT}"
BY_COUNTS = f"certain {IF_RIGHT}: rows of common values as counted"
WIDENED = "; at the earlier snapshots of sketches, less the rows removed since and plus those added since"
"""What the bounds of sketches promise that are not of the snapshot which is asked about."""


def _error(row_counts: Floats, selectivity: Selectivity) -> float:
    """How far the sum may be off where each group errs by itself."""
    off = np.maximum(selectivity.upper - selectivity.estimate, selectivity.estimate - selectivity.lower)
    return float(np.sqrt(((row_counts * off) ** 2).sum()))
