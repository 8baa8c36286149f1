"""A page with an explorer in it: what the browser tests and the benchmark do with one."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.lab import open_notebook, run_all_cells, write_notebook

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images" if os.environ.get("ICESTATS_SCREENSHOTS") else ROOT / "test-results"
MINUTE_MS = 60_000
SMALLEST = 3_000
"""Bytes of a picture with something in it."""
TABS = ("Overview", "Columns", "Query", "Layout", "History", "Statistics")
SIZES = ((1440, 900), (1280, 800), (800, 900))
"""Windows, in pixels."""
PROCESS = "import os\nprint('the kernel is process', os.getpid())"
"""A cell that `busy_kernel` needs. A cell that runs long would not do: widgets are heard beside it."""

IN_SIGHT = """(element) => {
  const {top, height} = element.getBoundingClientRect();
  return top >= 0 && top + Math.min(height, 24) <= window.innerHeight;
}"""
"""Whether an element, or its first line, is in the window; asked in the page, as it may be drawn anew meanwhile."""


class ExplorerPage:
    """A page with an explorer, what it has said and asked for, and what a person has done."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".icestats-explorer").first
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.largest_message = 0
        self.effort = {"clicks": 0, "keys": 0, "scrolls": 0}
        """What has been done by `click`, `drag`, `press`, `write` and `see`."""
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: socket.on("framereceived", self._weigh))

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)

    def _weigh(self, data: bytes | str) -> None:
        self.largest_message = max(self.largest_message, len(data))

    def part(self, name: str) -> Locator:
        """Return a part of the explorer."""
        return self.root.locator(f"[data-part='{name}']").first

    def rows(self, name: str, label: str = "") -> Locator:
        """Return the rows of a part's table that are there; of the one with a label if there are several."""
        within = f"[aria-label='{label}'] " if label else ""
        return self.part(name).locator(f"{within}.icestats-tbody [role=row]:has([role=rowheader])")

    def figure(self, name: str) -> Locator:
        """Return a part's picture."""
        return self.part(name).locator("svg.icestats-figure").first

    def open(self, tab: str) -> None:
        """Open a tab."""
        self.click(self.root.get_by_role("tab", name=tab))
        expect(self.root.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        self.settle()

    def click(self, what: Locator) -> None:
        """Click on something, after scrolling to it if it is out of sight."""
        self.see(what)
        self.effort["clicks"] += 1
        what.click()

    def drag(self, what: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag over something, from one place to another: fractions of its width and height. It counts as a click."""
        self.see(what)
        self.effort["clicks"] += 1
        # Between two questions a figure may be drawn anew: where it is, the page says in one.
        for _ in range(100):
            expect(what).to_be_visible()
            left, top, width, height = what.evaluate(
                "e => Object.values(e.getBoundingClientRect().toJSON()).slice(0, 4)"
            )
            if width:
                break
        places = [(left + width * x, top + height * y) for x, y in (start, end)]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        self.page.mouse.move(*places[1], steps=6)
        self.page.mouse.up()

    def press(self, key: str) -> None:
        """Press a key."""
        self.effort["keys"] += 1
        self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        """Type a text; it counts as one key."""
        self.effort["keys"] += 1
        self.page.keyboard.type(text)

    def see(self, what: Locator) -> None:
        """Wait until something is there, and scroll to it if it is out of sight."""
        expect(what).to_be_visible()
        if not what.evaluate(IN_SIGHT):
            self.effort["scrolls"] += 1
            what.scroll_into_view_if_needed()

    def settle(self) -> None:
        """Wait until nothing is read or redrawn any more."""
        expect(self.root.locator("[data-part][aria-busy=true]")).to_have_count(0)
        expect(self.root.locator(".icestats-busy")).to_have_text("")

    @contextmanager
    def busy_kernel(self) -> Iterator[None]:
        """Keep the kernel from answering, in all its threads; the notebook has the cell `PROCESS`."""
        said = self.page.get_by_text(re.compile(r"^the kernel is process \d+")).text_content() or ""
        process = int(said.split()[-1])
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    def photograph(self, name: str, what: Locator | None = None) -> None:
        """Take a picture: for the documentation with ICESTATS_SCREENSHOTS set.

        Of a part all of it; by default the window.
        """
        IMAGES.mkdir(parents=True, exist_ok=True)
        self.page.mouse.move(2, 2)
        path = IMAGES / f"{name}.png"
        if what is not None:
            what.screenshot(path=path, animations="disabled")
        else:
            self.page.screenshot(path=path, animations="disabled")
        if path.stat().st_size < SMALLEST:
            raise AssertionError(f"{path} has hardly anything in it: {path.stat().st_size} bytes")


def open_explorer(
    browser: Browser,
    address: str,
    folder: Path,
    name: str,
    cells: Sequence[str],
    size: tuple[int, int] = SIZES[0],
) -> ExplorerPage:
    """Open a notebook with an explorer in it, run it, and scroll to the explorer."""
    write_notebook(folder / name, cells)
    opened = ExplorerPage(browser.new_page(viewport={"width": size[0], "height": size[1]}))
    open_notebook(opened.page, address.format(name))
    # The file browser takes a third of the window, and a person who works closes it.
    opened.page.evaluate("window.jupyterapp.shell.collapseLeft()")
    run_all_cells(opened.page)
    expect(opened.root).to_be_visible(timeout=2 * MINUTE_MS)
    opened.root.evaluate("(root) => root.scrollIntoView({block: 'start', behavior: 'instant'})")
    opened.settle()
    return opened
