"""A bound row filter as plain values: predicates on fields, and their conjunctions and disjunctions.

PyIceberg reads and binds a filter; what it gives is taken apart here, so that it can be evaluated over Arrow columns.
Source: Iceberg spec, "Scan Planning"; PyIceberg's expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from icestats.errors import UnsupportedError
from icestats.plan.filters.literals import display_value

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema

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


def build_condition(expression: BooleanExpression, schema: IcebergSchema) -> Condition:
    """Build the condition that an unbound expression is about a schema.

    Parameters
    ----------
    expression : pyiceberg.expressions.BooleanExpression
        Of `parse_row_filter`, or projected to a partition spec.
    schema : pyiceberg.schema.Schema
        The fields; those of a partition spec for a projected expression.

    Raises
    ------
    UnsupportedError
        The expression holds something that PyIceberg's filter language has not.
    """
    return _build(bind_expression(expression, schema), schema)


def bind_expression(expression: BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    """Bind an expression to a schema, as PyIceberg does, negations pushed down to the predicates."""
    from pyiceberg.expressions.visitors import bind, rewrite_not

    return bind(schema, rewrite_not(expression), case_sensitive=True)


def _build(expression: Any, schema: IcebergSchema) -> Condition:
    from pyiceberg import expressions as e

    if isinstance(expression, e.And | e.Or):
        operator: Literal["and", "or"] = "and" if isinstance(expression, e.And) else "or"
        return join(operator, (_build(expression.left, schema), _build(expression.right, schema)))
    if isinstance(expression, e.AlwaysTrue | e.AlwaysFalse):
        return Constant(isinstance(expression, e.AlwaysTrue))
    if isinstance(expression, e.BoundPredicate):
        return _build_predicate(expression, schema)
    raise UnsupportedError(f"{type(expression).__name__} is no expression of the filter language")


def _build_predicate(expression: Any, schema: IcebergSchema) -> Condition:
    from pyiceberg.expressions.literals import AboveMax, BelowMin

    field = expression.term.ref().field
    operator = _operators().get(type(expression))
    if operator is None:
        raise UnsupportedError(f"{type(expression).__name__} is no predicate of the filter language")
    literals: tuple[Any, ...] = ()
    if operator in ("in", "not in"):
        # A literal that the type cannot hold equals no value.
        literals = tuple(sorted(one.value for one in expression.literals if not isinstance(one, AboveMax | BelowMin)))
        if not literals:
            return Constant(operator == "not in")
    elif hasattr(expression, "literal"):
        literals = (expression.literal.value,)
    name = schema.find_column_name(field.field_id) or field.name
    return Predicate(operator, field.field_id, name, _type_text(field.field_type), literals)


def _type_text(iceberg_type: Any) -> str:
    if iceberg_type.is_primitive:
        return str(iceberg_type)
    return type(iceberg_type).__name__.removesuffix("Type").lower()


def _operators() -> dict[type, Operator]:
    from pyiceberg import expressions as e

    return {
        e.BoundEqualTo: "=",
        e.BoundNotEqualTo: "!=",
        e.BoundLessThan: "<",
        e.BoundLessThanOrEqual: "<=",
        e.BoundGreaterThan: ">",
        e.BoundGreaterThanOrEqual: ">=",
        e.BoundIn: "in",
        e.BoundNotIn: "not in",
        e.BoundIsNull: "is null",
        e.BoundNotNull: "is not null",
        e.BoundIsNaN: "is nan",
        e.BoundNotNaN: "is not nan",
        e.BoundStartsWith: "starts with",
        e.BoundNotStartsWith: "not starts with",
    }
