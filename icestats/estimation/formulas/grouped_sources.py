"""Estimates from bounds, counts and partition values of files, manifests, partitions and the table.

A question is asked of groups of rows. Partition values leave some of the groups; the selectivities of these, their
deletes and their sizes add up to the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from icestats.errors import check_choice, check_names
from icestats.estimation.formulas.selectivity import (
    GroupEvidence,
    LeafGroup,
    Selectivity,
    build_selectivity,
    combine_leaves,
    estimate_uniform,
)
from icestats.estimation.formulas.source_estimates import DELETES, SourceEstimate, keep_within
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.iceberg.filters.value_sets import Leaf, Tree, build_tree, list_leaves
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.value_order import Floats, Longs, Mask
from icestats.snapshot.evaluation.partition_groups import SpecGroups
from icestats.snapshot.evaluation.partition_projection import LeafPartitions, judge_leaf, keep_groups

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema

_HARD_BOUND = "certain: what the bounds and null counts of {unit} leave possible, Fréchet's inequalities for AND and OR"


@dataclass(frozen=True)
class Question:
    """What is asked of every source."""

    row_filter: RowFilter
    columns: tuple[int, ...] | None
    """Field ids of the projected columns; None: all."""
    deletes: str
    """One of `source_estimates.DELETES`."""

    @cached_property
    def predicate(self) -> Tree:
        """The filter as sets of values."""
        return build_tree(self.row_filter.condition)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The predicates on columns."""
        return list_leaves(self.predicate)

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The columns of the filter, then the projected ones."""
        filtered = (leaf.field_id for leaf in self.leaves)
        return tuple(dict.fromkeys((*filtered, *(self.columns or ()))))


def build_question(row_filter: RowFilter, schema: Schema, columns: Sequence[str] | None, deletes: str) -> Question:
    """Build the question that a row filter asks.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    schema : Schema
        The snapshot's schema.
    columns : sequence of str or None
        The projected columns; None: all.
    deletes : {"deduct", "positions", "ignore"}
        How row-level deletes count.

    Raises
    ------
    ColumnNotFoundError, CallError
        The call is wrong.
    """
    check_choice("deletes", deletes, DELETES)
    check_names("columns", columns, or_none=True)
    found = None if columns is None else [i for name in columns for i in _primitive_ids(schema.find(name), schema)]
    return Question(row_filter, None if found is None else tuple(dict.fromkeys(found)), deletes)


def _primitive_ids(field: Field, schema: Schema) -> list[int]:
    if field.is_primitive:
        return [field.field_id]
    return [f.field_id for f in schema.columns if f.name.startswith(f"{field.name}.")]


@dataclass(frozen=True, slots=True)
class DeleteShares:
    """Which share of each group's records row-level deletes remove."""

    positions: Floats
    """Position deletes and deletion vectors, counted in their files."""
    equality: Floats
    """Equality deletes, estimated as filters."""
    has_equality: Mask
    """Whether equality deletes are about the group: any of its rows may be gone, whatever their estimated share."""
    most_own: Floats
    """Rows of each group that position deletes and deletion vectors delete which name it, at most."""
    least_own: Floats
    """The same at least: of deletion vectors."""
    most_others: float
    """Records of the other position deletes and deletion vectors: no more rows of any groups are deleted by these."""
    positions_assumes: str
    """How position deletes and deletion vectors are deducted."""
    equality_assumes: str

    def take(self, groups: Longs) -> DeleteShares:
        """Return those of some groups."""
        names = ("positions", "equality", "has_equality", "most_own", "least_own")
        return replace(self, **{name: getattr(self, name)[groups] for name in names})


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows each group has, row-level deletes treated as a call says."""

    least: Floats
    """For certain no fewer."""
    most: Floats
    """For certain no more."""
    estimate: Floats

    def take(self, groups: Longs) -> RowCounts:
        """Return those of some groups."""
        return RowCounts(self.least[groups], self.most[groups], self.estimate[groups])


def count_live_rows(groups: GroupEvidence, deletes: DeleteShares, how: str) -> RowCounts:
    """Count the rows of groups, deletes treated as `source_estimates.DELETES` says."""
    rows = groups.row_counts
    if how == "ignore":
        return RowCounts(rows, rows, rows)
    # A delete may name a row that is gone already; what an equality delete removes, only data files tell.
    least = np.maximum(rows - deletes.most_own - deletes.most_others, 0.0)
    kept = rows * (1.0 - deletes.positions)
    if how == "deduct":
        least, kept = np.where(deletes.has_equality, 0.0, least), kept * (1.0 - deletes.equality)
    return RowCounts(least, rows - deletes.least_own, kept)


@dataclass(frozen=True, slots=True)
class GroupedEvidence:
    """The groups that one kind of statistics is about, and what they took to read."""

    groups: GroupEvidence
    by_spec: Sequence[SpecGroups]
    deletes: DeleteShares
    bytes_read: int


def fit_equality_deletes(deletes: DeleteShares, table: GroupedEvidence, live: float) -> DeleteShares:
    """Return the deletes of groups of a table where equality deletes leave as many of its rows as sketches counted."""
    left, expected = 1.0 - deletes.equality, count_live_rows(table.groups, table.deletes, "deduct").estimate[0]
    if not expected:
        left, expected = np.ones(len(left)), count_live_rows(table.groups, table.deletes, "positions").estimate[0]
    equality = np.clip(1.0 - left * live / max(expected, 1.0), 0.0, 1.0)
    return replace(
        deletes, equality=equality, equality_assumes="equality deletes leave as many rows as sketches have counted"
    )


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The groups that partition values leave, and what these say of each leaf."""

    question: Question
    evidence: GroupedEvidence
    """All groups."""
    groups: GroupEvidence
    leaves: dict[Leaf, LeafPartitions]
    places: Longs
    """Which of all groups they are."""
    deletes: DeleteShares


