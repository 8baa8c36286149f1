"""The values that a KLL sketch keeps, in order, with the share of all values up to each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from icestats.stats.kll_layout import KllLayout


class KllView:
    """Answers about a sketch as it was.

    Parameters
    ----------
    layout : KllLayout
        The sketch; not empty.
    """

    __slots__ = ("_items", "_n", "_weights", "max_value", "min_value")

    def __init__(self, layout: KllLayout) -> None:
        pairs = sorted((item, 1 << height) for height, level in enumerate(layout.levels) for item in level)
        self._n = layout.n
        self._items = [item for item, _ in pairs]
        self._weights = list(accumulate(weight for _, weight in pairs))
        self.min_value = layout.min_value
        self.max_value = layout.max_value

    def quantile(self, rank: float) -> Any:
        """Return the smallest value that so large a share does not exceed; at 0.0 and 1.0 the extremes."""
        if rank == 0.0:
            return self.min_value
        if rank == 1.0:
            return self.max_value
        # The factor keeps a product such as 0.07 * 100 from landing above the whole number that it means.
        return self._items[bisect_left(self._weights, rank * self._n * (1 - 1e-12))]

    def ranks(self, values: Sequence[Any], *, inclusive: bool) -> list[float]:
        """Return the share of values up to each of the given ones."""
        find = bisect_right if inclusive else bisect_left
        places = (find(self._items, value) for value in values)
        return [(self._weights[place - 1] if place else 0) / self._n for place in places]

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yield each value with how many it stands for."""
        yield from zip(self._items, (b - a for a, b in pairwise([0, *self._weights])), strict=True)
