"""KLL sketches: ranks, quantiles and histograms of a column, within a known error.

The sketches are those of DataSketches. This module adds 64-bit integers, text and long decimals, updates by whole
batches, and a check of the bytes before they are used. Source: DataSketches KLL; `kll_layout` has the layout.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, Final

import datasketches
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.stats import kll_batches as batches
from icestats.stats.column_values import dense_values, integer_values, unscaled_words
from icestats.stats.kll_layout import (
    ITEM_CODECS,
    ITEM_TYPES,
    MAX_K,
    MIN_K,
    KllLayout,
    empty_layout,
    find_items,
    parse_kll,
    settle_level_zero,
)

TEXT_LENGTH: Final = 256
"""The number of characters that a sketch keeps of a string: neighbours become equal, and no value is below its own."""

_MERGED_K = 4096
_BATCH = 65_536
"""The most items that are thinned at once."""

# Python's datasketches has no sketch of 64-bit integers (kll_ints_sketch silently truncates them to 32 bits). The
# sketch of doubles holds them instead: sign and magnitude become sign and magnitude of a double, in the same order.
# _BIAS keeps them away from the subnormal doubles, which are all equal in a process that flushes these to zero.
_BIAS: Final = 1 << 52
NARROW_LIMIT: Final = 0x7FF0_0000_0000_0000 - _BIAS
"""Integers of this magnitude or above would become infinities or NaN: they need the sketch of Python objects."""
_SIGN: Final = -(1 << 63)

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

    __slots__ = ("_contents", "_error", "_view", "item_type", "k")

    def __init__(self, item_type: str, k: int = 200) -> None:
        if item_type not in ITEM_TYPES:
            raise ValueError(f"item type {item_type!r}, expected one of {', '.join(ITEM_TYPES)}")
        if not MIN_K <= k <= MAX_K:
            raise ValueError(f"k is {k}, expected {MIN_K} to {MAX_K:,}")
        self.item_type = item_type
        self.k = k
        # Opened to be added to, plain to be read: DataSketches' objects print a warning if they are alive when Python
        # ends, and what is only read needs none.
        self._contents: KllEngine | KllLayout = empty_layout(item_type, k)
        self._view: _View | None = None
        self._error: float | None = None

    @property
    def _engine(self) -> KllEngine:
        if isinstance(self._contents, KllLayout):
            self._contents, self._view, self._error = KllEngine(self._contents), None, None
        return self._contents

    @property
    def _layout(self) -> KllLayout:
        contents = self._contents
        if isinstance(contents, KllEngine):
            contents = self._contents = contents.layout()
        return contents

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
            self._update_texts(dense_values(array, "string"))
        elif self.item_type == "decimal":
            self._update_decimals(array)
        elif self.item_type == "long":
            self._update_numbers(integer_values(array))
        else:
            numbers = dense_values(array, "double").to_numpy(zero_copy_only=True)
            is_nan = np.isnan(numbers)
            self._update_numbers(numbers[~is_nan] if is_nan.any() else numbers)

    def update_counted(self, values: Sequence[Any], counts: Sequence[int]) -> None:
        """Add each value as often as its count says. This adds no error, and is fast if there are few values.

        Parameters
        ----------
        values : sequence
            Items as the sketch stores them (see `kll_items.item_type_of`): str, int, or float, but not NaN.
        counts : sequence of int
            The count of each value; 1 or more.
        """
        if self.item_type == "string":
            values = [value[:TEXT_LENGTH] for value in values]
        for levels in batches.weigh_counted(values, counts):
            items = [item for level in levels for item in level]
            self._engine.add(levels, min(items), max(items))

    def _update_numbers(self, numbers: npt.NDArray[Any]) -> None:
        if self._engine.has_objects:
            self._update_objects(pa.array(numbers))
        else:
            self._engine.update(numbers)

    def _update_texts(self, dense: pa.Array) -> None:
        if len(dense) and pc.max(pc.binary_length(dense)).as_py() > TEXT_LENGTH:
            dense = pc.utf8_slice_codeunits(dense, 0, TEXT_LENGTH)
        self._update_objects(dense)

    def _update_objects(self, dense: pa.Array) -> None:
        # Adding a Python object takes longer than sorting many values.
        kept = max(512, 4 * self.k)
        for start in range(0, len(dense), _BATCH):
            batch = dense.slice(start, _BATCH)
            if len(batch) < 2 * kept:
                self._engine.update(batch.to_pylist())
            else:
                self._engine.add(*batches.thin(batch, kept, np.random.default_rng()))

    def _update_decimals(self, array: pa.Array) -> None:
        if not pa.types.is_decimal(array.type):
            raise ValueError(f"an Arrow array of {array.type} does not hold decimals")
        words = unscaled_words(dense_values(array, f"decimal({array.type.precision}, {array.type.scale})"))
        low, high = np.ascontiguousarray(words[:, 0]), words[:, 1]
        if np.array_equal(high, low >> 63):
            self._update_numbers(low)
        else:
            unsigned = low.view(np.uint64).tolist()
            self._engine.update([top << 64 | bottom for top, bottom in zip(high.tolist(), unsigned, strict=True)])

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
        self._engine.merge(other._contents if isinstance(other._contents, KllEngine) else KllEngine(other._contents))

    @property
    def n(self) -> int:
        """The number of values that were added."""
        return self._layout.n

    @property
    def retained_count(self) -> int:
        """The number of values that the sketch keeps."""
        return sum(map(len, self._layout.levels))

    @property
    def min_value(self) -> Any:
        """The smallest value; None if there is no value."""
        return self._layout.min_value

    @property
    def max_value(self) -> Any:
        """The largest value; None if there is no value."""
        return self._layout.max_value

    @property
    def rank_error(self) -> float:
        """The error of any rank, as a share of all values, at 99 % confidence; 0.0 as long as every value is kept."""
        layout = self._layout
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
        layout = self._layout
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
        layout = self._layout
        if layout.n == 0:
            raise ValueError("an empty sketch has no ranks and quantiles: check n first")
        if self._view is None:
            pairs = sorted((item, 1 << height) for height, level in enumerate(layout.levels) for item in level)
            self._view = [item for item, _ in pairs], list(accumulate(weight for _, weight in pairs))
        return self._view

    def to_bytes(self) -> bytes:
        """Return the bytes in DataSketches' compact form; `kll_layout.ITEM_TYPES` says how items are stored."""
        return self._contents.to_bytes()

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
        sketch._contents = layout
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
        merged._error = math.sqrt(squares) / merged.n + of_merging
    return merged


