"""Small numbers that order like some integers: with them, counting does what would take a sort each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from icestats.iceberg.value_order import Longs

_NARROW = 4
"""Integers are counted instead of sorted where they span this many times as many values as there are of them."""


def build_ranks(values: Longs) -> tuple[Longs, Longs]:
    """Return the dense rank of each of some integers, from 0 on, and the distinct integers, ascending.

    Examples
    --------
    >>> ranks, distinct = build_ranks(np.array([70, -5, 70, 8]))
    >>> ranks.tolist(), distinct.tolist()
    ([2, 0, 2, 1], [-5, 8, 70])
    """
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span <= _NARROW * len(values):
        return _count(values - least, least, span)
    order = _sort(values, least, span)
    ordered = values[order]
    new = np.empty(len(values), np.bool_)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(new) - 1
    return ranks, ordered[new]


def _count(offsets: Longs, least: int, span: int) -> tuple[Longs, Longs]:
    there = np.zeros(span, np.bool_)
    there[offsets] = True
    return (np.cumsum(there) - 1)[offsets], np.flatnonzero(there) + least


def _sort(values: Longs, least: int, span: int) -> Longs:
    """Return the order of some integers."""
    width = len(values).bit_length()
    if span.bit_length() + width > 63:
        return np.argsort(values)
    # Each with its place in its lowest bits: sorting numbers is three times as fast as sorting their places.
    packed = np.sort(((values - least) << width) | np.arange(len(values)))
    return packed & ((1 << width) - 1)


def count_members(numbers: Longs) -> Longs:
    """Return how often each number occurs of those that do, in their order; numbers are small and not negative.

    Examples
    --------
    >>> count_members(np.array([3, 0, 3])).tolist()
    [1, 2]
    """
    counts = np.bincount(numbers)
    return counts[counts > 0]


def order_within(groups: Longs, values: npt.NDArray[np.float64]) -> Longs:
    """Return the order of values by group, then by value; groups are small numbers, not negative.

    Examples
    --------
    >>> order_within(np.array([1, 0, 1]), np.array([5.0, 9.0, 2.0])).tolist()
    [1, 2, 0]
    """
    order = np.argsort(values)
    chosen = groups[order]
    # Numbers of 16 bits are sorted by counting.
    narrow = chosen.astype(np.uint16) if int(chosen.max(initial=0)) < 1 << 16 else chosen
    return order[np.argsort(narrow, kind="stable")]


def sum_weights(numbers: Longs, weights: npt.NDArray[np.float64], count: int = 0) -> npt.NDArray[np.float64]:
    """Return for each number from 0 on, up to `count` or to the greatest one, the sum of the weights that it has.

    Examples
    --------
    >>> sum_weights(np.array([2, 0, 2]), np.array([1.5, 1.0, 2.5])).tolist()
    [1.0, 0.0, 4.0]
    """
    return np.bincount(numbers, weights=weights, minlength=count).astype(np.float64)
