"""Whether a group of rows may hold one that matches a predicate, and why.

Source: Iceberg spec, "Scan Planning"; the rules are those of Iceberg's InclusiveMetricsEvaluator (api, Java), which
PyIceberg's follow. A statistic that is missing rules nothing out.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.plan.filters.literals import literal_bytes
from icestats.plan.filters.predicates import Predicate
from icestats.plan.pruning.figures import MISSING, ColumnFigures
from icestats.plan.pruning.keys import Key, Keys, Mask, literal_keys, successor

Codes = npt.NDArray[np.int8]
MOST_LITERALS = 200
"""Engines look at bounds for no more literals of an `in`."""


class Why(IntEnum):
    """Why a group was skipped (negative) or could not be."""

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


def judge(predicate: Predicate, figures: ColumnFigures | None, count: int) -> Codes:
    """Return for each group a `Why`: negative where no row of it can match.

    Parameters
    ----------
    predicate : Predicate
        The predicate.
    figures : ColumnFigures or None
        Of the predicate's field; None where there are none, as for nested fields.
    count : int
        How many groups there are.
    """
    if figures is None:
        return np.full(count, Why.MISSING, np.int8)
    codes = _JUDGES[predicate.operator](predicate, figures)
    if figures.type == "uuid" and not figures.is_exact and predicate.literals:
        codes = np.where(codes < 0, _JUDGES[predicate.operator](*_with_signed_halves(predicate, figures)), codes)
    return codes.astype(np.int8)


def _codes(figures: ColumnFigures, *known: Mask) -> Codes:
    """Return OVERLAP where everything is known, MISSING elsewhere, MATCHES for single values."""
    codes = np.full(len(figures.valueless), Why.MATCHES if figures.is_exact else Why.OVERLAP, np.int8)
    for mask in known:
        codes[~mask] = Why.MISSING
    return codes


def _compares(predicate: Predicate, figures: ColumnFigures) -> Codes:
    least, greatest = literal_keys(figures.type, predicate.literals[0])
    operator = predicate.operator
    if operator in ("<", "<="):
        codes = _codes(figures, figures.lower.known)
        codes[figures.lower.compare(">=" if operator == "<" else ">", greatest)] = Why.ABOVE
    elif operator in (">", ">="):
        codes = _codes(figures, figures.upper.known)
        codes[figures.upper.compare("<=" if operator == ">" else "<", least)] = Why.BELOW
    else:
        codes = _codes(figures, figures.lower.known, figures.upper.known)
        codes[figures.lower.compare(">", greatest)] = Why.ABOVE
        codes[figures.upper.compare("<", least)] = Why.BELOW
    codes[figures.valueless] = Why.ALL_NULL_OR_NAN
    return codes


def _is_in(predicate: Predicate, figures: ColumnFigures) -> Codes:
    codes = _codes(figures, figures.lower.known, figures.upper.known)
    if len(predicate.literals) > MOST_LITERALS and not figures.is_exact:
        codes[:] = Why.MANY_LITERALS
    else:
        codes[~_any_within(predicate, figures)] = Why.NONE_WITHIN
    codes[figures.valueless] = Why.ALL_NULL_OR_NAN
    return codes


def _any_within(predicate: Predicate, figures: ColumnFigures) -> Mask:
    pairs = [literal_keys(figures.type, literal) for literal in predicate.literals]
    if figures.is_exact and all(least == greatest for least, greatest in pairs):
        return figures.lower.is_within([least for least, _ in pairs]) | ~figures.lower.known
    within = np.zeros(len(figures.valueless), np.bool_)
    for least, greatest in pairs:
        within |= ~(figures.lower.compare(">", greatest) | figures.upper.compare("<", least))
    return within


def _differs(predicate: Predicate, figures: ColumnFigures) -> Codes:
    codes = np.full(len(figures.valueless), Why.NOT_DECIDABLE, np.int8)
    if figures.is_exact:
        keys = [key for literal in predicate.literals for key in {*literal_keys(figures.type, literal)}]
        codes[:] = Why.MATCHES
        codes[figures.lower.is_within(keys)] = Why.EQUAL
    return codes


def _is_null(_: Predicate, figures: ColumnFigures) -> Codes:
    codes = np.where(figures.null_counts == MISSING, Why.MISSING, Why.NULLS).astype(np.int8)
    codes[figures.null_counts == 0] = Why.NO_NULLS
    return codes


def _is_not_null(_: Predicate, figures: ColumnFigures) -> Codes:
    unknown = (figures.null_counts == MISSING) | (figures.value_counts == MISSING)
    codes = np.where(unknown & (figures.null_counts != 0), Why.MISSING, Why.VALUES).astype(np.int8)
    codes[figures.all_null] = Why.ALL_NULL_OR_NAN
    return codes


def _is_nan(_: Predicate, figures: ColumnFigures) -> Codes:
    codes = np.where(figures.nan_counts == MISSING, Why.MISSING, Why.NANS).astype(np.int8)
    codes[figures.nan_counts == 0] = Why.NO_NANS
    codes[figures.all_null] = Why.ALL_NULL_OR_NAN
    return codes


def _is_not_nan(_: Predicate, figures: ColumnFigures) -> Codes:
    codes = np.where(figures.nan_counts == MISSING, Why.MISSING, Why.VALUES).astype(np.int8)
    codes[figures.all_nan] = Why.ALL_NULL_OR_NAN
    return codes


def _starts_with(predicate: Predicate, figures: ColumnFigures) -> Codes:
    prefix, behind = _prefix(predicate, figures)
    codes = _codes(figures, figures.lower.known, figures.upper.known)
    if behind is not None:
        codes[figures.lower.compare(">=", behind)] = Why.ABOVE
    codes[figures.upper.compare("<", prefix)] = Why.BELOW
    codes[figures.all_null] = Why.ALL_NULL_OR_NAN
    return codes


def _starts_not_with(predicate: Predicate, figures: ColumnFigures) -> Codes:
    prefix, behind = _prefix(predicate, figures)
    codes = _codes(figures, figures.lower.known, figures.upper.known)
    lower, upper = figures.lower.compare(">=", prefix), figures.upper.compare(">=", prefix)
    if behind is not None:
        lower, upper = lower & figures.lower.compare("<", behind), upper & figures.upper.compare("<", behind)
    codes[lower & upper & (figures.null_counts == 0)] = Why.ALL_START
    codes[lower & upper & (figures.null_counts != 0)] = Why.NULLS
    return codes


def _prefix(predicate: Predicate, figures: ColumnFigures) -> tuple[bytes, Key | None]:
    prefix = literal_bytes(figures.type, predicate.literals[0])
    return prefix, successor(prefix)


_JUDGES: dict[str, Callable[[Predicate, ColumnFigures], Codes]] = {
    **dict.fromkeys(("=", "<", "<=", ">", ">="), _compares),
    **dict.fromkeys(("!=", "not in"), _differs),
    "in": _is_in,
    "is null": _is_null,
    "is not null": _is_not_null,
    "is nan": _is_nan,
    "is not nan": _is_not_nan,
    "starts with": _starts_with,
    "not starts with": _starts_not_with,
}


def _with_signed_halves(predicate: Predicate, figures: ColumnFigures) -> tuple[Predicate, ColumnFigures]:
    """Return the same with uuids that compare as two signed halves, as Java compared them (apache/iceberg#14216)."""
    from dataclasses import replace

    literals = tuple(_flip(literal) for literal in predicate.literals)
    return replace(predicate, literals=literals), replace(
        figures, lower=_flip_keys(figures.lower), upper=_flip_keys(figures.upper)
    )


def _flip(value: bytes) -> bytes:
    return bytes(byte ^ 0x80 if place in (0, 8) else byte for place, byte in enumerate(value))


def _flip_keys(keys: Keys) -> Keys:
    flipped = [None if value is None else _flip(value) for value in keys.values.to_pylist()]
    return Keys(pa.array(flipped, pa.binary()), keys.known)
