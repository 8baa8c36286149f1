"""The explorer for those who have no kernel: what a notebook keeps of it, and reports from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter

import icestats
from icestats.cli import entry
from icestats_widgets.page.static_page import MOST_BYTES

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process; gives exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["icestats", *arguments])
        with pytest.raises(SystemExit) as stop:
            entry.main()
        out, err = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, out, err

    return run


def test_a_notebook_that_was_run_to_its_end_keeps_a_picture(hostile_location: str, tmp_path: Path) -> None:
    """Beside the widget stands what was seen when `wait` had come back; nothing else is printed, and it is small."""
    cells = [f"import icestats\nexplorer = icestats.load({hostile_location!r}).explore()\nexplorer", "explorer.wait()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    widget, picture = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in widget.data
    assert [output.data for output in notebook.cells[1].outputs] == [{"text/plain": "True"}]
    html = picture.data["text/html"]
    assert len(html.encode()) <= MOST_BYTES
    assert "<script" not in html
    for part in ("What to look at first", "Partitions", "Columns", "Snapshots"):
        assert f"<h3>{part}</h3>" in html
    assert "Reading the manifests" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<img src=x" not in html
    del notebook.metadata["widgets"]
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert "<h3>Partitions</h3>" in page


def test_a_report_from_the_command_line_has_the_filter_and_the_column(
    run: Run, hostile_location: str, tmp_path: Path
) -> None:
    """Nothing on stdout: the answer is the file."""
    path = tmp_path / "report.html"
    arguments = ("--filter", "price < 3", "--column", "price")
    assert run("report", hostile_location, "-o", str(path), *arguments) == (0, "", "")
    text = path.read_text()
    assert "<code>price &lt; 3</code>" in text
    assert "Plan: what a scan reads, and why</h3>" in text
    assert "no KLL sketch of column &#x27;price&#x27;" in text
    assert "table.histogram(" not in text, "it would only fail"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-o", "{tmp}/missing/report.html"), "the report cannot be written to"),
        (("-o", "{tmp}"), "the report cannot be written to"),
        (("-o", "{tmp}/r.html", "--filter", "nope = 3"), "the filter 'nope = 3' names no column 'nope'"),
        (("-o", "{tmp}/r.html", "--filter", "price <"), "the filter 'price <' cannot be read"),
        (("-o", "{tmp}/r.html", "--column", "nope"), "no column 'nope'"),
        ((), "Missing option '-o'"),
    ],
)
def test_a_wrong_call_is_one_line_and_writes_nothing(
    run: Run, hostile_location: str, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    """A folder that is not there, a filter that does not fit, a column that the table has not."""
    given = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    code, out, err = run("report", hostile_location, *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("icestats: ")
    assert complaint in err
    assert not list(tmp_path.rglob("*.html"))


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        (3, "path is 3: expected where to write the report"),
        (b"r.html", "path is b'r.html': expected where"),
        (["r.html"], r"path is \['r.html'\]: expected where"),
        ("r\0.html", "the report cannot be written to r.\\.html: embedded null byte"),
    ],
)
def test_what_is_no_path_is_refused_in_one_line(hostile_table: icestats.Table, path: Any, complaint: str) -> None:
    with pytest.raises(icestats.CallError, match=complaint):
        hostile_table.explore().to_html(path)


@pytest.mark.parametrize("seconds", [None, "60", True, []])
def test_a_time_to_wait_is_a_number(hostile_table: icestats.Table, seconds: Any) -> None:
    with pytest.raises(icestats.CallError, match=r"timeout_s is .*: expected seconds"):
        hostile_table.explore().wait(seconds)


@pytest.mark.parametrize("seconds", [float("inf"), 1e300, 10**30, np.float64(60)])
def test_a_wait_may_last_as_long_as_it_takes(hostile_table: icestats.Table, seconds: Any) -> None:
    assert hostile_table.explore().wait(seconds)


def test_without_the_explorers_packages_the_extra_is_named(
    run: Run, hostile_location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has installed the kit alone reads what to install."""
    monkeypatch.setitem(sys.modules, "icestats_widgets", None)
    code, out, err = run("report", hostile_location, "-o", str(tmp_path / "report.html"))
    assert (code, out) == (1, "")
    assert "pip install 'icestats[explorer]'" in err
