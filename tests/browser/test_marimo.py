"""The explorer in marimo, the other host of widgets beside Jupyter."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.lab import answers
from benchmarks.measuring import installed_environment

MINUTE_MS = 60_000
LOCAL = re.compile(r"(https?|ws)://127\.0\.0\.1:|data:|blob:")
pytestmark = [pytest.mark.browser, pytest.mark.spark]

APP = """
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import icestats

    explorer = icestats.load("demo.events").explore()
    return (explorer,)


@app.cell
def _(explorer):
    explorer
    return
"""


@pytest.fixture(scope="module")
def address(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app, run by a marimo of its own: nothing of the user's is read or written."""
    folder = tmp_path_factory.mktemp("marimo")
    (folder / "app.py").write_text(APP)
    own = {f"XDG_{place}_HOME": str(folder / place.lower()) for place in ("CACHE", "CONFIG", "DATA", "STATE")}
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", f"--port={port}", "--no-token"]
    log = folder / "log"
    variables = {**installed_environment(), "HOME": str(folder), **own, "ICESTATS_HOME": str(demo_home)}
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=output) as server,
    ):
        try:
            wait_for_server(server, f"http://127.0.0.1:{port}", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def wait_for_server(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Return once the server answers, a minute at most."""
    for _ in range(600):
        if answers(f"{url}/health"):
            return
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"marimo did not start: {log.read_text()[-2000:]}")


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """A session of its own, which has loaded nothing from elsewhere and complained of nothing."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    expect(page.locator(".icestats-explorer")).to_be_visible(timeout=2 * MINUTE_MS)
    yield page
    page.close()
    assert not complaints
    assert not [url for url in requests if not LOCAL.match(url)]


def test_marimo_shows_the_explorer_and_it_answers(page: Page) -> None:
    """Figures, tables and the filter work as in JupyterLab, inside marimo's shadow root."""
    root = page.locator(".icestats-explorer")
    expect(root.locator("[data-part=partitions] svg.icestats-figure")).to_be_visible(timeout=MINUTE_MS)
    # Its white background is `color(srgb 1 1 1)`.
    expect(root).not_to_have_class(re.compile("icestats-dark"))
    root.get_by_role("tab", name="Columns").click()
    expect(root.locator("[data-part=columns] .icestats-tbody [role=rowheader]")).to_have_count(10, timeout=MINUTE_MS)
    root.get_by_role("rowheader", name="quantity").click()
    expect(root.locator("[data-part=histogram] .icestats-caption")).to_contain_text("quantity, int", timeout=MINUTE_MS)
    box = root.get_by_role("combobox").first
    box.fill("price < 'cheap'")
    expect(box).to_have_attribute("aria-invalid", "true", timeout=MINUTE_MS)
    box.fill("device_id = 74")
    box.press("Escape")
    root.get_by_role("tab", name="Query").click()
    expect(root.locator("[data-part=plan] .icestats-caption")).to_contain_text("device_id = 74", timeout=MINUTE_MS)
