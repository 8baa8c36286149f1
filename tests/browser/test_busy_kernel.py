"""What a person does while the kernel is busy, or faster than it answers, is not lost."""

from __future__ import annotations

import datetime as dt
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


def test_no_key_on_the_partitions_is_lost_while_the_kernel_is_busy(opened: ExplorerPage) -> None:
    """Keys are taken one after the other, whatever the kernel answers to those before; the frame follows at once."""
    chosen, keys = opened.part("selection"), opened.page.keyboard
    field = opened.part("partitions").locator("[tabindex='0'][role=application]").first
    with opened.busy_kernel():
        field.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowUp"):
            keys.press(key)
        expect(opened.part("partitions").locator(".icestats-frame")).to_be_visible()
    expect(chosen).to_contain_text("event_time_day 2026-09-02 to 2026-09-04, device_id_bucket 1 to 2:")
    for days in ("04", "04", "05", "06"):
        # The answer to the key before is still on its way to the picture.
        keys.press("Shift+ArrowRight" if days > "04" else "Shift+ArrowUp")
        expect(chosen).to_contain_text(f"event_time_day 2026-09-02 to 2026-09-{days}")
    opened.settle()
    expect(chosen).to_contain_text("event_time_day 2026-09-02 to 2026-09-06, device_id_bucket 1 to 4:")
    expect(field).to_be_focused()
    keys.press("Escape")
    expect(chosen).to_contain_text("Whole table")


def test_a_click_on_the_manifests_chart_counts_though_the_mouse_goes_on(opened: ExplorerPage) -> None:
    """A bar is clicked twice in impatience, and other bars are pointed at on the way off: the bar is marked."""
    bars = opened.part("manifests").locator(".xy .barlayer .trace").first.locator(".point path")
    chosen = opened.part("selection")
    boxes = [bars.nth(number).bounding_box() for number in (4, 9, 14)]
    centres = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box is not None]
    mouse = opened.page.mouse
    hover = opened.part("manifests").locator(".hoverlayer .hovertext")
    mouse.move(*centres[0])
    about = hover.text_content() or ""
    with opened.busy_kernel():
        mouse.click(*centres[0])
        for centre in (*centres[1:], centres[0]):
            mouse.move(*centre, steps=5)
            (expect(hover).to_have_text if centre == centres[0] else expect(hover).not_to_have_text)(about)
        mouse.click(*centres[0])
    expect(chosen).to_contain_text("manifest ")
    expect(chosen).to_contain_text("1 manifest")
    opened.settle()
    expect(bars.nth(9)).to_have_css("opacity", "0.2")
    expect(bars.nth(4)).to_have_css("opacity", "1")
    mouse.click(*centres[0])
    expect(chosen).to_contain_text("Whole table")


def test_the_tree_takes_keys_and_clicks_in_order(opened: ExplorerPage) -> None:
    """Opening twice in impatience opens; two clicks on a head sort the other way round; words typed meanwhile count."""
    tree, keys = opened.part("outline"), opened.page.keyboard
    with opened.busy_kernel():
        opened.rows("outline").nth(1).focus()
        keys.press("ArrowRight")
        keys.press("ArrowRight")
    expect(opened.rows("outline").nth(1)).to_have_attribute("aria-expanded", "true")
    opened.settle()
    expect(opened.rows("outline").nth(1)).to_have_attribute("aria-expanded", "true")
    expect(opened.rows("outline").nth(1)).to_be_focused()
    keys.press("ArrowLeft")
    expect(opened.rows("outline").nth(1)).to_have_attribute("aria-expanded", "false")
    head = tree.get_by_role("columnheader", name="records")
    with opened.busy_kernel():
        head.get_by_role("button").focus()
        keys.press("Enter")
        keys.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(head.get_by_role("button")).to_be_focused()
    with opened.busy_kernel():
        tree.get_by_role("searchbox").press_sequentially("records > 50000")
    expect(tree.locator(".icestats-caption")).to_contain_text("3 of 31 manifests")
    tree.get_by_role("searchbox").fill("")
    expect(tree.locator(".icestats-caption")).to_contain_text("31 of 31 manifests")


