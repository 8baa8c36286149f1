"""The manifests: there first, because the manifest list alone says it."""

from __future__ import annotations

import pyarrow as pa

from icestats.partition_values import partition_field_type
from icestats.table import Table
from icestats_widgets.manifest_figure import Key, build_manifest_figure, drawn_step
from icestats_widgets.view import View


class ManifestView(View):
    """The key range of each manifest, and its records."""

    name = "manifests"
    title = "Manifests"
    follows = ("overview",)

    def draw(self) -> None:
        """Show the manifests."""
        overview = self.state.overview
        if overview is None:
            self.show_note(self.note or "The manifest list has not been read.")
            return
        table = self.state.table
        manifest_files = table.manifest_files()
        if manifest_files.num_rows == 0:
            self.say("0 manifests")
            self.show_note("No manifests: nothing has been written to this table yet.", is_error=False)
            return
        key = find_key(table) if overview.key_ranges else None
        self.say(_describe(manifest_files.num_rows, key))
        figure = build_manifest_figure(manifest_files, overview.key_ranges, key)
        self.show_figure(figure, f"Key ranges and records of {manifest_files.num_rows:,} manifests")

    def to_arrow(self) -> pa.Table | None:
        """Return the manifest list."""
        return None if self.state.overview is None else self.state.table.manifest_files()

    def code(self) -> str:
        """Return the Python line that gives the manifests."""
        return "table.manifest_files()"


def find_key(table: Table) -> Key | None:
    """Return the partition field whose ranges the overview has: the first of the default spec that is not void."""
    spec = table.metadata.specs[table.metadata.default_spec_id]
    field = next((field for field in spec.fields if field.transform != "void"), None)
    kind = None if field is None else partition_field_type(field, table.schema)
    return None if field is None or kind is None else Key(field, kind)


def _describe(manifest_count: int, key: Key | None) -> str:
    some = f", 1 in {step} drawn" if (step := drawn_step(manifest_count)) > 1 else ""
    what = f"key range over {key.field.name}, and records" if key else "records; no partition field to show ranges of"
    return f"{manifest_count:,} manifests{some}: {what}"
