"""A table of any length. Sorting, searching and paging happen in the kernel; only the visible rows go to the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_ROWS_SENT = 400
"""Most rows in one message."""
_FIRST_ROWS = 100
_MOST_ROWS_SAVED = 1_000_000
_MOST_CHARACTERS = 4_000
"""Of a cell's text, and of its tooltip, that the page is sent: a partition's value may have millions."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Row = dict[str, Any]
"""A row: `key`, `depth`, `open` (only if it can have rows below it), and `cells`.

A cell may have `v`, what it is sorted by in place of its text; it is not sent.
"""


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
    names : sequence of str
        The names of their cells' columns.
    """

    def __init__(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        self.rows, self._names = list(rows), list(names)

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def window(self, offset: int, count: int) -> list[Row]:
        """Return some of the rows."""
        return self.rows[offset : offset + count]

    def arranged(self, words: str, column: str | None, descending: bool) -> ListedRows:
        """Return the rows in which all of some words occur, sorted by a column; unknown values come last."""
        wanted = words.lower().split()
        rows = [row for row in self.rows if all(word in _text(row) for word in wanted)]
        if column is not None and column in self._names:
            place = self._names.index(column)
            known = [row for row in rows if _value(row, place) is not None]
            known.sort(key=lambda row: _order(_value(row, place)), reverse=descending)
            rows = [*known, *(row for row in rows if _value(row, place) is None)]
        return ListedRows(rows, self._names)


class BuiltRows:
    """Rows that are built when they are seen, sorted and searched as Arrow columns: for many.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array
        What each column of the grid is sorted by; null comes last.
    text : pyarrow.Array
        What is searched, one text a row.
    build : callable
        Returns the row of a number.
    order : numpy.ndarray, optional
        The numbers of the rows to show, in their order; by default all.
    """

    def __init__(
        self,
        columns: Mapping[str, pa.Array | pa.ChunkedArray],
        text: pa.Array | pa.ChunkedArray,
        build: Callable[[int], Row],
        order: Any = None,
    ) -> None:
        self._columns, self._text, self._build = columns, text, build
        self._order = np.arange(len(text)) if order is None else order

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._order)

    def window(self, offset: int, count: int) -> list[Row]:
        """Return some of the rows."""
        return [self._build(int(number)) for number in self._order[offset : offset + count]]

    def arranged(self, words: str, column: str | None, descending: bool) -> BuiltRows:
        """Return the rows in which all of some words occur, sorted by a column; unknown values come last."""
        numbers = self._order
        for word in words.split():
            found = pc.match_substring(self._text, word, ignore_case=True)
            numbers = numbers[pc.fill_null(found.take(pa.array(numbers)), False).to_numpy(zero_copy_only=False)]
        if column is not None and column in self._columns:
            values = self._columns[column].take(pa.array(numbers))
            way = "descending" if descending else "ascending"
            numbers = numbers[pc.array_sort_indices(values, order=way).to_numpy()]
        return BuiltRows(self._columns, self._text, self._build, numbers)


class Grid:
    """A table with search, sort, a choice of columns, and a file of its rows.

    Parameters
    ----------
    grid_id : str
        Names the grid in acts; no full stop in it.
    label : str
        What a screen reader says.
    columns : sequence of dict
        `name`, `title`, `width` (as in CSS grid), and optionally `align`, `sortable`, `about`, `hidden`,
        `roomy`: left out where there is no room for all; `name_pixels`: of names, which are not cut up to that width.
    is_tree : bool
        Whether rows can be opened.
    most_rows : int
        Most visible rows; scroll to see the others.
    row_height : int
        Pixels: 26, or 44 for rows of two lines.
    placeholder : str
        Placeholder of the search box; if empty, there is no box.
    on_open, on_choose, on_cell : callable, optional
        Called with the key of a row and whether to open it; with a key and how the row looked (`Seen`); with a key and
        the name of the column whose cell is a button.
    on_arrange : callable, optional
        Called when the order or the search words have changed; rows that are neither `ListedRows` nor `BuiltRows` are
        arranged by whoever gave them.
    """

    def __init__(
        self,
        grid_id: str,
        label: str,
        columns: Sequence[dict[str, Any]],
        *,
        is_tree: bool = False,
        most_rows: int = 14,
        row_height: int = 26,
        placeholder: str = "search",
        on_open: Callable[[str, bool], object] | None = None,
        on_choose: Callable[[str, Seen], object] | None = None,
        on_cell: Callable[[str, str], object] | None = None,
        on_arrange: Callable[[], object] | None = None,
    ) -> None:
        self.grid_id = grid_id
        self.label = label
        self.columns = [dict(column) for column in columns]
        self.is_tree, self.most_rows, self.row_height, self.placeholder = is_tree, most_rows, row_height, placeholder
        self.on_open, self.on_choose, self.on_cell, self.on_arrange = on_open, on_choose, on_cell, on_arrange
        self.words = ""
        """What is searched for."""
        self.sort: dict[str, Any] = {}
        """`column` and `descending`; empty: the order of the rows."""
        self.selected: list[str] = []
        """Keys of the selected rows."""
        self.note = ""
        """A sentence below the rows, for example why there are none."""
        self._given: Rows = ListedRows([], [])
        self._shown: Rows = self._given
        self._number = 0

    def show(self, rows: Rows | Sequence[Row], note: str = "") -> None:
        """Show other rows."""
        names = [column["name"] for column in self.columns]
        self._given = ListedRows(rows, names) if isinstance(rows, Sequence) else rows
        self.note = note
        self._arrange()

    def block(self) -> dict[str, Any]:
        """Return the grid as the page draws it, with its first rows."""
        search = {"placeholder": self.placeholder, "text": self.words} if self.placeholder else None
        return {
            "is": "grid", "id": self.grid_id, "label": self.label, "columns": self.columns,
            "row_count": self._shown.row_count, "offset": 0, "rows": self._window(0, _FIRST_ROWS), "sort": self.sort,
            "search": search, "selected": self.selected, "is_tree": self.is_tree, "most_rows": self.most_rows,
            "row_height": self.row_height, "note": self.note, "name": self.grid_id, "number": self._number,
        }  # fmt: skip

    def first_rows(self, count: int) -> list[Row]:
        """Return the first rows, as they are sorted and searched now, with what they are sorted by."""
        return self._shown.window(0, count)

    def act(self, verb: str, value: dict[str, Any]) -> dict[str, Any] | None:
        """Do what a person asks for; return a message for the page, or None if the grid has to be drawn again."""
        key = str(value.get("key", ""))
        if verb == "window":
            offset, count = _whole(value.get("offset")), _whole(value.get("count"))
            return self._rows(max(0, offset), max(1, min(count, MOST_ROWS_SENT)))
        if verb == "csv":
            return {"kind": "file", "name": f"{self.grid_id}.csv", "type": "text/csv", "text": self.to_csv()}
        if verb == "sort":
            self._sort(str(value.get("column")))
        elif verb == "search":
            self.words = str(value.get("text", ""))
            self._rearrange()
        elif verb == "columns":
            self._hide(value.get("names"))
        elif verb == "open" and self.on_open is not None:
            self.on_open(key, bool(value.get("open")))
        elif verb == "choose" and self.on_choose is not None:
            self.on_choose(key, Seen(bool(value.get("is_selected")), bool(value.get("is_open"))))
        elif verb == "cell" and self.on_cell is not None:
            self.on_cell(key, str(value.get("column")))
        return None

    def to_csv(self) -> str:
        """Return all rows as CSV. What a spreadsheet would run as a formula begins with an apostrophe."""
        lines = io.StringIO()
        writer = csv.writer(lines)
        writer.writerow([_safe(column["title"]) for column in self.columns])
        for row in self._shown.window(0, _MOST_ROWS_SAVED):
            writer.writerow([_safe(cell.get("t", "")) for cell in row["cells"]])
        return lines.getvalue()

    def _sort(self, name: str) -> None:
        column = next((c for c in self.columns if c["name"] == name and c.get("sortable", True)), None)
        if column is None:
            return
        first = column.get("align") == "end"
        descending = not self.sort["descending"] if self.sort.get("column") == name else first
        self.sort = {"column": name, "descending": descending}
        self._rearrange()

    def _hide(self, names: object) -> None:
        shown = {str(name) for name in names} if isinstance(names, list) else set()
        for column in self.columns:
            column["hidden"] = bool(shown) and column["name"] not in shown

    def _rearrange(self) -> None:
        self._arrange()
        if self.on_arrange is not None:
            self.on_arrange()

    def _arrange(self) -> None:
        self._shown = self._given
        if isinstance(self._given, ListedRows | BuiltRows) and (self.words or self.sort):
            name, descending = self.sort.get("column"), bool(self.sort.get("descending"))
            self._shown = self._given.arranged(self.words, name, descending)
        self._number += 1

    def _rows(self, offset: int, count: int) -> dict[str, Any]:
        rows = self._window(offset, count)
        return {
            "kind": "rows", "offset": offset, "row_count": self._shown.row_count, "rows": rows, "number": self._number,
        }  # fmt: skip

    def _window(self, offset: int, count: int) -> list[Row]:
        rows = self._shown.window(offset, count)
        return [{**row, "cells": [_to_send(cell) for cell in row["cells"]]} for row in rows]


def _to_send(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell without what it is sorted by, and with no longer texts than anybody reads."""
    return {name: _cut(held) for name, held in cell.items() if name != "v"}


def _cut(held: Any) -> Any:
    is_long = isinstance(held, str) and len(held) > _MOST_CHARACTERS
    return held[: _MOST_CHARACTERS - 1] + "…" if is_long else held


def _value(row: Row, place: int) -> Any:
    cell = row["cells"][place]
    return cell["v"] if "v" in cell else cell.get("t")


def _order(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value).lower())


def _text(row: Row) -> str:
    return " ".join(str(cell.get("t", "")) for cell in row["cells"]).lower()


def _safe(text: str) -> str:
    return "'" + text if text.startswith(_FORMULA) and not text.lstrip("+-").replace(",", "").isdecimal() else text


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
