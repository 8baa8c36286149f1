"""A question of the workload, and how each dialect writes it: a filter, an equi-join, or a GROUP BY."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

Value = str | int | float | Decimal | date | datetime
Dialect = Literal["kit", "spark", "duckdb", "postgres"]
LIMIT = 240
"""Characters of a question that a report shows."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a column."""

    column: str
    operator: str
    """`=`, `!=`, `in`, `between`, `>=`, `<=`, `prefix`, `is null` or `is not null`."""
    values: tuple[Value, ...] = ()

    def write(self, dialect: Dialect, prefix: str = "") -> str:
        """Return it as SQL, the column's name behind a prefix such as `a.`."""
        name = f"{prefix}{self.column}"
        if not self.values:
            return f"{name} {self.operator}"
        if self.operator == "prefix":
            return f"{name} like '{self.values[0]}%'"
        literals = [write_literal(value, dialect) for value in self.values]
        if self.operator == "in":
            return f"{name} in ({', '.join(literals)})"
        if self.operator == "between":
            return f"{name} >= {literals[0]} and {name} <= {literals[1]}"
        return f"{name} {self.operator} {literals[0]}"


def write_literal(value: Value, dialect: Dialect) -> str:
    r"""Write a literal.

    Examples
    --------
    >>> write_literal("it's", "postgres"), write_literal("it's", "spark")
    ("'it''s'", "'it\\'s'")
    >>> write_literal(1.5, "spark"), write_literal(Decimal("1.50"), "spark"), write_literal(date(2026, 1, 2), "kit")
    ('1.5D', '1.50BD', "'2026-01-02'")
    """
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'") if dialect == "spark" else value.replace("'", "''")
        return f"'{escaped}'"
    if isinstance(value, date):
        kind = ("timestamp_ntz " if dialect == "spark" else "timestamp ") if isinstance(value, datetime) else "date "
        return f"{'' if dialect == 'kit' else kind}'{value.isoformat()}'"
    suffix = {float: "D", Decimal: "BD"}.get(type(value), "") if dialect == "spark" else ""
    return f"{value}{suffix}"


@dataclass(frozen=True, slots=True)
class Side:
    """A table, and what its rows must satisfy."""

    table: str
    conditions: tuple[Condition, ...] = ()

    def write_filter(self, dialect: Dialect, prefix: str = "") -> str:
        """Return the conditions, or `true`."""
        return " and ".join(one.write(dialect, prefix) for one in self.conditions) or "true"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of one table or of a join of two."""

    kind: str
    sides: tuple[Side, ...]
    keys: tuple[str, str] | None = None
    """Of a join."""
    groups: tuple[str, ...] = ()
    """Of a GROUP BY."""

    def write(self, dialect: Dialect) -> str:
        """Return the query whose rows are asked about."""
        first = self.sides[0]
        if self.groups:
            columns = ", ".join(self.groups)
            return f"select {columns} from {first.table} group by {columns}"  # noqa: S608 - of the benchmark's own tables
        if self.keys is None:
            return f"select * from {first.table} where {first.write_filter(dialect)}"  # noqa: S608
        other = self.sides[1]
        tables = f"{first.table} a join {other.table} b on a.{self.keys[0]} = b.{self.keys[1]}"
        filters = f"{first.write_filter(dialect, 'a.')} and {other.write_filter(dialect, 'b.')}"
        return f"select * from {tables} where {filters}"  # noqa: S608

    def describe(self) -> str:
        """Return it as a person reads it, shortened."""
        text = self.write("duckdb").removeprefix("select * from ")
        text = text.replace(" and true", "").replace("true and ", "").removesuffix(" where true")
        return text if len(text) <= LIMIT else f"{text[:LIMIT]} ..."
