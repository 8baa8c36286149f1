"""The statistics that a table has and lacks: column by kind, for one engine or all of them, and what mends a gap."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.estimation.engine_statistics import list_engines
from icestats.iceberg.metadata import Field
from icestats.read.puffin.statistics_files import JOINT_STATISTICS
from icestats_widgets.page.blocks import (
    Block,
    button,
    choice,
    form_block,
    text_block,
    toggle,
)
from icestats_widgets.page.cells import Cell, text_cell
from icestats_widgets.page.grid import Row, Seen
from icestats_widgets.page.part import Part
from icestats_widgets.parts.statistics_matrix import KINDS, OF_COLUMNS, OF_TABLE, Matrix, Standing
from icestats_widgets.reading.computation import BUSY, Computation
from icestats_widgets.reading.compute_request import (
    UNCHANGED,
    ComputeRequest,
    describe_cost,
    list_behind,
    request_update,
)
from icestats_widgets.state import ExplorerState

_MATRIX: tuple[dict[str, Any], ...] = (
    {"name": "column", "title": "column", "width": "minmax(84px,1fr)", "name_pixels": 180},
    *(
        {"name": name, "title": kind.head, "about": kind.title, "width": "minmax(82px,1fr)"}
        for name, kind in OF_COLUMNS.items()
    ),
)
_OWN = (
    {"name": "statistic", "title": "of the table", "width": "minmax(130px,1.2fr)"},
    {"name": "state", "title": "state", "width": "minmax(110px,1fr)"},
)
ALL_FILES = "files"
"""The key of the row of all files of statistics."""


class StatisticsPart(Part):
    """A matrix of columns and kinds of statistics: fresh, behind, missing, ignored; and how to mend a gap."""

    name = "statistics"
    title = "Statistics"
    tab = "statistics"
    follows = ("coverage", "sketches", "table", "engine", "request", "phase", "overview", "picked")
    hears = ("coverage", "sketches")

    def __init__(self, state: ExplorerState, computation: Computation) -> None:
        self._computation = computation
        super().__init__(state)

    def build(self) -> None:
        """Make the grids."""
        clicks: dict[str, Any] = {"on_choose": self._choose, "on_cell": self._pick}
        search = "search columns, missing, behind"
        self.matrix_grid = self.add_grid(
            "matrix", "Statistics by column", _MATRIX, most_rows=8, placeholder=search, **clicks
        )
        self.own_grid = self.add_grid("own", "Statistics of the table", _OWN, placeholder="", **clicks)
        self._is_gaps_only = False
        self._matrix: Matrix | None = None
        self._counts: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()

    def blocks(self) -> list[Block]:
        """Return the matrix, and the statistics of the table below it."""
        state = self.state
        matrix = self.find_matrix()
        if matrix is None:
            return [] if self.note is None else [text_block(self.note, "bad")]
        self._counts, self._missing = Counter(), Counter()
        fields = [field for field in state.table.schema.top_level if field.is_primitive]
        rows = [self._build_row(matrix, field) for field in fields]
        shown = [row for row in rows if row.pop("is_gap") or not self._is_gaps_only]
        self.matrix_grid.show(shown, "" if shown else "No gaps: nothing is missing or behind.")
        self.own_grid.show([*(self._build_own_row(matrix, kind) for kind in OF_TABLE), self._build_file_row()])
        picked = self.state.picked
        self.matrix_grid.selected = self.own_grid.selected = [] if picked is None else [picked[0]]
        note = [] if state.notes.get("sketches") is None else [text_block(state.notes["sketches"], "bad")]
        return [*note, *self._build_controls(), self.matrix_grid.block(), self.own_grid.block()]

    def caption(self) -> str:
        """Return how many statistics are fresh, behind, missing and ignored."""
        if self.state.coverage is None:
            return "" if self.note else "Reading the statistics files …"
        whose = f"For {self.state.engine}" if self.state.engine else "In all"
        words = ("fresh", "behind", "missing", "ignored", "out of reach")
        counts = [f"{self._counts[word]:,} {word}" for word in words if self._counts[word]]
        return f"{whose}: {', '.join(counts)}.\nClick a cell for its source, a gap to compute it."

    def to_arrow(self) -> pa.Table | None:
        """Return what engines have, `schemas.COVERAGE`."""
        return self.state.coverage

    def code(self) -> str:
        """Return the Python line that gives what engines have."""
        return f"table.coverage(engines=[{self.state.engine!r}])" if self.state.engine else "table.coverage()"

    def on_engine(self, value: object) -> None:
        """Show what one engine has."""
        if value in ("", *list_engines()):
            self.state.engine = str(value)

    def on_gaps(self, value: object) -> None:
        """Show only columns that lack something."""
        self._is_gaps_only = value is True
        self.redraw()

    def on_refresh(self, _: object) -> None:
        """Begin to compute what is behind."""
        request = request_update(self.state.table, self.state.sketches)
        if request is not None and not self._computation.is_busy:
            self.state.request = request
            self._computation.compute(request)

    def on_add(self, _: object) -> None:
        """Add what is chosen to what is to be computed."""
        if self.state.picked is not None:
            self._request(*self.state.picked)

    def on_close(self, _: object) -> None:
        """Close the details."""
        self.state.picked = None

    def find_matrix(self) -> Matrix | None:
        """Return how statistics stand; None as long as that is not known."""
        state = self.state
        if state.coverage is None:
            return None
        if self.has_new(state.coverage, state.sketches, state.table) or self._matrix is None:
            self._matrix = Matrix(state.coverage, state.sketches, state.table.metadata, state.table.snapshot)
        return self._matrix

    def _build_controls(self) -> list[Block]:
        state = self.state
        engines = [("", "all engines"), *((name, name) for name in list_engines())]
        request = request_update(state.table, state.sketches)
        label = "Update what is behind" if request is None or request.updates else "Compute everything"
        refresh = button(
            "statistics.refresh", label, tone="primary",
            is_disabled=request is None or state.phase in BUSY,
            about="" if request is None else describe_cost(request, state),
        )  # fmt: skip
        headline, cost = self._headline(), "" if request is None else f"{describe_cost(request, state)} {UNCHANGED}"
        form = form_block(
            choice("statistics.engine", "for", state.engine, engines, about="What this engine has, and lacks"),
            toggle("statistics.gaps", "only gaps", self._is_gaps_only),
            refresh,
        )
        if state.table.snapshot is None:
            headline, cost = "Nothing has been written to the table yet.", ""
        elif state.sketches is None:
            headline, cost = "" if state.notes.get("sketches") else "Reading the statistics files …", ""
        return [form, *([text_block(headline, "quiet", live=cost)] if headline or cost else [])]

    def _headline(self) -> str:
        """Return what is missing, and whether what is committed is up to date."""
        kinds = [
            KINDS[kind].title + (f" of {counted(count, 'column')}" if kind in OF_COLUMNS else "")
            for kind, count in self._missing.items()
        ]
        said = [f"Missing: {'; '.join(kinds)}."] if kinds else []
        sketches = self.state.sketches
        late = [] if sketches is None else list_behind(self.state.table.schema, sketches)
        count = self._counts["behind"] + sum(row["type"] == JOINT_STATISTICS for row in late)
        if count:
            said.append(f"Behind: {counted(count, 'statistic')}.")
        elif not kinds:
            said.append("Nothing is missing, nothing behind.")
        elif sketches is not None and sketches["commits_behind"].null_count < sketches.num_rows:
            said.append("What is committed is up to date.")
        return " ".join(said)

    def _build_row(self, matrix: Matrix, field: Field) -> Row:
        found = {kind: matrix.find(kind, field, self.state.engine) for kind in OF_COLUMNS}
        cells = [text_cell(field.name, kind="strong"), *(self._build_cell("matrix", one) for one in found.values())]
        self._missing.update(kind for kind, one in found.items() if one.word == "missing")
        is_gap = any(one.is_lacking if self.state.engine else one.is_gap for one in found.values())
        return {"key": f"c{field.field_id}", "depth": 0, "cells": cells, "is_gap": is_gap}

    def _build_own_row(self, matrix: Matrix, kind: str) -> Row:
        standing = matrix.find(kind, None, self.state.engine)
        self._missing.update([kind] * (standing.word == "missing"))
        return {
            "key": kind, "depth": 0,
            "cells": [text_cell(OF_TABLE[kind].title, kind="strong"), self._build_cell("own", standing)],
        }  # fmt: skip

    def _build_file_row(self) -> Row:
        sketches = self.state.sketches
        paths = set() if sketches is None else set(sketches["statistics_path"].to_pylist())
        registered = self.state.table.metadata.statistics
        size = sum(file.file_size_in_bytes for file in registered if file.statistics_path in paths)
        files = len(self.state.table.metadata.partition_statistics)
        text = f"{counted(len(paths), 'file')}, {render_bytes(size)}"
        about = f"{text}; {counted(files, 'partition statistics file')}"
        shown = {**text_cell(text, about), "a": "statistics.own.cell"}
        return {"key": ALL_FILES, "depth": 0, "cells": [text_cell("statistics files", kind="strong"), shown]}

    def _build_cell(self, grid: str, standing: Standing) -> Cell:
        self._counts[standing.word] += 1
        about = [standing.text]
        if standing.word == "out of reach":
            about = [f"{self.state.engine} would use it, and nothing writes it where {self.state.engine} reads it"]
        cell: Cell = {"v": standing.rank, **({"do": "click to add it to what is computed"} if standing.is_gap else {})}
        if standing.ignored_by:
            self._counts["ignored"] += 1
            readers = standing.user_count - len(standing.ignored_by)
            if standing.word == "fresh":
                cell["s"] = f"{readers}/{standing.user_count} engines"
            about.append(
                f"ignored by {', '.join(standing.ignored_by)}, of {counted(standing.user_count, 'engine')} that use it"
            )
        cell |= text_cell(standing.text, "\n".join(about), standing.tone)
        return cell if standing.word == "not used" else {**cell, "a": f"statistics.{grid}.cell"}

    def find_field(self, key: str) -> Field | None:
        """Return the column of a row of the matrix; None: it is a row of the table's own."""
        return next((one for one in self.state.table.schema.top_level if f"c{one.field_id}" == key), None)

    def _choose(self, key: str, _: Seen) -> None:
        field = self.find_field(key)
        if field is not None:
            self.state.column = field.name
        self.state.picked = (key, key if key in OF_TABLE else "")

    def _pick(self, key: str, column: str) -> None:
        matrix, field = self.find_matrix(), self.find_field(key)
        kind = key if key in OF_TABLE else column
        if key == ALL_FILES:
            self.state.picked = (key, "")
        elif matrix is not None and kind in KINDS and (field is not None or key in OF_TABLE):
            self.state.picked = (key, kind)
            if matrix.find(kind, field, self.state.engine).is_gap:
                self._request(key, kind)

    def _request(self, key: str, kind: str) -> None:
        computed, field = KINDS[kind].computed if kind in KINDS else "", self.find_field(key)
        if not computed:
            return
        # What is asked for first replaces the choice of everything.
        known = self.state.request or ComputeRequest(columns=(), table=False)
        self.state.request = known.adding(computed, None if field is None else field.name)
