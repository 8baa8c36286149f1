"""The explorer without a kernel: pictures of saved notebooks, and reports."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import icestats
from icestats_widgets.page.blocks import card_block, code_block, fact, facts_block, figure_block, side_block, text_block
from icestats_widgets.page.cells import count_cell, text_cell
from icestats_widgets.page.grid import Grid
from icestats_widgets.page.part import Part
from icestats_widgets.page.report import build_report
from icestats_widgets.page.static_page import MOST_BYTES, PRINTED_ROWS, build_static_page
from icestats_widgets.state import ExplorerState

HOSTILE = "<script>alert(1)</script>\"'\u202e"
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g data-key="k&quot;"><title>tip</title></g></svg>'
_HEAD = {"title": HOSTILE, "subtitle": HOSTILE, "facts": [fact("files", "3")]}
_QUERY = {"text": HOSTILE, "summary": HOSTILE, "chips": [{"text": "day = 3"}]}


class _Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def _part(rows: int, svg: str = _SVG) -> tuple[dict[str, Any], Grid]:
    grid = Grid("g", HOSTILE, [{"name": "a", "title": HOSTILE}, {"name": "n", "title": "n", "align": "end"}])
    cells = [[text_cell(HOSTILE, HOSTILE), count_cell(number)] for number in range(rows)]
    grid.show([{"key": f"r{number}", "depth": 1, "cells": row} for number, row in enumerate(cells)], HOSTILE)
    blocks = [
        text_block(HOSTILE, "bad"),
        facts_block(fact(HOSTILE, HOSTILE)),
        card_block("c", HOSTILE, code_block(HOSTILE), side_block(grid.block(), figure_block("f", svg, HOSTILE))),
    ]
    return {"name": "p", "title": HOSTILE, "about": HOSTILE, "blocks": blocks}, grid


def test_a_saved_picture_has_no_script_and_every_text_is_text() -> None:
    part, grid = _part(3)
    found = _Tags(build_static_page(_HEAD, _QUERY, [part], lambda _, __, count: grid.first_rows(count), "id"))
    assert "script" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    sources = [value for name, value in found.attributes if name == "src" and value]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert sources
    assert found.tags.count("tr") == 4


def test_a_saved_picture_shows_fewer_rows_rather_than_being_too_large() -> None:
    parts = [_part(1_000) for _ in range(20)]
    rows = {f"p{number}": grid for number, (_, grid) in enumerate(parts)}
    documents = [{**part, "name": f"p{number}"} for number, (part, _) in enumerate(parts)]
    text = build_static_page(_HEAD, _QUERY, documents, lambda part, _, count: rows[part].first_rows(count), "id")
    assert len(text.encode()) <= MOST_BYTES
    assert "more rows" in text


def test_parts_that_can_never_fit_are_left_out_and_that_is_said() -> None:
    part, grid = _part(1, _SVG + "<!--" + "x" * MOST_BYTES + "-->")
    text = build_static_page(_HEAD, _QUERY, [part], lambda _, __, count: grid.first_rows(count), "id")
    assert len(text.encode()) <= MOST_BYTES
    assert "No room here for" in text


def test_a_report_runs_its_own_script_and_nothing_else() -> None:
    part, grid = _part(30)
    text = build_report(_HEAD, _QUERY, [part], lambda _, __, count: grid.first_rows(count), HOSTILE)
    found = _Tags(text)
    assert found.tags.count("script") == 1
    policy = next(value for name, value in found.attributes if name == "content" and value and "default-src" in value)
    assert policy.startswith("default-src 'none'")
    places = [value or "" for name, value in found.attributes if name in ("src", "href")]
    assert not [place for place in places if place.startswith("http")]
    assert set(places) == {"#p", "#code"}
    assert "<title>tip</title>" in text
    assert found.tags.count("tr") == 31


def _named(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "title": name.upper(), "about": "", "blocks": [text_block(name)], **more}


def _none(*_: object) -> list[Any]:
    return []


def test_what_matters_most_comes_first_and_what_says_nothing_is_left_out() -> None:
    """Findings before all; "No filter yet" is not a state of the table, and controls have no use without a kernel."""
    documents = [
        _named("snapshots"),
        _named("plan", blocks=[], about="No filter yet."),
        _named("compute"),
        _named("columns"),
        _named("partitions", blocks=[], about="The table is not partitioned."),
        _named("findings"),
    ]
    text = build_static_page({}, {}, documents, _none, "id")
    assert re.findall("<h3>(.*?)</h3>", text) == ["FINDINGS", "PARTITIONS", "COLUMNS", "SNAPSHOTS"]
    assert "No filter yet" not in text
    assert "The table is not partitioned." in text


def test_a_part_that_does_not_fit_leaves_its_room_to_those_behind_it() -> None:
    """One that is too large is named, and the others are all there."""
    huge = _named("partitions", blocks=[text_block("x" * MOST_BYTES)])
    text = build_static_page({}, {}, [huge, _named("columns"), _named("findings")], _none, "id")
    assert re.findall("<h3>(.*?)</h3>", text) == ["FINDINGS", "COLUMNS"]
    assert "No room here for: PARTITIONS." in text


def test_an_image_has_no_tooltips_and_no_keys() -> None:
    """Nothing shows them there, and they are most of a picture of a thousand marks."""
    part, grid = _part(1)
    text = build_static_page(_HEAD, _QUERY, [part], lambda _, __, count: grid.first_rows(count), "id")
    images = [base64.b64decode(data).decode() for data in re.findall("base64,([^']*)'", text)]
    assert images == ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g></g></svg>']


def test_a_long_table_says_how_much_of_it_is_printed() -> None:
    """On paper there is nothing to scroll."""
    part, grid = _part(PRINTED_ROWS + 1)
    text = build_report(_HEAD, _QUERY, [part], lambda _, __, count: grid.first_rows(count), "")
    assert f"Printed are the first {PRINTED_ROWS} of {PRINTED_ROWS + 1} rows." in text


def test_what_a_click_would_do_is_said_on_the_page_alone(empty_table: icestats.Table) -> None:
    """The second line of a caption is for who can act on it."""

    class Clicked(Part):
        name = "columns"
        title = "Columns"

        def blocks(self) -> list[Any]:
            return [text_block("a")]

        def caption(self) -> str:
            return "10 columns.\nClick one."

    document = Clicked(ExplorerState(table=empty_table)).document()
    assert document["caption"] == "10 columns. Click one."
    text = build_static_page({}, {}, [document], _none, "id")
    assert "10 columns." in text
    assert "Click one." not in text


@pytest.mark.parametrize("kind", ["picture", "report"])
def test_rows_of_a_report_are_sorted_by_numbers_not_by_their_text(kind: str) -> None:
    part, grid = _part(3)
    read = lambda _, __, count: grid.first_rows(count)  # noqa: E731 - as short as what it stands for
    text = build_report(_HEAD, _QUERY, [part], read, "") if kind == "report" else build_static_page(
        _HEAD, _QUERY, [part], read, "id"
    )  # fmt: skip
    assert re.findall(r"data-value='(\d+)'", text) == ["0", "1", "2"]


def test_without_a_kernel_nothing_is_said_of_what_takes_one(hostile_table: icestats.Table) -> None:
    """No plus to click, no tab to open, no commit to wait for: neither in a report nor in a saved picture."""
    explorer = hostile_table.explore(column="price")
    assert explorer.wait()
    for text in (explorer.to_html(), explorer._picture()):
        assert "missing" in text
        assert [
            words for words in ("missing +", "click to", "The tab Statistics", "before Commit") if words in text
        ] == []


def test_the_code_of_a_report_says_what_has_to_be_put_in(hostile_table: icestats.Table) -> None:
    """A catalog's properties may hold secrets, so the line that gives them says where they go; the rest runs."""
    explorer = hostile_table.explore()
    assert explorer.wait()
    # What is to be computed needs no Spark.
    explorer.parts["compute"].act("kind_table", False)
    explorer.parts["compute"].act("kind_manifests", True)
    lines = explorer.code().splitlines()
    given = 'catalog = {"type": ..., "uri": ...}  # put the properties of the table\'s catalog here'
    assert lines.index(given) + 1 == lines.index("table = icestats.load('db.hostile', catalog=catalog)")
    names: dict[str, Any] = {}
    code = explorer.code().replace(given, "catalog = given")
    assert "compute = table.compute(table=False, manifests=True).commit(dry_run=True)" in lines
    exec(code, names | {"given": dict(hostile_table._source.catalog_properties)})
