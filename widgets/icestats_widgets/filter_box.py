"""The box where a person types a row filter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anywidget
import pyarrow as pa
from traitlets import List, Unicode

from icestats.iceberg.metadata import Schema
from icestats.iceberg.types import decode_value, json_value, parse_type

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_IDEAS = 3


class FilterBox(anywidget.AnyWidget):
    """A filter, its error, and suggestions."""

    _esm = Path(__file__).with_name("filter_box.js")

    label = Unicode("Row filter").tag(sync=True)
    """The label. Type: str. Default: `Row filter`."""
    value = Unicode().tag(sync=True)
    """The filter, updated a quarter of a second after typing. Type: str. Default: empty."""
    error = Unicode().tag(sync=True)
    """What is wrong with the filter. Type: str. Default: empty."""
    ideas = List(Unicode()).tag(sync=True)
    """Filters to try. Type: list of str. Default: empty."""


def suggest_filters(columns: pa.Table, schema: Schema) -> list[str]:
    """Return a few filters that select a part of the table, from the bounds of its columns.

    Parameters
    ----------
    columns : pyarrow.Table
        `schemas.COLUMNS`.
    schema : Schema
        Says which of them are top-level columns.
    """
    top_level = {field.field_id for field in schema.top_level}
    found: dict[str, str] = {}
    for row in columns.to_pylist():
        if row["field_id"] in top_level and _IDENTIFIER.fullmatch(row["name"]):
            for kind, text in _ideas(row):
                found.setdefault(kind, text)
    texts = list(found.values())
    if len(texts) > 1:
        texts.append(f"{texts[0]} and {texts[1]}")
    return texts[:_MOST_IDEAS]


def _ideas(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = parse_type(row["type"])
    lower, upper = (_decoded(row["type"], row[name]) for name in ("lower_bound", "upper_bound"))
    if lower is None or upper is None or lower == upper:
        return
    if (kind.is_timestamp and not isinstance(lower, int)) or kind.name == "date":
        third = lower + (upper - lower) * 2 / 3
        text = third.date().isoformat() if kind.is_timestamp else third.isoformat()
        zone = {"timestamptz": "T00:00:00+00:00", "timestamp": "T00:00:00", "date": ""}.get(kind.name)
        if zone is not None:
            yield "time", f"{row['name']} >= '{text}{zone}'"
    elif kind.name in ("float", "double", "decimal"):
        part = float(lower) + (float(upper) - float(lower)) / 1000
        yield "number", f"{row['name']} < {part:.4g}" if abs(part) < 1e9 else f"{row['name']} > 0"
    elif kind.name in ("int", "long"):
        yield "whole", f"{row['name']} = {lower + (upper - lower) // 3}"
    elif kind.name == "string":
        yield "text", f"{row['name']} = '{str(json_value('string', upper)).replace(chr(39), chr(39) * 2)[:40]}'"


def _decoded(type_text: str, data: bytes | None) -> Any:
    try:
        return None if data is None else decode_value(type_text, data)
    except ValueError:
        return None
