"""Equi-height bins of a column, as optimizers take them: from the values that a KLL sketch keeps."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from icestats.stats.kll import KllSketch

MOST_BINS = 1_000
"""Beyond these an optimizer spends more time on bins than it saves."""
_MOST_PAIRS = 5_000
"""How many pairs of bins of the same value two such histograms may have. In Spark 4 a join looks at each, and takes
time by the square of their number: `computeByHistogram` of JoinEstimation.scala counts through a linked list."""
_TRIES = (1.0, 0.97, 0.94, 0.91, 0.88, 0.85)
"""Shares of the bins that there may be: shares of common values come out nearer with one number than with another."""
_MORE = 20
"""So many bins at most are added for what lies between common values, and would fill less than half a bin."""

_Weighed = list[tuple[Any, float]]
"""Items in order, and how many values each stands for."""
Beside = Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True)
class EquiHeightBins:
    """Bins of the same number of values; a value that fills bins is their lower and their upper edge."""

    edges: tuple[Any, ...]
    """Items as the sketch stores them, one more than there are bins; the first and the last are exact."""
    ndvs: tuple[int, ...]
    """Distinct values in each bin, 1 or more; together about those of the column."""
    common: Mapping[Any, int] = field(default_factory=dict)
    """Common values, and how many bins each has of its own. Where there are some, a bin begins with its lower edge and
    ends before the next one, or with its only value where both are the same; else a bin begins where one ends."""


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
    EquiHeightBins(edges=(1, 1, 7, 7, 7, 7, 7, 8, 9), ndvs=(1, 1, 1, 1, 1, 1, 1, 1), common={})
    """
    items = sorted([*((item, float(count)) for item, count in sketch.items()), *added])
    total, heaviest = sum(count for _, count in items), max(count for _, count in sketch.items())
    counts: dict[Any, float] = {}
    for item, count in items:
        counts[item] = counts.get(item, 0.0) + count
    repeated = (count for count in counts.values() if count > heaviest)
    bins = max(1, int(min(total / heaviest, _limit_bins(count / total for count in repeated))))
    values, sums = [item for item, _ in items], list(accumulate(count for _, count in items))
    inner = (values[bisect_left(sums, total * i / bins * (1 - 1e-12))] for i in range(1, bins))
    edges = (ends[0], *(min(max(edge, ends[0]), ends[1]) for edge in inner), ends[1])
    is_whole = sketch.item_type != "double"
    most = [_count_most(low, high, total / bins, is_whole=is_whole) for low, high in pairwise(edges)]
    repeated_edges = {low for low, high in pairwise(edges) if low == high}
    return EquiHeightBins(edges, tuple(_fill(most, ndv - len(repeated_edges))))


def build_around_common(
    sketch: KllSketch,
    ndv: int,
    *,
    ends: tuple[Any, Any],
    common: Mapping[Any, float],
    beside: Beside,
    added: Sequence[tuple[Any, float]] = (),
) -> EquiHeightBins | None:
    """Build the bins of a column whose common values are known.

    Parameters
    ----------
    sketch, ndv, ends, added
        As `build_equi_height` takes them.
    common : mapping of item to float
        Common values, and how many of the sketch's values each is.
    beside : callable
        Takes an item and 1 or -1, and returns the next or the last one before: none lies between.

    Returns
    -------
    EquiHeightBins or None
        About `MOST_BINS`, fewer where few values have most rows; None: no common value fills half a bin.

    Notes
    -----
    A value that fills half a bin has the number of bins of its own that comes nearest to its share. What lies between
    two such values fills bins by its ranks, less common values by their own number, the others by the sketch.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sketch = KllSketch("long")
    >>> sketch.update(pa.array([1, 7, 7, 7, 7, 7, 8, 900]))
    >>> bins = build_around_common(sketch, 4, ends=(1, 900), common={7: 5.0}, beside=int.__add__)
    >>> {item: count / len(bins.ndvs) for item, count in bins.common.items()}, bins.edges[-1]
    ({7: 0.625}, 900)
    """
    # Rows that are all of one value are added to that again and again.
    repeated = Counter(item for item, _ in added)
    weights = _weigh(sketch, ends, common, beside, added)
    common = common and {**dict.fromkeys((item for item, count in repeated.items() if count > 1), 0.0), **common}
    total = sum(weights.values())
    limit = _limit_bins(count / total for item, count in weights.items() if item in common)
    found: list[tuple[float, dict[Any, int], list[Any]]] = []
    for part in _TRIES:
        goal = limit * part
        for _ in range(2):
            filled = {item: weights[item] * goal / total for item in sorted(common) if item in weights}
            own = {item: max(1, round(bins)) for item, bins in filled.items() if bins >= 0.5}
            if not own:
                break
            edges = _lay_out(weights, own, ends, beside, total / goal)
            goal = float(len(edges) - 1)
            error = sum(abs(own.get(item, 0) / goal - weights[item] / total) for item in filled)
            found.append((error, own, edges))
    if not found:
        return None
    _, own, edges = min(found, key=lambda one: one[0])
    height, is_whole = total / (len(edges) - 1), sketch.item_type != "double"
    most = [0.0 if low in own else _count_most(low, high, height, is_whole=is_whole) for low, high in pairwise(edges)]
    return EquiHeightBins(tuple(edges), tuple(_fill(most, max(ndv - len(own), 0))), own)


