"""The snapshots, newest first: what each changed, what belongs to it, and what changed between two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes, render_time
from icestats.iceberg.metadata import Snapshot, TableMetadata
from icestats.iceberg.summary import find_left_out_sizes, parse_count
from icestats_widgets.page.blocks import Block, button, card_block, fact, facts_block, text_block
from icestats_widgets.page.cells import Cell, bytes_cell, change_cell, count_cell, text_cell
from icestats_widgets.page.grid import Row, Seen
from icestats_widgets.page.part import Part
from icestats_widgets.reading.snapshot_comparison import COUNTS, SnapshotComparison, age_of, open_snapshot

_COLUMNS = (
    {"name": "when", "title": "committed at, UTC", "width": "minmax(148px,1fr)"},
    {"name": "operation", "title": "operation", "width": "minmax(84px,.6fr)"},
    {"name": "added", "title": "rows +", "about": "rows added", "width": "minmax(66px,.8fr)", "align": "end"},
    {"name": "removed", "title": "rows −", "width": "minmax(66px,.8fr)", "align": "end",
     "about": "rows removed with their files"},
    {"name": "files", "title": "files", "width": "minmax(52px,.5fr)", "align": "end"},
    {"name": "bytes_added", "title": "bytes +", "about": "bytes added", "width": "minmax(66px,.8fr)", "align": "end"},
    {"name": "bytes_removed", "title": "bytes −", "about": "bytes removed", "width": "minmax(66px,.8fr)",
     "align": "end"},
    {"name": "deletes", "title": "deletes +", "width": "minmax(66px,.8fr)", "align": "end",
     "about": "position and equality deletes added"},
    {"name": "total", "title": "rows in files", "width": "minmax(84px,.8fr)", "align": "end",
     "about": "rows in all data files afterwards; position and equality deletes are not deducted"},
    {"name": "refs", "title": "refs", "about": "branches and tags", "width": "minmax(96px,.8fr)"},
    {"name": "statistics", "title": "statistics", "width": "minmax(96px,1fr)"},
    {"name": "id", "title": "snapshot id", "width": "minmax(166px,1fr)", "align": "end"},
)  # fmt: skip
_TOUCHED = (
    {"name": "partition", "title": "partition", "width": "minmax(140px,1.4fr)"},
    *({"name": name, "title": name, "width": "minmax(80px,1fr)", "align": "end"} for name in COUNTS),
    {"name": "after", "title": "rows in files", "width": "minmax(90px,1fr)", "align": "end",
     "about": "rows in the partition's data files afterwards; position and equality deletes are not deducted"},
)  # fmt: skip


class SnapshotsPart(Part):
    """One row per snapshot: when, which operation, and what it added and removed. Two of them are compared."""

    name = "snapshots"
    title = "Snapshots"
    tab = "history"
    follows = ("table", "overview", "selection", "manifests", "compared", "comparison")
    hears = ("overview", "comparison")

    def build(self) -> None:
        """Make the grids."""
        self.grid = self.add_grid(
            "snapshots", "Snapshots", _COLUMNS, most_rows=12, placeholder="search operations, tags, ids",
            on_choose=self._choose,
        )  # fmt: skip
        self.touched = self.add_grid(
            "touched", "Partitions touched", _TOUCHED, most_rows=8, placeholder="search partitions"
        )
        self._listed: TableMetadata | None = None
        self._compared: SnapshotComparison | None = None

    def blocks(self) -> list[Block]:
        """Return the snapshots, and what is known of those that are chosen."""
        table = self.state.table
        if not table.metadata.snapshots:
            return []
        if self._listed is not table.metadata:
            self._listed = table.metadata
            self.grid.show(build_snapshot_rows(table.metadata))
        loaded = set() if table.snapshot is None else {table.snapshot.snapshot_id}
        wanted = set(self.state.compared) or self._added_by() or loaded
        self.grid.selected = [f"s{snapshot_id}" for snapshot_id in wanted]
        return [*self._build_pin(), self.grid.block(), *self._build_chosen()]

    def caption(self) -> str:
        """Return how many snapshots there are, and which are highlighted."""
        count = len(self.state.table.metadata.snapshots)
        if not count:
            return "No snapshots: nothing has been written yet."
        is_part = not self.state.compared and self._added_by()
        marked = "; highlighted are those that added the selection" if is_part else ""
        return f"{counted(count, 'snapshot')}, newest first, without expired ones{marked}.\nChoose two to compare them."

    def to_arrow(self) -> pa.Table | None:
        """Return the snapshots."""
        return self.state.table.sql("select * from snapshots order by sequence_number desc, committed_at desc")

    def code(self) -> str:
        """Return the Python line that gives the snapshots."""
        return "table.sql('select * from snapshots order by sequence_number desc, committed_at desc')"

    def on_forget(self, _: object) -> None:
        """Choose no snapshot."""
        self.state.compared = ()

    def on_show(self, _: object) -> None:
        """Show the table as of the chosen snapshot."""
        if len(self.state.compared) == 1:
            self._show(self.state.compared[0])

    def on_current(self, _: object) -> None:
        """Show the table as of its current snapshot."""
        current = self.state.table.metadata.find_snapshot(None, None)
        if current is not None:
            self._show(current.snapshot_id)

    def _show(self, snapshot_id: int) -> None:
        if snapshot_id in self.state.table.metadata.snapshots:
            self.state.compared = ()
            self.state.table = open_snapshot(self.state.table, snapshot_id)

    def _choose(self, key: str, seen: Seen) -> None:
        snapshots = self.state.table.metadata.snapshots
        chosen = next((snapshot_id for snapshot_id in snapshots if key == f"s{snapshot_id}"), None)
        if chosen is None:
            return
        others = [one for one in self.state.compared if one != chosen and one in snapshots]
        is_dropped = seen.is_selected and chosen in self.state.compared
        self.state.compared = tuple(others if is_dropped else [*others[-1:], chosen])

    def _added_by(self) -> set[int]:
        selection, manifests = self.state.selection, self.state.manifests
        if selection is None or selection.ranges or manifests is None:
            return set()
        return set(manifests.filter(selection.mask(manifests))["added_snapshot_id"].to_pylist())

    def _build_pin(self) -> list[Block]:
        table = self.state.table
        if "snapshot" not in table.pin or table.snapshot is None:
            return []
        text = f"Every part shows the table as of {render_time(table.snapshot.timestamp_ms)}."
        return [card_block("pin", text, actions=[button("snapshots.current", "Back to the current snapshot")])]

    def _build_chosen(self) -> list[Block]:
        snapshots = self.state.table.metadata.snapshots
        chosen = sorted((snapshots[one] for one in self.state.compared if one in snapshots), key=age_of)
        forget = button("snapshots.forget", "Close")
        if len(chosen) == 1:
            is_shown = self.state.table.snapshot == chosen[0]
            show = button("snapshots.show", "Show the table as of then", is_disabled=is_shown)
            summary = [fact(name, value) for name, value in sorted(chosen[0].summary.items())]
            title = f"{chosen[0].operation} of {render_time(chosen[0].timestamp_ms)}"
            text = text_block("Choose a second one to compare the two.", "quiet")
            return [card_block("chosen", title, facts_block(*summary), text, actions=[show, forget])]
        if len(chosen) < 2:
            return []
        title = f"From {render_time(chosen[0].timestamp_ms)} to {render_time(chosen[1].timestamp_ms)}"
        found = self.state.comparison
        if found is not None:
            return [card_block("comparison", title, *self._build_comparison(found), actions=[forget])]
        note = self.state.notes.get("comparison")
        text = text_block(note, "bad") if note else text_block("Reading the manifests of both …", "busy")
        return [card_block("comparison", title, text, actions=[forget])]

    def _build_comparison(self, found: SnapshotComparison) -> list[Block]:
        if found is not self._compared:
            self._compared = found
            self.touched.show(_build_touched_rows(found), "" if found.touched else "No partition was touched.")
        shown = []
        for place, name in enumerate(COUNTS):
            before, after = found.before[place], found.after[place]
            cell = change_cell(after - before, in_bytes=name == "bytes")
            text = render_bytes(after) if name == "bytes" else f"{after:,}"
            shown.append(fact(name, f"{text} ({cell['t']})" if after != before else text, f"{before:,} before"))
        commits = "not an ancestor" if found.commit_count is None else counted(found.commit_count, "commit")
        touched = f"{len(found.touched):,} of {found.partition_count:,}"
        return [
            facts_block(*shown, fact("partitions touched", touched), fact("between", commits)),
            self.touched.block(),
        ]


def build_snapshot_rows(metadata: TableMetadata) -> list[Row]:
    """Build the rows of the snapshots, newest first; what a summary does not state is not shown as 0."""
    snapshots = sorted(metadata.snapshots.values(), key=age_of, reverse=True)
    stated = [_read_counts(one.summary) for one in snapshots]
    most = {name: max(abs(counts[name] or 0) for counts in stated) for name in stated[0]}
    refs, statistics = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
    for name, ref in metadata.refs.items():
        refs[ref.snapshot_id].append(f"{ref.type} {name}")
    for file in metadata.statistics:
        columns = {field_id for blob in file.blobs for field_id in blob.field_ids}
        statistics[file.snapshot_id].append(f"NDV of {counted(len(columns), 'column')}" if columns else "of the table")
    for partitions in metadata.partition_statistics:
        statistics[partitions.snapshot_id].append("partitions")
    rows = []
    for one, counts in zip(snapshots, stated, strict=True):
        cells = [
            {**text_cell(render_time(one.timestamp_ms).removesuffix(" UTC")), "v": one.timestamp_ms},
            text_cell(one.operation),
            _flow(counts, "added-records", most),
            _flow(counts, "deleted-records", most),
            change_cell(counts["files"], most["files"]),
            _flow(counts, "added-files-size", most),
            _flow(counts, "removed-files-size", most),
            {**count_cell(counts["deletes"], most["deletes"]), "k": "less" if counts["deletes"] else "quiet"},
            count_cell(counts["total"], most["total"]),
            text_cell(", ".join(refs[one.snapshot_id]) or "–"),
            text_cell(", ".join(statistics[one.snapshot_id]) or "–"),
            text_cell(str(one.snapshot_id), _about(one)),
        ]
        rows.append({"key": f"s{one.snapshot_id}", "depth": 0, "cells": cells})
    return rows


_CHANGES = {
    "added-records": "total-records",
    "deleted-records": "total-records",
    "added-data-files": "total-data-files",
    "deleted-data-files": "total-data-files",
    "added-files-size": "total-files-size",
    "removed-files-size": "total-files-size",
    "added-position-deletes": "total-position-deletes",
    "added-equality-deletes": "total-equality-deletes",
}
"""Of a summary: a change, and the total beside which writers leave it out where it is 0."""


def _read_counts(summary: Mapping[str, str]) -> dict[str, int | None]:
    """Return what a summary states, and what follows from that; None where it does not state it."""
    counts = {
        name: parse_count(summary.get(name, "0" if total in summary else None)) for name, total in _CHANGES.items()
    }
    added, removed = counts["added-data-files"], counts["deleted-data-files"]
    positions, equality = counts["added-position-deletes"], counts["added-equality-deletes"]
    counts |= dict.fromkeys(find_left_out_sizes(summary))
    return counts | {
        "files": None if added is None or removed is None else added - removed,
        "deletes": None if positions is None or equality is None else positions + equality,
        "total": parse_count(summary.get("total-records")),
    }


def _flow(counts: Mapping[str, int | None], name: str, most: Mapping[str, int]) -> Cell:
    count = counts[name]
    if count is None:
        return {**text_cell("–", "not stated"), "v": None}
    cell = bytes_cell(count, most[name]) if "size" in name else count_cell(count, most[name])
    if not count:
        return {**cell, "k": "quiet"}
    return {**cell, "k": "more" if name.startswith("added") else "less"}


def _about(snapshot: Snapshot) -> str:
    lines = [f"parent {snapshot.parent_snapshot_id}", f"sequence number {snapshot.sequence_number}"]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in sorted(snapshot.summary.items()))])


def _build_touched_rows(found: SnapshotComparison) -> list[Row]:
    changes = [[after - before for before, after in zip(one.before, one.after, strict=True)] for one in found.touched]
    most = [max(map(abs, column), default=0) for column in zip(*changes, strict=True)]
    rows: list[dict[str, Any]] = []
    for number, (one, changed) in enumerate(zip(found.touched, changes, strict=True)):
        cells = [text_cell(one.partition, kind="strong")]
        for name, change, largest in zip(COUNTS, changed, most, strict=True):
            cells.append(change_cell(change, largest, in_bytes=name == "bytes"))
        rows.append({"key": f"p{number}", "depth": 0, "cells": [*cells, count_cell(one.after[0])]})
    return rows
