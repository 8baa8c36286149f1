"""A row filter as SQL, for engines that are asked what they would estimate, or to count."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from icestats.answers.text import quote_name, quote_text
from icestats.iceberg.filters.value_sets import All, Interval, Leaf, Tree, build_prefix
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.types import UNITS_A_DAY, PrimitiveType, decode_json, encode_value, parse_type
from icestats.stats.kll_items import item_value

Dialect = Literal["spark", "duckdb"]

_QUOTES = {"spark": "`", "duckdb": '"'}
_SPARK_TIMES = {"timestamp": "timestamp_ntz", "timestamp_ns": "timestamp_ntz"}
_SPARK_TIMES |= {"timestamptz": "timestamp_ltz", "timestamptz_ns": "timestamp_ltz"}
_TYPES = {"spark": {"uuid": "string", **_SPARK_TIMES}, "duckdb": {"timestamptz_ns": "timestamptz"}}
"""What a dialect calls Iceberg's types, where it has a name of its own."""
_GREGORIAN_DAY = -141_427
"""1582-10-15."""


def build_sql(predicate: Tree, schema: Schema, dialect: Dialect, *, exact: bool = False) -> str:
    """Build the condition of a WHERE clause.

    Parameters
    ----------
    predicate : Leaf, All or Some
        The filter.
    schema : Schema
        Has its columns.
    dialect : {"spark", "duckdb"}
        Whose names and literals.
    exact : bool
        Whether NaN is left out of ranges, as in a scan's row filter: to engines it is greater than every number. By
        default the condition is as a person would write it.

    Examples
    --------
    >>> from icestats.iceberg.filters.value_sets import TOP, ValueSet, above
    >>> leaf = Leaf(1, "price", "double", ValueSet((Interval(above(3.0), TOP),)), "price > 3")
    >>> from icestats.iceberg.metadata import Field, Schema
    >>> schema = Schema(0, (Field(1, "price", "double", required=False, top_level=True),))
    >>> build_sql(leaf, schema, "spark")
    '`price` > 3.0D'
    >>> build_sql(leaf, schema, "duckdb", exact=True)
    '("price" > 3.0 and not isnan("price"))'
    """
    if isinstance(predicate, Leaf):
        return _leaf_sql(predicate, schema.find(predicate.column), dialect, exact)
    if not predicate.parts:
        return "true" if isinstance(predicate, All) else "false"
    word = " and " if isinstance(predicate, All) else " or "
    return f"({word.join(build_sql(part, schema, dialect, exact=exact) for part in predicate.parts)})"


def _leaf_sql(leaf: Leaf, column: Field, dialect: Dialect, exact: bool) -> str:
    name, values = quote_name(*column.path, quote=_QUOTES[dialect]), leaf.values
    has_nan = leaf.type in ("float", "double")
    if dialect == "spark" and exact:
        name = _hide_values(leaf, name)
    parts = _interval_parts(leaf, name, dialect)
    condition = _joined("or", parts)
    if has_nan and exact and parts and not values.has_nan:
        condition = f"({condition} and not isnan({name}))"
    others = [condition] if parts else []
    if has_nan and values.has_nan and (exact or not parts):
        others.append(f"isnan({name})")
    if values.has_null:
        others.append(f"{_hide_struct(column, name, dialect, exact)} is null")
    return _joined("or", others) if others else "false"


def _hide_values(leaf: Leaf, name: str) -> str:
    """Return a column so that nothing of it is pushed down where files that have matching rows would be skipped.

    Iceberg's order of uuids is not that of every writer's bounds, and to it -0.0 is less than 0.0. ORC compares texts
    by their UTF-16 with bounds in the order of UTF-8, and takes days before 1582-10-15 for those of another calendar.
    """
    items = [cut[1] for one in leaf.values.intervals for cut in (one.low, one.high) if len(cut) == 3]
    if leaf.type == "uuid" or (leaf.type == "string" and any(letter >= "\ue000" for item in items for letter in item)):
        return f"concat({name}, '')"
    if leaf.type in ("float", "double") and 0.0 in items:
        return f"({name} + 0{'D' if leaf.type == 'double' else 'F'})"
    if leaf.type in UNITS_A_DAY and any(item < _GREGORIAN_DAY * UNITS_A_DAY[leaf.type] for item in items):
        return f"date_add({name}, 0)" if leaf.type == "date" else f"({name} + interval '0' day)"
    return name