def keep_by_partition(question: Question, evidence: GroupedEvidence) -> KeptGroups:
    """Return the groups that may hold matching rows, by their partition values alone."""
    count = len(evidence.groups.row_counts)
    schema = question.row_filter.schema
    leaves = {leaf: judge_groups(leaf, evidence, schema) for leaf in question.leaves}
    kept = np.flatnonzero(keep_groups(question.predicate, leaves, count))
    taken = {leaf: found.take(kept) for leaf, found in leaves.items()}
    return KeptGroups(question, evidence, evidence.groups.take(kept), taken, kept, evidence.deletes.take(kept))


def judge_groups(leaf: Leaf, evidence: GroupedEvidence, schema: IcebergSchema) -> LeafPartitions:
    """Say what partition values say of a predicate in all groups."""
    column, count = evidence.groups.columns.get(leaf.field_id), len(evidence.groups.row_counts)
    return judge_leaf(leaf, evidence.by_spec, count, schema, None if column is None else column.metrics)


def count_values(question: Question, evidence: GroupedEvidence, kept: int) -> int:
    """Count the statistics that a source reads: partition values of all groups, metrics of the columns of some."""
    filtered = {leaf.field_id for leaf in question.leaves}
    nan_columns = {leaf.field_id for leaf in question.leaves if leaf.type in ("float", "double")}
    partition_values = sum(
        len(found.groups)
        for found in evidence.by_spec
        for field in found.spec.fields
        if field.source_id in filtered and field.field_id in found.metrics
    )
    sizes = 1 if question.columns is None else len(question.columns)
    return 2 * partition_values + kept * (1 + sizes + 3 * len(filtered) + len(nan_columns))


@dataclass(frozen=True, slots=True)
class Basis:
    """What an estimate and its bounds rest on, and what they took."""

    assumes: str
    bound: str
    values_read: int
    bytes_read: int
    notes: tuple[str, ...] = ()
    """What a reader must know of the evidence: its age."""
    rows: RowCounts | None = None
    """What selectivities are shares of, the bounds of `most`; None: all records of data files."""


