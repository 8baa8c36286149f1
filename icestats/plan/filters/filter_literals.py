"""Literals of a filter as their column's type has them: never rounded, zones and dates filled in.

PyIceberg cuts 74.5 to 74 for a column of whole numbers and rounds a float for a decimal column, which changes what a
filter asks for; and it wants every digit of a decimal and every part of a timestamp.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

Adapt = Callable[[Any], Any]
_ZONED = re.compile(r"(Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIGITS = Context(prec=100)


def find_adapter(iceberg_type: IcebergType) -> Adapt | None:
    """Return what literals go through that a column of a type is compared with; None for nothing.

    Parameters
    ----------
    iceberg_type : pyiceberg.types.IcebergType
        The column's type.

    Returns
    -------
    callable or None
        Gives the literal that PyIceberg binds as it was meant. Raises ValueError, with what is wrong, for one that no
        value of the type is equal to.

    Examples
    --------
    >>> from pyiceberg.types import DecimalType, TimestamptzType
    >>> find_adapter(DecimalType(9, 2))("5.1"), find_adapter(TimestamptzType())("2026-09-10")
    (Decimal('5.10'), '2026-09-10T00:00:00+00:00')
    """
    from pyiceberg import types as t

    if isinstance(iceberg_type, t.DecimalType):
        return partial(_scaled, scale=iceberg_type.scale)
    adapters: dict[type, Adapt] = {
        t.IntegerType: _whole,
        t.LongType: _whole,
        t.FloatType: _infinite,
        t.TimestampType: _dated,
        t.TimestamptzType: _zoned,
        t.TimestampNanoType: partial(_nanoseconds, zoned=False),
        t.TimestamptzNanoType: partial(_nanoseconds, zoned=True),
    }
    return adapters.get(type(iceberg_type))


def _nanoseconds(value: Any, zoned: bool) -> Any:
    from icestats.plan.filters.nanosecond_literal import read_nanoseconds

    return read_nanoseconds(value, zoned=zoned)


def _whole(value: Any) -> Any:
    number = _number(value)
    if number is not None and number != number.to_integral_value():
        raise ValueError(f"{value} is no whole number")
    return value


def _scaled(value: Any, scale: int) -> Any:
    number = _number(value)
    if number is None:
        return value
    try:
        scaled = number.quantize(Decimal((0, (1,), -scale)), context=_DIGITS)
    except InvalidOperation:
        return value
    if scaled != number:
        raise ValueError(f"{value} has more than {scale} digits behind the point")
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


def _infinite(value: Any) -> Any:
    from pyiceberg.expressions.literals import FloatLiteral

    # Infinities are values of a float column; PyIceberg takes them for numbers beyond all of its values.
    return FloatLiteral(value) if isinstance(value, float) and math.isinf(value) else value


def _dated(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    moment = value.strip()
    if not _DATE.match(moment):
        return value
    return moment.replace(" ", "T") if len(moment) > len("2026-09-10") else f"{moment}T00:00:00"


def _zoned(value: Any) -> Any:
    moment = _dated(value)
    if not isinstance(moment, str) or not _DATE.match(moment):
        return moment
    # PyIceberg reads no Z.
    return re.sub(r"[zZ]$", "+00:00", moment) if _ZONED.search(moment[10:]) else f"{moment}+00:00"
