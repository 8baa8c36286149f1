"""Plans and estimates what is asked, in the background: one question at a time, and after it the newest."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from icestats.estimation.sources import SOURCES
from icestats.snapshot.pruning.plan import PlanOutlook
from icestats.table.table import Table
from icestats_widgets.reading.background import Background
from icestats_widgets.reading.filters.asked_filter import asked_manifests, effective_filter
from icestats_widgets.reading.filters.filter_check import check_filter
from icestats_widgets.reading.filters.filter_values import suggest_filters
from icestats_widgets.reading.state_reader import StateReader
from icestats_widgets.state import ExplorerState

_logger = logging.getLogger(__name__)
MOST_FILES = 100_000
"""For a larger table, the statistics of each file are read only on request."""


class QuestionCoordinator(StateReader):
    """Follows what is asked, and puts the plan, the estimates and the layout into the state."""

    def __init__(self, state: ExplorerState, background: Background) -> None:
        super().__init__(state, background)
        self._one_at_a_time = threading.Lock()
        asked = ["row_filter", "clauses", "selection"]
        # Estimates from before a commit are compared with those of the same filter only.
        state.observe(lambda _: setattr(state, "earlier_estimates", None), asked)
        state.observe(lambda _: self.ask(), [*asked, "table"])
        state.observe(lambda _: self.drop("workload"), "table")
        state.observe(lambda _: self.drop("plan_comparison"), [*asked, "table"])
        state.observe(lambda _: self._await_layout(), "table")
        state.observe(lambda change: self._loaded(change.old - change.new), "loading")
        state.observe(lambda _: self._suggest(), "columns")

    def ask(self) -> None:
        """Plan and estimate what the state asks. Of what fails, a note is left."""
        state = self._state
        row_filter, manifest_paths, table = effective_filter(state), asked_manifests(state), state.table
        # What is still read or counted is of an earlier question, or of the table as it was.
        for kind in ("question", "outlook", "estimates"):
            self._background.drop(kind)
        state.outlook = None
        if row_filter is None:
            for part in ("plan", "estimates"):
                self._show(part, None)
            return
        for part in ("plan", "estimates"):
            state.set_loading(part, loading=True)
        self._foresee(table, row_filter, manifest_paths)
        questions = {
            "plan": partial(table.plan, row_filter, manifest_paths=manifest_paths),
            "estimates": partial(table.estimate, row_filter, sources=affordable_sources(state)),
        }
        self._background.run("question", partial(self._answer, questions), lambda _: None, lambda _: None)

    def _foresee(self, table: Table, row_filter: str, manifest_paths: tuple[str, ...] | None) -> None:
        # Not in the queue of plans: the manifests of a large table are read for seconds, while a person types on.
        def read() -> tuple[str, tuple[str, ...] | None, PlanOutlook]:
            return row_filter, manifest_paths, table.plan_outlook(row_filter, manifest_paths=manifest_paths)

        self._background.run("outlook", read, partial(setattr, self._state, "outlook"), lambda _: None)

    def count(self) -> None:
        """Count the rows that match the filter, to give each estimate its q-error."""
        row_filter = effective_filter(self._state)
        if row_filter is not None and self._state.estimates is not None:
            ask = partial(self._state.table.estimate, row_filter, sources=affordable_sources(self._state), actual=True)
            self.start("estimates", ask)

    def read_layout(self) -> None:
        """Measure the layout of the table, which reads the statistics of every file."""
        self.start("layout_report", self._state.table.layout)

    def _answer(self, questions: Mapping[str, Callable[[], Any]]) -> None:
        # Work that nobody waits for any more would take the processors from the answer that is waited for.
        with self._one_at_a_time:
            for part, work in questions.items():
                if not self._background.is_wanted():
                    return
                try:
                    delivery = partial(self._show, part, work())
                except Exception as error:
                    _logger.debug("%s failed", part, exc_info=True)
                    delivery = partial(self._fail, part, error)
                self._background.deliver_part(delivery)

    def _show(self, part: str, found: Any) -> None:
        # Estimates come after their plan, or fail: those of another snapshot say nothing of this one.
        before = self._state.plan
        if part == "plan" and found is not None and (before is None or before.snapshot_id != found.snapshot_id):
            self._state.estimates = None
        super()._show(part, found)

    def _fail(self, part: str, error: Exception) -> None:
        # What stands there answers an earlier question.
        setattr(self._state, part, None)
        self._excuse(part, error)

    def _await_layout(self) -> None:
        self._background.drop("layout_report")
        self._state.set_loading("layout_report", loading=self._state.layout_report is not None)

    def _loaded(self, parts: frozenset[str]) -> None:
        # Not the manifests are followed: traitlets tells nobody of those that equal the ones before.
        if "manifests" not in parts:
            return
        self.drop("layout_report")
        if self._state.manifests is None:
            return
        # Modules that planning needs are imported before a person has typed a filter.
        self._background.run("warm", partial(self._state.table.plan_outlook, "true"), lambda _: None, lambda _: None)
        if is_small(self._state):
            self.read_layout()

    def _suggest(self) -> None:
        state = self._state
        if state.columns is not None:
            ideas = suggest_filters(state.columns, state.table.schema)
            state.ideas = [idea for idea in ideas if check_filter(idea, state.table).fits]


def is_small(state: ExplorerState) -> bool:
    """Return whether there is time and memory to read the statistics of each file without being asked."""
    overview = state.overview
    return overview is not None and overview.data_file_count is not None and overview.data_file_count <= MOST_FILES


def affordable_sources(state: ExplorerState) -> tuple[str, ...]:
    """Return the sources of estimates to ask: for a large table, without the data files."""
    return tuple(source for source in SOURCES if source != "data-files" or is_small(state))
