"""What predicates on columns say of groups by their partition values, projected inclusively and strictly.

Groups are selected with every row, with none, or with some that their values cannot tell apart.
Source: Iceberg spec, "Partition Transforms" and "Scan Planning".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from icestats.iceberg.filters.predicates import Condition, Constant, Predicate
from icestats.iceberg.filters.value_sets import (
    BOTTOM,
    NUMBERS,
    TOP,
    All,
    Cut,
    Interval,
    Leaf,
    Tree,
    above,
    below,
    build_leaf,
    build_set,
    close,
    is_discrete,
)
from icestats.iceberg.metadata import PartitionField, PartitionSpec, Schema, split_transform
from icestats.iceberg.types import LEAST_WRAPPED_HOUR, MICROS_AN_HOUR
from icestats.iceberg.value_order import Floats, Longs, Mask
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.snapshot.evaluation.evaluator import may_match, must_match
from icestats.snapshot.evaluation.partition_groups import SpecGroups, group_keys
from icestats.stats.kll_items import item_value
from icestats.stats.partition_sketches import PartitionEntry
from icestats.stats.table_statistics import PartitionKey

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema

    from icestats.iceberg.filters.row_filter import RowFilter

_KNOWN = re.compile(r"identity|year|month|day|hour|(bucket|truncate)\[\d+\]")


@dataclass(frozen=True, slots=True)
class LeafPartitions:
    """What a predicate on a column says of each group by its partition values."""

    may: Mask
    """Readers do not skip the group by this predicate."""
    must: Mask
    """Readers take all rows for matching."""
    is_used: Mask
    """The group's spec has an order-preserving field of the column: the predicate drops groups."""
    bucket_share: Floats
    """Share of the column's buckets that the group spans; 1.0 where it is not bucketed."""
    is_rough: Mask
    """Readers may find other rows than the partition value says, and not all the same: of `SpecGroups.imported`."""

    def take(self, groups: Longs) -> LeafPartitions:
        """Return some groups."""
        return LeafPartitions(
            self.may[groups],
            self.must[groups],
            self.is_used[groups],
            self.bucket_share[groups],
            self.is_rough[groups],
        )


def judge_leaf(
    leaf: Leaf, by_spec: Sequence[SpecGroups], count: int, schema: IcebergSchema, values: ColumnMetrics | None = None
) -> LeafPartitions:
    """Judge each group by a predicate.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    by_spec : sequence of SpecGroups
        The groups' partition values.
    count : int
        How many groups there are.
    schema : pyiceberg.schema.Schema
        Transforms need the type of the column.
    values : ColumnMetrics, optional
        Of the column in each group by data files' statistics; None: unknown.
    """
    may, must = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    is_used, bucket_share = np.zeros(count, np.bool_), np.ones(count)
    is_rough = must.copy()
    for one in by_spec:
        own = one.groups
        for field in one.spec.fields:
            known = one.metrics.get(field.field_id)
            if field.source_id != leaf.field_id or _KNOWN.fullmatch(field.transform) is None:
                continue
            if known is None:
                is_rough[own] |= one.imported
                continue
            null, nan = leaf.values.has_null, leaf.values.has_nan
            inclusive, strict = (
                build_set(one_way, has_null=null, has_nan=nan) for one_way in _project(leaf, field, schema)
            )
            own_may, own_must = may_match(inclusive, known), must_match(strict, known)
            may[own] &= own_may
            must[own] |= own_must
            settles_nulls = (own_must if null else ~own_may) & ~known.may_be_null
            is_rough[own] |= (_may_have_nulls(one, field, values) & ~settles_nulls) | _contradicts(one, field, values)
            buckets = _bucket_count(field)
            if buckets is None:
                is_used[own] = True
            else:
                spanned = np.where(known.has_bounds, known.upper.values - known.lower.values + 1.0, buckets) / buckets
                bucket_share[own] = np.minimum(bucket_share[own], spanned)
    return LeafPartitions(may, must, is_used, bucket_share, is_rough)


