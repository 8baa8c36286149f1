"""What a person has marked on the chart of partitions, as a selection."""

from __future__ import annotations

import math
from collections.abc import Sequence

from icestats_widgets.drawing.canvas import Picture
from icestats_widgets.drawing.partition_board import Board, Cell, Zone
from icestats_widgets.reading.selection import Selection

_EDGE = 1e-6


def select_marked(
    board: Board, picture: Picture, plot: str, x: Sequence[float], y: Sequence[float] = (0.0, 1.0)
) -> Selection | None:
    """Return the partitions in a rectangle; None if these are all, or none.

    Parameters
    ----------
    board : Board
        Where partitions are drawn.
    picture : Picture
        The figure of that board.
    plot : str
        The plot that was marked: the name of a zone.
    x, y : sequence of float
        The ends of the rectangle from 0 to 1, in either order; y from the top.
    """
    zone = board.find_zone(plot)
    if zone is None or plot not in picture.plots:
        return None
    columns, rows = _places(x, len(zone.columns)), _places(y, len(zone.rows))
    return _select(board, zone, (columns[0], rows[0]), (columns[1], rows[1]))


def select_key(board: Board, key: str) -> Selection | None:
    """Return the partitions of the place that was clicked; None if there is no such place.

    Parameters
    ----------
    board : Board
        Where partitions are drawn.
    key : str
        The key of a mark of the figure.
    """
    name, *texts = key.split(" ")
    zone = board.find_zone(name)
    if zone is None or len(texts) != 2 or not all(text.isascii() and text.isdigit() for text in texts):
        return None
    cell = int(texts[0][:9]), int(texts[1][:9])
    if cell[0] >= len(zone.columns) or cell[1] >= len(zone.rows):
        return None
    return _select(board, zone, cell, cell)


def _select(board: Board, zone: Zone, first: Cell, last: Cell) -> Selection | None:
    ranges = zone.ranges(first, last)
    return Selection(board.spec_id, ranges) if ranges else None


def _places(ends: Sequence[float], count: int) -> tuple[int, int]:
    low, high = sorted(min(1.0, max(0.0, end)) * count for end in ends)
    # A mark that ends on the edge of a place does not hold it, as far as fractions are exact.
    first = min(count - 1, math.floor(low + _EDGE))
    return first, max(first, math.ceil(high - _EDGE) - 1)
