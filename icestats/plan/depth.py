"""How many of many key ranges a key lies in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icestats.plan.keys import Longs, Mask


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
    lower: Longs, upper: Longs, known: Mask, keys: Longs, weights: npt.NDArray[np.float64], valueless_count: int = 0
) -> Depth:
    """Count for some keys the ranges that they lie in, both ends included.

    Parameters
    ----------
    lower, upper : numpy.ndarray of int64
        The ranges.
    known : numpy.ndarray of bool
        Which of them have both bounds.
    keys : numpy.ndarray of int64
        The keys to look up.
    weights : numpy.ndarray of float64
        How much each key counts: the rows that it stands for.
    valueless_count : int, optional
        Ranges that hold no key at all.

    Examples
    --------
    >>> ranges = np.array([1, 5, 9]), np.array([6, 8, 9])
    >>> build_depth(*ranges, np.ones(3, bool), np.array([1, 6, 9]), np.ones(3)).mean
    1.3333333333333333
    """
    lows, highs = np.sort(lower[known]), np.sort(upper[known])
    unknown = len(known) - int(known.sum()) - valueless_count
    if not len(keys):
        return Depth(len(known), unknown, float(unknown), unknown, ())
    found = np.searchsorted(lows, keys, side="right") - np.searchsorted(highs, keys, side="left") + unknown
    total = float(weights.sum()) or 1.0
    return Depth(
        range_count=len(known),
        unknown_count=unknown,
        mean=float((found * weights).sum() / total),
        max=int(found.max()),
        histogram=_histogram(found, weights / total),
    )


def collapse(keys: Longs, weights: npt.NDArray[np.float64]) -> tuple[Longs, npt.NDArray[np.float64]]:
    """Return the distinct keys, sorted, and the sum of the weights of each."""
    if not len(keys):
        return keys, weights
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _histogram(depths: Longs, shares: npt.NDArray[np.float64]) -> tuple[tuple[int, int, float], ...]:
    bins = np.frexp(np.maximum(depths, 1).astype(np.float64))[1] - 1
    sums = np.bincount(bins, weights=shares)
    # frexp(1) is bin 0 (depth 1), depths 2 to 3 are bin 1, 4 to 7 bin 2.
    return tuple((1 << place, (2 << place) - 1, float(share)) for place, share in enumerate(sums) if share > 0)
