"""Literals of row filters, as single-value bytes and as a person reads them."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from icestats.iceberg.partition_values import display_partition_value
from icestats.iceberg.types import decode_json, decode_value, encode_value, parse_type

_QUOTED = frozenset({"string", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "uuid"})
_MOST_CHARACTERS = 60


def literal_bytes(type_text: str, value: Any) -> bytes:
    """Return a literal, as PyIceberg has it, as single-value bytes.

    Examples
    --------
    >>> literal_bytes("date", 1).hex()
    '01000000'
    """
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, bytes):
        return value
    if parse_type(type_text).name == "float":
        try:
            return encode_value("float", value)
        except OverflowError:
            return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return encode_value(type_text, value)


def display_value(type_text: str, value: Any, transform: str = "identity") -> str:
    r"""Return a literal as a filter has it.

    Examples
    --------
    >>> display_value("date", 0), display_value("string", "it's"), display_value("long", 74)
    ("'1970-01-01'", "'it''s'", '74')
    >>> display_value("int", 0, "month")
    "'1970-01'"
    """
    if transform in ("year", "month", "hour"):
        return f"'{display_partition_value(transform, 'int', value)}'"
    return display_bytes(type_text, literal_bytes(type_text, value))


def display_bytes(type_text: str, data: bytes, transform: str = "identity") -> str:
    """Return single-value bytes as a filter has them; what is long is cut, what cannot be printed replaced."""
    if transform in ("year", "month", "hour"):
        return f"'{display_partition_value(transform, 'int', decode_value('int', data))}'"
    shown = decode_json(type_text, data)
    name = parse_type(type_text).name
    if name == "boolean":
        return str(shown).lower()
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(shown))
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    if name in ("binary", "fixed"):
        return f"X'{text}'"
    return "'" + text.replace("'", "''") + "'" if name in _QUOTED else text
