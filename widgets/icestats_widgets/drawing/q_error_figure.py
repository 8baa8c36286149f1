"""How far off each source of statistics is, over a workload of filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icestats_widgets.drawing.axes import AXIS_HEIGHT, draw_row_labels, draw_x_axis
from icestats_widgets.drawing.canvas import Canvas, Picture, Plot, shorten, text_width
from icestats_widgets.drawing.scales import BandScale, LinearScale, LogScale

_ROW, _TOP, _LONGEST_NAME, _GAP = 34, 26, 160, 24
_UNANSWERED = 0.18
"""The share of the width that unanswered filters take."""
_MOST_DOTS = 1_000


def build_q_error_figure(workload: pa.Table, *, width: float) -> Picture:
    """Build the figure of a workload's q-errors.

    Parameters
    ----------
    workload : pyarrow.Table
        `schemas.WORKLOAD`, as `Workload.to_arrow` gives it.
    width : float
        Pixels.

    Returns
    -------
    Picture
        The plot `q-errors`: for each source a box from the lower to the upper quartile with a line at the median, and
        each filter as a point, on a logarithmic axis. `unanswered`: the share of filters that each source cannot
        answer. The first source is on top.
    """
    rows = workload.to_pylist()
    sources = tuple(dict.fromkeys(row["source"] for row in rows))
    errors = [row["q_error"] for row in rows if row["q_error"] is not None]
    left = 14 + min(_LONGEST_NAME, max(map(text_width, sources), default=40))
    split = width - (width - left) * _UNANSWERED
    height = _ROW * max(1, len(sources))
    canvas = Canvas(width, _TOP + height + AXIS_HEIGHT, f"q-errors of {len(sources):,} sources of statistics")
    x = LogScale(1.0, max(10.0, *errors, 10.0) * 1.2)
    plot = canvas.plot(Plot("q-errors", left, _TOP, split - _GAP - left, height, x, BandScale(sources)))
    beside = Plot("unanswered", split, _TOP, width - split - 16, height, LinearScale(0, 1, render=_percents), plot.y)
    canvas.plot(beside)
    draw_x_axis(canvas, plot, "q-error: the factor by which an estimate is off; 1 is perfect", has_grid=True)
    draw_x_axis(canvas, beside, "not answered", has_grid=True)
    draw_row_labels(canvas, plot)
    step = max(1, -(-len(rows) // _MOST_DOTS))
    for place, source in enumerate(sources):
        asked = [row for row in rows if row["source"] == source]
        known = sorted((row for row in asked if row["q_error"] is not None), key=lambda row: row["q_error"])
        _draw_box(canvas, plot, place, [row["q_error"] for row in known])
        # The worst is always drawn.
        for number, row in enumerate(known[::-1][::step]):
            y = plot.y_at(place) + (number * 7 % 15 - 7)
            canvas.dot(plot.x_at(row["q_error"]), y, 2.4, "data dim", title=_title(row))
        _draw_unanswered(canvas, beside, place, len(asked) - len(known), len(asked))
    if step > 1:
        canvas.text(4, 14, f"1 filter in {step:,} is a point; boxes are of all")
    return canvas.picture()


def _draw_box(canvas: Canvas, plot: Plot, place: int, errors: Sequence[float]) -> None:
    if not errors:
        return
    quartiles = [float(value) for value in np.quantile(errors, (0.25, 0.5, 0.75))]
    low, middle, high = (plot.x_at(value) for value in quartiles)
    y = plot.y_at(place)
    title = f"median {quartiles[1]:,.3g}, half from {quartiles[0]:,.3g} to {quartiles[2]:,.3g}, worst {errors[-1]:,.3g}"
    canvas.rect(low, y - 11, max(high - low, 1), 22, "data pale", title=title)
    canvas.rect(middle - 1, y - 11, 2, 22, "data", title=title)


def _draw_unanswered(canvas: Canvas, plot: Plot, place: int, count: int, total: int) -> None:
    y, right = plot.y_at(place), plot.x_at(count / total)
    title = f"{count:,} of {total:,} filters not answered"
    canvas.rect(plot.left, y - 6, right - plot.left, 12, "missing", title=title)
    if not count:
        canvas.text(plot.left + 4, y + 4, "none")


def _title(row: dict[str, Any]) -> str:
    counts = f"{row['rows']:,.0f} estimated, {row['actual']:,} counted"
    return f"{shorten(row['row_filter'], 700)}\n{counts}\nq-error {row['q_error']:,.3g}"


def _percents(values: Sequence[float]) -> list[str]:
    return [f"{value:.0%}" for value in values]
