"""What a person does while the kernel is busy, or faster than it answers, is not lost."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DateType, NestedField

from benchmarks.explorer_page import PROCESS, ExplorerPage, open_explorer

MINUTE_MS = 60_000
CELLS = ("import icestats", "explorer = icestats.load('demo.events').explore()\nexplorer", PROCESS)
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


def test_tabs_and_clicks_of_a_busy_time_count_in_their_order(opened: ExplorerPage) -> None:
    """Columns clicked one after the other, other bins, another tab: the page shows them, the last one stays."""
    expect(opened.figure("partitions")).to_be_visible()
    opened.open("Columns")
    histogram = opened.part("histogram")
    expect(histogram.get_by_text("equi-height", exact=True)).to_be_visible()
    with opened.busy_kernel():
        for name in ("event_type", "quantity", "amount"):
            opened.rows("columns").filter(has_text=name).click()
        histogram.get_by_text("equi-height", exact=True).click()
        opened.root.get_by_role("tab", name="Overview").click()
        expect(opened.root.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
        opened.part("partitions").get_by_text("files", exact=True).click()
        opened.part("partitions").get_by_text("bytes", exact=True).click()
    expect(opened.figure("partitions")).to_have_attribute("aria-label", re.compile("bytes"))
    opened.open("Columns")
    expect(histogram.locator(".icestats-caption")).to_contain_text("amount, decimal")
    expect(histogram.get_by_label("equi-height")).to_be_checked()


def test_the_tree_takes_keys_and_words_in_order(opened: ExplorerPage) -> None:
    """Two clicks on a head sort the other way round; words typed meanwhile count."""
    opened.open("Layout")
    tree = opened.part("outline")
    head = tree.get_by_role("columnheader", name="records")
    expect(head).to_be_visible()
    with opened.busy_kernel():
        head.get_by_role("button").first.focus()
        opened.page.keyboard.press("Enter")
        opened.page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    with opened.busy_kernel():
        tree.get_by_role("searchbox").press_sequentially("records > 50000")
    expect(tree.locator(".icestats-caption")).to_contain_text("3 of 31 manifests")
    tree.get_by_role("searchbox").fill("")
    expect(tree.locator(".icestats-caption")).to_contain_text("31 of 31 manifests")


def test_a_filter_typed_quickly_is_planned_as_it_is_at_last(opened: ExplorerPage) -> None:
    """The kernel hears of it once and again while one types; the line keeps what was typed, and that is planned."""
    box = opened.root.get_by_role("combobox").first
    with opened.busy_kernel():
        box.press_sequentially("price < 3", delay=40)
        box.press_sequentially(" and quantity > 2", delay=40)
    box.press("Escape")
    opened.open("Query")
    expect(opened.part("plan").locator(".icestats-caption")).to_contain_text("price < 3 and quantity > 2")
    expect(box).to_have_value("price < 3 and quantity > 2")
    expect(box).to_have_attribute("aria-invalid", "false")
    opened.root.get_by_role("button", name="Clear filter and selection").click()


@pytest.fixture
def days(catalog: SqlCatalog) -> str:
    """A table with 40 days, a partition each, and no other partition field; its metadata.json."""
    schema = Schema(NestedField(1, "day", DateType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "on_day"))
    table = catalog.create_table("db.days", schema, partition_spec=spec)
    table.append(pa.table({"day": [dt.date(2026, 1, 5) + dt.timedelta(days=i) for i in range(40)]}))
    return str(catalog.load_table("db.days").metadata_location)


def test_a_calendar_takes_the_keys_as_it_is_drawn(chromium: Browser, lab: str, lab_folder: Path, days: str) -> None:
    """Down is the next day, however quickly; with Shift what lies between is marked."""
    cells = ("import icestats", f"icestats.load({days!r}).explore()")
    found = open_explorer(chromium, lab, lab_folder, "days.ipynb", cells)
    chips, picture = found.root.locator(".icestats-chip"), found.figure("partitions")
    picture.locator("[data-key]").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        found.page.keyboard.press(key)
    expect(chips).to_contain_text("day >= '2026-01-07' and day < '2026-01-08'")
    found.page.keyboard.press("Shift+ArrowDown")
    expect(chips).to_contain_text("day < '2026-01-09'")
    assert found.complaints == []
    found.page.close()


def test_a_kernel_that_is_busy_or_dead_says_so(opened: ExplorerPage) -> None:
    """After eight seconds without an answer a line says that the kernel is busy; after a restart, that it is gone."""
    opened.open("Overview")
    with opened.busy_kernel():
        opened.root.get_by_role("tab", name="Columns").click()
        expect(opened.root.locator(".icestats-query")).to_contain_text("busy")
    expect(opened.rows("columns")).to_have_count(10)
    opened.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
    opened.root.get_by_role("tab", name="History").click()
    expect(opened.root.locator(".icestats-query")).to_contain_text(re.compile("kernel"))
