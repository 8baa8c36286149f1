"""Rows of a number that is not among the common values: as many as the numbers next to it have."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from icestats.iceberg.value_order import Longs

_MOST_DIGITS = 6
_NEIGHBOURS = 32
"""Sampled rows on either side."""
_LARGEST = 2**52
"""Beyond it, doubles have no digits behind the point."""
CLEAR = 1.4
"""How many times another number of rows is beyond what so few sampled ones may show by chance."""


@dataclass(frozen=True, slots=True)
class NumberGrid:
    """The numbers of a column as multiples of the step between them: cents, for most prices."""

    scale: int
    """Whole numbers are so many times the column's."""
    step: int
    start: int
    common: Longs
    """The common values, in order."""
    others: Longs
    """The sampled rows of other values, in order."""

    def estimate(self, value: float, rows_a_sample: float) -> float:
        """Return how many rows a number has, of those that are not common; 0: too little is known around it.

        Parameters
        ----------
        value : float
            The number.
        rows_a_sample : float
            Rows of the table that each sampled one stands for.
        """
        scaled = value * self.scale
        if not math.isfinite(scaled):
            return 0.0
        whole = round(scaled)
        if len(self.others) < 2 * _NEIGHBOURS or (whole - self.start) % self.step:
            return 0.0
        place = int(np.searchsorted(self.others, whole))
        first = min(max(place - _NEIGHBOURS, 0), len(self.others) - 2 * _NEIGHBOURS)
        near = self.others[first : first + 2 * _NEIGHBOURS]
        low, high = int(near[0]), int(near[-1])
        if not low <= whole <= high:
            return 0.0
        ends = np.searchsorted(self.common, [low, high + 1])
        possible = (high - low) // self.step + 1 - int(ends[1] - ends[0])
        return len(near) * rows_a_sample / max(possible, 1)


def build_grid(common: Iterable[Any], sampled: Iterable[Any]) -> NumberGrid | None:
    """Build the grid of a column's values, as `value_sets.build_item` has them; None: they are no such numbers.

    Examples
    --------
    >>> grid = build_grid([1.25], [cents / 100 for cents in range(100, 300)])
    >>> grid.scale, grid.step, round(grid.estimate(2.0, 10.0), 1)
    (100, 1, 10.0)
    """
    known, drawn = list(common), [one for one in sampled if one is not None]
    values = np.array([*known, *drawn])
    if values.dtype.kind not in "if" or not len(drawn) or not np.abs(values.astype(np.float64)).max() <= _LARGEST:
        return None
    for digits in range(_MOST_DIGITS + 1 if values.dtype.kind == "f" else 1):
        scaled = values * 10**digits
        if np.abs(scaled).max() > _LARGEST:
            return None
        if np.allclose(scaled, np.rint(scaled), rtol=1e-12, atol=1e-6):
            whole = np.rint(scaled).astype(np.int64)
            start = int(whole.min())
            step = int(np.gcd.reduce(whole - start))
            mine = np.sort(whole[: len(known)])
            others = np.sort(whole[len(known) :])
            return NumberGrid(10**digits, max(step, 1), start, mine, others[~np.isin(others, mine)])
    return None
