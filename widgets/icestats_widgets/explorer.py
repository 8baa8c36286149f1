"""The explorer: everything that a table's metadata knows, in one widget."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import ipywidgets

from icestats.table.table import Table
from icestats_widgets.background import Background
from icestats_widgets.column_view import ColumnView
from icestats_widgets.computation import Computation
from icestats_widgets.compute_view import ComputeView
from icestats_widgets.coordinator import Coordinator
from icestats_widgets.coverage_view import CoverageView
from icestats_widgets.estimate_view import EstimateView
from icestats_widgets.finding_view import FindingView
from icestats_widgets.histogram_view import HistogramView
from icestats_widgets.manifest_view import ManifestView
from icestats_widgets.partition_view import PartitionView
from icestats_widgets.plan_view import PlanView
from icestats_widgets.plotly_bundle import find_bundle, pack_bundle
from icestats_widgets.question_coordinator import QuestionCoordinator
from icestats_widgets.selection_view import SelectionView
from icestats_widgets.snapshot_view import SnapshotView
from icestats_widgets.state import ExplorerState
from icestats_widgets.statistics_view import StatisticsView
from icestats_widgets.summary_view import SummaryView
from icestats_widgets.tree_coordinator import TreeCoordinator
from icestats_widgets.tree_view import TreeView
from icestats_widgets.view import View

_LONGEST_HEAD_START_SECONDS = 1.5
"""After this time the rest is read even if no page reports that it shows the explorer."""
_STYLE = Path(__file__).with_name("explorer.css")


class Explorer(ipywidgets.VBox):
    """Totals, manifests, partitions, columns with their distribution, and the panel that computes missing statistics.

    The first view needs only the manifest list; the rest is read in the background. Nothing is written until you press
    *Commit*.

    Parameters
    ----------
    table : icestats.Table
        What to show.
    column : str, optional
        The column to start with.

    Examples
    --------
    >>> import icestats
    >>> explorer = icestats.load("demo.events").explore()
    >>> explorer.state.column = "event_type"
    """

    def __init__(self, table: Table, *, column: str | None = None) -> None:
        if column is not None:
            table.schema.find(column)
        threading.Thread(target=pack_bundle, name="icestats plotly", daemon=True).start()
        self.state = ExplorerState(table=table, column=column, is_drawing=False)
        """What is shown and selected. Set its traits to change the selection."""
        self._background = Background()
        self._coordinator = Coordinator(self.state, self._background)
        self._coordinator.read_overview()
        self._tree = TreeCoordinator(self.state, self._background)
        self.summary = SummaryView(self.state)
        self.selection = SelectionView(self.state)
        self.manifests = ManifestView(self.state)
        self.partitions = PartitionView(self.state)
        self.tree = TreeView(self.state)
        self.columns = ColumnView(self.state)
        self.histogram = HistogramView(self.state)
        self._questions = QuestionCoordinator(self.state, self._background)
        self.plan = PlanView(self.state)
        self.estimates = EstimateView(self.state, self._questions)
        self.findings = FindingView(self.state, self._questions)
        self.snapshots = SnapshotView(self.state)
        self.statistics = StatisticsView(self.state)
        self.coverage = CoverageView(self.state)
        self.compute = ComputeView(self.state, Computation(self.state, self._background))
        self.parts: tuple[View, ...] = (
            self.manifests,
            self.partitions,
            self.columns,
            self.histogram,
            self.findings,
            self.tree,
            self.plan,
            self.estimates,
            self.snapshots,
            self.statistics,
            self.coverage,
            self.compute,
        )
        grid = ipywidgets.Box(self.parts)
        grid.add_class("icestats-grid")
        style = ipywidgets.HTML(f"<style>{_STYLE.read_text()}</style>")
        style.layout.display = "none"
        self.selection.lines = self.code
        super().__init__([style, self.summary, self.selection, grid])
        self.add_class("icestats-explorer")
        self._tree.read()
        self._starting = threading.Lock()
        self._is_started = self._is_reading = False
        self._start_soon()

    def code(self) -> str:
        """Return the Python lines that reproduce the view, part by part."""
        seen: dict[str, str] = {}
        for view in (self.summary, self.selection, *self.parts):
            seen.setdefault(view.code(), view.name)
        table = self.state.table
        arguments = [repr(table.name), *(f"{name}={value!r}" for name, value in table.pin.items())]
        lines = ["import icestats", "", f"table = icestats.load({', '.join(arguments)})"]
        if self.state.selection is not None:
            lines = ["import datetime", "", "from icestats_widgets import FieldRange, Selection, read_part", *lines]
        return "\n".join([*lines, *(f"{name} = {line}" for line, name in seen.items())])

    def _start_soon(self) -> None:
        # In a notebook the first picture goes to the browser before the processors are taken by reading and drawing.
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._start()
            self._read()
        else:
            self.tree.grid.on_shown = self._start
            loop.call_later(_LONGEST_HEAD_START_SECONDS, self._start)

    def _start(self) -> None:
        with self._starting:
            if self._is_started:
                return
            self._is_started = True
        self._background.run("figures", find_bundle, self._draw, self._draw)
        # Nor does reading take them from the chart of the manifests, which needs the manifest list only.
        late = threading.Timer(_LONGEST_HEAD_START_SECONDS, self._read)
        late.daemon = True
        late.start()

    def _draw(self, _: object) -> None:
        self.state.is_drawing = True
        if self.manifests.figure is None:
            self._read()
        else:
            self.manifests.figure.on_shown = self._read

    def _read(self) -> None:
        with self._starting:
            if self._is_reading:
                return
            self._is_reading = True
        self._coordinator.read_rollups()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything is read; return whether that happened in time."""
        self._start()
        self._read()
        return self._background.wait(timeout_s)
