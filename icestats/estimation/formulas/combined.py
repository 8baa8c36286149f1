"""Estimates of each data file with the best that is known of each predicate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce

import numpy as np

from icestats.estimation.formulas.grouped_sources import (
    DeleteShares,
    GroupedEvidence,
    KeptGroups,
    Question,
    RowCounts,
    apply_partitions,
    estimate_kept,
    judge_groups,
    keep_by_partition,
)
from icestats.estimation.formulas.joint_sources import bound_all, scale_to
from icestats.estimation.formulas.sampled_rows import SampledLeaf, correct_all
from icestats.estimation.formulas.selectivity import LeafGroup, Selectivity, build_selectivity, estimate_uniform
from icestats.estimation.formulas.sketch_sources import PartitionSketches, SketchedPartitions
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.iceberg.filters.value_sets import Leaf
from icestats.iceberg.value_order import Floats, Longs, Mask

_HALVINGS = 45


@dataclass(frozen=True, slots=True)
class TableSketches:
    """What the table's own sketches say of a predicate."""

    ranks: Selectivity
    """By KLL: of the rows that are asked about, one group."""
    values: Selectivity
    """By the number of distinct values, else by the table's bounds: one group."""
    rows: RowCounts
    """The rows that `ranks` are shares of."""
    notes: tuple[str, ...]
    """What a reader must know of their age."""


def estimate_combined(
    source: str,
    question: Question,
    evidence: GroupedEvidence,
    parts: tuple[GroupedEvidence, Longs] | None,
    sketches: PartitionSketches,
    of_table: Callable[[Leaf], TableSketches],
    group_in_table: Callable[[Sequence[Leaf]], Sequence[LeafGroup]],
    sample: Callable[[Sequence[Leaf]], Mapping[Leaf, Mask]],
    fit_deletes: Callable[[DeleteShares], DeleteShares],
) -> SourceEstimate:
    """Estimate each data file with the best that is known of each predicate.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter.
    evidence : GroupedEvidence
        The partitions.
    parts : tuple of GroupedEvidence and numpy.ndarray of int64, or None
        The data files, and which partition each is in, -1 if none is known; None: they are not asked.
    sketches : PartitionSketches
        Reads the sketches of partitions.
    of_table : callable
        Gives what the table's sketches say.
    group_in_table : callable
        Gives what the table's statistics of columns together say of the predicates of an AND.
    sample : callable
        Gives which sampled rows satisfy predicates, of those that were sampled together.
    fit_deletes : callable
        Gives deletes as the table's sketches prove them.

    Notes
    -----
    What a sketch says of a table or partition is spread over its data files as evenly as their own bounds allow, so
    columns that are correlated by file are not taken for independent. It is asked only where it leaves fewer rows
    undecided than the files' bounds do.
    """
    kept = keep_by_partition(question, evidence)
    partitions, fine, parents = SketchedPartitions(kept, sketches), kept, np.arange(len(kept.places))
    notes: list[str] = []
    if parts is not None:
        files = keep_by_partition(question, parts[0])
        owners = parts[1][files.places]
        if np.isin(owners, kept.places).all():
            fine, parents = files, np.searchsorted(kept.places, owners)
    fine = replace(fine, deletes=fit_deletes(fine.deletes))

    @cache
    def estimate_leaf(leaf: Leaf) -> Selectivity:
        own = apply_partitions(leaf, estimate_uniform(leaf, fine.groups), fine.leaves[leaf])
        undecided = float((fine.groups.row_counts * (own.upper - own.lower)).sum())
        if not undecided:
            return own
        table = of_table(leaf)
        found, width, used = _choose_sketch(leaf, partitions, table)
        is_known = not np.isnan(own.estimate).any()
        if np.isnan(found.estimate).any() or (is_known and width >= undecided):
            found, used = table.values, table.notes
            has_points = bool(leaf.values.points) and not leaf.values.ranges
            if is_known and (not has_points or np.isnan(found.estimate).any()):
                return own
            if is_known:
                # Values between a file's bounds are no more than the table has distinct ones.
                notes.extend(used)
                return build_selectivity(np.maximum(own.estimate, found.estimate), own.lower, own.upper)
        notes.extend(used)
        if found is table.ranks or found is table.values:
            found = _as_in_table(leaf, found, kept)
        spread = spread_evenly(found.estimate, parents, fine.groups.row_counts, own.lower, own.upper)
        return build_selectivity(spread, own.lower, own.upper, found.reasons)

    def estimate_together(leaves: Sequence[Leaf]) -> Sequence[LeafGroup]:
        pruning = _find_pruning(leaves, evidence, fine)
        groups = group_in_table(leaves) if len(leaves) > 1 else ()
        parts = [_spread_group(group, pruning, evidence, fine, estimate_leaf) for group in groups]
        others = [leaf for leaf in leaves if leaf not in pruning]
        return _correct(parts, others, partial(_sample_left, sample, pruning), estimate_leaf, fine.groups.row_counts)

    assumes = (
        f"of each predicate what leaves the fewest rows undecided: bounds of each {fine.groups.unit}, or KLL of "
        f"partitions, KLL or NDV of the table, spread over {fine.groups.unit}s as their bounds allow; columns "
        f"that have no statistics together independent within each"
    )
    return estimate_kept(source, fine, estimate_leaf, estimate_together, assumes=assumes, notes=notes)


