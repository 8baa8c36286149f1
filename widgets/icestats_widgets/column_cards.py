"""A column in a line: name, type, nulls, distinct values and bounds, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icestats.metadata import Schema
from icestats.types import decode_value
from icestats_widgets.axis import value_label

UNKNOWN = "unknown"
LONGEST_BOUND = 40


def build_column_cards(columns: pa.Table) -> list[dict[str, str]]:
    """Build the lines of the columns.

    Parameters
    ----------
    columns : pyarrow.Table
        `schemas.COLUMNS`.

    Returns
    -------
    list of dict of str to str
        A line a column: `name`, `type`, `nulls`, `ndv`, `lower`, `upper`, each as text, and under `about_...` where the
        figure is from and what it is worth. What is not known says `unknown`.
    """
    return [_card(row) for row in columns.to_pylist()]


def build_pending_cards(schema: Schema) -> list[dict[str, str]]:
    """Build the lines of the columns before their figures have been read: names and types."""
    empty = dict.fromkeys(("nulls", "ndv", "lower", "upper"), "…")
    about = {f"about_{name}": "being read" for name in empty}
    return [{"name": field.name, "type": field.type, **empty, **about} for field in schema.columns]


def _card(row: Mapping[str, Any]) -> dict[str, str]:
    provenance = dict(row["provenance"])
    return {
        "name": row["name"],
        "type": row["type"],
        "nulls": _share(row["null_value_count"], row["value_count"]),
        "ndv": _estimate(row["ndv"], provenance.get("ndv", "")),
        "lower": _bound(row["type"], row["lower_bound"], provenance.get("lower_bound", "")),
        "upper": _bound(row["type"], row["upper_bound"], provenance.get("upper_bound", "")),
        "about_nulls": _about_nulls(row, provenance),
        "about_ndv": provenance.get("ndv", ""),
        "about_lower": provenance.get("lower_bound", ""),
        "about_upper": provenance.get("upper_bound", ""),
    }


def _share(part: int | None, whole: int | None) -> str:
    if part is None or whole is None:
        return UNKNOWN
    if part == 0 or whole == 0:
        return "0 %"
    percent = 100 * part / whole
    if percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f} %" if percent < 1 else f"{percent:.1f} %"


def _about_nulls(row: Mapping[str, Any], provenance: Mapping[str, str]) -> str:
    count = row["null_value_count"]
    about = provenance.get("null_value_count", "")
    return about if count is None else f"{count:,} of {row['value_count'] or 0:,} values; {about}"


def _estimate(count: int | None, provenance: str) -> str:
    if count is None:
        return UNKNOWN
    exact = not provenance.startswith("estimate") or "still holds every value" in provenance
    return f"{count:,}" if exact else f"≈ {count:,}"


def _bound(type_text: str, data: bytes | None, provenance: str) -> str:
    return "none" if data is None and provenance.startswith("none") else render_value(type_text, data)


def render_value(type_text: str, data: bytes | None) -> str:
    """Return single-value bytes as a person reads them, not too long; `unknown` for None."""
    if data is None:
        return UNKNOWN
    try:
        text = value_label(type_text, decode_value(type_text, data))
    except ValueError:
        text = data.decode("utf-8", "replace") if type_text == "string" else data.hex()
    if not text:
        return '""'
    return text if len(text) <= LONGEST_BOUND else text[: LONGEST_BOUND - 1] + "…"