def may_mislead(one: SpecGroups, field: PartitionField, values: ColumnMetrics | None) -> Mask:
    """Say of some groups whether rows may have other values than a partition field says, as of `SpecGroups.imported`.

    Parameters
    ----------
    one : SpecGroups
        The groups.
    field : PartitionField
        One of their spec.
    values : ColumnMetrics or None
        Of its column in each of all groups by data files' statistics; None: unknown.
    """
    if field.field_id not in one.metrics:
        return np.full(len(one.groups), one.imported)
    return _may_have_nulls(one, field, values) | _contradicts(one, field, values)


def _may_have_nulls(one: SpecGroups, field: PartitionField, values: ColumnMetrics | None) -> Mask:
    known = one.metrics[field.field_id]
    nulls = np.full(len(one.groups), MISSING) if values is None else values.null_counts[one.groups]
    # Columns that are not in the files themselves, which `identity` allows, have no nulls beside the partition's value.
    beside = nulls > 0 if field.transform == "identity" else nulls != 0
    return np.asarray(one.imported & (known.may_be_null | beside))


def _contradicts(one: SpecGroups, field: PartitionField, values: ColumnMetrics | None) -> Mask:
    """Say of which groups the files may have other values than their folders, which `identity` lets some engines read.

    Bounds of long text are cut, and leave that open.
    """
    if not one.imported or field.transform != "identity" or values is None:
        return np.zeros(len(one.groups), np.bool_)
    known, found = one.metrics[field.field_id], values.take(one.groups)
    is_within = known.lower.is_at_most(found.lower) & found.upper.is_at_most(known.upper)
    # Of files without the column, and of others that contradict their folder, a roll-up knows nothing together.
    partly = False if found.partly_known is None else found.partly_known
    return np.asarray(known.has_bounds & ((found.has_bounds & ~is_within) | partly))


def keep_groups(predicate: Tree, leaves: Mapping[Leaf, LeafPartitions], count: int) -> Mask:
    """Say which groups may hold matching rows, by their partition values alone."""
    if isinstance(predicate, Leaf):
        return leaves[predicate].may | leaves[predicate].is_rough
    parts = [keep_groups(part, leaves, count) for part in predicate.parts]
    if isinstance(predicate, All):
        return reduce(np.logical_and, parts, np.ones(count, np.bool_))
    return reduce(np.logical_or, parts, np.zeros(count, np.bool_))


def _bucket_count(field: PartitionField) -> int | None:
    """Return how many buckets a partition field has; None where it is no bucket."""
    word, number = split_transform(field.transform)
    return number if word == "bucket" else None


def _project(leaf: Leaf, field: PartitionField, schema: IcebergSchema) -> tuple[Sequence[Interval], Sequence[Interval]]:
    """Return the partition values that matching rows may have, and those that only matching rows have."""
    intervals = leaf.values.intervals
    if field.transform == "identity":
        same = [close(i) for i in intervals] if is_discrete(leaf.type) else intervals
        return same, same
    transform = _transform(leaf, field, schema)
    if _bucket_count(field) is not None:
        if leaf.values.ranges:
            # Null is in a bucket of its own: what holds for all values holds for each of the others.
            return NUMBERS.intervals, [i for i in intervals if (i.low, i.high) == (BOTTOM, TOP)]
        values = [transform(point.low[1]) for point in leaf.values.points]
        return [_one(value) for value in values], []
    if is_discrete(leaf.type):
        closed = [close(interval) for interval in intervals]
        inclusive = [_inclusive_whole(i, transform) for i in closed]
        strict = [_strict_whole(i, transform) for i in closed]
        if field.transform in _TIMES and (field.transform, leaf.type) != ("day", "date"):
            inclusive, strict = [_earlier_too(i) for i in inclusive], [_without_earlier(i) for i in strict]
        return _project_wrapped(leaf, field, inclusive, strict)
    width = _truncate_width(field)
    return [_inclusive_text(i, width) for i in intervals], [_strict_text(i, width) for i in intervals]


