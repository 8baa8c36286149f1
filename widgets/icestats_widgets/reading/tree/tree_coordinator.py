"""Reads the parts of the manifest tree that the state asks for, in the background."""

from __future__ import annotations

from functools import partial

from icestats_widgets.reading.background import Background
from icestats_widgets.reading.state_reader import StateReader
from icestats_widgets.reading.tree.outline import Outline
from icestats_widgets.reading.tree.tree_reader import TreeReader, TreeWish
from icestats_widgets.state import ExplorerState

_FOLLOWED = (
    "overview", "manifests", "column", "selection", "part", "plan", "tree_mode", "tree_sort", "tree_words",
    "tree_opened",
)  # fmt: skip


class TreeCoordinator(StateReader):
    """Follows the state, and puts the tree's rows into it."""

    def __init__(self, state: ExplorerState, background: Background) -> None:
        super().__init__(state, background)
        self._reader = TreeReader()
        self._is_telling = False
        self._wished: TreeWish | None = None
        state.observe(lambda _: self.read(), list(_FOLLOWED))

    def wish(self) -> TreeWish:
        """Return the parts of the tree that the state asks for."""
        state = self._state
        part = state.selected_part
        paths = part.manifest_paths if part is not None and state.selection.ranges else None
        manifests = state.manifests if state.manifests is not None else state.table.manifest_files()
        # In the tree a marked manifest is highlighted: no row is another.
        is_apart = state.selection is not None and (state.tree_mode == "files" or bool(state.selection.ranges))
        return TreeWish(
            table=state.table, overview=state.overview, manifests=manifests, mode=state.tree_mode, column=state.column,
            sort=state.tree_sort, words=state.tree_words, selection=state.selection if is_apart else None,
            plan=state.plan, marked_paths=paths, opened=state.tree_opened,
        )  # fmt: skip

    def read(self) -> None:
        """Read the wanted parts of the tree, in the background."""
        state = self._state
        is_waiting = not state.has_part and bool(state.selection.ranges) and "part" not in state.notes
        if state.overview is None or is_waiting:
            return
        wish = self.wish()
        if self._wished is not None and wish.is_same(self._wished):
            return
        self._wished = wish
        self.start("outline", partial(self._reader.read, wish, self._show_part))

    def _show_part(self, outline: Outline | None, done: int, total: int) -> bool:
        return self._background.deliver_part(partial(self._tell, outline, done, total))

    def _tell(self, outline: Outline | None, done: int, total: int) -> None:
        self._is_telling = True
        self._state.reading = (done, total)
        if outline is not None:
            self._state.outline = outline

    def _stop_telling(self) -> None:
        if self._is_telling:
            self._is_telling = False
            self._state.reading = (0, 0)

    def _show(self, part: str, found: Outline) -> None:
        self._stop_telling()
        super()._show(part, found)

    def _excuse(self, part: str, error: Exception) -> None:
        self._wished = None
        self._stop_telling()
        super()._excuse(part, error)
