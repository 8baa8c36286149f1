"""The whole numbers by which Arrow keeps decimals, dates, times and timestamps."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

_EPOCH, _DAY = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.date(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_PER_MICROSECOND = {"s": (1, 10**6), "ms": (1, 1000), "us": (1, 1), "ns": (1000, 1)}


def unscaled_number(value: int | Decimal, precision: int, scale: int) -> int:
    """Return a decimal's unscaled value.

    Raises
    ------
    ValueError
        The value does not fit the precision and scale.

    Examples
    --------
    >>> unscaled_number(Decimal("-1.5"), 5, 2)
    -150
    """
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no number")
    places: int = exponent + scale
    number = int("".join(map(str, digits)))
    unscaled, rest = divmod(number * int(10 ** max(places, 0)), int(10 ** max(-places, 0)))
    if rest or unscaled >= 10**precision:
        raise ValueError(f"{value} is no decimal({precision}, {scale})")
    return -unscaled if sign else unscaled


def time_number(value: Any, unit: str | None) -> Any:
    """Return what a timestamp or time counts in its unit ("s", "ms", "us", "ns"), a date, whose unit is None, in days.

    Parameters
    ----------
    value : datetime.datetime, datetime.date, datetime.time or int
        A datetime without a zone is of UTC. Any other value is taken as the number.
    unit : str or None
        Arrow's name of the unit.

    Raises
    ------
    ValueError
        The value is finer than the unit.

    Examples
    --------
    >>> time_number(dt.date(1970, 1, 3), None), time_number(dt.time(0, 0, 1), "ms")
    (2, 1000)
    """
    if unit is None:
        day = value.date() if isinstance(value, dt.datetime) else value
        return (day - _DAY).days if isinstance(day, dt.date) else day
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        micros = (moment - _EPOCH) // _MICROSECOND
    elif isinstance(value, dt.time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    else:
        return value
    times, over = _PER_MICROSECOND[unit]
    number, rest = divmod(micros * times, over)
    if rest:
        raise ValueError(f"{value} is finer than {unit}")
    return number
