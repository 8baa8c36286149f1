"""Whether an interval covers, or meets, what lies between the bounds of many groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from icestats.plan.sets.value_sets import BOTTOM, Cut, Interval, above, below

Booleans = npt.NDArray[np.bool_]
Items = npt.NDArray[Any]


def close(interval: Interval) -> Interval:
    """Return the same whole numbers with both ends inside.

    Examples
    --------
    >>> close(Interval(above(3), below(7)))
    Interval(low=(0, 4, 0), high=(0, 6, 1))
    """
    low = below(interval.low[1] + interval.low[2]) if len(interval.low) == 3 else interval.low
    high = above(interval.high[1] - 1 + interval.high[2]) if len(interval.high) == 3 else interval.high
    return Interval(low, high)


def covers(interval: Interval, lower: Items, upper: Items) -> Booleans:
    """Say for each group whether all from its lower to its upper bound lies in the interval."""
    return _at_or_before(interval.low, lower) & ~_at_or_before(interval.high, upper)


def meets(interval: Interval, lower: Items, upper: Items) -> Booleans:
    """Say for each group whether anything from its lower to its upper bound lies in the interval."""
    return _at_or_before(interval.low, upper) & ~_at_or_before(interval.high, lower)


def _at_or_before(cut: Cut, items: Items) -> Booleans:
    """Whether a cut lies at or before the place just below each item."""
    if len(cut) == 1:
        return np.full(len(items), cut == BOTTOM)
    value = cut[1].encode("utf-8", "surrogatepass") if isinstance(cut[1], str) else cut[1]
    if items.dtype == object:
        return np.asarray([value < item or (value == item and cut[2] == 0) for item in items], np.bool_)
    return np.asarray((items > value) | ((items == value) & (cut[2] == 0)), np.bool_)
