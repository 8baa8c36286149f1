"""A condition over the figures of many groups: which are kept, and by which predicates they were judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from icestats.plan.filters.predicates import Condition, Constant, Junction, Predicate, find_predicates
from icestats.plan.pruning.figures import ColumnFigures
from icestats.plan.pruning.keys import Mask
from icestats.plan.pruning.verdicts import Codes, judge


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a condition says of each group."""

    condition: Condition
    figures: Mapping[int, ColumnFigures]
    codes: Mapping[Predicate, Codes]
    kept: Mask


def evaluate(condition: Condition, figures: Mapping[int, ColumnFigures], count: int) -> Evaluation:
    """Evaluate a condition.

    Parameters
    ----------
    condition : Condition
        Of `build_condition`.
    figures : mapping of int to ColumnFigures
        By field id, `count` groups each; a field that has none rules nothing out.
    count : int
        How many groups there are.
    """
    codes = {found: judge(found, figures.get(found.field_id), count) for found in find_predicates(condition)}
    return Evaluation(condition, figures, codes, _may_match(condition, codes, count))


def _may_match(condition: Condition, codes: Mapping[Predicate, Codes], count: int) -> Mask:
    if isinstance(condition, Predicate):
        return np.asarray(codes[condition] >= 0)
    if isinstance(condition, Constant):
        return np.full(count, condition.holds, np.bool_)
    masks = [_may_match(child, codes, count) for child in condition.children]
    reduce = np.logical_and if condition.operator == "and" else np.logical_or
    return np.asarray(reduce.reduce(masks))


def deciding_predicates(evaluation: Evaluation, row: int) -> list[Predicate]:
    """Return the predicates that a group is skipped by, or, where it is kept, those that could not skip it."""
    return list(dict.fromkeys(_deciding(evaluation.condition, evaluation.codes, row)))


def _deciding(condition: Condition, codes: Mapping[Predicate, Codes], row: int) -> list[Predicate]:
    if isinstance(condition, Predicate):
        return [condition]
    if isinstance(condition, Constant):
        return []
    skipped = [child for child in condition.children if not _keeps(child, codes, row)]
    if condition.operator == "and" and skipped:
        return _deciding(skipped[0], codes, row)
    chosen = (
        condition.children
        if condition.operator == "and" or not _any_kept(condition, codes, row)
        else tuple(child for child in condition.children if child not in skipped)
    )
    return [predicate for child in chosen for predicate in _deciding(child, codes, row)]


def _any_kept(condition: Junction, codes: Mapping[Predicate, Codes], row: int) -> bool:
    return any(_keeps(child, codes, row) for child in condition.children)


def _keeps(condition: Condition, codes: Mapping[Predicate, Codes], row: int) -> bool:
    if isinstance(condition, Predicate):
        return bool(codes[condition][row] >= 0)
    if isinstance(condition, Constant):
        return condition.holds
    results = (_keeps(child, codes, row) for child in condition.children)
    return all(results) if condition.operator == "and" else any(results)