def _weigh(
    sketch: KllSketch,
    ends: tuple[Any, Any],
    common: Mapping[Any, float],
    beside: Beside,
    added: Sequence[tuple[Any, float]],
) -> dict[Any, float]:
    """Return what is known of values between the ends: common ones as counted, the others up to an item as sketched."""
    weights = {item: count for item, count in common.items() if ends[0] <= item <= ends[1] and count > 0}
    inside = [(item, float(count)) for item, count in sketch.items() if ends[0] <= item <= ends[1]]
    others = [(item, count) for item, count in inside if item not in common]
    left = sum(count for _, count in inside) - sum(weights.values())
    scale, known, low = max(left, 0.0) / (sum(count for _, count in others) or 1.0), sorted(weights), ends[0]
    more: _Weighed = [(item, count) for item, count in added if count > 0]
    for item, count in others if scale else ():
        within = known[bisect_right(known, low) : bisect_left(known, item)]
        parts = list(zip([low, *within], [*(beside(one, -1) for one in within), item], strict=True))
        width = sum(float(end - start) for start, end in parts)
        more += [(end, count * scale * float(end - start) / width) for start, end in parts if end > start]
        more += [] if width else [(item, count * scale)]
        low = item
    for item, count in more:
        weights[item] = weights.get(item, 0.0) + count
    return weights


def _lay_out(
    weights: Mapping[Any, float],
    own: Mapping[Any, int],
    ends: tuple[Any, Any],
    beside: Beside,
    height: float,
) -> list[Any]:
    """Return the edges of bins: those of values of their own, and between them those that the others fill."""
    rest = sorted((item, count) for item, count in weights.items() if item not in own)
    edges: list[Any] = []
    first, filled, place, more = ends[0], 0.0, 0, _MORE
    for value in [*own, None]:
        until = len(rest) if value is None else bisect_left(rest, value, key=lambda one: one[0])
        between, place = rest[place:until], until
        filled += sum(count for _, count in between) / height
        # What a bin does not hold is lost: Spark fails on a literal between the bounds that no bin holds.
        is_needed = value is not None and not edges and first < value
        bins = max(round(filled), int(is_needed), 0) if between or is_needed else 0
        if between and not bins and more:
            bins, more = 1, more - 1
        filled = max(filled - bins, -0.5)
        edges += _split(between or [(first, 1.0)], bins, first, beside)
        if value is not None:
            edges += [value] * own[value]
            first = beside(value, 1)
    return [*edges, ends[1]]


def _split(items: _Weighed, bins: int, first: Any, beside: Beside) -> Iterator[Any]:
    """Yield the lower edges of so many bins of some items, as values spread evenly from each item to the next."""
    sums, step = list(accumulate(count for _, count in items)), 0.0
    for number in range(bins):
        step = sums[-1] * number / bins
        place = bisect_left(sums, step)
        low, low_sum = (items[place - 1][0], sums[place - 1]) if place else (first, 0.0)
        reached = place_between(low, items[place][0], (step - low_sum) / items[place][1])
        yield min(beside(reached, 1), items[-1][0]) if number else first


def _limit_bins(shares: Iterable[float]) -> float:
    """Return how many bins a column may have of whose values some have these shares."""
    return min(float(MOST_BINS), math.sqrt(_MOST_PAIRS / max(sum(share * share for share in shares), 1e-9)))


def place_between(low: Any, high: Any, share: float) -> Any:
    """Return the item at a share of the way from one to another.

    Examples
    --------
    >>> place_between(1, 5, 0.5), place_between(1.0, 2.0, 0.25)
    (3, 1.25)
    """
    return low + (high - low) * share if isinstance(low, float) else low + round((high - low) * share)


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
