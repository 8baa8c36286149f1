"""A bound row filter as plain values: predicates on fields, and their conjunctions and disjunctions.

PyIceberg reads and binds a filter; what it gives becomes these, so that it can be evaluated over Arrow columns.
Source: Iceberg spec, "Scan Planning"; PyIceberg's expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from icestats.answers.text import printable
from icestats.iceberg.partition_columns import display_partition_value
from icestats.iceberg.types import decode_json, decode_value, encode_value, parse_type

_QUOTED = frozenset({"string", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "uuid"})
_MOST_CHARACTERS = 60
_NUMBERED = frozenset({"year", "month", "hour"})
"""Transforms whose values are numbers of years, months and hours since 1970."""


def display_value(type_text: str, value: Any, transform: str = "identity") -> str:
    r"""Return a literal as a filter has it.

    Examples
    --------
    >>> display_value("date", 0), display_value("string", "it's"), display_value("long", 74)
    ("'1970-01-01'", "'it''s'", '74')
    >>> display_value("int", 0, "month")
    "'1970-01'"
    """
    return display_bytes(type_text, encode_value("int" if transform in _NUMBERED else type_text, value), transform)


def display_bytes(type_text: str, data: bytes, transform: str = "identity") -> str:
    """Return single-value bytes as a filter has them; what is long is cut, what cannot be printed replaced."""
    if transform in _NUMBERED:
        return f"'{display_partition_value(transform, 'int', decode_value('int', data))}'"
    shown = decode_json(type_text, data)
    name = parse_type(type_text).name
    if name == "boolean":
        return str(shown).lower()
    text = printable(str(shown))
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    if name in ("binary", "fixed"):
        return f"X'{text}'"
    return "'" + text.replace("'", "''") + "'" if name in _QUOTED else text


Operator = Literal[
    "=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "is nan", "is not nan",
    "starts with", "not starts with",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison of a field with literals.

    Literals are as Iceberg stores them: dates, times and timestamps are integers, a uuid is 16 bytes.
    """

    operator: Operator
    field_id: int
    name: str
    type: str
    """Iceberg's type of the field; `struct`, `list` or `map` where it is nested."""
    literals: tuple[Any, ...] = ()
    transform: str = "identity"
    """Of a partition field: what its values are."""

    def __str__(self) -> str:
        if self.operator.startswith("is "):
            return f"{self.name} {self.operator}"
        shown = [display_value(self.type, value, self.transform) for value in self.literals]
        if self.operator in ("in", "not in"):
            some = f", ... {len(shown) - 5:,} more" if len(shown) > 6 else ""
            return f"{self.name} {self.operator} ({', '.join(shown[: 5 if some else 6])}{some})"
        return f"{self.name} {self.operator} {shown[0]}"


@dataclass(frozen=True, slots=True)
class Junction:
    """Predicates of which all (`and`) or one (`or`) must hold."""

    operator: Literal["and", "or"]
    children: tuple[Condition, ...]

    def __str__(self) -> str:
        parts = (f"({c})" if isinstance(c, Junction) and c.operator != self.operator else str(c) for c in self.children)
        return f" {self.operator} ".join(parts)


@dataclass(frozen=True, slots=True)
class Constant:
    """A condition that always or never holds."""

    holds: bool

    def __str__(self) -> str:
        return "true" if self.holds else "false"


Condition: TypeAlias = Predicate | Junction | Constant


def find_predicates(condition: Condition) -> Iterator[Predicate]:
    """Yield the predicates of a condition, from left to right."""
    if isinstance(condition, Predicate):
        yield condition
    elif isinstance(condition, Junction):
        for child in condition.children:
            yield from find_predicates(child)


def join(operator: Literal["and", "or"], children: tuple[Condition, ...]) -> Condition:
    """Join conditions, without constants and junctions of the same kind inside.

    Examples
    --------
    >>> str(join("and", (Predicate("=", 1, "a", "int", (1,)), Constant(True))))
    'a = 1'
    >>> str(join("or", (Constant(True), Predicate("=", 1, "a", "int", (1,)))))
    'true'
    """
    neutral = operator == "and"
    flat: list[Condition] = []
    for child in children:
        flat.extend(child.children if isinstance(child, Junction) and child.operator == operator else (child,))
    if any(isinstance(child, Constant) and child.holds is not neutral for child in flat):
        return Constant(not neutral)
    kept = tuple(dict.fromkeys(child for child in flat if not isinstance(child, Constant)))
    if len(kept) < 2:
        return kept[0] if kept else Constant(neutral)
    return Junction(operator, kept)