_TIMES = frozenset({"year", "month", "day", "hour"})
_CALENDAR = {"year": "datetime64[Y]", "month": "datetime64[M]"}


def _earlier_too(interval: Interval) -> Interval:
    """Early writers put times before 1970 one year, month, day or hour too late (spec, "Partition Transforms")."""
    high = interval.high
    return Interval(interval.low, above(high[1] + 1) if len(high) == 3 and high[1] < 0 else high)


def _without_earlier(interval: Interval) -> Interval:
    # What is in 0 and below may be of the one before.
    low = close(interval).low
    return Interval(below(low[1] + 1) if len(low) == 3 and low[1] <= 0 else low, interval.high)


_BITS = {"int": (32,), "long": (32, 64)}
"""Of whole numbers as they may have been when rows were written: an int may be a long since."""


def _project_wrapped(
    leaf: Leaf, field: PartitionField, inclusive: list[Interval], strict: list[Interval]
) -> tuple[list[Interval], list[Interval]]:
    """Writers wrap partition values that their type cannot hold: such rows are in a partition at the other end."""
    for source, wrapped in _find_wrapped(leaf.type, field):
        if any(one.low < source.high and source.low < one.high for one in leaf.values.intervals):
            inclusive = [*inclusive, wrapped]
        strict = [
            part
            for one in strict
            for part in (
                Interval(one.low, min(one.high, wrapped.low)),
                Interval(max(one.low, wrapped.high), one.high),
            )
            if part.low < part.high
        ]
    return inclusive, strict


def _find_wrapped(kind: str, field: PartitionField) -> Iterator[tuple[Interval, Interval]]:
    """Yield the values of a column whose partition values are wrapped, and the partition values that they get."""
    if field.transform.startswith("truncate"):
        width = _truncate_width(field)
        for bits in _BITS.get(kind, ()):
            least = -(1 << (bits - 1))
            cut = least - least % width
            if cut < least:
                yield Interval(below(least), above(cut + width - 1)), _one(cut + (1 << bits))
    if field.transform == "hour" and kind in ("timestamp", "timestamptz"):
        most = 1 << 31
        yield Interval(below(most * MICROS_AN_HOUR), TOP), Interval(below(-most), below(-LEAST_WRAPPED_HOUR))
        yield Interval(BOTTOM, below(-most * MICROS_AN_HOUR)), Interval(below(LEAST_WRAPPED_HOUR), below(most))


def _one(value: int) -> Interval:
    return Interval(below(value), above(value))


def is_disputed(key: PartitionKey, spec: PartitionSpec) -> bool:
    """Say whether a partition may hold rows that other writers put into another one: times of early ones, wrapped ints.

    An int that was wrapped is cut to another number once it is a long.
    """
    transforms = {one.field_id: split_transform(one.transform) for one in spec.fields}
    for field_id, value in key.values:
        (word, width), number = transforms[field_id], int.from_bytes(value or b"", "little", signed=True)
        if value is not None and word in _TIMES and number <= 0:
            return True
        if value is not None and word == "truncate" and abs(abs(number) - (1 << 31)) <= width:
            return True
    return False


