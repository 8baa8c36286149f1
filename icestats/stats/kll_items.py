"""The values of a column as the items of its KLL sketch, and back."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Context, Decimal
from typing import Any

import numpy as np

from icestats.errors import CallError
from icestats.iceberg.types import MAX_LONG_PRECISION, PrimitiveType, decode_value, parse_type, to_integer

_LONGS = frozenset({"boolean", "int", "long", "date", "time"})
_WIDE = Context(prec=80)
_BEYOND = 1 << 256
"""More than a number of any type, and its unscaled value."""
_FINER = re.compile(r"[.,]\d{6}(\d+)")
_CLASSES: dict[str, type[dt.date | dt.time]] = {"date": dt.date, "time": dt.time}


def item_type_of(type_text: str) -> str | None:
    """Return how a KLL sketch stores the values of an Iceberg type; None if the type has no KLL sketch.

    `double` for float and double; `long` for int, long, dates, times and timestamps (the integer that Iceberg stores),
    booleans (0, 1) and decimals of up to 18 digits (the unscaled value); `decimal` for longer decimals (the unscaled
    value); `string` for strings. uuid, fixed and binary have none, as their order has no meaning.

    Examples
    --------
    >>> item_type_of("timestamptz"), item_type_of("decimal(38, 2)"), item_type_of("uuid")
    ('long', 'decimal', None)
    """
    kind = parse_type(type_text)
    if kind.name in _LONGS or kind.is_timestamp or (kind.name == "decimal" and kind.precision <= MAX_LONG_PRECISION):
        return "long"
    return {"float": "double", "double": "double", "string": "string", "decimal": "decimal"}.get(kind.name)


def to_item(type_text: str, value: Any) -> Any:
    """Return a value of a column as an item of its KLL sketch. Text is parsed as the column's type.

    Parameters
    ----------
    type_text : str
        The Iceberg type of the column.
    value : object
        A value of the column's Python type, or its text: numbers, true and false, and ISO 8601 for dates and times (UTC
        if there is no zone; a date alone is its midnight). Nanosecond timestamps, and dates and times that Python
        cannot hold, can also be given as integers.

    Raises
    ------
    CallError
        The value is not of that type.

    Examples
    --------
    >>> to_item("date", "1970-01-11"), to_item("decimal(9, 2)", "1.5"), to_item("double", "3")
    (10, 150, 3.0)
    """
    kind = parse_type(type_text)
    try:
        return _convert(kind, value)
    except (ValueError, TypeError, ArithmeticError) as error:
        expected = f"expected one such as {_example(kind)}"
        raise CallError(f"{value!r} is not a value of type {type_text}: {expected}") from error


def item_value(type_text: str, item: Any) -> Any:
    """Return an item of a KLL sketch as a value of its column: date, time, datetime, Decimal, bool, int, float or str.

    Raises
    ------
    CallError
        The item cannot be from a column of that type.

    Examples
    --------
    >>> item_value("decimal(9, 2)", 150), item_value("date", 1)
    (Decimal('1.50'), datetime.date(1970, 1, 2))
    """
    kind = parse_type(type_text)
    expected = str if kind.name == "string" else float if kind.name in ("float", "double") else int
    if not isinstance(item, expected):
        raise CallError(f"a sketch with the item {item!r} is not from a column of type {type_text}")
    if kind.name == "boolean":
        return bool(item)
    if kind.name == "decimal":
        return Decimal(item).scaleb(-kind.scale, _WIDE)
    if kind.is_timestamp or kind.name in ("date", "time"):
        return _time_value(type_text, item, 4 if kind.name == "date" else 8)
    return item


def item_beside(type_text: str, item: Any, way: int) -> Any:
    """Return the item of the next value of a column of numbers or times, or with -1 of the last one before.

    Examples
    --------
    >>> item_beside("decimal(9, 2)", 150, 1), item_beside("double", 1.0, 1), item_beside("float", 1.0, -1)
    (151, 1.0000000000000002, 0.9999999403953552)
    """
    kind = parse_type(type_text).name
    if kind == "float":
        # Beside the greatest is infinity, beside zero the least above it.
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(np.float32(item), np.float32(way * np.inf)))
    return math.nextafter(item, way * math.inf) if kind == "double" else item + way


def _time_value(type_text: str, item: Any, size: int) -> Any:
    try:
        return decode_value(type_text, item.to_bytes(size, "little", signed=True))
    except (OverflowError, ValueError):
        return item


def _convert(kind: PrimitiveType, value: Any) -> Any:
    if kind.name == "string":
        if not isinstance(value, str):
            raise TypeError("text")
        return value
    if kind.name in ("float", "double"):
        number = float(value)
        with np.errstate(over="ignore", under="ignore"):
            found = float(np.float32(number)) if kind.name == "float" else number
        if math.isnan(number) or math.isinf(found) > math.isinf(number):
            raise ValueError("NaN has no order, and beyond its numbers a float is infinite")
        return found
    if kind.name == "decimal":
        return _whole(Decimal(str(value)).scaleb(kind.scale, _WIDE))
    if kind.name == "boolean":
        return ("false", "true", "0", "1").index(str(value).lower()) % 2
    if isinstance(value, str) and kind.name in ("int", "long"):
        return int(value)
    return _convert_whole(kind, value)


def _convert_whole(kind: PrimitiveType, value: Any) -> int:
    finer = ""
    if isinstance(value, str):
        # Python leaves out what is finer than microseconds.
        finer = "".join(_FINER.findall(value)).rstrip("0")
        value = _parse_time(kind, value)
    found = next((one for one in (dt.datetime, dt.date, dt.time) if isinstance(value, one)), None)
    if found is None:
        return _whole(value)
    if found is dt.date and kind.is_timestamp:
        value, found = dt.datetime.combine(value, dt.time()), dt.datetime
    if found is not (dt.datetime if kind.is_timestamp else _CLASSES.get(kind.name)):
        raise TypeError("a date or time of another type")
    is_ns = kind.name.endswith("_ns")
    if len(finer) > 3 * is_ns or (found is dt.time and value.tzinfo is not None):
        raise ValueError("more than the type holds")
    return to_integer(value) * (1_000 if is_ns else 1) + int(finer.ljust(3, "0"))


def _whole(number: Decimal | float) -> int:
    # Python makes any number of digits of an exponent.
    if not -_BEYOND < number < _BEYOND or number != int(number):
        raise ValueError("between two values of the type")
    return int(number)


def _parse_time(kind: PrimitiveType, text: str) -> Any:
    try:
        return _CLASSES.get(kind.name, dt.datetime).fromisoformat(text)
    except ValueError:
        return int(text)


def _example(kind: PrimitiveType) -> str:
    if kind.is_timestamp:
        return "2026-09-01T10:00:00"
    return {"boolean": "true", "date": "2026-09-01", "time": "10:00:00", "string": "text"}.get(kind.name, "1")
