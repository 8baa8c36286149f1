"""The documentation site in a browser that has no network: it looks as it should, and search finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

ROOT = Path(__file__).resolve().parents[2]
MINUTE_MS = 60_000
pytestmark = pytest.mark.browser


class Quiet(SimpleHTTPRequestHandler):
    """A server that does not write down what it serves."""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_reader_without_a_network_misses_nothing(chromium: Browser, address: str) -> None:
    """The tour shows its pictures, search finds a method, and every request goes to the site."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/tour.html")
    page.wait_for_function("[...document.querySelectorAll('article img')].every((i) => i.complete && i.naturalWidth)")
    pictures = (ROOT / "docs/tour.md").read_text().count("![")
    assert page.locator("article img").count() == pictures > 5
    search = page.get_by_role("textbox", name="Search")
    search.click()
    expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching", timeout=MINUTE_MS)
    search.press_sequentially("orphaned")
    found = page.locator(".md-search-result__link").filter(has_text="Find and remove orphaned statistics files")
    expect(found.first).to_be_visible(timeout=MINUTE_MS)
    page.goto(f"{address}/reference/table.html")
    expect(page.get_by_role("heading", name="histogram").first).to_be_visible()
    assert [url for url in requests if not re.match(rf"{address}/|data:|blob:", url)] == []
    assert complaints == []
    page.close()
