"""What is wrong with the table, how severe it is, and the statement that fixes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import ipywidgets
import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.text import counted
from icestats.table.overview import Overview
from icestats_widgets.cells import text_cell
from icestats_widgets.grid import Grid, ListedRows, Row
from icestats_widgets.question_coordinator import QuestionCoordinator, is_small
from icestats_widgets.state import ExplorerState
from icestats_widgets.view import View

_ORDER = ("error", "warning", "note")
_COLUMNS = (
    {"name": "severity", "title": "severity", "width": "minmax(78px,.4fr)"},
    {"name": "finding", "title": "finding and evidence", "width": "minmax(260px,3fr)"},
    {"name": "fix", "title": "fix", "width": "minmax(220px,2.4fr)"},
)


class FindingView(View):
    """Findings from the manifest list, the statistics and the layout."""

    name = "findings"
    title = "Findings"
    follows = ("overview", "layout_report", "estimates", "manifests")
    hears = ("layout_report",)

    def __init__(self, state: ExplorerState, questions: QuestionCoordinator) -> None:
        self._questions = questions
        super().__init__(state)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.look = ipywidgets.Button(description="Check the layout", icon="search", tooltip="Reads every entry")
        self.look.on_click(lambda _: self._questions.read_layout())
        self.set_controls(self.look)
        self.grid = Grid("Findings", _COLUMNS, row_height=46, most_rows=6, least_rows=2)
        self.body.children = [self.grid]

    def draw(self) -> None:
        """Show the findings."""
        found = self._find()
        reading = "layout_report" in self.state.loading
        state = self.state
        self.look.disabled = reading or state.layout_report is not None or state.manifests is None
        self.controls.layout.display = "none" if state.overview is None or is_small(state) else None
        note = self.state.notes.get("layout_report", "")
        counts = [counted(n, s) for s in _ORDER if (n := sum(f.severity == s for f in found))]
        self.say(", ".join(counts) + (" · checking the layout …" if reading else "") if counts or reading else "")
        rows = [_row(number, finding) for number, finding in enumerate(found)]
        self.grid.show_rows(ListedRows(rows), note or ("" if rows else "No problems found."))

    def _find(self) -> list[Finding]:
        overview, layout = self.state.overview, self.state.layout_report
        found = [] if overview is None else list(overview_findings(overview))
        found += () if layout is None else layout.findings
        found += () if self.state.estimates is None else self.state.estimates.findings
        return sorted(found, key=lambda finding: _ORDER.index(finding.severity))

    def to_arrow(self) -> pa.Table | None:
        """Return the findings: `severity`, `title`, `evidence`, `fix`; null if there is no fix."""
        return findings_table(self._find())

    def code(self) -> str:
        """Return the Python line that gives the layout's findings."""
        return "table.layout()"


def findings_table(found: Iterable[Finding]) -> pa.Table:
    """Return findings as a table, one row a finding."""
    names = ("severity", "title", "evidence", "fix")
    schema = pa.schema([pa.field(name, pa.string(), nullable=name == "fix") for name in names])
    return pa.Table.from_pylist([finding.to_json() for finding in found], schema=schema)


def overview_findings(overview: Overview) -> Iterator[Finding]:
    """Yield what the manifest list and metadata.json show."""
    for text in overview.findings:
        title, _, evidence = text.partition(": ")
        is_missing = overview.statistics_commits_behind is None and overview.snapshot is not None
        is_old = bool(overview.statistics_commits_behind)
        fix = None
        if text.startswith("No statistics") and is_missing:
            fix = "table.compute().commit()"
        elif text.startswith("The statistics are") and is_old:
            fix = "table.refresh_statistics().commit()"
        yield Finding("warning" if fix else "note", title, evidence, fix)


def _row(number: int, finding: Finding) -> Row:
    fix = text_cell(finding.fix or "–", kind="code" if finding.fix else "quiet")
    if finding.fix:
        fix["c"] = finding.fix
    title = text_cell(finding.title, f"{finding.title}\n{finding.evidence}")
    cells = [text_cell(finding.severity, kind=finding.severity), {**title, "s": finding.evidence}, fix]
    return {"key": f"f{number}", "depth": 0, "cells": cells}
