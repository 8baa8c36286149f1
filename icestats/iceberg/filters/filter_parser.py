"""Row filters: PyIceberg's filter language, read and bound to a table's schema with errors a person can act on.

Literals are never rounded; zones and dates are filled in. PyIceberg cuts 74.5 to 74 for a column of whole numbers and
rounds a float for a decimal column, which changes what a filter asks for; it wants every digit of a decimal and every
part of a timestamp; and it has columns of nanosecond timestamps, and transforms, but no literals.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from types import MappingProxyType
from typing import Any

from pydantic import model_serializer
from pyiceberg import expressions as e
from pyiceberg import types as t
from pyiceberg.expressions import BooleanExpression, parser
from pyiceberg.expressions.literals import DateLiteral, FloatLiteral, Literal, TimeLiteral, TimestampLiteral
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.schema import Schema as IcebergSchema
from pyparsing import ParseException

from icestats.answers.text import one_line
from icestats.errors import FilterError

_Adapt = Callable[[Any], Any]
_ZONED = re.compile(r"(Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BEYOND_TIME = re.compile(r"(?!\d{4}-).*([zZ+-]|[.,]\d{7})")
_LISTED = re.compile(r"""'[^']*'|"[^"]*"|(?P<list>\bin\s*\([-+\d.,\s]*\))""", re.IGNORECASE)
"""What is quoted, or a list of numbers."""
_LIST = re.compile(r"""\bin\s*\(((?:'[^']{0,200}'|[^'()]){1,400})\)""", re.IGNORECASE)
_EXPONENT = re.compile(
    r"""'[^']*'|"[^"]*"|(?<![\w.$])(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)e[+-]?\d{1,3})(?![\w.$])""",
    re.ASCII | re.IGNORECASE,
)
"""What is quoted, or a number such as 1e-6."""
_OTHER_LETTERS = re.compile(r"""'[^']*'|"[^"]*"|(?P<name>\w*[^\W\x00-\x7f]\w*)""")
"""What is quoted, or a name with letters beyond ASCII."""
_WHOLE_NUMBER = re.compile(r"(?<![\d.])\d+(?![\d.])")
_MOMENT_PART = re.compile(r"(year|month|day|hour|minute|second)\b.* (must be in|out of range)\b.*")
_WORDS = re.compile(r"""'[^']*'|"[^"]*"|(?P<word>\b(?:and|or|not)\b|\(|\.(?!\d))""", re.IGNORECASE)
"""What is quoted, or what joins comparisons or the parts of a name."""
_MOST_READ, _MOST_COMMAS, _MOST_WORDS = 100_000, 10_000, 5_000
"""Of a filter as text: PyIceberg's parser takes seconds for these, for a list or a name the square of its length."""
_MOST_VALUES = 20_000
"""Of all lists of values: each source of estimates looks at each value."""
_MOST_CHARACTERS = 200
"""Of a filter that an error shows."""
_DIGITS = Context(prec=100)
_GRAMMAR = parser.boolean_expression.copy().parse_with_tabs()
"""PyIceberg's, which makes spaces of the tabs in a text."""
_MOST_LEVELS = 100
"""PyIceberg binds, projects and prints a filter by recursions that Python ends at some 150 levels and more."""
_EXPECTED = "expected comparisons such as price < 3, day >= '2026-09-30' or name in ('a', 'b'), joined by and, or, not"
_EXAMPLES = {
    "boolean": "true or false",
    "date": "a date such as '2026-09-30'",
    "double": "a number",
    "float": "a number",
    "int": "a whole number",
    "long": "a whole number",
    "time": "a time such as '12:30:00'",
    "timestamp": "a time such as '2026-09-30T12:30:00'",
    "timestamptz": "a time such as '2026-09-30T12:30:00+00:00'",
}
_KINDS = {
    "Boolean": "true or false", "Long": "a whole number", "Float": "a number", "Double": "a number",
    "Decimal": "a number", "String": "text", "Binary": "bytes", "Date": "a date", "Time": "a time of day",
    "Timestamp": "a point in time",
}  # fmt: skip


