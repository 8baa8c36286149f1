"""Axes and legends: labels that never run into each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from icestats_widgets.drawing.canvas import Canvas, Plot, shorten, text_width
from icestats_widgets.drawing.scales import Scale, Tick

AXIS_HEIGHT = 34
"""Pixels below a plot for labels and a title."""
_GAP = 10
_OVERHANG = 8
_LINE_HEIGHT = 15
_MOST_TICKS = 12
_LONGEST = 130


def draw_x_axis(canvas: Canvas, plot: Plot, title: str = "", *, has_grid: bool = False) -> None:
    """Draw the labels below a plot, and the axis's title below them."""
    canvas.line((plot.left, plot.bottom), (plot.right, plot.bottom), "axis")
    for place, anchor_x, text in place_x_labels(plot, canvas.width):
        canvas.line((place, plot.bottom), (place, plot.bottom + 3), "axis")
        if has_grid:
            canvas.line((place, plot.top), (place, plot.bottom), "grid")
        canvas.text(anchor_x, plot.bottom + 15, text, anchor="middle")
    if title:
        shown = shorten(title, plot.width + 4 * _OVERHANG)
        middle = min(plot.left + plot.width / 2, canvas.width - text_width(shown) / 2)
        canvas.text(middle, plot.bottom + 30, shown, anchor="middle")


def draw_y_axis(canvas: Canvas, plot: Plot) -> None:
    """Draw the labels left of a plot, and quiet lines through it."""
    for value, text in fit_ticks(plot.y, plot.height, 2 * _LINE_HEIGHT):
        y = plot.y_at(value)
        canvas.line((plot.left, y), (plot.right, y), "grid")
        canvas.text(plot.left - 6, y + 4, shorten(text, plot.left - 8), anchor="end")


def draw_row_labels(canvas: Canvas, plot: Plot) -> None:
    """Write the names of the rows of a plot to its left, as many as there is room for."""
    for value, text in fit_ticks(plot.y, plot.height, _LINE_HEIGHT - 2):
        canvas.text(plot.left - 6, plot.y_at(value) + 4, shorten(text, plot.left - 8), anchor="end", title=text)


def draw_legend(canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """Draw swatches with names from left to right; `y` is the baseline, and what has no room is cut short."""
    for kind, name in entries:
        shown = shorten(name, canvas.width - x - 20)
        if x + 20 > canvas.width:
            return
        canvas.rect(x, y - 8, 9, 9, kind)
        canvas.text(x + 13, y, shown)
        x += 13 + text_width(shown) + 16


def fit_ticks(scale: Scale, length: float, room: float) -> list[Tick]:
    """Return as many ticks as have `room` pixels each along a side of `length` pixels."""
    for count in range(max(1, min(_MOST_TICKS * 2, int(length / room))), 0, -1):
        ticks = scale.ticks(count)
        places = sorted(scale.position(value) * length for value, _ in ticks)
        if all(b - a >= min(room, _LINE_HEIGHT - 2) for a, b in pairwise(places)):
            return ticks
    return scale.ticks(1)[:1]


def place_x_labels(plot: Plot, width: float) -> list[tuple[float, float, str]]:
    """Return the labels below a plot that fit: the tick's pixel, the label's middle, its text.

    Parameters
    ----------
    plot : Plot
        The plot, beyond which labels reach only a little.
    width : float
        Pixels of the picture.
    """
    low, high = max(0.0, plot.left - _OVERHANG), min(width, plot.right + _OVERHANG)
    placed: list[tuple[float, float, str]] = []
    for count in range(_MOST_TICKS, 0, -1):
        placed = []
        for value, text in plot.x.ticks(count):
            shown = shorten(text, min(_LONGEST, high - low))
            half = text_width(shown) / 2
            at = plot.x_at(value)
            placed.append((at, min(max(at, low + half), high - half), shown))
        ends = [(middle - text_width(text) / 2, middle + text_width(text) / 2) for _, middle, text in placed]
        if all(b[0] - a[1] >= _GAP for a, b in pairwise(ends)):
            return placed
    return placed[:1]
