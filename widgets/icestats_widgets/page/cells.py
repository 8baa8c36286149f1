"""Cells of grids: text with units, bars, and tooltips. `v` is what a cell is sorted by, and stays in the kernel."""

from __future__ import annotations

from typing import Any

from icestats.answers.text import counted, printable, printable_lines, render_bytes, render_count
from icestats.iceberg.types import decode_value
from icestats_widgets.drawing.axis import value_label

Cell = dict[str, Any]
UNKNOWN = "unknown"
_LONGEST_VALUE = 40


def text_cell(text: str, about: str = "", kind: str = "", small: str = "") -> Cell:
    """Return a cell with a text.

    Parameters
    ----------
    text : str
        Shown without HTML, and `printable`.
    about : str
        The tooltip; by default the text.
    kind : str
        A class: `quiet`, `good`, `bad`, `strong`, `code`.
    small : str
        Shown below the text, in small letters.
    """
    cell: Cell = {"t": printable(text), "h": printable_lines((about or text).split("\n"))}
    if kind or text in (UNKNOWN, "–", "none"):
        cell["k"] = kind or "quiet"
    if small:
        cell["s"] = printable(small)
    return cell


def count_cell(count: int | None, most: int | None = None, about: str = "") -> Cell:
    """Return a cell with a count, and a bar that shows its share of the largest one.

    Examples
    --------
    >>> count_cell(1500, 3000)
    {'t': '1,500', 'h': '1,500', 'v': 1500, 'b': 0.5}
    >>> count_cell(None)["t"]
    'unknown'
    """
    return _with_bar(text_cell(render_count(count), about), count, most)


def bytes_cell(size_bytes: int | None, most: int | None = None, about: str = "") -> Cell:
    """Return a cell with a size, and a bar that shows its share of the largest one; the tooltip has the exact bytes."""
    exact = "" if size_bytes is None else counted(size_bytes, "byte")
    return _with_bar(text_cell(render_bytes(size_bytes), about or exact), size_bytes, most)


def change_cell(change: int | None, most: int | None = None, *, in_bytes: bool = False) -> Cell:
    """Return a cell with a signed change; an empty one if the summary does not state it."""
    if change is None:
        return text_cell("–", "not stated")
    size = render_bytes(abs(change)) if in_bytes else f"{abs(change):,}"
    cell = text_cell(("+" if change > 0 else "−" if change < 0 else "") + size)
    cell["k"] = "less" if change < 0 else "more"
    return {**_with_bar(cell, abs(change), most), "v": change}


def _with_bar(cell: Cell, value: int | None, most: int | None) -> Cell:
    cell["v"] = value
    if value is not None and most:
        cell["b"] = round(min(1.0, value / most), 4)
    return cell


def render_value(type_text: str, data: bytes | None) -> str:
    """Return single-value bytes as readable text, shortened if long; `unknown` for None."""
    if data is None:
        return UNKNOWN
    try:
        text = value_label(type_text, decode_value(type_text, data))
    except ValueError:
        text = data.decode("utf-8", "replace") if type_text == "string" else data.hex()
    if not text:
        return '""'
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
