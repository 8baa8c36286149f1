"""Answers as HTML for a notebook. Their text may come from a table, so it is escaped: here, and only here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

from icestats.answers.text import printable_lines

_STYLE = """
.icestats-answer{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;max-width:900px;
color:var(--jp-ui-font-color1,#212121);line-height:1.4;overflow-wrap:anywhere}
.icestats-answer *{unicode-bidi:isolate}
.icestats-answer h3{font-size:15px;margin:0 0 2px;font-weight:600;line-height:1.25}
.icestats-answer .sub{color:var(--jp-ui-font-color2,#616161);margin-bottom:8px}
.icestats-answer table{border-collapse:collapse;table-layout:auto;width:100%;font-variant-numeric:tabular-nums;
overflow-wrap:break-word}
.icestats-answer th{font-weight:400;text-align:right;padding:2px 6px}
.icestats-answer thead th{font-size:11px}
.icestats-answer td{text-align:right}
.icestats-answer tbody th,.icestats-answer td{padding:3px 6px;border-top:1px solid var(--jp-border-color2,#e0e0e0);
vertical-align:top}
.icestats-answer td.left,.icestats-answer th.left,.icestats-answer tr>:first-child,
.icestats-answer .words tr>:last-child{text-align:left}
.icestats-answer .words tr>:not(:last-child){white-space:nowrap}
.icestats-answer ul{margin:8px 0 0;padding-left:18px}
.icestats-answer pre{font-size:12px;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;margin:2px 0 6px}
.icestats-answer .bar{display:block;height:8px;min-width:1px;background:#0072b2}
.icestats-answer .rest{display:block;height:8px;width:160px;background:var(--jp-border-color2,#e0e0e0)}
.icestats-answer dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:0 0 10px}
.icestats-answer dl div{border:1px solid var(--jp-border-color2,#e0e0e0);border-radius:4px;padding:6px 8px}
.icestats-answer dt,.icestats-answer dd{float:none;width:auto;margin:0}
.icestats-answer dt{font-size:11px;font-weight:400;color:var(--jp-ui-font-color2,#616161)}
.icestats-answer dd{font-size:16px;font-weight:600;font-variant-numeric:tabular-nums}
.icestats-answer svg text{font-size:11px;fill:var(--jp-ui-font-color2,#616161)}
.icestats-answer .data{fill:#0072b2}.icestats-answer .deletes{fill:#d55e00}
.icestats-answer .axis{stroke:var(--jp-border-color1,#bdbdbd)}
"""


NO_MATH = "mathjax_ignore tex2jax_ignore"
"""Classes of what MathJax leaves as it is, 3 and 2: between dollars a table's text could be a link."""


class Markup(str):
    """HTML whose text is escaped already."""

    __slots__ = ()


def element(tag: str, *contents: str, **attributes: str) -> Markup:
    """Return an HTML element.

    Parameters
    ----------
    tag : str
        The name of the element.
    *contents : str
        Its contents. Text that is not `Markup` is escaped.
    **attributes : str
        Its attributes; `class_` is the class.

    Examples
    --------
    >>> element("p", "a < b ", element("b", "yes"), class_="sub", title="it's")
    "<p class='sub' title='it&#x27;s'>a &lt; b <b>yes</b></p>"
    """
    given = "".join(
        f" {name.rstrip('_').replace('_', '-')}='{escape_text(value)}'" for name, value in attributes.items()
    )
    inside = "".join(part if isinstance(part, Markup) else escape_text(part) for part in contents)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def escape_text(text: str) -> str:
    r"""Return text as HTML, each of its lines `printable`.

    Examples
    --------
    >>> escape_text("a < b\u202e")
    'a &lt; b�'
    """
    return escape(printable_lines(text.split("\n")))


def build_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[int] = (), **attributes: str
) -> Markup:
    """Return an HTML table. The first cell of each row is its heading.

    Parameters
    ----------
    heads : sequence of str
        The headings of the columns.
    rows : iterable of sequence of str
        The cells of each row.
    left : collection of int
        The columns that are flush left beside the first.
    **attributes : str
        Attributes of the table. Give it the class `words` if the last column is text.
    """
    kinds = {place: {"class_": "left"} for place in left}
    head = element("tr", *(element("th", name, scope="col", **kinds.get(i, {})) for i, name in enumerate(heads)))
    lines = (
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, **kinds.get(i, {})) for i, cell in enumerate(row[1:], 1)),
        )
        for row in rows
    )
    return element("table", element("thead", head), element("tbody", *lines), **attributes)


def build_answer(title: str, *contents: str, about: Iterable[str] = ()) -> str:
    """Return an answer as HTML, with its style sheet.

    Parameters
    ----------
    title : str
        The heading; if empty, there is none.
    *contents : str
        The body. Text that is not `Markup` is escaped.
    about : iterable of str
        Lines between heading and body.
    """
    lines = element("div", *(element("div", line) for line in about), class_="sub")
    style = element("style", Markup(_STYLE))
    return style + element(
        "div", *([element("h3", title)] if title else []), lines, *contents, class_=f"icestats-answer {NO_MATH}"
    )
