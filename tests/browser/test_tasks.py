"""What people come for, in a window of 1440 x 900: each within six clicks, keys and scrolls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from benchmarks.explorer_page import MINUTE_MS, ExplorerPage, open_explorer

MOST = 6
CELLS = ("import icestats", "explorer = icestats.load('demo.events').explore()\nexplorer")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "tasks.md"
BLOCK = re.compile(r"(<!-- tasks: written by the tests -->\n).*?(\n<!-- end of tasks -->)", re.DOTALL)
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


def find_overlapping_manifests(page: ExplorerPage) -> None:
    """Which manifests overlap?"""
    page.open("Layout")
    page.click(page.figure("manifests").locator("[data-key^='over ']").first)
    page.see(page.root.locator(".icestats-chip", has_text="manifests"))


def find_why_a_file_is_kept(page: ExplorerPage) -> None:
    """Why does a query read this file?"""
    page.click(page.root.locator(".icestats-idea", has_text="event_id"))
    page.open("Query")
    page.click(page.rows("plan", "Data files by column bounds").first.get_by_role("button").first)
    page.see(page.part("plan").get_by_text(re.compile("bounds|within")).first)


def find_the_distribution_of_a_week(page: ExplorerPage) -> None:
    """How is a column distributed in one week?"""
    page.drag(page.figure("partitions").locator("[data-plot] rect").first, (0.02, 0.5), (0.68, 0.5))
    page.open("Columns")
    page.click(page.rows("columns").filter(has_text="price").first)
    page.see(page.part("histogram").get_by_text(re.compile("the partitions where")).first)


def find_the_smallest_partitions(page: ExplorerPage) -> None:
    """Which partitions are the smallest?"""
    page.open("Layout")
    page.see(page.rows("sizes").first)
    first = page.rows("sizes").first.inner_text()
    assert re.search(r"0\.\d\d ×", first), first


def find_what_is_stale_for_trino(page: ExplorerPage) -> None:
    """Which statistics does Trino lack?"""
    page.open("Statistics")
    page.effort["clicks"] += 1
    page.part("statistics").get_by_label("for").select_option(label="Trino")
    page.see(page.part("statistics").get_by_text(re.compile("Trino")).first)


TASKS: tuple[Callable[[ExplorerPage], None], ...] = (
    find_overlapping_manifests,
    find_why_a_file_is_kept,
    find_the_distribution_of_a_week,
    find_the_smallest_partitions,
    find_what_is_stale_for_trino,
)
_MEASURED: dict[str, dict[str, int]] = {}


@pytest.fixture(scope="module")
def explorer(chromium: Browser, lab: str, lab_folder: Path) -> Iterator[ExplorerPage]:
    """An explorer of the demo table."""
    opened = open_explorer(chromium, lab, lab_folder, "tasks.ipynb", CELLS)
    yield opened
    opened.page.close()


@pytest.fixture
def fresh(explorer: ExplorerPage) -> Iterator[ExplorerPage]:
    """The explorer as it opens, with nothing done yet."""
    yield explorer
    clear = explorer.root.get_by_role("button", name="Clear filter and selection")
    if clear.is_visible():
        clear.click()
    explorer.root.get_by_role("tab", name="Overview").click()
    explorer.root.evaluate("(root) => root.scrollIntoView({block: 'start', behavior: 'instant'})")
    explorer.settle()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_takes_at_most_six_steps(fresh: ExplorerPage, task: Callable[[ExplorerPage], None]) -> None:
    fresh.effort = dict.fromkeys(fresh.effort, 0)
    task(fresh)
    _MEASURED[str(task.__doc__)] = fresh.effort
    assert sum(fresh.effort.values()) <= MOST, fresh.effort
    assert not fresh.complaints


@pytest.fixture(scope="module")
def own_table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A table that a person may commit to; returns its catalog's properties."""
    folder = tmp_path_factory.mktemp("own")
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(np.arange(1_000)), "name": pa.array([f"n{i % 7}" for i in range(1_000)])})
    catalog.create_table("db.own", rows.schema).append(rows)
    catalog.close()
    return properties


def test_commit_and_undo_take_at_most_six_steps(
    chromium: Browser, lab: str, lab_folder: Path, own_table: dict[str, str]
) -> None:
    cell = f"explorer = icestats.load('db.own', catalog={own_table!r}).explore()\nexplorer"
    page = open_explorer(chromium, lab, lab_folder, "commit.ipynb", ("import icestats", cell))
    page.open("Statistics")
    panel = page.part("compute")
    page.click(panel.get_by_role("button", name="Compute", exact=True))
    expect(panel.get_by_role("button", name="Commit", exact=True)).to_be_enabled(timeout=3 * MINUTE_MS)
    page.click(panel.get_by_role("button", name="Commit", exact=True))
    expect(panel.get_by_role("button", name="Undo", exact=True)).to_be_enabled(timeout=MINUTE_MS)
    assert icestats.load("db.own", catalog=own_table).overview().statistics_column_count == 2
    page.click(panel.get_by_role("button", name="Undo", exact=True))
    page.click(panel.get_by_role("button", name="Remove these statistics"))
    expect(page.root.locator(".icestats-head")).to_contain_text(re.compile("statistics *none"))
    _MEASURED["Compute statistics, commit them, and undo that."] = page.effort
    assert sum(page.effort.values()) <= MOST, page.effort
    assert icestats.load("db.own", catalog=own_table).overview().statistics_column_count == 0
    page.page.close()


def test_the_documentation_has_these_figures() -> None:
    """Clicks, keys and scrolls of each task, as the tests before have counted them."""
    if len(_MEASURED) <= len(TASKS):
        pytest.skip("not all tasks were run before")
    lines = ["| task | clicks | keys | scrolls |", "|---|---:|---:|---:|"]
    lines += [
        f"| {task} | {' | '.join(str(count) for count in effort.values())} |" for task, effort in _MEASURED.items()
    ]
    text = PAGE.read_text()
    written = BLOCK.sub(lambda found: found[1] + "\n".join(lines) + found[2], text)
    if os.environ.get("ICESTATS_SCREENSHOTS"):
        PAGE.write_text(written)
    assert written == PAGE.read_text()
