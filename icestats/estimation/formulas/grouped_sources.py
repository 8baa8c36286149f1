"""Estimates from bounds, counts and partition values of files, manifests, partitions and the table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from icestats.estimation.formulas.kept_groups import (
    Basis,
    GroupedEvidence,
    KeptGroups,
    build_source_estimate,
    count_values,
    keep_by_partition,
)
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.selectivity import Selectivity, build_selectivity, combine_leaves
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.formulas.uniform import estimate_uniform
from icestats.plan.evaluation.partition_projection import LeafPartitions
from icestats.plan.filters.value_sets import Leaf

_HARD_BOUND = "certain: what the bounds and null counts of {unit} leave possible, Fréchet's inequalities for AND and OR"


def estimate_kept(
    source: str,
    question: Question,
    evidence: GroupedEvidence,
    kept: KeptGroups,
    estimate_leaf: Callable[[Leaf], Selectivity],
    *,
    assumes: str,
) -> SourceEstimate:
    """Estimate the groups that partition values leave, with bounds that hold for certain.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        All groups.
    kept : KeptGroups
        Those that are left of them.
    estimate_leaf : callable
        Gives the selectivity of a predicate in these.
    assumes : str
        What the estimate rests on.
    """
    count = len(kept.groups.row_counts)
    bound = _HARD_BOUND.format(unit=_each(evidence.groups.unit))
    basis = Basis(assumes, bound, count_values(question, evidence, count), evidence.bytes_read)
    selectivity = combine_leaves(question.predicate, count, estimate_leaf)
    return build_source_estimate(source, question, kept, selectivity, basis)


def estimate_each(source: str, question: Question, evidence: GroupedEvidence) -> SourceEstimate:
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
    """
    kept = keep_by_partition(question, evidence)
    count = len(kept.groups.row_counts)
    unit = _each(evidence.groups.unit)

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        uniform = estimate_uniform(leaf, kept.groups.columns.get(leaf.field_id), count)
        return apply_partitions(leaf, uniform, kept.leaves[leaf])

    assumes = f"values spread evenly between the bounds of {unit}, columns independent within it"
    return estimate_kept(source, question, evidence, kept, estimate_leaf, assumes=assumes)


def _each(unit: str) -> str:
    return "the table" if unit == "table" else f"each {unit}"


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
    kept = keep_by_partition(question, evidence)
    count = len(kept.groups.row_counts)
    columns = kept.groups.columns.items() if count else ()
    rolled_up = {field_id: column.roll_up(kept.groups.row_counts) for field_id, column in columns}

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        one = estimate_uniform(leaf, rolled_up.get(leaf.field_id), 1)
        spread = [np.repeat(array, count) for array in (one.estimate, one.lower, one.upper)]
        uniform = Selectivity(spread[0], spread[1], spread[2], one.reasons)
        return uniform if double_filtering else _not_again(leaf, uniform, kept.leaves[leaf])

    again = "applied again to the rest (double filtering)" if double_filtering else "not applied again"
    assumes = (
        f"partition filters drop {evidence.groups.unit}s and are {again}; "
        "values spread evenly between the bounds of the rest together; columns independent"
    )
    return estimate_kept(source, question, evidence, kept, estimate_leaf, assumes=assumes)


def apply_partitions(leaf: Leaf, uniform: Selectivity, ranges: LeafPartitions) -> Selectivity:
    """Correct what a group's statistics say of a predicate by what its partition values say."""
    estimate = uniform.estimate
    if leaf.values.points and not leaf.values.ranges:
        estimate = np.minimum(estimate / ranges.bucket_share, 1.0)
    estimate = np.where(ranges.must, 1.0, np.where(ranges.may, estimate, 0.0))
    lower = np.where(ranges.must, 1.0, uniform.lower)
    upper = np.where(ranges.may, uniform.upper, 0.0)
    return build_selectivity(estimate, lower, np.where(ranges.must, 1.0, upper), uniform.reasons)


def _not_again(leaf: Leaf, uniform: Selectivity, ranges: LeafPartitions) -> Selectivity:
    """A predicate that drops groups holds for all rows of those that are left, so the proposal."""
    estimate = uniform.estimate
    if leaf.values.points and not leaf.values.ranges:
        estimate = np.minimum(estimate / ranges.bucket_share, 1.0)
    may = ranges.may.astype(np.float64)
    estimate = np.where(ranges.is_used, may, np.where(ranges.may, estimate, 0.0))
    lower = np.where(ranges.must, 1.0, np.where(ranges.is_used, 0.0, uniform.lower))
    upper = np.where(ranges.may, np.where(ranges.is_used, 1.0, uniform.upper), 0.0)
    return build_selectivity(estimate, lower, upper, uniform.reasons)
