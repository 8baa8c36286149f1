"""The manifest tree: snapshot, manifests, data files, columns, row groups, as one table."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pyarrow as pa
import pyarrow.compute as pc
from traitlets import link

from icestats.answers.text import counted
from icestats_widgets.grid import Grid, ListedRows, Seen
from icestats_widgets.outline import Outline
from icestats_widgets.selection import Selection
from icestats_widgets.state import TREE_MODES, ExplorerState
from icestats_widgets.tree_blocks import SNAPSHOT, column_titles
from icestats_widgets.view import View

_SEES = {"tree": "tree", "files": "all files"}


class TreeView(View):
    """Manifests, their files, their columns: sorted, filtered and paged in the kernel."""

    name = "outline"
    title = "Manifest tree"
    follows = ("outline", "column", "selection", "tree_mode", "tree_sort", "tree_words", "overview")

    def build(self) -> None:
        """Make the permanent widgets."""
        mode = ipywidgets.ToggleButtons(options=[(_SEES[m], m) for m in TREE_MODES], tooltips=["Manifests", "Files"])
        link((self.state, "tree_mode"), (mode, "value"))
        self.set_controls(mode)
        self.grid = Grid(
            "Manifest tree",
            column_titles(self.state.column),
            is_tree=True,
            least_rows=8,
            placeholder="filter: part of a path, records > 1000, size < 1 MB, nulls > 0",
        )
        self.grid.on_toggle = self.toggle
        self.grid.on_select = self.choose
        self.grid.on_sort = lambda column, descending: setattr(self.state, "tree_sort", (column, descending))
        self.grid.on_filter = lambda text: setattr(self.state, "tree_words", text)
        self.body.children = [self.grid]
        self._arrangement: tuple[Any, ...] = (self.state.tree_mode, self.state.tree_sort, self.state.tree_words)

    def draw(self) -> None:
        """Show the rows."""
        state = self.state
        titles = column_titles(state.column)
        if self.grid.columns != titles:
            self.grid.columns = titles
        arrangement = (state.tree_mode, state.tree_sort, state.tree_words)
        if self._arrangement != arrangement:
            self._arrangement = arrangement
            self.grid.show_from_first()
        outline = state.outline
        if state.overview is None or self.note:
            text = self.note or state.notes.get("overview", "The manifest list has not been read.")
            self.grid.show_rows(ListedRows([]), text)
        elif outline is not None:
            self.grid.selected = [row["key"] for row in self._selected(outline)]
            self.grid.show_rows(outline, "" if outline.row_count else _empty(state))
        self.say(_describe(state, outline))
        self.grid.is_loading = self.is_loading

    def _selected(self, outline: Outline) -> list[dict[str, Any]]:
        selection: Selection | None = self.state.selection
        manifests = outline.root.open.get(0)
        if selection is None or selection.ranges or manifests is None or manifests.prefix != "m":
            return []
        wanted = set(selection.manifest_paths)
        return [{"key": f"s0/m{row}"} for row in manifests.order.tolist() if manifests.identify(row) in wanted]

    def _path(self, key: str) -> tuple[str, ...]:
        outline = self.state.outline
        return () if outline is None else tuple(block.identify(row) for block, row in outline.find(key))

    def toggle(self, key: str, is_open: bool | None = None) -> None:
        """Open or close a row; without `is_open`, toggle it."""
        path = self._path(key)
        if path and is_open is not (path in self.state.tree_opened):
            self.state.tree_opened = self.state.tree_opened ^ {path}

    def choose(self, key: str, seen: Seen | None = None) -> None:
        """Handle a click: select a manifest, open a file, or select a column.

        Parameters
        ----------
        key : str
            The key of the row.
        seen : Seen, optional
            How the row looked: a selected manifest is deselected, an open file is closed. By default, how it looks
            now.
        """
        path = self._path(key)
        if not path:
            # The row is no longer there.
            return
        kind = key.rsplit("/", 1)[-1][:1]
        wants_open = None if seen is None else not seen.is_open
        if kind == "m":
            wanted = Selection(manifest_paths=(path[-1],))
            is_marked = self.state.selection == wanted if seen is None else seen.is_selected
            self.state.selection = None if is_marked else wanted
        elif kind == "c":
            self.state.column = path[-1]
            self.toggle(key, wants_open)
        elif kind in ("f", "s"):
            if path == (SNAPSHOT,) and self.state.selection is not None:
                self.state.selection = None
            else:
                self.toggle(key, wants_open)

    def to_arrow(self) -> pa.Table | None:
        """Return the manifests, or the selected ones."""
        manifests = self.state.manifests
        if manifests is None or self.state.part is None:
            return manifests
        return manifests.filter(pc.is_in(manifests["manifest_path"], pa.array(sorted(self.state.part.manifest_paths))))

    def code(self) -> str:
        """Return the Python line that gives the manifests, or the selected ones."""
        selection = self.state.selection
        if self.state.tree_mode == "files":
            return "table.files()" if selection is None else str(selection.call("files"))
        if selection is None or selection.ranges:
            return "table.manifests()"
        return str(selection.call("manifests"))


def _describe(state: ExplorerState, outline: Outline | None) -> str:
    if state.overview is None or outline is None:
        return ""
    if state.tree_mode == "files":
        so_far = " so far" if state.reading[1] and "outline" in state.loading else ""
        return f"{counted(len(outline.root.order), 'live file')}{so_far}; click a file to show its columns"
    manifests = outline.root.open.get(0)
    count = f"{len(manifests.order):,} of {counted(manifests.row_count, 'manifest')}; " if manifests is not None else ""
    return f"{count}click a manifest to select it, ▸ or → to open it; click a file to show its columns"


def _empty(state: ExplorerState) -> str:
    if state.table.snapshot is None:
        return "Nothing has been written to this table yet: write to it, then refresh."
    return "No rows match: shorten the filter, or clear the selection."
