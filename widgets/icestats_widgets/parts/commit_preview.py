"""What a commit or its undoing would bring: bytes, kinds, engines, accuracy before and after, what was computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes, render_count
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.statistics_files import KLL, THETA
from icestats.stats.kll import KllSketch, find_rank_error
from icestats.stats.kll_layout import MAX_K
from icestats.stats.theta import LEAVES_OUT_EMPTY
from icestats.table.statistics import CommitReport, RemovalReport, Statistics
from icestats_widgets.drawing.scales import render_percent
from icestats_widgets.page.blocks import Block, card_block, code_block, fact, facts_block, text_block
from icestats_widgets.page.cells import render_value, text_cell
from icestats_widgets.page.grid import Row
from icestats_widgets.parts.statistics_matrix import BLOBS

_MOST_NAMED = 12
ACCURACY = (
    {"name": "column", "title": "column", "width": "minmax(110px,1.2fr)"},
    {"name": "ndv_before", "title": "distinct before", "width": "minmax(110px,1fr)", "align": "end"},
    {"name": "ndv_after", "title": "distinct after", "width": "minmax(130px,1fr)", "align": "end"},
    {"name": "ranks_before", "title": "ranks before", "width": "minmax(110px,1fr)", "align": "end",
     "about": "how far off a rank of the histogram may be, at 99% confidence"},
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


def build_change_cards(
    names: tuple[str, str],
    titles: tuple[str, str],
    report: CommitReport | RemovalReport,
    *blocks: Block,
    actions: Sequence[Block] = (),
) -> list[Block]:
    """Return what a change of the table's statistics brings as a card, with what engines make of it; and its text.

    Parameters
    ----------
    names, titles : tuple of two str
        Of the two cards.
    report : CommitReport or RemovalReport
        What changes.
    *blocks : dict
        Figures.
    actions : sequence of dict
        `button` fields of the first card.
    """
    engines = [text_block(f"• {effect}") for effect in report.effects]
    if isinstance(report, CommitReport):
        said = [text_block(f"Beware: {warning}", "bad") for warning in report.warnings]
    else:
        said = [text_block(f"Note: {note}") for note in report.notes]
    return [
        card_block(names[0], titles[0], *blocks, *engines, *said, actions=actions),
        card_block(names[1], titles[1], code_block(report.text)),
    ]


def build_removed(report: RemovalReport, other_count: int) -> list[Block]:
    """Return what undoing takes away, what the table has afterwards, and what is brought back.

    Parameters
    ----------
    report : RemovalReport
        What undoing changes.
    other_count : int
        Files that the table has for other snapshots.
    """
    taken, restored = report.taken_files, report.restored_files
    size, others = sum(file["bytes"] for file in taken), "none"
    if other_count:
        others = f"{counted(other_count, 'file')} of other snapshots"
    left = f"{counted(len(restored), 'file')} from before{f', {others}' if other_count else ''}" if restored else others
    shown = [
        fact("taken away", counted(len(taken), "file"), "\n".join(file["path"] for file in taken)),
        fact("of", render_bytes(size), f"{counted(size, 'byte')}, which stay on storage until orphans are removed"),
        fact("statistics afterwards", left),
    ]
    back = f"Brings back: {_name_contents(restored)}." if restored else "Brings back nothing."
    gone = [text_block(f"Takes away: {_name_contents(taken)}.")] if taken else []
    return [facts_block(*shown), *gone, text_block(back)]


def _name_contents(files: Iterable[Mapping[str, Any]]) -> str:
    """Return the kinds of statistics in some files, with the columns that each is of."""
    kinds: dict[str, dict[str, None]] = {}
    for file in files:
        if "type" in file:
            kinds.setdefault("partition statistics file", {})
        elif not file["is_read"]:
            kinds.setdefault("a file that cannot be read", {})
        for blob in file["blobs"]:
            kinds.setdefault(BLOBS.get(blob["type"], blob["type"]), {}).update(dict.fromkeys(blob["columns"]))
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for kind, columns in kinds.items():
        by_columns.setdefault(tuple(columns), []).append(kind)
    return "; ".join(
        f"{', '.join(some)}{f' of {_name_columns(columns)}' if columns else ''}" for columns, some in by_columns.items()
    )


def _name_columns(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _MOST_NAMED:,} more columns" if len(columns) > _MOST_NAMED else ""
    return f"{', '.join(columns[:_MOST_NAMED])}{more}"


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
        k = None if kll is None else parse_count(dict(kll["properties"]).get("k"))
        after = "–"
        if column.kll is not None and column.item_type is not None:
            after = f"± {KllSketch.from_bytes(column.item_type, column.kll).rank_error:.2%}"
        before = "unknown" if not k else f"± {find_rank_error(min(k, MAX_K)):.2%}{_behind(kll)}"
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
    text = f"{row['ndv']:,}" if error == 0 else f"≈ {row['ndv']:,} ± {error:.1%}"
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
