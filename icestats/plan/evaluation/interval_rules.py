"""What intervals of values say of groups of rows by their metrics: the one set of rules, inclusive and strict.

Source: Iceberg spec, "Scan Planning"; Iceberg's InclusiveMetricsEvaluator and StrictMetricsEvaluator (api, Java). A
metric that is missing neither rules a group out nor proves anything of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.value_order import Comparison, Keys, Mask, literal_keys
from icestats.plan.evaluation.column_metrics import ColumnMetrics
from icestats.plan.values.value_sets import NUMBERS, Cut, Interval, ValueSet


def may_match(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether a row may have one of some values."""
    others = (metrics.may_be_null & values.has_null) | (metrics.may_be_nan & values.has_nan)
    return np.asarray((meets_any(values, metrics) & ~metrics.valueless) | others)


def must_match(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether every row is sure to have one of some values."""
    inside = metrics.valueless.copy()
    for interval in values.intervals:
        inside |= covers(interval, metrics)
    others = (metrics.may_be_null & (not values.has_null)) | (metrics.may_be_nan & (not values.has_nan))
    return np.asarray(inside & ~others)


def meets_any(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether a value between its bounds may be in one of the intervals."""
    if metrics.is_exact and (found := _find_listed(values, metrics)) is not None:
        return found
    met = np.zeros(len(metrics.valueless), np.bool_)
    for interval in values.intervals:
        met |= ~(is_above(interval, metrics) | _is_below(interval, metrics))
    if metrics.type == "uuid" and not metrics.is_exact:
        met |= _meets_by_signed_halves(values, metrics)
    return met


def _find_listed(values: ValueSet, metrics: ColumnMetrics) -> Mask | None:
    """Look single values up in a list of them; None where the set is no list, nor all but one."""
    points, gaps = values.points, values.gaps
    listed = points if points and not values.ranges else gaps
    pairs = [literal_keys(metrics.type, point.low[1]) for point in listed]
    if not pairs or any(least != greatest for least, greatest in pairs):
        return None
    within = metrics.lower.is_within([least for least, _ in pairs])
    return np.asarray((~within if listed is gaps else within) | ~metrics.lower.known)


def is_above(interval: Interval, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether all its values are above the interval."""
    return _compare(metrics.lower, (">=", ">"), interval.high, metrics.type, nothing=False)


def _is_below(interval: Interval, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether all its values are below the interval."""
    return _compare(metrics.upper, ("<", "<="), interval.low, metrics.type, nothing=False)


def covers(interval: Interval, metrics: ColumnMetrics) -> Mask:
    """Say for each group whether all from its lower to its upper bound lies in the interval."""
    above_low = _compare(metrics.lower, (">=", ">"), interval.low, metrics.type, nothing=True)
    inside = above_low & _compare(metrics.upper, ("<", "<="), interval.high, metrics.type, nothing=True)
    if metrics.type == "uuid" and interval not in NUMBERS.intervals:
        # Between two bounds lie other values in either order.
        inside &= to_numpy(pc.equal(metrics.lower.values, metrics.upper.values), null=False)
    return inside


def _compare(keys: Keys, operators: tuple[Comparison, Comparison], cut: Cut, type_text: str, *, nothing: bool) -> Mask:
    """Compare bounds with a cut just below or just above a value; `nothing` is the answer at an open end."""
    if len(cut) == 1:
        return np.full(len(keys.known), nothing)
    least, greatest = literal_keys(type_text, cut[1])
    return keys.compare(operators[cut[2]], greatest if cut[2] else least)


def _meets_by_signed_halves(values: ValueSet, metrics: ColumnMetrics) -> Mask:
    """The same of uuids that compare as two signed halves, as Java compared them (apache/iceberg#14216)."""
    flipped = replace(metrics, type="fixed[16]", lower=_flip_keys(metrics.lower), upper=_flip_keys(metrics.upper))
    intervals = tuple(Interval(_flip_cut(one.low), _flip_cut(one.high)) for one in values.intervals)
    return meets_any(ValueSet(intervals), flipped)


def _flip_cut(cut: Cut) -> Cut:
    if len(cut) == 1:
        return cut
    return (cut[0], bytes(byte ^ 0x80 if place in (0, 8) else byte for place, byte in enumerate(cut[1])), cut[2])


def _flip_keys(keys: Keys) -> Keys:
    fits = keys.known & np.asarray([len(value or b"") == 16 for value in keys.values.to_pylist()], np.bool_)
    filled = b"".join(value if fit else bytes(16) for value, fit in zip(keys.values.to_pylist(), fits, strict=True))
    words: npt.NDArray[np.uint8] = np.frombuffer(filled, np.uint8).reshape(-1, 16).copy()
    words[:, [0, 8]] ^= 0x80
    array = pa.Array.from_buffers(pa.binary(16), len(words), [None, pa.py_buffer(words)])
    return Keys(array.cast(pa.binary()), fits)
