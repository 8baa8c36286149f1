"""The explorer's blocks as HTML without a script: what a saved notebook and a report show."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from icestats.answers.markup import NO_MATH, Markup, element, escape_text
from icestats.answers.text import counted
from icestats_widgets.page.blocks import Block

MOST_BYTES = 300_000
"""Largest picture of a saved notebook."""
_ROWS = (25, 10, 5)
"""Rows of each table, fewer where the picture would be too large."""
PRINTED_ROWS = 40
"""Rows of each table of a report on paper."""
_FIRST = ("findings", "partitions", "manifests", "columns", "histogram", "together", "plan", "estimates")
"""The parts that come first: they have room where others have none."""
_SPEAKING = frozenset(("findings", "partitions", "manifests", "columns"))
"""Parts whose caption says something of the table even if there is nothing to draw."""
_CONTROLS = frozenset(("compute",))
"""Parts that are of no use without a kernel."""

_RULES = """
&{--text:#1f2328;--quiet:#59636e;--line:#d9dde2;--back:#fff;--sunk:#f4f5f7;--accent:#0068a3;--good:#006845;
--fair:#8a6100;--bad:#b34700;--bar:rgb(0 114 178/18%);color-scheme:light;
font:13px/1.45 system-ui,sans-serif;color:var(--text);background:var(--back);max-width:1240px;padding:8px 12px;
overflow-wrap:anywhere}
& *{unicode-bidi:isolate;box-sizing:border-box}
& :is(h2,h3,h4,p,pre,figure){margin:0;padding:0;color:inherit;font-weight:inherit;line-height:1.4}
& h2{font-size:18px;font-weight:650}& h3{font-size:15px;font-weight:650;margin-top:20px}
& h4{font-size:13px;font-weight:600}& :is(p,pre,figure,.side){margin-top:4px}
& :is(small,.sub,.quiet){color:var(--quiet);font-size:inherit}
& .good{color:var(--good)}& .fair{color:var(--fair)}& :is(.bad,.error){color:var(--bad)}
& .strong{font-weight:600}& .code{font-family:ui-monospace,monospace;font-size:12px}
& .facts{display:flex;flex-wrap:wrap;gap:4px 22px}& .facts i{display:none}
& .facts small{display:block;font-size:11px}& .facts b{font-weight:600;font-variant-numeric:tabular-nums}
& .wide{overflow-x:auto}
& table{border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums;margin:4px 0;table-layout:auto;
width:100%}
& tr{background:none}
& th{color:var(--quiet);font-weight:500;text-align:left;vertical-align:bottom}
& :is(td,th){border-bottom:1px solid var(--line);max-width:440px;overflow-wrap:break-word;padding:3px 8px;
text-align:left;vertical-align:top}
& :is(td,th):first-child{padding-left:0}
& :is(td,th).end{text-align:right}& td.end{white-space:nowrap}
& td br{display:none}& td small{display:block;font-size:11px;font-weight:400}
& td[style]{background:linear-gradient(90deg,var(--bar) var(--b),transparent 0) 0 2px/calc(100% - 8px) 18px no-repeat}
& :is(img,svg){height:auto;max-width:100%;vertical-align:middle}
& pre{background:var(--sunk);border-radius:4px;color:inherit;font:12px/1.4 ui-monospace,monospace;padding:6px 8px;
overflow-wrap:anywhere;white-space:pre-wrap;word-break:normal}
& .card{border:1px solid var(--line);border-left-width:3px;border-radius:6px;margin-top:8px;padding:6px 10px}
& .card:is(.bad,.fair,.good,.quiet){color:inherit}& .card.bad{border-left-color:var(--bad)}
& .card.fair{border-left-color:var(--fair)}& .card.good{border-left-color:var(--good)}
& .side{display:flex;flex-wrap:wrap;gap:16px}& .side>*{flex:1 1 420px;min-width:0}
"""
_RULES_OF_A_NOTEBOOK = """
.jp-OutputArea-child:has(+.jp-OutputArea-child [data-icestats-picture]) .jupyter-widgets:not(:has(*)){display:none}
"""
# JupyterLab says in the widget's place that it has no model, above the picture that says what the model was.

_ACTIVE = re.compile(r'<title>[^<]*</title>| data-key="[^"]*"')
"""What an image has no use for: tooltips, and what a click means. All `<` and `"` of texts are escaped."""

Rows = Callable[[str, str, int], Sequence[Mapping[str, Any]]]
"""Returns the first rows of a grid: of a part, by the grid's id, so many."""


