"""The snapshots, newest first, with the changes of each."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icestats.answers.text import counted, render_time
from icestats.iceberg.metadata import Snapshot, TableMetadata
from icestats_widgets.cells import change_cell, count_cell, text_cell
from icestats_widgets.grid import Grid, ListedRows, Row
from icestats_widgets.view import View

_COLUMNS = (
    {"name": "when", "title": "committed at", "width": "minmax(176px,1.2fr)"},
    {"name": "operation", "title": "operation", "width": "minmax(76px,.7fr)"},
    {"name": "records", "title": "records", "width": "minmax(90px,1fr)", "align": "end"},
    {"name": "files", "title": "files", "width": "minmax(64px,.7fr)", "align": "end"},
    {"name": "bytes", "title": "bytes", "width": "minmax(78px,.8fr)", "align": "end"},
    {"name": "total", "title": "records after", "width": "minmax(100px,1fr)", "align": "end"},
    {"name": "notes", "title": "refs, statistics", "width": "minmax(120px,1.2fr)"},
    {"name": "id", "title": "snapshot id", "width": "minmax(166px,1.1fr)", "align": "end"},
)


class SnapshotView(View):
    """One row per snapshot: when, which operation, and what it added and removed."""

    name = "snapshots"
    title = "Snapshots"
    follows = ("table", "overview", "selection", "part")
    hears = ("overview",)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.grid = Grid("Snapshots", _COLUMNS, most_rows=9, least_rows=3)
        self.body.children = [self.grid]

    def draw(self) -> None:
        """Show the snapshots."""
        metadata: TableMetadata = self.state.table.metadata
        snapshots = newest_first(metadata)
        rows = build_snapshot_rows(metadata)
        current = self.state.table.snapshot
        wanted = self._added_by() or ({current.snapshot_id} if current else set())
        self.grid.selected = [f"s{i}" for i, snapshot in enumerate(snapshots) if snapshot.snapshot_id in wanted]
        marked = "highlighted: those that added the selection" if self._added_by() else "highlighted: the loaded one"
        self.say(f"{counted(len(rows), 'snapshot')}, without expired ones; {marked}" if rows else "")
        self.grid.show_rows(ListedRows(rows), "" if rows else "No snapshots: nothing has been written yet.")

    def _added_by(self) -> set[int]:
        selection, manifests = self.state.selection, self.state.manifests
        if selection is None or selection.ranges or manifests is None:
            return set()
        return set(manifests.filter(selection.mask(manifests))["added_snapshot_id"].to_pylist())

    def to_arrow(self) -> pa.Table | None:
        """Return the snapshots."""
        return self.state.table.sql("select * from snapshots order by sequence_number desc, committed_at desc")

    def code(self) -> str:
        """Return the Python line that gives the snapshots."""
        return "table.sql('select * from snapshots order by sequence_number desc, committed_at desc')"


def newest_first(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots, newest first."""
    return sorted(metadata.snapshots.values(), key=lambda one: (one.sequence_number, one.timestamp_ms), reverse=True)


def build_snapshot_rows(metadata: TableMetadata) -> list[Row]:
    """Build the rows of the snapshots; a change that a summary does not state is not shown as 0."""
    snapshots = newest_first(metadata)
    changes = [[_change(one.summary, *names) for names in _CHANGES] for one in snapshots]
    most = [max((abs(c) for c in column if c is not None), default=0) for column in zip(*changes, strict=True)] or [
        0
    ] * 3
    totals = [_count(one.summary, "total-records") for one in snapshots]
    refs: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(f"{ref.type} {name}")
    for kind, snapshot_ids in (
        ("statistics", [file.snapshot_id for file in metadata.statistics]),
        ("partition statistics", [file.snapshot_id for file in metadata.partition_statistics]),
    ):
        for snapshot_id in snapshot_ids:
            refs.setdefault(snapshot_id, []).append(kind)
    rows = []
    for i, one in enumerate(snapshots):
        records, files, size = changes[i]
        notes = ", ".join(refs.get(one.snapshot_id, ()))
        cells = [
            text_cell(render_time(one.timestamp_ms)),
            text_cell(one.operation),
            change_cell(records, most[0]),
            change_cell(files, most[1]),
            change_cell(size, most[2], in_bytes=True),
            count_cell(totals[i], max((t for t in totals if t is not None), default=0)),
            text_cell(notes or "–"),
            text_cell(str(one.snapshot_id), _about(one)),
        ]
        rows.append({"key": f"s{i}", "depth": 0, "cells": cells})
    return rows


_CHANGES = (
    ("added-records", "deleted-records"),
    ("added-data-files", "deleted-data-files"),
    ("added-files-size", "removed-files-size"),
)


def _change(summary: Mapping[str, str], added: str, removed: str) -> int | None:
    counts = _count(summary, added), _count(summary, removed)
    return None if counts == (None, None) else (counts[0] or 0) - (counts[1] or 0)


def _count(summary: Mapping[str, str], name: str) -> int | None:
    text = summary.get(name, "")
    return int(text) if text.isdecimal() else None


def _about(snapshot: Snapshot) -> str:
    lines = [f"parent {snapshot.parent_snapshot_id}", f"sequence number {snapshot.sequence_number}"]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in sorted(snapshot.summary.items()))])
