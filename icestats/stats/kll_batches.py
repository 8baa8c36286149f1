"""A batch of values as a few weighted items: what a KLL sketch would compact the batch to, found by one sort.

A KLL sketch keeps one value of every two when it compacts a level. Sorting a batch and keeping one random value of
every 2^h neighbours is like h such compactions, but with less error: within the batch no rank is off by more than 2^h
values, and on average ranks are not off at all. A value that occurs c times needs no compaction: it is put on the level
of each bit that is set in c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.stats.column_values import byte_ranges

TEXT_BATCH: Final = 65_536
"""The most values that `thin_texts` takes at once: their positions fit in 16 bits."""

_ROUNDS = 4
_COUNTED = 1_000

_Levels = tuple[Sequence[Any], ...]


def _thinning_height(count: int, kept: int) -> int:
    """Return the highest level h such that keeping one of every 2^h values keeps at least `kept` of `count`."""
    return max(0, (count // kept).bit_length() - 1)


def thin_numbers(values: npt.NDArray[Any], kept: int, random: np.random.Generator) -> tuple[_Levels, Any, Any]:
    """Return the levels of a batch of numbers, and its smallest and largest value.

    Parameters
    ----------
    values : numpy.ndarray
        Numbers without NaN; at least one.
    kept : int
        The least number of values to keep; up to twice as many are kept.
    random : numpy.random.Generator
        Chooses the value that stands for its neighbours.
    """
    height = _thinning_height(len(values), kept)
    groups = len(values) >> height
    body, rest = np.sort(values[: groups << height]), values[groups << height :]
    picks = body[_one_of_each(groups, height, random)]
    low, high = min(body[0], rest.min(initial=body[0])), max(body[-1], rest.max(initial=body[-1]))
    return _levels(rest.tolist(), picks.tolist(), height), low.item(), high.item()


def thin_texts(dense: pa.Array, kept: int, random: np.random.Generator) -> tuple[_Levels, str, str] | None:
    """Return the levels of a batch of strings, and its smallest and largest; None if a cheap sort cannot order them.

    The strings are sorted by their bytes after the common prefix, 4 bytes at a time, until only a few neighbours are
    equal. If that takes too many rounds, the result is None, and the caller has to add the strings one by one.

    Parameters
    ----------
    dense : pyarrow.Array
        At most `TEXT_BATCH` strings, without nulls; at least one.
    kept, random
        As for `thin_numbers`.
    """
    height = _thinning_height(len(dense), kept)
    extremes = pc.min_max(dense)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    groups = len(dense) >> height
    rest = groups << height
    order = _sorted_places(dense.slice(0, rest), _shared_prefix(low.encode(), high.encode()), 4 << height)
    if order is None:
        return None
    picks = sorted(dense.take(pa.array(order[_one_of_each(groups, height, random)])).to_pylist())
    return _levels(dense.slice(rest).to_pylist(), picks, height), low, high


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


def _levels(rest: Sequence[Any], picks: Sequence[Any], height: int) -> _Levels:
    if height == 0:
        return ([*picks, *rest],)
    return (rest, *[()] * (height - 1), picks)


def _one_of_each(groups: int, height: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    return (np.arange(groups, dtype=np.int64) << height) + random.integers(0, 1 << height, groups)


def _shared_prefix(low: bytes, high: bytes) -> int:
    length = min(len(low), len(high))
    return next((i for i in range(length) if low[i] != high[i]), length)


def _sorted_places(dense: pa.Array, prefix: int, longest_run: int) -> npt.NDArray[np.int64] | None:
    # Each key is the rank so far (16 bits), the next 4 bytes, and the position of the string in the batch (16 bits).
    data, offsets = byte_ranges(dense)
    words = np.lib.stride_tricks.as_strided(
        np.concatenate([data, np.zeros(8, np.uint8)])[:4].view(">u4"), (len(data) + 5,), (1,)
    )
    starts, ends = offsets[:-1] + prefix, offsets[1:]
    ranks = np.zeros(len(starts), np.uint64)
    for _ in range(_ROUNDS):
        missing = np.clip(4 - (ends - starts), 0, 4).astype(np.uint64) << np.uint64(3)
        bytes_ = words[np.minimum(starts, len(data))].astype(np.uint64) >> missing << missing
        keys = ranks << np.uint64(48) | bytes_ << np.uint64(16) | np.arange(len(ranks), dtype=np.uint64)
        keys.sort()
        places: npt.NDArray[np.int64] = (keys & np.uint64(TEXT_BATCH - 1)).astype(np.int64)
        keys >>= np.uint64(16)
        is_new = keys[1:] != keys[:-1]
        runs = np.diff(np.flatnonzero(is_new), prepend=-1, append=len(keys) - 1)
        starts = starts + 4
        if runs.max() <= longest_run or not (starts < ends).any():
            return places
        ranks[places[1:]] = np.cumsum(is_new)
        ranks[places[0]] = 0
    return None
