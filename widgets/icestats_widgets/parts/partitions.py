"""The partitions, as a calendar, a heat map or bars; drag over them to select a part of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.iceberg.partition_columns import name_specs
from icestats_widgets.drawing.canvas import Picture
from icestats_widgets.drawing.partition_board import Board, build_board, sum_cells
from icestats_widgets.drawing.partition_brush import select_key, select_marked
from icestats_widgets.drawing.partition_figure import build_partition_figure, describe_partitions
from icestats_widgets.page.blocks import Block, choice, fact, facts_block, figure_block, form_block
from icestats_widgets.page.part import Part
from icestats_widgets.reading.plan_outcomes import plan_of_partitions
from icestats_widgets.state import PARTITION_VALUES


class PartitionsPart(Part):
    """How records, files and bytes are distributed over the partitions."""

    name = "partitions"
    title = "Partitions"
    tab = "overview"
    follows = ("partitions", "partition_value", "selection", "part", "plan", "table")
    hears = ("partitions", "part")

    def build(self) -> None:
        """Nothing is drawn yet."""
        self._board: tuple[Any, int, Board | None] = (None, 0, None)
        self._cells: tuple[Any, Any, Any] = (None, None, None)
        self._picture: Picture | None = None

    def blocks(self) -> list[Block]:
        """Return the picture of the partitions, and the totals of what is selected."""
        board = self._find_board()
        if board is None:
            return []
        value = self.state.partition_value
        self._picture = build_partition_figure(
            board, self._find_cells(board, self._shown()), value, width=self.width("map"),
            verdicts=self._verdicts(board),
            selection=self.state.selection,
        )  # fmt: skip
        options = [(one, one) for one in PARTITION_VALUES]
        figure = figure_block(
            "map", self._picture.svg, f"Partitions: {value} of data files", marks="xy", name="partitions"
        )
        return [form_block(choice("partitions.value", "show", value, options)), figure, *self._totals()]

    def caption(self) -> str:
        """Return what is drawn."""
        partitions = self.state.partitions
        if partitions is None:
            return self.note or "Reading the manifests …"
        if partitions.num_rows == 0:
            return "No partitions: the table has no files."
        board = self._find_board()
        if board is None:
            return "The table is not partitioned: all its files are in one place."
        about = describe_partitions(board, partitions, self._find_cells(board, partitions))
        return f"{about}.\nClick or drag to add partitions to the filter."

    def to_arrow(self) -> pa.Table | None:
        """Return the partitions, of the selected part if there is one."""
        if self.state.selection is None:
            return None if self.state.partitions is None else self.state.table.partitions()
        part = self.state.selected_part
        return None if part is None else part.partitions

    def code(self) -> str:
        """Return the Python line that gives the partitions."""
        selection = self.state.selection
        if selection is None:
            return "table.partitions()"
        # Of a selected manifest, partitions have the figures of its own files only.
        return str(selection.call("partitions")) if selection.ranges else f"read_part(table, {selection!r}).partitions"

    def on_value(self, value: Any) -> None:
        """Show records, files or bytes."""
        if value in PARTITION_VALUES:
            self.state.partition_value = value

    def on_map_choose(self, value: Any) -> None:
        """Select a partition; the selected one again, and all are shown."""
        board = self._find_board()
        if board is not None and isinstance(value, dict):
            selection = select_key(board, str(value.get("key", "")))
            self.state.selection = None if selection == self.state.selection else selection

    def on_map_mark(self, value: Any) -> None:
        """Select the partitions that were dragged over."""
        board = self._find_board()
        if board is None or self._picture is None or not isinstance(value, dict):
            return
        try:
            ends = [tuple(float(end) for end in value[side]) for side in ("x", "y")]
            self.state.selection = select_marked(board, self._picture, str(value["plot"]), *ends)
        except (KeyError, TypeError, ValueError):
            return

    def on_map_clear(self, _: Any) -> None:
        """Select nothing."""
        self.state.selection = None

    def _shown(self) -> pa.Table:
        # Marked partitions are framed; of a marked manifest its own partitions are shown, once they have been read.
        part = self.state.selected_part
        return self.state.partitions if part is None or self.state.selection.ranges else part.partitions

    def _verdicts(self, board: Board) -> dict[Any, str] | None:
        plan = self.state.plan
        if plan is None:
            return None
        partitions = board.select(self.state.partitions)
        verdicts: dict[Any, str] = {}
        for key, step in zip(board.keys(partitions), plan_of_partitions(plan, partitions), strict=True):
            # A place stands for several partitions if fields are summed; it is kept if one of them is.
            if step is None or key not in verdicts:
                verdicts[key] = step or ""
        return verdicts

    def _find_cells(self, board: Board, partitions: pa.Table) -> Any:
        if self._cells[0] is not board or self._cells[1] is not partitions:
            self._cells = (board, partitions, sum_cells(partitions, board))
        return self._cells[2]

    def _find_board(self) -> Board | None:
        partitions, width = self.state.partitions, self.width("map")
        if partitions is None or partitions.num_rows == 0:
            return None
        if self._board[0] is not partitions or self._board[1] != width:
            table = self.state.table
            metadata = table.metadata
            specs = name_specs(metadata.specs)
            board = build_board(partitions, specs, metadata.default_spec_id, table.schema, width=width)
            self._board = (partitions, width, board)
        return self._board[2]

    def _totals(self) -> list[Block]:
        part = self.state.selected_part
        if part is None:
            return []
        return [
            facts_block(
                fact("selected records", f"{part.record_count:,}"),
                fact("data files", f"{part.file_count:,}"),
                fact("size", render_bytes(part.size_bytes)),
                fact("in", counted(len(part.manifest_paths), "manifest")),
            )
        ]