class _SerDe(datasketches.PyObjectSerDe):  # type: ignore[misc]  # datasketches has no types
    """Items as bytes after their length. PyStringsSerDe counts characters instead, which is right only for ASCII."""

    def __init__(self, item_type: str) -> None:
        super().__init__()
        self._encode, self._decode = ITEM_CODECS[item_type]

    def get_size(self, item: Any) -> int:
        return 4 + len(self._encode(item))

    def to_bytes(self, item: Any) -> bytes:
        data = self._encode(item)
        return len(data).to_bytes(4, "little") + data

    def from_bytes(self, data: bytes, offset: int) -> tuple[Any, int]:
        length = int.from_bytes(data[offset : offset + 4], "little")
        return self._decode(data[offset + 4 : offset + 4 + length]), 4 + length


def _serde(item_type: str) -> Any:
    return datasketches.PyLongsSerDe() if item_type == "long" else _SerDe(item_type)


class KllEngine:
    """A sketch of DataSketches that begins with the contents of a valid layout."""

    __slots__ = ("is_wide", "item_type", "k", "sketch")

    def __init__(self, layout: KllLayout) -> None:
        self.item_type = layout.item_type
        self.k = layout.k
        # Whether there are longs of `NARROW_LIMIT` or above: then all are kept as Python integers.
        self.is_wide = self.item_type == "long" and layout.n > 0 and not _is_narrow(layout.min_value, layout.max_value)
        self.sketch: Any = _open(layout, self.is_wide)

    @property
    def has_objects(self) -> bool:
        """Whether items are kept as Python objects, which is far slower than keeping numbers."""
        return not _is_numeric(self.item_type, self.is_wide)

    def update(self, items: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Add items: Python objects one by one, or numbers at once if the sketch does not keep objects."""
        if self.item_type == "double":
            # DataSketches rejects read-only arrays, such as those that share Arrow's memory.
            self.sketch.update(np.array(items, np.float64))
            return
        if self.item_type == "long":
            if len(items) == 0:
                return
            if not _is_narrow(int(np.min(items)), int(np.max(items))):
                self._widen()
            if not self.is_wide:
                self.sketch.update(_doubles(items))
                return
            items = np.asarray(items, np.int64).tolist()
        update = self.sketch.update
        for item in items:
            update(item)

    def add(self, levels: Sequence[Sequence[Any]], low: Any, high: Any) -> None:
        """Add weighted items: an item of level h counts 2^h times.

        Parameters
        ----------
        levels : sequence of sequences
            From 1 to 65,535 items in all. Each level but the first is in ascending order.
        low, high
            The smallest and the largest of the values that the items stand for.
        """
        if self.item_type == "long" and not _is_narrow(low, high):
            self._widen()
        n = sum(len(level) << height for height, level in enumerate(levels))
        k = max(self.k, sum(map(len, levels)))
        self.sketch.merge(_open(KllLayout(self.item_type, k, k, n, low, high, tuple(levels)), self.is_wide))

    def merge(self, other: KllEngine) -> None:
        """Add the items of another sketch, which does not change."""
        if other.is_wide:
            self._widen()
        self.sketch.merge(_open(other.layout(), True) if self.is_wide and not other.is_wide else other.sketch)

    def layout(self) -> KllLayout:
        """Return the contents of the sketch."""
        if self.has_objects:
            return parse_kll(self.item_type, bytes(self.sketch.serialize(_serde(self.item_type))))
        layout = parse_kll("double", bytes(self.sketch.serialize()))
        return _mapped(layout, "long") if self.item_type == "long" else layout

    def to_bytes(self) -> bytes:
        """Return the bytes of `layout()`."""
        if self.item_type == "string":
            return settle_level_zero("string", bytes(self.sketch.serialize(_serde("string"))))
        if self.has_objects:
            return self.layout().to_bytes()
        data = settle_level_zero("double", bytes(self.sketch.serialize()))
        if self.item_type == "double":
            return data
        offset = find_items(data)
        return data[:offset] + _longs(np.frombuffer(data, "<f8", offset=offset)).astype("<i8").tobytes()

    def _widen(self) -> None:
        if not self.is_wide:
            self.sketch, self.is_wide = _open(self.layout(), True), True


def _open(layout: KllLayout, is_wide: bool) -> Any:
    if not _is_numeric(layout.item_type, is_wide):
        return datasketches.kll_items_sketch.deserialize(layout.to_bytes(), _serde(layout.item_type))
    layout = _mapped(layout, "double") if layout.item_type == "long" else layout
    return datasketches.kll_doubles_sketch.deserialize(layout.to_bytes())


def _is_narrow(low: int, high: int) -> bool:
    return -NARROW_LIMIT < low <= high < NARROW_LIMIT


def _is_numeric(item_type: str, is_wide: bool) -> bool:
    return item_type == "double" or (item_type == "long" and not is_wide)


def _mapped(layout: KllLayout, item_type: str) -> KllLayout:
    convert = _doubles if item_type == "double" else _longs
    if layout.n == 0:
        return replace(layout, item_type=item_type)
    low, high = convert([layout.min_value, layout.max_value]).tolist()
    levels = tuple(convert(level).tolist() for level in layout.levels)
    return replace(layout, item_type=item_type, min_value=low, max_value=high, levels=levels)


def _doubles(longs: Any) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.int64] = np.asarray(longs, np.int64)
    doubles: npt.NDArray[np.float64] = ((np.abs(values) + _BIAS) | (values & _SIGN)).view(np.float64)
    return doubles


def _longs(doubles: Any) -> npt.NDArray[np.int64]:
    bits = np.asarray(doubles, np.float64).view(np.int64)
    magnitudes = (bits & ~np.int64(_SIGN)) - _BIAS
    return np.where(bits < 0, -magnitudes, magnitudes)
