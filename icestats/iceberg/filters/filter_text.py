"""Names of columns and values as a filter has them: what the filter language cannot say is left out, never changed."""

from __future__ import annotations

import math
import re
import uuid
from decimal import Decimal
from typing import Any

from icestats.iceberg.types import json_value, parse_type

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_KEYWORDS = frozenset({"and", "between", "false", "in", "is", "like", "nan", "not", "null", "or", "true"})
_UNTOLD = re.compile(r"\\(?:$|'|x)")
"""Backslashes that the filter language takes for the beginning of something else."""
_UNTOLD_NAME = re.compile(r'\\|"[0-7fnrtux]')
"""What no name in quotation marks can have: a backslash, or a quotation mark before what makes another character of the
backslash that stands for it, or takes it away."""
_MOST_CHARACTERS = 200
_MOST_DIGITS = 40
"""Of a floating-point number that is written without an exponent."""
_MIDNIGHT = re.compile(r"T00:00:00(\.0+)?(\+00:00)?")


def write_column(name: str) -> str | None:
    r"""Return a column's full name as a filter has it; None where the filter language has no way to write it.

    Parameters
    ----------
    name : str
        The full name: that of a field of a struct has its parts between full stops.

    Examples
    --------
    >>> write_column("price"), write_column("person.first name"), write_column("not")
    ('price', 'person."first name"', '"not"')
    >>> write_column('5" disk'), write_column("a\\b"), write_column('5"13')
    ('"5\\ disk"', None, None)
    """
    if not name.isprintable() or _UNTOLD_NAME.search(name):
        return None
    parts = name.split(".")
    is_plain = [_PLAIN.fullmatch(part) and part.lower() not in _KEYWORDS for part in parts]
    # In quotation marks, a backslash stands for one of them.
    quoted = ['"' + part.replace('"', "\\") + '"' for part in parts]
    return ".".join(part if plain else other for part, plain, other in zip(parts, is_plain, quoted, strict=True))


def write_value(type_text: str, value: Any) -> str | None:
    r"""Return a value as a filter has it; None where the filter language has no way to write it.

    Parameters
    ----------
    type_text : str
        Iceberg's type of the column.
    value : object
        As `decode_value` gives it, not None.

    Examples
    --------
    >>> write_value("string", "it's"), write_value("double", 1e-7), write_value("binary", b"a")
    ("'it''s'", '0.0000001', None)
    >>> import datetime as dt
    >>> write_value("timestamptz", dt.datetime(2026, 9, 1, tzinfo=dt.UTC))
    "'2026-09-01'"
    """
    kind = parse_type(type_text).name
    if kind in ("binary", "fixed", "unknown"):
        return None
    if kind == "uuid" and isinstance(value, bytes):
        value = uuid.UUID(bytes=value)
    if isinstance(value, float | Decimal):
        return _write_number(value) if math.isfinite(value) else None
    shown = json_value(type_text, value)
    if isinstance(shown, bool):
        return "true" if shown else "false"
    if isinstance(shown, int) and kind in ("int", "long"):
        return str(shown)
    if not isinstance(shown, str) or not shown.isprintable() or len(shown) > _MOST_CHARACTERS or _UNTOLD.search(shown):
        return None
    if kind.startswith("timestamp"):
        shown = shown[:10] if _MIDNIGHT.fullmatch(shown[10:]) else shown
    return "'" + shown.replace("'", "''") + "'"


def _write_number(value: float | Decimal) -> str:
    text = format(Decimal(repr(value)) if isinstance(value, float) else value, "f")
    return repr(value) if isinstance(value, float) and len(text) > _MOST_DIGITS else text
