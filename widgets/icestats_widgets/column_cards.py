"""A column as a card: its shape, and what is known about it. Each figure names its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_count
from icestats.iceberg.metadata import Schema
from icestats.iceberg.types import decode_value
from icestats_widgets.axis import value_label
from icestats_widgets.cells import UNKNOWN, bytes_cell, text_cell
from icestats_widgets.grid import Row
from icestats_widgets.sparks import Spark

LONGEST_BOUND = 40


CARD_COLUMNS = (
    {"name": "column", "title": "column", "width": "minmax(96px,1.3fr)"},
    {"name": "shape", "title": "shape", "width": "minmax(64px,.8fr)",
     "about": "how the values are distributed, and the shares of nulls and NaN"},
    {"name": "nulls", "title": "nulls", "width": "minmax(80px,.5fr)", "align": "end"},
    {"name": "ndv", "title": "distinct", "width": "minmax(92px,.7fr)", "align": "end"},
    {"name": "bounds", "title": "bounds", "width": "minmax(98px,1.1fr)"},
    {"name": "median", "title": "median", "width": "minmax(92px,1fr)",
     "about": "the median, and below it the quartiles: half of the values lie between them"},
    {"name": "size", "title": "size", "width": "minmax(72px,.5fr)", "align": "end"},
)  # fmt: skip


def build_column_cards(columns: pa.Table, sparks: Mapping[str, Spark]) -> list[Row]:
    """Build the cards of the columns.

    Parameters
    ----------
    columns : pyarrow.Table
        `schemas.COLUMNS`.
    sparks : mapping of str to Spark
        The shapes of the values of columns with a sketch.

    Returns
    -------
    list of dict
        One grid row per column. The tooltip of each cell says where the figure comes from and how far to trust it.
        Unknown figures say `unknown`.
    """
    most = max((size for size in columns["column_size"].to_pylist() if size), default=0)
    return [_card(number, row, sparks.get(row["name"]), most) for number, row in enumerate(columns.to_pylist())]


def build_pending_cards(schema: Schema, text: str) -> list[Row]:
    """Build the cards before their figures are read: names, types, and a placeholder for every figure."""
    return [
        {
            "key": f"c{number}",
            "depth": 0,
            "cells": [_name(field.name, field.type), *[text_cell(text, kind="quiet")] * (len(CARD_COLUMNS) - 1)],
        }
        for number, field in enumerate(schema.columns)
    ]


def _card(number: int, row: Mapping[str, Any], spark: Spark | None, most: int) -> Row:
    about = dict(row["provenance"])
    lower = _bound(row["type"], row["lower_bound"], about.get("lower_bound", ""))
    upper = _bound(row["type"], row["upper_bound"], about.get("upper_bound", ""))
    bounds = text_cell(lower, f"{lower}: {about.get('lower_bound', '')}\n{upper}: {about.get('upper_bound', '')}")
    size = row["column_size"]
    nulls = _share(row["null_value_count"], row["value_count"])
    cells = [
        _name(row["name"], row["type"]),
        _shape(row, spark),
        text_cell(nulls, f"{nulls}: {_about_nulls(row, about)}"),
        text_cell(_estimate(row["ndv"], about.get("ndv", "")), f"distinct values: {about.get('ndv', '')}"),
        {**bounds, "s": upper},
        _quartiles(spark),
        bytes_cell(size, most, f"{counted(size, 'byte')}: {about.get('column_size', '')}"),
    ]
    return {"key": f"c{number}", "depth": 0, "cells": cells}


def _name(name: str, kind: str) -> dict[str, Any]:
    return {**text_cell(name, f"{name}, {kind}", "strong"), "s": kind}


def _shape(row: Mapping[str, Any], spark: Spark | None) -> dict[str, Any]:
    total = row["value_count"]
    cell: dict[str, Any] = {"g": [] if spark is None else list(spark.heights)}
    texts = ["no sketch" if spark is None else spark.text]
    for key, name, figure in (("n", "null", "null_value_count"), ("a", "NaN", "nan_value_count")):
        count = row[figure]
        if key == "a" and row["type"] not in ("float", "double"):
            continue
        texts.append(f"{render_count(count)} {name}")
        if count is not None and total is not None:
            cell[key] = round(count / total, 4) if total else 0
    return {**cell, "h": ", ".join(texts)}


def _quartiles(spark: Spark | None) -> dict[str, Any]:
    if spark is None:
        return text_cell("–", "no sketch is committed, or only one of the whole table", "quiet")
    return {**text_cell(spark.median, spark.text), "s": f"{spark.lower_quartile} … {spark.upper_quartile}"}


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
    return about if count is None else f"{count:,} of {counted(row['value_count'] or 0, 'value')}; {about}"


def _estimate(count: int | None, provenance: str) -> str:
    if count is None:
        return UNKNOWN
    exact = not provenance.startswith("estimate") or (
        "still holds every value" in provenance and provenance.endswith("this snapshot")
    )
    return f"{count:,}" if exact else f"≈ {count:,}"


def _bound(type_text: str, data: bytes | None, provenance: str) -> str:
    return "none" if data is None and provenance.startswith("none") else render_value(type_text, data)


def render_value(type_text: str, data: bytes | None) -> str:
    """Return single-value bytes as readable text, shortened if long; `unknown` for None."""
    if data is None:
        return UNKNOWN
    try:
        text = value_label(type_text, decode_value(type_text, data))
    except ValueError:
        text = data.decode("utf-8", "replace") if type_text == "string" else data.hex()
    if not text:
        return '""'
    return text if len(text) <= LONGEST_BOUND else text[: LONGEST_BOUND - 1] + "…"
