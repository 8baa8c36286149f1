"""KLL sketches: ranks, quantiles and histograms of a column, within a known error.

The sketches are those of DataSketches, byte for byte, made here: its Python package has none of 64-bit integers, and
takes text and long decimals one by one. Source: Karnin, Lang, Liberty, "Optimal quantile approximation in streams",
2016; DataSketches' `kll_helper::general_compress` for when a level is halved; `kll_layout` has the bytes.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, count, pairwise, zip_longest
from secrets import randbits
from typing import Any

import datasketches
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.stats.column_values import dense_values, integer_values, unscaled_words
from icestats.stats.kll_layout import (
    ITEM_TYPES,
    MAX_K,
    MIN_K,
    TEXT_LENGTH,
    KllLayout,
    empty_layout,
    level_capacity,
    parse_kll,
    total_capacity,
)

_MERGED_K = 4096

_View = tuple[list[Any], list[int]]
"""The values that a sketch keeps, in order, and the number of all values up to each."""


def find_rank_error(k: int) -> float:
    """Return the error of any rank of a sketch of this size, as a share of all values, at 99 % confidence."""
    return float(datasketches.kll_doubles_sketch.get_normalized_rank_error(k, False))


class KllSketch:
    """The distribution of a column's values, in a few kilobytes.

    Parameters
    ----------
    item_type : str
        One of `kll_layout.ITEM_TYPES`: for an Iceberg type, the one that `kll_items.item_type_of` returns.
    k : int
        The size. The error of a rank is about 2.3 / k^0.97 of all values: 1.33 % for 200.

    Raises
    ------
    ValueError
        There is no such item type, or k is not between 8 and 65,535.

    Notes
    -----
    A sketch keeps values at random: two sketches of the same values differ, within the error. The count, the smallest
    and the largest value are exact. Strings are ordered by code point, like their UTF-8 bytes; of each `TEXT_LENGTH`
    characters are kept, so that what has as many may stand for a longer one, which is above it.

    Examples
    --------
    >>> sketch = KllSketch("long")
    >>> sketch.update(pa.array([3, None, 1, 2]))
    >>> sketch.n, sketch.min_value, sketch.max_value, sketch.quantiles([0.5])
    (3, 1, 3, [2])
    """

    __slots__ = ("_error", "_view", "item_type", "k", "layout")

    def __init__(self, item_type: str, k: int = 200) -> None:
        if item_type not in ITEM_TYPES:
            raise ValueError(f"item type {item_type!r}, expected one of {', '.join(ITEM_TYPES)}")
        if not MIN_K <= k <= MAX_K:
            raise ValueError(f"k is {k}, expected {MIN_K} to {MAX_K:,}")
        self.item_type = item_type
        self.k = k
        self._set(empty_layout(item_type, k))

    def _set(self, layout: KllLayout, error: float | None = None) -> None:
        self.layout = layout
        """The contents."""
        self._view: _View | None = None
        self._error = error

    def update(self, array: pa.Array | npt.NDArray[Any]) -> None:
        """Add the values of an array, without nulls and NaN.

        Parameters
        ----------
        array : pyarrow.Array or numpy.ndarray
            `double`: numbers. `long`: integers, booleans, dates, times, timestamps in the column's unit, decimals of up
            to 18 digits. `decimal`: decimals. `string`: strings. NumPy arrays only for `double` and `long`.

        Raises
        ------
        ValueError
            The array has values of another kind.
        """
        if isinstance(array, np.ndarray):
            array = pa.array(array)
        if self.item_type == "string":
            dense = dense_values(array, "string")
            if len(dense) and pc.max(pc.binary_length(dense)).as_py() > TEXT_LENGTH:
                dense = pc.utf8_slice_codeunits(dense, 0, TEXT_LENGTH)
            order = pc.array_sort_indices(dense)
            self._add_batch(len(dense), lambda places: dense.take(order.take(places)))
            return
        if self.item_type == "double":
            numbers = dense_values(array, "double").to_numpy(zero_copy_only=True)
            numbers = numbers[~np.isnan(numbers)]
        else:
            numbers = integer_values(array) if self.item_type == "long" else _unscaled_values(array)
        self._add_batch(len(numbers), np.sort(numbers).take)

    def update_counted(self, values: Sequence[Any], counts: Sequence[int]) -> None:
        """Add each value as often as its count says. This adds no error, and is fast if there are few values.

        A value is put on the level of each bit that is set in its count.

        Parameters
        ----------
        values : sequence
            Items as the sketch stores them (see `kll_items.item_type_of`): str, int, or float, but not NaN.
        counts : sequence of int
            The count of each value; 1 or more.
        """
        if self.item_type == "string":
            values = [value[:TEXT_LENGTH] for value in values]
        if len(values):
            pairs, heights = sorted(zip(values, counts, strict=True)), range(max(counts).bit_length())
            levels = [[value for value, count in pairs if count >> height & 1] for height in heights]
            self._add(levels, sum(counts), min(values), max(values))

    def _add_batch(self, count: int, take: Callable[[Any], Any]) -> None:
        """Add values, of which `take` gives those at some places in ascending order."""
        if count:
            levels = thin(count, max(512, 4 * self.k), np.random.default_rng())
            ends = take([0, count - 1]).tolist()
            self._add([take(places).tolist() for places in levels], count, *ends)

    def _add(self, levels: Sequence[Sequence[Any]], n: int, low: Any, high: Any) -> None:
        self._set(_merge(self.layout, KllLayout(self.item_type, self.k, self.k, n, low, high, tuple(levels))))

    def merge(self, other: KllSketch) -> None:
        """Add the values of another sketch to this one. The other does not change.

        The error becomes that of the smaller k of both.

        Raises
        ------
        ValueError
            The items of the other sketch are of another type.
        """
        if other.item_type != self.item_type:
            raise ValueError(f"a sketch of {other.item_type} items cannot be merged into one of {self.item_type}")
        self._set(_merge(self.layout, other.layout))

    @property
    def n(self) -> int:
        """The number of values that were added."""
        return self.layout.n

    @property
    def retained_count(self) -> int:
        """The number of values that the sketch keeps."""
        return sum(map(len, self.layout.levels))

    @property
    def min_value(self) -> Any:
        """The smallest value; None if there is no value."""
        return self.layout.min_value

    @property
    def max_value(self) -> Any:
        """The largest value; None if there is no value."""
        return self.layout.max_value

    @property
    def rank_error(self) -> float:
        """The error of any rank, as a share of all values, at 99 % confidence; 0.0 as long as every value is kept."""
        layout = self.layout
        if len(layout.levels) == 1:
            return 0.0
        return find_rank_error(layout.min_k) if self._error is None else self._error

    def quantiles(self, ranks: Sequence[float]) -> list[Any]:
        """Return the quantile of each rank: the smallest value such that this share of all values is not above it.

        Parameters
        ----------
        ranks : sequence of float
            Shares from 0.0 (the smallest value, exactly) to 1.0 (the largest, exactly).

        Returns
        -------
        list
            Items as the sketch stores them. Their true ranks are within `rank_error` of the given ones.

        Raises
        ------
        ValueError
            The sketch is empty, or a rank is not from 0.0 to 1.0.
        """
        if not all(0.0 <= rank <= 1.0 for rank in ranks):
            raise ValueError(f"ranks {list(ranks)}, expected shares from 0.0 to 1.0")
        layout = self.layout
        items, counts = self._viewed()
        ends = {0.0: layout.min_value, 1.0: layout.max_value}
        # 0.07 * 100 is above 7.0 in floating point; the factor brings such products below the whole number.
        return [
            ends[rank] if rank in ends else items[bisect_left(counts, rank * layout.n * (1 - 1e-12))] for rank in ranks
        ]

    def ranks(self, values: Sequence[Any], *, inclusive: bool = True) -> list[float]:
        """Return the rank of each value: the share of all values that are not above it.

        Parameters
        ----------
        values : sequence
            Items as the sketch stores them.
        inclusive : bool
            Whether equal values count. If not, the rank is the share of smaller values.

        Returns
        -------
        list of float
            Each within `rank_error` of the truth.

        Raises
        ------
        ValueError
            The sketch is empty.
        """
        items, counts = self._viewed()
        find = bisect_right if inclusive else bisect_left
        places = (find(items, value) for value in values)
        return [(counts[place - 1] if place else 0) / counts[-1] for place in places]

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yield the values that the sketch keeps, in order, each with the number of values it stands for."""
        if self.n:
            items, counts = self._viewed()
            yield from zip(items, (after - before for before, after in pairwise([0, *counts])), strict=True)

    def _viewed(self) -> _View:
        layout = self.layout
        if layout.n == 0:
            raise ValueError("an empty sketch has no ranks and quantiles: check n first")
        if self._view is None:
            pairs = sorted((item, 1 << height) for height, level in enumerate(layout.levels) for item in level)
            self._view = [item for item, _ in pairs], list(accumulate(weight for _, weight in pairs))
        return self._view

    def to_bytes(self) -> bytes:
        """Return the bytes in DataSketches' compact form; `kll_layout.ITEM_TYPES` says how items are stored."""
        return self.layout.to_bytes()

    @classmethod
    def from_bytes(cls, item_type: str, data: bytes) -> KllSketch:
        """Return the sketch in bytes that DataSketches wrote, in Java, C++ or Python.

        Raises
        ------
        ValueError
            The bytes are damaged, or not a sketch of such items.
        """
        layout = parse_kll(item_type, bytes(data))
        sketch = cls(item_type, layout.k)
        sketch._set(layout)
        return sketch

    def __repr__(self) -> str:
        return f"KllSketch({self.item_type!r}, k={self.k}, n={self.n}, rank_error={self.rank_error:.4f})"

    def __reduce__(self) -> tuple[object, ...]:
        return KllSketch.from_bytes, (self.item_type, self.to_bytes())


