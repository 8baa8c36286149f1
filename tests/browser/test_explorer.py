"""The explorer in a real JupyterLab, tab by tab: what a person does, and what is then seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from benchmarks.explorer_page import MINUTE_MS, SIZES, TABS, ExplorerPage, open_explorer

CELLS = ("import icestats", "explorer = icestats.load('demo.events').explore()\nexplorer")
LOCAL = re.compile(r"(https?|ws)://127\.0\.0\.1:|data:|blob:")
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


@pytest.mark.parametrize("theme", ["Dark", "Light"])
@pytest.mark.parametrize("size", SIZES[::-1], ids=lambda size: f"{size[0]}x{size[1]}")
def test_nothing_is_cut_off_at_the_side_or_lies_over_something_else(
    opened: ExplorerPage, size: tuple[int, int], theme: str
) -> None:
    """In three windows, light and dark: no part is wider than the explorer, no facts collide; axe finds nothing."""
    opened.page.set_viewport_size({"width": size[0], "height": size[1]})
    change_theme(opened, theme)
    for tab in TABS:
        opened.root.get_by_role("tab", name=tab).click()
        opened.settle()
        assert opened.root.evaluate("(root) => root.scrollWidth <= root.clientWidth + 1"), tab
        assert opened.root.evaluate(_COLLISIONS) == [], tab
        assert opened.root.evaluate(_LOST_SPACES) == [], tab
        if (size, theme, tab) == (SIZES[0], "Dark", TABS[0]):
            opened.photograph("explorer-dark")
        found = Axe().run(opened.page, context=".icestats-explorer").response["violations"]
        grave = [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]
        assert (tab, grave) == (tab, [])
    assert opened.complaints == []


_COLLISIONS = """(root) => {
  const found = [];
  for (const kind of ['.icestats-facts > div, [role=tab]', '[data-part] > header > *']) {
    const boxes = [...root.querySelectorAll(kind)]
      .map((one) => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    boxes.forEach(([text, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
      const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
      if (!apart) found.push(text + ' / ' + other);
    }));
  }
  return found;
}"""


_LOST_SPACES = """(root) => [...root.querySelectorAll('.icestats-cut')].filter((cut) => {
  const text = cut.firstChild, end = document.createRange();
  if (!cut.nextElementSibling || !text?.data?.endsWith(' ') || cut.scrollWidth > cut.clientWidth) return false;
  end.setStart(text, text.length - 1);
  end.setEnd(text, text.length);
  return end.getBoundingClientRect().width === 0;
}).map((cut) => cut.parentElement.textContent)"""


def change_theme(opened: ExplorerPage, theme: str) -> None:
    opened.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {theme}"
    )
    opened.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'Light').lower()}'")
    opened.settle()


def test_every_tab_has_what_the_table_has(opened: ExplorerPage) -> None:
    opened.open("Overview")
    expect(opened.root.locator(".icestats-head")).to_contain_text("1,080,700")
    expect(opened.figure("partitions").locator("[data-key]")).not_to_have_count(0)
    expect(opened.part("findings").locator("[data-card]")).not_to_have_count(0)
    opened.open("Columns")
    expect(opened.rows("columns")).to_have_count(10)
    expect(opened.rows("columns").first.locator("svg")).to_be_visible()
    expect(opened.figure("histogram").locator("[data-key]")).not_to_have_count(0)
    opened.photograph("part-histogram", opened.part("histogram"))
    opened.open("Layout")
    expect(opened.figure("manifests").locator("[data-key]")).not_to_have_count(0)
    expect(opened.figure("sizes").locator("[data-key]")).not_to_have_count(0)
    expect(opened.rows("outline")).not_to_have_count(0)
    opened.open("History")
    expect(opened.rows("snapshots")).not_to_have_count(0)
    opened.open("Statistics")
    expect(opened.rows("statistics").filter(has_text="event_type")).to_have_count(1)
    expect(opened.part("compute").get_by_role("button", name="Compute", exact=True)).to_be_enabled()


def test_the_tree_opens_by_keyboard_down_to_columns(opened: ExplorerPage) -> None:
    opened.open("Layout")
    keys, rows = opened.page.keyboard, opened.rows("outline")
    rows.nth(1).focus()
    keys.press("ArrowRight")
    expect(rows.nth(2)).to_have_attribute("aria-level", "3")
    keys.press("ArrowDown")
    expect(rows.nth(2)).to_be_focused()
    keys.press("ArrowRight")
    expect(rows.nth(3)).to_have_attribute("aria-level", "4")
    expect(rows.nth(3)).to_contain_text("event_id")
    keys.press("ArrowUp")
    keys.press("ArrowLeft")
    expect(rows.nth(2)).to_have_attribute("aria-level", "2")


def test_the_tree_sorts_searches_and_lists_all_files(opened: ExplorerPage) -> None:
    opened.open("Layout")
    tree = opened.part("outline")
    head = tree.get_by_role("columnheader", name="records")
    head.get_by_role("button").first.click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(opened.rows("outline").nth(1)).to_contain_text("54,600")
    tree.get_by_role("searchbox").fill("records > 50000")
    expect(tree.locator(".icestats-caption")).to_contain_text("3 of 31 manifests")
    tree.get_by_role("searchbox").fill("")
    tree.get_by_text("all files", exact=True).click()
    expect(tree.locator(".icestats-caption")).to_contain_text("2,047 live files")
    opened.rows("outline").first.focus()
    opened.page.keyboard.press("End")
    expect(tree.locator("[aria-rowindex='2048']")).to_be_focused()
    expect(tree.locator("[aria-rowindex='2048']")).to_contain_text(".parquet")
    tree.get_by_text("tree", exact=True).click()
    expect(tree.locator(".icestats-caption")).to_contain_text("31 of 31 manifests")


def test_what_is_selected_is_a_part_of_the_filter_and_can_be_taken_out(opened: ExplorerPage) -> None:
    """A drag over the partitions and one over a histogram stand in the bar, are planned, and go one by one."""
    opened.open("Overview")
    chips = opened.root.locator(".icestats-chip")
    opened.drag(opened.figure("partitions").locator("[data-plot] rect").first, (0.15, 0.2), (0.45, 0.6))
    expect(chips).to_have_count(1)
    expect(chips).to_contain_text("event_time >= '2026-09-0")
    expect(opened.root.locator(".icestats-query")).to_contain_text("of 2,038 files")
    opened.open("Columns")
    opened.rows("columns").filter(has_text="price").click()
    expect(opened.part("histogram").locator(".icestats-caption")).to_contain_text("price")
    opened.drag(opened.figure("histogram").locator("[data-plot=values] rect").first, (0.1, 0.5), (0.4, 0.5))
    expect(chips).to_have_count(2)
    expect(opened.root.locator(".icestats-query")).to_contain_text("price >=")
    opened.open("Query")
    expect(opened.part("plan").locator(".icestats-caption")).to_contain_text("price >=")
    chips.last.get_by_role("button").click()
    expect(chips).to_have_count(1)
    opened.root.get_by_role("button", name="Clear filter and selection").click()
    expect(chips).to_have_count(0)
    expect(opened.part("plan")).to_contain_text("No filter yet")


def test_a_filter_is_completed_checked_and_planned_as_one_types(opened: ExplorerPage) -> None:
    box = opened.root.get_by_role("combobox").first
    box.fill("")
    box.press_sequentially("event_ty")
    expect(opened.root.get_by_role("option", name="event_type")).to_be_visible()
    box.press("Tab")
    expect(box).to_have_value(re.compile(r"^event_type\b"))
    box.fill("price < 'cheap'")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(opened.root.locator(".icestats-query")).to_contain_text("cheap")
    assert "Traceback" not in opened.root.inner_text()
    box.fill("price < 3 and event_time >= '2026-09-05T00:00:00+00:00'")
    box.press("Escape")
    expect(box).to_have_attribute("aria-invalid", "false")
    opened.open("Query")
    expect(opened.part("plan")).to_contain_text("event_time_day >= '2026-09-05'")
    expect(opened.rows("estimates").first).to_be_visible()
    opened.root.get_by_role("button", name="Clear filter and selection").click()


def test_a_click_on_a_column_changes_the_distribution(opened: ExplorerPage) -> None:
    opened.open("Columns")
    caption = opened.part("histogram").locator(".icestats-caption")
    opened.rows("columns").filter(has_text="event_type").click()
    expect(caption).to_contain_text("event_type, string")
    expect(opened.figure("histogram").locator("[data-key]")).to_have_count(5)
    opened.rows("columns").filter(has_text="quantity").focus()
    opened.page.keyboard.press("Enter")
    expect(caption).to_contain_text("quantity, int")
    opened.rows("columns").filter(has_text="price").click()
    expect(caption).to_contain_text("price, double")


def test_a_part_of_a_distribution_is_zoomed_into_by_typing_its_range(opened: ExplorerPage) -> None:
    opened.open("Columns")
    opened.rows("columns").filter(has_text="price").click()
    panel = opened.part("histogram")
    panel.get_by_label(re.compile("^From")).fill("100")
    panel.get_by_label(re.compile("^To")).fill("200")
    panel.get_by_role("button", name="Go").click()
    expect(panel).to_contain_text("leaves out about")
    expect(panel.get_by_role("button", name="Show everything again")).to_be_visible()
    panel.get_by_role("button", name="Show everything again").click()
    expect(panel.get_by_role("button", name="Show everything again")).to_have_count(0)
    panel.get_by_label(re.compile("^From")).fill("many")
    panel.get_by_role("button", name="Go").click()
    expect(opened.root.locator(".icestats-reply")).to_contain_text("'many'")


def test_tables_and_pictures_are_saved_as_files(opened: ExplorerPage) -> None:
    opened.open("Columns")
    for button, name in (("CSV", "list.csv"), ("SVG", "histogram price.svg"), ("PNG", "histogram price.png")):
        within = opened.part("columns") if button == "CSV" else opened.part("histogram")
        with opened.page.expect_download() as found:
            within.get_by_role("button", name=re.compile(button)).first.click()
        assert found.value.suggested_filename.endswith(name.rsplit(".", 1)[-1])
        assert found.value.path().stat().st_size > 300
    with opened.page.expect_download() as found:
        opened.root.get_by_role("button", name=re.compile("^Report")).click()
    assert "<!doctype html>" in found.value.path().read_text()[:100]


def test_the_code_gives_what_is_seen(opened: ExplorerPage) -> None:
    opened.root.locator(".icestats-head").get_by_role("button", name="Code").click()
    expect(opened.root.locator(".icestats-reply pre")).to_contain_text("table = icestats.load('demo.events')")
    wrapping = opened.root.locator(".icestats-reply pre").evaluate(
        "(pre) => ['whiteSpace', 'wordBreak', 'overflowWrap'].map((name) => getComputedStyle(pre)[name])"
    )
    assert wrapping == ["pre-wrap", "normal", "break-word"], "words stay whole, whatever JupyterLab says of code"
    opened.root.locator(".icestats-reply").get_by_role("button", name="Close").click()
    expect(opened.root.locator(".icestats-reply pre")).to_have_count(0)


def test_parts_are_folded_and_widened(opened: ExplorerPage) -> None:
    opened.open("Columns")
    part = opened.part("histogram")
    fold = part.get_by_role("button", name=re.compile("Distribution")).first
    fold.click()
    expect(opened.figure("histogram")).to_have_count(0)
    fold.click()
    expect(opened.figure("histogram")).to_be_visible()
    before = (part.bounding_box() or {"width": 0})["width"]
    part.get_by_role("button", name=re.compile("whole width")).click()
    opened.page.wait_for_function(
        "(args) => document.querySelector(\"[data-part='histogram']\").clientWidth > args", arg=before * 1.6
    )
    part.get_by_role("button", name=re.compile("half width")).click()


def test_the_wheel_scrolls_the_notebook_where_a_table_has_nothing_to_scroll(opened: ExplorerPage) -> None:
    opened.open("Columns")
    opened.root.evaluate("(root) => root.scrollIntoView({block: 'start', behavior: 'instant'})")
    before = (opened.root.bounding_box() or {"y": 0})["y"]
    opened.rows("columns").nth(2).hover()
    opened.page.mouse.wheel(0, -200)
    opened.page.wait_for_function(
        "(before) => document.querySelector('.icestats-explorer').getBoundingClientRect().y > before + 20", arg=before
    )


def test_an_empty_table_fits_a_window(chromium: Browser, lab: str, lab_folder: Path, catalog: SqlCatalog) -> None:
    """Nothing empty takes space: each tab of a table without snapshots ends within 900 pixels."""
    table = catalog.create_table("db.empty", Schema(NestedField(1, "id", LongType())))
    cells = ("import icestats", f"icestats.load({table.metadata_location!r}).explore()")
    page = open_explorer(chromium, lab, lab_folder, "empty.ipynb", cells)
    for tab in TABS:
        page.root.get_by_role("tab", name=tab).click()
        page.settle()
        assert (page.root.bounding_box() or {"height": 10_000})["height"] < 700, tab
    assert page.complaints == []
    page.page.close()


def test_nothing_comes_from_elsewhere_and_nothing_complains(opened: ExplorerPage) -> None:
    """Every request goes to the notebook server, no message is over 2 MB, console and kernel have no error."""
    opened.settle()
    assert opened.requests
    assert ([url for url in opened.requests if not LOCAL.match(url)], opened.complaints) == ([], [])
    assert opened.largest_message < 2_000_000
    assert opened.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
