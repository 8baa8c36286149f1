"""A filter over the metrics of many groups: which may match, which must, and by which predicates that was judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from icestats.iceberg.value_order import Mask
from icestats.plan.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.plan.evaluation.interval_rules import is_above, meets_any, must_match
from icestats.plan.filters.predicates import Condition, Constant, Predicate, find_predicates
from icestats.plan.values.value_predicates import build_values
from icestats.plan.values.value_sets import BOTTOM, TOP, ValueSet

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
        above = is_above(values.intervals[-1], metrics)
        codes[~met] = np.where(above[~met], Why.ABOVE, Why.BELOW)
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
    """Judge `!=` and `not in`, which bounds cannot decide."""
    if not metrics.is_exact:
        return np.full(len(metrics.valueless), Why.NOT_DECIDABLE, np.int8)
    codes = np.full(len(metrics.valueless), Why.MATCHES, np.int8)
    codes[metrics.lower.known & ~meets_any(values, metrics)] = Why.EQUAL
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


def deciding_predicates(evaluation: Evaluation, row: int) -> list[Predicate]:
    """Return the predicates that a group is skipped by, or, where it is kept, those that could not skip it."""
    return list(dict.fromkeys(_deciding(evaluation.condition, evaluation.codes, row)))


def _deciding(condition: Condition, codes: Mapping[Predicate, _Codes], row: int) -> list[Predicate]:
    if isinstance(condition, Predicate):
        return [condition]
    if isinstance(condition, Constant):
        return []
    skipped = [child for child in condition.children if not _keeps(child, codes, row)]
    if condition.operator == "and" and skipped:
        return _deciding(skipped[0], codes, row)
    chosen = (
        condition.children
        if condition.operator == "and" or len(skipped) == len(condition.children)
        else tuple(child for child in condition.children if child not in skipped)
    )
    return [predicate for child in chosen for predicate in _deciding(child, codes, row)]


def _keeps(condition: Condition, codes: Mapping[Predicate, _Codes], row: int) -> bool:
    if isinstance(condition, Predicate):
        return bool(codes[condition][row] >= 0)
    if isinstance(condition, Constant):
        return condition.holds
    results = (_keeps(child, codes, row) for child in condition.children)
    return all(results) if condition.operator == "and" else any(results)
