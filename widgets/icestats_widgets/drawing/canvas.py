"""Marks of a figure as SVG: rectangles, lines, areas, texts, with everything from a table escaped."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from icestats.answers.text import printable
from icestats_widgets.drawing.scales import Scale

TEXT_SIZE = 11
Point = tuple[float, float]

_LIGHT = {
    "text": "#3c4043", "quiet": "#5f6368", "line": "#e3e5e8", "data": "#0072b2", "deletes": "#d55e00",
    "error": "#e69f00", "overlap": "#009e73", "missing": "#8f959b", "skipped0": "#c3c8cd", "skipped1": "#cc79a7",
    "skipped2": "#f0c000", "skipped3": "#9b7fd1", "mark": "#111111", "back": "#ffffff",
}  # fmt: skip
_DARK = {
    "text": "#dadce0", "quiet": "#a8adb3", "line": "#303338", "data": "#56b4e9", "deletes": "#e8813a",
    "error": "#e6b54a", "overlap": "#33c09b", "missing": "#8f959b", "skipped0": "#565b61", "skipped1": "#b9648f",
    "skipped2": "#cfa90f", "skipped3": "#8668c4", "mark": "#ffffff", "back": "#16181b",
}  # fmt: skip
_HEAT = {
    "heat": (("#d9eaf5", "#b3d4ea", "#86bbdc", "#559fcd", "#2583bb", "#0067a5", "#004b7d", "#003057"),
             ("#15303f", "#1a4560", "#1f5c82", "#2775a4", "#3590c4", "#56b4e9", "#8ecdf3", "#c9e8fc")),
    "cold": (("#eceeef", "#dfe2e4", "#d0d4d7", "#c0c5c9", "#b0b6bb", "#9fa6ac", "#8d959c", "#7b848c"),
             ("#232629", "#2b2f33", "#34393d", "#3d4348", "#474e54", "#525a61", "#5e676f", "#6b757e")),
}  # fmt: skip
HEAT_LEVELS = 8
"""Colours of a heat map from pale to strong: kinds `heat0` and on, and `cold0` and on for what is skipped."""
for _name, (_light, _dark) in _HEAT.items():
    _LIGHT |= {f"{_name}{level}": colour for level, colour in enumerate(_light)}
    _DARK |= {f"{_name}{level}": colour for level, colour in enumerate(_dark)}


@dataclass(frozen=True)
class Plot:
    """A part of a figure with scales of its own: its box in pixels, and what its sides mean."""

    name: str
    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale
    """From the top: position 0 is the upper edge."""

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def x_at(self, value: float) -> float:
        """Return the pixel of a value; of one outside, the nearest edge."""
        return self.left + self.width * _within(self.x.position(value))

    def y_at(self, value: float) -> float:
        """Return the pixel of a value; of one outside, the nearest edge."""
        return self.top + self.height * _within(self.y.position(value))


@dataclass(frozen=True)
class Picture:
    """A figure, and its plots by name, to find the values of what a person marks in it."""

    svg: str
    plots: Mapping[str, Plot]
    label: str
    """What the picture shows, for screen readers."""

    def find_range(self, marked: Any) -> tuple[float, float] | None:
        """Return the values along a plot that a person dragged over; None if it is no such drag, or has no width.

        Parameters
        ----------
        marked : dict
            What the page reports: `plot`, and `x`, the ends in fractions of the plot.
        """
        try:
            scale = self.plots[marked["plot"]].x
            lower, upper = sorted(scale.invert(float(end)) for end in marked["x"])
        except (KeyError, TypeError, ValueError):
            return None
        return (lower, upper) if lower < upper else None


class Canvas:
    """Marks on a page of a size in pixels.

    A mark has a kind, which gives its colour; a key, if it can be clicked; and a title, which the page shows as its
    tooltip.

    Examples
    --------
    >>> canvas = Canvas(100, 20, "a bar")
    >>> canvas.rect(0, 0, 60.04, 20, "data", title="<b>")
    >>> "<title>&lt;b&gt;</title>" in canvas.picture().svg
    True
    """

    def __init__(self, width: float, height: float, label: str) -> None:
        self.width, self.height, self.label = width, height, label
        self._marks: list[str] = []
        self._plots: dict[str, Plot] = {}

    def plot(self, plot: Plot) -> Plot:
        """Say where a plot is: in it a drag marks."""
        self._plots[plot.name] = plot
        box = {"x": plot.left, "y": plot.top, "width": plot.width, "height": plot.height}
        data = "".join(f' data-{name}="{_number(value)}"' for name, value in box.items())
        self._marks.append(f'<g class="plot" data-plot="{_text(plot.name)}"{data}>')
        self._mark("rect", box, "ground")
        self._marks.append("</g>")
        return plot

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, *, key: str = "", title: str = ""
    ) -> None:
        """Draw a rectangle."""
        self._mark("rect", {"x": x, "y": y, "width": width, "height": height}, kind, key, title)

    def rects(self, boxes: Iterable[tuple[float, ...]], kind: str, *, key: str = "", title: str = "") -> None:
        """Draw several rectangles as one mark: each is left, top, width and height."""
        parts = [f"M{_number(x)} {_number(y)}h{_number(w)}v{_number(h)}h-{_number(w)}z" for x, y, w, h in boxes]
        if parts:
            self._mark("path", {}, kind, key, title, more=f' d="{"".join(parts)}"')

    def line(self, start: Point, end: Point, kind: str) -> None:
        """Draw a line."""
        self._mark("line", {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}, kind)

    def path(self, points: Sequence[Point], kind: str, *, is_closed: bool = False, title: str = "") -> None:
        """Draw a line through points, or what they enclose."""
        if points:
            drawn = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
            self._mark("path", {}, kind, "", title, more=f' d="M{drawn}{"z" if is_closed else ""}"')

    def dot(self, x: float, y: float, radius: float, kind: str, *, title: str = "") -> None:
        """Draw a circle."""
        self._mark("circle", {"cx": x, "cy": y, "r": radius}, kind, "", title)

    def text(
        self, x: float, y: float, text: str, kind: str = "quiet", *, anchor: str = "start", title: str = ""
    ) -> None:
        """Write a text; `y` is its baseline, and `anchor` what of it lies at x: start, middle or end."""
        ends = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._mark("text", {"x": x, "y": y}, kind, "", title, more=ends, content=_text(text))

    def picture(self) -> Picture:
        """Return what has been drawn."""
        size = f"{_number(self.width)} {_number(self.height)}"
        width, height = size.split()
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="icestats-figure" role="img" viewBox="0 0 {size}"'
            f' width="{width}" height="{height}" aria-label="{_text(self.label)}">'
        )
        return Picture(f"{head}{_style()}{''.join(self._marks)}</svg>", dict(self._plots), self.label)

    def _mark(
        self, tag: str, numbers: Mapping[str, float], kind: str, key: str = "", title: str = "", *, more: str = "",
        content: str = "",
    ) -> None:  # fmt: skip
        attributes = "".join(f' {name}="{_number(value)}"' for name, value in numbers.items())
        kinds = " ".join(f"i-{word}" for word in kind.split())
        click = f' data-key="{_text(key)}"' if key else ""
        inside = f"<title>{_text(title, lines=True)}</title>{content}" if title else content
        self._marks.append(
            f'<{tag} class="{kinds}"{attributes}{more}{click}' + (f">{inside}</{tag}>" if inside else "/>")
        )


def text_width(text: str) -> float:
    """Return about how many pixels wide a text is; rather more than it is.

    Examples
    --------
    >>> text_width("ill") < text_width("max") < text_width("東京都")
    True
    """
    return sum(map(_character_width, text)) * TEXT_SIZE


def shorten(text: str, width: float) -> str:
    """Return a text that fits a width; what is left out is in the middle, as names differ at their ends.

    Examples
    --------
    >>> shorten("measure_of_something_0042", 100)
    'measur…g_0042'
    >>> shorten("short", 100)
    'short'
    """
    text = printable(text[:1_000])
    # A margin that was added and taken off again leaves a little less.
    width += 1e-6
    if text_width(text) <= width:
        return text
    kept = max(0, min(len(text) - 1, int(width / TEXT_SIZE * 2)))
    while kept > 0:
        shown = text[: kept - kept // 2] + "…" + text[len(text) - kept // 2 :]
        if text_width(shown) <= width:
            return shown
        kept -= 1
    return "…"


@lru_cache(maxsize=4_096)
def _character_width(character: str) -> float:
    if character in "ijl.,:;'|!":
        return 0.33
    if character in "ftrI()[]{}/-  ":
        return 0.42
    if character in "mwMW@%…":
        return 0.98
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.72 if character.isupper() else 0.64


@lru_cache(maxsize=1)
def _style() -> str:
    def colours(scheme: Mapping[str, str]) -> str:
        return "".join(f"--i-{name}:var(--icestats-{name},{colour});" for name, colour in scheme.items())

    root = ".icestats-figure"
    fills = "".join(f"{root} .i-{name}{{fill:var(--i-{name})}}" for name in _LIGHT)
    font = f"{TEXT_SIZE}px var(--icestats-font,system-ui,sans-serif)"
    rules = f"""{root}{{{colours(_LIGHT)}font:{font};max-width:100%;height:auto}}
