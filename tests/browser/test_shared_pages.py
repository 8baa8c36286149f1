"""What is shared of the explorer, as its readers open it: a saved notebook, and a report."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from benchmarks.lab import MINUTE_MS, open_notebook

pytestmark = [pytest.mark.browser, pytest.mark.spark]
CELLS = ["import icestats\nexplorer = icestats.demo('events').explore()\nexplorer", "explorer.wait()"]


@pytest.fixture(scope="module")
def report(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on demo.events with a filter."""
    explorer = icestats.demo("events").explore()
    explorer.state.row_filter = "device_id = 74"
    assert explorer.wait()
    path = tmp_path_factory.mktemp("report") / "report.html"
    explorer.to_html(path)
    return path


def images_are_drawn(page: Page) -> bool:
    """Whether there are images, and each is one that the browser can draw."""
    found = page.locator(".icestats-static img").evaluate_all("all => all.map(one => one.complete && one.naturalWidth)")
    return bool(found) and all(found)


def test_a_saved_notebook_of_a_stranger_shows_the_tables_state(chromium: Browser, lab: str, lab_folder: Path) -> None:
    """JupyterLab does not trust it, and takes out scripts and styles: figures, findings and columns are there."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    nbformat.write(notebook, lab_folder / "saved.ipynb")
    page = chromium.new_page(viewport={"width": 1440, "height": 900})
    open_notebook(page, lab.format("saved.ipynb"))
    for part in ("What to look at first", "Partitions", "Columns"):
        expect(page.get_by_role("heading", name=part, exact=True)).to_have_count(1, timeout=MINUTE_MS)
    expect(page.locator(".icestats-explorer")).to_have_count(0)
    assert images_are_drawn(page)
    page.close()


@pytest.mark.parametrize("width", [1440, 800])
def test_a_report_needs_no_network_and_its_tables_answer(chromium: Browser, report: Path, width: int) -> None:
    """Sorted by a click, searched by words, no wider than the window; it asks for nothing and complains of nothing."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True)
    page = context.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("request", lambda request: heard.append(request.url))
    page.goto(report.as_uri())
    columns = page.locator("#columns")
    columns.get_by_role("columnheader", name="distinct").click()
    expect(columns.locator("tbody tr").first).to_contain_text("event_type")
    columns.get_by_role("searchbox").fill("device")
    expect(columns.locator("tbody tr:visible")).to_have_count(1)
    page.get_by_role("link", name="Snapshots").click()
    expect(page.locator("#snapshots h3")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert set(heard) <= {report.as_uri(), f"{report.as_uri()}#snapshots"}
    context.close()


def test_a_report_on_long_names_is_no_wider_than_the_window(chromium: Browser, tmp_path: Path) -> None:
    """A name of 2,000 letters without a space, in findings, captions and tables."""
    name = "n" * 2_000
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    bare = {"write.metadata.metrics.default": "none"}
    table = catalog.create_table("db.t", pa.schema([(name, pa.int64())]), properties=bare)
    table.append(pa.table({name: range(40)}))
    icestats.load(table.metadata_location).explore(column=name).to_html(tmp_path / "report.html")
    catalog.close()
    page = chromium.new_page(viewport={"width": 800, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    expect(page.locator("#findings h4").filter(has_text=name)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 800
    page.close()


def test_a_report_fits_on_paper(chromium: Browser, report: Path) -> None:
    """No table is cut at the right, long ones end, and colours are those of light paper."""
    page = chromium.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 1032, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1032
    too_wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.locator(".wide").evaluate_all(too_wide) == 0
    expect(page.locator("#sizes tbody tr:visible")).to_have_count(40)
    expect(page.locator(".printed").first).to_be_visible()
    assert page.locator("main").evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
