"""Estimates from a column's most common values: what is counted of each, and what is left for the others."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from icestats.estimation.formulas.selectivity import Selectivity, build_selectivity, build_unknown
from icestats.estimation.formulas.sketch_sources import Distribution, SketchedRows, share_between
from icestats.iceberg.filters.value_sets import (
    Cut,
    Interval,
    Leaf,
    ValueSet,
    above,
    below,
    build_item,
    build_prefix,
    close,
    encode_item,
    find_meeting,
    is_discrete,
)
from icestats.iceberg.types import decode_value
from icestats.stats.frequent_items import CAPACITY, VALUE_LENGTH, FrequentItem, FrequentValues, hash_stored
from icestats.stats.hashing import Hashes
from icestats.stats.kll import KllSketch
from icestats.stats.row_sample import SAMPLED_LENGTH, cut_value

_CHANCE = 4.0
"""Squares of the standard deviation that so many sampled rows may be off by chance."""


@dataclass(frozen=True)
class FrequentGroup:
    """A column's most common values, of a table or a partition, and what is known of the rest."""

    values: FrequentValues
    null_count: int
    nan_count: int
    ndv: float
    """Of the same rows, by Theta; NaN: unknown."""
    distribution: Distribution | None
    """Of the same column, for ranges."""
    size_bytes: int
    """As they are committed."""
    ends: tuple[Any, Any] | None
    """The smallest and the largest value of the rows that were counted, as `value_sets.build_item` has them."""

    @property
    def row_count(self) -> int:
        """Rows that were counted: values, nulls and NaN."""
        return self.values.value_count + self.null_count + self.nan_count

    @cached_property
    def by_value(self) -> dict[Any, FrequentItem]:
        """The items by their value, as `value_sets.build_item` has it; without those that were cut."""
        return {value: item for value, item in self._items() if not self.is_cut(value)}

    @cached_property
    def cut(self) -> list[tuple[Any, FrequentItem]]:
        """Items that may stand for longer values, with what these begin with."""
        return [(value, item) for value, item in self._items() if self.is_cut(value)]

    @cached_property
    def sampled(self) -> list[Any]:
        """The values of the sampled rows, as `value_sets.build_item` has them, None: null; empty: no sample is kept."""
        kind, sample = self.values.type, self.values.sample
        if sample is None:
            return []
        return [None if one is None else build_item(kind, decode_value(kind, one)) for one in sample.values]

    @cached_property
    def sampled_others(self) -> list[Any]:
        """Those of them that are not among the common values, in order; neither null nor NaN."""
        if self.values.sample is None:
            return []
        common = {cut_value(item.value, self.values.type) for item in self.values.items}
        pairs = zip(self.values.sample.values, self.sampled, strict=True)
        return sorted(one for stored, one in pairs if one is not None and one == one and stored not in common)

    @cached_property
    def samples_are_whole(self) -> bool:
        """Whether no value of the sampled rows may be the beginning of a longer one."""
        values = () if self.values.sample is None else self.values.sample.values
        # A text is cut between characters: of one of 4 bytes, 3 are cut off too.
        return all(one is None or len(one) < SAMPLED_LENGTH - 3 for one in values)

    @property
    def sample_key(self) -> tuple[int, int]:
        """What samples of the same rows have in common."""
        sample = self.values.sample
        return (0, 0) if sample is None else (sample.seed, sample.row_count)

    def _items(self) -> Iterator[tuple[Any, FrequentItem]]:
        for item in self.values.items:
            yield build_item(self.values.type, decode_value(self.values.type, item.value)), item

    def is_cut(self, value: Any) -> bool:
        """Return whether of a value, if it is there, the beginning alone may have been counted."""
        return self.values.is_cut and isinstance(value, str | bytes) and len(value) >= VALUE_LENGTH

    def count_possible(self, ranges: Sequence[Interval]) -> int | None:
        """Return how many values some ranges can hold, between the column's ends; None: many, or no one knows."""
        if self.ends is None or not is_discrete(self.values.type):
            return None
        least, most = self.ends
        closed = [close(one) for one in ranges]
        lows = [least if len(one.low) == 1 else max(least, one.low[1]) for one in closed]
        highs = [most if len(one.high) == 1 else min(most, one.high[1]) for one in closed]
        count = sum(max(high - low + 1, 0) for low, high in zip(lows, highs, strict=True))
        return count if count <= CAPACITY else None

    @property
    def rest(self) -> int:
        """Values that are not among the common ones, at most."""
        return self.values.value_count - sum(item.lower for item in self.values.items)

    @property
    def rows_of_another(self) -> float:
        """Rows that a value has which is not among the common ones, if it is there: an estimate; NaN: unknown."""
        if self.values.others_at_most == 0:
            return 0.0
        distinct = max(self.ndv - len(self.values.items), 1.0)
        return min(self.rest / distinct, float(self.values.others_at_most))

    @property
    def rows_of_long(self) -> float:
        """Rows that a value has whose beginning alone is kept: an estimate; NaN: unknown."""
        return self.unnamed / max(self.unnamed_distinct, 1.0)

    @property
    def unnamed(self) -> float:
        """Values that no item names: those that are not among the common ones, and those whose beginning alone is."""
        return self.rest + sum((item.lower + item.upper) / 2.0 for _, item in self.cut)

    @property
    def unnamed_distinct(self) -> float:
        """How many of them differ: an estimate; NaN: unknown."""
        return max(self.ndv - len(self.by_value), 0.0)

    def count_others(self, values: Sequence[Any]) -> tuple[float, int]:
        """Return how many rows some values have together, none of which is a common one: an estimate, and at most."""
        most = len(values) * self.values.others_at_most
        counters, distinct = self.values.others, self.ndv - len(self.values.items)
        hashes = hash_items([one[:VALUE_LENGTH] if self.is_cut(one) else one for one in values], self.values.type)
        if not values or counters is None or hashes is None:
            return len(values) * self.rows_of_another, most
        most = int(np.minimum(counters.at_most(hashes), self.values.others_at_most).sum())
        # What is asked for is there, where it may be.
        return float(np.clip(counters.estimate(hashes, distinct).sum(), min(most, 1), most)), most


