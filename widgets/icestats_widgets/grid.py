"""A table of any length. Only the visible rows go to the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anywidget
from traitlets import Bool, Dict, Int, List, Unicode

MOST_ROWS_SENT = 400
"""Most rows in one message."""
_FIRST_ROWS = 60

Row = dict[str, Any]
"""A row: `key`, `depth`, `open` (only if it can have rows below it), `cells`, and `k`, a kind."""


class Seen(NamedTuple):
    """How a row looks when a person clicks it: a click asks for the opposite."""

    is_selected: bool
    is_open: bool


class Rows(Protocol):
    """What a grid shows."""

    @property
    def row_count(self) -> int:
        """How many rows there are."""

    def window(self, offset: int, count: int) -> list[Row]:
        """Return some of the rows."""


class ListedRows:
    """Rows that are few enough to build all at once.

    Parameters
    ----------
    rows : sequence of dict
        The rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def window(self, offset: int, count: int) -> list[Row]:
        """Return some of the rows."""
        return self._rows[offset : offset + count]


class Grid(anywidget.AnyWidget):
    """A table that is sorted, filtered and paged in the kernel.

    Parameters
    ----------
    label : str
        What a screen reader says.
    columns : sequence of dict
        `name`, `title`, `width` (as in CSS grid), and optionally `align`, `sortable`, `about`.
    **traits
        Further traits.
    """

    _esm = Path(__file__).with_name("grid.js")

    label = Unicode().tag(sync=True)
    """What a screen reader says. Type: str. Default: empty."""
    columns = List(Dict()).tag(sync=True)
    """The columns. Type: list of dict. Default: empty."""
    row_count = Int().tag(sync=True)
    """How many rows there are. Type: int. Default: 0."""
    row_height = Int(26).tag(sync=True)
    """Pixels. Type: int. Default: 26."""
    most_rows = Int(14).tag(sync=True)
    """Most visible rows; scroll to see the others. Type: int. Default: 14."""
    least_rows = Int(1).tag(sync=True)
    """Fewest rows to reserve space for. Type: int. Default: 1."""
    is_tree = Bool(False).tag(sync=True)
    """Whether rows can be opened. Type: bool. Default: False."""
    is_loading = Bool(False).tag(sync=True)
    """Whether other rows are being read. Type: bool. Default: False."""
    sort = Dict().tag(sync=True)
    """`column` and `descending`. Type: dict. Default: empty, the original order."""
    selected = List(Unicode()).tag(sync=True)
    """Keys of the selected rows. Type: list of str. Default: empty."""
    placeholder = Unicode().tag(sync=True)
    """Placeholder of the filter box; if empty, there is no box. Type: str. Default: empty."""
    origin = Int().tag(sync=True)
    """Changing the number scrolls to the first row. Type: int. Default: 0."""
    note = Unicode().tag(sync=True)
    """A sentence below the rows, for example why there are none. Type: str. Default: empty."""
    page = Dict({"offset": 0, "rows": [], "number": 0}).tag(sync=True)
    """The rows sent to the browser. Type: dict. Default: none."""

    def __init__(self, label: str, columns: Sequence[dict[str, Any]], **traits: Any) -> None:
        self._rows: Rows = ListedRows([])
        self._seen = (0, _FIRST_ROWS)
        self._number = 0
        self.on_select: Callable[[str, Seen], object] | None = None
        """Called with the key of a clicked row, and how the row looked."""
        self.on_toggle: Callable[[str, bool], object] | None = None
        """Called with the key of a row, and whether to open it."""
        self.on_sort: Callable[[str, bool], object] | None = None
        """Called with a column, and whether to put the largest first."""
        self.on_filter: Callable[[str], object] | None = None
        """Called with the text of the filter box."""
        self.on_shown: Callable[[], object] | None = None
        """Called when a browser has painted the grid."""
        super().__init__(label=label, columns=list(columns), **traits)
        self.on_msg(lambda _, message, __: self.receive(message))

    def show_from_first(self) -> None:
        """Scroll to the first row, after the rows or their order changed."""
        self._seen = (0, _FIRST_ROWS)
        self.origin += 1

    def show_rows(self, rows: Rows, note: str = "") -> None:
        """Show other rows, in one message.

        Parameters
        ----------
        rows : Rows
            What to show.
        note : str
            A sentence below them.
        """
        self._rows = rows
        self.refresh(note)

    def refresh(self, note: str | None = None) -> None:
        """Show the same rows again, after some were opened, closed or filled."""
        offset, count = self._seen
        offset = max(0, min(offset, self._rows.row_count - count))
        with self.hold_sync():
            if note is not None:
                self.note = note
            self.row_count = self._rows.row_count
            rows = self._rows.window(offset, count)
            if (offset, rows) != (self.page["offset"], self.page["rows"]):
                self._send_page(offset, rows)

    def receive(self, message: dict[str, Any]) -> None:
        """Handle messages from the browser: which rows it shows, and what a person does with them."""
        kind = message.get("kind")
        if kind == "window":
            self._seen = (max(0, int(message["offset"])), max(1, min(int(message["count"]), MOST_ROWS_SENT)))
            self._send_page(self._seen[0], self._rows.window(*self._seen))
        elif kind == "select" and self.on_select is not None:
            self.on_select(str(message["key"]), Seen(bool(message.get("is_selected")), bool(message.get("is_open"))))
        elif kind == "toggle" and self.on_toggle is not None:
            self.on_toggle(str(message["key"]), bool(message["open"]))
        elif kind == "filter" and self.on_filter is not None:
            self.on_filter(str(message["text"]))
        elif kind == "shown" and self.on_shown is not None:
            self.on_shown()
        elif kind == "sort":
            self._sort(str(message["column"]))

    def _sort(self, column: str) -> None:
        numbers = {c["name"] for c in self.columns if c.get("align") == "end"}
        first = column in numbers
        descending = not self.sort["descending"] if self.sort.get("column") == column else first
        self.sort = {"column": column, "descending": descending}
        if self.on_sort is not None:
            self.on_sort(column, descending)

    def _send_page(self, offset: int, rows: list[Row]) -> None:
        self._number += 1
        self.page = {"offset": offset, "rows": rows, "number": self._number}
