"""How many rows a value has at most, of those that are too many to be kept one by one: a Count-Min sketch.

Each value adds its rows to one counter in each of two rows of counters, chosen by its hash: the smaller of both is
never too small. In a payload the sketch is

    {"bytes": 2, "counters": "<base64>"}

of a zstd frame: the counters of the first row, then those of the second, as little-endian integers without sign, of so
many bytes each. How many there are in a row, a power of two, depends on how many values there are.

Source: Cormode, Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications", 2005.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from icestats.stats.hashing import Hashes

_WIDTH: Final = 1 << 16
"""Counters in a row, at most."""
_LEAST_WIDTH: Final = 1 << 13
_FEW: Final = 1 << 13
"""So many distinct values are counted one by one before there are counters."""
_COUNTERS_A_VALUE = 3
_MOST_ALONE = _WIDTH // 2
"""Of so few values most have a counter of their own."""
_LEAST_SKEW = 1.1
"""Values that have as many rows as one another have 1."""
_SIZES = (1, 2, 4, 8)

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class CountMin:
    """Rows of counters.

    Parameters
    ----------
    counters : numpy.ndarray of integers
        Two rows of them; `int64` where rows are added.

    Examples
    --------
    >>> sketch = CountMin(np.zeros((2, 8), np.int64))
    >>> sketch.add(np.array([5, 9], np.uint64), np.array([3, 1]))
    >>> sketch.at_most(np.array([5, 9, 6], np.uint64)).tolist()
    [3, 1, 0]
    """

    __slots__ = ("counters",)

    def __init__(self, counters: npt.NDArray[Any]) -> None:
        self.counters = counters

    def add(self, hashes: Hashes, counts: Counts | None) -> None:
        """Add rows of values, or take them away; without counts: one each."""
        for row, places in zip(self.counters, self._choose(hashes), strict=True):
            np.add.at(row, places, 1 if counts is None else counts)

    def merge(self, other: CountMin) -> None:
        """Add the rows of another sketch, which does not change."""
        width = min(self.counters.shape[1], other.counters.shape[1])
        self.counters = self.fold(width).counters + other.fold(width).counters

    def fold(self, width: int) -> CountMin:
        """Return the same with fewer counters; `width`: in a row, a power of two."""
        return CountMin(self.counters.reshape(2, -1, min(width, self.counters.shape[1])).sum(axis=1, dtype=np.int64))

    def at_most(self, hashes: Hashes) -> Counts:
        """Return how many rows values have at most."""
        places = self._choose(hashes)
        least: Counts = np.minimum(self.counters[0][places[0]], self.counters[1][places[1]]).astype(np.int64)
        return least

    def estimate(self, hashes: Hashes, ndv: float) -> Floats:
        """Return how many rows values have: an estimate.

        Parameters
        ----------
        hashes : numpy.ndarray of uint64
            Of the values.
        ndv : float
            How many values there are in all: an estimate.

        Notes
        -----
        The smaller counter of each, less what is there of others by chance (the median for a single value, the mean
        for several), drawn towards the rows of a mean value as far as chance differs more than values do.
        """
        least, mean = self.at_most(hashes), float(self.counters[0].sum()) / max(ndv, 1.0)
        # Two counters at one place have nothing to do with each other.
        chance = np.minimum(self.counters[0], self.counters[1])
        spread, noise = max(self._sum_squares() / max(ndv, 1.0) - mean**2, 0.0), float(chance.var())
        by_chance = float(np.median(chance) if len(hashes) == 1 else chance.mean())
        drawn = mean + (least - by_chance - mean) * (spread / (spread + noise) if spread else 0.0)
        return np.clip(drawn, 0.0, least)

    def find_skew(self, ndv: float) -> float:
        """Return the mean square of the rows of values by the square of their mean: 1 where all have as many."""
        rows = float(self.counters[0].sum())
        return self._sum_squares() * ndv / rows**2 if rows else 0.0

    def _sum_squares(self) -> float:
        """Return the sum of the squares of the rows of all values: an estimate."""
        return float(self.counters.var(axis=1).mean() * self.counters.shape[1])

    def _choose(self, hashes: Hashes) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
        # The lowest 16 bits, and the 16 above them.
        halves, mask = hashes.astype(np.uint32).view("<u2"), np.uint16(self.counters.shape[1] - 1)
        return halves[..., ::2] & mask, halves[..., 1::2] & mask

    def to_document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        most = int(self.counters.max())
        size = next(size for size in _SIZES if most < 1 << 8 * size)
        frame = zstandard.ZstdCompressor().compress(self.counters.astype(f"<u{size}").tobytes())
        return {"bytes": size, "counters": base64.b64encode(frame).decode()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], row_count: int) -> CountMin:
        """Return what `to_document` has made of the sketch of so many rows.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is none, or one of another number of rows.
        """
        size, frame = int(document["bytes"]), base64.b64decode(document["counters"], validate=True)
        try:
            expanded = zstandard.frame_content_size(frame)
            if size not in _SIZES or expanded not in [2 * size << lg for lg in range(17)]:
                raise ValueError(f"counters of {size} bytes, {expanded} in all")
            counters = np.frombuffer(zstandard.ZstdDecompressor().decompress(frame), f"<u{size}")
        except zstandard.ZstdError as error:
            raise ValueError(f"counters are damaged: {error}") from error
        made = cls(counters.reshape(2, -1))
        is_wrapped = made.counters.sum(axis=1, dtype=np.float64).max() >= 1 << 63
        if is_wrapped or made.counters.sum(axis=1, dtype=np.int64).tolist() != [row_count] * 2:
            raise ValueError(f"counters of other than {row_count} rows")
        return made


class HashCounter:
    """The rows of values by their hashes, which grow with each batch: one by one while there are few."""

    __slots__ = ("_counts", "_hashes", "_sketch")

    def __init__(self) -> None:
        self._hashes, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._sketch: CountMin | None = None

    def update(self, hashes: Hashes, counts: Counts | None = None) -> None:
        """Add the rows of values; without counts: one each."""
        if self._sketch is not None:
            self._sketch.add(hashes, counts)
        else:
            rows = np.append(self._counts, np.ones(len(hashes), np.int64) if counts is None else counts)
            self._hashes, places = np.unique(np.append(self._hashes, hashes), return_inverse=True)
            self._counts = np.bincount(places, rows, len(self._hashes)).astype(np.int64)
            if len(self._hashes) > _FEW:
                self._sketch = self._to_sketch()
                self._hashes, self._counts = self._hashes[:0], self._counts[:0]

    def merge(self, other: HashCounter) -> None:
        """Add what another one has counted, which does not change."""
        if other._sketch is None:
            self.update(other._hashes, other._counts)
        else:
            mine = self._to_sketch()
            mine.merge(other._sketch)
            self._sketch, self._hashes, self._counts = mine, self._hashes[:0], self._counts[:0]

    def _to_sketch(self) -> CountMin:
        if self._sketch is not None:
            return self._sketch
        made = CountMin(np.zeros((2, _WIDTH), np.int64))
        made.add(self._hashes, self._counts)
        return made

    def count_others(self, hashes: Hashes, counts: Counts, ndv: float) -> CountMin | None:
        """Return the sketch of the rows that have not been counted one by one.

        Parameters
        ----------
        hashes : numpy.ndarray of uint64
            Of the values that have been.
        counts : numpy.ndarray of int64
            Their rows.
        ndv : float
            How many other values there are: an estimate.

        Returns
        -------
        CountMin or None
            None: there are no others, or they are so many that counters would not tell which are there, and with about
            as many rows as one another.
        """
        wanted = 1 << math.ceil(math.log2(max(_COUNTERS_A_VALUE * ndv, _LEAST_WIDTH)))
        left = self._to_sketch().fold(wanted)
        left.add(hashes, -counts)
        is_worthwhile = ndv <= _MOST_ALONE or left.find_skew(ndv) >= _LEAST_SKEW
        return left if is_worthwhile and left.counters.any() else None

    @classmethod
    def restore(cls, others: CountMin | None, hashes: Hashes, counts: Counts) -> HashCounter:
        """Return what `count_others` has made a sketch of; None: there are no other rows."""
        made = cls()
        made._sketch = None if others is None else CountMin(others.counters.astype(np.int64))
        made.update(hashes, counts)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        # Counters are mostly small, or 0.
        if self._sketch is None:
            return HashCounter.restore, (None, self._hashes, self._counts)
        return _unpickle, (self._sketch.to_document(), int(self._sketch.counters[0].sum()))


def _unpickle(sketch: dict[str, Any], row_count: int) -> HashCounter:
    return HashCounter.restore(CountMin.from_document(sketch, row_count), np.zeros(0, np.uint64), np.zeros(0, np.int64))
