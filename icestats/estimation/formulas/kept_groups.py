"""The groups of rows that partition values leave of a question, and what their selectivities add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icestats.estimation.formulas.group_evidence import GroupEvidence
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.selectivity import Selectivity
from icestats.estimation.formulas.source_estimates import DeleteShares, SourceEstimate
from icestats.iceberg.value_order import Floats, Longs
from icestats.plan.evaluation.partition_groups import SpecGroups
from icestats.plan.evaluation.partition_projection import LeafPartitions, judge_leaf, keep_groups
from icestats.plan.filters.value_sets import Leaf


@dataclass(frozen=True, slots=True)
class GroupedEvidence:
    """The groups that one kind of statistics is about, and what they took to read."""

    groups: GroupEvidence
    by_spec: Sequence[SpecGroups]
    deletes: DeleteShares
    bytes_read: int


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The groups that partition values leave, and what these say of each leaf."""

    groups: GroupEvidence
    leaves: dict[Leaf, LeafPartitions]
    places: Longs
    """Which of all groups they are."""
    deletes: DeleteShares


def keep_by_partition(question: Question, evidence: GroupedEvidence) -> KeptGroups:
    """Return the groups that may hold matching rows, by their partition values alone."""
    count = len(evidence.groups.row_counts)
    schema = question.row_filter.schema
    leaves = {leaf: judge_leaf(leaf, evidence.by_spec, count, schema) for leaf in question.leaves}
    kept = np.flatnonzero(keep_groups(question.predicate, leaves, count))
    taken = {leaf: found.take(kept) for leaf, found in leaves.items()}
    return KeptGroups(evidence.groups.take(kept), taken, kept, evidence.deletes.take(kept))


def count_values(question: Question, evidence: GroupedEvidence, kept: int) -> int:
    """Count the statistics that a source reads: partition values of all groups, figures of the columns of some."""
    filtered = {leaf.field_id for leaf in question.leaves}
    nan_columns = {leaf.field_id for leaf in question.leaves if leaf.type in ("float", "double")}
    partition_values = sum(
        len(found.groups) for found in evidence.by_spec for field in found.spec.fields if field.source_id in filtered
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
    of_live_rows: bool = False
    """Whether selectivities are shares of the rows that deletes leave, as those of sketches are."""


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
    assumes = basis.assumes
    kept, equal = 1.0 - deletes.positions, 1.0 - deletes.equality
    shares = {"ignore": np.ones(len(kept)), "positions": kept, "deduct": kept * equal}
    matching = groups.row_counts * selectivity.estimate
    totals = {how: _known_sum(matching * share) for how, share in shares.items()}
    sizes = groups.size_bytes if columns is None else _projected(groups, columns)
    if basis.of_live_rows:
        live = groups.row_counts * shares[how_deletes]
        lower, upper = float((live * selectivity.lower).sum()), float((live * selectivity.upper).sum())
    else:
        lower, upper = _bounds(groups, selectivity, deletes, how_deletes)
    said = (
        (deletes.positions, "ignore", deletes.positions_assumes),
        (deletes.equality, "positions", deletes.equality_assumes),
    )
    for shares_of, without, text in said:
        if shares_of.any() and text and how_deletes not in ("ignore", without):
            assumes = f"{assumes}; {text}"
    unknown_sizes = columns is not None and totals[how_deletes] is not None and bool(np.isnan(sizes).any())
    reason = "; ".join(selectivity.reasons) or ("sizes of projected columns are unknown" if unknown_sizes else "")
    return SourceEstimate(
        source=source,
        rows=totals[how_deletes],
        rows_lower=round(lower, 6),
        rows_upper=round(upper, 6),
        bound=basis.bound,
        bytes=_known_sum(sizes * selectivity.estimate * shares[how_deletes]),
        scan_bytes=_known_sum(np.where(selectivity.upper > 0.0, sizes, 0.0)),
        rows_deletes_ignored=totals["ignore"],
        rows_positions_deducted=totals["positions"],
        rows_deletes_deducted=totals["deduct"],
        assumes=assumes,
        reason=reason,
        values_read=basis.values_read,
        bytes_read=basis.bytes_read,
    )


def _projected(groups: GroupEvidence, columns: Sequence[int]) -> Floats:
    sizes = np.zeros(len(groups.row_counts))
    for field_id in columns:
        column = groups.columns.get(field_id)
        sizes = sizes + (np.nan if column is None else column.size_bytes)
    return sizes


def _bounds(groups: GroupEvidence, selectivity: Selectivity, deletes: DeleteShares, how: str) -> tuple[float, float]:
    rows = groups.row_counts
    lower, upper = float((rows * selectivity.lower).sum()), float((rows * selectivity.upper).sum())
    if how == "ignore":
        return lower, upper
    # Deleted rows may be matching ones, or none of them; a delete may also name a row that is gone already.
    if deletes.most_own is not None and deletes.least_own is not None:
        lower = float(np.maximum(rows * selectivity.lower - deletes.most_own, 0.0).sum())
        upper = float(np.minimum(rows * selectivity.upper, rows - deletes.least_own).sum())
    lower = max(0.0, lower - deletes.most_positions)
    return (0.0 if how == "deduct" and deletes.equality.any() else lower), upper


def _known_sum(values: Floats) -> float | None:
    total = float(values.sum())
    return None if math.isnan(total) else total