class Drawn(NamedTuple):
    """The parts that fit, by name with their title and their HTML, and the titles of those that do not."""

    parts: dict[str, tuple[str, Markup]]
    left_out: list[str]


def build_static_page(
    head: Mapping[str, Any],
    query: Mapping[str, Any],
    documents: Iterable[Mapping[str, Any]],
    rows: Rows,
    picture_id: str,
) -> str:
    """Return the explorer as HTML without a script, at most `MOST_BYTES` long.

    It can be read without its style sheet, too: places that show notebooks of strangers take it out.

    Parameters
    ----------
    head, query : mapping
        The line on top, and the bar with the filter.
    documents : iterable of mapping
        The parts.
    rows : callable
        Gives the rows of a grid.
    picture_id : str
        By which the page hides the picture where the explorer itself is alive.
    """
    top = build_head(head, query)
    style = build_style(_RULES_OF_A_NOTEBOOK)
    room = MOST_BYTES - len((style + top).encode()) - 2_000
    drawn = draw_parts(documents, rows, _ROWS, room)
    note = [describe_left_out(drawn.left_out)] if drawn.left_out else []
    body = [text for _, text in drawn.parts.values()]
    around = f"icestats-static {NO_MATH}"
    return style + element("div", top, *body, *note, class_=around, data_icestats_picture=picture_id)


def build_style(rules: str) -> Markup:
    """Return the style sheet of the parts with further rules, in which & is the element around all of them.

    What a page of notebooks says of its tables and headings counts less.
    """
    return element("style", Markup((_RULES + rules).replace("&", ".icestats-static[class]")))


def draw_parts(
    documents: Iterable[Mapping[str, Any]],
    rows: Rows,
    row_counts: Sequence[int],
    most_bytes: int,
    *,
    inline: bool = False,
) -> Drawn:
    """Return the parts that have something to show, the most important first, with as many rows as there is room for.

    Parameters
    ----------
    documents : iterable of mapping
        The parts.
    rows : callable
        Gives the rows of a grid.
    row_counts : sequence of int
        Most rows of a table: the first number with which all has room; with the last one, parts that do not fit are
        left out.
    most_bytes : int
        The room.
    inline : bool
        As in `build_part`.
    """
    order = {name: place for place, name in enumerate(_FIRST)}
    ordered = sorted(documents, key=lambda one: order.get(one["name"], len(order)))
    for most_rows in row_counts:
        parts = {one["name"]: (one["title"], build_part(one, rows, most_rows, inline=inline)) for one in ordered}
        parts = {name: (title, text) for name, (title, text) in parts.items() if text}
        if sum(len(text.encode()) for _, text in parts.values()) <= most_bytes:
            return Drawn(parts, [])
    fitting, left_out = {}, []
    for name, (title, text) in parts.items():
        size = len(text.encode())
        if size <= most_bytes:
            fitting[name] = (title, text)
            most_bytes -= size
        else:
            left_out.append(title)
    return Drawn(fitting, left_out)


def describe_left_out(titles: Sequence[str]) -> Markup:
    """Return the sentence that names the parts for which there was no room."""
    return element("p", f"No room here for: {', '.join(titles)}.", class_="sub")


def build_head(head: Mapping[str, Any], query: Mapping[str, Any]) -> Markup:
    """Return the line on top, and the filter if there is one."""
    lines = [element("h2", head.get("title", "")), element("p", head.get("subtitle", ""), class_="sub")]
    lines.append(_facts(head.get("facts", ())))
    filters = [query.get("text", ""), *(chip.get("text", "") for chip in query.get("chips", ()))]
    if text := " and ".join(one for one in filters if one):
        found = [": ", element("b", query["summary"])] if query.get("summary") else []
        lines.append(element("p", "Filter ", element("code", text), *found))
    return element("header", *lines)


def build_part(document: Mapping[str, Any], rows: Rows, most_rows: int, *, inline: bool = False) -> Markup:
    """Return a part; nothing if it has nothing to show.

    Parameters
    ----------
    document : mapping
        The part.
    rows : callable
        Gives the rows of a grid.
    most_rows : int
        Most rows of a table.
    inline : bool
        Whether figures are SVG elements, so that they have tooltips; otherwise they are images, which pages that
        take no SVG show too.
    """
    name, caption = document["name"], document["about"]
    if name in _CONTROLS:
        return Markup("")
    drawn = _Drawing(name, rows, most_rows, inline)
    blocks = [text for block in document["blocks"] if (text := drawn.block(block))]
    if not blocks and not (caption and name in _SPEAKING):
        return Markup("")
    said = [element("p", caption, class_="sub")] if caption else []
    return element("section", element("h3", document["title"]), *said, *blocks)


