"""Values of a column, and of a partition field, as positions on an axis, and back."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from icestats.errors import CallError
from icestats.iceberg.types import json_value, parse_type, to_integer

MS_A_DAY = 86_400_000
MS_AN_HOUR = 3_600_000
_LONGEST_YEAR = 9_999

_DISCRETE = frozenset({"int", "long", "date", "boolean"})


def is_time_type(type_text: str) -> bool:
    """Return whether values of an Iceberg type belong on a time axis.

    Examples
    --------
    >>> is_time_type("timestamptz"), is_time_type("long")
    (True, False)
    """
    kind = parse_type(type_text)
    return kind.is_timestamp or kind.name in ("date", "time")


def axis_position(type_text: str, value: Any) -> float:
    """Return a value's position: milliseconds since 1970 on a time axis, the number itself on any other.

    Examples
    --------
    >>> import datetime
    >>> axis_position("date", datetime.date(1970, 1, 2))
    86400000.0
    """
    kind = parse_type(type_text)
    if kind.name == "date":
        return float(to_integer(value)) * MS_A_DAY
    if kind.name.endswith("_ns"):
        return float(value / 1_000_000)
    if is_time_type(type_text):
        return to_integer(value) / 1000
    return float(value)


def value_label(type_text: str, value: Any) -> str:
    """Return a value as readable text. Integers never pass through a float, so 64-bit integers stay exact.

    Examples
    --------
    >>> value_label("double", 0.1 + 0.2), value_label("long", 9007199254740993), value_label("int", 2013)
    ('0.3', '9,007,199,254,740,993', '2013')
    >>> value_label("double", -0.0), value_label("decimal(9, 2)", Decimal("15411.00"))
    ('0', '15,411.00')
    """
    if isinstance(value, float):
        # Writers store a smallest value of 0 as -0.0, as Parquet asks for.
        return f"{value + 0.0:,.6g}" if math.isfinite(value) else str(json_value("double", value))
    kind = parse_type(type_text)
    if kind.name == "decimal" and isinstance(value, Decimal):
        return f"{value:,f}"
    if isinstance(value, int) and kind.name in ("int", "long") and abs(value) > _LONGEST_YEAR:
        return f"{value:,}"
    text = str(json_value(type_text, value))
    return text.replace("T", " ", 1).replace("+00:00", " UTC") if kind.is_timestamp else text


def brief_label(type_text: str, value: Any) -> str:
    """Return a value as `value_label` does, with times truncated to the second.

    Examples
    --------
    >>> import datetime
    >>> brief_label("timestamp", datetime.datetime(2026, 9, 1, 12, 0, 0, 5))
    '2026-09-01 12:00:00'
    """
    text = value_label(type_text, value)
    return text.partition(".")[0] if parse_type(type_text).is_timestamp else text


def typed_position(type_text: str, text: str) -> float:
    """Return the position of a value that a person typed: a number, or a date with or without a time.

    Raises
    ------
    CallError
        The text is neither.

    Examples
    --------
    >>> typed_position("date", "1970-01-02"), typed_position("double", "1e3")
    (86400000.0, 1000.0)
    """
    text = text.strip().replace(",", "").removesuffix(" UTC")
    kind = parse_type(type_text)
    try:
        if kind.name == "time":
            moment = dt.datetime.combine(dt.date(1970, 1, 1), dt.time.fromisoformat(text), dt.UTC)
        elif is_time_type(type_text):
            moment = dt.datetime.fromisoformat(text)
        else:
            return float(text)
    except ValueError:
        wanted = "a date like 2026-09-01 or a time like 2026-09-01 12:00" if is_time_type(type_text) else "a number"
        raise CallError(f"{text!r} is no value of type {type_text}; type {wanted}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp() * 1000


def is_time_transform(transform: str, type_text: str) -> bool:
    """Return whether values of a partition field belong on a time axis."""
    return transform in ("year", "month", "day", "hour") or is_time_type(type_text)


def key_interval(transform: str, type_text: str, lower: float, upper: float) -> tuple[float, float] | None:
    """Return where the keys from `lower` to `upper` lie on the axis; None if no calendar has such a time.

    A whole-numbered key is one unit wide: a day, a month, a bucket. Any other one is as wide as it takes to overlap
    with itself.

    Parameters
    ----------
    transform : str
        The partition field's transform.
    type_text : str
        The Iceberg type of its values.
    lower, upper : float
        The keys as Iceberg stores them: days, months, micros, bucket numbers.

    Examples
    --------
    >>> key_interval("bucket[4]", "int", 1, 2)
    (0.5, 2.5)
    >>> key_interval("day", "date", 0, 0)
    (0.0, 86400000.0)
    """
    if transform in ("year", "month"):
        start, end = _month(lower, transform), _month(upper + 1, transform)
        return None if start is None or end is None else (start, end)
    if transform == "hour":
        return float(lower * MS_AN_HOUR), float((upper + 1) * MS_AN_HOUR)
    name = parse_type(type_text).name
    if name == "date":
        return float(lower * MS_A_DAY), float((upper + 1) * MS_A_DAY)
    if is_time_type(type_text):
        scale = 1_000_000 if name.endswith("_ns") else 1000
        lower, upper = lower / scale, upper / scale
    half = 0.5 if name in _DISCRETE else 0.0
    return lower - half, max(upper + half, math.nextafter(upper, math.inf))


def _month(key: float, transform: str) -> float | None:
    months = int(key) * (12 if transform == "year" else 1)
    year, month = 1970 + months // 12, months % 12 + 1
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return float(to_integer(dt.date(year, month, 1)) * MS_A_DAY)
