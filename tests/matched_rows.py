"""Row filters, and whether a row meets one: by its values, as a scan of PyIceberg's finds it."""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pyiceberg import expressions as e
from pyiceberg.expressions.visitors import rewrite_not
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, DoubleType, FloatType, IntegerType, LongType, PrimitiveType, StringType

_OPERATORS = {
    e.EqualTo: operator.eq,
    e.NotEqualTo: operator.ne,
    e.LessThan: operator.lt,
    e.LessThanOrEqual: operator.le,
    e.GreaterThan: operator.gt,
    e.GreaterThanOrEqual: operator.ge,
}
_ENDS = {IntegerType: 2**31, LongType: 2**63}


def build_matcher(expression: Any, schema: Schema) -> Callable[[Callable[[str], Any]], bool]:
    """Return what says of a row, by the value of each column, whether it meets a filter.

    `not x < 1` is `x >= 1`, as Iceberg reads it, which NaN does not meet.
    """
    rewritten = rewrite_not(expression)
    return lambda value_of: bool(_holds(rewritten, schema, value_of))


def _holds(expression: Any, schema: Schema, value_of: Callable[[str], Any]) -> bool | None:
    """SQL's three-valued logic; NaN compares with nothing, and differs from everything."""
    if isinstance(expression, e.And | e.Or):
        sides = [_holds(side, schema, value_of) for side in (expression.left, expression.right)]
        decides = isinstance(expression, e.Or)
        if decides in sides:
            return decides
        return None if None in sides else not decides
    kind = schema.find_type(expression.term.name)
    assert isinstance(kind, PrimitiveType)
    return _compare(expression, kind, value_of(expression.term.name))


def _compare(expression: Any, kind: PrimitiveType, value: Any) -> bool | None:
    if isinstance(expression, e.IsNull | e.NotNull):
        return (value is None) == isinstance(expression, e.IsNull)
    if isinstance(expression, e.IsNaN | e.NotNaN):
        return None if value is None else math.isnan(value) == isinstance(expression, e.IsNaN)
    if isinstance(expression, e.In | e.NotIn):
        held = {one for literal in expression.literals if _can_hold(kind, one := read_literal(kind, literal.value))}
        if value is None:
            # `not in` keeps nulls, unless it is left with one value or with none.
            return (isinstance(expression, e.NotIn) and len(held) > 1) or None
        return (value in held) == isinstance(expression, e.In)
    if value is None:
        return None
    literal = read_literal(kind, expression.literal.value)
    if isinstance(expression, e.StartsWith | e.NotStartsWith):
        return value.startswith(literal) == isinstance(expression, e.StartsWith)
    return bool(_OPERATORS[type(expression)](value, literal))


def _can_hold(kind: PrimitiveType, literal: Any) -> bool:
    end = _ENDS.get(type(kind))
    return end is None or -end <= literal < end


def read_literal(kind: PrimitiveType, literal: Any) -> Any:
    """Return a literal as the value of a column's type that it stands for."""
    reads = {"date": dt.date, "time": dt.time, "timestamp": dt.datetime, "timestamptz": dt.datetime}.get(str(kind))
    if reads is not None and isinstance(literal, str):
        return reads.fromisoformat(literal)
    if isinstance(literal, uuid.UUID):
        return literal.bytes
    return float(np.float32(literal)) if isinstance(kind, FloatType) else literal


def write_literal(value: Any) -> Any:
    """Return a value as a filter takes it."""
    return value.isoformat() if isinstance(value, dt.datetime | dt.date | dt.time) else value


def draw_filter(
    chance: random.Random,
    schema: Schema,
    pools: Mapping[str, Sequence[Any]],
    favoured: Sequence[str] = (),
    leaves: int = 3,
) -> Any:
    """Draw a filter of columns that have these values, some of them beyond what the column holds."""
    if leaves > 1 and chance.random() < 0.5:
        kind = chance.choice([e.And, e.Or, e.Not])
        split = chance.randint(1, leaves - 1)
        sides = [draw_filter(chance, schema, pools, favoured, part) for part in (split, leaves - split)]
        return e.Not(sides[0]) if kind is e.Not else kind(*sides)
    name = chance.choice(favoured if favoured and chance.random() < 0.4 else sorted(pools))
    kind, fate = schema.find_type(name), chance.random()
    pool = [value for value in pools[name] if not (isinstance(value, float) and math.isnan(value))]
    if type(kind) in _ENDS:
        pool += [-_ENDS[type(kind)], _ENDS[type(kind)] - 1, *([2**40, -(2**40)] * isinstance(kind, IntegerType))]
    if fate < 0.15:
        return chance.choice([e.IsNull, e.NotNull])(name)
    if fate < 0.4 and isinstance(kind, FloatType | DoubleType):
        return chance.choice([e.IsNaN, e.NotNaN])(name)
    if fate < 0.45:
        literals = {write_literal(chance.choice(pool)) for _ in range(chance.randint(1, 4))}
        return chance.choice([e.In, e.NotIn])(name, literals)
    if fate < 0.7 and isinstance(kind, StringType):
        word = chance.choice(pool)
        return chance.choice([e.StartsWith, e.NotStartsWith])(name, word[: chance.randint(1, 20)] or "a")
    operators = [e.EqualTo, e.NotEqualTo] if isinstance(kind, BooleanType) else list(_OPERATORS)
    return chance.choice(operators)(name, write_literal(chance.choice(pool)))
