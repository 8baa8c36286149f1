"""How large partitions are: a histogram of their sizes, with the ends that are too small or too large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from icestats.answers.text import counted, render_bytes
from icestats_widgets.drawing.axes import AXIS_HEIGHT, draw_legend, draw_x_axis, draw_y_axis
from icestats_widgets.drawing.canvas import Canvas, Picture, Plot
from icestats_widgets.drawing.scales import LinearScale, LogScale

_HEIGHT, _LEFT, _TOP = 200, 48, 30
_A_DECADE = 6
Span = tuple[float, float]


def build_size_figure(
    sizes: Sequence[int],
    *,
    width: float,
    small: float | None = None,
    large: float | None = None,
    selected: Span | None = None,
) -> Picture:
    """Build the figure of how many partitions have which size.

    Parameters
    ----------
    sizes : sequence of int
        The bytes of each partition.
    width : float
        Pixels.
    small, large : float, optional
        Sizes below the first, or above the second, stand out.
    selected : tuple of float, optional
        A bar's sizes, to be framed: from the first to below the second.

    Returns
    -------
    Picture
        The plot `sizes`, whose x axis is logarithmic; partitions of size 0 have a bar of their own at its left. A bar's
        key is read by `read_span`. A bar never reaches across one of the limits.
    """
    spans = _spans(sizes, [limit for limit in (small, large) if limit])
    values = np.asarray(sizes, np.float64)
    counts = [int(((values >= low) & (values < high)).sum()) for low, high in spans]
    canvas = Canvas(width, _HEIGHT, f"Sizes of {counted(len(sizes), 'partition')}")
    zero = _zero_end(spans)
    x = LogScale(zero, max(spans[-1][1] if spans else 10.0, zero * 10), _render)
    y = LinearScale(max(counts, default=1) * 1.08, 0.0, is_whole=True)
    plot = canvas.plot(Plot("sizes", _LEFT, _TOP, width - _LEFT - 12, _HEIGHT - _TOP - AXIS_HEIGHT, x, y))
    draw_y_axis(canvas, plot)
    for span, count in zip(spans, counts, strict=True):
        kind = "deletes" if small and span[1] <= small else "error" if large and span[0] >= large else "data"
        left, right = plot.x_at(span[0]), plot.x_at(span[1])
        gap, top = (1 if right - left > 4 else 0), plot.y_at(count)
        key = f"{span[0]!r}:{span[1]!r}"
        if count:
            title = f"{_span_text(span)}\n{counted(count, 'partition')}"
            canvas.rect(left, top, right - left - gap, plot.bottom - top, kind, key=key, title=title)
        if selected == span:
            canvas.rect(left, plot.top, right - left - gap, plot.height, "frame")
    draw_x_axis(canvas, plot, "bytes of a partition, log scale")
    if spans and spans[0][0] == 0:
        canvas.text(plot.left - 4, plot.bottom + 15, "0", anchor="end")
    entries = [("data", "partitions")]
    if small:
        few = int((values < small).sum())
        entries.append(("deletes", f"too small, below {render_bytes(round(small))}: {few:,}"))
    if large:
        many = int((values >= large).sum())
        entries.append(("error", f"too large, from {render_bytes(round(large))} on: {many:,}"))
    draw_legend(canvas, 4, 14, entries)
    return canvas.picture()


def read_span(key: str) -> Span | None:
    """Return the sizes of the bar with a key, from the first to below the second; None if it is no such key.

    Examples
    --------
    >>> read_span("10.0:100.0"), read_span("none")
    ((10.0, 100.0), None)
    """
    first, _, second = key.partition(":")
    try:
        span = float(first), float(second)
    except ValueError:
        return None
    return span if span[0] < span[1] else None


def _spans(sizes: Sequence[int], limits: Sequence[float]) -> list[Span]:
    positive = [size for size in sizes if size > 0]
    spans: list[Span] = []
    if positive:
        # One of the limits is the edge of a bar anyway; the other one may cut a bar in two.
        base = limits[0] if limits else 1.0
        first, last = (math.floor(math.log10(size / base) * _A_DECADE) for size in (min(positive), max(positive)))
        edges = [base * 10 ** (power / _A_DECADE) for power in range(first, last + 2)]
        # Rounding must not leave the smallest or the largest outside.
        edges[0], edges[-1] = min(edges[0], min(positive)), max(edges[-1], max(positive) * (1 + 1e-9) + 1e-9)
        edges = sorted({*edges, *(limit for limit in limits if edges[0] < limit < edges[-1])})
        spans = list(pairwise(edges))
    if len(positive) < len(sizes):
        spans.insert(0, (0.0, spans[0][0] if spans else 1.0))
    return spans


def _zero_end(spans: Sequence[Span]) -> float:
    # The bar of size 0 is as wide as others: a logarithmic axis has no 0.
    if not spans:
        return 1.0
    return spans[0][1] / 10 ** (1 / _A_DECADE) if spans[0][0] == 0 else spans[0][0]


def _span_text(span: Span) -> str:
    texts = _render(span)
    return f"{texts[0]} to below {texts[1]}" if span[0] else "empty"


def _render(values: Sequence[float]) -> list[str]:
    return [render_bytes(round(value)) for value in values]
