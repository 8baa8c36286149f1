"""The bar that stays in sight: the filter, what is wrong with it, what may come next, and its answer in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from icestats.answers.text import counted, printable, render_bytes, render_count
from icestats.estimation.estimates import Estimates
from icestats.snapshot.pruning.plan import Plan
from icestats_widgets.reading.filters.asked_filter import asked_manifests, drop_chip, effective_filter, find_chips
from icestats_widgets.reading.filters.date_literals import find_date_hint
from icestats_widgets.reading.filters.filter_check import check_filter
from icestats_widgets.reading.filters.filter_completion import complete_filter
from icestats_widgets.reading.selected_part import SelectedPart
from icestats_widgets.state import ExplorerState

_MOST_CHARACTERS = 100_000
_BEST_SOURCES = ("combined", "data-files", "kll-by-partition", "kll", "manifests", "table")
"""Whose estimate stands in the summary: the first that has one."""


class FilterBar:
    """The filter of the whole page.

    `ExplorerState.row_filter` is only ever a filter that fits the table. While the box holds another text, the bar says
    what is wrong with it, and everything else stays as the last filter that fitted left it.

    Parameters
    ----------
    state : ExplorerState
        What is asked and found.
    """

    def __init__(self, state: ExplorerState) -> None:
        self.state = state
        self.text = state.row_filter
        """What stands in the box."""
        self.send: Callable[[dict[str, Any]], object] = lambda _: None
        """Sends a message to the page; the explorer sets it."""
        self._is_entered = False
        state.observe(lambda change: self._take(change["new"]), "row_filter")

    def document(self) -> dict[str, Any]:
        """Return the bar as the page draws it."""
        check = check_filter(self.text, self.state.table)
        note = self.state.notes.get("plan", "")
        return {
            "text": self.text,
            "error": check.error or (check.hint if self._is_entered else "") or note,
            "hint": check.hint,
            "summary": printable(self.summary()),
            "busy": "plan" in self.state.loading,
            "is_waiting": self.text.strip() != self.state.row_filter.strip(),
            "chips": [
                {"text": printable(chip.text), "action": {"chip": chip.name}, "about": printable(chip.about)}
                for chip in find_chips(self.state)
            ],
            "ideas": list(self.state.ideas),
            "tip": self._tip() if check.fits else None,
            "code": self.code(),
        }

    def act(self, verb: str, value: Any) -> None:
        """Do what a person asks for; what is not understood is ignored."""
        method = getattr(self, f"on_{verb}", None)
        if method is not None:
            method(value if isinstance(value, dict) else {})

    def on_type(self, value: dict[str, Any]) -> None:
        """Check what stands in the box, and ask it if it fits."""
        self._read(value, is_entered=False)

    def on_enter(self, value: dict[str, Any]) -> None:
        """Do the same; what is only begun is a mistake now."""
        self._read(value, is_entered=True)

    def on_complete(self, value: dict[str, Any]) -> None:
        """Send what may come next at the cursor."""
        text, cursor, number = (value.get(name) for name in ("text", "cursor", "number"))
        if not isinstance(text, str) or not isinstance(cursor, int) or len(text) > _MOST_CHARACTERS:
            return
        found = complete_filter(self.state, text, cursor)
        items = [{**item._asdict(), "about": printable(item.about)} for item in found.items]
        self.send({"kind": "completions", "number": number, "start": found.start, "end": found.end, "items": items})

    def on_drop(self, value: dict[str, Any]) -> None:
        """Take one chip out."""
        drop_chip(self.state, str(value.get("chip", "")))

    def on_clear(self, _: dict[str, Any]) -> None:
        """Take everything out: the chips, and the text."""
        with self.state.hold_trait_notifications():
            self.state.selection, self.state.clauses, self.state.row_filter = None, {}, ""
        self._take("")

    def summary(self) -> str:
        """Return the answer in a line; empty if nothing is asked, or it cannot be planned."""
        if outlook := describe_outlook(self.state):
            return outlook
        plan: Plan | None = self.state.plan
        # A plan that failed leaves that of an earlier filter.
        if plan is None or effective_filter(self.state) is None or "plan" in self.state.notes:
            return ""
        estimates: Estimates | None = self.state.estimates
        is_same = estimates is not None and estimates.row_filter == plan.row_filter
        rows = _rows(estimates) if is_same and asked_manifests(self.state) is None else ""
        return f"{summarize_plan(plan, self.state)}{rows}"

    def _tip(self) -> dict[str, str] | None:
        hint = find_date_hint(self.text, self.state.table.schema)
        return None if hint is None else {"text": printable(hint.text), "filter": hint.row_filter}

    def code(self) -> str:
        """Return what everything that is asked comes to, as Python text."""
        return f"row_filter = {effective_filter(self.state) or 'true'!r}"

    def _read(self, value: dict[str, Any], *, is_entered: bool) -> None:
        text = value.get("text")
        if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
            return
        self.text, self._is_entered = text, is_entered
        if check_filter(text, self.state.table).fits:
            self.state.row_filter = text.strip()

    def _take(self, row_filter: str) -> None:
        if self.text.strip() != row_filter:
            self.text, self._is_entered = row_filter, False


def describe_outlook(state: ExplorerState) -> str:
    """Return what is known of a plan while manifests are read for it: the most files; empty if none are read."""
    row_filter, manifest_paths, outlook = state.outlook or ("", None, None)
    is_asked = (row_filter, manifest_paths) == (effective_filter(state), asked_manifests(state))
    if "plan" not in state.loading or outlook is None or not is_asked or not outlook.manifest_count:
        return ""
    most = [outlook.file_count] if outlook.file_count is not None else []
    part: SelectedPart | None = None if "partitions" in state.loading else state.asked_part
    if part is not None and part.selection is None and part.answers(state.selection, row_filter):
        most.append(part.file_count)
    total = None if state.overview is None else state.overview.data_file_count
    of_total = "" if total is None else f" of {total:,}"
    said = f"at most {min(most):,}{of_total} {'file' if (total or min(most)) == 1 else 'files'}: " if most else ""
    return f"{said}reading the files of {counted(outlook.manifest_count, 'manifest')}"


def summarize_plan(plan: Plan, state: ExplorerState) -> str:
    """Return how many files a plan reads, and how large they are, of how many."""
    files = next(step for step in reversed(plan.steps) if step.unit == "file")
    total = None if state.overview is None else state.overview.data_file_count
    size = _data_size(state)
    counts = counted(files.kept, "file") if total is None else f"{render_count(files.kept)} of {counted(total, 'file')}"
    return f"{counts}, {render_bytes(files.kept_bytes)}{'' if size is None else f' of {render_bytes(size)}'}"


def _data_size(state: ExplorerState) -> int | None:
    if state.partitions is not None:
        size: int | None = pc.sum(state.partitions["total_data_file_size_in_bytes"]).as_py()
        return size
    overview = state.overview
    return None if overview is None or overview.delete_file_count != 0 else overview.file_size_in_bytes


def _rows(estimates: Estimates | None) -> str:
    if estimates is None:
        return ""
    if estimates.actual is not None:
        return f", {counted(estimates.actual, 'row')} counted"
    known = {one.source: one for one in estimates if one.rows is not None}
    best = next((known[source] for source in _BEST_SOURCES if source in known), None)
    if best is None or best.rows is None:
        return ""
    rows = f"{best.rows:,.0f} {'row' if round(best.rows) == 1 else 'rows'}"
    if best.rows_upper is None:
        return f", about {rows}"
    if best.rows_upper <= best.rows:
        least = round(best.rows_lower or 0)
        if best.rows_lower == best.rows_upper:
            return f", {rows}" if best.bound.startswith("certain:") else f", about {rows}"
        return f", {least:,} to {rows}" if 0 < least < round(best.rows) else f", at most {rows}"
    return f", about {rows} (at most {best.rows_upper:,.0f})"
