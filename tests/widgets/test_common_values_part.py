"""The distribution of a column names its most common values, and a click on one asks for it."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import icestats
from icestats_widgets import Explorer
from icestats_widgets.reading.filters.filter_completion import complete_filter
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


def test_a_click_on_a_common_value_asks_for_that_very_value(catalog, catalog_properties):
    explorer = open_explorer(catalog, catalog_properties, pa.table({"is_paid": [True, True, False]}), "is_paid")
    explorer.parts["histogram"].on_values_choose({"key": "0"})
    assert explorer.wait()
    assert "is_paid = true" in " ".join(explorer.state.clauses.values())


def test_common_values_complete_a_filter(catalog, catalog_properties):
    day = [dt.date(2026, 9, 1)] * 900 + [dt.date(2026, 9, 2)] * 99 + [dt.date(2026, 9, 3)]
    rows = pa.table({"day": day, "status": ["it's ok"] * 970 + ["y" * 300] * 30, "price": [0.5] * 999 + [7.25]})
    state = open_explorer(catalog, catalog_properties, rows, "status").state

    def complete(text):
        return {(item.text, item.about) for item in complete_filter(state, text, len(text)).items}

    assert ("'2026-09-02'", "common: 99 rows") in complete("day = ")
    assert ("'it''s ok'", "common: 970 rows") in complete("status = ")
    assert ("0.5", "common: 999 rows") in complete("price = ")
    assert not [item for item in complete("status = ") if "yyy" in item[0]], "a value that may be cut is none"
    assert state.table.plan("status = 'it''s ok'").funnel.kept_files.size == 1
    catalog.load_table("db.t").append(rows.slice(0, 10))
    later = Explorer(icestats.load("db.t", catalog=catalog_properties))
    assert later.wait()
    state = later.state
    assert ("'2026-09-02'", "common: 99 rows, 1 commit behind") in complete("day = ")


def test_values_that_are_there_once_have_no_bars(catalog, catalog_properties):
    explorer = open_explorer(catalog, catalog_properties, pa.table({"id": list(range(500))}), "id")
    assert find_figure(explorer) == ""


def test_a_selection_of_partitions_has_the_common_values_of_their_rows(catalog, catalog_properties):
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    types = (("day", LongType()), ("status", StringType()))
    schema = Schema(*(NestedField(i, *one, required=False) for i, one in enumerate(types, 1)))
    table = catalog.create_table("db.days", schema, partition_spec=spec)
    for day, status in enumerate((["early"] * 90 + ["late"] * 10, ["bad"] * 60 + ["late"] * 40)):
        table.append(pa.table({"day": pa.array([day] * 100, pa.int64()), "status": status}))
    opened = icestats.load("db.days", catalog=catalog_properties)
    compute_here(opened, by_partition=True).commit()
    explorer = Explorer(icestats.load("db.days", catalog=catalog_properties), column="status")
    assert explorer.wait()
    assert [text in find_figure(explorer) for text in ("45.00%", "30.00%", "25.00%")] == [True] * 3
    explorer.state.row_filter = "day = 1"
    assert explorer.wait()
    assert [text in find_figure(explorer) for text in ("60.00%", "40.00%")] == [True] * 2
    assert "early" not in find_figure(explorer)
    said = "Most common values, and their share of the rows of these partitions"
    assert said in find_texts(explorer.parts["histogram"])


def test_a_column_names_its_most_common_values_in_the_grid(catalog, catalog_properties):
    rows = pa.table({"status": ["ok"] * 970 + ["<b>bad</b>"] * 30, "id": list(range(1_000))})
    explorer = open_explorer(catalog, catalog_properties, rows, "status")
    grid = explorer.parts["columns"].grid
    place = [one["name"] for one in grid.block()["columns"]].index("common")
    first, second = (row["cells"][place] for row in explorer.parts["columns"]._rows())
    assert first["t"] == "ok (97.0%), <b>bad</b> (3.0%)"
    assert first["h"].startswith("ok: 970 rows\n<b>bad</b>: 30 rows\nbound: rows at least and at most")
    assert second["t"] == "–"
