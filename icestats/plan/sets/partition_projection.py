"""Predicates projected to partition fields, inclusively and strictly.

Source: Iceberg spec, "Partition Transforms" and "Scan Planning".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from icestats.iceberg.metadata import PartitionField
from icestats.plan.sets.interval_tests import close
from icestats.plan.sets.value_predicates import Leaf
from icestats.plan.sets.value_sets import BOTTOM, TOP, Cut, Interval, above, below, is_discrete
from icestats.stats.kll_items import item_value

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema


_KNOWN = re.compile(r"identity|year|month|day|hour|(bucket|truncate)\[\d+\]")


def can_project(field: PartitionField) -> bool:
    """Whether the values of a partition field tell of its column's: not those of `void`, nor of a later spec."""
    return _KNOWN.fullmatch(field.transform) is not None


def bucket_count(field: PartitionField) -> int | None:
    """Return how many buckets a partition field has; None where it is no bucket."""
    match = re.fullmatch(r"bucket\[(\d+)\]", field.transform)
    return None if match is None else int(match[1])


def project_leaf(
    leaf: Leaf, field: PartitionField, schema: IcebergSchema
) -> tuple[list[Interval] | None, list[Interval]]:
    """Return the partition values that matching rows may have (None: any), and those that only matching rows have."""
    intervals = leaf.values.intervals
    if field.transform == "identity":
        same = [close(i) if is_discrete(leaf.type) else i for i in intervals]
        return same, same
    transform = _transform(leaf, field, schema)
    if bucket_count(field) is not None:
        if leaf.values.ranges:
            # Null is in a bucket of its own: what holds for all values holds for each of the others.
            return None, [i for i in intervals if (i.low, i.high) == (BOTTOM, TOP)]
        values = [transform(point.low[1]) for point in leaf.values.points]
        return [Interval(below(value), above(value)) for value in values], []
    if is_discrete(leaf.type):
        closed = [close(interval) for interval in intervals]
        inclusive = [_inclusive_whole(i, transform) for i in closed]
        strict = [_strict_whole(i, transform) for i in closed]
        if field.transform in _TIMES and (field.transform, leaf.type) != ("day", "date"):
            return [_earlier_too(i) for i in inclusive], [_without_earlier(i) for i in strict]
        return inclusive, strict
    width = _truncate_width(field)
    return [_inclusive_text(i, width) for i in intervals], [_strict_text(i, width) for i in intervals]


_TIMES = frozenset({"year", "month", "day", "hour"})


def _earlier_too(interval: Interval) -> Interval:
    """Early writers put times before 1970 one year, month, day or hour too late (spec, "Partition Transforms")."""
    high = interval.high
    return Interval(interval.low, above(high[1] + 1) if len(high) == 3 and high[1] < 0 else high)


def _without_earlier(interval: Interval) -> Interval:
    # What is in 0 and below may be of the one before.
    low = close(interval).low
    return Interval(below(low[1] + 1) if len(low) == 3 and low[1] <= 0 else low, interval.high)


def _transform(leaf: Leaf, field: PartitionField, schema: IcebergSchema) -> Callable[[Any], Any]:
    from pyiceberg.transforms import parse_transform

    if field.transform.startswith("truncate"):
        width = _truncate_width(field)
        return lambda value: value - value % width
    apply = parse_transform(field.transform).transform(schema.find_field(leaf.field_id).field_type)
    is_decimal = leaf.type.startswith("decimal")
    return lambda value: apply(item_value(leaf.type, value) if is_decimal else value)


def _truncate_width(field: PartitionField) -> int:
    return int(field.transform.removeprefix("truncate[").removesuffix("]"))


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
