"""The panel that computes the missing statistics and commits them."""

from __future__ import annotations

from html import escape

import ipywidgets
import pyarrow as pa

from icestats.statistics import Statistics
from icestats_widgets.column_cards import render_value
from icestats_widgets.computation import BUSY, Computation
from icestats_widgets.state import ExplorerState
from icestats_widgets.view import View

_SAYS = {
    "idle": "",
    "starting": "Starting Spark; the first time takes some seconds …",
    "scanning": "Scanning …",
    "cancelling": "Cancelling …",
    "found": "Computed; nothing has been changed yet. Preview the commit to see what it would write.",
    "previewing": "Looking at what the commit would change …",
    "previewed": "Nothing has been changed yet: this is what the commit would do.",
    "committing": "Committing …",
    "committed": "Committed; the table above is shown as it is now.",
}


class ComputeView(View):
    """Columns to choose, a scan with progress and cancel, a preview, a commit."""

    name = "compute"
    title = "Compute and commit statistics"
    follows = ("phase", "progress", "statistics", "report", "steps", "table")

    def __init__(self, state: ExplorerState, computation: Computation) -> None:
        self._computation = computation
        super().__init__(state)

    def build(self) -> None:
        """Make the widgets that stay."""
        names = [field.name for field in self.state.table.schema.top_level]
        self.all_columns = ipywidgets.Checkbox(True, description="all columns", indent=False)
        self.columns = ipywidgets.SelectMultiple(options=names, rows=min(8, max(2, len(names))), disabled=True)
        self.columns.layout.display = "none"
        self.compute = ipywidgets.Button(description="Compute", button_style="primary", icon="play")
        self.cancel = ipywidgets.Button(description="Cancel", icon="stop")
        self.preview = ipywidgets.Button(description="Preview commit", icon="search")
        self.commit = ipywidgets.Button(description="Commit", button_style="warning", icon="check")
        self.progress = ipywidgets.IntProgress(bar_style="info")
        self.status = ipywidgets.HTML()
        self.outcome = ipywidgets.HTML()
        self.all_columns.observe(lambda _: self._toggle_columns(), "value")
        self.compute.on_click(lambda _: self._computation.compute(self.chosen_columns()))
        self.cancel.on_click(lambda _: self._computation.cancel())
        self.preview.on_click(lambda _: self._computation.preview())
        self.commit.on_click(lambda _: self._computation.commit())
        self.set_controls(self.all_columns, self.compute, self.cancel, self.preview, self.commit, self.progress)
        self.body.children = [self.columns, self.status, self.outcome]
        self.say("One scan with PySpark: Theta and KLL sketches, and column statistics, in one Puffin file.")

    def chosen_columns(self) -> list[str] | None:
        """Return the columns to scan; None for all."""
        return None if self.all_columns.value else list(self.columns.value)

    def draw(self) -> None:
        """Show how far it is."""
        phase = self.state.phase
        self.compute.disabled = phase in BUSY
        self.cancel.disabled = phase not in ("starting", "scanning")
        self.preview.disabled = phase not in ("found", "previewed")
        self.commit.disabled = phase != "previewed"
        finished, total = self.state.progress
        self.progress.layout.display = None if phase in ("starting", "scanning", "cancelling") else "none"
        self.progress.max, self.progress.value = max(total, 1), finished
        counted = f" {finished:,} of {total:,} tasks" if phase == "scanning" and total else ""
        self.status.value = self._status(_SAYS[phase] + counted)
        self.outcome.value = self._outcome()

    def _status(self, text: str) -> str:
        if self.note:
            return f"<div class='icestats-error' role='alert'>{escape(self.note)}</div>"
        return f"<div class='icestats-status' role='status'>{escape(text)}</div>"

    def _outcome(self) -> str:
        if self.state.report is not None:
            return f"<pre class='icestats-report'>{escape(str(self.state.report))}</pre>"
        return "" if self.state.statistics is None else render_statistics(self.state.statistics)

    def _toggle_columns(self) -> None:
        self.columns.disabled = self.all_columns.value
        self.columns.layout.display = "none" if self.all_columns.value else None

    def to_arrow(self) -> pa.Table | None:
        """Return what the scan has found."""
        return None if self.state.statistics is None else self.state.statistics.to_arrow()

    def code(self) -> str:
        """Return the Python lines that compute and commit."""
        columns = self.chosen_columns()
        return f"table.compute({'' if columns is None else f'columns={columns!r}'}).commit(dry_run=True)"


def render_statistics(statistics: Statistics) -> str:
    """Return what a scan has found as an HTML table; what is from the table is escaped."""
    heads = ("column", "values", "nulls", "NaN", "distinct", "smallest", "largest")
    lines = []
    for row in statistics.to_arrow().to_pylist():
        error = row["ndv_relative_error"]
        ndv = f"{row['ndv']:,}" if error == 0 else f"≈ {row['ndv']:,} ± {2 * error:.1%}"
        cells = [
            f"{row['value_count']:,}",
            f"{row['null_value_count']:,}",
            f"{row['nan_value_count']:,}" if row["type"] in ("float", "double") else "–",
            ndv,
            render_value(row["type"], row["min_value"]),
            render_value(row["type"], row["max_value"]),
        ]
        texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th scope='row'>{escape(row['name'])}</th>{texts}</tr>")
    skipped = "".join(
        f"<li>{escape(name)} skipped: {escape(reason)}</li>" for name, reason in statistics.found.skipped.items()
    )
    head = "".join(f"<th scope='col'>{head}</th>" for head in heads)
    return (
        f"<div class='icestats-columns-frame'><table class='icestats-columns'><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>{f'<ul>{skipped}</ul>' if skipped else ''}"
    )
