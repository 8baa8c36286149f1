"""A page of JupyterLab with an explorer in it: what the browser tests do with one."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.lab import open_notebook, run_all_cells, write_notebook

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images" if os.environ.get("ICESTATS_SCREENSHOTS") else ROOT / "test-results"
MINUTE_MS = 60_000
HEIGHT = 5000
"""Of the window: all parts are in it."""
TALLEST = 1480
"""Of a picture of the explorer."""
SMALLEST = 3_000
"""Bytes of a picture with something in it."""

PROCESS = "import os\nprint('the kernel is process', os.getpid())"
"""A cell that `busy_kernel` needs. A cell that runs long would not do: widgets are heard beside it."""


class ExplorerPage:
    """A page with an explorer, and what it has said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.largest_message = 0
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
        return self.page.locator(f".icestats-explorer .icestats-part.icestats-{name}").first

    def rows(self, name: str) -> Locator:
        """Return the rows of a part that are there."""
        return self.part(name).locator(".icestats-table-space [role=row]:not(.icestats-table-pending)")

    def settle(self) -> None:
        """Wait until nothing is read or redrawn any more."""
        expect(self.page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        expect(self.page.locator(".icestats-loading")).to_have_count(0)

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
        """Take the picture that the documentation shows, with ICESTATS_SCREENSHOTS set into docs/images.

        Of a part all of it; by default the upper part of the explorer.
        """
        IMAGES.mkdir(parents=True, exist_ok=True)
        self.page.mouse.move(2, 2)
        path = IMAGES / f"{name}.png"
        if what is not None:
            what.screenshot(path=path, animations="disabled")
        else:
            whole = self.page.locator(".icestats-explorer").first
            whole.scroll_into_view_if_needed()
            box = whole.bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
            box["height"] = min(box["height"], TALLEST)
            self.page.screenshot(path=path, clip=box, animations="disabled")
        if path.stat().st_size < SMALLEST:
            raise AssertionError(f"{path} has hardly anything in it: {path.stat().st_size} bytes")


def open_explorer(browser: Browser, address: str, folder: Path, name: str, cells: tuple[str, ...]) -> ExplorerPage:
    """Open a notebook with an explorer in it, and run it."""
    write_notebook(folder / name, cells)
    opened = ExplorerPage(browser.new_page(viewport={"width": 1280, "height": HEIGHT}))
    open_notebook(opened.page, address.format(name))
    run_all_cells(opened.page)
    expect(opened.page.locator(".icestats-explorer").first).to_be_visible(timeout=2 * MINUTE_MS)
    expect(opened.part("partitions").locator(".main-svg").first).to_be_visible()
    opened.settle()
    return opened
