"""Predicates projected to partition fields, inclusively and strictly.

Source: Iceberg spec, "Partition Transforms" and "Scan Planning".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from icestats.metadata import PartitionField
from icestats.plan.interval_tests import close
from icestats.plan.value_predicates import Leaf
from icestats.plan.value_sets import Interval, above, below, is_discrete
from icestats.stats.histogram import item_value

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema


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
            return None, []
        values = [transform(point.low[1]) for point in leaf.values.points]
        return [Interval(below(value), above(value)) for value in values], []
    if is_discrete(leaf.type):
        closed = [close(interval) for interval in intervals]
        inclusive = [_inclusive_whole(i, transform) for i in closed]
        strict = [_strict_whole(i, transform) for i in closed]
        if field.transform in _TIMES:
            return [_before_1970(i) for i in inclusive], [_since_1970(i) for i in strict]
        return inclusive, strict
    return [_inclusive_text(i, transform) for i in intervals], [_strict_text(i, transform) for i in intervals]


_TIMES = frozenset({"year", "month", "day", "hour"})


def _before_1970(interval: Interval) -> Interval:
    """Early writers put times before 1970 one year, month, day or hour too late (spec, "Partition Transforms")."""
    high = interval.high
    return Interval(interval.low, above(high[1] + 1) if len(high) == 3 and high[1] < 0 else high)


def _since_1970(interval: Interval) -> Interval:
    return Interval(max(interval.low, above(0)), interval.high) if interval.low < below(1) else interval


def _transform(leaf: Leaf, field: PartitionField, schema: IcebergSchema) -> Callable[[Any], Any]:
    from pyiceberg.transforms import parse_transform

    width = re.fullmatch(r"truncate\[(\d+)\]", field.transform)
    if width is not None:
        length = int(width[1])
        return lambda value: value - value % length if isinstance(value, int) else value[:length]
    apply = parse_transform(field.transform).transform(schema.find_field(leaf.field_id).field_type)
    is_decimal = leaf.type.startswith("decimal")
    return lambda value: apply(item_value(leaf.type, value) if is_decimal else value)


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


def _inclusive_text(interval: Interval, transform: Callable[[Any], Any]) -> Interval:
    low, high = interval.low, interval.high
    low = below(transform(low[1])) if len(low) == 3 else low
    if len(high) == 3:
        last = transform(high[1])
        high = below(last) if high[2] == 0 and last == high[1] else above(last)
    return Interval(low, high)


def _strict_text(interval: Interval, transform: Callable[[Any], Any]) -> Interval:
    low, high = interval.low, interval.high
    if len(low) == 3:
        first = transform(low[1])
        low = below(first) if low[2] == 0 and first == low[1] else above(first)
    return Interval(low, below(transform(high[1])) if len(high) == 3 else high)
