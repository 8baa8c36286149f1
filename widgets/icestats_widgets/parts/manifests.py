"""The manifests: which keys each one covers, how far they overlap, and which of them a filter reads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icestats.answers.text import counted
from icestats.iceberg.partition_columns import partition_field_type
from icestats.table.table import Table
from icestats_widgets.drawing.manifest_figure import (
    Key,
    ManifestPicture,
    ManifestRow,
    build_manifest_figure,
    find_manifests,
    manifests_between,
    sort_manifests,
)
from icestats_widgets.page.blocks import Block, figure_block, text_block
from icestats_widgets.page.cells import bytes_cell, count_cell, text_cell
from icestats_widgets.page.grid import Row
from icestats_widgets.page.part import Part
from icestats_widgets.reading.filters.asked_filter import asked_manifests
from icestats_widgets.reading.plan_outcomes import plan_of_manifests
from icestats_widgets.reading.selection import Selection

_COLUMNS = (
    {"name": "path", "title": "selected manifest", "width": "minmax(160px,2fr)"},
    {"name": "keys", "title": "keys", "width": "minmax(160px,1.6fr)"},
    {"name": "files", "title": "files", "width": "minmax(64px,.5fr)", "align": "end"},
    {"name": "records", "title": "records", "width": "minmax(76px,.6fr)", "align": "end"},
    {"name": "bytes", "title": "size", "width": "minmax(76px,.6fr)", "align": "end"},
)


class ManifestsPart(Part):
    """The key range of each manifest, and its records."""

    name = "manifests"
    title = "Manifests and where they overlap"
    tab = "layout"
    follows = ("overview", "selection", "part", "plan", "table")
    hears = ("overview",)

    def build(self) -> None:
        """Make the grid; nothing is drawn yet."""
        self.selected = self.add_grid("selected", "Selected manifests", _COLUMNS, placeholder="", most_rows=8)
        self._picture: ManifestPicture | None = None
        self._rows: tuple[Any, Any] = (None, None)
        self._zoom: tuple[float, float] | None = None

    def blocks(self) -> list[Block]:
        """Return the picture of the manifests."""
        overview, table = self.state.overview, self.state.table
        if overview is None:
            return [text_block(self.note or "The manifest list has not been read.", "bad")]
        manifest_files = table.manifest_files()
        if manifest_files.num_rows == 0:
            return []
        plan = self.state.plan
        verdicts = None
        if plan is not None:
            verdicts = {path: step or "" for path, step in plan_of_manifests(plan).items()}
        self._picture = picture = build_manifest_figure(
            self._sorted(), self._key(), width=self.width("ranges", 1180), verdicts=verdicts,
            selected=self._marked(), zoom=self._zoom,
        )  # fmt: skip
        label = f"Key ranges and records of {counted(manifest_files.num_rows, 'manifest')}"
        has_keys = "keys" in picture.plots
        return [
            figure_block(
                "ranges", picture.svg, label, marks="x" if has_keys else "", can_zoom=has_keys,
                is_zoomed=self._zoom is not None, name="manifests",
            ),
            *self._list_selected(),
        ]  # fmt: skip

    def _list_selected(self) -> list[Block]:
        """Return the selected manifests."""
        paths = set(asked_manifests(self.state) or ())
        if not paths:
            return []
        sizes = self.state.table.manifest_files().select(["manifest_path", "manifest_length"])
        lengths = dict(zip(*(sizes[name].to_pylist() for name in sizes.column_names), strict=True))
        chosen = [row for row in self._sorted() if row.path in paths]
        self.selected.show([_build_row(number, row, lengths[row.path]) for number, row in enumerate(chosen)])
        return [self.selected.block()]

    def caption(self) -> str:
        """Return how far the manifests overlap."""
        overview = self.state.overview
        if overview is None:
            return ""
        count = self.state.table.manifest_files().num_rows
        if count == 0:
            return "No manifests: the table has no files."
        key, picture = self._key(), self._picture
        if key is None:
            return f"{counted(count, 'manifest')}; no partition field has ranges of values, so only records are drawn."
        deepest = 0 if picture is None else picture.deepest
        how = {0: "", 1: "; none overlap"}.get(deepest, f"; one key lies in up to {deepest:,} of them")
        curve = f"Click the curve for those that {'overlap' if deepest > 1 else 'lie'} there"
        lanes = f", {picture.lane_size:,} in each line" if picture is not None and picture.lane_size > 1 else ""
        return (
            f"{counted(count, 'manifest')}{lanes}, by {key.field.name}{how}.\n{curve}, a bar for one, drag for a range."
        )

    def to_arrow(self) -> pa.Table | None:
        """Return the manifest list."""
        return None if self.state.overview is None else self.state.table.manifest_files()

    def code(self) -> str:
        """Return the Python line that gives the manifests."""
        return "table.manifest_files()"

    def on_ranges_choose(self, value: Any) -> None:
        """Select the manifests of a bar, or those that overlap at a step of the curve; again, and all are shown."""
        if isinstance(value, dict):
            paths = find_manifests(str(value.get("key", "")), self._sorted())
            self._select(paths, bool(value.get("add")))

    def on_ranges_mark(self, value: Any) -> None:
        """Select the manifests of a range of keys."""
        ends = self._find_range(value)
        if ends is not None:
            self._select(manifests_between(self._sorted(), *ends), False)

    def on_ranges_zoom(self, value: Any) -> None:
        """Show a range of keys."""
        self._zoom = self._find_range(value) or self._zoom
        self.redraw()

    def on_ranges_reset(self, _: Any) -> None:
        """Show all keys."""
        self._zoom = None
        self.redraw()

    def on_ranges_clear(self, _: Any) -> None:
        """Select nothing."""
        self.state.selection = None

    def _sorted(self) -> Any:
        overview = self.state.overview
        if self._rows[0] is not overview:
            rows = sort_manifests(self.state.table.manifest_files(), overview.key_ranges, self._key())
            self._rows, self._zoom = (overview, rows), None
        return self._rows[1]

    def _key(self) -> Key | None:
        return find_key(self.state.table) if self.state.overview.key_ranges else None

    def _select(self, paths: tuple[str, ...], is_added: bool) -> None:
        before = self.state.selection
        known = () if before is None or before.ranges else before.manifest_paths
        if is_added:
            paths = tuple(dict.fromkeys((*known, *paths)))
        is_same = set(paths) == set(known)
        self.state.selection = None if is_same or not paths else Selection(manifest_paths=tuple(paths))

    def _marked(self) -> frozenset[str] | None:
        paths, part = asked_manifests(self.state), self.state.selected_part
        if paths is not None:
            return frozenset(paths)
        return None if part is None else part.manifest_paths

    def _find_range(self, value: Any) -> tuple[float, float] | None:
        found = None if self._picture is None else self._picture.find_range(value)
        return None if found is None or value["plot"] == "records" else found


def _build_row(number: int, row: ManifestRow, size_bytes: int) -> Row:
    cells = [
        text_cell(row.path.rsplit("/", 1)[-1], row.path),
        text_cell(row.span),
        count_cell(row.file_count),
        count_cell(row.record_count),
        bytes_cell(size_bytes),
    ]
    return {"key": f"m{number}", "depth": 0, "cells": cells}


def find_key(table: Table) -> Key | None:
    """Return the partition field of the overview's key ranges: the first in the default spec that is not void."""
    spec = table.metadata.specs[table.metadata.default_spec_id]
    field = next((field for field in spec.fields if field.transform != "void"), None)
    kind = None if field is None else partition_field_type(field, table.schema)
    return None if field is None or kind is None else Key(field, kind)
