"""Iceberg's primitive types: their single values as bytes, Python objects, Arrow and JSON.

Source: Iceberg spec, "Primitive Types", "Schema Evolution" (promotions) and "Appendix D: Single-value serialization".
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

_PARAMETRIC = re.compile(r"^(decimal)\(\s*(\d+)\s*,\s*(\d+)\s*\)$|^(fixed)\[\s*(\d+)\s*\]$")
TIMESTAMPS = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_UNORDERED = frozenset({"unknown", "variant", "geometry", "geography"})
_SIMPLE = TIMESTAMPS | _UNORDERED
_SIMPLE |= {"boolean", "int", "long", "float", "double", "date", "time", "string", "uuid", "binary"}
_EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_UNSCALED = Context(prec=80)
MICROS_A_DAY = 86_400_000_000
MICROS_AN_HOUR = MICROS_A_DAY // 24
LEAST_WRAPPED_HOUR = (1 << 32) - 1 - (1 << 63) // MICROS_AN_HOUR
"""Hours of a partition from here on, and from below its negative down, may be of times whose hour is no int: writers
wrap it. An int ends in the year 246,953; microseconds in a long go on to the year 294,247."""
UNITS_A_DAY = {
    "date": 1,
    "timestamp": MICROS_A_DAY,
    "timestamptz": MICROS_A_DAY,
    "timestamp_ns": MICROS_A_DAY * 1_000,
    "timestamptz_ns": MICROS_A_DAY * 1_000,
}
"""What a value of a type counts, as how many of it a day has."""
MAX_LONG_PRECISION = 18
"""The unscaled value of a decimal of up to this precision fits in a 64-bit integer."""
MAX_PRECISION = 38
MAX_DECIMAL_SIZE = 16
"""Bytes of the unscaled value of such a decimal."""
MAX_FIXED_LENGTH = 1 << 16
"""Longest type fixed that is read: in memory a null takes as many bytes as a value."""
WIDTHS = {
    "boolean": (1,), "int": (4,), "long": (8, 4), "date": (4,), "time": (8,), "timestamp": (8, 4),
    "timestamptz": (8,), "timestamp_ns": (8, 4), "timestamptz_ns": (8,), "float": (4,), "double": (8, 4),
    "uuid": (16,),
}  # fmt: skip
"""How many bytes a single value has: as the type has it, then as those have it that may be promoted to the type."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type and its parameters."""

    name: str
    precision: int = 0
    scale: int = 0
    length: int = 0

    @property
    def is_timestamp(self) -> bool:
        """Whether values are points in time."""
        return self.name in TIMESTAMPS

    @property
    def is_orderable(self) -> bool:
        """Whether Iceberg keeps bounds for the type."""
        return self.name not in _UNORDERED


@lru_cache(maxsize=1_024)
def parse_type(text: str) -> PrimitiveType:
    """Return a primitive type from Iceberg's text.

    Raises
    ------
    ValueError
        The spec has no such primitive type.

    Examples
    --------
    >>> parse_type("decimal(9,2)")
    PrimitiveType(name='decimal', precision=9, scale=2, length=0)
    """
    match = _PARAMETRIC.match(text)
    if match is not None:
        if match.group(1):
            precision, scale = int(match.group(2)), int(match.group(3))
            if not (0 < precision <= MAX_PRECISION and scale <= precision):
                raise ValueError(f"{text:.40}: expected 1 to {MAX_PRECISION} digits, and no more after the point")
            return PrimitiveType("decimal", precision=precision, scale=scale)
        length = int(match.group(5))
        if not 0 < length <= MAX_FIXED_LENGTH:
            raise ValueError(f"{text:.40}: expected 1 to {MAX_FIXED_LENGTH:,} bytes")
        return PrimitiveType("fixed", length=length)
    base = text.partition("(")[0]
    if base not in _SIMPLE:
        raise ValueError(f"{text!r} is not a primitive type of the Iceberg spec")
    return PrimitiveType(base)


