"""Row filters: PyIceberg's filter language, read and bound to a table's schema with errors a person can act on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from icestats.errors import FilterError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema

_ZONED = re.compile(r"(Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)


def parse_row_filter(row_filter: str | BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    """Read a row filter and check it against a schema.

    Parameters
    ----------
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter. Text compared with a `timestamptz` column that names no zone is read as UTC.
    schema : pyiceberg.schema.Schema
        The schema that the filter's columns are of.

    Returns
    -------
    pyiceberg.expressions.BooleanExpression
        The unbound filter; binding it to `schema` cannot fail.

    Raises
    ------
    FilterError
        The text is no filter, names a column that does not exist, or compares a column with a value of another type.

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
            raise FilterError(f"the filter {text!r} cannot be read at {_near(text, error.loc)}", text) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise FilterError(f"the filter {text!r} cannot be read: {_line(error)}", text) from error
    else:
        expression = row_filter
    expression = _with_zones(expression, schema)
    try:
        bind(schema, expression, case_sensitive=True)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise FilterError(_explain(text, error, schema), text) from error
    return expression


def _near(text: str, offset: int) -> str:
    rest = text[offset : offset + 20]
    return f"character {offset + 1}, {rest!r}" if rest else "its end"


def _explain(text: str, error: Exception, schema: IcebergSchema) -> str:
    message = _line(error)
    match = re.search(r"Could not find field with name (\S+?),", message)
    if match:
        names = ", ".join(field.name for field in schema.fields)
        return f"the filter {text!r} names no column {match.group(1)!r}: the table has {names}"
    return f"the filter {text!r} does not fit the schema: {message}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _with_zones(expression: BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    from pyiceberg.expressions import And, LiteralPredicate, Not, Or, SetPredicate

    if isinstance(expression, And):
        return And(_with_zones(expression.left, schema), _with_zones(expression.right, schema))
    if isinstance(expression, Or):
        return Or(_with_zones(expression.left, schema), _with_zones(expression.right, schema))
    if isinstance(expression, Not):
        return Not(_with_zones(expression.child, schema))
    adapt = _adapter(expression, schema)
    if adapt is not None and isinstance(expression, LiteralPredicate):
        return type(expression)(expression.term, adapt(expression.literal.value))
    if adapt is not None and isinstance(expression, SetPredicate):
        return type(expression)(expression.term, {adapt(literal.value) for literal in expression.literals})
    return expression


def _adapter(expression: BooleanExpression, schema: IcebergSchema) -> Callable[[Any], Any] | None:
    """Return what literals of the column that is compared have to go through; None for nothing."""
    from pyiceberg.types import FloatType, TimestamptzType

    name = getattr(getattr(expression, "term", None), "name", None)
    try:
        kind = None if name is None else schema.find_field(name).field_type
    except ValueError:
        return None
    if isinstance(kind, TimestamptzType):
        return _zoned
    return _infinite if isinstance(kind, FloatType) else None


def _infinite(value: Any) -> Any:
    from pyiceberg.expressions.literals import FloatLiteral

    # Infinities are values of a float column; PyIceberg takes them for numbers beyond all of its values.
    return FloatLiteral(value) if isinstance(value, float) and math.isinf(value) else value


def _zoned(value: object) -> object:
    if not isinstance(value, str):
        return value
    if _ZONED.search(value.strip()):
        # PyIceberg reads no Z.
        return re.sub(r"[zZ]$", "+00:00", value.strip())
    moment = value.strip().replace(" ", "T")
    return f"{moment}+00:00" if "T" in moment else f"{moment}T00:00:00+00:00"
