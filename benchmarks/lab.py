"""A JupyterLab of its own in a real browser: what the benchmark of the explorer and the browser tests open."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.measuring import installed_environment
from scripts.prerequisites import find_chromium

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
TOKEN = "icestats"  # noqa: S105 - of a server on loopback that lives as long as the test
MINUTE_MS = 60_000


class LabError(Exception):
    """JupyterLab or a browser cannot be started; the message is one line."""


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Open this machine's Chromium, with a fresh profile and nothing to say to anybody."""
    path = find_chromium()
    if path is None:
        raise LabError("no Chromium here: `make test` installs one, or run the other tests with `-m 'not browser'`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def run_lab(work: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a JupyterLab on a folder of notebooks; its address takes the path of a notebook.

    Parameters
    ----------
    work : Path
        The notebooks.
    folder : Path
        For settings, logs and the like: nothing of the user's is read or written.
    environment : mapping of str to str
        Further variables, which kernels inherit.
    """
    write_settings(folder / "settings")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0"]
    command += [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={work}",
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.password=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
        "--LabApp.collaborative=False",
        "--LabApp.expose_app_in_browser=True",
    ]
    places = ("config", "data", "runtime")
    own = {f"JUPYTER_{place.upper()}_DIR": str(folder / place) for place in places}
    own |= {f"JUPYTERLAB_{place.upper()}_DIR": str(folder / place) for place in ("settings", "workspaces")}
    variables = {**installed_environment(), **own, "IPYTHONDIR": str(folder / "ipython"), **environment}
    log = folder / "log"
    with log.open("w") as output, subprocess.Popen(command, env=variables, stdout=output, stderr=output) as server:
        try:
            yield f"{wait_for_server(server, folder / 'runtime', log)}lab/tree/{{}}?token={TOKEN}&reset"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def write_settings(folder: Path) -> None:
    """Keep the front end from asking whether it may fetch news."""
    path = folder / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))


def wait_for_server(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Return the address once the server answers there, ten minutes at most: it writes it down when it has a port."""
    for _ in range(6_000):
        if server.poll() is not None:
            break
        for file in runtime.glob("jpserver-*.json"):
            url = read_address(file)
            if url is not None and answers(f"{url}api?token={TOKEN}"):
                return url
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    raise LabError(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def read_address(file: Path) -> str | None:
    """Return the address that a server has written down; None while it writes, as it makes the file first."""
    try:
        url: str = json.loads(file.read_text())["url"]
    except json.JSONDecodeError:
        return None
    return url


def answers(url: str) -> bool:
    """Return whether a server answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - of the server that was just started
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError):
        return False


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    found: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for i, source in enumerate(cells)
    ]
    document = {"cells": found, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(document))


def open_notebook(page: Page, address: str) -> None:
    """Open a notebook, wait for its kernel, and close the side bar."""
    page.goto(address)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=2 * MINUTE_MS)
    if page.locator("#jp-left-stack").is_visible():
        page.keyboard.press("Control+b")
        page.locator("#jp-left-stack").wait_for(state="hidden")


def run_all_cells(page: Page) -> None:
    """Press `Run All Cells`."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