def _choose_sketch(
    leaf: Leaf, partitions: SketchedPartitions, table: TableSketches
) -> tuple[Selectivity, float, tuple[str, ...]]:
    """What is known by partition or of the table, whichever leaves fewer rows undecided; how many, and notes."""
    found, of_table = partitions.estimate(leaf), table.ranks
    width = float((partitions.live.rows.most * (found.upper - found.lower)).sum())
    table_width = float((table.rows.most * (of_table.upper - of_table.lower)).sum())
    is_known = not np.isnan(of_table.estimate).any()
    if np.isnan(found.estimate).any() or (is_known and table_width < width):
        return of_table, table_width, table.notes
    return found, width, partitions.sketched[leaf].notes


def _find_pruning(leaves: Sequence[Leaf], evidence: GroupedEvidence, kept: KeptGroups) -> set[Leaf]:
    """Return the predicates on columns that partitions are made of, where these leave out rows."""
    sources = {field.source_id for found in evidence.by_spec for field in found.spec.fields}
    is_less = kept.groups.row_counts.sum() < evidence.groups.row_counts.sum()
    return {leaf for leaf in leaves if is_less and leaf.field_id in sources}


def _sample_left(
    sample: Callable[[Sequence[Leaf]], Mapping[Leaf, Mask]], pruning: set[Leaf], others: Sequence[Leaf]
) -> Mapping[Leaf, Mask]:
    """Return which sampled rows of the partitions that are left satisfy predicates; empty: unknown."""
    found = sample([*pruning, *others])
    if not pruning <= found.keys():
        return {}
    is_left = np.logical_and.reduce([found[leaf] for leaf in pruning]) if pruning else slice(None)
    return {leaf: found[leaf][is_left] for leaf in others if leaf in found}


def _spread_group(
    group: LeafGroup,
    pruning: set[Leaf],
    evidence: GroupedEvidence,
    fine: KeptGroups,
    estimate_leaf: Callable[[Leaf], Selectivity],
) -> LeafGroup:
    """The rows of predicates together, spread over groups as the predicates by themselves are."""
    product, lower, upper = bound_all([estimate_leaf(leaf) for leaf in group.leaves])
    # Together with what leaves out partitions they are a share of the table, else of the rows that are left.
    of = evidence.groups if pruning & {*group.leaves} else fine.groups
    wanted = float(group.selectivity.estimate[0]) * float(of.row_counts.sum())
    shares = scale_to(wanted, product, fine.groups.row_counts, lower, upper)
    return LeafGroup(group.leaves, build_selectivity(shares, lower, upper))


