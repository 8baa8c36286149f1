"""Strings of a table are data: HTML and scripts in them are shown as text, everywhere."""

from __future__ import annotations

import re
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

MINUTE_MS = 60_000
HOSTILE = "<img src=x onerror='window.broken_into=1'><script>window.broken_into=1</script><b>b</b>"
SCHEMA = Schema(
    NestedField(1, HOSTILE, StringType(), required=False), NestedField(2, "v", StringType(), required=False)
)
pytestmark = [pytest.mark.browser, pytest.mark.spark]
expect.set_options(timeout=MINUTE_MS)


@pytest.fixture(scope="module")
def shown(chromium: Browser, lab: str, lab_folder: Path, spark: Any, tmp_path_factory: Any) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("hostile")
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), HOSTILE))
    table = catalog.create_table("db.hostile", SCHEMA, partition_spec=spec, properties={HOSTILE: HOSTILE})
    rows = {HOSTILE: [HOSTILE, "plain", None] * 20, "v": [f"{HOSTILE}{i}" for i in range(60)]}
    table.append(pa.table(rows, schema=SCHEMA.as_arrow()), snapshot_properties={HOSTILE: HOSTILE})
    catalog.close()
    icestats.load("db.hostile", catalog=properties).compute().commit()
    cells = (
        f"import icestats\ntable = icestats.load('db.hostile', catalog={properties!r})\ntable",
        f"table.explore(column={HOSTILE!r})",
        "table.plan(\"v = '<img src=x onerror=window.broken_into=1>'\")",
        "table.estimate(\"v = '<img src=x onerror=window.broken_into=1>'\")",
        "table.layout()",
    )
    write_notebook(lab_folder / "hostile.ipynb", cells)
    found = chromium.new_page(viewport={"width": 1280, "height": 4600})
    open_notebook(found, lab.format("hostile.ipynb"))
    run_all_cells(found)
    expect(part(found, "partitions").locator(".main-svg").first).to_be_visible(timeout=2 * MINUTE_MS)
    yield found
    found.close()


def part(page: Page, name: str) -> Locator:
    return page.locator(f".icestats-explorer .icestats-part.icestats-{name}").first


def test_names_and_values_are_text(shown: Page) -> None:
    """Cards, axes, tree and heading show the very characters."""
    expect(part(shown, "columns").get_by_role("row").filter(has_text="onerror").first).to_be_visible()
    expect(part(shown, "histogram").locator("h4")).to_have_text(f"Distribution of {HOSTILE}")
    expect(part(shown, "histogram").locator(".xtitle").first).to_contain_text("<img src=x")
    expect(part(shown, "partitions").locator(".xtick text").filter(has_text="<img src").first).to_be_visible()
    tree = part(shown, "outline")
    tree.locator(".icestats-table-space [role=row]").nth(1).focus()
    shown.keyboard.press("ArrowRight")
    expect(tree.locator("[aria-level='3']").filter(has_text="<img src").first).to_be_visible()


def test_hovers_are_text(shown: Page) -> None:
    """plotly reads a kind of HTML in hovers: what is from the table is not among it."""
    bar = part(shown, "partitions").locator(".barlayer .point path").nth(2)
    bar.hover(force=True)
    hover = part(shown, "partitions").locator(".hoverlayer text").first
    expect(hover).to_contain_text("<img src=x")
    assert part(shown, "partitions").locator(".hoverlayer img, .hoverlayer script").count() == 0


def test_errors_filters_selections_and_code_are_text(shown: Page) -> None:
    """What a person types, and what is marked, comes back as text."""
    box = part(shown, "plan").get_by_role("textbox")
    box.fill(f"{HOSTILE} = 1")
    expect(part(shown, "plan").locator(".icestats-filter-error")).to_contain_text("<img src=x")
    box.fill("v = '<b>7</b>'")
    expect(part(shown, "plan").locator(".icestats-caption")).to_contain_text("<b>7</b>")
    part(shown, "partitions").locator(".barlayer .point path").nth(2).click(force=True)
    expect(part(shown, "selection")).to_contain_text("<img src=x")
    part(shown, "selection").get_by_role("button", name="Code").click()
    expect(part(shown, "selection").locator(".icestats-code")).to_contain_text("onerror")


def test_a_commit_and_its_report_are_text(shown: Page) -> None:
    """From the choice to the commit: manifests' statistics, made without Spark, are committed from the panel."""
    panel = part(shown, "compute")
    panel.get_by_label("Theta, KLL, column statistics").uncheck()
    panel.get_by_label("manifest statistics").check()
    for name in ("Compute", "Preview commit", "Commit"):
        panel.get_by_role("button").filter(has_text=re.compile(rf"^\s*{name}$")).click()
    expect(panel).to_contain_text("Committed. The table above")
    expect(part(shown, "statistics")).to_contain_text("manifest statistics")


def test_nothing_of_it_has_run(shown: Page) -> None:
    """No script of the table ran, and no element of its making is in the page, rich representations among it."""
    expect(shown.locator(".jp-OutputArea-output").nth(4)).to_be_visible()
    assert shown.evaluate("window.broken_into === undefined")
    outputs = shown.locator(".jp-OutputArea-output")
    assert outputs.locator("img[src='x'], script").count() == 0
    assert outputs.get_by_text("<img src=x").count() > 0
    assert shown.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
