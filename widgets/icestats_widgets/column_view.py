"""The columns as cards: the shape of their values, and what is known about them. A click selects one."""

from __future__ import annotations

import pyarrow as pa

from icestats.answers.text import counted
from icestats_widgets.column_cards import CARD_COLUMNS, build_column_cards, build_pending_cards
from icestats_widgets.grid import Grid, ListedRows, Seen
from icestats_widgets.view import View


class ColumnView(View):
    """Name, type, distribution, nulls, distinct values, quartiles, bounds and size of each column."""

    name = "columns"
    title = "Columns"
    follows = ("columns", "table", "column", "sparks", "part", "selection")

    def build(self) -> None:
        """Make the permanent widgets."""
        self.grid = Grid("Columns", CARD_COLUMNS, row_height=44, most_rows=10, least_rows=4)
        self.grid.on_select = self._choose
        self.body.children = [self.grid]

    def draw(self) -> None:
        """Show the columns."""
        if not self.state.has_part and self.grid.row_count and not self.state.notes.get("part"):
            self.grid.selected = self._selected()
            return
        columns = self.to_arrow()
        schema = self.state.table.schema
        if columns is None:
            rows = build_pending_cards(schema, "…" if self.is_loading else "unknown")
        else:
            rows = build_column_cards(columns, {} if self.state.selection is not None else self.state.sparks)
        self.grid.selected = self._selected()
        self.grid.show_rows(ListedRows(rows), "" if rows else "The table has no columns.")
        if self.note:
            self.say(self.note)
        elif columns is None:
            self.say("Reading the manifests …")
        else:
            part = f" of {self.state.selection.text}" if self._is_part else ""
            self.say(
                f"{counted(len(rows), 'column')}{part}; click one for its distribution, hover a figure for its source"
            )

    def _selected(self) -> list[str]:
        fields = self.state.table.schema.columns
        return [f"c{number}" for number, field in enumerate(fields) if field.name == self.state.column]

    @property
    def _is_part(self) -> bool:
        part = self.state.part
        return part is not None and part.selection == self.state.selection

    def _choose(self, key: str, _: Seen) -> None:
        self.state.column = self.state.table.schema.columns[int(key[1:])].name

    def to_arrow(self) -> pa.Table | None:
        """Return the columns, of the selected part if there is one."""
        return self.state.part.columns if self._is_part else self.state.columns

    def code(self) -> str:
        """Return the Python line that gives the columns, of the selected part if there is one."""
        selection = self.state.selection
        if selection is None:
            return "table.columns()"
        return f"read_part(table, {selection!r}).columns"
