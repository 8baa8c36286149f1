"""Literals of nanosecond timestamps, which PyIceberg 0.12 has columns of, and transforms, but no literals."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from pydantic import model_serializer
from pyiceberg.expressions.literals import Literal, TimestampLiteral
from pyiceberg.types import IcebergType, TimestampNanoType, TimestamptzNanoType

_MOMENT = re.compile(
    r"(?P<seconds>\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?)(\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LEAST, _MOST = -(2**63), 2**63 - 1


class NanosecondLiteral(TimestampLiteral):
    """Nanoseconds since 1970; projecting to partitions asks for a TimestampLiteral."""

    @model_serializer
    def ser_model(self) -> str:
        """Return the nanoseconds as text."""
        return str(self.root)

    def increment(self) -> Literal[int]:
        """Return the next nanosecond."""
        return NanosecondLiteral(self.value + 1)

    def decrement(self) -> Literal[int]:
        """Return the nanosecond before."""
        return NanosecondLiteral(self.value - 1)

    def to(self, type_var: IcebergType) -> Literal[Any]:
        """Return the literal for a column of nanoseconds."""
        if isinstance(type_var, TimestampNanoType | TimestamptzNanoType):
            return self
        raise TypeError(f"Cannot convert NanosecondLiteral into {type_var}")


def read_nanoseconds(value: Any, *, zoned: bool) -> NanosecondLiteral:
    """Return what a column of nanosecond timestamps is compared with.

    Parameters
    ----------
    value : str, int, or pyiceberg.expressions.literals.TimestampLiteral
        ISO 8601 with at most nine digits of a second; whole nanoseconds since 1970; or PyIceberg's literal of
        microseconds, which Python's `datetime` becomes.
    zoned : bool
        Whether the column has a zone: text without one is UTC then; otherwise text may name none.

    Raises
    ------
    ValueError
        It is none of these, or beyond 64 bits of nanoseconds: the years 1677 to 2262.

    Examples
    --------
    >>> read_nanoseconds("1970-01-01 00:00:01.000000002", zoned=False).value
    1000000002
    """
    if isinstance(value, NanosecondLiteral):
        return value
    if isinstance(value, TimestampLiteral):
        found = value.value * 1000
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    else:
        found = _read_text(value, zoned=zoned)
    if not _LEAST <= found <= _MOST:
        raise ValueError(f"{value} is beyond nanoseconds of 64 bits, which end in 1677 and 2262")
    return NanosecondLiteral(found)


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
