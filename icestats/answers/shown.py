"""An Arrow answer as a table for a person: units, thousands separators, and `unknown` in place of null."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from icestats.answers.arrays import to_rows
from icestats.answers.markup import Markup, build_answer, build_table
from icestats.answers.text import align, counted, printable, render_bytes
from icestats.errors import CallError, check_whole

_LENGTHS = frozenset(("column_size", "length", "manifest_length", "avg_length", "max_length"))
"""Columns of bytes whose names do not say so."""
_LONGEST_CELL = 200
_LONGEST_VALUE = 24


class Shown:
    """An answer that draws itself: as HTML in a notebook, else as aligned text."""

    def __init__(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int], row_count: int
    ) -> None:
        self._heads, self._rows, self._texts = heads, rows, texts
        more = row_count - len(rows)
        self._more = f"… and {counted(more, 'more row')}" if more else "" if rows else "no rows"

    def __repr__(self) -> str:
        return "\n".join([*align([self._heads, *self._rows], self._texts), *([self._more] if self._more else [])])

    def _repr_html_(self) -> str:
        table = build_table(self._heads, self._rows, left=self._texts) if self._rows else Markup("")
        return build_answer("", table, self._more)


def show(answer: Any, *columns: str, rows: int = 20) -> Shown:
    """Return an answer as a table that a notebook draws: sizes have a unit, estimates a ≈, and null is *unknown*.

    Parameters
    ----------
    answer : pyarrow.Table
        An answer of the kit, or an object with `to_arrow()`.
    *columns : str
        The columns to show, in this order; by default all.
    rows : int
        Most rows to show.

    Returns
    -------
    Shown
        What draws itself.

    Raises
    ------
    CallError
        The answer is no table, or has no such column; `rows` is no number of rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> show(pa.table({"name": ["a", None], "size_bytes": [1_080_700, None]}))
    name  size_bytes
    a        1.08 MB
    –        unknown
    """
    table = answer.to_arrow() if hasattr(answer, "to_arrow") else answer
    if not isinstance(table, pa.Table):
        raise CallError(
            f"{type(answer).__name__} is no answer to show: expected a pyarrow.Table, or what has to_arrow()"
        )
    rows = check_whole("rows", rows, 0)
    if missing := [name for name in columns if not (isinstance(name, str) and name in table.column_names)]:
        raise CallError(f"no column {missing[0]!r:.80} to show: the answer has {', '.join(table.column_names)}")
    shown = table.select(columns or table.column_names)
    texts = [place for place, field in enumerate(shown.schema) if not _is_figure(field.type)]
    types = {field.name: field.type for field in table.schema}
    cells = []
    for row in to_rows(table.slice(0, min(rows, table.num_rows))):
        provenance = _provenance(row, types.get("provenance"))
        cells.append([_render(row, field, provenance.get(field.name, "")) for field in shown.schema])
    return Shown([printable(name) for name in shown.column_names], cells, texts, table.num_rows)


def _is_figure(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _provenance(row: Mapping[str, Any], kind: pa.DataType | None) -> dict[str, str]:
    # The rows of a query may have a column of this name that is something else.
    is_one = kind is not None and pa.types.is_map(kind) and kind.key_type == kind.item_type == pa.string()
    return {name: words or "" for name, words in row["provenance"] or ()} if is_one else {}


def _are_common(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return False
    types = {field.name: field.type for field in kind.value_type.fields}
    return bool(types.get("value") == pa.string() and types.get("share") == pa.float64())


def _render(row: Mapping[str, Any], field: pa.Field, about: str) -> str:
    name: str = field.name
    value = row[name]
    if value is None:
        return about.partition(":")[0] or "unknown" if _is_figure(field.type) else "–"
    if name == "common_values" and _are_common(field.type):
        return render_common(value) or "none"
    if _is_figure(field.type) and not name.endswith("_id"):
        text = _render_figure(value, is_size="bytes" in name.split("_") or name in _LENGTHS)
        return f"≈ {text}" if about.startswith("estimate") else text
    text = printable(_render_text(value))
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def render_common(values: Sequence[Mapping[str, Any]]) -> str:
    """Return common values of a column in a line, the most common first: each, cut short, with its share of all rows.

    Examples
    --------
    >>> render_common([{"value": "UA", "share": 0.174}, {"value": "B6", "share": 0.162}])
    'UA (17.4%), B6 (16.2%)'
    """
    return ", ".join(f"{_cut_short(printable(one['value']))} ({one['share']:.1%})" for one in values)


def _cut_short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _render_figure(value: Any, *, is_size: bool) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:+}"
    if is_size:
        return render_bytes(round(value))
    if not isinstance(value, float):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.4g}"


def _render_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_render_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_render_text, value)) or "none"
    if isinstance(value, tuple):
        return ": ".join(map(_render_text, value))
    return str(value)
