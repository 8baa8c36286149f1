"""Strings of a table are data: HTML and scripts in them are shown as text, everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

import icestats
from benchmarks.lab import open_notebook, run_all_cells, write_notebook
from tests.computed_statistics import compute_here

MINUTE_MS = 60_000
HOSTILE = "<img src=x onerror='window.broken_into=1'><script>window.broken_into=1</script><b>b</b>"
HOSTILE += r" $\href{https://nowhere.invalid/}{b}$"
SCHEMA = Schema(
    NestedField(1, HOSTILE, StringType(), required=False), NestedField(2, "v", StringType(), required=False)
)
SHORT_PATHS = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


@pytest.fixture(scope="module")
def shown(chromium: Browser, lab: str, lab_folder: Path, tmp_path_factory: Any) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("hostile")
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), HOSTILE))
    own = {HOSTILE: HOSTILE, **SHORT_PATHS}
    table = catalog.create_table("db.hostile", SCHEMA, partition_spec=spec, properties=own)
    rows = {HOSTILE: [HOSTILE, "plain", None] * 20, "v": [f"{HOSTILE}{i}" for i in range(60)]}
    table.append(pa.table(rows, schema=SCHEMA.as_arrow()), snapshot_properties={HOSTILE: HOSTILE})
    catalog.close()
    compute_here(icestats.load("db.hostile", catalog=properties)).commit()
    cells = (
        f"import icestats\ntable = icestats.load('db.hostile', catalog={properties!r})\ntable",
        f"table.explore(column={HOSTILE!r})",
        "table.plan(\"v = '<img src=x onerror=window.broken_into=1>'\")",
        "table.estimate(\"v = '<img src=x onerror=window.broken_into=1>'\")",
        "table.layout()",
    )
    write_notebook(lab_folder / "hostile.ipynb", cells)
    found = chromium.new_page(viewport={"width": 1440, "height": 900})
    open_notebook(found, lab.format("hostile.ipynb"))
    run_all_cells(found)
    expect(part(found, "partitions").locator("svg.icestats-figure").first).to_be_visible(timeout=2 * MINUTE_MS)
    yield found
    found.close()


def part(page: Page, name: str) -> Locator:
    return page.locator(f".icestats-explorer [data-part='{name}']").first


def open_tab(page: Page, name: str) -> None:
    page.locator(".icestats-explorer").first.get_by_role("tab", name=name).click()


def test_names_and_values_are_text(shown: Page) -> None:
    """Tables, axes, tree and titles show the very characters."""
    open_tab(shown, "Columns")
    expect(part(shown, "columns").get_by_role("row").filter(has_text="onerror").first).to_be_visible()
    expect(part(shown, "histogram").locator(".icestats-caption")).to_contain_text(HOSTILE)
    open_tab(shown, "Overview")
    expect(part(shown, "partitions").locator("svg text").filter(has_text="<img").first).to_be_visible()
    open_tab(shown, "Layout")
    tree = part(shown, "outline")
    tree.locator(".icestats-tbody [role=row]").nth(1).focus()
    shown.keyboard.press("ArrowRight")
    expect(tree.locator("[aria-level='3']").filter(has_text="<img src").first).to_be_visible()


def test_tooltips_are_text(shown: Page) -> None:
    open_tab(shown, "Overview")
    part(shown, "partitions").locator("[data-key]").nth(1).hover()
    expect(shown.locator(".icestats-tip").first).to_contain_text("<img src=x")
    assert shown.locator(".icestats-tip img, .icestats-tip script").count() == 0


def test_errors_filters_selections_and_code_are_text(shown: Page) -> None:
    """What a person types, and what is marked, comes back as text."""
    root = shown.locator(".icestats-explorer").first
    box = root.get_by_role("combobox").first
    box.fill(f"{HOSTILE} = 1")
    expect(root.locator(".icestats-query")).to_contain_text("<img")
    box.fill("v = '<b>7</b>'")
    box.press("Escape")
    open_tab(shown, "Query")
    expect(part(shown, "plan").locator(".icestats-caption")).to_contain_text("<b>7</b>")
    open_tab(shown, "Overview")
    part(shown, "partitions").locator("[data-key]").nth(1).click()
    expect(root.locator(".icestats-chip")).to_contain_text("<img src=x")
    root.locator(".icestats-head").get_by_role("button", name="Code").click()
    expect(root.locator(".icestats-reply pre")).to_contain_text("onerror")
    root.locator(".icestats-reply").get_by_role("button", name="Close").click()


def test_a_commit_and_its_report_are_text(shown: Page) -> None:
    """From the choice to the commit: manifests' statistics, made without Spark, are committed from the panel."""
    open_tab(shown, "Statistics")
    panel = part(shown, "compute")
    # In this order something is chosen at all times: a button that is disabled for a moment takes no click.
    panel.get_by_label("manifest statistics").check()
    panel.get_by_label("Theta, KLL, common values, column statistics").uncheck()
    expect(panel.get_by_text("from the manifests, without Spark.")).to_be_visible()
    panel.get_by_role("button", name="Compute", exact=True).click()
    expect(panel.get_by_role("button", name="Commit", exact=True)).to_be_enabled()
    panel.get_by_role("button", name="Commit", exact=True).click()
    expect(panel.get_by_text("Committed").first).to_be_visible()


def test_nothing_of_it_has_run(shown: Page) -> None:
    """No script of the table ran, and no element of its making is in the page, rich representations among it."""
    expect(shown.locator(".jp-OutputArea-output").nth(4)).to_be_visible()
    assert shown.evaluate("window.broken_into === undefined")
    outputs = shown.locator(".jp-OutputArea-output")
    assert outputs.locator("img[src='x'], script").count() == 0
    assert outputs.get_by_text("<img src=x").count() > 0
    assert outputs.locator("mjx-container, a[href*=invalid]").count() == 0
    assert shown.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
