"""The explorer in a real JupyterLab, part by part: what a person does, and what is then seen."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from benchmarks.explorer_page import HEIGHT, ExplorerPage

MINUTE_MS = 60_000
CELLS = ("import icestats", "explorer = icestats.load('demo.events').explore()\nexplorer")
PARTS = (
    *("summary", "selection", "manifests", "partitions", "columns", "histogram", "findings", "outline", "plan"),
    *("estimates", "snapshots", "statistics", "coverage", "compute"),
)
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


def test_every_part_is_drawn(opened: ExplorerPage) -> None:
    """Figures, bars, cells, cards, rows: each part has what the demo table has."""
    expect(opened.part("summary")).to_contain_text("1,080,700")
    expect(opened.part("manifests").locator(".barlayer .point")).not_to_have_count(0)
    expect(opened.part("partitions").locator(".heatmaplayer image")).to_have_count(1)
    expect(opened.rows("columns")).to_have_count(10)
    expect(opened.part("columns").locator(".icestats-spark-bars i").first).to_be_visible()
    expect(opened.part("histogram").locator(".scatterlayer .trace")).not_to_have_count(0)
    for name in ("findings", "outline", "snapshots", "statistics", "coverage"):
        expect(opened.rows(name)).not_to_have_count(0)
    opened.photograph("part-histogram", opened.part("histogram"))


def test_the_tree_opens_by_keyboard_down_to_columns(opened: ExplorerPage) -> None:
    """Arrow keys move and open, Enter on a file shows its columns; all of it is one table."""
    keys = opened.page.keyboard
    opened.rows("outline").nth(1).focus()
    keys.press("ArrowRight")
    expect(opened.rows("outline").nth(2)).to_have_attribute("aria-level", "3")
    keys.press("ArrowDown")
    expect(opened.rows("outline").nth(2)).to_be_focused()
    keys.press("Enter")
    expect(opened.rows("outline").nth(3)).to_have_attribute("aria-level", "4")
    expect(opened.rows("outline").nth(3)).to_contain_text("event_id")
    opened.photograph("part-outline", opened.part("outline"))
    keys.press("ArrowUp")
    keys.press("ArrowLeft")
    expect(opened.rows("outline").nth(2)).to_have_attribute("aria-level", "2")


def test_the_tree_sorts_filters_and_lists_all_files(opened: ExplorerPage) -> None:
    """The largest manifest comes first; a comparison leaves some; the list of all files scrolls to its end."""
    tree = opened.part("outline")
    sort_tree_by_records(opened)
    tree.get_by_role("searchbox").fill("records > 50000")
    expect(tree.locator(".icestats-caption")).to_contain_text("3 of 31 manifests")
    tree.get_by_role("searchbox").fill("")
    tree.get_by_role("button", name="all files").click()
    expect(tree.locator(".icestats-caption")).to_contain_text("2,047 live files")
    opened.rows("outline").first.focus()
    opened.page.keyboard.press("End")
    expect(tree.locator("[aria-rowindex='2048']")).to_be_focused()
    expect(tree.locator("[aria-rowindex='2048']")).to_contain_text(".parquet")
    tree.get_by_role("button", name="tree", exact=True).click()
    expect(tree.locator(".icestats-caption")).to_contain_text("31 of 31 manifests")


def sort_tree_by_records(opened: ExplorerPage) -> None:
    """Sort manifests and files, the largest first, however an earlier test has left them."""
    head = opened.part("outline").get_by_role("columnheader", name="records")
    if head.get_attribute("aria-sort") != "descending":
        head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(opened.rows("outline").nth(1)).to_contain_text("54,600")


def test_a_click_on_a_manifest_filters_every_part(opened: ExplorerPage) -> None:
    """Strip, columns, bars and snapshots are of that manifest; Clear gives the table back."""
    sort_tree_by_records(opened)
    before = opened.rows("columns").first.inner_text()
    opened.rows("outline").nth(1).click()
    expect(opened.part("selection")).to_contain_text("54,600 records, 69 data files")
    expect(opened.part("columns").locator(".icestats-caption")).to_contain_text("of manifest")
    expect(opened.rows("outline").nth(1)).to_have_attribute("aria-selected", "true")
    assert opened.rows("columns").first.inner_text() != before
    opened.part("selection").get_by_role("button", name="Clear selection").click()
    expect(opened.part("selection")).to_contain_text("Whole table")
    expect(opened.rows("columns").first).to_contain_text(before.splitlines()[0])
    expect(opened.part("columns").locator(".icestats-caption")).not_to_contain_text("of manifest")


def test_a_brush_over_partitions_filters_every_part(opened: ExplorerPage) -> None:
    """Dragging marks partitions; arrow keys move the mark; the code says so in Python."""
    field = opened.part("partitions").locator(".nsewdrag").first.bounding_box()
    assert field is not None
    mouse = opened.page.mouse
    mouse.move(field["x"] + 0.15 * field["width"], field["y"] + 0.2 * field["height"])
    mouse.down()
    mouse.move(field["x"] + 0.45 * field["width"], field["y"] + 0.6 * field["height"], steps=4)
    mouse.up()
    chosen = opened.part("selection")
    expect(chosen).to_contain_text("event_time_day 2026-09-02 to 2026-09-05")
    expect(chosen).to_contain_text("records,")
    opened.settle()
    chosen.get_by_role("button", name="Code").click()
    expect(chosen.locator(".icestats-code")).to_contain_text("table.sql(")
    opened.photograph("explorer-brushed")
    chosen.get_by_role("button", name="Code").click()
    opened.part("partitions").locator("[tabindex='0'][role=application]").first.focus()
    opened.page.keyboard.press("ArrowRight")
    expect(chosen).to_contain_text("event_time_day 2026-09-06,")
    opened.page.keyboard.press("Shift+ArrowRight")
    expect(chosen).to_contain_text("event_time_day 2026-09-06 to 2026-09-07")
    frame = opened.part("partitions").locator(".icestats-frame")
    expect(frame).to_be_visible()
    opened.page.keyboard.press("Escape")
    expect(chosen).to_contain_text("Whole table")
    expect(frame).to_be_hidden()


def test_a_click_on_a_column_changes_the_histogram(opened: ExplorerPage) -> None:
    """Heading and axis become those of the column; a keyboard can do it too."""
    axis = opened.part("histogram").locator(".xtitle").first
    opened.rows("columns").filter(has_text="event_type").click()
    expect(opened.part("histogram").locator("h4")).to_have_text("Distribution of event_type")
    expect(axis).to_contain_text("event_type")
    expect(opened.part("histogram").locator(".xtick text").first).to_have_text("click")
    opened.rows("columns").filter(has_text="quantity").focus()
    opened.page.keyboard.press("Enter")
    expect(axis).to_have_text("quantity")
    opened.rows("columns").filter(has_text="price").click()
    expect(axis).to_have_text("price")


def test_a_filter_is_planned_and_estimated_as_one_types(opened: ExplorerPage) -> None:
    """A wrong filter says so in a line below; a right one shows the funnel, the estimates, and their q-errors."""
    box = opened.part("plan").get_by_role("textbox")
    box.fill("price <")
    expect(opened.part("plan").locator(".icestats-filter-error")).to_contain_text("cannot be read")
    expect(box).to_have_attribute("aria-invalid", "true")
    assert "Traceback" not in opened.part("plan").inner_text()
    box.fill("price < 3 and event_time >= '2026-09-05T00:00:00+00:00'")
    expect(opened.part("plan")).to_contain_text("event_time_day >= '2026-09-05'")
    expect(opened.part("plan").locator(".icestats-filter-error")).to_have_text("")
    expect(opened.part("plan")).to_contain_text("skipped")
    expect(opened.rows("estimates")).not_to_have_count(0)
    opened.part("estimates").get_by_role("button", name="Count the rows").click()
    expect(opened.part("estimates").locator(".icestats-caption")).to_contain_text("rows counted;")
    expect(opened.part("estimates").locator(".icestats-cell-good").first).to_be_visible()
    opened.settle()


def test_the_matrix_of_engines_is_filtered_and_says_why(opened: ExplorerPage) -> None:
    """Words leave the rows that have them; Enter on a row shows each engine's command and evidence."""
    matrix = opened.part("coverage")
    expect(matrix.locator(".icestats-caption")).to_contain_text("fresh")
    matrix.get_by_role("searchbox").fill("event_type min value")
    expect(opened.rows("coverage")).to_have_count(2)
    opened.rows("coverage").first.focus()
    opened.page.keyboard.press("Enter")
    engines = matrix.get_by_role("region", name="Engines")
    expect(engines.locator("tbody tr")).to_have_count(7)
    expect(engines).to_contain_text("IcebergStatistics.java")
    opened.photograph("part-coverage", matrix)
    matrix.get_by_role("searchbox").fill("")


