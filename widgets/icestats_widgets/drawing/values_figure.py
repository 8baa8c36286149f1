"""The most common values of a column, a bar each."""

from __future__ import annotations

from collections.abc import Sequence

from icestats.answers.text import counted, render_rows
from icestats_widgets.drawing.canvas import Canvas, Picture, shorten, text_width
from icestats_widgets.drawing.scales import LinearScale

_ROW, _BAR, _TOP = 18, 12, 8
_MOST_LABEL = 0.4
"""Of the width, for what is written beside the bars."""


def build_values_figure(values: Sequence[tuple[str, int, int]], row_count: int, *, width: float) -> Picture:
    """Build the figure of a column's common values.

    Parameters
    ----------
    values : sequence of tuple
        A value as text, its rows at least, and at most; the most common first.
    row_count : int
        All rows.
    width : float
        Pixels.

    Returns
    -------
    Picture
        A bar's key is the place of its value.
    """
    canvas = Canvas(width, _TOP * 2 + _ROW * len(values), f"{counted(len(values), 'common value')}")
    shares = [f"{(lower + upper) / 2 / max(row_count, 1):.2%}" for _, lower, upper in values]
    right = max((text_width(share) for share in shares), default=0.0) + 8
    left = min(max((text_width(text) for text, _, _ in values), default=0.0) + 8, width * _MOST_LABEL)
    scale = LinearScale(0.0, float(max((upper for _, _, upper in values), default=1)) or 1.0)
    room = max(width - left - right, 1.0)
    for place, ((text, lower, upper), share) in enumerate(zip(values, shares, strict=True)):
        top = _TOP + place * _ROW
        title = f"{text}\n{render_rows(lower, upper)}, {share}"
        canvas.text(left - 6, top + _BAR - 2, shorten(text, left - 8), anchor="end", title=title)
        canvas.rect(left, top, scale.position(upper) * room, _BAR, "data", key=str(place), title=title)
        canvas.text(left + scale.position(upper) * room + 4, top + _BAR - 2, share)
    return canvas.picture()
