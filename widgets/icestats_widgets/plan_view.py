"""The planning funnel: what a scan with a filter reads, step by step, and why."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from traitlets import link

from icestats.answers.text import counted, render_bytes, render_count
from icestats.plan.pruning.funnel import PlanStep
from icestats.plan.pruning.plan import Plan
from icestats_widgets.cells import text_cell
from icestats_widgets.filter_box import FilterBox
from icestats_widgets.grid import Grid, ListedRows, Row
from icestats_widgets.question_coordinator import effective_filter
from icestats_widgets.view import View

_STEP_COLUMNS = (
    {"name": "step", "title": "step", "width": "minmax(210px,2fr)"},
    {"name": "share", "title": "kept of total", "width": "minmax(130px,2fr)"},
    {"name": "kept", "title": "kept", "width": "minmax(70px,.8fr)", "align": "end"},
    {"name": "skipped", "title": "skipped", "width": "minmax(70px,.8fr)", "align": "end"},
    {"name": "bytes", "title": "kept bytes", "width": "minmax(78px,.8fr)", "align": "end"},
    {"name": "rows", "title": "kept records", "width": "minmax(92px,.9fr)", "align": "end"},
    {"name": "values", "title": "values read", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "time", "title": "ms", "width": "minmax(52px,.5fr)", "align": "end"},
)
_WHY_COLUMNS = (
    {"name": "manifest", "title": "manifest", "width": "minmax(180px,1.6fr)"},
    {"name": "kept", "title": "verdict", "width": "minmax(64px,.5fr)"},
    {"name": "records", "title": "records", "width": "minmax(80px,.7fr)", "align": "end"},
    {"name": "predicate", "title": "predicate", "width": "minmax(150px,1.4fr)"},
    {"name": "why", "title": "why, with the evidence", "width": "minmax(240px,2.6fr)"},
)


class PlanView(View):
    """A filter, and how much of the table its scan has to read."""

    name = "plan"
    title = "Planning: why a query reads what it reads"
    follows = ("plan", "row_filter", "selection", "ideas", "table")

    def build(self) -> None:
        """Make the permanent widgets."""
        self.box = FilterBox(value=self.state.row_filter)
        link((self.state, "row_filter"), (self.box, "value"))
        self.steps = Grid("Steps of the plan", _STEP_COLUMNS, row_height=30, least_rows=4)
        self.why = Grid("Manifests: kept or skipped, and why", _WHY_COLUMNS, most_rows=8, least_rows=4)
        self.set_controls(self.box)
        self.body.children = [self.steps, self.why]
        self._drawn: Any = None

    def draw(self) -> None:
        """Show the funnel."""
        plan: Plan | None = self.state.plan
        self.box.error = self.note or ""
        if self.box.ideas != self.state.ideas:
            self.box.ideas = self.state.ideas
        if plan is None:
            empty = "" if self.note else "Type a filter, or pick a suggestion, to see its plan here."
            self.steps.show_rows(ListedRows([]), empty)
            self.why.show_rows(ListedRows([]))
            self.say("No filter yet." if not self.state.row_filter else "")
            self._drawn = None
            return
        self.say(describe_plan(plan, effective_filter(self.state) != self.state.row_filter.strip()))
        if self._drawn is not plan:
            self._drawn = plan
            self.steps.show_rows(ListedRows([_step_row(i, step) for i, step in enumerate(plan.steps)]))
            self.why.show_rows(_Why(plan))

    def to_arrow(self) -> pa.Table | None:
        """Return the steps."""
        return None if self.state.plan is None else self.state.plan.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the plan."""
        row_filter = effective_filter(self.state)
        return f"table.plan({row_filter or 'true'!r})"


class _Why:
    """The manifests of a plan, kept ones first; explained when they become visible."""

    def __init__(self, plan: Plan) -> None:
        manifests = plan.manifests()
        order = pc.sort_indices(manifests, sort_keys=[("kept", "descending")])
        self._rows = manifests.take(order)

    @property
    def row_count(self) -> int:
        return int(self._rows.num_rows)

    def window(self, offset: int, count: int) -> list[Row]:
        rows = self._rows.slice(offset, count).to_pylist()
        return [_why_row(offset + i, row) for i, row in enumerate(rows)]


def describe_plan(plan: Plan, with_selection: bool) -> str:
    """Return the outcome in a sentence, with the partition filter of each partition spec."""
    last = plan.steps[-1]
    filters = ", ".join(f"spec {spec_id}: {text}" for spec_id, text in plan.partition_filters.items())
    marked = f" (with the selection: {plan.row_filter})" if with_selection else ""
    outcome = (
        f"{counted(last.kept, last.unit)}, {render_bytes(last.kept_bytes)}, "
        f"{counted(last.kept_rows, 'record')} left to read{marked}"
    )
    missing = "; ".join(
        f"{predicate} does not filter partitions: {reason}"
        for found in plan.unprojected.values()
        for predicate, reason in found.items()
    )
    return f"{outcome}. On partitions: {filters}{f'. {missing}' if missing else ''}"


def _step_row(number: int, step: PlanStep) -> Row:
    share = 0.0 if step.kept is None or not step.total else step.kept / step.total
    known = step.kept is not None and step.total
    values = counted(step.values_read, "value")
    cells = [
        text_cell(step.step, step.note or step.step, "strong"),
        {"p": [[round(share, 4), "kept"], [round(1 - share, 4), "skipped"]] if known else [], "t": "",
         "h": f"{render_count(step.kept)} of {counted(step.total, step.unit)} kept"},
        text_cell(render_count(step.kept), f"of {counted(step.total, step.unit)}"),
        text_cell(render_count(step.skipped)),
        text_cell(render_bytes(step.kept_bytes)),
        text_cell(render_count(step.kept_rows)),
        text_cell(f"{step.values_read:,}", f"{values}, {counted(step.bytes_read, 'byte')} of metadata"),
        text_cell(f"{step.duration_ms:,.1f}"),
    ]  # fmt: skip
    return {"key": f"p{number}", "depth": 0, "cells": cells}


def _why_row(number: int, row: dict[str, Any]) -> Row:
    name = row["manifest_path"].rsplit("/", 1)[-1]
    why = f"{row['reason']}{': ' + row['evidence'] if row['evidence'] else ''}"
    cells = [
        text_cell(name, f"{row['manifest_path']}\n{row['step']}"),
        text_cell("kept" if row["kept"] else "skipped", row["step"], "kept" if row["kept"] else "skipped"),
        text_cell(render_count(row["record_count"])),
        text_cell(row["predicate"] or "–"),
        text_cell(why or "–"),
    ]
    return {"key": f"w{number}", "depth": 0, "cells": cells}
