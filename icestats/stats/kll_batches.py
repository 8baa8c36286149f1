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
import numpy.typing as npt


def thin(value_count: int, kept: int, random: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    """Return the levels of a batch, as the places of its values in their ascending order.

    Parameters
    ----------
    value_count : int
        How many values the batch has.
    kept : int
        The least number of values to keep, if there are as many; up to twice as many are kept.
    random : numpy.random.Generator
        Chooses the value that stands for its neighbours.
    """
    height = max((value_count // kept).bit_length() - 1, 0)
    groups = value_count >> height
    picks = (np.arange(groups) << height) + random.integers(0, 1 << height, groups)
    none = picks[:0]
    return [np.arange(groups << height, value_count), *[none] * (height - 1), picks] if height else [picks]


def weigh_counted(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Return the levels of values that have counts.

    Parameters
    ----------
    values : sequence
        The values, in any order; they may repeat.
    counts : sequence of int
        The count of each value: 1 or more.
    """
    pairs = sorted(zip(values, counts, strict=True))
    return [[value for value, count in pairs if count >> level & 1] for level in range(max(counts).bit_length())]
