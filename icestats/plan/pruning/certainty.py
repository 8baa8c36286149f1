"""Whether every row of a file matches: where metadata proves it, the number of matching rows is exact.

Source: Iceberg's StrictMetricsEvaluator (api, Java). A statistic that is missing proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icestats.plan.filters.literals import literal_bytes
from icestats.plan.filters.predicates import Condition, Constant, Predicate
from icestats.plan.pruning.figures import ColumnFigures
from icestats.plan.pruning.keys import Mask, literal_keys, successor


def all_rows_match(condition: Condition, figures: Mapping[int, ColumnFigures], count: int) -> Mask:
    """Say of which files every row matches for sure.

    Parameters
    ----------
    condition : Condition
        The filter.
    figures : mapping of int to ColumnFigures
        By field id, a row a file.
    count : int
        How many files there are.
    """
    if isinstance(condition, Constant):
        return np.full(count, condition.holds, np.bool_)
    if isinstance(condition, Predicate):
        found = figures.get(condition.field_id)
        # The bounds of uuids may be in either of two orders, and a float's literal is one of two.
        if found is None or (found.type in ("uuid", "float") and condition.literals):
            return np.zeros(count, np.bool_)
        return _proves(condition, found)
    masks = [all_rows_match(child, figures, count) for child in condition.children]
    # Of an `or` each row may meet another side: only one side that all rows meet proves it.
    return np.asarray((np.logical_and if condition.operator == "and" else np.logical_or).reduce(masks))


def _proves(predicate: Predicate, figures: ColumnFigures) -> Mask:
    operator = predicate.operator
    no_nulls = figures.null_counts == 0
    if operator == "is null":
        return figures.all_null
    if operator == "is not null":
        return np.asarray(no_nulls)
    if operator == "is nan":
        return figures.all_nan
    no_nans = figures.nan_counts == 0
    if operator == "is not nan":
        return np.asarray(no_nulls & no_nans)
    values_only = no_nulls & (no_nans if figures.type == "double" else True)
    if operator in ("starts with", "not starts with"):
        return np.asarray(values_only & _proves_prefix(predicate, figures))
    return np.asarray(values_only & _proves_comparison(predicate, figures))


def _proves_comparison(predicate: Predicate, figures: ColumnFigures) -> Mask:
    lower, upper, operator = figures.lower, figures.upper, predicate.operator
    keys = [literal_keys(figures.type, literal)[0] for literal in predicate.literals]
    key = keys[0]
    if operator in ("<", "<="):
        return upper.compare("<" if operator == "<" else "<=", key)
    if operator in (">", ">="):
        return lower.compare(">" if operator == ">" else ">=", key)
    if operator in ("!=", "not in"):
        outside = [upper.compare("<", one) | lower.compare(">", one) for one in keys]
        return np.asarray(np.logical_and.reduce(outside))
    only = [lower.compare(">=", one) & upper.compare("<=", one) for one in keys]
    return np.asarray(np.logical_or.reduce(only))


def _proves_prefix(predicate: Predicate, figures: ColumnFigures) -> Mask:
    prefix = literal_bytes(figures.type, predicate.literals[0])
    behind = successor(prefix)
    if predicate.operator == "starts with":
        within = figures.lower.compare(">=", prefix)
        return within & figures.upper.compare("<", behind) if behind is not None else within & figures.upper.known
    outside = figures.upper.compare("<", prefix)
    return outside if behind is None else outside | figures.lower.compare(">=", behind)