def spell_type(text: str) -> str:
    """Return a primitive type's text as Java and PyIceberg spell it, so that equal types have equal texts.

    Raises
    ------
    ValueError
        The spec has no such primitive type.

    Examples
    --------
    >>> spell_type("decimal(9,2)"), spell_type("fixed[ 16 ]"), spell_type("long")
    ('decimal(9, 2)', 'fixed[16]', 'long')
    """
    kind = parse_type(text)
    if kind.name == "decimal":
        return f"decimal({kind.precision}, {kind.scale})"
    return f"fixed[{kind.length}]" if kind.name == "fixed" else text


def has_lengths(type_text: str) -> bool:
    """Return whether the values of a type have lengths of their own, which an average and a maximum tell of."""
    return type_text in ("string", "binary")


def decode_value(type_text: str, data: bytes) -> Any:
    r"""Return the Python value of single-value bytes; older, narrower encodings are widened.

    Nanosecond timestamps are returned as integers: nanoseconds since 1970-01-01. Dates and timestamps outside of
    Python's years 1 to 9999 are returned as integers too, and so are times that no day has.

    Parameters
    ----------
    type_text : str
        Iceberg's type.
    data : bytes
        The serialised value.

    Raises
    ------
    ValueError
        The bytes are not a value of that type, nor of one that may be promoted to it.

    Examples
    --------
    >>> decode_value("long", b"\x05\x00\x00\x00")
    5
    >>> decode_value("decimal(9, 2)", b"\xff\x38")
    Decimal('-2.00')
    """
    kind = parse_type(type_text)
    decoder = _DECODERS.get(kind.name)
    if decoder is None:
        return data
    try:
        if len(data) not in WIDTHS.get(kind.name, (len(data),)):
            raise ValueError("length")
        return decoder(data, kind)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{data[:32].hex()} ({len(data)} bytes) is not a value of type {type_text}") from error


def _int(data: bytes, _: Any = None) -> int:
    return int.from_bytes(data, "little", signed=True)


def _float(data: bytes, _: Any = None) -> float:
    return float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])


def _decimal(data: bytes, kind: PrimitiveType) -> Decimal:
    # To make a decimal of longer bytes takes the square of their number.
    if not 0 < len(data) <= MAX_DECIMAL_SIZE:
        raise ValueError("length")
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-kind.scale, _UNSCALED)


def _date(days: int) -> dt.date | int:
    ordinal = days + _EPOCH_ORDINAL
    return dt.date.fromordinal(ordinal) if 1 <= ordinal <= dt.date.max.toordinal() else days


def _timestamp(data: bytes, zone: dt.timezone | None) -> dt.datetime | int:
    # Promotion from date (v3): 4 bytes of days.
    micros = _int(data) * (MICROS_A_DAY if len(data) == 4 else 1)
    try:
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=micros)
    except OverflowError:
        return micros


def _nanos(data: bytes, _: Any = None) -> int:
    return _int(data) * (MICROS_A_DAY * 1000 if len(data) == 4 else 1)


def _time(data: bytes) -> dt.time | int:
    micros = _int(data)
    if not 0 <= micros < MICROS_A_DAY:
        return micros
    return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)).time()


_DECODERS: dict[str, Callable[[bytes, PrimitiveType], Any]] = {
    "boolean": lambda data, _: _int(data) != 0,
    "int": _int,
    "long": _int,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "date": lambda data, _: _date(_int(data)),
    "time": lambda data, _: _time(data),
    "timestamp": lambda data, _: _timestamp(data, None),
    "timestamptz": lambda data, _: _timestamp(data, dt.UTC),
    "timestamp_ns": _nanos,
    "timestamptz_ns": _nanos,
    "string": lambda data, _: data.decode("utf-8"),
    "uuid": lambda data, _: uuid.UUID(bytes=data),
}


