"""The distribution of a column names its most common values, and a click on one asks for it."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats_widgets import Explorer
from tests.computed_statistics import compute_here
from tests.widgets.blocks_of_parts import find_blocks, find_texts


def open_explorer(catalog: SqlCatalog, properties: dict[str, str], rows: pa.Table, column: str) -> Explorer:
    catalog.create_table("db.t", rows.schema).append(rows)
    compute_here(icestats.load("db.t", catalog=properties)).commit()
    explorer = Explorer(icestats.load("db.t", catalog=properties), column=column)
    assert explorer.wait()
    return explorer


def find_figure(explorer: Explorer) -> str:
    return next(
        (b["svg"] for b in find_blocks(explorer.parts["histogram"], "figure") if b["id"].endswith("values")), ""
    )


def test_common_values_have_a_bar_each_and_a_click_asks_for_one(catalog, catalog_properties):
    long = "x" * 200
    rows = pa.table({"status": ["ok"] * 970 + ["<b>bad</b>"] * 20 + [long] * 10, "price": [0.5] * 400 + [1.5] * 600})
    explorer = open_explorer(catalog, catalog_properties, rows, "status")
    svg = find_figure(explorer)
    assert [text in svg for text in ("97.00%", "2.00%", "1.00%")] == [True] * 3
    assert "&lt;b&gt;bad" in svg
    assert "<b>" not in svg
    assert "Most common values, and their share of all rows" in find_texts(explorer.parts["histogram"])
    explorer.parts["histogram"].on_values_choose({"key": "1"})
    assert explorer.wait()
    assert "status = '<b>bad</b>'" in " ".join(explorer.state.clauses.values())
    before = dict(explorer.state.clauses)
    for odd in ({"key": "9"}, {"key": "x"}, None, {}):
        explorer.parts["histogram"].on_values_choose(odd)
    assert explorer.state.clauses == before


def test_values_that_are_there_once_have_no_bars(catalog, catalog_properties):
    explorer = open_explorer(catalog, catalog_properties, pa.table({"id": list(range(500))}), "id")
    assert find_figure(explorer) == ""