def _hide_struct(column: Field, name: str, dialect: Dialect, exact: bool) -> str:
    """Return a field of a struct so that Iceberg does not look its nulls up in counts of files.

    Those of ORC files leave out the rows whose struct is null, and Iceberg 1.12 skips files that have no others.
    """
    return f"concat(cast({name} as string), '')" if not column.top_level and dialect == "spark" and exact else name


def _interval_parts(leaf: Leaf, name: str, dialect: Dialect) -> list[str]:
    points = [_literal(leaf.type, p.low[1], dialect) for p in leaf.values.points]
    if leaf.values.gaps:
        shown = [_literal(leaf.type, gap.low[1], dialect) for gap in leaf.values.gaps]
        return [f"{name} <> {shown[0]}" if len(shown) == 1 else f"{name} not in ({', '.join(shown)})"]
    parts = [_range(leaf, interval, name, dialect) for interval in leaf.values.ranges]
    if len(points) == 1:
        parts.append(f"{name} = {points[0]}")
    elif points:
        parts.append(f"{name} in ({', '.join(points)})")
    return parts


def _range(leaf: Leaf, interval: Interval, name: str, dialect: Dialect) -> str:
    low, high = interval.low, interval.high
    if len(low) == 3 and isinstance(low[1], str) and build_prefix(low[1]).intervals[0] == interval:
        return f"{name} like {_pattern(low[1], dialect)}"
    parts = []
    if len(low) == 3:
        parts.append(f"{name} {'>=' if low[2] == 0 else '>'} {_literal(leaf.type, low[1], dialect)}")
    if len(high) == 3:
        parts.append(f"{name} {'<' if high[2] == 0 else '<='} {_literal(leaf.type, high[1], dialect)}")
    return _joined("and", parts) if parts else f"{name} is not null"


def _pattern(prefix: str, dialect: Dialect) -> str:
    escaped = "".join(f"\\{c}" if c in "%_\\" else c for c in prefix)
    return _text_literal(f"{escaped}%", dialect) + (r" escape '\'" if dialect == "duckdb" and escaped != prefix else "")


def _joined(word: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"


def _literal(type_text: str, item: Any, dialect: Dialect) -> str:
    kind = parse_type(type_text)
    if kind.name == "boolean":
        return "true" if item else "false"
    if kind.name in ("int", "long"):
        return str(item)
    if kind.name in ("float", "double"):
        return _float_literal(item, kind.name, dialect)
    if kind.name == "decimal":
        return f"cast('{item_value(type_text, item):f}' as decimal({kind.precision}, {kind.scale}))"
    if kind.name in ("fixed", "binary"):
        return f"X'{item.hex()}'" if dialect == "spark" else f"from_hex('{item.hex()}')"
    if kind.name == "string":
        return _text_literal(item, dialect)
    own_name = _TYPES[dialect].get(kind.name, kind.name)
    text = decode_json(type_text, encode_value(type_text, item))
    return f"cast('{_beyond_text(kind, item) if isinstance(text, int) else text}' as {own_name})"


def _beyond_text(kind: PrimitiveType, item: int) -> str:
    """Return a date or timestamp of before the year 1 or after 9999, which Python has none for; a number is a year."""
    if kind.name == "time":
        return str(item)
    text = str(np.datetime64(item, "D" if kind.name == "date" else "us"))
    # NumPy counts the sign among the four digits of a year.
    return text.replace("-", "-0", text.startswith("-")) + ("+00:00" if kind.name == "timestamptz" else "")


def _float_literal(item: float, name: str, dialect: Dialect) -> str:
    if math.isinf(item):
        return f"cast('{'' if item > 0 else '-'}infinity' as {name})"
    return f"{item!r}{'DF'[name == 'float']}" if dialect == "spark" else repr(item)


def _text_literal(item: str, dialect: Dialect) -> str:
    if dialect == "spark":
        return quote_text(item)
    return "'" + item.replace("'", "''") + "'"
