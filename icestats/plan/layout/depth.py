"""How many of many key ranges a key lies in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icestats.iceberg.value_order import Longs
from icestats.plan.layout.ranks import sum_weights


@dataclass(frozen=True, slots=True)
class Depth:
    """How many ranges a key lies in, over the keys of a table's rows."""

    range_count: int
    unknown_count: int
    """Ranges without bounds: a lookup of any key opens them. They are counted in the figures below."""
    mean: float
    max: int
    histogram: tuple[tuple[int, int, float], ...]
    """Share of the keys by depth: least and greatest depth of a bin, which are powers of two, and the share."""

    @property
    def share_opened(self) -> float:
        """The share of all ranges that the lookup of one key opens on average."""
        return self.mean / self.range_count if self.range_count else 0.0


def build_depth(
    lower: Longs,
    upper: Longs,
    weights: npt.NDArray[np.float64],
    *,
    unknown_count: int = 0,
    valueless_count: int = 0,
) -> Depth:
    """Count for each of some keys the ranges that it lies in, both ends included.

    Parameters
    ----------
    lower, upper : numpy.ndarray of int64
        The ranges, as places among the keys in ascending order: the first key and the last one in the range.
    weights : numpy.ndarray of float64
        How much each key counts: the rows that it stands for.
    unknown_count : int, optional
        Further ranges, without bounds: each key may lie in them.
    valueless_count : int, optional
        Further ranges that hold no key at all.

    Examples
    --------
    Of the keys 1, 6 and 9 the second lies in two of the ranges 1 to 6, 5 to 8 and 9 to 9:

    >>> build_depth(np.array([0, 1, 2]), np.array([1, 1, 2]), np.ones(3)).mean
    1.3333333333333333
    """
    range_count = len(lower) + unknown_count + valueless_count
    if not len(weights):
        return Depth(range_count, unknown_count, float(unknown_count), unknown_count, ())
    size = len(weights) + 1
    # Bounds that are the wrong way round hold no key.
    ends = np.maximum(upper + 1, lower)
    found = np.cumsum(np.bincount(lower, minlength=size) - np.bincount(ends, minlength=size))[:-1] + unknown_count
    by_depth = sum_weights(found, weights)
    total = float(by_depth.sum()) or 1.0
    return Depth(
        range_count=range_count,
        unknown_count=unknown_count,
        mean=float((np.arange(len(by_depth)) * by_depth).sum() / total),
        max=int(found.max()),
        histogram=_histogram(by_depth, total),
    )


def _histogram(by_depth: npt.NDArray[np.float64], total: float) -> tuple[tuple[int, int, float], ...]:
    # frexp(1) is bin 0 (depth 1), depths 2 to 3 are bin 1, 4 to 7 bin 2.
    bins = np.frexp(np.maximum(np.arange(len(by_depth)), 1).astype(np.float64))[1] - 1
    shares = sum_weights(bins.astype(np.int64), by_depth) / total
    return tuple((1 << place, (2 << place) - 1, float(share)) for place, share in enumerate(shares) if share > 0)