def find_width(type_text: str) -> int | None:
    """Return how many bytes every single value of a type has; None where they differ, or the type is of a later spec.

    Examples
    --------
    >>> [find_width(kind) for kind in ("date", "fixed[3]", "string")]
    [4, 3, None]
    """
    try:
        kind = parse_type(type_text)
    except ValueError:
        return None
    return kind.length if kind.name == "fixed" else WIDTHS.get(kind.name, (None,))[0]


def encode_value(type_text: str, value: Any) -> bytes:
    """Return a Python value as single-value bytes; the inverse of `decode_value`.

    A number that is too large for a float becomes the infinity of its sign.

    Examples
    --------
    >>> encode_value("int", 5).hex()
    '05000000'
    >>> encode_value("decimal(9, 2)", Decimal("-2.00")).hex()
    'ff38'
    """
    kind = parse_type(type_text)
    name = kind.name
    if name == "boolean":
        return b"\x01" if value else b"\x00"
    if name in ("float", "double"):
        return _encode_float("<f" if name == "float" else "<d", value)
    if name == "decimal":
        return encode_unscaled(int(Decimal(value).scaleb(kind.scale, _UNSCALED)))
    if name == "string":
        return str(value).encode("utf-8")
    if name == "uuid":
        return value if isinstance(value, bytes) else uuid.UUID(str(value)).bytes
    if name in ("fixed", "binary"):
        return bytes(value)
    return to_integer(value).to_bytes(4 if name in ("int", "date") else 8, "little", signed=True)


def encode_unscaled(unscaled: int) -> bytes:
    """Return the unscaled value of a decimal as single-value bytes: as few as hold it.

    Examples
    --------
    >>> encode_unscaled(-200).hex()
    'ff38'
    """
    length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return unscaled.to_bytes(length, "big", signed=True)


def _encode_float(code: str, value: float) -> bytes:
    try:
        return struct.pack(code, value)
    except OverflowError:
        return struct.pack(code, math.copysign(math.inf, value))


def to_integer(value: Any) -> int:
    """Return the integer that Iceberg stores for a whole number, date, time or timestamp."""
    if isinstance(value, dt.datetime):
        delta = value - dt.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else dt.UTC)
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_ORDINAL
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return int(value)


def json_value(type_text: str, value: Any) -> Any:
    """Return a value in JSON form.

    Numbers stay numbers. NaN, infinities and decimals become strings, dates, times and timestamps ISO 8601, UUIDs text,
    and binary hexadecimal. None stays None: unknown.

    Examples
    --------
    >>> json_value("timestamp_ns", 1)
    '1970-01-01T00:00:00.000000001'
    >>> json_value("double", float("inf"))
    'Infinity'
    """
    if value is None:
        return None
    name = parse_type(type_text).name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, uuid.UUID):
        return str(value)
    if name.endswith("_ns"):
        return _json_nanos(int(value), name)
    return value


def _json_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _json_nanos(nanos: int, name: str) -> str | int:
    try:
        seconds = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=nanos // 1_000_000_000)
    except OverflowError:
        return nanos
    zone = "+00:00" if name == "timestamptz_ns" else ""
    return f"{seconds.isoformat()}.{nanos % 1_000_000_000:09d}{zone}"


def decode_json(type_text: str, data: bytes | None) -> Any:
    """Return single-value bytes in JSON form; a bound that cannot be decoded becomes hexadecimal.

    A string bound truncated inside a character ends with the replacement character.
    """
    if data is None:
        return None
    try:
        return json_value(type_text, decode_value(type_text, data))
    except ValueError:
        return data.decode("utf-8", "replace") if type_text == "string" else data.hex()


_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
    "unknown": pa.null(),
}


def to_arrow_type(type_text: str) -> pa.DataType:
    """Return the Arrow type of a primitive Iceberg type."""
    kind = parse_type(type_text)
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name == "fixed":
        return pa.binary(kind.length)
    return _ARROW.get(kind.name, pa.binary())