def test_a_row_that_is_not_there_yet_can_be_chosen(opened: ExplorerPage) -> None:
    """End and Enter in the list of all files: the columns of the last one open once it has come."""
    tree, keys = opened.part("outline"), opened.page.keyboard
    tree.get_by_role("button", name="all files").click()
    expect(tree.locator(".icestats-caption")).to_contain_text("2,047 live files")
    opened.settle()
    with opened.busy_kernel():
        opened.rows("outline").first.focus()
        keys.press("End")
        keys.press("Enter")
        expect(tree.locator(".icestats-table-pending").first).to_be_visible()
    expect(tree.locator("[aria-rowindex='2048']")).to_have_attribute("aria-expanded", "true")
    tree.get_by_role("button", name="tree", exact=True).click()
    expect(tree.locator(".icestats-caption")).to_contain_text("31 of 31 manifests")


def test_a_filter_typed_quickly_is_planned_as_it_is_at_last(opened: ExplorerPage) -> None:
    """The kernel hears of it once and again while one types; the line keeps what was typed, and that is planned."""
    plan = opened.part("plan")
    box = plan.get_by_role("textbox")
    with opened.busy_kernel():
        box.press_sequentially("price < 3", delay=40)
        box.press("Enter")
        box.press_sequentially(" and quantity > 2", delay=40)
    box.press("Tab")
    expect(opened.part("estimates").locator(".icestats-caption")).to_contain_text("price < 3 and quantity > 2")
    expect(box).to_have_value("price < 3 and quantity > 2")
    expect(plan.locator(".icestats-filter-error")).to_have_text("")


def test_choices_made_while_the_kernel_is_busy_count(opened: ExplorerPage) -> None:
    """Columns clicked one after the other, other bins, another value on the map, what is to be generated."""
    histogram, panel = opened.part("histogram"), opened.part("compute")
    with opened.busy_kernel():
        for name in ("event_type", "quantity", "amount"):
            opened.rows("columns").filter(has_text=name).click()
        histogram.get_by_role("button", name="equi-height").click()
        opened.part("partitions").get_by_role("button", name="files").click()
        opened.part("partitions").get_by_role("button", name="bytes").click()
        panel.get_by_label("sketches by partition").check()
        panel.get_by_label("manifest statistics").check()
        panel.get_by_label("sketches by partition").uncheck()
    expect(histogram.locator("h4")).to_have_text("Distribution of amount")
    expect(histogram.locator(".xtitle").first).to_have_text("amount")
    expect(opened.part("partitions").locator(".icestats-caption")).to_contain_text("bytes of data files")
    expect(panel.locator(".icestats-caption")).to_contain_text("statistics of manifests are made")
    expect(panel.locator(".icestats-caption")).not_to_contain_text("partitions")
    assert opened.complaints == []


@pytest.fixture
def days(catalog: SqlCatalog) -> str:
    """A table with 40 days, a partition each, and no other partition field; its metadata.json."""
    schema = Schema(NestedField(1, "day", DateType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "on_day"))
    table = catalog.create_table("db.days", schema, partition_spec=spec)
    table.append(pa.table({"day": [dt.date(2026, 1, 5) + dt.timedelta(days=i) for i in range(40)]}))
    return str(catalog.load_table("db.days").metadata_location)


def test_a_calendar_takes_the_keys_as_it_is_drawn(chromium: Browser, lab: str, lab_folder: Path, days: str) -> None:
    """Down is the next day and right the next week, however quickly; a mark over weeks holds whole ones."""
    cells = ("import icestats", f"icestats.load({days!r}).explore()")
    found = open_explorer(chromium, lab, lab_folder, "days.ipynb", cells)
    keys, chosen = found.page.keyboard, found.part("selection")
    found.part("partitions").locator("[role=application]").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown"):
        keys.press(key)
    expect(chosen).to_contain_text("on_day 2026-01-14: 1 record, 1 data file")
    for key in ("ArrowUp", "ArrowUp", "Shift+ArrowDown", "Shift+ArrowDown"):
        keys.press(key)
    expect(chosen).to_contain_text("on_day 2026-01-12 to 2026-01-14: 3 records")
    keys.press("Shift+ArrowRight")
    expect(chosen).to_contain_text("on_day 2026-01-12 to 2026-01-25: 14 records")
    assert found.complaints == []
    found.page.close()
