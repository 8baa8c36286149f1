"""The columns: a click selects the one whose histogram is drawn."""

from __future__ import annotations

import pyarrow as pa
from traitlets import link

from icestats_widgets.column_cards import build_column_cards, build_pending_cards
from icestats_widgets.column_list import ColumnList
from icestats_widgets.view import View


class ColumnView(View):
    """Name, type, nulls, distinct values and bounds of each column."""

    name = "columns"
    title = "Columns"
    follows = ("columns", "table")

    def build(self) -> None:
        """Make the widgets that stay."""
        self.list = ColumnList(rows=build_pending_cards(self.state.table.schema), selected=self.state.column)
        link((self.state, "column"), (self.list, "selected"))

    def draw(self) -> None:
        """Show the columns."""
        columns = self.state.columns
        cards = build_pending_cards(self.state.table.schema) if columns is None else build_column_cards(columns)
        if columns is None and not self.is_loading:
            cards = [{name: "unknown" if text == "…" else text for name, text in card.items()} for card in cards]
        if self.list.rows != cards:
            self.list.rows = cards
        if self.note:
            self.say(self.note)
        elif columns is None:
            self.say("Reading the manifests …")
        else:
            self.say(f"{len(cards):,} columns; click one to see its distribution, point at a figure to see its source")
        if tuple(self.body.children) != (self.list,):
            self.body.children = [self.list]

    def to_arrow(self) -> pa.Table | None:
        """Return the columns."""
        return self.state.columns

    def code(self) -> str:
        """Return the Python line that gives the columns."""
        return "table.columns()"