def test_generating_shows_its_cost_and_waits_for_a_preview(opened: ExplorerPage) -> None:
    """The cost follows what is chosen; nothing can be committed that nobody has seen."""
    panel = opened.part("compute")
    commit = panel.get_by_role("button").filter(has_text=re.compile(r"^\s*Commit$"))
    expect(panel.locator(".icestats-caption")).to_contain_text("Reads the data of 10 columns")
    expect(commit).to_be_disabled()
    panel.get_by_label("sketches by partition").check()
    expect(panel.locator(".icestats-caption")).to_contain_text("640 partitions")
    panel.get_by_label("sketches by partition").uncheck()
    panel.get_by_label("Theta, KLL, column statistics").uncheck()
    expect(panel.locator(".icestats-caption")).to_contain_text("Nothing to compute")
    panel.get_by_label("manifest statistics").check()
    panel.get_by_role("button").filter(has_text=re.compile(r"^\s*Compute$")).click()
    panel.get_by_role("button").filter(has_text=re.compile(r"^\s*Preview commit$")).click()
    expect(panel.locator(".icestats-report")).to_contain_text("icestats-manifest-stats-v1")
    expect(commit).to_be_enabled()


def test_it_can_be_read_by_a_screen_reader(opened: ExplorerPage) -> None:
    """axe finds nothing serious, in light and in dark; the dark theme is JupyterLab's."""
    for theme in ("Light", "Dark"):
        change_theme(opened, theme)
        found = Axe().run(opened.page, context=".icestats-explorer").response["violations"]
        grave = [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]
        assert (theme, grave) == (theme, [])
    opened.photograph("explorer-dark")
    change_theme(opened, "Light")


