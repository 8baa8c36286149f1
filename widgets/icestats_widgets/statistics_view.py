"""The committed statistics: which exist, for which snapshot, and which engines can use them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats_widgets.cells import text_cell
from icestats_widgets.grid import Grid, ListedRows, Row, Seen
from icestats_widgets.view import View

_WHAT = {
    "apache-datasketches-theta-v1": "Theta: distinct values",
    "apache-datasketches-kll-v1": "KLL: distribution",
    "icestats-column-stats-v1": "column statistics",
    "icestats-manifest-stats-v1": "manifest statistics",
    "icestats-partition-sketches-v1": "sketches by partition",
}
_COLUMNS = (
    {"name": "columns", "title": "column", "width": "minmax(120px,1.2fr)"},
    {"name": "what", "title": "what", "width": "minmax(160px,1.3fr)"},
    {"name": "ndv", "title": "distinct", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "age", "title": "since then", "width": "minmax(160px,1.4fr)"},
    {"name": "used", "title": "used by", "width": "minmax(160px,1.6fr)"},
    {"name": "listed", "title": "listed in", "width": "minmax(110px,.8fr)"},
    {"name": "size", "title": "size", "width": "minmax(68px,.6fr)", "align": "end"},
    {"name": "snapshot", "title": "for snapshot", "width": "minmax(166px,1.1fr)", "align": "end"},
)


class StatisticsView(View):
    """One row per blob of the statistics files, and one per partition statistics file."""

    name = "statistics"
    title = "Existing statistics"
    follows = ("sketches", "column", "table")
    hears = ("sketches",)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.grid = Grid("Existing statistics", _COLUMNS, most_rows=9, least_rows=3)
        self.grid.on_select = self._choose
        self.body.children = [self.grid]
        self._rows: list[Row] = []

    def draw(self) -> None:
        """Show the blobs."""
        sketches, note = self.state.sketches, self.state.notes.get("sketches", "")
        if sketches is None:
            self.say("" if note else "Reading the statistics files …")
            self.grid.show_rows(ListedRows([]), note)
            return
        blobs = [_blob_row(i, row) for i, row in enumerate(sketches.to_pylist())]
        files = self.state.table.metadata.partition_statistics
        self._rows = blobs + [_file_row(i, file) for i, file in enumerate(files)]
        self.grid.selected = [row["key"] for row in self._rows if row["cells"][0]["t"] == self.state.column]
        self.say(_describe(sketches, len(files)))
        empty = "None committed yet: generate them below. Engines plan without NDV, and there are no histograms."
        self.grid.show_rows(ListedRows(self._rows), "" if self._rows else empty)

    def _choose(self, key: str, _: Seen) -> None:
        name = next((row["cells"][0]["t"] for row in self._rows if row["key"] == key), None)
        if name in {field.name for field in self.state.table.schema.columns}:
            self.state.column = name

    def to_arrow(self) -> pa.Table | None:
        """Return the blobs."""
        return self.state.sketches

    def code(self) -> str:
        """Return the Python line that gives the blobs."""
        return "table.sketches()"


def _describe(sketches: pa.Table, file_count: int) -> str:
    size = sum(sketches["length"].to_pylist())
    files = len(set(sketches["statistics_path"].to_pylist()))
    blobs = counted(sketches.num_rows, "blob")
    text = f"{blobs} in {counted(files, 'statistics file')}, {render_bytes(size)}"
    return text + (f"; {counted(file_count, 'partition statistics file')}" if file_count else "")


def _blob_row(number: int, row: dict[str, Any]) -> Row:
    about = "\n".join(f"{key}: {value}" for key, value in row["properties"])
    cells = [
        text_cell(", ".join(row["columns"]) or "–", kind="strong"),
        text_cell(_WHAT.get(row["type"], row["type"]), f"{row['type']}\n{about}"),
        text_cell("–" if row["ndv"] is None else f"{row['ndv']:,}"),
        _age(row),
        text_cell(", ".join(row["used_by"]) or "nobody", "engines that plan with it now"),
        text_cell("metadata.json" if row["listed"] else "footer only"),
        text_cell(render_bytes(row["length"]), row["statistics_path"]),
        text_cell(str(row["snapshot_id"])),
    ]
    return {"key": f"b{number}", "depth": 0, "cells": cells}


def _file_row(number: int, file: Any) -> Row:
    cells = [
        text_cell("–"),
        text_cell("partition statistics", file.statistics_path),
        text_cell("–"),
        text_cell("–"),
        text_cell("Iceberg's readers"),
        text_cell("metadata.json"),
        text_cell(render_bytes(file.file_size_in_bytes), file.statistics_path),
        text_cell(str(file.snapshot_id)),
    ]
    return {"key": f"t{number}", "depth": 0, "cells": cells}


def _age(row: dict[str, Any]) -> dict[str, Any]:
    if row["commits_behind"] is None:
        return text_cell("not of an ancestor", "it was made for a snapshot that is not an ancestor of this one", "bad")
    if row["commits_behind"] == 0:
        return text_cell("fresh: of this snapshot", kind="good")
    known = [("commit", row["commits_behind"]), ("file", row["files_behind"]), ("row", row["rows_behind"])]
    parts = [counted(count, name) for name, count in known if count is not None]
    return text_cell(", ".join(parts), kind="fair")
