from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

ROOT = Path(__file__).resolve().parents[2]
MINUTE_MS = 60_000
BUSY_MS = 4 * MINUTE_MS
"""A click is answered when the cells that have been started are through."""
pytestmark = [pytest.mark.browser, pytest.mark.spark]


class Opened:
    """A page with the notebook, all cells of which have been run, and what it has said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)


@pytest.fixture(scope="module")
def opened(chromium: Browser, lab: str) -> Iterator[Opened]:
    page = chromium.new_page(viewport={"width": 1280, "height": 2200})
    opened = Opened(page)
    page.goto(lab.format("01_explore.ipynb"))
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=2 * MINUTE_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    expect(page.locator(".icestats-explorer").first).to_be_visible(timeout=2 * MINUTE_MS)
    yield opened
    page.close()


def part(opened: Opened, name: str):
    return opened.page.locator(f".icestats-explorer .icestats-{name}").first


def bars(opened: Opened) -> str:
    return part(opened, "histogram").locator(".barlayer").first.inner_html()


def test_manifests_partitions_and_a_histogram_are_drawn(opened: Opened) -> None:
    """The first explorer of the notebook shows all three as plotly draws them."""
    expect(part(opened, "manifests").locator(".barlayer .point")).not_to_have_count(0, timeout=MINUTE_MS)
    expect(part(opened, "partitions").locator(".heatmaplayer image")).to_have_count(1, timeout=MINUTE_MS)
    expect(part(opened, "histogram").locator(".scatterlayer .trace")).not_to_have_count(0, timeout=MINUTE_MS)
    expect(part(opened, "summary")).to_contain_text("1,080,700")
    expect(part(opened, "columns").get_by_role("row")).to_have_count(11)


def test_a_click_on_a_column_changes_the_histogram(opened: Opened) -> None:
    """The heading, the axis and the bars become those of the column; keyboards can do it too."""
    histogram = part(opened, "histogram")
    columns = part(opened, "columns")
    axis = histogram.locator(".xtitle").first
    columns.get_by_role("button", name="price", exact=True).click()
    expect(axis).to_have_text("price", timeout=BUSY_MS)
    before = bars(opened)
    columns.get_by_role("button", name="event_type", exact=True).click()
    expect(histogram.locator("h4")).to_have_text("Distribution of event_type", timeout=MINUTE_MS)
    expect(axis).to_contain_text("event_type", timeout=MINUTE_MS)
    expect(histogram.locator(".xtick text").first).to_have_text("click")
    assert bars(opened) != before
    columns.get_by_role("button", name="quantity", exact=True).focus()
    opened.page.keyboard.press("Enter")
    expect(axis).to_have_text("quantity", timeout=MINUTE_MS)
    expect(columns.get_by_role("button", name="quantity", exact=True)).to_have_attribute("aria-pressed", "true")
    columns.get_by_role("button", name="price", exact=True).click()
    expect(axis).to_have_text("price", timeout=MINUTE_MS)
    assert bars(opened) != ""


def test_a_figure_follows_the_width_of_the_notebook(opened: Opened) -> None:
    """In a narrow window the parts stand below each other and no figure is wider than its part."""
    page = opened.page
    page.set_viewport_size({"width": 800, "height": 2200})
    svg = part(opened, "histogram").locator(".main-svg").first
    page.wait_for_function(
        """() => {
            const parts = [...document.querySelectorAll('.icestats-explorer')][0].querySelectorAll('.icestats-part');
            return [...parts].every((part) =>
                [...part.querySelectorAll('.main-svg')].every((svg) =>
                    svg.getBoundingClientRect().right <= part.getBoundingClientRect().right + 1));
        }""",
        timeout=MINUTE_MS,
    )
    assert svg.bounding_box()["width"] > 100
    assert part(opened, "partitions").bounding_box()["y"] > part(opened, "manifests").bounding_box()["y"] + 100
    page.set_viewport_size({"width": 1280, "height": 2200})
    page.wait_for_function(
        """() => {
            const [one, two] = ['manifests', 'partitions'].map((name) =>
                document.querySelector(`.icestats-explorer .icestats-${name}`).getBoundingClientRect().top);
            return one === two;
        }""",
        timeout=MINUTE_MS,
    )


def test_the_compute_panel_waits_for_a_preview(opened: Opened) -> None:
    """Nothing can be committed that nobody has seen."""
    panel = part(opened, "compute")
    expect(panel.get_by_role("button").filter(has_text=re.compile(r"^Compute$"))).to_be_enabled()
    expect(panel.get_by_role("button").filter(has_text=re.compile(r"^Preview commit$"))).to_be_disabled()
    expect(panel.get_by_role("button").filter(has_text=re.compile(r"^Commit$"))).to_be_disabled()


def test_nothing_comes_from_elsewhere_and_nothing_complains(opened: Opened) -> None:
    """Every request goes to the notebook server, and the console holds no error."""
    elsewhere = [url for url in opened.requests if not re.match(r"(https?|ws)://127\.0\.0\.1:|data:|blob:", url)]
    assert opened.requests
    assert (elsewhere, opened.complaints) == ([], [])


def test_the_screenshot(opened: Opened) -> None:
    """The picture of the documentation is of this page: into docs/images with ICESTATS_SCREENSHOTS set."""
    folder = ROOT / "docs" / "images" if os.environ.get("ICESTATS_SCREENSHOTS") else ROOT / "test-results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "explorer.png"
    expect(part(opened, "histogram").locator(".xtitle").first).to_have_text("price", timeout=MINUTE_MS)
    opened.page.locator(".icestats-explorer").first.screenshot(path=path)
    assert path.stat().st_size > 20_000
