"""The partitions, as a heat map, a calendar or bars; dragging over them marks a part of the table."""

from __future__ import annotations

from operator import is_
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
    """How records, files and bytes lie over the partitions."""

    name = "partitions"
    title = "Partitions"
    follows = ("partitions", "partition_value", "selection", "part")

    def build(self) -> None:
        """Make the widgets that stay."""
        choice = ipywidgets.ToggleButtons(options=PARTITION_VALUES, tooltips=["Show " + v for v in PARTITION_VALUES])
        link((self.state, "partition_value"), (choice, "value"))
        self.set_controls(choice)
        self._drawn: tuple[Any, ...] = ()
        self._board: tuple[Any, Board | None] = (None, None)
        self._about = ""

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
        selection = self.state.selection
        shown = partitions if selection is None or selection.ranges else self.to_arrow()
        drawn = (partitions, shown, self.state.partition_value, selection)
        if self.figure is not None and len(drawn) == len(self._drawn) and all(map(is_, drawn, self._drawn)):
            return
        self._drawn = drawn
        value = self.state.partition_value
        self.say(f"{self._about}: {value} of data files. Drag, or use the arrow keys, to mark some.")
        box = find_box(board, selection)
        figure = build_partition_figure(board, partitions if shown is None else shown, value, box)
        before = self.figure
        self.show_figure(figure, f"Partitions: {value} of data files")
        if self.figure is not None and self.figure is not before:
            self.figure.observe(self._brush, "brush")
        if self.figure is not None:
            self.figure.places = list(board.shape)
            self.figure.mark = [] if box is None else list(box)

    def _find_board(self, partitions: pa.Table) -> Board | None:
        if self._board[0] is not partitions:
            table = self.state.table
            board = build_board(partitions, table.metadata.specs, table.metadata.default_spec_id, table.schema)
            self._board = (partitions, board)
            self._about = "" if board is None else describe_partitions(board, partitions)
        return self._board[1]

    def _brush(self, change: Any) -> None:
        board = self._board[1]
        if board is not None and change.new:
            self.state.selection = None if change.new.get("clear") else select_box(board, change.new)

    def to_arrow(self) -> pa.Table | None:
        """Return the partitions, of the marked part where there is one."""
        selection, part = self.state.selection, self.state.part
        return part.partitions if part is not None and part.selection == selection else self.state.partitions

    def code(self) -> str:
        """Return the Python line that gives the partitions."""
        selection = self.state.selection
        if selection is None or not selection.ranges:
            return "table.partitions()"
        return str(selection.call("partitions"))
