"""What is reported to an engine's optimizer of a table and of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import REPORTED
from icestats.answers.text import align, counted, printable_lines, render_count
from icestats.iceberg.types import parse_type
from icestats.stats.equi_height import EquiHeightBins
from icestats.stats.kll_items import item_beside, item_value

_MANY = 10
"""A bin of so many values adds little to that of a value that it touches: Spark adds a bin's rows by its values."""


@dataclass(frozen=True, slots=True)
class ReportedColumn:
    """The figures of a column, over the live rows of the table."""

    name: str
    type: str
    """The Iceberg type."""
    ndv: int | None
    """None: unknown."""
    null_count: int | None
    avg_length: int
    """Bytes of a value, rounded up."""
    max_length: int
    bounds: tuple[Any, Any] | None
    """The smallest and the largest value, or bounds of them, as items of a KLL sketch; None: no value, or no order that
    an optimizer uses."""
    bins: EquiHeightBins | None
    """Items as well; None: no histogram."""
    sources: str
    """Where the figures come from, how old they are, what is left out and why."""


@dataclass(frozen=True)
class ReportedStatistics:
    """What an optimizer is told of a snapshot: `print` it, or take `to_arrow()`."""

    table_name: str
    snapshot_id: int | None
    row_count: int
    """Live rows: deletes are deducted. An estimate, unless both bounds are the same."""
    row_count_bounds: tuple[int, int]
    """Live rows, at least and at most."""
    record_count: int
    """Rows in data files."""
    columns: tuple[ReportedColumn, ...]
    unknown: tuple[tuple[str, str], ...]
    """Columns of which nothing is reported, and why."""
    row_count_assumes: str = ""
    """What these bounds take for granted; nothing: the manifests prove them."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the row count, and of statistics that could not be used."""

    def to_arrow(self) -> pa.Table:
        """Return one row a column, `schemas.REPORTED`."""
        return pa.Table.from_pylist([*map(_row, self.columns), *(_unknown_row(*one) for one in self.unknown)], REPORTED)

    def to_json(self) -> str:
        """Return the figures as the feed of Spark's optimizer takes them."""
        columns = [_document(column, self.row_count) for column in self.columns]
        share = self.row_count / self.record_count if self.record_count else 1.0
        return json.dumps({"rows": self.row_count, "live_share": share, "columns": columns})

    def __str__(self) -> str:
        lines = align([_HEADS, *self._list_cells()], left=(0, 1, 8))
        notes = (f"  ! {note}" for note in self.notes)
        return printable_lines([self._title(), *notes, *(f"  {line}" for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = (element("p", note) for note in self.notes)
        return build_answer(self._title(), *notes, build_table(_HEADS, self._list_cells(), class_="words"))

    def _title(self) -> str:
        deleted = "" if self.row_count == self.record_count else f" of {self.record_count:,} in data files"
        least, most = self.row_count_bounds
        about, bounds = ("", "") if least == most else ("about ", f" ({least:,} to {most:,})")
        rows = counted(self.row_count, "live row")
        assumes = f", {self.row_count_assumes}" if self.row_count_assumes else ""
        return f"{self.table_name}: {about}{rows}{bounds}{deleted}{assumes}"

    def _list_cells(self) -> list[tuple[str, ...]]:
        return [_cells(row) for row in self.to_arrow().to_pylist()]


_HEADS = ("column", "type", "ndv", "nulls", "length", "bins", "min", "max", "from")


def _row(column: ReportedColumn) -> dict[str, Any]:
    low, high = (None, None) if column.bounds is None else (_text(column.type, bound) for bound in column.bounds)
    return {
        "column": column.name,
        "type": column.type,
        "ndv": column.ndv,
        "null_count": column.null_count,
        "avg_length": column.avg_length,
        "max_length": column.max_length,
        "min": low,
        "max": high,
        "bin_count": 0 if column.bins is None else len(column.bins.ndvs),
        "edges": None if column.bins is None else list(_numbers(column.type, column.bins.edges)),
        "sources": column.sources,
    }


def _unknown_row(name: str, reason: str) -> dict[str, Any]:
    return {"column": name, "bin_count": 0, "sources": f"nothing is reported: {reason}"}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = [render_count(row[name]) for name in ("ndv", "null_count", "avg_length", "bin_count")]
    return row["column"], row["type"] or "", *counts, row["min"] or "", row["max"] or "", row["sources"]


def _document(column: ReportedColumn, row_count: int) -> dict[str, Any]:
    """Return a column for Spark: values as text, which it makes its own kinds of numbers of."""
    kind = parse_type(column.type).name
    counts = {"ndv": column.ndv, "null_count": column.null_count}
    found: dict[str, Any] = {name: count for name, count in counts.items() if count is not None} | {
        "name": column.name,
        "type": {"uuid": "string", "fixed": "binary"}.get(kind, kind),
        "avg_length": column.avg_length,
        "max_length": column.max_length,
        "bin_height": 0.0,
        "bin_lows": [],
        "bin_highs": [],
        "bin_ndvs": [],
    }
    if column.bounds is not None:
        found["min"], found["max"] = (_spark_text(column.type, bound) for bound in column.bounds)
    if column.bins is not None:
        found["bin_height"] = (row_count - (column.null_count or 0)) / len(column.bins.ndvs)
        found["bin_ndvs"] = list(column.bins.ndvs)
        found["bin_lows"], found["bin_highs"] = _bin_ends(column.type, column.bins)
    return found


def _bin_ends(type_text: str, bins: EquiHeightBins) -> tuple[list[float], list[float]]:
    """Return where bins begin and end, as the doubles that Spark compares.

    Spark's joins take a bin without a width for no rows at all where it lies within a wider one of the other side. So
    where values are whole, a bin reaches from its first to just before the one behind its last. And Spark takes one of
    a value's own bins for less, and one for more, than the value, unless the bins beside them touch it.
    """
    edges = list(_numbers(type_text, bins.edges))
    lows, highs = edges[:-1], edges[1:]
    if not bins.common:
        return lows, highs
    following = [item_beside(type_text, low, 1) if low == high else high for low, high in pairwise(bins.edges)]
    before = np.float32 if parse_type(type_text).name == "float" else np.float64
    highs = [float(np.nextafter(before(number), before(-np.inf))) for number in _numbers(type_text, following)]
    highs = [*map(max, lows, highs[:-1]), edges[-1]]
    for place, ndv in enumerate(bins.ndvs):
        if ndv >= _MANY and bins.edges[place] not in bins.common:
            highs[place] = edges[place + 1] if bins.edges[place + 1] in bins.common else highs[place]
            lows[place] = edges[place - 1] if place and bins.edges[place - 1] in bins.common else lows[place]
    return lows, highs


def _spark_text(type_text: str, item: Any) -> str:
    kind = parse_type(type_text)
    if kind.name == "boolean":
        return "true" if item else "false"
    return str(item_value(type_text, item)) if kind.name == "decimal" else repr(item)


def _text(type_text: str, item: Any) -> str:
    value = item_value(type_text, item)
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _numbers(type_text: str, items: Sequence[Any]) -> Iterator[float]:
    """Yield items as the doubles that Spark compares: dates in days, timestamps in microseconds."""
    for item in items:
        value = item_value(type_text, item)
        yield float(value if isinstance(value, Decimal) else item)
