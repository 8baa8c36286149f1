"""Which partitions a row filter selects: with every row, with none, or with some that their values cannot tell apart.

Source: Iceberg spec, "Partition Transforms". A null is selected by nothing but `is null`, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.iceberg.value_order import Mask
from icestats.plan.evaluation.partition_groups import SpecGroups, group_keys
from icestats.plan.evaluation.partition_projection import judge_leaf
from icestats.plan.filters.predicates import Condition, Constant, Predicate
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.values.value_predicates import Leaf, build_tree
from icestats.stats.partition_sketches import PartitionEntry

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The partitions that a filter selects."""

    whole: tuple[PartitionEntry, ...]
    """Every row of them."""
    partial: tuple[PartitionEntry, ...]
    """Some of their rows, or none: their values do not tell."""


def select_partitions(
    row_filter: RowFilter, specs: Mapping[int, PartitionSpec], schema: Schema, partitions: Sequence[PartitionEntry]
) -> PartitionSelection:
    """Return which partitions a row filter selects.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    schema : Schema
        The schema that the snapshot is read with.
    partitions : sequence of PartitionEntry
        The partitions to choose from.

    Notes
    -----
    Never wrong, rather undecided: a partition is `whole` or left out only where its values prove it. NaN is undecided
    (engines order it differently), and so are times before 1970, which early writers rounded the wrong way.
    """
    by_spec = group_keys([entry.key for entry in partitions], specs, schema)
    may, must = _judge(row_filter.without_nulls, _Partitions(len(partitions), by_spec, row_filter.schema))
    return PartitionSelection(
        tuple(partitions[i] for i in np.flatnonzero(must).tolist()),
        tuple(partitions[i] for i in np.flatnonzero(may & ~must).tolist()),
    )


def describe_partition_fields(specs: Mapping[int, PartitionSpec], schema: Schema) -> str:
    """Return what a filter can choose partitions by, for messages.

    Examples
    --------
    >>> from icestats.iceberg.metadata import Field, PartitionField, PartitionSpec, Schema
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True),))
    >>> describe_partition_fields({0: PartitionSpec(0, (PartitionField(1000, 1, "at_day", "day"),))}, schema)
    'day of at'
    """
    texts = []
    for spec in specs.values():
        for field in spec.fields:
            column = schema.get(field.source_id)
            if column is not None and field.transform != "void":
                texts.append(column.name if field.transform == "identity" else f"{field.transform} of {column.name}")
    return ", ".join(dict.fromkeys(texts)) or "nothing"


@dataclass(frozen=True, slots=True)
class _Partitions:
    """The partitions' values."""

    count: int
    by_spec: Sequence[SpecGroups]
    schema: IcebergSchema


def _judge(condition: Condition, partitions: _Partitions) -> tuple[Mask, Mask]:
    """Say of each partition whether rows may be selected, and whether every one is."""
    if isinstance(condition, Constant):
        holds = np.full(partitions.count, condition.holds)
        return holds, holds
    if isinstance(condition, Predicate):
        return _judge_predicate(condition, partitions)
    mays, musts = zip(*(_judge(child, partitions) for child in condition.children), strict=True)
    combine = np.logical_and if condition.operator == "and" else np.logical_or
    return reduce(combine, mays), reduce(combine, musts)


def _judge_predicate(predicate: Predicate, partitions: _Partitions) -> tuple[Mask, Mask]:
    leaf = build_tree(predicate)
    if not isinstance(leaf, Leaf):
        raise TypeError(f"{predicate} is no predicate on a column")
    found = judge_leaf(leaf, partitions.by_spec, partitions.count, partitions.schema)
    nan = _find_nan(predicate.field_id, partitions)
    if predicate.operator.startswith("is "):
        return found.may, found.must | (nan & leaf.values.has_nan)
    return found.may | nan, found.must & ~nan


def _find_nan(field_id: int, partitions: _Partitions) -> Mask:
    nan = np.zeros(partitions.count, np.bool_)
    for found in partitions.by_spec:
        for field in found.spec.fields:
            known = found.metrics.get(field.field_id)
            if field.source_id == field_id and field.transform == "identity" and known is not None:
                nan[found.groups] |= known.may_be_nan
    return nan