def build_source_estimate(
    source: str,
    question: Question,
    evidence: GroupedEvidence | KeptGroups,
    selectivity: Selectivity,
    basis: Basis,
) -> SourceEstimate:
    """Add up a selectivity over its groups.

    Parameters
    ----------
    source : str
        The source's name.
    question : Question
        The filter, the projected columns, and how deletes count.
    evidence : GroupedEvidence or KeptGroups
        Groups that a scan cannot skip by partition, with the projected columns' sizes, and their deletes.
    selectivity : Selectivity
        Of the filter in each group.
    basis : Basis
        What it rests on.
    """
    groups, deletes, columns, how_deletes = evidence.groups, evidence.deletes, question.columns, question.deletes
    counts = {how: count_live_rows(groups, deletes, how).estimate for how in DELETES}
    if basis.rows is not None:
        counts[how_deletes] = basis.rows.estimate
        if how_deletes != "ignore" and not deletes.has_equality.any():
            counts["positions"] = counts["deduct"] = basis.rows.estimate
    totals = {how: _known_sum(count * selectivity.estimate) for how, count in counts.items()}
    sizes = groups.size_bytes if columns is None else _projected(groups, columns)
    if basis.rows is None:
        lower, upper = _bounds(groups.row_counts, selectivity, deletes, how_deletes)
    else:
        # Shares of predicates know of deleted rows; a filter without any is met by all live rows.
        least = basis.rows.most if question.leaves else basis.rows.least
        lower, upper = float((least * selectivity.lower).sum()), float((basis.rows.most * selectivity.upper).sum())
    lower, upper = round_bounds(lower, upper)
    rows = totals[how_deletes]
    if rows is not None:
        totals[how_deletes] = rows = min(max(rows, lower), upper)
    assumes = [basis.assumes, *basis.notes]
    is_counted = basis.rows is not None and np.array_equal(basis.rows.least, basis.rows.most)
    if how_deletes != "ignore" and deletes.positions.any() and not is_counted:
        assumes.append(deletes.positions_assumes)
    if how_deletes == "deduct" and deletes.has_equality.any() and not is_counted:
        assumes.append(deletes.equality_assumes)
    unknown_sizes = columns is not None and rows is not None and bool(np.isnan(sizes).any())
    reasons = (*selectivity.reasons, *basis.notes) if selectivity.reasons else ()
    reason = "; ".join(reasons) or ("sizes of projected columns are unknown" if unknown_sizes else "")
    shares = counts[how_deletes] / np.maximum(groups.row_counts, 1.0)
    return SourceEstimate(
        source=source,
        rows=rows,
        rows_lower=lower,
        rows_upper=upper,
        bound=basis.bound,
        bytes=_known_sum(sizes * selectivity.estimate * shares),
        scan_bytes=_known_sum(np.where(selectivity.upper > 0.0, sizes, 0.0)),
        rows_deletes_ignored=totals["ignore"],
        rows_positions_deducted=totals["positions"],
        rows_deletes_deducted=totals["deduct"],
        assumes="; ".join(filter(None, assumes)),
        reason=reason,
        values_read=basis.values_read,
        bytes_read=basis.bytes_read,
    )


