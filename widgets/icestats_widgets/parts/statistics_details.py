"""What stands behind a cell of the matrix of statistics: blobs, files, and what each engine makes of them."""

from __future__ import annotations

from typing import Any

from icestats.answers.text import counted, render_bytes
from icestats.estimation.coverage import name_state
from icestats.iceberg.metadata import PartitionStatisticsFile
from icestats_widgets.page.cells import Cell, text_cell
from icestats_widgets.page.grid import Row
from icestats_widgets.parts.statistics_matrix import BLOBS

ENGINES = (
    {"name": "engine", "title": "engine", "width": "minmax(90px,.7fr)"},
    {"name": "statistic", "title": "statistic", "width": "minmax(130px,1fr)"},
    {"name": "state", "title": "state", "width": "minmax(80px,.6fr)"},
    {"name": "source", "title": "in this table", "width": "minmax(140px,1.6fr)"},
    {"name": "command", "title": "command", "width": "minmax(140px,1.6fr)"},
    {"name": "evidence", "title": "evidence", "width": "minmax(140px,1.6fr)"},
)
COMMITTED = (
    {"name": "columns", "title": "column", "width": "minmax(100px,1fr)"},
    {"name": "what", "title": "what", "width": "minmax(140px,1.3fr)"},
    {"name": "age", "title": "age", "width": "minmax(100px,1.3fr)"},
    {"name": "ndv", "title": "distinct", "width": "minmax(84px,.7fr)", "align": "end"},
    {"name": "used", "title": "used by", "width": "minmax(120px,1.2fr)"},
    {"name": "listed", "title": "listed in", "width": "minmax(100px,.8fr)", "hidden": True},
    {"name": "size", "title": "size", "width": "minmax(68px,.6fr)", "align": "end"},
    {"name": "snapshot", "title": "for snapshot", "width": "minmax(166px,1fr)", "align": "end", "hidden": True},
    {"name": "file", "title": "file", "width": "minmax(140px,1.5fr)"},
)


def build_engine_row(number: int, row: dict[str, Any]) -> Row:
    """Build the row of what an engine has of a statistic: a row of `schemas.COVERAGE`."""
    state = name_state(row)
    part = ", by partition" if row["level"].startswith("partition") else ""
    tones = {"fresh": "good", "missing": "bad", "ignored": "fair"}
    cells = [
        text_cell(row["engine"], f"{row['engine']} {row['engine_version']}", "strong"),
        text_cell(f"{row['statistic']}{part}"),
        text_cell(state, kind=tones.get(state, "fair")),
        *(text_cell(row[name] or "–") for name in ("source", "command", "evidence")),
    ]
    return {"key": f"e{number}", "depth": 0, "cells": cells}


def build_blob_row(number: int, row: dict[str, Any]) -> Row:
    """Build the row of a blob: a row of `schemas.SKETCHES`."""
    about = "\n".join(f"{key}: {value}" for key, value in row["properties"])
    cells = [
        text_cell(", ".join(row["columns"]) or "–", kind="strong"),
        text_cell(BLOBS.get(row["type"], row["type"]), f"{row['type']}\n{about}"),
        {**_age(row), "v": row["commits_behind"]},
        {**text_cell("–" if row["ndv"] is None else f"{row['ndv']:,}"), "v": row["ndv"]},
        text_cell(", ".join(row["used_by"]) or "nobody", "engines that plan with it now"),
        text_cell("metadata.json" if row["listed"] else "footer only"),
        {**text_cell(render_bytes(row["length"])), "v": row["length"]},
        text_cell(str(row["snapshot_id"])),
        text_cell(row["statistics_path"]),
    ]
    return {"key": f"b{number}", "depth": 0, "cells": cells}


def build_file_row(number: int, file: PartitionStatisticsFile) -> Row:
    """Build the row of a partition statistics file."""
    texts = ("–", "partition statistics", "–", "–", "Iceberg's readers", "metadata.json")
    size = {**text_cell(render_bytes(file.file_size_in_bytes)), "v": file.file_size_in_bytes}
    cells = [*map(text_cell, texts), size, text_cell(str(file.snapshot_id)), text_cell(file.statistics_path)]
    return {"key": f"p{number}", "depth": 0, "cells": cells}


def _age(row: dict[str, Any]) -> Cell:
    if row["commits_behind"] is None:
        return text_cell("not of an ancestor", "it was made for a snapshot that is not an ancestor of this one", "bad")
    if row["commits_behind"] == 0:
        return text_cell("fresh", "of this snapshot", "good")
    known = [("commit", row["commits_behind"]), ("file", row["files_behind"]), ("row", row["rows_behind"])]
    parts = [counted(count, name) for name, count in known if count is not None]
    return text_cell(f"{', '.join(parts)} behind", kind="fair")
