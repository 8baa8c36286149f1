from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from tests.spark_versions import skip_before

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 180
"""What a cell may take before it counts as hanging: a whole notebook takes less than a minute on an idle machine."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_there_are_notebooks() -> None:
    """The tests below look at something."""
    assert "01_explore" in {path.stem for path in NOTEBOOKS}


@pytest.mark.spark
def test_it_runs_from_top_to_bottom(notebook: Path, demo_home: Path) -> None:
    """On the demo warehouse no cell raises, each in time."""
    resources, read = {"metadata": {"path": str(FOLDER)}}, nbformat.read(notebook, as_version=4)
    if any(".to_spark(" in cell.source for cell in read.cells):
        skip_before("4.1", "`to_spark` is refused: it is known to work with Spark 4.1 alone")
    NotebookClient(read, timeout=SECONDS, resources=resources).execute()


def test_its_outputs_are_stripped(notebook: Path) -> None:
    """No output and no execution count is committed."""
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    assert [(cell.outputs, cell.execution_count) for cell in cells] == [([], None)] * len(cells)


def test_its_links_lead_somewhere(notebook: Path) -> None:
    """Each notebook that a page names is there."""
    text = "".join(cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "markdown")
    assert [link for link in re.findall(r"\]\((\S+\.ipynb)\)", text) if not (FOLDER / link).exists()] == []


def test_its_script_says_the_same(notebook: Path) -> None:
    """The paired .py has the same cells in the same order."""
    pair = jupytext.read(notebook.with_suffix(".py"))
    cells = nbformat.read(notebook, as_version=4).cells
    assert [(cell.cell_type, cell.source) for cell in pair.cells] == [(cell.cell_type, cell.source) for cell in cells]
