"""A row filter as a question to groups of rows, and the groups that partition values leave of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from icestats.estimation.formulas.group_evidence import Groups
from icestats.estimation.formulas.source_estimates import DeleteShares
from icestats.plan.sets.partition_ranges import LeafRanges, Longs, SpecRanges, explain_leaf, keep_groups
from icestats.plan.sets.value_predicates import Leaf, Tree, list_leaves

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema


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

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The columns of the filter, then the projected ones."""
        filtered = (leaf.field_id for leaf in list_leaves(self.predicate))
        return tuple(dict.fromkeys((*filtered, *(self.columns or ()))))


@dataclass(frozen=True, slots=True)
class GroupedEvidence:
    """The groups that one kind of statistics is about, and what they took to read."""

    groups: Groups
    ranges: Sequence[SpecRanges]
    deletes: DeleteShares
    bytes_read: int


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The groups that partition values leave, and what these say of each leaf."""

    groups: Groups
    leaves: dict[Leaf, LeafRanges]
    places: Longs
    """Which of all groups they are."""
    deletes: DeleteShares


def keep_by_partition(question: Question, evidence: GroupedEvidence) -> KeptGroups:
    """Return the groups that may hold matching rows, by their partition values alone."""
    count = len(evidence.groups.row_counts)
    leaves = {
        leaf: explain_leaf(leaf, evidence.ranges, count, question.schema) for leaf in list_leaves(question.predicate)
    }
    kept = np.flatnonzero(keep_groups(question.predicate, leaves, count))
    taken = {
        leaf: LeafRanges(r.may[kept], r.must[kept], r.is_used[kept], r.bucket_share[kept]) for leaf, r in leaves.items()
    }
    return KeptGroups(evidence.groups.take(kept), taken, kept, evidence.deletes.take(kept))


def count_values(question: Question, evidence: GroupedEvidence, kept: int) -> int:
    """Count the statistics that a source reads: partition values of all groups, figures of the columns of some."""
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
