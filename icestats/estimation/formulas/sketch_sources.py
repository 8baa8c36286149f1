"""Selectivities from sketches and numbers of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.group_evidence import ColumnEvidence
from icestats.estimation.formulas.selectivity import Selectivity, build_selectivity
from icestats.estimation.formulas.uniform import estimate_uniform
from icestats.plan.filters.value_sets import (
    BOTTOM,
    TOP,
    Cut,
    Interval,
    Leaf,
    ValueSet,
    above,
    below,
    close,
    is_discrete,
)
from icestats.stats.kll import KllSketch


@dataclass(frozen=True, slots=True)
class Distribution:
    """A column's KLL sketch, with the share of rows that it leaves out."""

    sketch: KllSketch
    null_share: float | None
    """None: unknown."""
    nan_share: float | None
    size_bytes: int
    """Of the committed blob."""


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """How many distinct values a column has."""

    ndv: float
    lower: float
    """At 95 % confidence, as the other bound."""
    upper: float
    size_bytes: int


def estimate_kll(leaf: Leaf, distribution: Distribution | None, *, rare_is_unknown: bool = True) -> Selectivity:
    """Estimate which share of the live rows satisfies a predicate, from ranks of the column's KLL sketch.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    distribution : Distribution or None
        The column's sketch; None: it has none.
    rare_is_unknown : bool
        Whether a single value is unknown where its share is not beyond what the sketch may miss.

    Returns
    -------
    Selectivity
        One group. Each end of an interval inside the sketch's extremes is off by at most the rank error, at 99 %
        confidence: the bounds.
    """
    if distribution is None:
        return _unknown(f"{leaf.text}: no KLL sketch of {leaf.column} is committed")
    nulls, nans = distribution.null_share, distribution.nan_share
    if nulls is None or nans is None:
        return _unknown(f"{leaf.text}: the sketch of {leaf.column} does not say how many nulls and NaN there are")
    sketch = distribution.sketch
    share, error, reason = 0.0, 0.0, ""
    for interval in leaf.values.intervals if sketch.n else ():
        part, off = _between(close(interval) if is_discrete(leaf.type) else interval, sketch)
        share, error = share + part, error + off
        if rare_is_unknown and interval.is_point and off and part <= off:
            reason = f"{leaf.text}: too rare for the sketch, fewer than {part + off:.2%} of the values"
    of_values = 1.0 - nulls - nans
    others = (nulls if leaf.values.has_null else 0.0) + (nans if leaf.values.has_nan else 0.0)
    estimate = np.asarray([np.nan if reason else share * of_values + others])
    lower = max(0.0, share - error) * of_values + others
    upper = min(1.0, share + error) * of_values + others
    return build_selectivity(estimate, np.asarray([lower]), np.asarray([upper]), (reason,) if reason else ())


def _between(interval: Interval, sketch: KllSketch) -> tuple[float, float]:
    low, low_error = _rank(interval.low, sketch)
    high, high_error = _rank(interval.high, sketch)
    return max(0.0, high - low), low_error + high_error


def _rank(cut: Cut, sketch: KllSketch) -> tuple[float, float]:
    """The share of values before a cut, and how far it may be off."""
    if cut == BOTTOM or (cut != TOP and cut <= below(sketch.min_value)):
        return 0.0, 0.0
    if cut == TOP or cut >= above(sketch.max_value):
        return 1.0, 0.0
    return sketch.ranks([cut[1]], inclusive=cut[2] == 1)[0], sketch.rank_error


def estimate_ndv(leaf: Leaf, distinct: DistinctValues | None, evidence: ColumnEvidence | None) -> Selectivity:
    """Estimate which share of the rows satisfies a predicate, from the number of distinct values.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    distinct : DistinctValues or None
        Of its column; None: unknown.
    evidence : ColumnEvidence or None
        Bounds and null counts of the column over the table: one group.

    Returns
    -------
    Selectivity
        One group. Each value between the bounds has the same share of the rows; ranges are estimated as by
        `estimate_uniform`. At most all rows but one for each other value can have one value.
    """
    uniform = estimate_uniform(leaf, evidence, 1)
    # `!=` and `not in` are all but some points.
    points = leaf.values.points or leaf.values.gaps
    if not points:
        return uniform
    if distinct is None or evidence is None:
        return _unknown(f"{leaf.text}: no NDV of {leaf.column} is committed", uniform)
    inside = sum(bool(_part(leaf, (point,), evidence).upper[0] > 0) for point in points)
    of_points = min(1.0, inside / max(distinct.ndv, 1.0))
    of_values = 1.0 - evidence.null_share - np.nan_to_num(evidence.nan_share, nan=0.0)
    of_ranges = _part(leaf, leaf.values.ranges, evidence).estimate
    estimate = of_points * of_values + of_ranges if leaf.values.points else (1.0 - of_points) * of_values
    if leaf.values.has_null:
        estimate = estimate + evidence.null_share
    if leaf.values.has_nan:
        estimate = estimate + evidence.nan_share
    return build_selectivity(estimate, uniform.lower, uniform.upper, uniform.reasons)


def _part(leaf: Leaf, intervals: tuple[Interval, ...], evidence: ColumnEvidence) -> Selectivity:
    return estimate_uniform(replace(leaf, values=ValueSet(intervals)), evidence, 1)


def choose_best(candidates: Sequence[Selectivity]) -> Selectivity:
    """Return the first selectivity that has an estimate, or the last."""
    return next((found for found in candidates if not np.isnan(found.estimate).any()), candidates[-1])


def _unknown(reason: str, bounds: Selectivity | None = None) -> Selectivity:
    lower, upper = (np.zeros(1), np.ones(1)) if bounds is None else (bounds.lower, bounds.upper)
    return build_selectivity(np.full(1, np.nan), lower, upper, (reason,))
