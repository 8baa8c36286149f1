"""The pairs of columns that have statistics together: how far one decides the other, and their common values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, printable, render_rows
from icestats.stats.kll_items import item_type_of, item_value, to_item
from icestats_widgets.drawing.pairs_figure import build_pairs_figure
from icestats_widgets.page.blocks import Block, figure_block, side_block
from icestats_widgets.page.cells import text_cell
from icestats_widgets.page.grid import Row, Seen
from icestats_widgets.page.part import Part
from icestats_widgets.reading.filters.asked_filter import add_clause

_COLUMNS = (
    {"name": "first", "title": "first column", "width": "minmax(96px,1fr)"},
    {"name": "second", "title": "second column", "width": "minmax(96px,1fr)"},
    {"name": "rows", "title": "rows", "width": "minmax(96px,.8fr)", "align": "end"},
    {"name": "share", "title": "share", "width": "minmax(64px,.4fr)", "align": "end",
     "about": "of all rows that were counted"},
)  # fmt: skip


class TogetherPart(Part):
    """A square of columns by columns, and the most common pairs of values of the one that is chosen."""

    name = "together"
    title = "Columns together"
    tab = "columns"
    follows = ("together", "table")

    def build(self) -> None:
        """Make the grid of common pairs."""
        self.grid = self.add_grid("list", "Most common pairs of values", _COLUMNS, most_rows=10, on_choose=self._ask)
        self._chosen: tuple[str, str] | None = None
        self._pair: Mapping[str, Any] | None = None

    @property
    def is_loading(self) -> bool:
        """Never: few tables have such pairs, and while they are looked for there is nothing to wait for."""
        return False

    def blocks(self) -> list[Block]:
        """Return the square and the common pairs; nothing where no pair has statistics."""
        pairs = [] if self.state.together is None else self.state.together.to_pylist()
        if not pairs:
            return []
        pair = next((one for one in pairs if _names(one) == self._chosen), pairs[0])
        self._pair = pair
        for column, name in zip(self.grid.columns, _names(pair), strict=False):
            column["title"] = printable(name)
        self.grid.show(build_pair_rows(pair))
        columns = list(dict.fromkeys(name for one in pairs for name in _names(one)))
        places = {name: place for place, name in enumerate(columns)}
        strengths = {}
        for number, one in enumerate(pairs):
            first, second = (places[name] for name in _names(one))
            keys, told = _find_keys(number), describe_pair(one)
            strengths[first, second] = (one["first_decides_second"], keys[0], told)
            strengths[second, first] = (one["second_decides_first"], keys[1], told)
        marked, width = _find_keys(pairs.index(pair)), self.width("square", usual=320)
        picture = build_pairs_figure(columns, strengths, chosen=marked, width=width)
        figure = figure_block("square", picture.svg, picture.label, name="columns together")
        return [side_block(figure, self.grid.block())]

    def caption(self) -> str:
        """Return which pair is listed, and how the square is read; why pairs are not known."""
        if self.note or self.state.together is None or not len(self.state.together):
            return self.note or ""
        pair = self._pair or self.state.together.slice(0, 1).to_pylist()[0]
        return (
            f"The darker a cell, the further the column of its row decides that above it. "
            f"{describe_pair(pair, with_values=False).replace(chr(10), '; ')}.\n"
            "Click a cell for its common pairs of values, and one of these to ask for it."
        )

    def to_arrow(self) -> pa.Table | None:
        """Return the pairs."""
        found: pa.Table | None = self.state.together
        return found

    def code(self) -> str:
        """Return the Python line that gives the pairs."""
        return "table.columns_together()"

    def on_square_choose(self, value: Any) -> None:
        """List the common pairs of values of a cell."""
        together = self.state.together
        number = self.number_of(self.key_of(value).partition(":")[0], "", 0 if together is None else len(together))
        if number is not None:
            self._chosen = _names(together.slice(number, 1).to_pylist()[0])
            self.redraw()

    def _ask(self, key: str, _: Seen) -> None:
        """Ask for a pair of values: both columns get a clause."""
        pair = self._pair
        number = None if pair is None else self.number_of(key, "p", len(pair["common_pairs"]))
        if pair is None or number is None:
            return
        values = pair["common_pairs"][number]
        for side in ("first", "second"):
            field, text = self.state.table.schema.find(pair[side]), values[side]
            if text is None or item_type_of(field.type) is not None:
                typed = None if text is None else item_value(field.type, to_item(field.type, text))
                add_clause(self.state, f"together:{field.name}", field.name, typed)


def describe_pair(pair: Mapping[str, Any], *, with_values: bool = True) -> str:
    """Say of a row of `schemas.COLUMNS_TOGETHER` how far its columns decide one another, a line each figure."""
    first, second = _names(pair)
    age = f", {counted(pair['commits_behind'], 'commit')} behind" if pair["commits_behind"] else ""
    lines = [
        f"{first} decides {second} in {pair['first_decides_second']:.1%} of the rows",
        f"{second} decides {first} in {pair['second_decides_first']:.1%}",
        f"≈ {counted(pair['ndv'], 'distinct pair')} in {counted(pair['row_count'], 'row')}{age}",
    ]
    if with_values:
        values = pair["common_pairs"][:3]
        lines += [f"{_show(v['first'])}, {_show(v['second'])}: {_count(v)}" for v in values]
    return "\n".join(lines)


def build_pair_rows(pair: Mapping[str, Any]) -> list[Row]:
    """Build the grid rows of the common pairs of values of a row of `schemas.COLUMNS_TOGETHER`."""
    total = max(pair["row_count"], 1)
    rows = []
    for number, one in enumerate(pair["common_pairs"]):
        middle = (one["rows_at_least"] + one["rows_at_most"]) / 2
        cells = [
            text_cell(_show(one["first"]), f"{pair['first']}: {_show(one['first'])}"),
            text_cell(_show(one["second"]), f"{pair['second']}: {_show(one['second'])}"),
            {**text_cell(_count(one)), "v": middle},
            {**text_cell(f"{middle / total:.2%}"), "v": middle},
        ]
        rows.append({"key": f"p{number}", "depth": 0, "cells": cells})
    return rows


def _find_keys(number: int) -> tuple[str, str]:
    """Return the keys of the two cells of a pair."""
    return f"{number}:0", f"{number}:1"


def _names(pair: Mapping[str, Any]) -> tuple[str, str]:
    return pair["first"], pair["second"]


def _show(value: str | None) -> str:
    return "null" if value is None else value


def _count(one: Mapping[str, Any]) -> str:
    return render_rows(one["rows_at_least"], one["rows_at_most"])
