"""Which partitions a row filter selects: with every row, with none, or with some that their values cannot tell apart.

Source: Iceberg spec, "Partition Transforms". A null is selected by nothing but `is null`, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.plan.filters.filter_parser import parse_row_filter
from icestats.plan.filters.predicates import Condition, Constant, Predicate, build_condition
from icestats.plan.filters.row_filter import read_filter_schema
from icestats.plan.sets.interval_tests import Booleans
from icestats.plan.sets.partition_ranges import SpecRanges, build_key_ranges, explain_leaf
from icestats.plan.sets.value_predicates import Leaf, build_tree
from icestats.stats.partition_sketches import PartitionEntry

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The partitions that a filter selects."""

    whole: tuple[PartitionEntry, ...]
    """Every row of them."""
    partial: tuple[PartitionEntry, ...]
    """Some of their rows, or none: their values do not tell."""


def select_partitions(
    source: Source, schema: Schema, row_filter: str | BooleanExpression, partitions: Sequence[PartitionEntry]
) -> PartitionSelection:
    """Return which partitions a row filter selects.

    Parameters
    ----------
    source : Source
        The table.
    schema : Schema
        The schema that the snapshot is read with.
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter.
    partitions : sequence of PartitionEntry
        The partitions to choose from.

    Raises
    ------
    FilterError
        The filter cannot be read, or does not fit the schema.

    Notes
    -----
    Never wrong, rather undecided: a partition is `whole` or left out only where its values prove it. NaN is undecided
    (engines order it differently), and so are times before 1970, which early writers rounded the wrong way.
    """
    bound = read_filter_schema(source, schema.schema_id).schema
    condition = build_condition(_exclude_null(parse_row_filter(row_filter, bound)), bound)
    ranges = build_key_ranges([entry.key for entry in partitions], source.metadata.specs, schema)
    may, must = _judge(condition, _Partitions(len(partitions), ranges, bound))
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


def _exclude_null(expression: BooleanExpression) -> BooleanExpression:
    """A scan with PyIceberg returns nulls for `not in`; in SQL no comparison with null is true."""
    from pyiceberg import expressions as e
    from pyiceberg.expressions.visitors import rewrite_not

    expression = rewrite_not(expression)
    if isinstance(expression, e.And | e.Or):
        return type(expression)(_exclude_null(expression.left), _exclude_null(expression.right))
    if isinstance(expression, e.NotIn | e.NotEqualTo | e.NotStartsWith):
        return e.And(expression, e.NotNull(term=expression.term))
    return expression


@dataclass(frozen=True, slots=True)
class _Partitions:
    """The partitions' values."""

    count: int
    ranges: Sequence[SpecRanges]
    schema: IcebergSchema


def _judge(condition: Condition, partitions: _Partitions) -> tuple[Booleans, Booleans]:
    """Say of each partition whether rows may be selected, and whether every one is."""
    if isinstance(condition, Constant):
        holds = np.full(partitions.count, condition.holds)
        return holds, holds
    if isinstance(condition, Predicate):
        return _judge_predicate(condition, partitions)
    mays, musts = zip(*(_judge(child, partitions) for child in condition.children), strict=True)
    combine = np.logical_and if condition.operator == "and" else np.logical_or
    return reduce(combine, mays), reduce(combine, musts)


def _judge_predicate(predicate: Predicate, partitions: _Partitions) -> tuple[Booleans, Booleans]:
    leaf = build_tree(predicate)
    if not isinstance(leaf, Leaf):
        raise TypeError(f"{predicate} is no predicate on a column")
    found = explain_leaf(leaf, partitions.ranges, partitions.count, partitions.schema)
    nan = _find_nan(predicate.field_id, partitions)
    if predicate.operator.startswith("is "):
        return found.may, found.must | (nan & leaf.values.has_nan)
    return found.may | nan, found.must & ~nan


def _find_nan(field_id: int, partitions: _Partitions) -> Booleans:
    nan = np.zeros(partitions.count, np.bool_)
    for ranges in partitions.ranges:
        for field, known in zip(ranges.spec.fields, ranges.ranges, strict=True):
            if field.source_id == field_id and field.transform == "identity" and known is not None:
                nan[ranges.groups] |= known.may_be_nan
    return nan