def _correct(
    groups: Sequence[LeafGroup],
    every_leaf: Sequence[Leaf],
    sample: Callable[[Sequence[Leaf]], Mapping[Leaf, Mask]],
    estimate_leaf: Callable[[Leaf], Selectivity],
    rows: Floats,
) -> Sequence[LeafGroup]:
    """Return all predicates of an AND as one, as sampled rows correct how far they go together; else its groups."""
    every, grouped = float(rows.sum()), {leaf for own, _ in groups for leaf in own}
    parts = [*groups, *(LeafGroup((leaf,), estimate_leaf(leaf)) for leaf in every_leaf if leaf not in grouped)]
    # Of a table without rows there is nothing to correct, though earlier ones may be sampled.
    found = sample(every_leaf) if len(every_leaf) > 1 and every else {}
    # A predicate that goes with one that has not been sampled is no factor of its own.
    sampled = {leaf: found[leaf] for own, _ in parts if set(own) <= set(found) for leaf in own}
    if len(sampled) < 2 or any(np.isnan(part.estimate).any() for _, part in parts):
        return groups
    chosen = list(sampled)
    single = {leaf: estimate_leaf(leaf) for leaf in chosen}

    def share_of(*shares: Floats) -> float:
        return float((rows * reduce(np.multiply, shares)).sum()) / every

    def expect(one: int, other: int) -> float:
        both = {chosen[one], chosen[other]}
        own, joint = next(((own, part) for own, part in parts if both <= set(own)), (both, None))
        if joint is None:
            return share_of(*(single[leaf].estimate for leaf in both))
        return share_of(joint.estimate) if len(own) == len(both) else math.nan

    product, lower, upper = bound_all([part for _, part in parts])
    of_sampled = share_of(*(part.estimate for own, part in parts if set(own) <= set(sampled)))
    leaves = [SampledLeaf(share_of(single[leaf].estimate), sampled[leaf]) for leaf in chosen]
    factor = correct_all(leaves, of_sampled, expect) / of_sampled if of_sampled else 1.0
    shares = scale_to(share_of(product) * factor * every, product, rows, lower, upper)
    return [LeafGroup(tuple(leaf for own, _ in parts for leaf in own), build_selectivity(shares, lower, upper))]


def _as_in_table(leaf: Leaf, table: Selectivity, kept: KeptGroups) -> Selectivity:
    """The table's matching rows, spread over groups as evenly as each group's own bounds allow."""
    every = kept.evidence.groups
    ranges = judge_groups(leaf, kept.evidence, kept.question.row_filter.schema)
    own = apply_partitions(leaf, estimate_uniform(leaf, every), ranges)
    one = np.zeros(len(every.row_counts), np.int64)
    spread = spread_evenly(table.estimate, one, every.row_counts, own.lower, own.upper)[kept.places]
    return build_selectivity(spread, own.lower[kept.places], own.upper[kept.places], table.reasons)


def spread_evenly(shares: Floats, parents: Longs, row_counts: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return a share for each group, the same within each parent as far as bounds allow, that makes up the parent's.

    Examples
    --------
    >>> one = np.zeros(2, np.int64)
    >>> half = np.array([0.5])
    >>> shares = spread_evenly(half, one, np.array([100.0, 100.0]), np.array([0.8, 0.0]), np.array([1.0, 1.0]))
    >>> shares.round(2).tolist()
    [0.8, 0.2]
    """
    wanted = shares * np.bincount(parents, row_counts, minlength=len(shares))
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        made = np.bincount(parents, row_counts * np.clip(middle[parents], lower, upper), minlength=len(shares))
        low, high = np.where(made < wanted, middle, low), np.where(made < wanted, high, middle)
    return np.where(np.isnan(shares)[parents], np.nan, np.clip(high[parents], lower, upper))
