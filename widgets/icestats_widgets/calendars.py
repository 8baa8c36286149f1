"""Times in a calendar: days in weeks, hours in days, months in years."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from icestats.iceberg.partition_columns import display_partition_value

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class Calendar:
    """A page of a calendar: periods across, their parts down. Times are counted from 1970."""

    start: int
    """The first period."""
    period_count: int
    rows: tuple[str, ...]
    """The names of a period's parts."""
    title: str
    transform: str
    offset: int
    """The number of the first row of period 0."""

    @property
    def shape(self) -> tuple[int, int]:
        """Periods across, and rows down."""
        return self.period_count, len(self.rows)

    def place(self, value: Any) -> tuple[int, int] | None:
        """Return where a time lies, across and down; None if it is outside."""
        period, row = divmod(_number(value) - self.offset, len(self.rows))
        return (period - self.start, row) if 0 <= period - self.start < self.period_count else None

    def value_at(self, across: int, down: int) -> Any:
        """Return the time at a place."""
        number = (self.start + across) * len(self.rows) + down + self.offset
        return _EPOCH + dt.timedelta(days=number) if self.transform == "day" else number

    def label(self, across: int) -> str:
        """Return the name of a period."""
        text = display_partition_value(
            self.transform, "date" if self.transform == "day" else "int", self.value_at(across, 0)
        )
        return {"hour": text[:10], "month": text[:4]}.get(self.transform, text)


@dataclass(frozen=True)
class CalendarKind:
    """How the times of a transform form a calendar."""

    transform: str
    rows: tuple[str, ...]
    title: str
    offset: int
    least: int
    """Fewer times than this are drawn as bars."""

    def of(self, first: Any, last: Any) -> Calendar | None:
        """Return the calendar from a first to a last time; None if it would be too short."""
        numbers = _number(first), _number(last)
        if numbers[1] - numbers[0] < self.least:
            return None
        periods = [(number - self.offset) // len(self.rows) for number in numbers]
        return Calendar(periods[0], periods[1] - periods[0] + 1, self.rows, self.title, self.transform, self.offset)


def _number(value: Any) -> int:
    return (value - _EPOCH).days if isinstance(value, dt.date) else int(value)


_hours: Callable[[int], str] = "{:02d}:00".format
CALENDARS = {
    # 1970-01-01 was a Thursday: the week before it began on day -3.
    "day": CalendarKind("day", _WEEKDAYS, "weeks from Monday", -3, 14),
    "hour": CalendarKind("hour", tuple(_hours(hour) for hour in range(24)), "days", 0, 36),
    "month": CalendarKind("month", _MONTHS, "years", 0, 24),
}
"""By transform."""
