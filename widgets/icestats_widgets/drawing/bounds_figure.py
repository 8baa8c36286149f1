"""Why a file is kept or skipped: the literals of a predicate, drawn against the file's bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from icestats.iceberg.types import parse_type, to_integer
from icestats_widgets.drawing.axis import axis_position, is_time_type, value_label
from icestats_widgets.drawing.canvas import Canvas, Picture, Plot, shorten, text_width
from icestats_widgets.drawing.scales import LinearScale

MOST_LITERALS = 5
_HEIGHT, _SIDE, _TOP, _TALL = 118, 40, 54, 26
_LONGEST = 230
_GAP = 12
"""Pixels between the labels of the bounds."""
_CLOSE = 0.02
"""Values that are closer than this share of the range are drawn in their order, not to scale."""
_NUMBERS = frozenset({"int", "long", "float", "double", "decimal", "boolean"})


def build_bounds_figure(
    type_text: str,
    lower: Any,
    upper: Any,
    literals: Sequence[Any],
    *,
    width: float,
    operator: str = "=",
    predicate: str = "",
) -> Picture:
    """Build the figure of a predicate's literals against the bounds of a file, a manifest or a row group.

    Parameters
    ----------
    type_text : str
        The Iceberg type of the column.
    lower, upper : object or None
        The bounds, as `types.decode_value` gives them; None if unknown.
    literals : sequence
        What the predicate compares with.
    width : float
        Pixels.
    operator : str
        `<`, `<=`, `>`, `>=`: the side of the literal where values match is shaded. With any other only literals match.
    predicate : str
        The predicate as text.

    Returns
    -------
    Picture
        No plots: nothing in it can be marked.
    """
    span = f"values from {_label(type_text, lower)} to {_label(type_text, upper)}"
    canvas = Canvas(width, _HEIGHT, f"{predicate or 'the literals'}: against {span}")
    chosen = _nearest(type_text, lower, upper, literals)
    places, is_scaled = _places(type_text, [value for value in (lower, upper, *chosen) if value is not None])
    plot = Plot("", _SIDE, _TOP, width - 2 * _SIDE, _TALL, LinearScale(0.0, 1.0), LinearScale(0.0, 1.0))
    ends = [None if value is None else plot.x_at(places[_order(type_text, value)]) for value in (lower, upper)]
    marks = [(plot.x_at(places[_order(type_text, value)]), _label(type_text, value)) for value in chosen]
    others = len(literals) - len(chosen)
    notes = ([] if is_scaled else ["in order, not to scale"]) + ([f"{others:,} other literals"] if others else [])
    note = " · ".join(notes)
    canvas.text(width - 4, 14, note, anchor="end")
    canvas.text(4, 14, shorten(predicate, width - 24 - text_width(note)), "text strong")
    _draw_matching(canvas, plot, operator, [x for x, _ in marks])
    _draw_bounds(canvas, plot, ends, [shorten(_label(type_text, value), width - 8) for value in (lower, upper)])
    _draw_literals(canvas, plot, marks)
    return canvas.picture()


def _label(type_text: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bytes):
        return shorten(value.hex(), _LONGEST)
    return shorten(value_label(type_text, value), _LONGEST) or '""'


def _order(type_text: str, value: Any) -> Any:
    # Times that Python cannot hold are whole numbers already.
    return to_integer(value) if is_time_type(type_text) else value


def _nearest(type_text: str, lower: Any, upper: Any, literals: Sequence[Any]) -> list[Any]:
    known = sorted((one for one in literals if one is not None and one == one), key=lambda one: _order(type_text, one))
    ends = [None if end is None else _order(type_text, end) for end in (lower, upper)]

    def is_outside(value: Any) -> bool:
        at = _order(type_text, value)
        return (ends[0] is not None and at < ends[0]) or (ends[1] is not None and at > ends[1])

    return sorted(known, key=is_outside)[:MOST_LITERALS]


def _places(type_text: str, values: Sequence[Any]) -> tuple[dict[Any, float], bool]:
    """Return where values lie from 0 to 1, and whether that is to scale."""
    ordered = sorted({_order(type_text, value): value for value in values}.items(), key=lambda one: one[0])
    ranks = {key: (i + 1) / (len(ordered) + 1) for i, (key, _) in enumerate(ordered)}
    if len(ordered) < 2 or not (parse_type(type_text).name in _NUMBERS or is_time_type(type_text)):
        return ranks, len(ordered) < 2
    positions = [axis_position(type_text, value) for _, value in ordered]
    if not all(map(math.isfinite, positions)):
        return ranks, False
    scale = LinearScale(positions[0], positions[-1])
    found = [0.15 + 0.7 * scale.position(at) for at in positions]
    if any(b - a < _CLOSE for a, b in pairwise(found)):
        return ranks, False
    return {key: at for (key, _), at in zip(ordered, found, strict=True)}, True


def _draw_matching(canvas: Canvas, plot: Plot, operator: str, marks: Sequence[float]) -> None:
    if not marks or operator not in ("<", "<=", ">", ">="):
        return
    left, right = (0.0, max(marks)) if operator.startswith("<") else (min(marks), canvas.width)
    canvas.rect(left, plot.top - 6, right - left, plot.height + 12, "overlap soft")
    x, anchor = (left + 4, "start") if operator.startswith("<") else (right - 4, "end")
    canvas.text(x, plot.bottom + 20, "matches", "overlap strong", anchor=anchor)


def _draw_bounds(canvas: Canvas, plot: Plot, ends: Sequence[float | None], labels: Sequence[str]) -> None:
    low = 0.0 if ends[0] is None else ends[0]
    high = canvas.width if ends[1] is None else ends[1]
    if ends[0] is None and ends[1] is None:
        canvas.rect(low, plot.top + 8, high - low, 10, "missing soft")
        canvas.text(canvas.width / 2, plot.top - 8, "bounds unknown: nothing can be skipped by them", anchor="middle")
        return
    high = max(high, low + 3)
    canvas.rect(low, plot.top + 8, high - low, 10, "data" if None not in ends else "data pale")
    middle = (low + high) / 2
    if labels[0] == labels[1]:
        half = text_width(labels[0]) / 2
        canvas.text(min(max(middle, half + 2), canvas.width - half - 2), plot.top - 10, labels[0], anchor="middle")
        return
    (left, right), is_stacked = _place_labels(low, high, labels, canvas.width)
    canvas.text(left, plot.top - (24 if is_stacked else 10), labels[0], anchor="middle")
    canvas.text(right, plot.top - 10, labels[1], anchor="middle")


def _place_labels(low: float, high: float, labels: Sequence[str], width: float) -> tuple[tuple[float, float], bool]:
    """Return the middles of the labels of both bounds, each near its bound, and whether they need a line each."""
    halves = [text_width(label) / 2 for label in labels]
    left, right = (min(max(at, half + 2), width - half - 2) for at, half in zip((low, high), halves, strict=True))
    lacking = left + halves[0] + _GAP - (right - halves[1])
    if lacking <= 0:
        return (left, right), False
    if sum(halves) * 2 + _GAP + 4 > width:
        return (left, right), True
    left = max(halves[0] + 2, left - lacking / 2)
    right = min(max(right, left + halves[0] + _GAP + halves[1]), width - halves[1] - 2)
    return (min(left, right - halves[1] - _GAP - halves[0]), right), False


def _draw_literals(canvas: Canvas, plot: Plot, marks: Sequence[tuple[float, str]]) -> None:
    taken: list[tuple[float, float]] = []
    for x, label in marks:
        canvas.line((x, plot.top - 4), (x, plot.bottom + 4), "needle")
        canvas.path([(x - 5, plot.bottom + 10), (x + 5, plot.bottom + 10), (x, plot.bottom + 2)], "deletes",
                    is_closed=True, title=label)  # fmt: skip
        half = text_width(label) / 2
        middle = min(max(x, half + 2), canvas.width - half - 2)
        if all(middle - half > b + 8 or middle + half < a - 8 for a, b in taken):
            canvas.text(middle, plot.bottom + 34, label, "deletes strong", anchor="middle")
            taken.append((middle - half, middle + half))