class _Drawing:
    """Draws the blocks of one part."""

    def __init__(self, part: str, rows: Rows, most_rows: int, inline: bool) -> None:
        self._part, self._rows, self._most, self._inline = part, rows, most_rows, inline

    def block(self, block: Block) -> Markup:
        """Return a block as HTML; controls have no use without a kernel, so nothing is drawn for them."""
        kind = block["is"]
        if kind == "text":
            return element("p", block["text"], class_=block["tone"]) if block["text"] else Markup("")
        if kind == "facts":
            return _facts(block["facts"])
        if kind == "code":
            return element("pre", block["text"])
        if kind == "figure":
            return element("figure", self._svg(block["svg"], block["label"]))
        if kind == "grid":
            return self._grid(block)
        if kind == "card":
            inside = [self.block(one) for one in block["blocks"]]
            return element("div", element("h4", block["title"]), *inside, class_=f"card {block.get('tone', '')}")
        if kind == "side":
            inside = [text for one in block["blocks"] if (text := self.block(one))]
            return element("div", *(element("div", text) for text in inside), class_="side") if inside else Markup("")
        return Markup("")

    def _svg(self, svg: str, label: str) -> Markup:
        if self._inline:
            return Markup(svg)
        data = base64.b64encode(_ACTIVE.sub("", svg).encode()).decode()
        return element("img", src=f"data:image/svg+xml;base64,{data}", alt=label)

    def _grid(self, block: Block) -> Markup:
        rows = self._rows(self._part, block["id"], self._most)
        more = block["row_count"] - len(rows)
        note = [element("p", f"… and {counted(more, 'more row')}", class_="sub")] if more > 0 else []
        note += [element("p", block["note"], class_="sub")] if block["note"] else []
        if self._inline and len(rows) > PRINTED_ROWS:
            note.append(
                element("p", f"Printed are the first {PRINTED_ROWS} of {len(rows):,} rows.", class_="sub printed")
            )
        if not rows:
            return element("div", *note) if note else Markup("")
        shown = [(place, one) for place, one in enumerate(block["columns"]) if not one.get("hidden")]
        heads = [_slim("th", one["title"], class_=one.get("align", ""), title=one.get("about", "")) for _, one in shown]
        lines = [
            element("tr", *(self._cell(row, place, column, place == shown[0][0]) for place, column in shown))
            for row in rows
        ]
        kind = "tree" if block["is_tree"] else ""
        table = _slim("table", element("thead", element("tr", *heads)), element("tbody", *lines), class_=kind)
        return element("div", table, *note, class_="wide")

    def _cell(self, row: Mapping[str, Any], place: int, column: Mapping[str, Any], is_first: bool) -> Markup:
        cell = row["cells"][place] if place < len(row["cells"]) else {}
        inside = [Markup(("\u2003" * int(row.get("depth", 0)) if is_first else "") + escape_text(cell.get("t", "")))]
        if cell.get("svg"):
            inside.append(self._svg(cell["svg"], cell.get("h", "")))
        if cell.get("s"):
            inside += [Markup("<br>"), element("small", cell["s"])]
        value, share = cell.get("v"), cell.get("b")
        return _slim(
            "td", *inside,
            class_=f"{column.get('align', '')} {cell.get('k', '')}".strip(),
            title=cell.get("h", "") if cell.get("h") != cell.get("t") else "",
            data_value=repr(value) if isinstance(value, int | float) else "",
            style="" if share is None else f"--b:{100 * share:.0f}%",
        )  # fmt: skip


def _slim(tag: str, *contents: str, **attributes: str) -> Markup:
    return element(tag, *contents, **{name: text for name, text in attributes.items() if text})


def _facts(facts: Iterable[Mapping[str, Any]]) -> Markup:
    # The dots stand between the facts where the style sheet is taken out.
    shown = [element("span", element("small", one["label"]), " ", element("b", one["value"])) for one in facts]
    inside = [shown[0], *(part for one in shown[1:] for part in (element("i", " · "), one))] if shown else []
    return element("p", *inside, class_="facts") if inside else Markup("")
