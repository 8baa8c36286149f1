"""Columns that have statistics together are a square of cells; a click lists their common pairs, and asks for one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icestats
from icestats_widgets import Explorer
from icestats_widgets.drawing.pairs_figure import build_pairs_figure
from tests.computed_statistics import compute_here
from tests.widgets.blocks_of_parts import find_blocks

ROWS = 4_000


def planted() -> pa.Table:
    rng = np.random.default_rng(9)
    city = rng.integers(0, 40, ROWS)
    return pa.table(
        {
            "city": [None if one == 7 else f"<b>{one}</b>" for one in city],
            "country": [f"C{one % 8}" for one in city],
            "number": city * 2,
            "price": rng.random(ROWS),
        }
    )


@pytest.fixture
def explorer(catalog, catalog_properties):
    catalog.create_table("db.t", planted().schema).append(planted())
    opened = icestats.load("db.t", catalog=catalog_properties)
    compute_here(opened, together=[("city", "country"), ("number", "country")]).commit()
    made = Explorer(icestats.load("db.t", catalog=catalog_properties))
    assert made.wait()
    return made


def read_cells(explorer) -> dict[str, list[str]]:
    (figure,) = find_blocks(explorer.parts["together"], "figure")
    keyed = re.findall(r'class="i-(heat\d)"[^>]*data-key="(\d):[01]"><title>([^<]*)', figure["svg"])
    found: dict[str, list[str]] = {}
    for kind, key, title in keyed:
        found.setdefault(key, []).append(kind)
        assert "decides country in" in title
    return found


def test_a_pair_has_a_cell_each_way_coloured_by_its_strength(explorer):
    cells = read_cells(explorer)
    assert set(cells) == {"0", "1"}
    for kinds in cells.values():
        assert sorted(kinds)[1] == "heat7"
        assert sorted(kinds)[0] < "heat3"
    part = explorer.parts["together"]
    assert "decides country in 100.0% of the rows; country decides" in part.caption()
    assert part.code() == "table.columns_together()"
    assert part.to_arrow().num_rows == 2


def test_a_click_lists_the_common_pairs_and_one_of_these_asks_for_both_values(explorer):
    part = explorer.parts["together"]
    pairs = explorer.state.together.to_pylist()
    place = next(place for place, one in enumerate(pairs) if "city" in (one["first"], one["second"]))
    part.act("square.choose", {"key": f"{place}:1"})
    assert "city decides country" in part.document()["caption"]
    listed = pairs[place]["common_pairs"]
    assert [one["title"] for one in part.grid.block()["columns"]][:2] == ["city", "country"]
    assert part.grid.block()["row_count"] == len(listed) == 10
    part.act("list.choose", {"key": "p0"})
    assert explorer.wait()
    clauses = set(explorer.state.clauses.values())
    first = listed[0]
    assert {
        f"{side} = '{first[name]}'" for name, side in ((n, pairs[place][n]) for n in ("first", "second"))
    } == clauses
    for odd in ({"key": "p99"}, {"key": "x"}, {"key": ""}):
        part.act("list.choose", odd)
    for odd in ({"key": "9:0"}, {"key": ":"}, {"key": "x"}, None, 3):
        part.act("square.choose", odd)
    assert set(explorer.state.clauses.values()) == clauses


def test_a_common_null_is_asked_for_as_null(explorer):
    part = explorer.parts["together"]
    city = {"first": None, "second": "C7", "rows_at_least": 90, "rows_at_most": 90}
    part.blocks()
    part._pair = {"first": "city", "second": "country", "common_pairs": [city]}
    part.act("list.choose", {"key": "p0"})
    assert set(explorer.state.clauses.values()) == {"city is null", "country = 'C7'"}


def test_a_report_shows_the_square_and_the_values_of_a_stranger_are_text(explorer, tmp_path: Path):
    report = tmp_path / "report.html"
    explorer.to_html(report)
    page = report.read_text()
    assert "Columns together" in page
    assert "i-heat7" in page
    assert "<b>" not in page.partition("Columns together")[2].partition("</section>")[0]


def test_nothing_is_there_without_pairs(catalog, catalog_properties, tmp_path: Path):
    catalog.create_table("db.t", planted().schema).append(planted())
    compute_here(icestats.load("db.t", catalog=catalog_properties), together=()).commit()
    explorer = Explorer(icestats.load("db.t", catalog=catalog_properties))
    assert explorer.wait()
    document = explorer.parts["together"].document()
    assert (document["blocks"], document["caption"], document["is_busy"]) == ([], "", False)
    explorer.to_html(tmp_path / "report.html")
    assert "Columns together" not in (tmp_path / "report.html").read_text()


def test_many_columns_stay_within_the_width():
    names = [f"a column with a long name, number {place}" for place in range(60)]
    svg = build_pairs_figure(names, {(0, 59): (0.5, "0:0", "x")}, chosen=(), width=620).svg
    edges = [float(x) + float(w) for x, w in re.findall(r'<rect [^>]*x="([\d.]+)"[^>]*width="([\d.]+)"', svg)]
    assert len(edges) == 3_600
    assert max(edges) <= 620
