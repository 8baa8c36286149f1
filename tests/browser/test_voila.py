"""The tour as an app: Voila runs the notebook and shows what it shows, without its code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

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

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)


@pytest.fixture(scope="module")
def app(chromium: Browser, lab: str) -> Iterator[App]:
    page = chromium.new_page(viewport={"width": 1280, "height": 1600})
    app = App(page)
    page.goto(lab.replace("/lab/tree/{}", "/voila/render/00_tour.ipynb"), timeout=3 * MINUTE_MS)
    yield app
    page.close()


def test_the_explorer_is_drawn(app: App) -> None:
    """The widget is alive: its figures are there, and it answers a click."""
    explorer = app.page.locator(".icestats-explorer").first
    expect(explorer).to_be_visible(timeout=2 * MINUTE_MS)
    expect(explorer.locator(".main-svg").first).to_be_visible(timeout=MINUTE_MS)


def test_every_cell_has_its_answer(app: App) -> None:
    """From the title to the table of blobs; a reader sees no code and no traceback."""
    for heading in (
        "icestats in five minutes",
        "Look around",
        "What would an optimizer guess?",
        "And what is missing?",
    ):
        expect(app.page.get_by_role("heading", name=heading)).to_be_visible()
    expect(app.page.get_by_text("apache-datasketches-theta-v1").first).to_be_visible(timeout=MINUTE_MS)
    expect(app.page.locator(".jp-CodeCell .jp-InputArea-editor")).to_have_count(0)
    assert "Traceback" not in app.page.content()
    folder = ROOT / "docs" / "images" if os.environ.get("ICESTATS_SCREENSHOTS") else ROOT / "test-results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tour_voila.png"
    app.page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 20_000


def test_nothing_comes_from_elsewhere_and_nothing_complains(app: App) -> None:
    """Every request goes to the server, and the console holds no error."""
    assert app.requests
    assert ([url for url in app.requests if not LOCAL.match(url)], app.complaints) == ([], [])
