"""The columns: the shape of their values, and what is known about them. A click selects one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.shown import render_common
from icestats.answers.text import counted, render_count, render_rows
from icestats.iceberg.metadata import Schema
from icestats_widgets.drawing.scales import render_percent
from icestats_widgets.drawing.spark_figure import build_spark
from icestats_widgets.page.blocks import Block
from icestats_widgets.page.cells import UNKNOWN, Cell, bytes_cell, render_value, text_cell
from icestats_widgets.page.grid import Row, Seen
from icestats_widgets.page.part import Part
from icestats_widgets.reading.filters.asked_filter import filter_beside_selection
from icestats_widgets.reading.selected_part import SelectedPart
from icestats_widgets.reading.sparks import PartSketches, Spark

_COLUMNS = (
    {"name": "column", "title": "column", "width": "minmax(84px,1.5fr)", "name_pixels": 180},
    {"name": "shape", "title": "shape", "width": "minmax(72px,.8fr)", "sortable": False,
     "about": "how the values are distributed, and the shares of nulls and NaN"},
    {"name": "nulls", "title": "nulls", "width": "minmax(62px,.5fr)", "align": "end"},
    {"name": "ndv", "title": "distinct", "width": "minmax(84px,.6fr)", "align": "end"},
    {"name": "lower", "title": "lower bound", "width": "minmax(96px,1fr)"},
    {"name": "upper", "title": "upper bound", "width": "minmax(96px,1fr)"},
    {"name": "common", "title": "most common", "width": "minmax(120px,1fr)", "sortable": False, "roomy": True,
     "about": "the most common values, each with its share of all rows"},
    {"name": "median", "title": "median", "width": "minmax(96px,1fr)", "hidden": True,
     "about": "the median, and below it the quartiles: half of the values lie between them"},
    {"name": "length", "title": "avg. length", "width": "minmax(76px,.4fr)", "align": "end", "hidden": True},
    {"name": "size", "title": "size", "width": "minmax(76px,.5fr)", "align": "end", "hidden": True},
)  # fmt: skip


class ColumnsPart(Part):
    """Name, type, distribution, nulls, distinct values, quartiles, bounds and size of each column."""

    name = "columns"
    title = "Columns"
    tab = "columns"
    follows = (
        "columns", "table", "column", "sparks", "asked_part", "part_sketches", "selection", "row_filter", "clauses",
    )  # fmt: skip
    hears = ("columns", "asked_part")

    def build(self) -> None:
        """Make the grid."""
        self.grid = self.add_grid(
            "list", "Columns", _COLUMNS, row_height=44, most_rows=12, placeholder="search columns",
            on_choose=self._choose,
        )  # fmt: skip

    def blocks(self) -> list[Block]:
        """Return the columns as a table."""
        state = self.state
        is_waiting = self._is_waiting and self.grid.block()["row_count"]
        columns = self._part.columns if self._part is not None else state.columns
        shown = (state.table, columns, state.sparks, self._part, self._sketches, self.is_loading)
        if not is_waiting and self.has_new(*shown):
            self.grid.show(self._rows())
        fields = state.table.schema.columns
        self.grid.selected = [f"c{number}" for number, field in enumerate(fields) if field.name == state.column]
        return [self.grid.block()]

    def caption(self) -> str:
        """Return how many columns there are, and of what."""
        count = counted(len(self.state.table.schema.columns), "column")
        if (reason := self.state.notes.get("asked_part")) is not None and self.state.columns is not None:
            return f"{count} of the whole table: {reason}"
        if self.note:
            return self.note
        if self._is_waiting and self.state.columns is not None:
            return f"{count}: reading what is asked …"
        if self.to_arrow() is None:
            return "Reading the manifests …"
        return f"{count}{self._of()}.\nClick one for its distribution, hover a figure for its source."

    def _of(self) -> str:
        """Return of what the figures are, and whether they are of exactly the rows that are asked."""
        part = self._asked
        if part is None:
            return ""
        partitions = counted(pc.sum(pc.greater(part.partitions["data_file_count"], 0)).as_py() or 0, "partition")
        selection = "" if part.selection is None else f" of {part.selection.text}"
        if part.is_narrowed and not part.file_count:
            return f"{selection} of nothing: the filter selects no partition"
        if part.is_narrowed and not part.holds_more:
            return f"{selection}, of exactly the {partitions} that the filter selects"
        if part.is_narrowed:
            return f"{selection}, of the {partitions} that the filter touches, not only the rows that it selects"
        rest = ", not only of the rows that the filter selects" if part.holds_more else ""
        if part.row_filter and not part.holds_more:
            rest = ", all of which the filter selects"
        return f"{selection or ' of the whole table'}{rest}"

    def to_arrow(self) -> pa.Table | None:
        """Return the columns, of the part that is asked if there is one."""
        if self._part is None:
            return self.state.columns
        columns, sketches = self._part.columns, self._sketches
        return columns if sketches is None else sketches.fill(columns)

    def code(self) -> str:
        """Return the Python line that gives the columns, of the part that is asked if there is one."""
        part = self._part
        if part is None:
            return "table.columns()"
        asked = [repr(part.selection)] if part.selection is not None else []
        asked += [f"row_filter={part.row_filter!r}"] if part.is_narrowed else []
        return f"read_part(table, {', '.join(asked)}).columns"

    @property
    def _asked(self) -> SelectedPart | None:
        """What is asked, once it is read."""
        found: SelectedPart | None = self.state.asked_part
        state = self.state
        return found if found is not None and found.answers(state.selection, filter_beside_selection(state)) else None

    @property
    def _part(self) -> SelectedPart | None:
        """What is asked, if it is less than the whole table."""
        found = self._asked
        return None if found is None or found.is_whole else found

    @property
    def _is_waiting(self) -> bool:
        is_asked = self.state.selection is not None or bool(filter_beside_selection(self.state))
        return is_asked and self._asked is None and not self.note

    @property
    def _sketches(self) -> PartSketches | None:
        found: PartSketches | None = self.state.part_sketches
        part = self._part
        is_same = found is not None and part is not None and found.part.answers(part.selection, part.row_filter)
        return found if is_same else None

    def _rows(self) -> list[Row]:
        columns = self.to_arrow()
        if columns is None:
            return build_pending_rows(self.state.table.schema, "…" if self.is_loading else UNKNOWN)
        if self._part is None:
            return build_column_rows(columns, self.state.sparks)
        return build_column_rows(columns, {} if self._sketches is None else self._sketches.sparks)

    def _choose(self, key: str, _: Seen) -> None:
        columns = self.state.table.schema.columns
        if (number := self.number_of(key, "c", len(columns))) is not None:
            self.state.column = columns[number].name


def build_column_rows(columns: pa.Table, sparks: Mapping[str, Spark]) -> list[Row]:
    """Build the rows of the columns.

    Parameters
    ----------
    columns : pyarrow.Table
        `schemas.COLUMNS`.
    sparks : mapping of str to Spark
        The shapes of the values of columns with a sketch.

    Returns
    -------
    list of dict
        One grid row per column. The tooltip of each cell says where the figure comes from and how far to trust it.
        Unknown figures say `unknown`.
    """
    most = max((size for size in columns["column_size"].to_pylist() if size), default=0)
    return [_row(number, row, sparks.get(row["name"]), most) for number, row in enumerate(columns.to_pylist())]


def build_pending_rows(schema: Schema, text: str) -> list[Row]:
    """Build the rows before their figures are read: names, types, and a placeholder for every figure."""
    rest = [text_cell(text, kind="quiet")] * (len(_COLUMNS) - 1)
    return [
        {"key": f"c{number}", "depth": 0, "cells": [_name(field.name, field.type), *rest]}
        for number, field in enumerate(schema.columns)
    ]


def _row(number: int, row: Mapping[str, Any], spark: Spark | None, most: int) -> Row:
    about = dict(row["provenance"])
    size, nulls = row["column_size"], _share(row["null_value_count"], row["value_count"])
    length = row.get("avg_length")
    cells = [
        _name(row["name"], row["type"]),
        _shape(row, spark),
        {**text_cell(nulls, f"{nulls}: {_about_nulls(row, about)}"), "v": row["null_value_count"]},
        {**text_cell(_estimate(row["ndv"], about.get("ndv", "")), f"distinct values: {about.get('ndv', '')}"),
         "v": row["ndv"]},
        _bound(row, "lower_bound", about),
        _bound(row, "upper_bound", about),
        _common(row, about.get("common_values", "")),
        _quartiles(spark),
        {**text_cell("–" if length is None else f"{length:,.1f} bytes", about.get("avg_length", "")), "v": length},
        bytes_cell(size, most, f"{counted(size, 'byte')}: {about.get('column_size', '')}"),
    ]  # fmt: skip
    return {"key": f"c{number}", "depth": 0, "cells": cells}


def _name(name: str, kind: str) -> Cell:
    return text_cell(name, f"{name}, {kind}", "strong", kind)


def _shape(row: Mapping[str, Any], spark: Spark | None) -> Cell:
    total = row["value_count"]
    shares: list[float | None] = [None, None]
    texts = ["no sketch" if spark is None else spark.text]
    for place, (name, figure) in enumerate((("null", "null_value_count"), ("NaN", "nan_value_count"))):
        count = row[figure]
        if name == "NaN" and row["type"] not in ("float", "double"):
            continue
        texts.append(f"{render_count(count)} {name}")
        shares[place] = count / total if count is not None and total else None
    cell = text_cell("", ", ".join(texts))
    svg = build_spark(() if spark is None else spark.heights, label=cell["h"], missing=(shares[0], shares[1]))
    return {**cell, "svg": svg}


def _common(row: Mapping[str, Any], source: str) -> Cell:
    values = [one for one in row["common_values"] or () if one["rows_at_least"] > 1]
    if not values:
        return text_cell("–", source, "quiet")
    lines = [f"{value['value']}: {render_rows(value['rows_at_least'], value['rows_at_most'])}" for value in values]
    return text_cell(render_common(values), "\n".join([*lines, source]))


def _quartiles(spark: Spark | None) -> Cell:
    if spark is None:
        return text_cell("–", "no sketch is committed, or only one of the whole table", "quiet")
    return text_cell(spark.median, spark.text, small=f"{spark.lower_quartile} … {spark.upper_quartile}")


def _share(part: int | None, whole: int | None) -> str:
    if part is None or whole is None:
        return UNKNOWN
    return render_percent(part / whole) if whole else "–"


def _about_nulls(row: Mapping[str, Any], provenance: Mapping[str, str]) -> str:
    count = row["null_value_count"]
    about = provenance.get("null_value_count", "")
    return about if count is None else f"{count:,} of {counted(row['value_count'] or 0, 'value')}; {about}"


def _estimate(count: int | None, provenance: str) -> str:
    if count is None:
        return UNKNOWN
    exact = not provenance.startswith("estimate") or (
        "still holds every value" in provenance and provenance.endswith("this snapshot")
    )
    return f"{count:,}" if exact else f"≈ {count:,}"


def _bound(row: Mapping[str, Any], figure: str, about: Mapping[str, str]) -> Cell:
    data, source = row[figure], about.get(figure, "")
    text = "none" if data is None and source.startswith("none") else render_value(row["type"], data)
    return text_cell(text, f"{text}: {source}")
