"""Equi-height bins of a column, as optimizers take them: from the values that a KLL sketch keeps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from icestats.stats.kll import KllSketch

MOST_BINS = 1_000
"""Beyond these an optimizer spends more time on bins than it saves."""


@dataclass(frozen=True, slots=True)
class EquiHeightBins:
    """Bins of the same number of values; a value that fills bins is their lower and their upper edge."""

    edges: tuple[Any, ...]
    """Items as the sketch stores them, one more than there are bins; the first and the last are exact."""
    ndvs: tuple[int, ...]
    """Distinct values in each bin, 1 or more; together about those of the column."""


def build_equi_height(
    sketch: KllSketch, ndv: int, *, ends: tuple[Any, Any], added: Sequence[tuple[Any, float]] = ()
) -> EquiHeightBins:
    """Build the bins of a column.

    Parameters
    ----------
    sketch : KllSketch
        Numbers; not empty.
    ndv : int
        The number of distinct values.
    ends : tuple
        The smallest and the largest value, as items of the sketch; they include those of the sketch.
    added : sequence of tuple of an item and a float
        Values that the sketch does not know, and how many of its own each stands for.

    Notes
    -----
    No bin is lower than the number of values that one item of the sketch stands for, so that an item which was kept by
    chance does not look like a frequent value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sketch = KllSketch("long")
    >>> sketch.update(pa.array([1, 7, 7, 7, 7, 7, 8, 9]))
    >>> build_equi_height(sketch, 4, ends=(1, 9))
    EquiHeightBins(edges=(1, 1, 7, 7, 7, 7, 7, 8, 9), ndvs=(1, 1, 1, 1, 1, 1, 1, 1))
    """
    items = sorted([*((item, float(count)) for item, count in sketch.items()), *added])
    total, heaviest = sum(count for _, count in items), max(count for _, count in sketch.items())
    bins = max(1, min(MOST_BINS, int(total / heaviest)))
    values, sums = [item for item, _ in items], list(accumulate(count for _, count in items))
    inner = (values[bisect_left(sums, total * i / bins * (1 - 1e-12))] for i in range(1, bins))
    edges = (ends[0], *(min(max(edge, ends[0]), ends[1]) for edge in inner), ends[1])
    is_whole = sketch.item_type != "double"
    most = [_count_most(low, high, total / bins, is_whole=is_whole) for low, high in pairwise(edges)]
    return EquiHeightBins(edges, tuple(_fill(most, ndv - _count_repeated(edges))))


def find_deviation(bins: EquiHeightBins) -> float:
    """Return how far the ranks of whole-numbered edges are from those of values that spread evenly.

    Returns
    -------
    float
        A share of all values: 0 where each whole number between the ends has as many values as another.
    """
    low, count, span = bins.edges[0], len(bins.ndvs), bins.edges[-1] - bins.edges[0] + 1
    places = ((i / count, edge - low) for i, edge in enumerate(bins.edges))
    return float(max(max(place / span - rank, rank - (place + 1) / span, 0.0) for rank, place in places))


def _count_most(low: Any, high: Any, height: float, *, is_whole: bool) -> float:
    """Return how many distinct values a bin can have; 0: it has one, which its edges tell."""
    if low == high:
        return 0.0
    return max(1.0, min(height, float(high - low)) if is_whole else height)


def _count_repeated(edges: Sequence[Any]) -> int:
    return len({low for low, high in pairwise(edges) if low == high})


def _fill(most: Sequence[float], ndv: int) -> Iterable[int]:
    """Share distinct values out: as many to each bin, but no more than it can have."""
    level, left = 1.0, float(ndv)
    rest = sorted(count for count in most if count)
    for place, count in enumerate(rest):
        level = max(1.0, left / (len(rest) - place))
        if count >= level:
            break
        left -= count
    return (max(1, round(min(count, level))) for count in most)
