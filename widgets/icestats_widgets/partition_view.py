"""The partitions, as a heat map, a calendar or bars; drag over them to select a part of the table."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets
import pyarrow as pa
from traitlets import link

from icestats_widgets.partition_board import Board, build_board
from icestats_widgets.partition_brush import find_box, select_box
from icestats_widgets.partition_figure import build_partition_figure, describe_partitions
from icestats_widgets.state import PARTITION_VALUES
from icestats_widgets.view import View


class PartitionView(View):
    """How records, files and bytes are distributed over the partitions."""

    name = "partitions"
    title = "Partitions"
    follows = ("partitions", "partition_value", "selection", "part")

    def build(self) -> None:
        """Make the permanent widgets."""
        choice = ipywidgets.ToggleButtons(options=PARTITION_VALUES, tooltips=["Show " + v for v in PARTITION_VALUES])
        link((self.state, "partition_value"), (choice, "value"))
        self.set_controls(choice)
        self._drawn: tuple[Any, Any] = (None, None)
        self._board: tuple[Any, Board | None] = (None, None)
        self._figures: dict[str, Any] = {}
        self._about = ""
        self._answered = 0
        self._marking, self._brushing = threading.Lock(), threading.Lock()

    def draw(self) -> None:
        """Show the partitions."""
        partitions = self.state.partitions
        if partitions is None:
            self.show_note(self.note or "Reading the manifests …", is_error=bool(self.note))
            return
        if partitions.num_rows == 0:
            self.say("0 partitions")
            self.show_note("No partitions: nothing has been written to this table yet.", is_error=False)
            return
        board = self._find_board(partitions)
        if board is None:
            self.say("not partitioned")
            self.show_note("The table is not partitioned: all its files are in one place.", is_error=False)
            return
        value = self.state.partition_value
        shown = self._shown(partitions)
        if self.figure is None or self._drawn[0] is not shown or self._drawn[1] != value:
            self._drawn = (shown, value)
            self.say(f"{self._about}: {value} of data files. Drag, or use the arrow keys, to select some.")
            self._show(self._find_figure(board, shown, value), board, value)
        self._show_mark()

    def _shown(self, partitions: pa.Table) -> pa.Table:
        # Marked partitions are framed; of a marked manifest its own partitions are shown, once they have been read.
        selection = self.state.selection
        if not self.state.has_part:
            return partitions if self.figure is None else self._drawn[0]
        return partitions if selection is None or selection.ranges else self.state.part.partitions

    def _find_figure(self, board: Board, shown: pa.Table, value: str) -> Any:
        # The table's own are kept: they come back after each marked manifest.
        if shown is not self._board[0]:
            return build_partition_figure(board, shown, value)
        if value not in self._figures:
            self._figures[value] = build_partition_figure(board, shown, value)
        return self._figures[value]

    def _show(self, figure: Any, board: Board, value: str) -> None:
        before = self.figure
        self.show_figure(figure, f"Partitions: {value} of data files")
        if self.figure is not None:
            self.figure.places, self.figure.is_calendar = list(board.shape), board.calendar is not None
            if self.figure is not before:
                self._answered = 0
                self.figure.on_brush = self._brush

    def _show_mark(self) -> None:
        board = self._board[1]
        if self.figure is not None and board is not None:
            with self._marking:
                # The number first: a selection may be newer than it, never older.
                number = self._answered
                self.figure.mark = {"places": list(find_box(board, self.state.selection) or ()), "number": number}

    def _find_board(self, partitions: pa.Table) -> Board | None:
        if self._board[0] is not partitions:
            table = self.state.table
            board = build_board(partitions, table.metadata.specs, table.metadata.default_spec_id, table.schema)
            self._board, self._figures = (partitions, board), {}
            self._about = "" if board is None else describe_partitions(board, partitions)
        return self._board[1]

    def _brush(self, places: list[float], number: int) -> None:
        board = self._board[1]
        # Kernels hear of widgets in several threads, and not always in order.
        with self._brushing:
            if board is None or number <= self._answered:
                return
            is_none = len(places) != 4
            self.state.selection = None if is_none else select_box(board, {"x": places[:2], "y": places[2:]})
            self._answered = number
        self._show_mark()

    def to_arrow(self) -> pa.Table | None:
        """Return the partitions, of the selected part if there is one."""
        selection, part = self.state.selection, self.state.part
        if selection is None:
            return None if self.state.partitions is None else self.state.table.partitions()
        return part.partitions if part is not None and part.selection == selection else None

    def code(self) -> str:
        """Return the Python line that gives the partitions."""
        selection = self.state.selection
        if selection is None or not selection.ranges:
            return "table.partitions()"
        return str(selection.call("partitions"))
