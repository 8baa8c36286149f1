"""The panel that computes missing statistics and commits them."""

from __future__ import annotations

import ipywidgets
import pyarrow as pa

from icestats.answers.markup import build_table, element, escape_text
from icestats.answers.text import counted
from icestats.stats.theta import LEAVES_OUT_EMPTY
from icestats.table.statistics import Statistics
from icestats_widgets.column_cards import render_value
from icestats_widgets.computation import BUSY, Computation
from icestats_widgets.compute_request import ComputeRequest, describe_cost
from icestats_widgets.state import ExplorerState
from icestats_widgets.view import View

_KINDS = {
    "table": "Theta, KLL, column statistics",
    "by_partition": "sketches by partition",
    "partitions": "partition statistics file",
    "manifests": "manifest statistics",
}
_SAYS = {
    "idle": "",
    "starting": "Starting Spark; the first time takes a few seconds …",
    "scanning": "Scanning …",
    "cancelling": "Cancelling …",
    "found": "Computed. Nothing has changed yet: preview the commit to see what it would write.",
    "previewing": "Checking what the commit would change …",
    "previewed": "Nothing has changed yet. This is what the commit would do:",
    "committing": "Committing …",
    "committed": "Committed. The table above is up to date.",
}


class ComputeView(View):
    """A choice of columns, a scan with progress and cancel, a preview, a commit."""

    name = "compute"
    title = "Generate and commit statistics"
    follows = ("phase", "progress", "statistics", "report", "steps", "table", "columns", "partitions", "sketches")

    def __init__(self, state: ExplorerState, computation: Computation) -> None:
        self._computation = computation
        super().__init__(state)

    def build(self) -> None:
        """Make the permanent widgets."""
        names = [field.name for field in self.state.table.schema.top_level]
        self.all_columns = ipywidgets.Checkbox(True, description="all columns", indent=False)
        self.columns = ipywidgets.SelectMultiple(options=names, rows=min(8, max(2, len(names))), description="columns")
        self.columns.layout.display = "none"
        self.kinds = {
            name: ipywidgets.Checkbox(name == "table", description=text, indent=False) for name, text in _KINDS.items()
        }
        kinds = ipywidgets.HBox([self.all_columns, *self.kinds.values()])
        kinds.add_class("icestats-controls")
        self.compute = ipywidgets.Button(description="Compute", button_style="primary", icon="play")
        self.cancel = ipywidgets.Button(description="Cancel", icon="stop")
        self.preview = ipywidgets.Button(description="Preview commit", icon="search")
        self.commit = ipywidgets.Button(description="Commit", button_style="warning", icon="check")
        self.progress = ipywidgets.IntProgress(bar_style="info")
        self.status = ipywidgets.HTML()
        self.outcome = ipywidgets.HTML()
        for choice in (self.all_columns, self.columns, *self.kinds.values()):
            choice.observe(lambda _: self.redraw(), "value")
        self.compute.on_click(lambda _: self._computation.compute(self.request()))
        self.cancel.on_click(lambda _: self._computation.cancel())
        self.preview.on_click(lambda _: self._computation.preview())
        self.commit.on_click(lambda _: self._computation.commit())
        self.set_controls(self.compute, self.cancel, self.preview, self.commit, self.progress)
        self.body.children = [kinds, self.columns, self.status, self.outcome]

    def request(self) -> ComputeRequest:
        """Return the selected kinds and columns."""
        columns = None if self.all_columns.value else tuple(self.columns.value)
        return ComputeRequest(columns, **{name: choice.value for name, choice in self.kinds.items()})

    def draw(self) -> None:
        """Show the progress."""
        phase, request = self.state.phase, self.request()
        self.columns.layout.display = "none" if self.all_columns.value else None
        state = self.state
        self.say(describe_cost(request, state.table, state.columns, state.partitions, state.sketches))
        self.compute.disabled = phase in BUSY or request.is_empty
        self.cancel.disabled = phase not in ("starting", "scanning")
        self.preview.disabled = phase not in ("found", "previewed")
        self.commit.disabled = phase != "previewed"
        finished, total = self.state.progress
        self.progress.layout.display = None if phase in ("starting", "scanning", "cancelling") else "none"
        self.progress.max, self.progress.value = max(total, 1), finished
        tasks = f" {finished:,} of {counted(total, 'task')}" if phase == "scanning" and total else ""
        self.status.value = self._status(_SAYS[phase] + tasks)
        self.outcome.value = self._outcome()

    def _status(self, text: str) -> str:
        if self.note:
            return f"<div class='icestats-error' role='alert'>{escape_text(self.note)}</div>"
        return f"<div class='icestats-status' role='status'>{escape_text(text)}</div>"

    def _outcome(self) -> str:
        if self.state.report is not None:
            return f"<pre class='icestats-report' tabindex='0'>{escape_text(str(self.state.report))}</pre>"
        return "" if self.state.statistics is None else render_statistics(self.state.statistics)

    def to_arrow(self) -> pa.Table | None:
        """Return the results of the scan."""
        return None if self.state.statistics is None else self.state.statistics.to_arrow()

    def code(self) -> str:
        """Return the Python lines that compute and commit."""
        return self.request().code()


def render_statistics(statistics: Statistics) -> str:
    """Return the results of a scan as an HTML table, with text from the table escaped."""
    heads = ("column", "values", "nulls", "NaN", "distinct", "smallest", "largest")
    rows = []
    for row in statistics.to_arrow().to_pylist():
        error = row["ndv_relative_error"]
        ndv = f"{row['ndv']:,}" if error == 0 else f"≈ {row['ndv']:,} ± {2 * error:.1%}"
        if row["type"] in LEAVES_OUT_EMPTY and row["min_value"] == b"":
            ndv += " and the empty value"
        rows.append(
            [
                row["name"],
                f"{row['value_count']:,}",
                f"{row['null_value_count']:,}",
                f"{row['nan_value_count']:,}" if row["type"] in ("float", "double") else "–",
                ndv,
                render_value(row["type"], row["min_value"]),
                render_value(row["type"], row["max_value"]),
            ]
        )
    skipped = [element("li", f"{name} skipped: {reason}") for name, reason in statistics.found.skipped.items()]
    frame = {"class_": "icestats-report-frame", "tabindex": "0", "role": "region"}
    table = build_table(heads, rows, class_="icestats-report-table")
    shown = element("div", table, aria_label="What has been computed", **frame)
    return shown + element("ul", *skipped) if skipped else shown
