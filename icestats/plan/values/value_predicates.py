"""A row filter as a tree of value sets: what the estimators work on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from icestats.plan.filters.predicates import Condition, Constant, Predicate
from icestats.plan.values.value_sets import (
    BOTTOM,
    NOTHING,
    NUMBERS,
    TOP,
    VALUES,
    Interval,
    ValueSet,
    above,
    below,
    build_gaps,
    build_item,
    build_other_prefixes,
    build_points,
    build_prefix,
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows whose value of one column is in a set."""

    field_id: int
    column: str
    type: str
    values: ValueSet
    text: str
    """The predicate as a person writes it."""


@dataclass(frozen=True, slots=True)
class All:
    """Rows that satisfy every part; without parts, all rows."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Rows that satisfy one part or more; without parts, none."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = Leaf | All | Some


def build_tree(condition: Condition) -> Tree:
    """Build the tree of a row filter's condition.

    Parameters
    ----------
    condition : Predicate, Junction or Constant
        As `predicates.build_condition` has it: negations are pushed down to the predicates.

    Returns
    -------
    Leaf, All or Some
        Predicates of one AND or OR on the same column are made one, exactly. It holds for the rows that a PyIceberg
        scan with the filter returns: null satisfies `is null` and `not in` alone, NaN satisfies `is nan`, `!=`,
        `not in` and `is not null`.

    Examples
    --------
    >>> from icestats.plan.filters.predicates import Junction
    >>> parts = (Predicate(">=", 1, "x", "long", (2,)), Predicate("<", 1, "x", "long", (5,)))
    >>> build_tree(Junction("and", parts)).values.intervals
    (Interval(low=(0, 2, 0), high=(0, 5, 0)),)
    """
    if isinstance(condition, Constant):
        return All(()) if condition.holds else Some(())
    if isinstance(condition, Predicate):
        return Leaf(condition.field_id, condition.name, condition.type, build_values(condition)[0], str(condition))
    is_and = condition.operator == "and"
    return _merged([part for child in condition.children for part in _flat(build_tree(child), is_and)], is_and)


def list_leaves(predicate: Tree) -> list[Leaf]:
    """Return the leaves of a tree, from left to right."""
    return list(_leaves(predicate))


def _leaves(predicate: Tree) -> Iterator[Leaf]:
    if isinstance(predicate, Leaf):
        yield predicate
    else:
        for part in predicate.parts:
            yield from _leaves(part)


def _flat(predicate: Tree, is_and: bool) -> tuple[Tree, ...]:
    return predicate.parts if isinstance(predicate, All if is_and else Some) else (predicate,)


def _merged(parts: list[Tree], is_and: bool) -> Tree:
    by_column: dict[int, list[Leaf]] = {}
    for part in parts:
        if isinstance(part, Leaf):
            by_column.setdefault(part.field_id, []).append(part)
    merged: list[Tree] = [reduce(_both if is_and else _either, leaves) for leaves in by_column.values()]
    merged += [part for part in parts if not isinstance(part, Leaf)]
    if len(merged) == 1:
        return merged[0]
    return All(tuple(merged)) if is_and else Some(tuple(merged))


def _both(a: Leaf, b: Leaf) -> Leaf:
    return Leaf(a.field_id, a.column, a.type, a.values.intersection(b.values), f"{a.text} and {b.text}")


def _either(a: Leaf, b: Leaf) -> Leaf:
    return Leaf(a.field_id, a.column, a.type, a.values.union(b.values), f"({a.text} or {b.text})")


_RANGES: dict[str, Callable[[Any], Interval]] = {
    "<": lambda value: Interval(BOTTOM, below(value)),
    "<=": lambda value: Interval(BOTTOM, above(value)),
    ">": lambda value: Interval(above(value), TOP),
    ">=": lambda value: Interval(below(value), TOP),
}
_UNARY = {
    "is null": ValueSet((), has_null=True),
    "is not null": VALUES,
    "is nan": ValueSet((), has_nan=True),
    "is not nan": NUMBERS,
}
_BUILDERS: dict[str, Callable[[list[Any]], ValueSet]] = {
    "=": build_points,
    "in": build_points,
    "!=": lambda items: build_gaps(items, has_null=False),
    # A scan's filter keeps nulls for `not in` and drops them for `!=`.
    "not in": lambda items: build_gaps(items, has_null=True),
    "starts with": lambda items: build_prefix(items[0]),
    "not starts with": lambda items: build_other_prefixes(items[0]),
}


def build_values(predicate: Predicate) -> tuple[ValueSet, ...]:
    """Build the set of the values that satisfy a predicate, as a PyIceberg scan takes it.

    Returns
    -------
    tuple of ValueSet
        Two where a `float` column is compared with what no `float` is: engines compare either with the `float` next to
        it, as PyIceberg does (the first set), or with the literal itself.
    """
    operator = predicate.operator
    if operator in _UNARY:
        return (_UNARY[operator],)
    as_stored = [build_item(predicate.type, literal) for literal in predicate.literals]
    sets = [_build_set(operator, as_stored)]
    if predicate.type == "float" and as_stored != list(predicate.literals):
        sets.append(_build_set(operator, list(predicate.literals)))
    return tuple(sets)


def _build_set(operator: str, items: list[Any]) -> ValueSet:
    # No value equals NaN.
    items = [item for item in items if not (isinstance(item, float) and math.isnan(item))]
    if operator in _RANGES:
        return ValueSet((_RANGES[operator](items[0]),)) if items else NOTHING
    return _BUILDERS[operator](items)
