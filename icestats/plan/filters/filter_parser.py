"""Row filters: PyIceberg's filter language, read and bound to a table's schema with errors a person can act on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from icestats.answers.text import one_line
from icestats.errors import FilterError
from icestats.plan.filters.filter_literals import Adapt, find_adapter

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.expressions.literals import Literal
    from pyiceberg.schema import Schema as IcebergSchema

_EXPECTED = "expected comparisons such as price < 3 or name is not null, joined by and, or, not"
_KINDS = {
    "Boolean": "true or false", "Long": "a whole number", "Float": "a number", "Double": "a number",
    "Decimal": "a number", "String": "text", "Binary": "bytes",
}  # fmt: skip


def parse_row_filter(row_filter: str | BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    """Read a row filter and check it against a schema.

    Parameters
    ----------
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter. Text compared with a `timestamptz` column that names no zone is read as UTC; a date alone is its
        midnight.
    schema : pyiceberg.schema.Schema
        The schema that the filter's columns are of.

    Returns
    -------
    pyiceberg.expressions.BooleanExpression
        The unbound filter; binding it to `schema` cannot fail.

    Raises
    ------
    FilterError
        The text is no filter, names a column that does not exist, or compares a column with a value of another type,
        such as one of whole numbers with 74.5.

    Examples
    --------
    >>> from pyiceberg.schema import Schema
    >>> from pyiceberg.types import LongType, NestedField
    >>> parse_row_filter("device_id = 74", Schema(NestedField(1, "device_id", LongType())))
    EqualTo(term=Reference(name='device_id'), literal=LongLiteral(74))
    """
    from pyiceberg.expressions import parser
    from pyiceberg.expressions.visitors import bind
    from pyparsing import ParseException

    text = str(row_filter)
    if isinstance(row_filter, str):
        if not text.strip():
            raise FilterError('the filter is empty: expected one such as "price < 3 and device_id = 74"', text)
        try:
            expression = parser.parse(text)
        except ParseException as error:
            where = _near(text, error.loc)
            raise FilterError(f"the filter {text!r} cannot be read at {where}: {_EXPECTED}", text) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise FilterError(f"the filter {text!r} cannot be read: {one_line(error)}", text) from error
    else:
        expression = row_filter
    try:
        expression = _adapt(expression, schema)
        bind(schema, expression, case_sensitive=True)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise FilterError(_explain(text, error, schema), text) from error
    return expression


def _near(text: str, offset: int) -> str:
    rest = text[offset : offset + 20]
    return f"character {offset + 1}, {rest!r}" if rest else "its end"


def _explain(text: str, error: Exception, schema: IcebergSchema) -> str:
    message = one_line(error)
    match = re.search(r"Could not find field with name (\S+?),", message)
    if match:
        names = ", ".join(field.name for field in schema.fields)
        return f"the filter {text!r} names no column {match.group(1)!r}: the table has {names}"
    match = re.fullmatch(r"Cannot convert (\w+)Literal into (.+)", message)
    if match:
        kind, type_text = _KINDS.get(match.group(1), match.group(1)), match.group(2)
        message = f"a column of type {type_text} is compared with {kind}"
        if re.match(r"binary|fixed", type_text):
            message += "; give bytes, in Python: pyiceberg.expressions.EqualTo('column', b'...')"
    return f"the filter {text!r} does not fit the schema: {message}"


def _adapt(expression: BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    from pyiceberg.expressions import And, LiteralPredicate, Not, Or, SetPredicate

    if isinstance(expression, And):
        return And(_adapt(expression.left, schema), _adapt(expression.right, schema))
    if isinstance(expression, Or):
        return Or(_adapt(expression.left, schema), _adapt(expression.right, schema))
    if isinstance(expression, Not):
        return Not(_adapt(expression.child, schema))
    adapt = _adapter(expression, schema)
    if adapt is not None and isinstance(expression, LiteralPredicate):
        return type(expression)(expression.term, adapt(_given(expression.literal)))
    if adapt is not None and isinstance(expression, SetPredicate):
        return type(expression)(expression.term, {adapt(_given(literal)) for literal in expression.literals})
    return expression


def _given(literal: Literal[Any]) -> Any:
    """Return a literal's value; one of microseconds stays what it is, as the number alone does not say so."""
    from pyiceberg.expressions.literals import TimestampLiteral

    return literal if isinstance(literal, TimestampLiteral) else literal.value


def _adapter(expression: BooleanExpression, schema: IcebergSchema) -> Adapt | None:
    """Return what literals of the column that is compared have to go through; None for nothing."""
    name = getattr(getattr(expression, "term", None), "name", None)
    try:
        kind = None if name is None else schema.find_field(name).field_type
    except ValueError:
        return None
    adapt = None if kind is None else find_adapter(kind)
    if adapt is None:
        return None

    def explained(value: Any) -> Any:
        try:
            return adapt(value)
        except ValueError as error:
            raise ValueError(f"{name} is {kind}, and {error}") from error

    return explained