def parse_row_filter(
    row_filter: str | BooleanExpression, schema: IcebergSchema, unreadable: Mapping[str, str] = MappingProxyType({})
) -> BooleanExpression:
    """Read a row filter and check it against a schema.

    Parameters
    ----------
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter. Text compared with a `timestamptz` column that names no zone is read as UTC; a date alone, Python's
        `date` too, is its midnight.
    schema : pyiceberg.schema.Schema
        The schema that the filter's columns are of.
    unreadable : mapping of str to str
        Names and types of columns that the schema leaves out, as PyIceberg does not know their types.

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
    if isinstance(row_filter, str):
        text = row_filter
        _check_length(text)
        if not text.strip():
            raise FilterError('the filter is empty: expected one such as "price < 3 and device_id = 74"', text)
        try:
            expression = _parse(text)
        except ParseException as error:
            raise FilterError(f"the filter {_shown(text)} cannot be read {_unread(text, error)}", text) from error
        except (ValueError, TypeError, RecursionError) as error:
            reason = one_line(error)
            if "BooleanLiteral" in reason:
                reason = f"true and false are whole filters, not parts of one; {_EXPECTED}"
            elif "set_int_max_str_digits" in reason:
                reason = f"a number in it has more than {sys.get_int_max_str_digits():,} digits"
            raise FilterError(f"the filter {_shown(text)} cannot be read: {reason}", text) from error
        _check_size(expression, text)
    elif not isinstance(row_filter, BooleanExpression):
        raise FilterError(
            f"the filter {row_filter!r:.80} is neither text nor an expression of PyIceberg's", str(row_filter)
        )
    else:
        expression = row_filter
        _check_size(expression, type(expression).__name__)
        text = str(expression)
    try:
        expression = _adapt(rewrite_not(expression), schema)
        bind(schema, expression, case_sensitive=True)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise FilterError(_explain(text, error, schema, unreadable), text) from error
    return expression


def _check_length(text: str) -> None:
    commas = text.count(",")
    if len(text) > _MOST_READ or commas > _MOST_COMMAS:
        raise FilterError(
            f"the filter {_shown(text)} has {len(text):,} characters and {commas:,} commas, expected {_MOST_READ:,} "
            f"and {_MOST_COMMAS:,} at most: give an expression, pyiceberg.expressions.In('column', values)",
            text,
        )
    words = sum(found.lastgroup == "word" for found in _WORDS.finditer(text))
    if words > _MOST_WORDS:
        raise FilterError(
            f"the filter {_shown(text)} has {words:,} words and, or, not, brackets and points in names, expected "
            f"{_MOST_WORDS:,} at most: give an expression of pyiceberg.expressions",
            text,
        )


def _parse(text: str) -> BooleanExpression:
    try:
        return _read(text)
    except ParseException:
        # PyIceberg has no letters beyond ASCII in names without quotation marks, no exponents, and its lists have whole
        # numbers, or numbers with a point, and not both.
        named = _OTHER_LETTERS.sub(lambda one: f'"{one[0]}"' if one["name"] else one[0], text)
        plain = _EXPONENT.sub(lambda one: f"{Decimal(one[0]):f}" if one["number"] else one[0], named)
        pointed = _LISTED.sub(lambda one: _WHOLE_NUMBER.sub(r"\g<0>.0", one[0]) if one["list"] else one[0], plain)
        if pointed == text or len(pointed) > 2 * _MOST_READ:
            raise
        return _read(pointed)


def _read(text: str) -> BooleanExpression:
    found: BooleanExpression = _GRAMMAR.parse_string(text, parse_all=True)[0]
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…")


def _check_size(expression: BooleanExpression, text: str) -> None:
    level, values = [expression], 0
    for _ in range(_MOST_LEVELS):
        values += sum(len(one.literals) for one in level if isinstance(one, e.SetPredicate))
        level = [part for one in level if isinstance(one, e.And | e.Or | e.Not) for part in _parts(one)]
    if values > _MOST_VALUES:
        raise FilterError(
            f"the filter {_shown(text)} names {values:,} values, expected {_MOST_VALUES:,} at most: filter by a range",
            text,
        )
    if level:
        raise FilterError(
            f"the filter {_shown(text)} is nested more than {_MOST_LEVELS} levels deep: write it with fewer", text
        )


def _parts(expression: e.And | e.Or | e.Not) -> tuple[BooleanExpression, ...]:
    return (expression.child,) if isinstance(expression, e.Not) else (expression.left, expression.right)


def _unread(text: str, error: ParseException) -> str:
    """Return where PyIceberg's parser ended and what it expects; of a list of text and numbers that it is one."""
    for found in _LIST.finditer(text):
        values = re.findall(r"'[^']*'|[^\s,']+", found[1])
        if len({value.startswith("'") for value in values}) > 1:
            return f"at {found[0]!r:.60}: expected a list of text or of numbers, not of both"
    rest = error.pstr[error.loc :]
    # Of a text with numbers written otherwise.
    offset = text.rfind(rest)
    where = f"{'' if offset < 0 else f'character {offset + 1}, '}{rest[:20]!r}" if rest else "its end"
    return f"at {where}: {_EXPECTED}"