@dataclass(frozen=True)
class FrequentColumn(FrequentGroup):
    """A column's most common values in the table, and what has changed since they were counted."""

    rows: SketchedRows
    """The live rows as they were counted, one group, and what has changed since."""


@dataclass(slots=True)
class _Matched:
    """What a set of values has of a column, in rows."""

    lower: int = 0
    upper: int = 0
    estimate: float = 0.0
    beside: int = 0
    """Rows of common values that are not in the set, at least."""
    in_ranges: int = 0
    """Common values in ranges of the set."""


def hash_items(values: Sequence[Any], type_text: str) -> Hashes | None:
    """Return the hashes of values as `value_sets.build_item` has them; None: the type does not have all of them."""
    try:
        found = [one if one is None else encode_item(type_text, one + 0 if one == 0 else one) for one in values]
        return hash_stored(found, type_text)
    except (OverflowError, ValueError):
        return None


def estimate_common(leaf: Leaf, found: FrequentGroup | None) -> Selectivity:
    """Estimate which share of the rows satisfies a predicate, by the rows of common values.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    found : FrequentGroup or None
        The column's; None: none are committed.

    Returns
    -------
    Selectivity
        One group. Bounds hold for certain, of the rows that were counted. A value that is not among the common ones
        is taken for one of the rest, which have as many rows as one another; a range for what its ranks and sampled
        rows say, within what its common values leave possible.
    """
    if found is None:
        committed = f"no frequent items of {leaf.column} are committed for this snapshot or an ancestor of it"
        return build_unknown(f"{leaf.text}: {committed}")
    if not found.row_count:
        return build_selectivity(np.zeros(1), np.zeros(1), np.zeros(1))
    values = leaf.values
    others = (found.null_count if values.has_null else 0) + (found.nan_count if values.has_nan else 0)
    estimate, least, most = (np.asarray([(part + others) / found.row_count]) for part in count_values_in(values, found))
    reason = f"{leaf.text}: no KLL sketch of {leaf.column}, and a range may hold other than common values"
    return build_selectivity(estimate, least, most, (reason,))


def count_values_in(values: ValueSet, found: FrequentGroup) -> tuple[float, float, float]:
    """Return how many values, neither null nor NaN, are in a set: estimated (NaN: unknown), at least, at most."""
    if not values.gaps:
        return _count(values, found)
    (rows, lower, upper), total = _count(ValueSet(values.gaps), found), found.values.value_count
    return total - rows, total - upper, total - lower


