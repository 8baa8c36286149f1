"""A report: the explorer as one HTML file that needs no network and no kernel."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from icestats.answers.markup import Markup, element
from icestats_widgets.page.static_page import PRINTED_ROWS, Rows, build_head, build_style, describe_left_out, draw_parts

MOST_BYTES = 1_900_000
"""Largest report: one message carries it to the page that saves it."""
_ROWS = (1_000, 300, 100, 30)
"""Rows of each table, fewer where the report would be too large."""
_RULES = """
html{scroll-padding-top:48px}
body{margin:0;background:#fff}
&{margin:0 auto;padding:16px 20px}
& nav{background:var(--back);border-bottom:1px solid var(--line);display:flex;flex-wrap:wrap;gap:2px 16px;
margin-top:8px;padding:6px 0;position:sticky;top:0;z-index:1}
& nav a{color:var(--accent);text-decoration:none}
& nav a:hover{text-decoration:underline}
& thead th{background:var(--back);position:sticky;top:0}
& th[tabindex]{cursor:pointer}& th[aria-sort]{color:var(--text)}
& th[aria-sort=ascending]::after{content:" ▲"}& th[aria-sort=descending]::after{content:" ▼"}
& :is(th,a,input):focus-visible{outline:2px solid var(--accent)}
& input{background:var(--back);border:1px solid var(--line);border-radius:4px;color:inherit;font:inherit;
margin:6px 0 2px;padding:3px 8px;width:220px}
& .wide{max-height:560px;overflow:auto}& .printed{display:none}
@media screen and (prefers-color-scheme:dark){body{background:#16181c}
&{--text:#e6e8eb;--quiet:#a3abb5;--line:#3a3f46;--back:#16181c;--sunk:#22262b;--accent:#62b8ee;--good:#3dd6a3;
--fair:#f0b840;--bad:#ff8a4c;--bar:rgb(86 180 233/28%);--icestats-line:#3a3f46;--icestats-data:#56b4e9;
color-scheme:dark}}
@media print{@page{margin:12mm;size:A4 landscape}
&{max-width:none;padding:0}& :is(nav,input){display:none}
& .wide{max-height:none;overflow:visible}& thead th{position:static}
& table{font-size:10px}& :is(td,th){padding:2px 5px}& td{overflow-wrap:anywhere}
& tbody tr:nth-child(n+ROWS){display:none}& .printed{display:block}
& :is(tr,figure,.card,.facts,pre){break-inside:avoid}& :is(h3,h4,.sub){break-after:avoid}
& td[style]{print-color-adjust:exact}}
"""
_SCRIPT = """
for (const table of document.querySelectorAll(".icestats-static .wide table:not(.tree)")) {
  const body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 2) continue;
  const value = (row, place) => {
    const cell = row.cells[place], number = cell.dataset.value;
    if (number !== undefined) return Number(number);
    const text = cell.textContent.trim().toLowerCase();
    return text === "unknown" || text === "–" ? null : text;
  };
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    head.tabIndex = 0;
    const sort = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b) === up ? -1 : 1;
      rows.sort((a, b) => order(value(a, place), value(b, place)));
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  });
  if (rows.length < 8) continue;
  const box = document.createElement("input"), texts = rows.map(row => [row, row.textContent.toLowerCase()]);
  box.type = "search"; box.placeholder = "Search"; box.setAttribute("aria-label", "Search the table");
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\\s+/);
    for (const [row, text] of texts) row.hidden = !wanted.every(word => text.includes(word));
  });
  table.parentElement.before(box);
}
"""


def build_report(
    head: Mapping[str, Any], query: Mapping[str, Any], documents: Iterable[Mapping[str, Any]], rows: Rows, code: str
) -> str:
    """Return a whole HTML document: all parts, tables that can be sorted and searched, pictures with tooltips.

    Its policy allows one script, known by its hash, and nothing from anywhere else.

    Parameters
    ----------
    head, query : mapping
        The line on top, and the bar with the filter.
    documents : iterable of mapping
        The parts.
    rows : callable
        Gives the rows of a grid.
    code : str
        The Python that gives the same.
    """
    drawn = draw_parts(documents, rows, _ROWS, MOST_BYTES, inline=True)
    links = [element("a", title, href=f"#{name}") for name, (title, _) in drawn.parts.items()]
    links.append(element("a", "Code", href="#code"))
    sections = [element("div", text, id=name) for name, (_, text) in drawn.parts.items()]
    if drawn.left_out:
        sections.append(describe_left_out(drawn.left_out))
    made = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    source = element("section", element("h3", "Code"), element("pre", code), id="code")
    foot = element("p", f"Made by icestats, {made}.", class_="sub")
    nav = element("nav", *links, aria_label="Parts")
    body = element("main", build_head(head, query), nav, *sections, source, foot, class_="icestats-static")
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    top = [
        Markup("<meta charset='utf-8'>"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup("<meta name='viewport' content='width=device-width, initial-scale=1'>"),
        element("title", f"{head.get('title', '')} · icestats"),
        build_style(_RULES.replace("ROWS", str(PRINTED_ROWS + 1))),
    ]
    script = element("script", Markup(_SCRIPT))
    return "<!doctype html>\n" + element("html", element("head", *top), element("body", body, script), lang="en")