def merge_parts(item_type: str, parts: Iterable[KllSketch]) -> KllSketch:
    """Merge sketches of different rows, which err independently: together they err less than each of them.

    Parameters
    ----------
    item_type : str
        Of all of them.
    parts : iterable of KllSketch
        Sketches that were made apart; each is read once.

    Returns
    -------
    KllSketch
        Its `rank_error`, as long as nothing is added to it, is the root of the sum of the squares of the parts' errors,
        each times its number of values, as a share of all values; where merging left values out, and the error of a
        sketch of its own size.

    Examples
    --------
    >>> parts = [KllSketch("long", 20) for _ in range(100)]
    >>> for part in parts:
    ...     part.update(np.arange(1_000))
    >>> round(parts[0].rank_error, 3), round(merge_parts("long", parts).rank_error, 3)
    (0.125, 0.012)
    """
    merged, kept, squares = KllSketch(item_type, _MERGED_K), 0, 0.0
    for part in parts:
        merged.merge(part)
        kept += part.retained_count
        squares += (part.rank_error * part.n) ** 2
    if merged.n:
        of_merging = 0.0 if merged.retained_count == kept else find_rank_error(_MERGED_K)
        merged._set(merged.layout, math.sqrt(squares) / merged.n + of_merging)
    return merged


