"""Estimates from sketches: of each partition by its own, of the table where partitions have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.grouped_sources import apply_partitions, estimate_kept
from icestats.estimation.formulas.kept_groups import (
    Basis,
    GroupedEvidence,
    KeptGroups,
    build_source_estimate,
    count_values,
    keep_by_partition,
)
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.selectivity import Floats, Selectivity, build_selectivity, combine_leaves
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.formulas.uniform import estimate_uniform
from icestats.iceberg.value_order import Longs
from icestats.plan.evaluation.partition_projection import judge_leaf
from icestats.plan.filters.value_sets import Leaf

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Sketched:
    """The selectivity of a predicate in some partitions, by their sketches."""

    selectivity: Selectivity
    values_read: int
    bytes_read: int


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
    read: list[Sketched] = []

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        ranges = kept.leaves[leaf]
        undecided = np.flatnonzero(ranges.may & ~ranges.must)
        if not len(undecided):
            decided = ranges.must.astype(np.float64)
            return Selectivity(decided, decided, decided)
        read.append(read_sketches(leaf, kept.places[undecided]))
        return _among(kept, leaf, undecided, read[-1].selectivity)

    selectivity = combine_leaves(question.predicate, len(kept.groups.row_counts), estimate_leaf)
    basis = Basis(
        assumes="ranks of each partition's sketch, partition values where they decide; columns independent within it",
        bound="99 % confidence (the sketches' rank errors), Fréchet's inequalities",
        values_read=count_values(question, evidence, 0) + sum(one.values_read for one in read),
        bytes_read=sum(one.bytes_read for one in read),
        of_live_rows=True,
    )
    found = build_source_estimate(source, question, kept, selectivity, basis)
    return _with_independent_errors(found, kept, selectivity) if len(read) <= 1 else found


def _among(kept: KeptGroups, leaf: Leaf, undecided: Longs, found: Selectivity) -> Selectivity:
    """Put what sketches say of some groups among what partition values say of the others."""
    decided = kept.leaves[leaf].must.astype(np.float64)
    estimate, lower, upper = decided.copy(), decided.copy(), decided.copy()
    estimate[undecided], lower[undecided], upper[undecided] = found.estimate, found.lower, found.upper
    off = _error(kept.groups.row_counts[undecided], found)
    if leaf.values.points and off and float((kept.groups.row_counts[undecided] * found.estimate).sum()) <= off:
        estimate[undecided] = np.nan
        reason = f"{leaf.text}: too rare for the sketches, at most {off:,.0f} rows"
        return build_selectivity(estimate, lower, upper, (reason,))
    return build_selectivity(estimate, lower, upper, found.reasons)


def _error(row_counts: Floats, selectivity: Selectivity) -> float:
    """How far the sum may be off where each group errs by itself."""
    off = np.maximum(selectivity.upper - selectivity.estimate, selectivity.estimate - selectivity.lower)
    return float(np.sqrt(((row_counts * off) ** 2).sum()))


def _with_independent_errors(found: SourceEstimate, kept: KeptGroups, selectivity: Selectivity) -> SourceEstimate:
    if found.rows is None:
        return found
    error = _error(kept.groups.row_counts, selectivity)
    return replace(
        found,
        rows_lower=round(max(0.0, found.rows - error), 6),
        rows_upper=round(found.rows + error, 6),
        bound="99 % confidence: the rank errors of partitions' sketches, which err independently",
    )


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
    count = len(kept.groups.row_counts)

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        ranges = kept.leaves[leaf]
        uniform = estimate_uniform(leaf, kept.groups.columns.get(leaf.field_id), count)
        bounds = apply_partitions(leaf, uniform, ranges)
        undecided = np.flatnonzero(ranges.may & ~ranges.must)
        if not len(undecided):
            return bounds
        found = _among(kept, leaf, undecided, read_sketches(leaf, kept.places[undecided]).selectivity)
        if not np.isnan(found.estimate).any():
            return build_selectivity(found.estimate, bounds.lower, bounds.upper)
        if ranges.is_used.all() and not np.isnan(bounds.estimate).any():
            return bounds
        return _as_in_table(leaf, of_table(leaf), question, evidence, kept)

    assumes = (
        "partition values where they decide, else KLL of partitions, KLL, NDV and bounds of the table, in this order; "
        "columns independent"
    )
    return estimate_kept(source, question, evidence, kept, estimate_leaf, assumes=assumes)


def _as_in_table(
    leaf: Leaf, table: Selectivity, question: Question, evidence: GroupedEvidence, kept: KeptGroups
) -> Selectivity:
    """The table's matching rows, spread over groups as evenly as each group's own bounds allow."""
    count = len(evidence.groups.row_counts)
    uniform = estimate_uniform(leaf, evidence.groups.columns.get(leaf.field_id), count)
    own = apply_partitions(leaf, uniform, judge_leaf(leaf, evidence.by_spec, count, question.row_filter.schema))
    spread = spread_evenly(float(table.estimate[0]), evidence.groups.row_counts, own.lower, own.upper)[kept.places]
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
