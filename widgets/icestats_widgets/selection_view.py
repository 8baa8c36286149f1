"""What is selected, how to clear it, and the Python that reproduces the view."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pyarrow as pa

from icestats.answers.markup import escape_text
from icestats.answers.text import counted, render_bytes
from icestats_widgets.view import View


class SelectionView(View):
    """The selection's totals, a button that clears it, and a button that shows the code."""

    name = "selection"
    follows = ("selection", "part", "reading", "column", "row_filter", "tree_mode", "table")
    hears = ("part",)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.lines: Any = None
        """Returns the Python lines that reproduce the whole view; the explorer sets it."""
        self.clear = ipywidgets.Button(description="Clear selection", icon="times", tooltip="Show the whole table")
        self.clear.on_click(lambda _: setattr(self.state, "selection", None))
        self.show_code = ipywidgets.ToggleButton(description="Code", icon="code", tooltip="Python for what you see")
        self.show_code.observe(lambda _: self.redraw(), "value")
        self.text = ipywidgets.HTML()
        self.text.add_class("icestats-selection-text")
        self.progress = ipywidgets.IntProgress(bar_style="info")
        self.progress.add_class("icestats-reading")
        self.source = ipywidgets.HTML()
        self.heading.layout.display = "none"
        self.caption.layout.display = "none"
        self.set_controls(self.text, self.progress, self.clear, self.show_code)
        self.body.children = [self.source]

    def draw(self) -> None:
        """Show the selection."""
        selection, part = self.state.selection, self.state.part
        done, total = self.state.reading
        self.progress.layout.visibility = "visible" if total else "hidden"
        self.progress.max, self.progress.value = max(total, 1), done
        self.clear.layout.visibility = "hidden" if selection is None else "visible"
        self.text.value = f"<span role='status'>{escape_text(self._describe(selection, part, done, total))}</span>"
        shown = self.show_code.value and self.lines is not None
        self.source.value = (
            f"<pre class='icestats-code' tabindex='0'>{escape_text(self.lines())}</pre>" if shown else ""
        )

    def _describe(self, selection: Any, part: Any, done: int, total: int) -> str:
        if total:
            return f"Reading manifests: {done:,} of {total:,}"
        if selection is None:
            return "Whole table. Click a manifest, or drag over the partitions, to limit every view to that part."
        if self.state.notes.get("part"):
            return f"{selection.text}: {self.state.notes['part']}"
        if part is None or part.selection != selection:
            return f"{selection.text} …"
        return (
            f"{selection.text}: {counted(part.record_count, 'record')}, "
            f"{counted(part.file_count, 'data file')}, "
            f"{render_bytes(part.size_bytes)}, {counted(len(part.manifest_paths), 'manifest')}"
        )

    def to_arrow(self) -> pa.Table | None:
        """Return the selected partitions; None if nothing is selected."""
        return None if self.state.part is None else self.state.part.partitions

    def code(self) -> str:
        """Return the Python line that gives the selected partitions or files."""
        selection = self.state.selection
        if selection is None:
            return "table.partitions()"
        return str(selection.call("partitions" if selection.ranges else "files"))
