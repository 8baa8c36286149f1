"""A notebook about the explorer in a real JupyterLab: all its cells, run as a person runs them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.lab import MINUTE_MS, open_notebook, run_all_cells

pytestmark = [pytest.mark.browser, pytest.mark.spark]


def test_exploring_runs_to_its_end(chromium: Browser, lab: str) -> None:
    """Every cell of 01_explore has run, none with an error, and the explorer shows what was chosen from Python."""
    page = chromium.new_page(viewport={"width": 1440, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    open_notebook(page, lab.format("01_explore.ipynb"))
    run_all_cells(page)
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    expect(cells.last.locator(".jp-InputPrompt")).to_have_text(f"[{cells.count()}]:", timeout=2 * MINUTE_MS)
    explorer = page.locator(".icestats-explorer").first
    expect(explorer.locator("svg.icestats-figure").first).to_be_visible(timeout=MINUTE_MS)
    explorer.get_by_role("tab", name="Columns").click()
    panel = explorer.locator("[data-part=histogram]")
    expect(panel.locator(".icestats-caption")).to_contain_text("device_id", timeout=MINUTE_MS)
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert page.get_by_text("Traceback (most recent call last)").count() == 0
    assert complaints == []
    page.close()