def _explain(text: str, error: Exception, schema: IcebergSchema, unreadable: Mapping[str, str]) -> str:
    message = one_line(error)
    match = re.search(r"Could not find field with name (\S+?),", message)
    if match:
        names, name = ", ".join(field.name for field in schema.fields), match.group(1)
        if kind := unreadable.get(name.partition(".")[0]):
            about = f"the filter {_shown(text)} is about {name!r}, of type {kind}"
            return f"{about}, which cannot be filtered: filter by {names}"
        return f"the filter {_shown(text)} names no column {name!r}: the table has {names}"
    if isinstance(error, InvalidOperation):
        message = "a decimal column is compared with text that is no number"
    return f"the filter {_shown(text)} does not fit the schema: {_reword(message)}"


def _reword(message: str) -> str:
    """Return what PyIceberg says of a value that does not fit its column, with what to give instead."""
    if message.startswith("Could not find accessor"):
        return "values in lists and maps cannot be filtered by; expected top-level columns or fields of structs"
    if _MOMENT_PART.fullmatch(message):
        return f"{message}; give {_EXAMPLES['timestamp']}"
    match = re.fullmatch(r"Cannot convert (\w+)Literal into (.+?)(?:, different length: (\d+) <> (\d+))?", message)
    if match:
        kind, type_text = _KINDS.get(match.group(1), match.group(1)), match.group(2)
        message = f"a column of type {type_text} is compared with {kind}"
        if match.group(3):
            message = f"a column of type {type_text} is compared with {match.group(4)} bytes; give {match.group(3)}"
        elif re.match(r"binary|fixed", type_text):
            message += "; give bytes, in Python: pyiceberg.expressions.EqualTo('column', b'...')"
    match = re.fullmatch(r"Could not convert (.*) into an? (\w+)", message)
    if match:
        value, type_text = match.groups()
        message = f"{value!r:.60} is no {type_text}; give {_EXAMPLES.get(type_text, 'another value')}"
    match = re.fullmatch(r"Invalid timestamp with(out)? zone: (.*) \(must be ISO-8601\)", message, re.DOTALL)
    if match:
        example = _EXAMPLES["timestamp" if match.group(1) else "timestamptz"]
        message = f"{match.group(2)!r:.60} is no time; give {example}"
    return message


