"""What a commit would bring: bytes, accuracy before and after, and the values that were computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes, render_count
from icestats.read.puffin.statistics_files import KLL, THETA
from icestats.stats.kll import KllSketch, find_rank_error
from icestats.stats.kll_layout import MAX_K
from icestats.stats.theta import LEAVES_OUT_EMPTY
from icestats.table.statistics import CommitReport, Statistics
from icestats_widgets.drawing.scales import render_percent
from icestats_widgets.page.blocks import Block, fact, facts_block
from icestats_widgets.page.cells import render_value, text_cell
from icestats_widgets.page.grid import Row

ACCURACY = (
    {"name": "column", "title": "column", "width": "minmax(110px,1.2fr)"},
    {"name": "ndv_before", "title": "distinct before", "width": "minmax(110px,1fr)", "align": "end"},
    {"name": "ndv_after", "title": "distinct after", "width": "minmax(130px,1fr)", "align": "end"},
    {"name": "ranks_before", "title": "ranks before", "width": "minmax(110px,1fr)", "align": "end",
     "about": "how far off a rank of the histogram may be, at 99 % confidence"},
    {"name": "ranks_after", "title": "ranks after", "width": "minmax(90px,.8fr)", "align": "end"},
)  # fmt: skip
FOUND = (
    {"name": "column", "title": "column", "width": "minmax(110px,1.2fr)"},
    {"name": "values", "title": "values", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "nulls", "title": "nulls", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "nan", "title": "NaN", "width": "minmax(70px,.6fr)", "align": "end"},
    {"name": "ndv", "title": "distinct", "width": "minmax(130px,1fr)", "align": "end"},
    {"name": "least", "title": "smallest", "width": "minmax(110px,1fr)"},
    {"name": "most", "title": "largest", "width": "minmax(110px,1fr)"},
)


def build_costs(statistics: Statistics, report: CommitReport) -> Block:
    """Return the bytes that a commit writes, against those of the table."""
    size = sum(file["bytes"] for file in report.files)
    table = statistics.found.table_size_bytes
    blobs = sum(len(file["blobs"]) for file in report.files)
    kept = len(report.kept_blobs)
    shown = [fact("to write" if not report.committed else "written", render_bytes(size), counted(size, "byte"))]
    if table:
        share = render_percent(size / table)
        shown.append(fact("of the table", share, f"the table's data files have {counted(table, 'byte')}"))
        shown.append(fact("table", render_bytes(table), counted(table, "byte")))
    shown.append(fact("blobs", f"{blobs - kept:,} new, {kept:,} kept, {len(report.replaced):,} replaced"))
    return facts_block(*shown)


def build_accuracy_rows(
    statistics: Statistics, ages: Mapping[tuple[str, str], Mapping[str, Any]], columns: pa.Table | None
) -> list[Row]:
    """Build a row a column: how well its distinct values and its ranks were known, and will be.

    Parameters
    ----------
    statistics : Statistics
        What was computed.
    ages : mapping
        What is committed, as `find_blob_ages` returns it.
    columns : pyarrow.Table or None
        `schemas.COLUMNS`: says which committed sketches are exact.
    """
    rows, exact = [], _find_exact(columns)
    for number, row in enumerate(statistics.to_arrow().to_pylist()):
        name = row["name"]
        column = statistics.found.columns[name]
        ndv, kll = ages.get((THETA, name)), ages.get((KLL, name))
        k = "" if kll is None else dict(kll["properties"]).get("k", "")
        after = "–"
        if column.kll is not None and column.item_type is not None:
            after = f"± {KllSketch.from_bytes(column.item_type, column.kll).rank_error:.2%}"
        before = "unknown" if not k.isdecimal() else f"± {find_rank_error(min(int(k), MAX_K)):.2%}{_behind(kll)}"
        known = "none" if ndv is None else f"{'' if name in exact else '≈ '}{render_count(ndv['ndv'])}{_behind(ndv)}"
        texts = (known, _render_ndv(row), "none" if kll is None else before, after)
        cells = [text_cell(name, kind="strong"), *map(text_cell, texts)]
        rows.append({"key": f"a{number}", "depth": 0, "cells": cells})
    return rows


def _behind(blob: Mapping[str, Any] | None) -> str:
    commits = 0 if blob is None else blob["commits_behind"]
    return f", {commits:,} behind" if commits else ""


def _find_exact(columns: pa.Table | None) -> set[str]:
    """Return the columns whose committed sketch still holds every value."""
    if columns is None:
        return set()
    rows = columns.select(["name", "provenance"]).to_pylist()
    return {row["name"] for row in rows if "still holds every value" in dict(row["provenance"]).get("ndv", "")}


def _render_ndv(row: Mapping[str, Any]) -> str:
    error = row["ndv_relative_error"]
    text = f"{row['ndv']:,}" if error == 0 else f"≈ {row['ndv']:,} ± {2 * error:.1%}"
    return f"{text} and the empty value" if row["type"] in LEAVES_OUT_EMPTY and row["min_value"] == b"" else text


def build_found_rows(statistics: Statistics) -> list[Row]:
    """Build a row a column of what was computed."""
    rows = []
    for number, row in enumerate(statistics.to_arrow().to_pylist()):
        counts = [row["value_count"], row["null_value_count"]]
        cells = [
            text_cell(row["name"], f"{row['name']}, {row['type']}", "strong"),
            *({**text_cell(f"{count:,}"), "v": count} for count in counts),
            text_cell(f"{row['nan_value_count']:,}" if row["type"] in ("float", "double") else "–"),
            {**text_cell(_render_ndv(row)), "v": row["ndv"]},
            text_cell(render_value(row["type"], row["min_value"])),
            text_cell(render_value(row["type"], row["max_value"])),
        ]
        rows.append({"key": f"v{number}", "depth": 0, "cells": cells})
    return rows
