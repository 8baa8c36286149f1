"""The manifests: shown first, because they need only the manifest list."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icestats.answers.text import counted
from icestats.iceberg.partition_columns import partition_field_type
from icestats.table.table import Table
from icestats_widgets.manifest_figure import FADED, Key, build_manifest_figure, drawn_step
from icestats_widgets.selection import Selection
from icestats_widgets.view import View


class ManifestView(View):
    """The key range of each manifest, and its records."""

    name = "manifests"
    title = "Manifests"
    follows = ("overview", "is_drawing", "selection", "part")
    hears = ("overview",)

    def build(self) -> None:
        """Make the permanent widgets."""
        self._paths: tuple[tuple[str, ...], ...] = ()
        self._drawn: Any = None

    def draw(self) -> None:
        """Show the manifests."""
        overview = self.state.overview
        if overview is None:
            self.show_note(self.state.notes.get("overview", "The manifest list has not been read."))
            return
        table = self.state.table
        manifest_files = table.manifest_files()
        if manifest_files.num_rows == 0:
            self.say("0 manifests")
            self.show_note("No manifests: nothing has been written to this table yet.", is_error=False)
            return
        if not self.state.is_drawing:
            self.say(f"{counted(manifest_files.num_rows, 'manifest')}; drawing …")
            return
        key = find_key(table) if overview.key_ranges else None
        marked = self._marked()
        if self.figure is not None and self._drawn is overview:
            # What stood out before stays until it is known what does now.
            if self.state.has_part or marked is not None:
                self._fade(marked)
            return
        self._drawn = overview
        picture = build_manifest_figure(manifest_files, overview.key_ranges, key, marked)
        self._paths = picture.paths
        self.say(_describe(manifest_files.num_rows, key, picture.deepest))
        self.show_figure(picture.figure, f"Key ranges and records of {counted(manifest_files.num_rows, 'manifest')}")
        if self.figure is not None:
            self.figure.on_point = self._choose

    def _fade(self, marked: frozenset[str] | None) -> None:
        figure = self.figure
        if figure is None:
            return
        figure.opacities = [
            [FADED if marked is not None and path not in marked else 1.0 for path in paths] for paths in self._paths[:4]
        ]

    def _marked(self) -> frozenset[str] | None:
        selection, part = self.state.selection, self.state.part
        if selection is None:
            return None
        if not selection.ranges:
            return frozenset(selection.manifest_paths)
        return part.manifest_paths if part is not None and part.selection == selection else None

    def _choose(self, trace: int, point: int, is_marked: bool) -> None:
        for path in self._paths[trace][point : point + 1]:
            self.state.selection = None if is_marked else Selection(manifest_paths=(path,))

    def to_arrow(self) -> pa.Table | None:
        """Return the manifest list."""
        return None if self.state.overview is None else self.state.table.manifest_files()

    def code(self) -> str:
        """Return the Python line that gives the manifests."""
        return "table.manifest_files()"


def find_key(table: Table) -> Key | None:
    """Return the partition field of the overview's key ranges: the first in the default spec that is not void."""
    spec = table.metadata.specs[table.metadata.default_spec_id]
    field = next((field for field in spec.fields if field.transform != "void"), None)
    kind = None if field is None else partition_field_type(field, table.schema)
    return None if field is None or kind is None else Key(field, kind)


def _describe(manifest_count: int, key: Key | None, deepest: int) -> str:
    some = f", 1 in {step} drawn" if (step := drawn_step(manifest_count)) > 1 else ""
    if key is None:
        return f"{counted(manifest_count, 'manifest')}{some}: records; no partition field to show ranges of"
    overlap = f"; a key lies in up to {deepest:,} of them" if deepest else ""
    return f"{counted(manifest_count, 'manifest')}{some}: key range over {key.field.name}, and records{overlap}"
