from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchmarks.explorer_page import ExplorerPage, open_explorer
from benchmarks.lab import LabError, open_chromium, run_lab

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, with a fresh profile and nothing to say to anybody."""
    try:
        with open_chromium() as browser:
            yield browser
    except LabError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebooks of the JupyterLab are, copies of those of the project: tests may add their own."""
    work = tmp_path_factory.mktemp("notebooks") / "work"
    shutil.copytree(NOTEBOOKS, work)
    return work


@pytest.fixture(scope="session")
def lab(demo_home: Path, lab_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab of its own on copies of the notebooks; its address, which takes the path of a notebook."""
    environment = {"ICESTATS_HOME": str(demo_home)}
    with run_lab(lab_folder, tmp_path_factory.mktemp("lab"), environment) as address:
        yield address


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, chromium: Browser, lab: str, lab_folder: Path) -> Iterator[ExplorerPage]:
    """A page on a notebook of the module's `CELLS`, which its tests share."""
    name = Path(request.module.__file__).stem
    found = open_explorer(chromium, lab, lab_folder, f"{name}.ipynb", request.module.CELLS)
    yield found
    found.page.close()
