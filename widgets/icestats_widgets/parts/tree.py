"""The manifest tree: snapshot, manifests, data files, columns, row groups, as one table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.text import counted
from icestats_widgets.page.blocks import Block, choice, form_block
from icestats_widgets.page.grid import Seen
from icestats_widgets.page.part import Part
from icestats_widgets.reading.filters.asked_filter import asked_manifests
from icestats_widgets.reading.selection import Selection
from icestats_widgets.reading.tree.outline import Outline
from icestats_widgets.reading.tree.tree_blocks import SNAPSHOT, column_titles
from icestats_widgets.state import TREE_MODES


class TreePart(Part):
    """Manifests, their files, their columns: sorted, filtered and paged in the kernel."""

    name = "outline"
    title = "Manifests and files"
    tab = "layout"
    follows = ("outline", "column", "selection", "plan", "tree_mode", "overview", "table")

    def build(self) -> None:
        """Make the grid."""
        self.grid = self.add_grid(
            "tree", "Manifest tree", column_titles(self.state.column), is_tree=True,
            placeholder="a path, records > 1000, size < 1 MB",
            on_open=self.toggle, on_choose=self.choose, on_arrange=self._arrange,
        )  # fmt: skip

    def blocks(self) -> list[Block]:
        """Return the choice of what to list, and the rows."""
        state = self.state
        for column, title in zip(self.grid.columns, column_titles(state.column), strict=True):
            column["title"] = title["title"]
        outline = state.outline
        if state.overview is None or self.note:
            self.grid.show([], self.note or state.notes.get("overview", "The manifest list has not been read."))
        elif outline is not None:
            self.grid.selected = self._find_selected(outline)
            self.grid.show(outline, "" if outline.row_count else self._empty())
        modes = choice("outline.mode", "show", state.tree_mode, list(TREE_MODES.items()))
        return [form_block(modes), self.grid.block()]

    def caption(self) -> str:
        """Return how many rows there are, and what a click does."""
        state, outline = self.state, self.state.outline
        if state.overview is None or outline is None:
            return ""
        if state.tree_mode == "files":
            so_far = " so far" if state.reading[1] and self.is_loading else ""
            count = counted(len(outline.root.order), "live file")
            return f"{count}{so_far}.\n{self._colours()}Click a file to show its columns."
        manifests = outline.root.open.get(0)
        if manifests is None:
            return ""
        count = f"{len(manifests.order):,} of {counted(manifests.row_count, 'manifest')}.\n{self._colours()}"
        return f"{count}Click a manifest to select it, open it for its files, a file for its columns."

    def _colours(self) -> str:
        return "" if self.state.plan is None else "What the filter skips is grey.\n"

    def on_mode(self, value: Any) -> None:
        """List the tree, or all files."""
        if value in list(TREE_MODES):
            self.state.tree_mode = value

    def toggle(self, key: str, is_open: bool) -> None:
        """Open or close a row."""
        path = self._path(key)
        if path and is_open is not (path in self.state.tree_opened):
            self.state.tree_opened = self.state.tree_opened ^ {path}

    def choose(self, key: str, seen: Seen) -> None:
        """Handle a click: select a manifest, open a file, or select a column.

        Parameters
        ----------
        key : str
            The key of the row.
        seen : Seen
            How the row looked: a selected manifest is deselected, an open file is closed.
        """
        path = self._path(key)
        if not path:
            # The row is no longer there.
            return
        kind = key.rsplit("/", 1)[-1][:1]
        if kind == "m":
            self.state.selection = None if seen.is_selected else Selection(manifest_paths=(path[-1],))
        elif kind == "c":
            self.state.column = path[-1]
            self.toggle(key, not seen.is_open)
        elif kind in ("f", "s"):
            if path == (SNAPSHOT,) and self.state.selection is not None:
                self.state.selection = None
            else:
                self.toggle(key, not seen.is_open)

    def to_arrow(self) -> pa.Table | None:
        """Return the manifests, or the selected ones."""
        manifests, part = self.state.manifests, self.state.selected_part
        if manifests is None or part is None:
            return manifests
        paths = pa.array(sorted(part.manifest_paths), pa.string())
        return manifests.filter(pc.is_in(manifests["manifest_path"], paths))

    def code(self) -> str:
        """Return the Python line that gives the manifests, or the selected ones."""
        selection, part = self.state.selection, self.state.selected_part
        if self.state.tree_mode == "files":
            return "table.files()" if selection is None else str(selection.call("files"))
        if selection is not None and selection.ranges:
            # Of marked partitions, the manifests that may hold files of theirs are shown.
            selection = None if part is None else Selection(manifest_paths=tuple(sorted(part.manifest_paths)))
        return "table.manifests()" if selection is None else str(selection.call("manifests"))

    def _arrange(self) -> None:
        sort = self.grid.sort
        self.state.tree_sort = (sort["column"], sort["descending"]) if sort else None
        self.state.tree_words = self.grid.words

    def _find_selected(self, outline: Outline) -> list[str]:
        wanted, manifests = set(asked_manifests(self.state) or ()), outline.root.open.get(0)
        if not wanted or manifests is None or manifests.prefix != "m":
            return []
        return [f"s0/m{row}" for row in manifests.order.tolist() if manifests.identify(row) in wanted]

    def _path(self, key: str) -> tuple[str, ...]:
        outline = self.state.outline
        return () if outline is None else tuple(block.identify(row) for block, row in outline.find(key))

    def _empty(self) -> str:
        if self.state.table.snapshot is None:
            return "Nothing has been written to this table yet: write to it, then reload."
        return "No rows match: shorten the search, or clear the selection."
