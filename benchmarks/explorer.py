"""The explorer on a large table, in a real browser: the first picture, clicks, messages, memory.

`python -m benchmarks explorer --table METADATA_JSON` takes a table that is there; by default one is generated.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.generated_table import Shape, generate
from benchmarks.lab import MINUTE_MS, open_chromium, open_notebook, run_lab, write_notebook
from benchmarks.measuring import print_table, spread
from benchmarks.published import publish

_STATUS = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
MEMORY = f"print('peak memory is', {_STATUS}, 'kB')"
_UNTIL = """
async ({act, seen}) => {
  const find = new Function('return (' + seen + ')');
  const before = JSON.stringify(find());
  const started = performance.now();
  new Function(act)();
  while (JSON.stringify(find()) === before) {
    if (performance.now() - started > 60000) throw new Error('nothing has changed: ' + seen);
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return performance.now() - started;
}
"""
"""Does something and waits until what is seen is another, and is painted."""
_TREE = "document.querySelector('.icestats-outline .icestats-table-space')"
_TEXT = """((text) => text.includes('…') ? window.told : (window.told = text))(
document.querySelector('.icestats-selection-text').textContent)"""
"""What is marked, with its figures."""
_WATCH = """
() => {
  const tree = () => document.querySelector('.icestats-outline .icestats-table-space');
  const find = (query) => document.querySelector('.icestats-' + query);
  const stages = {
    picture: () => find('summary .icestats-figures b') && find('explorer .icestats-compute')
      && find('snapshots [role=row] .icestats-cell-text') && find('columns .icestats-table-space [role=row]')
      && tree()?.querySelectorAll('[role=row]:not(.icestats-table-pending)').length > 5,
    manifests: () => find('manifests .barlayer .point'),
    everything: () => find('manifests .barlayer .point') && find('partitions .heatmaplayer image')
      && tree().children.length > 5 && !tree().innerText.includes('…') && !find('loading')
      && /a click shows a distribution/.test(find('columns .icestats-caption').textContent),
  };
  window.stages = {};
  let started;
  document.addEventListener('keydown', (event) => (started ??= event.timeStamp), { capture: true });
  const look = () => {
    for (const name of Object.keys(stages)) {
      if (!started || name in window.stages || !stages[name]()) continue;
      window.stages[name] = 0;
      // It is painted by the frame after this one.
      requestAnimationFrame(() => requestAnimationFrame(() => (window.stages[name] = performance.now() - started)));
    }
    if (!window.stages.everything) requestAnimationFrame(look);
  };
  look();
}
"""
"""Notes when each stage is painted, from the keys that run the cell."""
STAGES = {
    "picture": "from the call to the first picture: figures, manifest tree, snapshots, columns",
    "manifests": "from the call to the chart of the manifests",
    "everything": "from the call to everything: roll-ups, partitions, findings",
}


@dataclass(frozen=True, slots=True)
class Click:
    """What a person does, and what is then seen."""

    name: str
    act: str
    seen: str
    times: int = 5


def _row(number: int) -> str:
    return f"{_TREE}.querySelectorAll('[role=row]')[{number}]"


def _press(target: str, name: str) -> str:
    return f"{target}.dispatchEvent(new KeyboardEvent('keydown', {{key: '{name}', bubbles: true}}))"


def _head(part: str, column: str) -> str:
    return f"document.querySelector('.icestats-{part} [data-column={column}]').click()"


_ROWS = f"{_TREE}.innerText.slice(0, 4000)"
_CAPTION = "document.querySelector('.icestats-partitions .icestats-caption').textContent"
_MAP = "document.querySelector('.icestats-partitions [tabindex]')"
_SCROLLED = f"{_TREE}.querySelector('.icestats-table-pending') ? 0 : {_ROWS}"
_MARK = f"window.n = (window.n ?? 1) + 1; {_row(0)}.parentElement.children[window.n].click()"
_MARK_AND_COUNT = f"""if (window.drawn === undefined) {{
  window.drawn = 0;
  document.querySelector('.icestats-partitions .js-plotly-plot').on('plotly_afterplot', () => (window.drawn += 1));
}}
{_MARK}"""
_TOGGLE = f"""const row = {_row(1)};
const key = row.getAttribute('aria-expanded') === 'true' ? 'ArrowLeft' : 'ArrowRight';
row.dispatchEvent(new KeyboardEvent('keydown', {{key, bubbles: true}}));"""
_CHOOSE = """window.c = (window.c ?? 2) + 1;
document.querySelectorAll('.icestats-columns .icestats-table-space [role=row]')[window.c % 8].click();"""
_SHOW = """window.v = (window.v ?? 0) + 1;
document.querySelectorAll('.icestats-partitions .widget-toggle-button')[window.v % 3].click();"""
_SCROLL = """const area = document.querySelector('.icestats-outline .icestats-table-scroll');
window.p = ((window.p ?? 0) + 0.37) % 1;
area.scrollTop = area.scrollHeight * window.p;"""
CLICKS = (
    Click("a manifest is marked: until its figures are seen", _MARK, _TEXT, 8),
    Click(
        "a manifest is marked: until the map of partitions, the last part, is of it", _MARK_AND_COUNT, "window.drawn", 5
    ),
    Click(
        "partitions are marked by the arrow keys: until their figures are seen", _press(_MAP, "ArrowRight"), _TEXT, 8
    ),
    Click("the selection is cleared", "document.querySelector('.icestats-selection button').click()", _TEXT, 1),
    Click("a manifest is opened, and closed", _TOGGLE, _ROWS, 6),
    Click("a column is chosen", _CHOOSE, "document.querySelector('.icestats-histogram h4').textContent"),
    Click("partitions show files, records, bytes", _SHOW, _CAPTION),
)
IN_LIST = (
    Click("all files: scrolled to another place", _SCROLL, _SCROLLED, 8),
    Click("all files: sorted by size", _head("outline", "size"), _ROWS, 4),
)
AT_LAST = (Click("the tree is sorted", _head("outline", "records"), _ROWS),)
FILTER = "event_time >= '2026-09-05T00:00:00' and event_time < '2026-09-06T00:00:00'"


@dataclass(slots=True)
class Measured:
    """What the runs have shown."""

    stage_seconds: dict[str, list[float]] = field(default_factory=dict)
    clicks_ms: dict[str, list[float]] = field(default_factory=dict)
    page_seconds: list[float] = field(default_factory=list)
    list_seconds: list[float] = field(default_factory=list)
    largest_message: int = 0
    peak_mb: list[float] = field(default_factory=list)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks explorer", description=__doc__)
    parser.add_argument("--table", help="the location of a metadata.json")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        location = options.table or str(generate(scratch, Shape()) / "metadata" / "v1.metadata.json")
        measured = measure(location, scratch, options.runs)
    rows = build_rows(measured)
    print_table(("what", "aim", "measured"), rows)
    if options.write:
        write_page(rows, options.runs)


def measure(location: str, scratch: Path, runs: int) -> Measured:
    """Open the explorer in fresh kernels, and click through it."""
    # Without the local cache: each run reads every manifest, as the first time that a person opens a table.
    environment = {"ICESTATS_CACHE": "off"}
    work = scratch / "work"
    work.mkdir()
    measured = Measured()
    with open_chromium() as browser, run_lab(work, scratch, environment) as address:
        for run in range(runs):
            name = f"run{run}.ipynb"
            write_notebook(work / name, ["import icestats", f"icestats.load({location!r}).explore()", MEMORY])
            _run_once(browser, address.format(name), measured)
    return measured


def _run_once(browser: Browser, address: str, measured: Measured) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 2400})
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: _note(measured, data)))
    open_notebook(page, address)
    page.locator(".jp-Cell").first.click()
    page.keyboard.press("Shift+Enter")
    page.locator(".jp-Cell").nth(0).get_by_text("[1]:").wait_for(timeout=MINUTE_MS)
    page.evaluate(_WATCH)
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("window.stages.everything > 0", timeout=MINUTE_MS)
    for stage, taken in page.evaluate("window.stages").items():
        measured.stage_seconds.setdefault(stage, []).append(taken / 1000)
    _settle(page)
    for click in CLICKS:
        _click(page, click, measured)
    page.locator(".icestats-filter-input").fill(FILTER)
    page.locator(".icestats-plan .icestats-part-kept").first.wait_for(timeout=MINUTE_MS)
    _settle(page)
    started = time.perf_counter()
    page.get_by_role("radio", name="all files").or_(page.get_by_role("button", name="all files")).first.click()
    page.wait_for_function(f"{_TREE}.innerText.includes('.parquet')", timeout=MINUTE_MS)
    measured.page_seconds.append(time.perf_counter() - started)
    all_there = "/live files;/.test(document.querySelector('.icestats-outline .icestats-caption').textContent)"
    page.wait_for_function(all_there, timeout=MINUTE_MS)
    measured.list_seconds.append(time.perf_counter() - started)
    for click in IN_LIST:
        _click(page, click, measured)
    page.get_by_role("button", name="tree", exact=True).first.click()
    page.wait_for_function(f"{_TREE}.innerText.startsWith('▾')", timeout=MINUTE_MS)
    _settle(page)
    for click in AT_LAST:
        _click(page, click, measured)
    page.locator(".jp-Notebook").press("Escape")
    page.locator(".jp-Cell").nth(2).click()
    page.keyboard.press("Shift+Enter")
    found = page.get_by_text(re.compile(r"^peak memory is \d+ kB")).last
    found.wait_for(timeout=MINUTE_MS)
    measured.peak_mb.append(int((found.text_content() or "").split()[3]) * 1024 / 1e6)
    page.close()


def _note(measured: Measured, data: bytes | str) -> None:
    measured.largest_message = max(measured.largest_message, len(data))


def _settle(page: Page) -> None:
    """Wait until the kernel has nothing to do."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=MINUTE_MS)
    page.wait_for_function("!document.querySelector('.icestats-loading')", timeout=MINUTE_MS)


def _click(page: Page, click: Click, measured: Measured) -> None:
    for _ in range(click.times):
        taken = page.evaluate(_UNTIL, {"act": click.act, "seen": click.seen})
        measured.clicks_ms.setdefault(click.name, []).append(taken)
        _settle(page)


def build_rows(measured: Measured) -> list[tuple[str, str, str]]:
    """Build the lines of the table."""
    every = [ms for found in measured.clicks_ms.values() for ms in found]
    return [
        *(
            (STAGES[name], "2 s" if name == "picture" else "", spread(found))
            for name, found in measured.stage_seconds.items()
        ),
        *((f"click: {name}", "", _milliseconds(found)) for name, found in measured.clicks_ms.items()),
        ("all clicks", "200 ms", _milliseconds(every)),
        ("all files: from the click to their first page", "", spread(measured.page_seconds)),
        ("all files: from the click to the last of them", "", spread(measured.list_seconds)),
        ("largest message to the browser", "2 MB", f"{measured.largest_message / 1e6:.2f} MB"),
        ("peak memory of the kernel", "600 MB", f"{max(measured.peak_mb):,.0f} MB"),
    ]


def _milliseconds(found: list[float]) -> str:
    return f"{statistics.median(found):,.0f} ms ({min(found):,.0f} to {max(found):,.0f})"


def write_page(rows: Sequence[tuple[str, str, str]], runs: int) -> None:
    """Put the figures between the page's markers."""
    head = ["| what | aim | measured: median (least to most) |", "|---|---:|---:|"]
    lines = [*head, *(f"| {' | '.join(row)} |" for row in rows)]
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    about = f"{runs} runs, each with a fresh kernel and page; {os.cpu_count()} cores, load average {load} at the end."
    publish("explorer", f"{about}\n\n" + "\n".join(lines))
