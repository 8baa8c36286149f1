"""The part of a column's range that a histogram is drawn of, as items of its sketch."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, InvalidOperation
from typing import Any

from icestats.errors import CallError
from icestats.iceberg.types import PrimitiveType, parse_type, to_integer


def to_item(type_text: str, value: Any) -> Any:
    """Return a value of a column as its KLL sketch keeps it; text is read as the column's type.

    Parameters
    ----------
    type_text : str
        Iceberg's type of the column.
    value : object
        A value in the column's Python type, or its text: numbers, ISO 8601 for dates and times (UTC where a zone is
        missing). For nanosecond timestamps and times beyond Python's years also the integer.

    Raises
    ------
    CallError
        The value is not one of that type.

    Examples
    --------
    >>> to_item("date", "1970-01-11"), to_item("decimal(9, 2)", "1.5"), to_item("double", "3")
    (10, 150, 3.0)
    """
    kind = parse_type(type_text)
    try:
        return _convert(kind, value)
    except (ValueError, TypeError, InvalidOperation, OverflowError) as error:
        raise CallError(f"{value!r} is no value of type {type_text}: expected one such as {_example(kind)}") from error


def _convert(kind: PrimitiveType, value: Any) -> Any:
    if kind.name == "string":
        if not isinstance(value, str):
            raise TypeError("text")
        return value
    if kind.name in ("float", "double"):
        number = float(value)
        if math.isnan(number):
            raise ValueError("NaN has no place in an order")
        return number
    if kind.name == "decimal":
        return _whole(Decimal(str(value)).scaleb(kind.scale))
    if isinstance(value, str) and (kind.is_timestamp or kind.name in ("date", "time")):
        value = _parse_time(kind, value)
    if isinstance(value, dt.datetime) and kind.name.endswith("_ns"):
        return to_integer(value) * 1_000
    return _whole(value) if isinstance(value, float) else to_integer(value)


def _whole(number: Decimal | float) -> int:
    if number != int(number):
        raise ValueError("between two values of the type")
    return int(number)


def _parse_time(kind: PrimitiveType, text: str) -> Any:
    if kind.name == "date":
        return dt.date.fromisoformat(text)
    if kind.name == "time":
        return dt.time.fromisoformat(text)
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _example(kind: PrimitiveType) -> str:
    if kind.is_timestamp:
        return "2026-09-01T10:00:00"
    return {"date": "2026-09-01", "time": "10:00:00", "string": "text"}.get(kind.name, "1")
