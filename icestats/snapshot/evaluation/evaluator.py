"""A filter over the metrics of many groups: which may match, which must, and by which predicates that was judged.

The rules are of intervals of values, inclusive and strict; a metric that is missing neither rules a group out nor
proves anything of it. Source: Iceberg spec, "Scan Planning"; Iceberg's InclusiveMetricsEvaluator and
StrictMetricsEvaluator (api, Java).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.filters.predicates import Condition, Constant, Predicate, find_predicates
from icestats.iceberg.filters.value_sets import (
    BOTTOM,
    NUMBERS,
    TOP,
    Cut,
    Interval,
    ValueSet,
    above,
    below,
    build_set,
    build_values,
)
from icestats.iceberg.value_order import Key, Keys, Longs, Mask, literal_keys
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics


def may_match(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether a row may have one of some values."""
    others = (metrics.may_be_null & values.has_null) | (metrics.may_be_nan & values.has_nan)
    return np.asarray((meets_any(values, metrics) & ~metrics.valueless) | others)


def must_match(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether every row is sure to have one of some values."""
    others = (metrics.may_be_null & (not values.has_null)) | (metrics.may_be_nan & (not values.has_nan))
    return np.asarray((metrics.valueless | covers(values, metrics)) & ~others)


def meets_any(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether a value between its bounds may be in one of the intervals."""
    if metrics.is_exact and (found := _find_listed(values, metrics)) is not None:
        return found
    return np.asarray(count_met(values, metrics) > 0)


def count_met(values: ValueSet, metrics: ColumnMetrics) -> Longs:
    """Return for each group how many of the intervals may have a value between its bounds."""
    first, last = _place_bounds(values, metrics)
    met = np.maximum((last + 1) // 2 - first // 2, 0)
    if metrics.type == "uuid" and not metrics.is_exact:
        # Java compared them as two signed halves (apache/iceberg#14216).
        met = np.maximum(met, count_met(*_flip_halves(values, metrics)))
    return np.asarray(met)


def _find_listed(values: ValueSet, metrics: ColumnMetrics) -> Mask | None:
    """Look single values up in a list of them; None where the set is no list, nor all but one."""
    points, gaps = values.points, values.gaps
    listed = points if points and not values.ranges else gaps
    pairs = [literal_keys(metrics.type, point.low[1]) for point in listed]
    if not pairs or any(least != greatest for least, greatest in pairs):
        return None
    within = metrics.lower.is_within([least for least, _ in pairs])
    return np.asarray((~within if listed is gaps else within) | ~metrics.lower.known)


def covers(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether all from its lower to its upper bound lies in one of the intervals."""
    first, last = _place_bounds(values, metrics)
    # An odd number of ends below a bound: it lies within an interval.
    inside = (first == last) & (first % 2 == 1)
    if metrics.type == "uuid" and values.intervals != NUMBERS.intervals:
        # Between two bounds lie other values in either order.
        inside &= to_numpy(pc.equal(metrics.lower.values, metrics.upper.values), null=False)
    return np.asarray(inside)


def _place_bounds(values: ValueSet, metrics: ColumnMetrics) -> tuple[Longs, Longs]:
    """Return how many ends of intervals lie below each group's lower bound, and how many below its upper bound.

    A bound that is unknown is below, or above, all ends but the open ones.
    """
    ends = [cut for interval in values.intervals for cut in (interval.low, interval.high)]
    sides: tuple[list[Key], list[Key]] = ([], [])
    for _, item, side in (cut for cut in ends if len(cut) == 3):
        sides[side].append(literal_keys(metrics.type, item)[side])
    always = int(BOTTOM in ends)
    first, last = (always + keys.count_passed(*sides) for keys in (metrics.lower, metrics.upper))
    return np.where(metrics.lower.known, first, always), np.where(metrics.upper.known, last, len(ends) - (TOP in ends))


def _flip_halves(values: ValueSet, metrics: ColumnMetrics) -> tuple[ValueSet, ColumnMetrics]:
    """Return uuids and their bounds as bytes that compare as two signed halves do."""
    flipped = [piece for one in values.intervals for piece in _flip_interval(one)]
    lower, upper = _flip_keys(metrics.lower), _flip_keys(metrics.upper)
    return build_set(flipped), replace(metrics, type="fixed[16]", lower=lower, upper=upper)


def _flip_interval(one: Interval) -> list[Interval]:
    """Return where the uuids of an interval lie in that order; others may lie there too."""
    least = one.low[1] if len(one.low) == 3 else bytes(16)
    most = one.high[1] if len(one.high) == 3 else b"\xff" * 16
    if least[:8] == most[:8] and least[8] >> 7 == most[8] >> 7:
        return [Interval(_flip_cut(one.low), _flip_cut(one.high))]
    # By unsigned first halves: those below 0x80 come behind the others.
    halves = [(least[:8], most[:8])]
    if least[0] >> 7 != most[0] >> 7:
        halves = [(least[:8], b"\x7f" + b"\xff" * 7), (b"\x80" + bytes(7), most[:8])]
    return [
        Interval(_flip_cut(below(first + b"\x80" + bytes(7))), _flip_cut(above(last + b"\x7f" + b"\xff" * 7)))
        for first, last in halves
    ]


def _flip_cut(cut: Cut) -> Cut:
    if len(cut) == 1:
        return cut
    return (cut[0], bytes(byte ^ 0x80 if place in (0, 8) else byte for place, byte in enumerate(cut[1])), cut[2])


def _flip_keys(keys: Keys) -> Keys:
    pairs = zip(keys.values.to_pylist(), keys.known, strict=True)
    filled = b"".join(value if known else bytes(16) for value, known in pairs)
    words: npt.NDArray[np.uint8] = np.frombuffer(filled, np.uint8).reshape(-1, 16).copy()
    words[:, [0, 8]] ^= 0x80
    array = pa.Array.from_buffers(pa.binary(16), len(words), [None, pa.py_buffer(words)])
    return Keys(array.cast(pa.binary()), keys.known)


_Codes = npt.NDArray[np.int8]
MOST_LITERALS = 200
"""Engines look at bounds for no more literals of an `in`."""


class Why(IntEnum):
    """Why rows of a group cannot match (negative) or might."""

    BELOW = -1
    ABOVE = -2
    NONE_WITHIN = -3
    ALL_NULL_OR_NAN = -4
    NO_NULLS = -5
    NO_NANS = -6
    ALL_START = -7
    EQUAL = -8
    OVERLAP = 0
    MISSING = 1
    NOT_DECIDABLE = 2
    NULLS = 3
    NANS = 4
    MANY_LITERALS = 5
    VALUES = 6
    MATCHES = 7


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a condition says of each group."""

    condition: Condition
    metrics: Mapping[int, ColumnMetrics]
    codes: Mapping[Predicate, _Codes]
    kept: Mask
    """Rows might match."""

    def find_sure(self) -> Mask:
        """Say of each group whether every row must match; a comparison with null is never true."""
        return _reduce(self.condition, self._is_sure, len(self.kept))

    def _is_sure(self, predicate: Predicate) -> Mask:
        found = self.metrics.get(predicate.field_id)
        if found is None:
            return np.zeros(len(self.kept), np.bool_)
        sets = [replace(values, has_null=predicate.operator == "is null") for values in build_values(predicate)]
        return np.asarray(np.logical_and.reduce([must_match(values, found) for values in sets]))


def evaluate(condition: Condition, metrics: Mapping[int, ColumnMetrics], count: int) -> Evaluation:
    """Evaluate a condition.

    Parameters
    ----------
    condition : Condition
        Of `build_condition`.
    metrics : mapping of int to ColumnMetrics
        By field id, `count` groups each; a field that has none rules nothing out.
    count : int
        How many groups there are.
    """
    codes = {found: _judge(found, metrics.get(found.field_id), count) for found in find_predicates(condition)}
    kept = _reduce(condition, lambda predicate: np.asarray(codes[predicate] >= 0), count)
    return Evaluation(condition, metrics, codes, kept)


def _reduce(condition: Condition, judge: Callable[[Predicate], Mask], count: int) -> Mask:
    if isinstance(condition, Predicate):
        return judge(condition)
    if isinstance(condition, Constant):
        return np.full(count, condition.holds, np.bool_)
    # That some rows meet one side of an `or` and the others another is no proof that all match: each side by itself is.
    masks = [_reduce(child, judge, count) for child in condition.children]
    return np.asarray((np.logical_and if condition.operator == "and" else np.logical_or).reduce(masks))


def _judge(predicate: Predicate, metrics: ColumnMetrics | None, count: int) -> _Codes:
    """Return for each group a `Why`: negative where no row of it can match."""
    if metrics is None:
        return np.full(count, Why.MISSING, np.int8)
    if predicate.operator in _BY_COUNTS:
        return _BY_COUNTS[predicate.operator](metrics)
    # A float's literal counts as given and as the nearest float: a row may match either.
    first, *rest = build_values(predicate)
    values = first if not rest else first.union(rest[0])
    if predicate.operator in ("!=", "not in"):
        return _judge_others(values, metrics)
    if len(predicate.literals) > MOST_LITERALS and not metrics.is_exact:
        return np.where(metrics.valueless, Why.ALL_NULL_OR_NAN, Why.MANY_LITERALS).astype(np.int8)
    met = meets_any(values, metrics)
    codes = _find_known(values, metrics)
    if predicate.operator == "not starts with":
        codes[~met] = np.where(metrics.null_counts[~met] == 0, Why.ALL_START, Why.NULLS)
        return codes
    if predicate.operator == "in":
        codes[~met] = Why.NONE_WITHIN
    elif values.intervals:
        above, _ = _place_bounds(values, metrics)
        codes[~met] = np.where(above[~met] == 2 * len(values.intervals), Why.ABOVE, Why.BELOW)
    codes[metrics.valueless] = Why.ALL_NULL_OR_NAN
    return codes


def _find_known(values: ValueSet, metrics: ColumnMetrics) -> _Codes:
    """Return OVERLAP where the bounds that count are known, MISSING elsewhere, MATCHES for single values."""
    codes = np.full(len(metrics.valueless), Why.MATCHES if metrics.is_exact else Why.OVERLAP, np.int8)
    if any(interval.high != TOP for interval in values.intervals):
        codes[~metrics.lower.known] = Why.MISSING
    if any(interval.low != BOTTOM for interval in values.intervals):
        codes[~metrics.upper.known] = Why.MISSING
    return codes


def _judge_others(values: ValueSet, metrics: ColumnMetrics) -> _Codes:
    """Judge `!=` and `not in`, which bounds decide where all rows have one value."""
    codes = np.full(len(metrics.valueless), Why.MATCHES if metrics.is_exact else Why.NOT_DECIDABLE, np.int8)
    codes[metrics.is_single & ~covers(values, metrics)] = Why.EQUAL
    return codes


def _judge_null(metrics: ColumnMetrics) -> _Codes:
    codes = np.where(metrics.null_counts == MISSING, Why.MISSING, Why.NULLS).astype(np.int8)
    codes[metrics.null_counts == 0] = Why.NO_NULLS
    return codes


def _judge_not_null(metrics: ColumnMetrics) -> _Codes:
    unknown = (metrics.null_counts == MISSING) | (metrics.value_counts == MISSING)
    codes = np.where(unknown & (metrics.null_counts != 0), Why.MISSING, Why.VALUES).astype(np.int8)
    codes[metrics.all_null] = Why.ALL_NULL_OR_NAN
    return codes


def _judge_nan(metrics: ColumnMetrics) -> _Codes:
    codes = np.where(metrics.nan_counts == MISSING, Why.MISSING, Why.NANS).astype(np.int8)
    codes[metrics.nan_counts == 0] = Why.NO_NANS
    codes[metrics.all_null] = Why.ALL_NULL_OR_NAN
    return codes


def _judge_not_nan(metrics: ColumnMetrics) -> _Codes:
    codes = np.where(metrics.nan_counts == MISSING, Why.MISSING, Why.VALUES).astype(np.int8)
    codes[metrics.all_nan] = Why.ALL_NULL_OR_NAN
    return codes


_BY_COUNTS: dict[str, Callable[[ColumnMetrics], _Codes]] = {
    "is null": _judge_null,
    "is not null": _judge_not_null,
    "is nan": _judge_nan,
    "is not nan": _judge_not_nan,
}