@media(prefers-color-scheme:dark){{{root}{{{colours(_DARK)}}}}}
{fills}
{root} text{{font-variant-numeric:tabular-nums}}{root} .i-strong{{font-weight:600}}
{root} .i-ground{{fill:transparent}}{root} .i-hidden{{fill:transparent}}
{root} .i-grid,{root} .i-axis{{stroke:var(--i-line);fill:none;shape-rendering:crispEdges}}
{root} .i-dotted{{stroke:var(--i-quiet);stroke-dasharray:2 3;fill:none}}
{root} .i-edge{{fill:none;stroke-width:1.2}}{root} .i-edge.i-error{{stroke:var(--i-error)}}
{root} .i-edge.i-overlap{{stroke:var(--i-overlap)}}{root} .i-soft{{fill-opacity:.28;pointer-events:none}}
{root} .i-note{{fill:var(--i-deletes)}}
{root} .i-halo{{paint-order:stroke;stroke:var(--i-back);stroke-width:3px;pointer-events:none}}
{root} .i-faded{{opacity:.22}}{root} .i-pale{{fill-opacity:.18}}{root} .i-dim{{fill-opacity:.6}}
{root} .i-needle{{stroke:var(--i-deletes);stroke-width:2}}
{root} .i-frame{{fill:none;stroke:var(--i-mark);stroke-width:1.6;pointer-events:none}}
{root} [data-key]{{cursor:pointer}}
{root} [data-key]:hover,{root} [data-key]:focus-visible{{stroke:var(--i-mark);stroke-width:1.5;outline:none}}"""
    return f"<style>{' '.join(rules.split())}</style>"


def _within(position: float) -> float:
    return min(1.0, max(0.0, position))


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no coordinate")
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _text(text: str, *, lines: bool = False) -> str:
    shown = "\n".join(map(printable, text.split("\n"))) if lines else printable(text)
    return escape(shown)
