"""The part of a histogram that is worth drawing: far tails would squeeze everything into one bar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from icestats.stats.histogram import Histogram, Kind
from icestats_widgets.drawing.axis import axis_position

MIDDLE = (0.01, 0.99)
"""The middle lies between these ranks; finer ranks would exceed the sketch's precision."""
MOST_BINS = 100_000
"""Most bins to ask for over the whole range; beyond it, bins of equal height are drawn instead."""
LARGEST = 1e300
"""Positions beyond this count as infinite: no axis has room for them."""
WORTH_CUTTING = 0.5
"""If the middle covers more of the range than this, the tails are drawn too."""


@dataclass(frozen=True)
class HistogramPart:
    """A histogram, or the middle of one."""

    histogram: Histogram
    """Has only the bins that are drawn; `n`, the error and the quantiles cover all values."""
    below: float
    """Estimated number of values below the first bin; 0 if nothing is cut."""
    above: float
    """Estimated number of values above the last bin."""
    asked: Kind
    """The kind that was asked for; the histogram's kind differs if the tails are too long for bins of equal width."""
    bins: int
    """Of how many bins over the whole range these are a part: what `Table.histogram` was asked for."""

    where: str | None = None
    """The filter that says the partitions whose values they are; None: the whole table."""
    holds_more: bool = False
    """Whether these partitions may have rows that `where` does not select."""
    of_whole: str = ""
    """Why it is of the whole table, where less is asked."""
    common: tuple[tuple[str, int, int], ...] = ()
    """The most common values of the same rows as text, each with its rows at least and at most."""
    window: tuple[float, float] | None = None
    """The visible part of the axis if the outermost bins extend further; None: all bins."""

    @property
    def is_cut(self) -> bool:
        """Whether some values lie outside the drawn range."""
        return self.below + self.above > 0 or self.window is not None


def read_histogram_part(
    read: Callable[..., Histogram],
    *,
    bins: int,
    kind: Kind,
    whole_range: bool,
    window: tuple[float, float] | None = None,
) -> HistogramPart:
    """Read a histogram at the resolution that its middle needs.

    Parameters
    ----------
    read : callable
        Returns the column's histogram over the whole range, given `bins`, about how many, and a `kind`.
    bins : int
        About how many bins to show.
    kind : {"equi-width", "equi-height"}
        Equal width or equal count.
    whole_range : bool
        Draw the whole range.
    window : tuple of two float, optional
        Draw this range, given as positions on the axis.
    """
    plain = read(bins=bins, kind=kind)
    if plain.type in ("string", "boolean") or plain.n == 0:
        return HistogramPart(plain, 0.0, 0.0, kind, bins)
    if window is None and not whole_range:
        window = find_middle(plain)
    if window is None:
        return cut_histogram(plain, -math.inf, math.inf, kind, bins)
    lower, upper = window
    finite = _finite(plain)
    needed = bins * (finite[-1] - finite[0]) / (upper - lower)
    if kind == "equi-width" and needed < MOST_BINS:
        finer = max(bins, math.ceil(needed))
        return cut_histogram(read(bins=finer, kind="equi-width"), lower, upper, kind, finer)
    cut = cut_histogram(read(bins=bins, kind="equi-height"), lower, upper, kind, bins)
    return replace(cut, window=window)


def find_middle(histogram: Histogram) -> tuple[float, float] | None:
    """Return the positions on the axis that enclose the middle of the values; None if cutting is not worth it."""
    finite = _finite(histogram)
    middle = [axis_position(histogram.type, histogram.quantiles[rank]) for rank in MIDDLE]
    lower = middle[0] if _is_drawable(middle[0]) else finite[0]
    upper = middle[1] if _is_drawable(middle[1]) else finite[-1]
    return (lower, upper) if 0 < upper - lower < WORTH_CUTTING * (finite[-1] - finite[0]) else None


def cut_histogram(histogram: Histogram, lower: float, upper: float, asked: Kind, bins: int) -> HistogramPart:
    """Return the bins of a histogram between `lower` and `upper`; bins that extend to infinity are never drawn."""
    positions = [axis_position(histogram.type, edge) for edge in histogram.edges]
    kept = [
        i
        for i, (a, b) in enumerate(pairwise(positions))
        if a < upper and b > lower and _is_drawable(a) and _is_drawable(b)
    ]
    if not kept:
        return HistogramPart(replace(histogram, edges=(), counts=()), 0.0, sum(histogram.counts), asked, bins)
    first, last = kept[0], kept[-1]
    part = replace(histogram, edges=histogram.edges[first : last + 2], counts=tuple(histogram.counts[first : last + 1]))
    return HistogramPart(part, sum(histogram.counts[:first]), sum(histogram.counts[last + 1 :]), asked, bins)


def _finite(histogram: Histogram) -> list[float]:
    positions = [axis_position(histogram.type, edge) for edge in histogram.edges]
    return [p for p in positions if _is_drawable(p)] or [0.0, 0.0]


def _is_drawable(position: float) -> bool:
    return abs(position) < LARGEST
