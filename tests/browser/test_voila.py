"""The tour as an app: Voila runs the notebook and shows what it shows, without its code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

ROOT = Path(__file__).resolve().parents[2]
MINUTE_MS = 60_000
LOCAL = re.compile(r"(https?|ws)://127\.0\.0\.1:|data:|blob:")
pytestmark = [pytest.mark.browser, pytest.mark.spark]


class App:
    """A page with the tour, and what it has said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def part(self, name: str) -> Locator:
        """One of the explorer's parts."""
        return self.page.locator(f".icestats-explorer [data-part='{name}']").first

    def open(self, tab: str) -> None:
        """Open one of the explorer's tabs."""
        self.page.locator(".icestats-explorer").first.get_by_role("tab", name=tab).click()

    def take(self, name: str) -> None:
        """Take a picture of what the window shows: for docs/images with ICESTATS_SCREENSHOTS set."""
        folder = ROOT / "docs" / "images" if os.environ.get("ICESTATS_SCREENSHOTS") else ROOT / "test-results"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        self.page.screenshot(path=path, animations="disabled")
        assert path.stat().st_size > 20_000

    def take_tab(self, number: int, name: str) -> None:
        """Take a picture with the explorer at the top of the window: a frame of the animated tour."""
        root = self.page.locator(".icestats-explorer").first
        root.evaluate("(root) => root.scrollIntoView({block: 'start', behavior: 'instant'})")
        self.page.mouse.move(2, 2)
        self.take(f"tour-{number}-{name}")

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)


@pytest.fixture(scope="module")
def app(chromium: Browser, lab: str) -> Iterator[App]:
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    app = App(page)
    page.goto(lab.replace("/lab/tree/{}", "/voila/render/00_tour.ipynb"), timeout=3 * MINUTE_MS)
    yield app
    page.close()


def test_the_explorer_is_drawn(app: App) -> None:
    """The widget is alive: its figures are there, and it answers a click."""
    explorer = app.page.locator(".icestats-explorer").first
    expect(explorer).to_be_visible(timeout=2 * MINUTE_MS)
    expect(explorer.locator("svg.icestats-figure").first).to_be_visible(timeout=MINUTE_MS)


def test_every_cell_has_its_answer(app: App) -> None:
    """From the title to the table of blobs; a reader sees no code and no traceback."""
    for heading in (
        "icestats in five minutes",
        "Look around",
        "What would an optimizer estimate?",
        "What is missing?",
    ):
        expect(app.page.get_by_role("heading", name=heading)).to_be_visible()
    expect(app.page.get_by_text("apache-datasketches-theta-v1").first).to_be_visible(timeout=MINUTE_MS)
    expect(app.page.locator(".jp-CodeCell .jp-InputArea-editor")).to_have_count(0)
    assert "Traceback" not in app.page.content()


def test_the_tour_of_the_documentation(app: App) -> None:
    """From the overview to the panel that computes: each picture is of a state that answers."""
    expect(app.part("partitions").locator("svg.icestats-figure").first).to_be_visible(timeout=MINUTE_MS)
    expect(app.part("findings").locator("[data-card]").first).to_be_visible(timeout=MINUTE_MS)
    app.take_tab(1, "overview")
    app.open("Columns")
    app.part("columns").get_by_role("rowheader", name="event_type").click()
    caption = app.part("histogram").locator(".icestats-caption")
    expect(caption).to_contain_text("event_type, string", timeout=MINUTE_MS)
    app.part("columns").get_by_role("rowheader", name="price").click()
    expect(caption).to_contain_text("price, double", timeout=MINUTE_MS)
    app.take_tab(2, "columns")
    box = app.page.locator(".icestats-explorer").first.get_by_role("combobox").first
    box.fill("device_id = 74 and event_time >= '2026-09-01T10:00:00'")
    box.press("Escape")
    app.open("Query")
    expect(app.part("plan")).to_contain_text("34 files", timeout=MINUTE_MS)
    expect(app.part("estimates")).to_contain_text("combined", timeout=MINUTE_MS)
    app.take_tab(3, "query")
    app.open("Layout")
    expect(app.part("manifests").locator("svg.icestats-figure").first).to_be_visible(timeout=MINUTE_MS)
    app.take_tab(4, "layout")
    app.open("History")
    expect(app.part("snapshots").get_by_role("rowheader").first).to_be_visible(timeout=MINUTE_MS)
    app.take_tab(5, "history")
    app.open("Statistics")
    expect(app.part("statistics").get_by_role("rowheader", name="price")).to_be_visible(timeout=MINUTE_MS)
    app.take_tab(6, "statistics")


def test_nothing_comes_from_elsewhere_and_nothing_complains(app: App) -> None:
    """Every request goes to the server, and the console holds no error."""
    assert app.requests
    assert ([url for url in app.requests if not LOCAL.match(url)], app.complaints) == ([], [])