def thin(value_count: int, kept: int, random: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    """Return the levels that a sketch would compact a batch to, as the places of its values in their ascending order.

    Parameters
    ----------
    value_count : int
        How many values the batch has.
    kept : int
        The least number of values to keep, if there are as many; up to twice as many are kept.
    random : numpy.random.Generator
        Chooses the value that stands for its neighbours.

    Notes
    -----
    A KLL sketch keeps one value of every two when it compacts a level. Keeping one random value of every 2^h neighbours
    is like h such compactions, but with less error: within the batch no rank is off by more than 2^h values, and on
    average ranks are not off at all.
    """
    height = max((value_count // kept).bit_length() - 1, 0)
    groups = value_count >> height
    picks = (np.arange(groups) << height) + random.integers(0, 1 << height, groups)
    none = picks[:0]
    return [np.arange(groups << height, value_count), *[none] * (height - 1), picks] if height else [picks]


def _merge(one: KllLayout, other: KllLayout) -> KllLayout:
    """Return the first sketch with the values of the second."""
    if other.n == 0:
        return one
    levels = [sorted([*mine, *theirs]) for mine, theirs in zip_longest(one.levels, other.levels, fillvalue=())]
    _compact(levels, one.k)
    known = (other,) if one.n == 0 else (one, other)
    return replace(
        one,
        min_k=one.min_k if len(other.levels) == 1 else min(one.min_k, other.min_k),
        n=one.n + other.n,
        min_value=min(layout.min_value for layout in known),
        max_value=max(layout.max_value for layout in known),
        levels=tuple(levels),
    )


def _compact(levels: list[list[Any]], k: int) -> None:
    """Halve full levels, the lowest first, until all items have room."""
    for height in count():
        if sum(map(len, levels)) <= total_capacity(k, len(levels)):
            return
        level = levels[height]
        if len(level) < level_capacity(k, len(levels) - 1 - height):
            continue
        if height == len(levels) - 1:
            levels.append([])
        odd = len(level) % 2
        levels[height] = level[:odd]
        levels[height + 1] = sorted([*levels[height + 1], *level[odd + randbits(1) :: 2]])


def _unscaled_values(array: pa.Array) -> npt.NDArray[Any]:
    """Return decimals as their unscaled values: Python integers where some are beyond 64 bits."""
    if not pa.types.is_decimal(array.type):
        raise ValueError(f"an Arrow array of {array.type} does not hold decimals")
    words = unscaled_words(dense_values(array, f"decimal({array.type.precision}, {array.type.scale})"))
    low, high = words[:, 0], words[:, 1]
    return low if np.array_equal(high, low >> 63) else (high.astype(object) << 64) + low.view(np.uint64)
