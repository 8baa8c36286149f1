"""Selectivity from bounds: values taken to be spread evenly between the smallest and the largest."""

from __future__ import annotations

import numpy as np

from icestats.estimation.formulas.group_evidence import ColumnEvidence
from icestats.estimation.formulas.selectivity import Selectivity, build_selectivity
from icestats.iceberg.types import parse_type
from icestats.iceberg.value_order import Floats, Mask, to_floats
from icestats.plan.evaluation.evaluator import covers, meets_any
from icestats.plan.filters.value_sets import BOTTOM, TOP, Interval, Leaf, ValueSet, close, is_discrete

_WITHOUT_WIDTH = frozenset({"string", "uuid", "fixed", "binary"})


def estimate_uniform(leaf: Leaf, evidence: ColumnEvidence | None, groups: int) -> Selectivity:
    """Estimate which share of each group's rows satisfies a predicate, from bounds, null and NaN counts.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    evidence : ColumnEvidence or None
        What is known of its column in each group; None: nothing.
    groups : int
        How many groups there are.

    Returns
    -------
    Selectivity
        The estimate takes values for evenly spread between the bounds, and no value for NaN where NaN is not counted.
        An equality is estimated where values are whole (one of so many) or the bounds decide; text has no width, so
        that it is estimated where the bounds decide. `lower` and `upper` hold whatever the distribution.
    """
    if evidence is None:
        everything = np.ones(groups)
        reason = f"{leaf.text}: {leaf.column} has no statistics"
        return build_selectivity(np.full(groups, np.nan), np.zeros(groups), everything, (reason,))
    shares, covered, touched = _spread(leaf, evidence, groups)
    values = leaf.values
    nulls, nans = evidence.null_share, np.nan_to_num(evidence.nan_share, nan=0.0)
    of_values = np.clip(1.0 - nulls - nans, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        estimate = np.where(shares == 0.0, 0.0, shares * of_values)
    estimate = estimate + (nulls if values.has_null else 0.0) + (evidence.nan_share if values.has_nan else 0.0)
    no_nan_count = np.isnan(evidence.nan_share)
    lower = np.where(no_nan_count, 0.0, np.nan_to_num(of_values, nan=0.0)) * covered
    upper = np.nan_to_num(of_values, nan=1.0) * touched
    if values.has_null:
        lower, upper = lower + np.nan_to_num(nulls, nan=0.0), upper + np.nan_to_num(nulls, nan=1.0)
    if values.has_nan:
        lower, upper = lower + nans, upper + np.nan_to_num(evidence.nan_share, nan=1.0)
    return build_selectivity(estimate, lower, upper, (_reason(leaf, evidence, estimate),))


def _spread(leaf: Leaf, evidence: ColumnEvidence, groups: int) -> tuple[Floats, Mask, Mask]:
    """Of a group's values (neither null nor NaN): the estimated share, whether all, whether any can be in the set."""
    shares, covered, touched = np.zeros(groups), np.zeros(groups, np.bool_), np.zeros(groups, np.bool_)
    for interval in leaf.values.intervals:
        if interval.low == BOTTOM and interval.high == TOP:
            return np.ones(groups), ~covered, ~touched
        closed = close(interval) if is_discrete(leaf.type) else interval
        inside = covers(closed, evidence.metrics)
        meeting = meets_any(ValueSet((closed,)), evidence.metrics)
        part = np.where(inside, 1.0, np.where(meeting, _width(closed, evidence, leaf.type), 0.0))
        shares = shares + np.where(evidence.has_bounds, part, np.nan)
        covered |= inside
        touched |= meeting
    empty = evidence.is_valueless
    return np.where(empty, 0.0, np.minimum(shares, 1.0)), covered & ~empty, touched & ~empty


def _width(interval: Interval, evidence: ColumnEvidence, type_text: str) -> Floats:
    if parse_type(type_text).name in _WITHOUT_WIDTH:
        return np.full(len(evidence.null_share), np.nan)
    step = 1.0 if is_discrete(type_text) else 0.0
    if interval.is_point and not step:
        return np.full(len(evidence.null_share), np.nan)
    lower, upper = (to_floats(type_text, keys) for keys in (evidence.metrics.lower, evidence.metrics.upper))
    low = lower if len(interval.low) == 1 else np.maximum(lower, float(interval.low[1]))
    high = upper if len(interval.high) == 1 else np.minimum(upper, float(interval.high[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        width = (high - low + step) / (upper - lower + step)
    return np.where(np.isfinite(width), np.clip(width, 0.0, 1.0), np.nan)


def _reason(leaf: Leaf, evidence: ColumnEvidence, estimate: Floats) -> str:
    unknown = np.isnan(estimate)
    uncounted = int((unknown & np.isnan(evidence.null_share)).sum())
    unbounded = int((unknown & ~evidence.has_bounds & ~evidence.is_valueless).sum())
    if uncounted or unbounded:
        lacking = max(uncounted, unbounded)
        return f"{leaf.text}: {leaf.column} has no bounds or null counts in {lacking:,} of {len(estimate):,}"
    if leaf.values.has_nan and np.isnan(evidence.nan_share).any():
        return f"{leaf.text}: NaN is not counted"
    if parse_type(leaf.type).name in _WITHOUT_WIDTH:
        return f"{leaf.text}: between bounds, {leaf.type} has no width"
    return f"{leaf.text}: bounds alone say nothing of one value among {leaf.type} values"
