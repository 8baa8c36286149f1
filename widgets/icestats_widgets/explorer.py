"""The explorer: everything that a table's metadata knows, in one widget."""

from __future__ import annotations

from pathlib import Path

import ipywidgets

from icestats.table import Table
from icestats_widgets.background import Background
from icestats_widgets.column_view import ColumnView
from icestats_widgets.computation import Computation
from icestats_widgets.compute_view import ComputeView
from icestats_widgets.coordinator import Coordinator
from icestats_widgets.histogram_view import HistogramView
from icestats_widgets.manifest_view import ManifestView
from icestats_widgets.partition_view import PartitionView
from icestats_widgets.selection_view import SelectionView
from icestats_widgets.state import ExplorerState
from icestats_widgets.summary_view import SummaryView
from icestats_widgets.tree_coordinator import TreeCoordinator
from icestats_widgets.tree_view import TreeView

_STYLE = Path(__file__).with_name("explorer.css")


class Explorer(ipywidgets.VBox):
    """Figures, manifests, partitions, columns with their distribution, and the panel that computes what is missing.

    The first picture needs the manifest list only; the rest is read in the background. Nothing is written before
    *Commit* is pressed.

    Parameters
    ----------
    table : icestats.Table
        What to show.
    column : str, optional
        The column to begin with.

    Examples
    --------
    >>> import icestats
    >>> explorer = icestats.load("demo.events").explore()
    >>> explorer.state.column = "event_type"
    """

    def __init__(self, table: Table, *, column: str | None = None) -> None:
        if column is not None:
            table.schema.find(column)
        self.state = ExplorerState(table=table, column=column)
        """What is shown and chosen: set its traits to choose."""
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
        self.compute = ComputeView(self.state, Computation(self.state, self._background))
        parts = [self.manifests, self.partitions, self.tree, self.columns, self.histogram, self.compute]
        grid = ipywidgets.Box(parts)
        grid.add_class("icestats-grid")
        style = ipywidgets.HTML(f"<style>{_STYLE.read_text()}</style>")
        style.layout.display = "none"
        super().__init__([style, self.summary, self.selection, grid])
        self.add_class("icestats-explorer")
        self._tree.read()
        self._coordinator.read_rollups()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything that is being read is there; return whether that came in time."""
        return self._background.wait(timeout_s)
