"""What to compute, what it costs, how far it is, what a commit would bring and write, the commit, and undoing it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_duration
from icestats.table.statistics import Statistics
from icestats_widgets.page.blocks import (
    Block,
    button,
    card_block,
    form_block,
    many,
    progress,
    text_block,
    text_field,
    toggle,
)
from icestats_widgets.page.part import Part
from icestats_widgets.parts.commit_preview import (
    ACCURACY,
    FOUND,
    build_accuracy_rows,
    build_change_cards,
    build_costs,
    build_found_rows,
    build_removed,
)
from icestats_widgets.reading.computation import BUSY, Computation
from icestats_widgets.reading.compute_request import (
    UNCHANGED,
    ComputeRequest,
    describe_cost,
    find_blob_ages,
    match_columns,
)
from icestats_widgets.state import PHASES, ExplorerState

_KINDS = {
    "table": ("Theta, KLL, common values, column statistics", "one scan of the data with PySpark"),
    "together": ("columns that go together", "the pairs that a sample of rows shows, in the same scan"),
    "by_partition": ("sketches by partition", "in the same scan"),
    "partitions": ("partition statistics file", "from the manifests, without Spark"),
    "manifests": ("manifest statistics", "from the manifests, without Spark"),
}
_DONE = ("committed", "undone")


class ComputePart(Part):
    """A choice of columns and kinds, a scan with progress and cancel, a preview, a commit, and undoing it."""

    name = "compute"
    title = "Compute and commit"
    tab = "statistics"
    follows = (
        "phase", "progress", "seconds_to_go", "statistics", "report", "removal", "request", "table", "columns",
        "partitions", "sketches", "overview",
    )  # fmt: skip

    def __init__(self, state: ExplorerState, computation: Computation) -> None:
        self._computation = computation
        super().__init__(state)

    def build(self) -> None:
        """Make the grids."""
        self.accuracy = self.add_grid("accuracy", "Accuracy before and after", ACCURACY, most_rows=6)
        self.found = self.add_grid("found", "What has been computed", FOUND, most_rows=8)
        self._pattern = ""
        self._is_found_open = False

    @property
    def request(self) -> ComputeRequest:
        """What is to be computed."""
        return self.state.request or ComputeRequest()

    def blocks(self) -> list[Block]:
        """Return the choice, its cost, how far the work is, and what it would change."""
        state = self.state
        cost = describe_cost(self.request, state)
        return [
            self._build_choice(),
            text_block(cost, "quiet", live="" if self.request.is_empty else UNCHANGED),
            self._build_buttons(),
            *self._build_status(),
            *self._build_removal(),
            *self._build_preview(),
        ]

    def caption(self) -> str:
        """Return what the part is for."""
        return "Choose, compute, look at what a commit would do, and commit."

    def to_arrow(self) -> pa.Table | None:
        """Return what was computed."""
        return None if self.state.statistics is None else self.state.statistics.to_arrow()

    def code(self) -> str:
        """Return the Python lines that compute and show what a commit would do; empty where nothing can be computed."""
        return "" if self.request.is_empty or self.state.table.snapshot is None else self.request.code()

    def on_pattern(self, value: object) -> None:
        """Choose the columns that a text matches."""
        self._pattern = str(value)
        self._choose(match_columns(self.state.table.schema, self._pattern))

    def on_columns(self, value: object) -> None:
        """Choose some columns by name."""
        wanted = set(map(str, value)) if isinstance(value, list) else set()
        names = tuple(field.name for field in self.state.table.schema.top_level if field.name in wanted)
        self._choose(None if len(names) == len(self.state.table.schema.top_level) else names)

    def _choose(self, columns: tuple[str, ...] | None) -> None:
        self.state.request = replace(self.request, columns=columns, updates=False)
        self.redraw()

    def act(self, verb: str, value: Any) -> None:
        """Choose a kind of statistics or do without, or do what a button says."""
        kind = verb.removeprefix("kind_")
        if kind == verb or kind not in _KINDS:
            super().act(verb, value)
            return
        # What comes from manifests is made beside an update; what is scanned takes its place.
        updates = self.request.updates and kind in ("partitions", "manifests")
        changes: dict[str, Any] = {kind: value is True, "updates": updates}
        self.state.request = replace(self.request, **changes)

    def on_updates(self, value: object) -> None:
        """Bring up to date what is committed, from the new files where possible; or scan what is chosen."""
        self.state.request = ComputeRequest(updates=True) if value is True else replace(self.request, updates=False)

    def on_start(self, _: object) -> None:
        """Compute what is chosen."""
        if not self.request.is_empty:
            self._computation.compute(self.request)

    def on_cancel(self, _: object) -> None:
        """Stop the scan."""
        self._computation.cancel()

    def on_preview(self, _: object) -> None:
        """Look again at what a commit would do."""
        self._computation.preview()

    def on_commit(self, _: object) -> None:
        """Commit what the preview shows."""
        if self._can_commit:
            self._computation.commit()

    def on_undo(self, _: object) -> None:
        """Look at what undoing the last commit would do."""
        self._computation.check_undo()

    def on_undo_now(self, _: object) -> None:
        """Undo it."""
        self._computation.undo()

    def on_keep(self, _: object) -> None:
        """Undo nothing after all."""
        self._computation.keep()

    def on_values_open(self, value: object) -> None:
        """Open or close what was computed."""
        self._is_found_open = isinstance(value, dict) and value.get("open") is True
        self.redraw()

    @property
    def _can_commit(self) -> bool:
        report = self.state.report
        return self.state.phase == "previewed" and report is not None and bool(report.files)

    def _build_choice(self) -> Block:
        request = self.request
        names = [field.name for field in self.state.table.schema.top_level]
        chosen = names if request.columns is None else request.columns
        is_partitioned = self.state.table.metadata.has_partition_fields
        fields = [
            text_field(
                "compute.pattern", "search columns", self._pattern, about="names or patterns, such as price, user_*"
            ),
            many("compute.columns", "columns", chosen, [(name, name) for name in names]),
            *(
                toggle(f"compute.kind_{name}", label, getattr(request, name), about)
                for name, (label, about) in _KINDS.items()
                if is_partitioned or "partition" not in name
            ),
            toggle(
                "compute.updates", "new files only", request.updates,
                about="brings what is committed up to date, reading only the files added since where that is possible",
            ),
        ]  # fmt: skip
        return form_block(*fields)

    def _build_buttons(self) -> Block:
        phase, is_busy = self.state.phase, self._computation.is_busy
        can_undo = self._computation.can_undo and not is_busy and phase != "checked"
        shown = [
            button("compute.start", "Compute", tone="primary", is_disabled=is_busy or self.request.is_empty),
            button("compute.cancel", "Cancel", is_disabled=phase not in ("starting", "scanning")),
            button("compute.preview", "Preview", is_disabled=is_busy or self.state.statistics is None),
            button("compute.commit", "Commit", tone="primary", is_disabled=not self._can_commit),
            button("compute.undo", "Undo", tone="danger", is_disabled=not can_undo,
                   about="Takes committed statistics out again, and brings back what they replaced"),
            button("page.reload", "Reload", is_disabled=is_busy, about="Reads the table as it is now"),
        ]  # fmt: skip
        return form_block(*shown)

    def _build_status(self) -> list[Block]:
        state = self.state
        blocks = []
        finished, total = state.progress
        if state.phase == "scanning" and total:
            left = "" if state.seconds_to_go is None else f", {render_duration(state.seconds_to_go)} to go"
            blocks.append(form_block(progress(f"{finished:,} of {counted(total, 'task')}{left}", finished, total)))
        if self.note:
            blocks.append(text_block(self.note, "bad"))
        elif text := PHASES[state.phase]:
            tone = "busy" if state.phase in BUSY else "good" if state.phase in _DONE else ""
            steps = f" {state.steps[-1]}" if state.phase == "committing" and state.steps else ""
            blocks.append(text_block(text + steps, tone))
        return blocks

    def _build_preview(self) -> list[Block]:
        state = self.state
        statistics, report = state.statistics, state.report
        if statistics is None or state.phase in ("starting", "scanning", "cancelling", "undone"):
            return []
        self._show_values(statistics)
        blocks = []
        if report is not None:
            has_accuracy = statistics.found.columns and not report.committed
            accuracy = [self.accuracy.block()] if has_accuracy else []
            titles = ("What the commit brings", "What the commit writes")
            if report.committed:
                titles = ("What the commit has brought", "What was written")
            costs = build_costs(statistics, report)
            blocks += build_change_cards(("preview", "report"), titles, report, costs, *accuracy)
        if statistics.found.columns:
            skipped = [text_block(f"{name} skipped: {why}") for name, why in statistics.found.skipped.items()]
            shown = [self.found.block(), *skipped] if self._is_found_open else []
            blocks.append(card_block("values", "Computed values", *shown, is_open=self._is_found_open))
        return blocks

    def _show_values(self, statistics: Statistics) -> None:
        if self.has_new(statistics, self.state.sketches):
            ages = {} if self.state.sketches is None else find_blob_ages(self.state.sketches)
            for grid in (self.accuracy, self.found):
                grid.placeholder = "search columns" if len(statistics.found.columns) > grid.most_rows else ""
            self.accuracy.show(build_accuracy_rows(statistics, ages, self.state.columns))
            self.found.show(build_found_rows(statistics))

    def _build_removal(self) -> list[Block]:
        removal = self.state.removal
        if removal is None or self.state.phase not in ("checked", "undoing", "undone"):
            return []
        actions = [
            button("compute.undo_now", "Remove these statistics", tone="danger"),
            button("compute.keep", "Keep them"),
        ]
        shown = actions if self.state.phase == "checked" else []
        titles = ("What undoing brings", "What undoing writes")
        if removal.removed:
            titles = ("What undoing has brought", "What was written")
        metadata, undone = self.state.table.metadata, {int(entry["snapshot_id"]) for entry in removal.entries}
        entries = (*metadata.statistics, *metadata.partition_statistics)
        blocks = build_removed(removal, sum(entry.snapshot_id not in undone for entry in entries))
        return build_change_cards(("removal", "removal_report"), titles, removal, *blocks, actions=shown)
