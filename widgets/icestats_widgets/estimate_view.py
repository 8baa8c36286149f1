"""What an optimizer would estimate from each kind of statistics, side by side."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets
import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.estimation.estimates import Estimates
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats_widgets.cells import text_cell
from icestats_widgets.grid import Grid, ListedRows, Row
from icestats_widgets.question_coordinator import (
    MOST_FILES,
    QuestionCoordinator,
    affordable_sources,
    effective_filter,
    is_small,
)
from icestats_widgets.state import ExplorerState
from icestats_widgets.view import View

_GOOD, _BAD = 2.0, 10.0
"""q-errors up to the first are good, from the second on bad."""
_COLUMNS = (
    {"name": "source", "title": "source", "width": "minmax(120px,1fr)"},
    {"name": "rows", "title": "rows", "width": "minmax(110px,1.2fr)", "align": "end"},
    {"name": "bounds", "title": "at least … at most", "width": "minmax(140px,1.2fr)", "align": "end"},
    {"name": "q_error", "title": "q-error", "width": "minmax(64px,.6fr)", "align": "end",
     "about": "the factor by which the estimate is off, in either direction: 1 is perfect"},
    {"name": "before", "title": "before", "width": "minmax(84px,.8fr)", "align": "end",
     "about": "rows before the last commit"},
    {"name": "bytes", "title": "bytes", "width": "minmax(72px,.7fr)", "align": "end"},
    {"name": "values", "title": "values read", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "rests", "title": "rests on", "width": "minmax(220px,3fr)"},
)  # fmt: skip


class EstimateView(View):
    """Rows and bytes by source, with bounds, and with q-errors once the rows are counted."""

    name = "estimates"
    title = "Estimates: what an optimizer would expect"
    follows = ("estimates", "earlier_estimates", "row_filter")

    def __init__(self, state: ExplorerState, questions: QuestionCoordinator) -> None:
        self._questions = questions
        super().__init__(state)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.count = ipywidgets.Button(description="Count the rows", icon="calculator", tooltip="Reads the data")
        self.count.on_click(lambda _: self._questions.count())
        self.set_controls(self.count)
        self.grid = Grid("Estimates by source", _COLUMNS, row_height=28, least_rows=8)
        self.body.children = [self.grid]

    def draw(self) -> None:
        """Show the estimates."""
        estimates: Estimates | None = self.state.estimates
        self.count.disabled = estimates is None or self.is_loading or estimates.actual is not None
        if estimates is None:
            note = self.note if self.note and not self.state.notes.get("plan") else ""
            self.grid.show_rows(ListedRows([]), note or "Estimates for the filter above appear here, one per source.")
            self.say("")
            return
        rows_counted = (
            "rows not counted yet" if estimates.actual is None else f"{counted(estimates.actual, 'row')} counted"
        )
        self.say(f"{estimates.row_filter}: {rows_counted}; bars are on a logarithmic scale")
        before = {one.source: one for one in self.state.earlier_estimates or ()}
        most = max((one.rows or 0 for one in estimates), default=0)
        rows = [_row(i, one, before.get(one.source), most) for i, one in enumerate(estimates)]
        left_out = (
            "" if is_small(self.state) else f"No estimate from data files: the table has over {MOST_FILES:,} of them."
        )
        self.grid.show_rows(ListedRows(rows), self.note or left_out)

    def to_arrow(self) -> pa.Table | None:
        """Return the estimates."""
        return None if self.state.estimates is None else self.state.estimates.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the estimates."""
        asked = "" if is_small(self.state) else f", sources={affordable_sources(self.state)!r}"
        return f"table.estimate({effective_filter(self.state) or 'true'!r}{asked})"


def _row(number: int, one: SourceEstimate, before: SourceEstimate | None, most: float) -> Row:
    rows: dict[str, Any] = text_cell(_count(one.rows), one.reason or one.assumes)
    if one.rows is not None and most:
        rows["b"] = round(math.log10(one.rows + 1) / math.log10(most + 1), 4) if most > 0 else 0
    ends = f"{_count(one.rows_lower)} … {_count(one.rows_upper)}"
    cells = [
        text_cell(one.source, kind="strong"),
        rows,
        text_cell(ends, one.bound) if one.rows_upper is not None else text_cell("–", "no bounds"),
        _q_error(one.q_error),
        text_cell("–" if before is None else _count(before.rows), "" if before is None else before.assumes),
        text_cell(render_bytes(None if one.bytes is None else round(one.bytes))),
        text_cell(
            f"{one.values_read:,}",
            f"{counted(one.values_read, 'value')} in {counted(one.bytes_read, 'byte')}, {one.duration_ms:.3g} ms",
        ),
        text_cell(one.reason if one.rows is None else one.assumes),
    ]
    return {"key": f"e{number}", "depth": 0, "cells": cells}


def _q_error(q_error: float | None) -> dict[str, Any]:
    if q_error is None:
        return text_cell("–", "count the rows to see how far off the estimate is")
    kind = "good" if q_error <= _GOOD else "bad" if q_error >= _BAD else "fair"
    return text_cell(f"{q_error:,.3g}" if q_error < 1000 else f"{q_error:,.0f}", kind=kind)


def _count(rows: float | None) -> str:
    if rows is None:
        return "unknown"
    return f"{rows:,.2g}" if 0 < rows < 1 else f"{rows:,.0f}"
