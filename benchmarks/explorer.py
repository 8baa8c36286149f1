"""The explorer in a real browser: the first picture, clicks and keys, messages, memory.

It is opened on the demo table of events, which `icestats demo` has built, in a fresh kernel and again in the same
kernel, and on a large table, which is generated unless `--table METADATA_JSON` names one.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from benchmarks.generated_table import Shape, generate
from benchmarks.lab import MINUTE_MS, open_chromium, open_notebook, run_lab, write_notebook
from benchmarks.measuring import print_table, spread
from benchmarks.published import publish

_STATUS = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
MEMORY = f"print('peak memory is', {_STATUS}, 'kB')"
_UNTIL = """
async ({act, seen}) => {
  getSelection().removeAllRanges();
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
_WATCH = """
(number) => {
  const root = () => document.querySelectorAll('.icestats-explorer')[number];
  const stages = {
    picture: () => root()?.querySelector('.icestats-facts b') && root().querySelector('[role=tab]')
      && root().querySelector('[data-part]'),
    everything: () => root()?.querySelector('[data-part=partitions] svg [data-key]')
      && root().querySelector('.icestats-busy')?.textContent === '' && !root().querySelector('[aria-busy=true]'),
  };
  window.stages = {};
  let started;
  document.addEventListener('keydown', (event) => (started ??= event.timeStamp), { capture: true, once: true });
  const look = () => {
    for (const name of Object.keys(stages)) {
      if (!started || name in window.stages || !stages[name]()) continue;
      window.stages[name] = 0;
      // It is painted by the frame after this one.
      const from = started;
      requestAnimationFrame(() => requestAnimationFrame(() => (window.stages[name] = performance.now() - from)));
    }
    if (!window.stages.everything) requestAnimationFrame(look);
  };
  look();
}
"""
"""Notes when each stage is painted, from the keys that run the cell."""


@dataclass(frozen=True, slots=True)
class Click:
    """What a person does, and what is then seen."""

    name: str
    tab: str
    act: str
    seen: str
    times: int = 6


def _part(name: str, rest: str = "") -> str:
    return f"document.querySelector('.icestats-explorer [data-part={name}] {rest}')"


def _parts(name: str, rest: str) -> str:
    return f"document.querySelectorAll('.icestats-explorer [data-part={name}] {rest}')"


_TURN = "window.n = (window.n ?? 0) + 1;"
_BAR = "document.querySelector('.icestats-query').textContent"
_SAID = "document.querySelector('.icestats-query .icestats-said').textContent"
_COUNTED = f"/^[\\d,]+ of /.test({_SAID}) ? {_SAID} : null"
"""What the bar says of a plan that is made; null while it says the most that there can be."""


def _type(text: str) -> str:
    return f"""{_TURN}
const box = document.querySelector('.icestats-explorer [role=combobox]');
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, {text});
box.dispatchEvent(new Event('input', {{ bubbles: true }}));"""


_OTHER = "'device_id = ' + (70 + window.n)"
_MARK = "dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: 1, clientY: 1}))"
CLICKS = (
    Click("a partition is clicked: until it stands in the filter", "Overview",
          f"{_TURN} {_parts('partitions', 'svg [data-key]')}[window.n % 7].{_MARK};", _BAR),
    Click("partitions show files, records, bytes", "Overview",
          f"{_TURN} {_parts('partitions', '[type=radio]')}[window.n % 3].click();",
          f"{_part('partitions', 'svg')}.getAttribute('aria-label')"),
    Click("a column is clicked: until its distribution is drawn", "Columns",
          f"{_TURN} [...{_parts('columns', '.icestats-tbody [role=row]')}]"
          ".filter((row) => row.getAttribute('aria-selected') !== 'true')[window.n % 5]"
          ".querySelector('[role=rowheader]').click();",
          f"{_part('histogram')}?.textContent"),
    Click("the first filter on a column: until the bar says the most that it leaves*", "Query",
          _type("'device_id = 70'"), _SAID, 1),
    Click("another filter on that column: until its plan is said*", "Query", _type(_OTHER), _COUNTED),
    Click("the first filter on another column: until its plan is said*", "Query",
          _type("'event_id = 70'"), _COUNTED, 1),
    Click("a tab is opened", "Layout",
          "(document.querySelector('.icestats-explorer [role=tab][aria-selected=true]').nextElementSibling"
          " ?? document.querySelector('.icestats-explorer [role=tab]')).click();",
          "[...document.querySelectorAll('.icestats-explorer [data-part]')].map((part) => part.dataset.part)"),
    Click("the step of the overlap curve is clicked: until its manifests stand in the filter", "Layout",
          f"{_TURN} {_parts('manifests', 'svg [data-key^=over]')}[window.n % 3].{_MARK};", _BAR),
    Click("the tree is sorted", "Layout", f"{_part('outline', '[role=columnheader]:nth-child(3) button')}.click();",
          f"{_part('outline', '.icestats-tbody')}.innerText.slice(0, 2000)"),
)  # fmt: skip


@dataclass(slots=True)
class Measured:
    """What the runs of one table have shown."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    clicks_ms: dict[str, list[float]] = field(default_factory=dict)
    largest_message: int = 0
    peak_mb: dict[str, list[float]] = field(default_factory=dict)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks explorer", description=__doc__)
    parser.add_argument("--table", help="the location of a metadata.json")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        location = options.table or str(generate(scratch, Shape()) / "metadata" / "v1.metadata.json")
        demo = measure("demo.events", scratch / "demo", options.runs)
        large = measure(location, scratch / "large", options.runs)
    rows = build_rows(demo, large)
    print_table(("what", "aim", "demo.events", "large table"), rows)
    if options.write:
        write_page(rows, options.runs)


def measure(source: str, scratch: Path, runs: int) -> Measured:
    """Open the explorer in fresh kernels, and click through it."""
    # Without the local cache: each run reads every manifest, as the first time that a person opens a table.
    work = scratch / "work"
    work.mkdir(parents=True)
    measured = Measured()
    with open_chromium() as browser, run_lab(work, scratch, {"ICESTATS_CACHE": "off"}) as address:
        for run in range(runs):
            opened = f"import icestats\nicestats.load({source!r}).explore()"
            write_notebook(work / f"run{run}.ipynb", [opened, MEMORY, opened, MEMORY])
            _run_once(browser, address.format(f"run{run}.ipynb"), measured)
    return measured


def _run_once(browser: Browser, address: str, measured: Measured) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: _note(measured, data)))
    open_notebook(page, address)
    page.locator(".jp-Cell").first.click()
    for number, kernel in enumerate(("fresh kernel", "same kernel")):
        page.evaluate(_WATCH, number)
        page.keyboard.press("Shift+Enter")
        page.wait_for_function("window.stages.everything > 0", timeout=MINUTE_MS)
        for stage, taken in page.evaluate("window.stages").items():
            measured.seconds.setdefault(f"{stage}, {kernel}", []).append(taken / 1000)
        _settle(page)
        if number == 0:
            _read_memory(page, measured, "with one explorer open", 1)
    for click in CLICKS:
        _click(page, click, measured)
    page.locator(".jp-Notebook").press("Escape")
    page.locator(".jp-Cell").nth(3).click()
    _read_memory(page, measured, "with two, after all clicks", 2)
    page.close()


def _read_memory(page: Page, measured: Measured, when: str, number: int) -> None:
    """Run the cell that is chosen, the number-th one that prints the kernel's peak."""
    page.keyboard.press("Shift+Enter")
    found = page.get_by_text(re.compile(r"^peak memory is \d+ kB"))
    expect(found).to_have_count(number, timeout=MINUTE_MS)
    text = found.last.text_content() or ""
    measured.peak_mb.setdefault(when, []).append(int(text.split()[3]) * 1024 / 1e6)


def _note(measured: Measured, data: bytes | str) -> None:
    measured.largest_message = max(measured.largest_message, len(data))


def _settle(page: Page) -> None:
    """Wait until the kernel has nothing to do."""
    page.wait_for_function(
        "!document.querySelector('.icestats-explorer [aria-busy=true]')"
        " && ![...document.querySelectorAll('.icestats-busy')].some((one) => one.textContent)",
        timeout=MINUTE_MS,
    )
    page.wait_for_timeout(250)


def _click(page: Page, click: Click, measured: Measured) -> None:
    root = page.locator(".icestats-explorer").first
    clear = root.get_by_role("button", name="Clear filter and selection")
    if clear.is_visible():
        clear.click()
    root.get_by_role("tab", name=click.tab).click()
    _settle(page)
    for _ in range(click.times):
        taken = page.evaluate(_UNTIL, {"act": click.act, "seen": click.seen})
        measured.clicks_ms.setdefault(click.name, []).append(taken)
        _settle(page)


def build_rows(demo: Measured, large: Measured) -> list[tuple[str, str, str, str]]:
    """Build the lines of the table."""
    aims = {"picture, fresh kernel": "2.5 s", "picture, same kernel": "1.0 s, 1.5 s"}
    rows = [(name, aims.get(name, ""), *(spread(one.seconds[name]) for one in (demo, large))) for name in demo.seconds]
    rows += [(name, "", *(_milliseconds(one.clicks_ms[name]) for one in (demo, large))) for name in demo.clicks_ms]
    every = [[ms for found in one.clicks_ms.values() for ms in found] for one in (demo, large)]
    rows.append(("all clicks and keys", "100 ms, at most 250 ms", *(_milliseconds(found) for found in every)))
    sizes = [f"{one.largest_message / 1e6:.2f} MB" for one in (demo, large)]
    rows.append(("largest message to the browser", "2 MB", *sizes))
    for when in demo.peak_mb:
        peaks = [f"{max(one.peak_mb[when]):,.0f} MB" for one in (demo, large)]
        rows.append((f"peak memory of the kernel, {when}", "500 MB", *peaks))
    return [(str(a), str(b), str(c), str(d)) for a, b, c, d in rows]


def _milliseconds(found: list[float]) -> str:
    return f"{statistics.median(found):,.0f} ms ({min(found):,.0f} to {max(found):,.0f})"


def write_page(rows: Sequence[tuple[str, ...]], runs: int) -> None:
    """Put the figures between the page's markers."""
    head = ["| what | aim | demo.events | large table |", "|---|---:|---:|---:|"]
    lines = [*head, *(f"| {' | '.join(row)} |" for row in rows)]
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    about = f"Medians (least to most) of {runs} runs; {os.cpu_count()} cores, load average {load} at the end."
    publish("explorer", f"{about}\n\n" + "\n".join(lines))
