"""Times of partition fields, counted in hours, days, months or years, and how they lie in a calendar."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np

from icestats.iceberg.partition_columns import display_partition_value

_EPOCH = dt.date(1970, 1, 1)
_FIRST_MONDAY = -3
"""The day, counted from 1970-01-01, a Thursday, on which its week began."""
COARSER = {
    "hour": ("day", "month", "year", "decade"),
    "day": ("week", "month", "year", "decade"),
    "month": ("year", "decade"),
    "year": ("decade",),
}
"""The units in which times of a unit are grouped, the finest first."""
_CODES = {"hour": "h", "day": "D", "month": "M", "year": "Y"}
LONGEST_YEARS = 400
"""Times further apart are not drawn in a calendar."""


@dataclass(frozen=True)
class Calendar:
    """How the times of a unit lie on a page: periods across, their parts down."""

    unit: str
    rows: tuple[str, ...]
    title: str
    offset: int
    """The number of a first row."""
    least: int
    """Fewer times than this are drawn as bars."""

    def place(self, number: int) -> tuple[int, int]:
        """Return the period of a time, and its row."""
        return divmod(number - self.offset, len(self.rows))

    def number(self, period: int, row: int) -> int:
        """Return the time at a place."""
        return period * len(self.rows) + row + self.offset


CALENDARS = {
    "hour": Calendar("hour", tuple(f"{hour:02}:00" for hour in range(24)), "days", 0, 36),
    "day": Calendar("day", ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), "weeks from Monday", _FIRST_MONDAY, 14),
    "month": Calendar(
        "month",
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
        "years",
        0,
        24,
    ),
    "year": Calendar("year", tuple(f"…{digit}" for digit in range(10)), "decades", -1970 % 10 - 10, 24),
}
"""By unit."""


def time_unit(transform: str, type_text: str) -> str | None:
    """Return the unit in which a partition field counts times; None if its values are no times of a calendar.

    Examples
    --------
    >>> time_unit("hour", "int"), time_unit("identity", "date"), time_unit("bucket[4]", "int")
    ('hour', 'day', None)
    """
    if transform in _CODES:
        return transform
    return "day" if transform == "identity" and type_text == "date" else None


def count_time(value: Any) -> int:
    """Return a time as a number, from 1970 on."""
    return (value - _EPOCH).days if isinstance(value, dt.date) else int(value)


def time_value(unit: str, number: int) -> Any:
    """Return a number of a unit as a partition has it: a date for days."""
    if unit != "day":
        return number
    days = max(min(number, (dt.date.max - _EPOCH).days), (dt.date.min - _EPOCH).days)
    return _EPOCH + dt.timedelta(days=days)


def convert_time(number: int, unit: str, coarser: str) -> int:
    """Return the number of the coarser unit that a time lies in.

    Examples
    --------
    >>> convert_time(31, "day", "month"), convert_time(-1, "hour", "day"), convert_time(4, "day", "week")
    (1, -1, 1)
    """
    if coarser == unit:
        return number
    if coarser == "decade":
        return (convert_time(number, unit, "year") + 1970) // 10
    if unit != "day":
        return number // 12 if unit == "month" else convert_time(number // 24, "day", coarser)
    if coarser == "week":
        return (number - _FIRST_MONDAY) // 7
    date = time_value("day", number)
    return int(date.year - 1970 if coarser == "year" else (date.year - 1970) * 12 + date.month - 1)


def first_time(number: int, unit: str, coarser: str) -> int:
    """Return the first time of a unit that lies in a number of the coarser one.

    Examples
    --------
    >>> first_time(1, "day", "month"), first_time(0, "day", "week")
    (31, -3)
    """
    if coarser == unit:
        return number
    if coarser == "week":
        return number * 7 + _FIRST_MONDAY
    if coarser == "decade":
        return first_time(number * 10 - 1970, unit, "year")
    code: Any = _CODES[coarser]
    return int(np.datetime64(number, code).astype(f"datetime64[{_CODES[unit]}]").astype(np.int64))


def time_label(number: int, unit: str) -> str:
    """Return a number of a unit as readable text.

    Examples
    --------
    >>> time_label(1, "month"), time_label(0, "week"), time_label(201, "decade"), time_label(0, "hour")
    ('1970-02', 'week of 1969-12-29', '2010s', '1970-01-01T00')
    """
    if unit == "week":
        return f"week of {time_value('day', first_time(number, 'day', 'week'))}"
    if unit == "decade":
        return f"{number * 10}s"
    return display_partition_value(unit, "date" if unit == "day" else "int", time_value(unit, number))
