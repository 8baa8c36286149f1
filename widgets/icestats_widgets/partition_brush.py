"""Convert between a rectangle on the chart of partitions and the partitions in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from icestats_widgets.partition_board import Axis, Board
from icestats_widgets.selection import FieldRange, Selection

Box = tuple[float, float, float, float]
"""Across from and to, down from and to."""


def select_box(board: Board, brush: Mapping[str, Sequence[float]]) -> Selection | None:
    """Return the partitions in a rectangle; None if it is empty.

    Parameters
    ----------
    board : Board
        Where partitions are drawn.
    brush : mapping
        `x` and `y`, the ends of the rectangle in places, in either order; bars have no `y`.
    """
    width, height = board.shape
    x, y = _places(brush.get("x"), width), _places(brush.get("y"), height)
    if x is None or y is None:
        return None
    if board.calendar is not None:
        # In a calendar a range of times is marked: whole periods, or a part of one.
        is_one = x[0] == x[1]
        first = board.calendar.value_at(x[0], y[0] if is_one else 0)
        last = board.calendar.value_at(x[1], y[1] if is_one else height - 1)
        return Selection(board.spec_id, (_range(board.axes[0], first, last, False),))
    spans = [x, y][: len(board.axes)]
    ranges = (_axis_range(axis, span) for axis, span in zip(board.axes, spans, strict=True))
    whole = [(0, len(axis.values) - 1) for axis in board.axes]
    kept = [one for one, span, all_of_it in zip(ranges, spans, whole, strict=True) if span != all_of_it]
    return Selection(board.spec_id, tuple(kept)) if kept else None


def find_box(board: Board, selection: Selection | None) -> Box | None:
    """Return the rectangle that a selection covers; None if it covers none."""
    if selection is None or not selection.ranges or selection.spec_id != board.spec_id:
        return None
    by_name = {one.name: one for one in selection.ranges}
    if board.calendar is not None:
        one = by_name.get(board.axes[0].field.name)
        ends = None if one is None else [board.calendar.place(value) for value in (one.lower, one.upper)]
        if ends is None or ends[0] is None or ends[1] is None:
            return None
        is_one = ends[0][0] == ends[1][0]
        height = board.shape[1] - 1
        return (ends[0][0], ends[1][0], ends[0][1] if is_one else 0, ends[1][1] if is_one else height)
    spans = [_span(axis, by_name.get(axis.field.name)) for axis in board.axes]
    if any(span is None for span in spans):
        return None
    across, down = spans[0], spans[1] if len(spans) == 2 else (0, 0)
    return (*across, *down) if across and down else None


def _places(ends: Sequence[float] | None, count: int) -> tuple[int, int] | None:
    if ends is None:
        return (0, count - 1)
    low, high = sorted(ends)
    first, last = max(0, math.floor(low + 0.5)), min(count - 1, math.ceil(high - 0.5))
    # A place reaches half a unit to both sides; a mark within one holds it.
    return (first, last) if first <= last else None


def _axis_range(axis: Axis, span: tuple[int, int]) -> FieldRange:
    values = axis.values[span[0] : span[1] + 1]
    known = [value for value in values if value is not None]
    return _range(axis, known[0] if known else None, known[-1] if known else None, None in values)


def _range(axis: Axis, lower: Any, upper: Any, with_null: bool) -> FieldRange:
    return FieldRange(axis.field.name, axis.field.source_id, axis.field.transform, axis.type, lower, upper, with_null)


def _span(axis: Axis, one: FieldRange | None) -> tuple[int, int] | None:
    if one is None:
        return (0, len(axis.values) - 1)
    places = [
        place
        for place, value in enumerate(axis.values)
        if (value is None and one.with_null)
        or (value is not None and one.lower is not None and one.lower <= value <= one.upper)
    ]
    return (places[0], places[-1]) if places else None