def _count(values: ValueSet, found: FrequentGroup) -> tuple[float, float, float]:
    matched = _match(values, found)
    points, ranges = values.points, values.ranges
    others, upper = found.values.others_at_most, float(found.values.value_count - matched.beside)
    width = found.count_possible(ranges) if ranges else 0
    common = found.by_value.keys() | {beginning for beginning, _ in found.cut}
    asked = (one.low[1] for one in points)
    left = [one for one in asked if (one[:VALUE_LENGTH] if found.is_cut(one) else one) not in common]
    of_points, most = found.count_others(left)
    in_ranges = math.inf if width is None else width - matched.in_ranges
    if in_ranges < math.inf:
        upper = min(upper, float(matched.upper + most + in_ranges * others))
    rows, middle = 0.0, matched.estimate
    if found.rest:
        rows = of_points + (in_ranges * found.rows_of_another if in_ranges else 0.0)
        if ranges and found.distribution is not None:
            rows = _weigh(values.intervals, found, found.distribution.sketch, middle, rows)
    rows = middle + rows if rows < math.inf else np.nan
    return float(np.clip(rows, matched.lower, upper)), float(matched.lower), upper


def _weigh(
    intervals: Sequence[Interval], found: FrequentGroup, sketch: KllSketch, common: float, expected: float
) -> float:
    """Return the values in intervals that are not common: what is expected, unless sampled rows contradict.

    Then, or where nothing is (infinite), it is the mean of what ranks and sampled rows say, by inverse variances.
    """
    closed = (close(one) if is_discrete(found.values.type) else one for one in intervals)
    parts = [share_between(one, sketch) for one in closed]
    ranked = max(sum(share for share, _ in parts) * found.values.value_count - common, 0.0)
    if not any(error for _, error in parts):
        return ranked
    sampled, cuts = found.sampled_others, (cut for one in intervals for cut in (one.low, one.high))
    if not sampled or any(map(_is_longer_than_sampled, cuts)):
        return expected if math.isfinite(expected) else ranked
    met = sum(bisect_left(sampled, one.high, key=below) - bisect_left(sampled, one.low, key=below) for one in intervals)
    known = len([one for one in found.sampled if one is not None and one == one])
    rest = min(float(found.rest), found.values.value_count * len(sampled) / known)
    chance = expected / rest * len(sampled)
    if (met - chance) ** 2 <= _CHANCE * chance < math.inf:
        return expected
    unseen, share = max(rest - len(sampled), 0.0), (met + 0.5) / (len(sampled) + 1.0)
    of_sample = unseen**2 * share * (1.0 - share) / len(sampled)
    # What is asked for is there: where none is met, one value.
    by_sample = met + unseen * share if met else max(1.0, found.rows_of_another)
    # A sketch tells no more ranks apart than it keeps values.
    of_ranks = (found.values.value_count / sketch.retained_count) ** 2
    weight = of_ranks / (of_ranks + of_sample)
    return weight * by_sample + (1.0 - weight) * ranked


def _is_longer_than_sampled(cut: Cut) -> bool:
    value = cut[1] if len(cut) == 3 else None
    start = value.encode(errors="replace") if isinstance(value, str) else value
    return isinstance(start, bytes) and len(start) > SAMPLED_LENGTH


def _match(values: ValueSet, found: FrequentGroup) -> _Matched:
    matched, intervals = _Matched(), values.intervals
    for value, item in found.by_value.items():
        interval = find_interval(intervals, value)
        if interval is None:
            matched.beside += item.lower
            continue
        matched.lower += item.lower
        matched.upper += item.upper
        matched.estimate += (item.lower + item.upper) / 2.0
        matched.in_ranges += not interval.is_point
    for beginning, item in found.cut:
        (every,) = build_prefix(beginning).intervals
        some = find_meeting(intervals, every)
        if not some:
            matched.beside += item.lower
            continue
        is_whole = some[0].low <= every.low and every.high <= some[0].high
        matched.lower += item.lower if is_whole else 0
        matched.upper += item.upper
        middle = (item.lower * is_whole + item.upper) / 2.0
        matched.estimate += min(len(some) * found.rows_of_long, middle) if all(one.is_point for one in some) else middle
    return matched


def find_interval(intervals: Sequence[Interval], value: Any) -> Interval | None:
    """Return that of some intervals, in their order, that holds a value; None: none does."""
    place = bisect_right(intervals, below(value), key=lambda interval: interval.low) - 1
    return intervals[place] if place >= 0 and above(value) <= intervals[place].high else None
