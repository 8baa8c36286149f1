"""A batch of values as a few weighted items: what a KLL sketch would compact the batch to, found by one sort.

A KLL sketch keeps one value of every two when it compacts a level. Sorting a batch and keeping one random value of
every 2^h neighbours is like h such compactions, but with less error: within the batch no rank is off by more than 2^h
values, and on average ranks are not off at all. A value that occurs c times needs no compaction: it is put on the level
of each bit that is set in c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_COUNTED = 1_000

_Levels = tuple[Sequence[Any], ...]


def thin(dense: pa.Array, kept: int, random: np.random.Generator) -> tuple[_Levels, Any, Any]:
    """Return the levels of a batch, and its smallest and largest value.

    Parameters
    ----------
    dense : pyarrow.Array
        Strings or integers, without nulls: at least `2 * kept`.
    kept : int
        The least number of values to keep; up to twice as many are kept.
    random : numpy.random.Generator
        Chooses the value that stands for its neighbours.
    """
    height = (len(dense) // kept).bit_length() - 1
    order = pc.array_sort_indices(dense)
    groups = len(dense) >> height
    picks = (np.arange(groups) << height) + random.integers(0, 1 << height, groups)
    rest = dense.take(order.slice(groups << height)).to_pylist()
    body = dense.take(order.take(pa.array(picks))).to_pylist()
    low, high = dense.take(order.take(pa.array([0, len(order) - 1]))).to_pylist()
    return (rest, *[()] * (height - 1), body), low, high


def weigh_counted(values: Sequence[Any], counts: Sequence[int]) -> list[_Levels]:
    """Return the levels of values that have counts; several, if there are too many values for one.

    Parameters
    ----------
    values : sequence
        The values, in any order; they may repeat.
    counts : sequence of int
        The count of each value: 1 or more.
    """
    pairs = sorted(zip(values, counts, strict=True))
    return [_counted_levels(pairs[start : start + _COUNTED]) for start in range(0, len(pairs), _COUNTED)]


def _counted_levels(pairs: Sequence[tuple[Any, int]]) -> _Levels:
    height = max(count for _, count in pairs).bit_length()
    return tuple([value for value, count in pairs if count >> level & 1] for level in range(height))
