from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
TOKEN = "icestats"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, with a fresh profile and nothing to say to anybody."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("no Chromium on PATH: `apt install chromium`, or run the other tests with `-m 'not browser'`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(demo_statistics: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab of its own on copies of the notebooks; its address, which takes the path of a notebook."""
    folder = tmp_path_factory.mktemp("lab")
    work = folder / "work"
    shutil.copytree(NOTEBOOKS, work)
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
    ]
    environment = {
        **os.environ,
        "ICESTATS_HOME": str(demo_statistics),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    log = folder / "log"
    with log.open("w") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as server:
        try:
            address = wait_for_server(server, folder / "runtime", log)
            yield f"{address}lab/tree/{{}}?token={TOKEN}&reset"
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
    """Return the address once the server answers there: it writes it down when it has found a port."""
    for _ in range(600):
        if server.poll() is not None:
            break
        for file in runtime.glob("jpserver-*.json"):
            url: str = json.loads(file.read_text())["url"]
            if answers(f"{url}api?token={TOKEN}"):
                return url
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, TimeoutError):
        return False
