"""A row filter as a tree of value sets: what the estimators work on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from icestats.plan.value_sets import (
    BOTTOM,
    EVERYTHING,
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
from icestats.stats.histogram import item_value
from icestats.types import decode_json, encode_value

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema


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

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Rows that satisfy one part or more; without parts, none."""

    parts: tuple[Predicate, ...]


Predicate = Leaf | All | Some


def build_predicate(row_filter: BooleanExpression, schema: IcebergSchema) -> Predicate:
    """Build the tree of a row filter.

    Parameters
    ----------
    row_filter : pyiceberg.expressions.BooleanExpression
        As `filters.parse_row_filter` returns it.
    schema : pyiceberg.schema.Schema
        The schema that it is bound to.

    Returns
    -------
    Leaf, All or Some
        Negations are pushed down to the values, and predicates of one AND or OR on the same column made one, exactly.
        It holds for the rows that a PyIceberg scan with the filter returns: null satisfies `is null` and `not in`
        alone, NaN satisfies `is nan`, `!=`, `not in` and `is not null`.

    Examples
    --------
    >>> from pyiceberg.expressions import parser
    >>> from pyiceberg.schema import Schema
    >>> from pyiceberg.types import LongType, NestedField
    >>> schema = Schema(NestedField(1, "x", LongType()))
    >>> build_predicate(parser.parse("x >= 2 and x < 5"), schema).values.intervals
    (Interval(low=(0, 2, 0), high=(0, 5, 0)),)
    """
    from pyiceberg.expressions.visitors import bind, rewrite_not

    return _build(rewrite_not(bind(schema, row_filter, case_sensitive=True)), schema)


def list_leaves(predicate: Predicate) -> list[Leaf]:
    """Return the leaves of a tree, from left to right."""
    return list(_leaves(predicate))


def _leaves(predicate: Predicate) -> Iterator[Leaf]:
    if isinstance(predicate, Leaf):
        yield predicate
    else:
        for part in predicate.parts:
            yield from _leaves(part)


def _build(expression: BooleanExpression, schema: IcebergSchema) -> Predicate:
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BoundPredicate, Or

    if isinstance(expression, AlwaysTrue):
        return All(())
    if isinstance(expression, AlwaysFalse):
        return Some(())
    if isinstance(expression, And | Or):
        is_and = isinstance(expression, And)
        parts = [part for side in (expression.left, expression.right) for part in _flat(_build(side, schema), is_and)]
        return _merged(parts, is_and)
    if isinstance(expression, BoundPredicate):
        return _leaf(expression, schema.find_column_name(expression.term.ref().field.field_id) or "")
    raise TypeError(f"{type(expression).__name__} is no predicate of a row filter")


def _flat(predicate: Predicate, is_and: bool) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, All if is_and else Some) else (predicate,)


def _merged(parts: list[Predicate], is_and: bool) -> Predicate:
    by_column: dict[int, list[Leaf]] = {}
    for part in parts:
        if isinstance(part, Leaf):
            by_column.setdefault(part.field_id, []).append(part)
    merged: list[Predicate] = [reduce(_both if is_and else _either, leaves) for leaves in by_column.values()]
    merged += [part for part in parts if not isinstance(part, Leaf)]
    if len(merged) == 1:
        return merged[0]
    return All(tuple(merged)) if is_and else Some(tuple(merged))


def _both(a: Leaf, b: Leaf) -> Leaf:
    return Leaf(a.field_id, a.column, a.type, a.values.intersection(b.values), f"{a.text} and {b.text}")


def _either(a: Leaf, b: Leaf) -> Leaf:
    return Leaf(a.field_id, a.column, a.type, a.values.union(b.values), f"({a.text} or {b.text})")


_RANGES: dict[str, tuple[str, Callable[[Any], Interval]]] = {
    "BoundLessThan": ("<", lambda value: Interval(BOTTOM, below(value))),
    "BoundLessThanOrEqual": ("<=", lambda value: Interval(BOTTOM, above(value))),
    "BoundGreaterThan": (">", lambda value: Interval(above(value), TOP)),
    "BoundGreaterThanOrEqual": (">=", lambda value: Interval(below(value), TOP)),
}
_UNARY = {
    "BoundIsNull": ("is null", ValueSet((), has_null=True)),
    "BoundNotNull": ("is not null", VALUES),
    "BoundIsNaN": ("is nan", ValueSet((), has_nan=True)),
    "BoundNotNaN": ("is not nan", NUMBERS),
}


def _leaf(bound: Any, column: str) -> Leaf:
    field = bound.term.ref().field
    type_text = str(field.field_type)
    values, text = _values(bound, type_text)
    return Leaf(field.field_id, column, type_text, values, f"{column} {text}")


def _values(bound: Any, type_text: str) -> tuple[ValueSet, str]:
    name = type(bound).__name__
    if name in _UNARY:
        text, values = _UNARY[name]
        return values, text
    if name in ("BoundIn", "BoundNotIn"):
        items = sorted(build_item(type_text, literal.value) for literal in bound.literals)
        shown = f"({', '.join(_show(type_text, item) for item in items)})"
        if name == "BoundIn":
            return build_points(items), f"in {shown}"
        # A scan's filter keeps nulls for `not in` and drops them for `!=`.
        return build_gaps(items, has_null=True), f"not in {shown}"
    return _compared(name, build_item(type_text, bound.literal.value), type_text)


def _compared(name: str, item: Any, type_text: str) -> tuple[ValueSet, str]:
    shown = _show(type_text, item)
    if isinstance(item, float) and math.isnan(item):
        return (VALUES, f"!= {shown}") if name == "BoundNotEqualTo" else (NOTHING, f"= {shown}")
    if name in _RANGES:
        sign, build = _RANGES[name]
        return ValueSet((build(item),)), f"{sign} {shown}"
    if name in ("BoundStartsWith", "BoundNotStartsWith"):
        pattern = repr(f"{item}%")
        if name == "BoundStartsWith":
            return build_prefix(item), f"like {pattern}"
        return build_other_prefixes(item), f"not like {pattern}"
    if name == "BoundEqualTo":
        return build_points([item]), f"= {shown}"
    return build_gaps([item], has_null=False), f"!= {shown}"


def _show(type_text: str, item: Any) -> str:
    value = decode_json(type_text, encode_value(type_text, _python_value(type_text, item)))
    return repr(value) if isinstance(value, str) and not type_text.startswith("decimal") else str(value)


def _python_value(type_text: str, item: Any) -> Any:
    return item_value(type_text, item) if type_text.startswith("decimal") else item


def is_everything(predicate: Predicate) -> bool:
    """Return whether every row satisfies it."""
    return predicate == All(()) or (isinstance(predicate, Leaf) and predicate.values == EVERYTHING)
