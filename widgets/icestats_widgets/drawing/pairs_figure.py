"""How far columns decide one another: a square of columns by columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from icestats.answers.text import counted
from icestats_widgets.drawing.canvas import HEAT_LEVELS, Canvas, Picture, shorten, text_width

_CELL, _LEAST_NAMED, _HEAD = 34.0, 11.0, 18.0
_MOST_LABEL = 0.4
"""Of the width, for the names of columns."""


def build_pairs_figure(
    columns: Sequence[str],
    strengths: Mapping[tuple[int, int], tuple[float, str, str]],
    *,
    chosen: Collection[str],
    width: float,
) -> Picture:
    """Build the figure of the pairs of columns that have statistics together.

    Parameters
    ----------
    columns : sequence of str
        The columns, in the order of rows and of columns of the square.
    strengths : mapping of tuple of two int to tuple
        For the column of a row and that of a column, by their places: how far the first decides the second, 0 to 1; a
        key to choose the pair by; what is said of it.
    chosen : collection of str
        The keys of the cells that are marked.
    width : float
        Pixels.

    Returns
    -------
    Picture
        Cells without statistics are blank; where there are too many columns for
        names, each cell's title has them.
    """
    names = [f"{number}  {name}" for number, name in enumerate(columns, 1)]
    left = min(max((text_width(name) for name in names), default=0.0) + 10, width * _MOST_LABEL)
    cell = min(_CELL, (width - left) / max(len(columns), 1))
    gap = min(2.0, cell / 5)
    label = f"How far {counted(len(columns), 'column')} decide one another"
    canvas = Canvas(width, _HEAD + cell * len(columns) + gap, label)
    for place, name in enumerate(names if cell >= _LEAST_NAMED else ()):
        middle = _HEAD + cell * (place + 0.5) + 4
        canvas.text(0, middle, shorten(name, left - 8), title=columns[place])
        canvas.text(left + cell * (place + 0.5), _HEAD - 6, str(place + 1), anchor="middle", title=columns[place])
    for row in range(len(columns)):
        for column in range(len(columns)):
            x, y = left + cell * column, _HEAD + cell * row
            found = strengths.get((row, column))
            if found is None:
                canvas.rect(x, y, cell - gap, cell - gap, "line" if row == column else "cold0")
                continue
            strength, key, about = found
            if key in chosen:
                canvas.rect(x - gap, y - gap, cell + gap, cell + gap, "mark")
            level = min(int(strength * HEAT_LEVELS), HEAT_LEVELS - 1)
            canvas.rect(x, y, cell - gap, cell - gap, f"heat{level}", key=key, title=about)
    return canvas.picture()