def change_theme(opened: ExplorerPage, theme: str) -> None:
    opened.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {theme}"
    )
    opened.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'Light').lower()}'")
    expect(opened.rows("columns")).to_have_count(10)
    opened.settle()


def test_a_narrow_window_has_the_parts_below_each_other(opened: ExplorerPage) -> None:
    """At 800 pixels no figure is wider than its part, and nothing is cut off at the side."""
    page = opened.page
    page.set_viewport_size({"width": 800, "height": HEIGHT + 1800})
    page.wait_for_function(
        """() => {
            const [one, two] = ['manifests', 'partitions'].map((name) =>
                document.querySelector(`.icestats-explorer .icestats-${name}`).getBoundingClientRect().top);
            return two > one + 100;
        }""",
        timeout=MINUTE_MS,
    )
    page.wait_for_function(
        """() => [...document.querySelectorAll('.icestats-explorer .icestats-part')].every((part) =>
            [...part.querySelectorAll('.main-svg, .icestats-table-scroll, input, button')].every((inner) =>
                inner.getBoundingClientRect().right <= part.getBoundingClientRect().right + 1
                || inner.closest('.icestats-table-scroll') !== null))""",
        timeout=MINUTE_MS,
    )
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    page.wait_for_function(
        """() => {
            const [one, two] = ['manifests', 'partitions'].map((name) =>
                document.querySelector(`.icestats-explorer .icestats-${name}`).getBoundingClientRect().top);
            return one === two;
        }""",
        timeout=MINUTE_MS,
    )


def test_nothing_comes_from_elsewhere_and_nothing_complains(opened: ExplorerPage) -> None:
    """Every request goes to the notebook server, no message is over 2 MB, console and kernel have no error."""
    expect(opened.part("partitions").locator(".heatmaplayer image")).to_have_count(1)
    expect(opened.part("histogram").locator(".scatterlayer .trace")).not_to_have_count(0)
    opened.settle()
    elsewhere = [url for url in opened.requests if not re.match(r"(https?|ws)://127\.0\.0\.1:|data:|blob:", url)]
    assert opened.requests
    assert (elsewhere, opened.complaints) == ([], [])
    assert 1_000_000 < opened.largest_message < 2_000_000
    assert opened.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert opened.page.locator(".icestats-error").count() == 0
