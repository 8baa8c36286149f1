"""Compute statistics with Spark and commit them, step by step, off the thread that answers the browser."""

from __future__ import annotations

import threading
from typing import Any

from icestats.table.statistics import CommitReport, Statistics
from icestats.table.table import Table
from icestats_widgets.background import Background, explain_error
from icestats_widgets.compute_request import ComputeRequest
from icestats_widgets.state import ExplorerState

BUSY = frozenset({"starting", "scanning", "cancelling", "previewing", "committing"})


class Computation:
    """Compute, preview, commit: each step changes `ExplorerState.phase` and puts its results into the state.

    Parameters
    ----------
    state : ExplorerState
        Holds the table and receives the results.
    background : Background
        Where the work runs.
    """

    def __init__(self, state: ExplorerState, background: Background) -> None:
        self._state = state
        self._background = background
        self._cancelled = threading.Event()
        # A cancel comes before the end of a scan or after it, never in between.
        self._changing = threading.RLock()
        self._session: Any = None

    @property
    def is_busy(self) -> bool:
        """Whether a step is running."""
        return self._state.phase in BUSY

    def compute(self, request: ComputeRequest) -> None:
        """Start computing.

        Parameters
        ----------
        request : ComputeRequest
            Columns and kinds.
        """
        if self.is_busy:
            return
        state = self._state
        self._cancelled = cancelled = threading.Event()
        self._session = None
        state.set_note("compute", None)
        state.statistics, state.report, state.steps, state.progress = None, None, [], (0, 0)
        state.phase = "starting"
        table = state.table
        self._background.run("compute", lambda: self._scan(table, request, cancelled), self._found, self._stop)

    def cancel(self) -> None:
        """Stop the scan, if one is running."""
        with self._changing:
            if self._state.phase not in ("starting", "scanning"):
                return
            self._cancelled.set()
            self._state.phase = "cancelling"
        if self._session is not None:
            session, table = self._session, self._state.table
            self._background.run("cancel", lambda: _cancel(session, table), lambda _: None, lambda _: None)

    def preview(self) -> None:
        """Find out what a commit would change."""
        if self._state.statistics is None or self.is_busy:
            return
        statistics, table = self._state.statistics, self._state.table
        self._state.set_note("compute", None)
        self._state.phase = "previewing"
        self._background.run("commit", lambda: self._preview(statistics, table), self._previewed, self._refused)

    def commit(self) -> None:
        """Make the previewed commit, and reload the table."""
        if self._state.phase != "previewed":
            return
        statistics, table = self._state.statistics, self._state.table
        self._state.phase = "committing"
        self._background.run("commit", lambda: self._commit(statistics, table), self._committed, self._refused)

    def _preview(self, statistics: Statistics, table: Table) -> CommitReport:
        table.check_commit()
        return statistics.commit(dry_run=True)

    def _scan(self, table: Table, request: ComputeRequest, cancelled: threading.Event) -> Statistics:
        arguments = request.arguments()
        if table.snapshot is None or not request.scans:
            return table.compute(**arguments)
        from icestats.spark.session_catalog import find_session

        session = self._session = find_session(table._source, None)
        with self._changing:
            if cancelled.is_set():
                raise InterruptedError("cancelled")
            self._state.phase = "scanning"

        def report(finished: int, total: int) -> None:
            # The scan may have begun after it was cancelled.
            if cancelled.is_set():
                _cancel(session, table)
            self._state.progress = (finished, total)

        return table.compute(**arguments, spark=session, progress=report)

    def _found(self, statistics: Statistics) -> None:
        with self._changing:
            if self._cancelled.is_set():
                # The scan had ended before it heard of it.
                self._stop(InterruptedError("cancelled"))
                return
            self._state.statistics = statistics
            self._state.phase = "found"

    def _stop(self, error: Exception) -> None:
        with self._changing:
            text = "Cancelled: nothing has been changed." if self._cancelled.is_set() else explain_error(error)
            self._state.set_note("compute", text)
            self._state.phase = "idle"

    def _previewed(self, report: CommitReport) -> None:
        self._state.report = report
        self._state.phase = "previewed"

    def _commit(self, statistics: Statistics, table: Table) -> tuple[CommitReport, Table]:
        report = statistics.commit(on_step=self._step)
        return report, table.refresh()

    def _step(self, step: str) -> None:
        self._state.steps = [*self._state.steps, step]

    def _committed(self, outcome: tuple[CommitReport, Table]) -> None:
        self._state.report, table = outcome
        self._state.phase = "committed"
        self._state.earlier_estimates = self._state.estimates
        self._state.table = table

    def _refused(self, error: Exception) -> None:
        self._state.set_note("compute", explain_error(error))
        self._state.phase = "found"


def _cancel(session: Any, table: Table) -> None:
    from icestats.spark.jobs import cancel_jobs

    cancel_jobs(session, f"icestats: statistics of {table.name}")