def round_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return the whole numbers of rows between two bounds, which floats may miss by their own rounding.

    Examples
    --------
    >>> round_bounds(88.29, 110.7), round_bounds(30.000000001, 29.999999999)
    ((89.0, 110.0), (30.0, 30.0))
    """
    slack = 1e-6 + 1e-14 * upper
    low, high = float(math.ceil(lower - slack)), float(math.floor(upper + slack))
    return min(low, high), high


def _projected(groups: GroupEvidence, columns: Sequence[int]) -> Floats:
    sizes = np.zeros(len(groups.row_counts))
    for field_id in columns:
        column = groups.columns.get(field_id)
        sizes = sizes + (np.nan if column is None else column.size_bytes)
    return sizes


def _bounds(rows: Floats, selectivity: Selectivity, deletes: DeleteShares, how: str) -> tuple[float, float]:
    lower, upper = rows * selectivity.lower, rows * selectivity.upper
    if how == "ignore":
        return float(lower.sum()), float(upper.sum())
    # Deleted rows may be matching ones, or none of them; a delete may also name a row that is gone already.
    most = float(np.minimum(upper, rows - deletes.least_own).sum())
    if how == "deduct":
        lower = np.where(deletes.has_equality, 0.0, lower)
    return max(0.0, float(np.maximum(lower - deletes.most_own, 0.0).sum()) - deletes.most_others), most


def _known_sum(values: Floats) -> float | None:
    total = float(values.sum())
    return None if math.isnan(total) else total


def estimate_kept(
    source: str,
    kept: KeptGroups,
    estimate_leaf: Callable[[Leaf], Selectivity],
    estimate_together: Callable[[Sequence[Leaf]], Sequence[LeafGroup]] | None = None,
    *,
    assumes: str,
    notes: Sequence[str] = (),
) -> SourceEstimate:
    """Estimate the groups that partition values leave, with bounds that hold for certain.

    Parameters
    ----------
    source : str
        The source's name.
    kept : KeptGroups
        The groups.
    estimate_leaf : callable
        Gives the selectivity of a predicate in each.
    estimate_together : callable, optional
        Gives the selectivity of some predicates of an AND together, as for `combine_leaves`.
    assumes : str
        What the estimate rests on.
    notes : sequence of str
        What a reader must know of the evidence, once each predicate has been estimated.
    """
    question, evidence, count = kept.question, kept.evidence, len(kept.places)
    bound = _HARD_BOUND.format(unit=_each(kept.groups.unit))
    selectivity = combine_leaves(question.predicate, count, estimate_leaf, estimate_together)
    said = tuple(dict.fromkeys(notes))
    basis = Basis(assumes, bound, count_values(question, evidence, count), evidence.bytes_read, said)
    return build_source_estimate(source, question, kept, selectivity, basis)


def _each(unit: str) -> str:
    return "the table" if unit == "table" else f"each {unit}"


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

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        return apply_partitions(leaf, estimate_uniform(leaf, kept.groups), kept.leaves[leaf])

    unit = _each(evidence.groups.unit)
    assumes = f"values spread evenly between the bounds of {unit}, columns independent within it"
    return estimate_kept(source, kept, estimate_leaf, assumes=assumes)


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
    together = kept.groups.roll_up()

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        one, ranges = estimate_uniform(leaf, together), kept.leaves[leaf]
        # So the proposal: a predicate that drops groups holds for all rows of those that are left.
        holds = np.zeros(len(ranges.may), np.bool_) if double_filtering else ranges.is_used
        nothing, every = np.zeros(len(ranges.may)), np.ones(len(ranges.may))
        spread = Selectivity(np.where(holds, 1.0, one.estimate), nothing, every, one.reasons)
        return spread if double_filtering else apply_partitions(leaf, spread, ranges)

    again = "applied again to the rest (double filtering)" if double_filtering else "not applied again"
    assumes = (
        f"partition filters drop {evidence.groups.unit}s and are {again}; "
        "values spread evenly between the bounds of the rest together; columns independent"
    )
    found = estimate_kept(source, kept, estimate_leaf, assumes=assumes)
    if not len(kept.places):
        return found
    # What holds for the groups together says nothing of one of them, so that these bounds are apart.
    first = np.zeros(1, np.int64)
    whole = replace(kept, groups=together, places=kept.places[first], deletes=kept.deletes.take(first))

    def prove_leaf(leaf: Leaf) -> Selectivity:
        is_rough = np.array([kept.leaves[leaf].is_rough.any()])
        return loosen(estimate_uniform(leaf, together), is_rough)

    proven = estimate_kept(source, whole, prove_leaf, assumes=assumes)
    return keep_within(found, (found, proven))


def apply_partitions(leaf: Leaf, uniform: Selectivity, ranges: LeafPartitions) -> Selectivity:
    """Correct what a group's statistics say of a predicate by what its partition values say."""
    estimate = uniform.estimate
    if leaf.values.points and not leaf.values.ranges:
        estimate = np.minimum(estimate / ranges.bucket_share, 1.0)
    estimate = np.where(ranges.must, 1.0, np.where(ranges.may, estimate, 0.0))
    lower = np.where(ranges.must, 1.0, uniform.lower)
    upper = np.where(ranges.must, 1.0, np.where(ranges.may, uniform.upper, 0.0))
    return loosen(Selectivity(estimate, lower, upper, uniform.reasons), ranges.is_rough)


def loosen(found: Selectivity, is_rough: Mask) -> Selectivity:
    """Return the same without the bounds of groups in which partition values mislead: `LeafPartitions.is_rough`."""
    lower, upper = np.where(is_rough, 0.0, found.lower), np.where(is_rough, 1.0, found.upper)
    return build_selectivity(found.estimate, lower, upper, found.reasons)
