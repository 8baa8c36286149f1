"""Compute statistics, commit them, undo that: step by step, off the thread that answers the browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from icestats.errors import CommitError
from icestats.scan.scan_progress import estimate_seconds_to_go
from icestats.table.statistics import CommitReport, RemovalReport, Statistics, carry_out_removal
from icestats.table.table import Table
from icestats_widgets.reading.background import Background, explain_error
from icestats_widgets.reading.compute_request import ComputeRequest
from icestats_widgets.reading.filters.asked_filter import effective_filter
from icestats_widgets.reading.state_reader import read_anew
from icestats_widgets.state import ExplorerState

BUSY = frozenset({"starting", "scanning", "cancelling", "previewing", "committing", "checking", "undoing"})


class Computation:
    """Compute, preview, commit, undo: each step changes `ExplorerState.phase` and puts its results into the state.

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
        self._thread: int | None = None

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
        self._session = self._thread = None
        state.set_note("compute", None)
        # What was computed before stays until there is something new.
        state.report = state.removal = state.seconds_to_go = None
        state.steps, state.progress = [], (0, 0)
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
        if self._session is not None and self._thread is not None:
            work = partial(_cancel, self._session, self._state.table, self._thread)
            self._background.run("cancel", work, lambda _: None, lambda _: None)

    def preview(self) -> None:
        """Find out what a commit would change."""
        statistics = self._state.statistics
        if statistics is not None and not self.is_busy:
            reach = partial(self._reach, "previewed", "report")
            self._take_step("previewing", partial(_preview, statistics, self._state.table), reach)

    def commit(self) -> None:
        """Make the previewed commit, and reload the table."""
        if self._state.phase == "previewed":
            work = partial(self._commit, self._state.statistics, self._state.table)
            self._take_step("committing", work, self._committed)

    def check_undo(self) -> None:
        """Find out what undoing the last commit of statistics would change."""
        snapshot_id = self._find_undone()
        if snapshot_id is not None and not self.is_busy:
            check = partial(self._state.table.remove_statistics, snapshot_id, restore=True, dry_run=True)
            self._take_step("checking", check, partial(self._reach, "checked", "removal"))

    def undo(self) -> None:
        """Make the change that `check_undo` has shown, and reload the table."""
        snapshot_id = self._find_undone()
        if self._state.phase == "checked" and snapshot_id is not None:
            work = partial(_undo, self._state.table, snapshot_id, self._state.removal)
            self._take_step("undoing", work, self._undone)

    def keep(self) -> None:
        """Undo nothing after all."""
        if self._state.phase == "checked":
            self._rest()

    @property
    def can_undo(self) -> bool:
        """Whether that of the commit just made has statistics, or the snapshot that is shown."""
        return self._find_undone() is not None

    def _find_undone(self) -> int | None:
        state = self._state
        metadata, snapshot = state.table.metadata, state.table.snapshot
        known = {entry.snapshot_id for entry in (*metadata.statistics, *metadata.partition_statistics)}
        wanted = [] if snapshot is None else [snapshot.snapshot_id]
        if state.statistics is not None and state.report is not None and state.report.committed:
            # First, as the snapshot that is shown then may be one of others, with statistics of theirs.
            wanted.insert(0, state.statistics.found.snapshot_id)
        return next((one for one in wanted if one in known), None)

    def _take_step(self, phase: str, work: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        self._state.set_note("compute", None)
        self._state.phase = phase
        self._background.run("commit", work, deliver, self._refused)

    def _reach(self, phase: str, trait: str, report: CommitReport | RemovalReport) -> None:
        setattr(self._state, trait, report)
        self._state.phase = phase

    def _scan(self, table: Table, request: ComputeRequest, cancelled: threading.Event) -> Statistics:
        if table.snapshot is None or not request.scans:
            return table.compute(**request.arguments())
        if request.updates:
            return self._update(table, request, cancelled)
        from icestats.spark.session_catalog import find_session

        self._session = find_session(table._source, None)
        report = self._begin(table, cancelled)
        return table.compute(**request.arguments(), spark=self._session, progress=report)

    def _update(self, table: Table, request: ComputeRequest, cancelled: threading.Event) -> Statistics:
        report = self._begin(table, cancelled)
        found = table.refresh_statistics(columns=request.columns, progress=report)
        if request.partitions or request.manifests:
            more = table.compute(table=False, partitions=request.partitions, manifests=request.manifests)
            found.of_metadata = more.of_metadata
        return found

    def _begin(self, table: Table, cancelled: threading.Event) -> Callable[[int, int], None]:
        """Say that the scan begins, in this thread; return what is told of its tasks."""
        self._thread = thread = threading.get_ident()
        with self._changing:
            if cancelled.is_set():
                raise InterruptedError("cancelled")
            self._state.phase = "scanning"
        started = time.monotonic()

        def report(finished: int, total: int) -> None:
            # The scan may have begun after it was cancelled.
            if cancelled.is_set():
                _cancel(self._session, table, thread)
            self._state.seconds_to_go = estimate_seconds_to_go(time.monotonic() - started, finished, total)
            self._state.progress = (finished, total)

        return report

    def _found(self, statistics: Statistics) -> None:
        with self._changing:
            if self._cancelled.is_set():
                # The scan had ended before it heard of it.
                self._stop(InterruptedError("cancelled"))
                return
            self._state.statistics = statistics
            self._state.phase = "found"
        self.preview()

    def _stop(self, error: Exception) -> None:
        with self._changing:
            text = "Cancelled: nothing has been changed." if self._cancelled.is_set() else explain_error(error)
            self._state.set_note("compute", text)
            self._rest()

    def _rest(self) -> None:
        state = self._state
        if state.report is not None:
            state.phase = "committed" if state.report.committed else "previewed"
        else:
            state.phase = "idle" if state.statistics is None else "found"

    def _commit(self, statistics: Statistics, table: Table) -> tuple[CommitReport, Table, str | None]:
        report = statistics.commit(on_step=self._step)
        return report, *_refresh(table, "Committed")

    def _step(self, step: str) -> None:
        self._state.steps = [*self._state.steps, step]

    def _committed(self, outcome: tuple[CommitReport, Table, str | None]) -> None:
        self._state.report, table, unread = outcome
        self._state.set_note("compute", unread)
        self._state.phase = "committed" if self._state.report.committed else "present"
        estimates = self._state.estimates
        # While the filter is being estimated, what stands there is of an earlier one.
        is_same = estimates is not None and estimates.row_filter == effective_filter(self._state)
        self._state.earlier_estimates = estimates if is_same else None
        self._state.table = table

    def _undone(self, outcome: tuple[RemovalReport, Table, str | None]) -> None:
        self._state.report = None
        self._state.removal, table, unread = outcome
        self._state.set_note("compute", unread)
        self._state.phase = "undone"
        self._state.table = table

    def _refused(self, error: Exception) -> None:
        self._state.set_note("compute", explain_error(error))
        self._rest()


def _preview(statistics: Statistics, table: Table) -> CommitReport:
    table.check_commit()
    return statistics.commit(dry_run=True)


def _undo(table: Table, snapshot_id: int, shown: RemovalReport) -> tuple[RemovalReport, Table, str | None]:
    found = table.remove_statistics(snapshot_id, restore=True, dry_run=True)
    if found.plan is None or found.entries != shown.entries:
        raise CommitError("others have changed these statistics since: look again at what would change")
    report = carry_out_removal(table._source, found.plan)
    return report, *_refresh(table, "Undone")


def _refresh(table: Table, done: str) -> tuple[Table, str | None]:
    """Return the table as it is now; where it cannot be read anew, as it was, and what to say: what is done is done."""
    try:
        return read_anew(table), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it takes nothing back
        why = f"it cannot be read anew ({explain_error(error).rstrip('.')})"
        return table, f"{done}, but the tabs show the table as it was before: {why}. Reload it."


def _cancel(session: Any, table: Table, thread: int | None) -> None:
    """Cancel the scan of a thread: another explorer, of this table or one of its name, may scan too."""
    from icestats.spark.jobs import cancel_jobs
    from icestats.spark.session_catalog import find_session

    cancel_jobs(session or find_session(table._source, None), f"icestats: statistics of {table.name}", thread)
