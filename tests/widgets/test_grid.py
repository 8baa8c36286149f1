"""Tables of the explorer: what is sent, in which order, and what is saved."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats_widgets.page.cells import count_cell, text_cell
from icestats_widgets.page.grid import MOST_ROWS_SENT, BuiltRows, Grid, Row

_COLUMNS = [{"name": "name", "title": "name"}, {"name": "count", "title": "count", "align": "end"}]


def _row(number: int, name: str, count: int | None) -> Row:
    return {"key": f"r{number}", "depth": 0, "cells": [text_cell(name), count_cell(count)]}


def _grid(rows: list[tuple[str, int | None]]) -> Grid:
    grid = Grid("g", "Things", _COLUMNS)
    grid.show([_row(number, *row) for number, row in enumerate(rows)])
    return grid


def _names(grid: Grid) -> list[str]:
    return [row["cells"][0]["t"] for row in grid.first_rows(1000)]


def test_of_a_text_without_end_the_page_is_sent_the_beginning() -> None:
    """As a partition's value may be; what is saved has all of it."""
    grid = _grid([("v" * 1_000_000, 1)])
    message = grid.act("window", {"offset": 0, "count": 1})
    assert message is not None
    for rows in (grid.block()["rows"], message["rows"]):
        assert [len(rows[0]["cells"][0][name]) for name in "th"] == [4_000, 4_000]
    assert "v" * 1_000_000 in grid.to_csv()


def test_numbers_are_sorted_as_numbers_largest_first_and_unknown_last() -> None:
    grid = _grid([("a", 9), ("b", None), ("c", 1_000), ("d", 20)])
    assert grid.act("sort", {"column": "count"}) is None
    assert _names(grid) == ["c", "d", "a", "b"]
    grid.act("sort", {"column": "count"})
    assert _names(grid) == ["a", "d", "c", "b"]


def test_rows_have_all_words_that_are_searched_for() -> None:
    grid = _grid([("red house", 1), ("red door", 2), ("blue house", 3)])
    grid.act("search", {"text": "HOUSE red"})
    assert _names(grid) == ["red house"]
    assert grid.block()["row_count"] == 1


def test_a_page_never_gets_more_rows_than_allowed_nor_what_they_are_sorted_by() -> None:
    grid = _grid([("x", n) for n in range(5_000)])
    answer = grid.act("window", {"offset": 4_000, "count": 10**9})
    assert answer is not None
    assert len(answer["rows"]) == MOST_ROWS_SENT
    assert answer["rows"][0]["key"] == "r4000"
    assert all("v" not in cell for row in answer["rows"] for cell in row["cells"])


@pytest.mark.parametrize("value", [{}, {"offset": "x"}, {"offset": -5, "count": -5}, {"column": 3}, {"names": 7}])
def test_acts_that_make_no_sense_harm_nothing(value: dict[str, object]) -> None:
    grid = _grid([("a", 1)])
    for verb in ("window", "sort", "search", "columns", "open", "choose", "cell", "nothing"):
        grid.act(verb, value)
    assert _names(grid) == ["a"]


def test_what_a_spreadsheet_would_run_is_saved_as_text() -> None:
    grid = _grid([("=1+1", 5), ("-2", 6), ("@x", 7)])
    grid.columns[1]["title"] = "=2+2"
    answer = grid.act("csv", {})
    assert answer is not None
    lines = list(csv.reader(io.StringIO(answer["text"])))
    assert [line[0] for line in lines] == ["name", "'=1+1", "-2", "'@x"]
    assert lines[0][1] == "'=2+2"


def test_chosen_columns_are_shown_and_the_others_hidden() -> None:
    grid = _grid([("a", 1)])
    grid.act("columns", {"names": ["count"]})
    assert [bool(column.get("hidden")) for column in grid.block()["columns"]] == [True, False]


@given(st.lists(st.tuples(st.text(max_size=4), st.one_of(st.none(), st.integers(0, 99)))), st.booleans())
def test_rows_that_are_built_are_arranged_as_rows_that_are_listed(
    rows: list[tuple[str, int | None]], descending: bool
) -> None:
    built = BuiltRows(
        {"count": pa.array([count for _, count in rows], pa.int64())},
        pa.array([name for name, _ in rows], pa.string()),
        lambda number: _row(number, *rows[number]),
    )
    counts = [count for _, count in rows]
    found = [counts[int(row["key"][1:])] for row in built.arranged("", "count", descending).window(0, 1000)]
    known = sorted((count for count in counts if count is not None), reverse=descending)
    assert found == known + [None] * counts.count(None)
