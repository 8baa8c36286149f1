"""Which engine has which statistic: a matrix of columns, statistics and engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ipywidgets
import pyarrow as pa

from icestats.answers.markup import element
from icestats.estimation.coverage import name_state
from icestats.estimation.engine_statistics import list_engines
from icestats_widgets.cells import text_cell
from icestats_widgets.grid import Grid, ListedRows, Row, Seen
from icestats_widgets.view import View

_COLUMNS = (
    {"name": "column", "title": "of", "width": "minmax(120px,1.3fr)"},
    {"name": "statistic", "title": "statistic", "width": "minmax(120px,1.2fr)"},
    *({"name": name, "title": name, "width": "minmax(76px,1fr)"} for name in list_engines()),
)
_KINDS = {"fresh": "good", "missing": "bad", "ignored": "quiet", "not used": "quiet"}
_TOLD = ("source", "command", "evidence")
_OF = {"table": "the table", "partition": "partitions"}


class CoverageView(View):
    """One row per statistic that some engine uses, with what each engine has of it."""

    name = "coverage"
    title = "What engines have"
    follows = ("coverage", "table")

    def build(self) -> None:
        """Make the permanent widgets."""
        self.grid = Grid(
            "What engines have",
            _COLUMNS,
            most_rows=12,
            least_rows=3,
            placeholder="filter: words of a row, such as price, NDV, missing, ignored",
        )
        self.grid.on_select = self._choose
        self.grid.on_filter = self._filter
        self.about = ipywidgets.HTML()
        self.body.children = [self.grid, self.about]
        self._words = ""
        self._groups: dict[str, list[dict[str, Any]]] = {}

    def draw(self) -> None:
        """Show the matrix."""
        coverage = self.state.coverage
        if coverage is None:
            self.say("" if self.note else "Reading what engines have …")
            self.grid.show_rows(ListedRows([]), self.note or "")
            return
        self._groups = {}
        for row in coverage.to_pylist():
            self._groups.setdefault(f"{row['level']}:{row['field_id']}:{row['statistic']}", []).append(row)
        self._groups = {key: rows for key, rows in self._groups.items() if any(row["uses"] for row in rows)}
        states = Counter(name_state(row).lstrip("0123456789, ") for row in coverage.to_pylist())
        counts = ", ".join(f"{states[name]:,} {name}" for name in ("fresh", "behind", "missing", "ignored"))
        self.say(f"{counts}. Choose a row to see why, and the command that helps. – is not used by the engine.")
        self._show()

    def _show(self) -> None:
        rows = [_build_row(key, group) for key, group in self._groups.items()]
        shown = [row for row in rows if all(word in _text_of(row) for word in self._words.lower().split())]
        self.grid.show_rows(ListedRows(shown), "" if shown else "No rows match: shorten the filter.")

    def _filter(self, text: str) -> None:
        self._words = text
        self.grid.show_from_first()
        self._show()

    def _choose(self, key: str, _: Seen) -> None:
        self.grid.selected = [key]
        self.about.value = render_engines(self._groups[key])

    def to_arrow(self) -> pa.Table | None:
        """Return the matrix, `schemas.COVERAGE`."""
        return self.state.coverage

    def code(self) -> str:
        """Return the Python line that gives the matrix."""
        return "table.coverage()"


def render_engines(rows: list[dict[str, Any]]) -> str:
    """Return what each engine has of one statistic as an HTML table, with text from the table escaped."""
    heads = ("engine", "state", "in this table", "command", "evidence")
    lines = [
        (f"{row['engine']} {row['engine_version']}", name_state(row), *(row[name] or "–" for name in _TOLD))
        for row in rows
    ]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    body = element("tbody", *(element("tr", *(element("td", text, title=text) for text in line)) for line in lines))
    caption = element("caption", f"{_of(rows[0])}: {rows[0]['statistic']}")
    table = element("table", caption, head, body, class_="icestats-report-table icestats-coverage-table")
    return element("div", table, class_="icestats-report-frame", tabindex="0", role="region", aria_label="Engines")


def _of(row: dict[str, Any]) -> str:
    if row["column"] is None:
        return _OF[row["level"]]
    return f"{row['column']}, by partition" if row["level"] == "partition-column" else str(row["column"])


def _build_row(key: str, group: list[dict[str, Any]]) -> Row:
    by_engine = {row["engine"]: row for row in group}
    cells = [text_cell(_of(group[0]), kind="strong"), text_cell(group[0]["statistic"])]
    for engine in list_engines():
        row = by_engine[engine]
        state = name_state(row)
        about = "\n".join(text for text in (row["source"], row["command"], row["evidence"]) if text)
        cells.append(text_cell("–" if state == "not used" else state, about, _KINDS.get(state, "fair")))
    return {"key": key, "depth": 0, "cells": cells}


def _text_of(row: Row) -> str:
    return " ".join(cell["t"] for cell in row["cells"]).lower()