def _transform(leaf: Leaf, field: PartitionField, schema: IcebergSchema) -> Callable[[Any], Any]:
    from pyiceberg.transforms import parse_transform

    if field.transform.startswith("truncate"):
        width = _truncate_width(field)
        return lambda value: value - value % width
    if field.transform in _CALENDAR:
        unit, per_unit = "D" if leaf.type == "date" else "us", 1_000 if leaf.type.endswith("_ns") else 1
        # Python, and so PyIceberg, knows no day before the year 1 and after 9999.
        return lambda value: int(
            np.array(value // per_unit, f"datetime64[{unit}]").astype(_CALENDAR[field.transform]).astype(np.int64)
        )
    apply = parse_transform(field.transform).transform(schema.find_field(leaf.field_id).field_type)
    is_decimal = leaf.type.startswith("decimal")
    return lambda value: apply(item_value(leaf.type, value) if is_decimal else value)


def _truncate_width(field: PartitionField) -> int:
    return split_transform(field.transform)[1]


def _inclusive_whole(interval: Interval, transform: Callable[[Any], Any]) -> Interval:
    low, high = interval.low, interval.high
    low = below(transform(low[1])) if len(low) == 3 else low
    return Interval(low, above(transform(high[1])) if len(high) == 3 else high)


def _strict_whole(interval: Interval, transform: Callable[[Any], Any]) -> Interval:
    low, high = interval.low, interval.high
    if len(low) == 3:
        first = transform(low[1])
        low = below(first) if transform(low[1] - 1) != first else above(first)
    if len(high) == 3:
        last = transform(high[1])
        high = above(last) if transform(high[1] + 1) != last else below(last)
    return Interval(low, high)


def _inclusive_text(interval: Interval, width: int) -> Interval:
    low, high = interval.low, interval.high
    if not _is_uncut(low, width):
        low = below(low[1][:width])
    if not _is_uncut(high, width):
        last = high[1][:width]
        high = below(last) if high[2] == 0 and last == high[1] else above(last)
    return Interval(low, high)


def _strict_text(interval: Interval, width: int) -> Interval:
    low, high = interval.low, interval.high
    if not _is_uncut(low, width):
        first = low[1][:width]
        low = below(first) if low[2] == 0 and first == low[1] else above(first)
    return Interval(low, high if _is_uncut(high, width) else below(high[1][:width]))


def _is_uncut(cut: Cut, width: int) -> bool:
    """Whether the cut is at no value, or at one that is alone in its partition: only longer ones are cut to theirs."""
    return len(cut) == 1 or len(cut[1]) < width


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
    As of `judge_partitions`: a partition is `whole` or left out only where its values prove it.
    """
    by_spec = group_keys([entry.key for entry in partitions], specs, schema)
    may, must = judge_partitions(row_filter, by_spec, len(partitions))
    return PartitionSelection(
        tuple(partitions[i] for i in np.flatnonzero(must).tolist()),
        tuple(partitions[i] for i in np.flatnonzero(may & ~must).tolist()),
    )


def judge_partitions(row_filter: RowFilter, by_spec: Sequence[SpecGroups], count: int) -> tuple[Mask, Mask]:
    """Return of which partitions a row filter may select rows, and of which it selects every row.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    by_spec : sequence of SpecGroups
        The partitions' values.
    count : int
        How many partitions there are.

    Notes
    -----
    Never wrong, rather undecided: a partition has all its rows selected, or none, only where its values prove it. NaN
    is undecided (engines order it differently), and so are times before 1970, which early writers rounded the wrong
    way.
    """

    def judge(condition: Condition) -> tuple[Mask, Mask]:
        """Say of each partition whether rows may be selected, and whether every one is."""
        if isinstance(condition, Constant):
            holds = np.full(count, condition.holds)
            return holds, holds
        if isinstance(condition, Predicate):
            return judge_predicate(condition)
        mays, musts = zip(*map(judge, condition.children), strict=True)
        combine = np.logical_and if condition.operator == "and" else np.logical_or
        return reduce(combine, mays), reduce(combine, musts)

    def judge_predicate(predicate: Predicate) -> tuple[Mask, Mask]:
        leaf = build_leaf(predicate)
        found = judge_leaf(leaf, by_spec, count, row_filter.schema)
        nan = _find_nan(predicate.field_id, by_spec, count)
        if predicate.operator.startswith("is "):
            return found.may, found.must | (nan & leaf.values.has_nan)
        return found.may | nan, found.must & ~nan

    return judge(row_filter.condition)


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


def _find_nan(field_id: int, by_spec: Sequence[SpecGroups], count: int) -> Mask:
    nan = np.zeros(count, np.bool_)
    for found in by_spec:
        for field in found.spec.fields:
            known = found.metrics.get(field.field_id)
            if field.source_id == field_id and field.transform == "identity" and known is not None:
                nan[found.groups] |= known.may_be_nan
    return nan