def _adapt(expression: BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    if isinstance(expression, e.And):
        return e.And(_adapt(expression.left, schema), _adapt(expression.right, schema))
    if isinstance(expression, e.Or):
        return e.Or(_adapt(expression.left, schema), _adapt(expression.right, schema))
    adapt = _adapter(expression, schema)
    if adapt is not None and isinstance(expression, e.LiteralPredicate):
        value = adapt(_given(expression.literal))
        if isinstance(value, _Beyond):
            return value.compare(expression)
        return type(expression)(expression.term, value)
    if adapt is not None and isinstance(expression, e.SetPredicate):
        values = {adapt(_given(literal)) for literal in expression.literals}
        possible = {value for value in values if not isinstance(value, _Beyond)}
        if isinstance(expression, e.NotIn) and not possible:
            # Not true: as of `!=`, no null is another value.
            return e.NotNull(term=expression.term)
        return type(expression)(expression.term, possible)
    return expression


@dataclass(frozen=True, slots=True)
class _Beyond:
    """A number beyond all finite ones that a column can hold, above or below.

    PyIceberg takes such a literal of a list for the nearest possible value, and one of a comparison for true of nulls.
    """

    is_above: bool
    nearest: Decimal | int | float
    """The column's greatest or least possible value, infinities left out."""

    def compare(self, expression: e.LiteralPredicate) -> BooleanExpression:
        """Return what a comparison with the number says as one with the nearest possible value: of all, or of none."""
        if isinstance(self.nearest, float) and isinstance(expression, e.EqualTo | e.NotEqualTo):
            # Beyond the nearest one there is an infinity.
            return e.AlwaysFalse() if isinstance(expression, e.EqualTo) else e.NotNull(term=expression.term)
        kinds: tuple[type[e.LiteralPredicate], ...] = (e.LessThan, e.LessThanOrEqual, e.GreaterThan)
        if not self.is_above:
            kinds = (e.GreaterThan, e.GreaterThanOrEqual, e.LessThan)
        below, up_to, beyond = kinds
        holds = isinstance(expression, below | up_to | e.NotEqualTo)
        return (up_to if holds else beyond)(expression.term, self.nearest)


def _given(literal: Literal[Any]) -> Any:
    """Return a literal's value; one of days or microseconds stays what it is, as the number alone does not say so."""
    return literal if isinstance(literal, DateLiteral | TimeLiteral | TimestampLiteral) else literal.value


def _adapter(expression: BooleanExpression, schema: IcebergSchema) -> _Adapt | None:
    """Return what literals of the column that is compared have to go through; None for nothing."""
    name = getattr(getattr(expression, "term", None), "name", None)
    try:
        kind = None if name is None else schema.find_field(name).field_type
    except ValueError:
        return None
    adapt = partial(_scaled, kind=kind) if isinstance(kind, t.DecimalType) else _ADAPTERS.get(type(kind))
    if adapt is None:
        return None

    def explained(value: Any) -> Any:
        try:
            return adapt(value)
        except ValueError as error:
            raise ValueError(f"{name} is {kind}, and {error}") from error

    return explained


def _whole(value: Any, bits: int) -> Any:
    number = _number(value)
    if number is None:
        return value
    if number != number.to_integral_value():
        raise ValueError(f"{value} is no whole number")
    least = -(1 << (bits - 1))
    return value if least <= number <= ~least else _Beyond(number > 0, ~least if number > 0 else least)


def _scaled(value: Any, kind: t.DecimalType) -> Any:
    number = _number(value)
    if number is None:
        return value
    if number and number.adjusted() >= kind.precision - kind.scale:
        return _Beyond(number > 0, Decimal((int(number < 0), (9,) * kind.precision, -kind.scale)))
    scaled = number.quantize(Decimal((0, (1,), -kind.scale)), context=_DIGITS)
    if scaled != number:
        raise ValueError(f"{value} has more than {kind.scale} digits behind the point")
    return scaled


def _number(value: Any) -> Decimal | None:
    """Return a finite number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _finite(value: Any, most: float) -> Any:
    # Infinities are values of a column; PyIceberg takes them for numbers beyond all of a float column, and these,
    # of a double column, for infinities.
    if isinstance(value, float) and math.isinf(value):
        return FloatLiteral(value)
    number = _number(value)
    if number is None or abs(number) <= Decimal(most):
        return value
    return _Beyond(number > 0, most if number > 0 else -most)


_DAY_US = 86_400_000_000


def _day(value: Any) -> Any:
    if isinstance(value, TimestampLiteral) and value.value % _DAY_US:
        raise ValueError(f"{value.value:,} microseconds since 1970 are no whole day")
    return _units(value, 32)


def _units(value: Any, bits: int) -> Any:
    """Return days or microseconds that a whole number says."""
    return _whole(value, bits) if isinstance(value, int) else value


def _dated(value: Any) -> Any:
    if isinstance(value, DateLiteral):
        return TimestampLiteral(value.value * _DAY_US)
    if not isinstance(value, str):
        return _units(value, 64)
    moment = value.strip()
    if not _DATE.match(moment):
        return value
    return moment.replace(" ", "T") if len(moment) > len("2026-09-10") else f"{moment}T00:00:00"


def _timed(value: Any) -> Any:
    # PyIceberg reads no zone and no more digits, and says nothing of them.
    if isinstance(value, str) and _BEYOND_TIME.match(value):
        raise ValueError(f"{value} has a zone or more than 6 digits of a second")
    return _units(value, 64)


def _zoned(value: Any) -> Any:
    moment = _dated(value)
    if not isinstance(moment, str) or not _DATE.match(moment):
        return moment
    # PyIceberg reads no Z.
    return re.sub(r"[zZ]$", "+00:00", moment) if _ZONED.search(moment[10:]) else f"{moment}+00:00"


_MOMENT = re.compile(
    r"(?P<seconds>\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?)(\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LEAST, _MOST = -(2**63), 2**63 - 1


class _NanosecondLiteral(TimestampLiteral):
    """Nanoseconds since 1970; projecting to partitions asks for a TimestampLiteral."""

    @model_serializer
    def ser_model(self) -> str:
        """Return the nanoseconds as text."""
        return str(self.root)

    def increment(self) -> Literal[int]:
        """Return the next nanosecond."""
        return _NanosecondLiteral(self.value + 1)

    def decrement(self) -> Literal[int]:
        """Return the nanosecond before."""
        return _NanosecondLiteral(self.value - 1)

    def to(self, type_var: t.IcebergType) -> Literal[Any]:
        """Return the literal for a column of nanoseconds."""
        if isinstance(type_var, t.TimestampNanoType | t.TimestamptzNanoType):
            return self
        raise TypeError(f"Cannot convert NanosecondLiteral into {type_var}")


def _read_nanoseconds(value: Any, *, zoned: bool) -> _NanosecondLiteral:
    """Return what a column of nanosecond timestamps is compared with.

    Parameters
    ----------
    value : str, int, or pyiceberg.expressions.literals.TimestampLiteral or DateLiteral
        ISO 8601 with at most nine digits of a second; whole nanoseconds since 1970; or PyIceberg's literal of
        microseconds or days, which Python's `datetime` and `date` become.
    zoned : bool
        Whether the column has a zone: text without one is UTC then; otherwise text may name none.

    Raises
    ------
    ValueError
        It is none of these, or beyond 64 bits of nanoseconds: the years 1677 to 2262.

    Examples
    --------
    >>> _read_nanoseconds("1970-01-01 00:00:01.000000002", zoned=False).value
    1000000002
    """
    if isinstance(value, _NanosecondLiteral):
        return value
    value = _dated(value) if isinstance(value, DateLiteral) else value
    if isinstance(value, TimestampLiteral):
        found = value.value * 1000
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    else:
        found = _read_text(value, zoned=zoned)
    if not _LEAST <= found <= _MOST:
        raise ValueError(f"{value} is beyond nanoseconds of 64 bits, which end in 1677 and 2262")
    return _NanosecondLiteral(found)


def _read_text(value: Any, *, zoned: bool) -> int:
    expected = "expected a moment such as '2026-09-10T12:00:00.000000001', or whole nanoseconds since 1970"
    match = _MOMENT.fullmatch(value.strip().replace(" ", "T").upper()) if isinstance(value, str) else None
    if match is None or (match["fraction"] and match["seconds"].count(":") < 2):
        raise ValueError(f"{value} is none: {expected}")
    if match["zone"] and not zoned:
        raise ValueError(f"{value} names a zone, which its values have none of")
    try:
        moment = dt.datetime.fromisoformat(match["seconds"] + (match["zone"] or "Z" if "T" in match["seconds"] else ""))
    except ValueError as error:
        raise ValueError(f"{value} is none: {expected}") from error
    whole = (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)) - _EPOCH
    seconds = whole.days * 86_400 + whole.seconds
    return seconds * 1_000_000_000 + int((match["fraction"] or "").ljust(9, "0"))


_ADAPTERS: dict[type, _Adapt] = {
    t.IntegerType: partial(_whole, bits=32),
    t.LongType: partial(_whole, bits=64),
    t.FloatType: partial(_finite, most=t.FloatType.max),
    t.DoubleType: partial(_finite, most=sys.float_info.max),
    t.DateType: _day,
    t.TimeType: _timed,
    t.TimestampType: _dated,
    t.TimestamptzType: _zoned,
    t.TimestampNanoType: partial(_read_nanoseconds, zoned=False),
    t.TimestamptzNanoType: partial(_read_nanoseconds, zoned=True),
}
