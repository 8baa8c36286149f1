"""Plans and estimates the filter that a person types, in the background."""

from __future__ import annotations

from functools import partial
from typing import Any

from icestats.estimation.sources import SOURCES
from icestats_widgets.background import Background, explain_error
from icestats_widgets.filter_box import suggest_filters
from icestats_widgets.state import ExplorerState

MOST_FILES = 100_000
"""For a larger table, the statistics of each file are read only on request."""


class QuestionCoordinator:
    """Follows the filter and the selection, and puts the plan, the estimates and the layout into the state.

    Parameters
    ----------
    state : ExplorerState
        What is shown and chosen.
    background : Background
        Where the work runs.
    """

    def __init__(self, state: ExplorerState, background: Background) -> None:
        self._state = state
        self._background = background
        state.observe(lambda _: self._forget(), ["row_filter", "selection"])
        state.observe(lambda _: self.ask(), ["row_filter", "selection", "table"])
        state.observe(lambda _: self._rolled_up(), "manifests")
        state.observe(lambda _: self._suggest(), "columns")

    def ask(self) -> None:
        """Plan and estimate what the state asks."""
        state = self._state
        row_filter = effective_filter(state)
        if not state.row_filter.strip() or row_filter is None:
            for part in ("plan", "estimates"):
                if getattr(state, part) is None and part not in state.loading and part not in state.notes:
                    continue
                self._background.run(part, lambda: None, partial(self._show, part), partial(self._excuse, part))
            return
        table = state.table
        self._start("plan", partial(table.plan, row_filter))
        self._start("estimates", partial(table.estimate, row_filter, sources=affordable_sources(state)))

    def _forget(self) -> None:
        # Estimates from before a commit are compared with those of the same filter only.
        self._state.earlier_estimates = None

    def count(self) -> None:
        """Count the rows that match the filter, to give each estimate its q-error."""
        row_filter = effective_filter(self._state)
        if row_filter is not None and self._state.estimates is not None:
            ask = partial(self._state.table.estimate, row_filter, sources=affordable_sources(self._state), actual=True)
            self._start("estimates", ask)

    def read_layout(self) -> None:
        """Measure the layout of the table, which reads the statistics of every file."""
        self._start("layout_report", self._state.table.layout)

    def _rolled_up(self) -> None:
        self._state.layout_report = None
        if self._state.manifests is not None and is_small(self._state):
            self.read_layout()

    def _suggest(self) -> None:
        if self._state.columns is not None:
            self._state.ideas = suggest_filters(self._state.columns, self._state.table.schema)

    def _start(self, part: str, work: Any) -> None:
        self._state.set_loading(part, loading=True)
        self._background.run(part, work, partial(self._show, part), partial(self._excuse, part))

    def _show(self, part: str, found: Any) -> None:
        setattr(self._state, part, found)
        self._state.set_note(part, None)
        self._state.set_loading(part, loading=False)

    def _excuse(self, part: str, error: Exception) -> None:
        setattr(self._state, part, None)
        self._state.set_note(part, explain_error(error))
        self._state.set_loading(part, loading=False)


def is_small(state: ExplorerState) -> bool:
    """Return whether there is time and memory to read the statistics of each file without being asked."""
    overview = state.overview
    return overview is not None and overview.data_file_count is not None and overview.data_file_count <= MOST_FILES


def affordable_sources(state: ExplorerState) -> tuple[str, ...]:
    """Return the sources of estimates to ask: for a large table, without the data files."""
    return tuple(source for source in SOURCES if source != "data-files" or is_small(state))


def effective_filter(state: ExplorerState) -> str | None:
    """Return the typed filter and as much of the selection as a filter can express; None if there is neither."""
    typed = state.row_filter.strip()
    marked = None if state.selection is None else state.selection.row_filter(state.table.schema)
    if typed and marked:
        return f"({typed}) and {marked}"
    return typed or marked
