"""What stands behind a cell of the matrix of statistics, beside it: blobs, files, engines, and what computes it."""

from __future__ import annotations

from typing import Any

from icestats.answers.text import counted, render_bytes
from icestats.estimation.coverage import name_state
from icestats.iceberg.metadata import PartitionStatisticsFile
from icestats_widgets.page.blocks import Block, button, code_block, form_block
from icestats_widgets.page.cells import Cell, text_cell
from icestats_widgets.page.given_names import define_given
from icestats_widgets.page.grid import Row
from icestats_widgets.page.part import Part
from icestats_widgets.parts.statistics import ALL_FILES, StatisticsPart
from icestats_widgets.parts.statistics_matrix import BLOBS, KINDS, OF_TABLE
from icestats_widgets.state import ExplorerState

_MOST_COMMANDS = 4
_ENGINES = (
    {"name": "engine", "title": "engine", "width": "minmax(90px,.7fr)"},
    {"name": "statistic", "title": "statistic", "width": "minmax(130px,1fr)"},
    {"name": "state", "title": "state", "width": "minmax(80px,.6fr)"},
    {"name": "source", "title": "in this table", "width": "minmax(140px,1.6fr)"},
    {"name": "command", "title": "command", "width": "minmax(140px,1.6fr)"},
    {"name": "evidence", "title": "evidence", "width": "minmax(140px,1.6fr)"},
)
_COMMITTED = (
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


class DetailsPart(Part):
    """The source of the statistics that are picked, who reads them, and the command that makes them."""

    name = "details"
    title = "Details"
    tab = "statistics"
    is_beside = True
    follows = ("picked", "coverage", "sketches", "table", "engine")

    def __init__(self, state: ExplorerState, statistics: StatisticsPart) -> None:
        self._statistics = statistics
        super().__init__(state)

    def build(self) -> None:
        """Make the grids."""
        self.blob_grid = self.add_grid("blobs", "Blobs of statistics files", _COMMITTED, most_rows=4, placeholder="")
        self.engine_grid = self.add_grid("engines", "What engines have of it", _ENGINES, most_rows=4, placeholder="")

    def blocks(self) -> list[Block]:
        """Return what is committed of it, what engines have, and what computes it."""
        matrix, picked = self._statistics.find_matrix(), self.state.picked
        if matrix is None or picked is None:
            return []
        key, kind = picked
        field = self._statistics.find_field(key)
        if field is None and key not in (*OF_TABLE, ALL_FILES):
            return []
        rows = [] if key == ALL_FILES else matrix.find_rows(field, kind, self.state.engine)
        self.engine_grid.show([_build_engine_row(number, row) for number, row in enumerate(rows)])
        blobs = [*self._find_blobs("" if field is None else field.name, kind or key), *self._find_partition_files(key)]
        self.blob_grid.show(blobs, "" if blobs else "Nothing of it is committed.")
        commands = list(dict.fromkeys(row["command"] for row in rows if row["command"]))
        actions = []
        if kind and KINDS[kind].computed and matrix.find(kind, field, self.state.engine).word != "out of reach":
            actions.append(button("statistics.add", "Compute it"))
        return [
            form_block(*actions, button("statistics.close", "Close")),
            self.blob_grid.block(),
            *([self.engine_grid.block()] if rows else []),
            *(code_block(define_given(one)) for one in commands[:_MOST_COMMANDS]),
        ]

    def caption(self) -> str:
        """Return of what it is."""
        if self.state.picked is None:
            return ""
        key, kind = self.state.picked
        field = self._statistics.find_field(key)
        what = "all files" if key == ALL_FILES else KINDS[kind].title if kind else "all statistics"
        return f"{what} of {'the table' if field is None else field.name}"

    def _find_blobs(self, column: str, kind: str) -> list[Row]:
        if self.state.sketches is None:
            return []
        wanted = KINDS[kind].blob if kind in KINDS else ""
        return [
            _build_blob_row(number, row)
            for number, row in enumerate(self.state.sketches.to_pylist())
            if (kind == ALL_FILES or column in row["columns"] or (not column and wanted))
            and (not wanted or row["type"] == wanted)
        ]

    def _find_partition_files(self, key: str) -> list[Row]:
        files = self.state.table.metadata.partition_statistics if key in ("partitions", ALL_FILES) else ()
        return [_build_file_row(number, file) for number, file in enumerate(files)]


def _build_engine_row(number: int, row: dict[str, Any]) -> Row:
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


def _build_blob_row(number: int, row: dict[str, Any]) -> Row:
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


def _build_file_row(number: int, file: PartitionStatisticsFile) -> Row:
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
