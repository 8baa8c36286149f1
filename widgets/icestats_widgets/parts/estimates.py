"""What an optimizer would estimate from each kind of statistics, side by side, and how far off each is."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.estimation.estimates import Estimates
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats_widgets.drawing.q_error_figure import build_q_error_figure
from icestats_widgets.page.blocks import Block, button, figure_block, form_block, text_block
from icestats_widgets.page.cells import Cell, text_cell
from icestats_widgets.page.grid import Row
from icestats_widgets.page.part import AskingPart
from icestats_widgets.reading.filters.asked_filter import asked_manifests
from icestats_widgets.reading.question_coordinator import MOST_FILES, affordable_sources, is_small

_GOOD, _BAD = 2.0, 10.0
"""q-errors up to the first are good, from the second on bad."""
_FILTERS = 20
_COLUMNS = (
    {"name": "source", "title": "source", "width": "minmax(120px,1fr)", "name_pixels": 230},
    {"name": "rows", "title": "rows", "width": "minmax(110px,1.2fr)", "align": "end",
     "about": "bars are on a logarithmic scale"},
    {"name": "bounds", "title": "at least … at most", "width": "minmax(140px,1.2fr)", "align": "end"},
    {"name": "q_error", "title": "q-error", "width": "minmax(64px,.6fr)", "align": "end",
     "about": "the factor by which the estimate is off, in either direction: 1 is perfect"},
    {"name": "before", "title": "before", "width": "minmax(84px,.8fr)", "align": "end",
     "about": "rows before the last commit"},
    {"name": "bytes", "title": "bytes", "width": "minmax(72px,.7fr)", "align": "end"},
    {"name": "values", "title": "values read", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "rests", "title": "rests on", "width": "minmax(220px,4fr)"},
)  # fmt: skip


class EstimatePart(AskingPart):
    """Rows and bytes by source, with bounds, and with q-errors once the rows are counted."""

    name = "estimates"
    title = "Estimates: what an optimizer would expect"
    tab = "query"
    follows = ("estimates", "earlier_estimates", "workload")
    hears = ("estimates", "workload")

    def build(self) -> None:
        """Make the grid."""
        self.grid = self.add_grid("sources", "Estimates by source", _COLUMNS, placeholder="")
        self._has: dict[str, bool] = {}

    def blocks(self) -> list[Block]:
        """Return the estimates, and what is wrong with them."""
        estimates: Estimates | None = self.state.estimates
        if estimates is None:
            return []
        before = {one.source: one for one in self.state.earlier_estimates or ()}
        most = max((one.rows or 0 for one in estimates), default=0)
        left_out = f"No estimate from data files: the table has over {MOST_FILES:,} of them."
        rows = [_row(i, one, before.get(one.source), most) for i, one in enumerate(estimates)]
        self._show_columns(q_error=estimates.actual is not None, before=bool(before))
        self.grid.show(rows, "" if is_small(self.state) else left_out)
        findings = [
            text_block(str(finding), "bad" if finding.severity == "error" else "") for finding in estimates.findings
        ]
        return [self.grid.block(), *findings, *self._workload(), form_block(*self._controls(estimates))]

    def caption(self) -> str:
        """Return what is estimated."""
        estimates: Estimates | None = self.state.estimates
        if estimates is None:
            return self.note or "No filter yet: estimates of its rows stand here, one a source."
        truth = "Rows not counted yet" if estimates.actual is None else f"{counted(estimates.actual, 'row')} counted"
        scope = "" if asked_manifests(self.state) is None else "; of all manifests, not of the selected ones"
        return f"{truth} for {estimates.row_filter}{scope}.{'' if not self.note else ' ' + self.note}"

    def to_arrow(self) -> pa.Table | None:
        """Return the estimates."""
        return None if self.state.estimates is None else self.state.estimates.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the estimates."""
        if self.state.estimates is None:
            return ""
        asked = "" if is_small(self.state) else f", sources={affordable_sources(self.state)!r}"
        return f"table.estimate({self.state.estimates.row_filter!r}{asked})"

    def on_count(self, _: Any) -> None:
        """Count the rows, which reads data."""
        self.questions.count()

    def on_workload(self, _: Any) -> None:
        """Estimate many filters, and count their rows."""
        sources = affordable_sources(self.state)
        self.questions.start("workload", partial(self.state.table.estimate_workload, n=_FILTERS, sources=sources))

    def _show_columns(self, **shown: bool) -> None:
        """Show a column once it has figures, and hide it once it has none; a person may do the same in between."""
        for column in self.grid.columns:
            name = column["name"]
            if shown.get(name, self._has.get(name)) is not self._has.get(name):
                column["hidden"] = not shown[name]
        self._has = self._has | shown

    def _controls(self, estimates: Estimates) -> list[Block]:
        is_counted = estimates.actual is not None
        label, about = f"How far off over {_FILTERS} filters?", "Reads the columns that have sketches, once"
        return [
            button("estimates.count", "Count the rows", about="Reads data", is_disabled=is_counted or self.is_loading),
            button("estimates.workload", label, about=about, is_disabled=self.is_loading),
        ]

    def _workload(self) -> list[Block]:
        if self.state.workload is None:
            return []
        workload = self.state.workload.to_arrow()
        picture = build_q_error_figure(workload, width=self.width("workload"))
        return [figure_block("workload", picture.svg, f"q-errors of {_FILTERS} filters by source", name="q-errors")]


def _row(number: int, one: SourceEstimate, before: SourceEstimate | None, most: float) -> Row:
    rows = text_cell(_count(one.rows), one.reason or one.assumes) | {"v": one.rows}
    if one.rows is not None and most > 0:
        rows["b"] = round(math.log10(one.rows + 1) / math.log10(most + 1), 4)
    ends = f"{_count(one.rows_lower)} … {_count(one.rows_upper)}"
    read = f"{counted(one.values_read, 'value')} in {counted(one.bytes_read, 'byte')}, {one.duration_ms:.3g} ms"
    cells = [
        text_cell(one.source, kind="strong"),
        rows,
        text_cell(ends, one.bound) if one.rows_upper is not None else text_cell("–", "no bounds"),
        _q_error(one.q_error),
        text_cell("–" if before is None else _count(before.rows), "" if before is None else before.assumes),
        text_cell(render_bytes(None if one.bytes is None else round(one.bytes))) | {"v": one.bytes},
        text_cell(f"{one.values_read:,}", read) | {"v": one.values_read},
        text_cell(one.reason if one.rows is None else one.assumes),
    ]
    return {"key": f"e{number}", "depth": 0, "cells": cells}


def _q_error(q_error: float | None) -> Cell:
    if q_error is None:
        return text_cell("–", "count the rows to see how far off the estimate is") | {"v": None}
    kind = "good" if q_error <= _GOOD else "bad" if q_error >= _BAD else "fair"
    return text_cell(f"{q_error:,.3g}" if q_error < 1000 else f"{q_error:,.0f}", kind=kind) | {"v": q_error}


def _count(rows: float | None) -> str:
    if rows is None:
        return "unknown"
    return f"{rows:,.2g}" if 0 < rows < 1 else f"{rows:,.0f}"
