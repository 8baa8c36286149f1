"""KLL sketches: ranks, quantiles and histograms of a column, within a known error.

The sketches are those of DataSketches. This module adds 64-bit integers, text and long decimals, updates by whole
batches, and a check of the bytes before they are used. Source: DataSketches KLL; `kll_layout` has the layout.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.stats import kll_batches as batches
from icestats.stats.column_values import dense_values, integer_values, unscaled_words
from icestats.stats.kll_engine import KllEngine
from icestats.stats.kll_layout import ITEM_TYPES, MAX_K, MIN_K, KllLayout, parse_kll

TEXT_LENGTH: Final = 256
"""The number of characters that a sketch keeps of a string. Truncating can only make neighbours equal."""

_MOST_KEPT = 30_000
_PATIENCE = 16
_NUMBERS_BATCH = 1 << 20


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
    and the largest value are exact. Strings are ordered by code point, like their UTF-8 bytes.

    Examples
    --------
    >>> sketch = KllSketch("long")
    >>> sketch.update(pa.array([3, None, 1, 2]))
    >>> sketch.n, sketch.min_value, sketch.max_value, sketch.quantiles([0.5])
    (3, 1, 3, [2])
    """

    __slots__ = ("_engine", "_patience", "_random", "_view")

    def __init__(self, item_type: str, k: int = 200) -> None:
        if item_type not in ITEM_TYPES:
            raise ValueError(f"item type {item_type!r}, expected one of {', '.join(ITEM_TYPES)}")
        if not MIN_K <= k <= MAX_K:
            raise ValueError(f"k is {k}, expected {MIN_K} to {MAX_K:,}")
        self._engine = KllEngine(item_type, k)
        self._view: _View | None = None
        # The number of batches to wait before sorting texts is tried again.
        self._patience = 0
        self._random: np.random.Generator | None = None

    @property
    def item_type(self) -> str:
        """How items are stored: one of `kll_layout.ITEM_TYPES`."""
        return self._engine.item_type

    @property
    def k(self) -> int:
        """The size that was asked for."""
        return self._engine.k

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
        self._view = None
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
        self._view = None
        if self.item_type == "string":
            values = [value[:TEXT_LENGTH] for value in values]
        for levels in batches.weigh_counted(values, counts):
            items = [item for level in levels for item in level]
            self._engine.add(levels, min(items), max(items))

    def _update_numbers(self, numbers: npt.NDArray[Any]) -> None:
        kept = self._kept
        for start in range(0, len(numbers), _NUMBERS_BATCH):
            batch = numbers[start : start + _NUMBERS_BATCH]
            if len(batch) >= 2 * kept and kept <= _MOST_KEPT:
                self._engine.add(*batches.thin_numbers(batch, kept, self._generator))
            else:
                self._engine.update(batch.tolist() if self.item_type == "decimal" else batch)

    def _update_texts(self, dense: pa.Array) -> None:
        if len(dense) == 0:
            return
        if pc.max(pc.binary_length(dense)).as_py() > TEXT_LENGTH:
            dense = pc.utf8_slice_codeunits(dense, 0, TEXT_LENGTH)
        kept = self._kept
        for start in range(0, len(dense), batches.TEXT_BATCH):
            batch = dense.slice(start, batches.TEXT_BATCH)
            thinned = None
            if 2 * kept <= len(batch) and kept <= _MOST_KEPT and self._patience == 0:
                thinned = batches.thin_texts(batch, kept, self._generator)
                self._patience = 0 if thinned else _PATIENCE
            if thinned is None:
                self._patience = max(0, self._patience - 1)
                self._engine.update(batch.to_pylist())
            else:
                self._engine.add(*thinned)

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

    @property
    def _generator(self) -> np.random.Generator:
        # Making a generator takes longer than adding a small batch.
        if self._random is None:
            self._random = np.random.default_rng()
        return self._random

    @property
    def _kept(self) -> int:
        # Keeping a value is cheap for a number, and expensive for a Python object.
        return max(512, 4 * self.k) if self._engine.has_objects else max(2_048, 8 * self.k)

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
        self._view = None
        self._engine.merge(other._engine)

    @property
    def n(self) -> int:
        """The number of values that were added."""
        return int(self._engine.sketch.n)

    @property
    def retained_count(self) -> int:
        """The number of values that the sketch keeps."""
        return int(self._engine.sketch.num_retained)

    @property
    def min_value(self) -> Any:
        """The smallest value; None if there is no value."""
        return self._viewed().min_value if self.n else None

    @property
    def max_value(self) -> Any:
        """The largest value; None if there is no value."""
        return self._viewed().max_value if self.n else None

    @property
    def rank_error(self) -> float:
        """The error of any rank, as a share of all values, at 99 % confidence; 0.0 as long as every value is kept."""
        sketch = self._engine.sketch
        return float(sketch.normalized_rank_error(False)) if sketch.is_estimation_mode() else 0.0

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
        view = self._viewed()
        return [view.quantile(rank) for rank in ranks]

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
        return self._viewed().ranks(values, inclusive=inclusive)

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yield the values that the sketch keeps, in order, each with the number of values it stands for."""
        if self.n:
            yield from self._viewed().items()

    def _viewed(self) -> _View:
        if self.n == 0:
            raise ValueError("an empty sketch has no ranks and quantiles: check n first")
        if self._view is None:
            self._view = _View(self._engine.layout())
        return self._view

    def to_bytes(self) -> bytes:
        """Return the bytes in DataSketches' compact form; `kll_layout.ITEM_TYPES` says how items are stored."""
        return self._engine.to_bytes()

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
        sketch._engine = KllEngine.open(layout)
        return sketch

    def __repr__(self) -> str:
        return f"KllSketch({self.item_type!r}, k={self.k}, n={self.n}, rank_error={self.rank_error:.4f})"

    def __reduce__(self) -> tuple[object, ...]:
        return KllSketch.from_bytes, (self.item_type, self.to_bytes())


class _View:
    """The values that a sketch keeps, in order, and the share of all values up to each. The sketch is not empty."""

    __slots__ = ("_items", "_n", "_weights", "max_value", "min_value")

    def __init__(self, layout: KllLayout) -> None:
        pairs = sorted((item, 1 << height) for height, level in enumerate(layout.levels) for item in level)
        self._n = layout.n
        self._items = [item for item, _ in pairs]
        self._weights = list(accumulate(weight for _, weight in pairs))
        self.min_value = layout.min_value
        self.max_value = layout.max_value

    def quantile(self, rank: float) -> Any:
        """Return the value at a rank; for 0.0 and 1.0 the smallest and the largest value."""
        if rank == 0.0:
            return self.min_value
        if rank == 1.0:
            return self.max_value
        # 0.07 * 100 is above 7.0 in floating point; the factor brings such products below the whole number.
        return self._items[bisect_left(self._weights, rank * self._n * (1 - 1e-12))]

    def ranks(self, values: Sequence[Any], *, inclusive: bool) -> list[float]:
        """Return the share of all values up to each value."""
        find = bisect_right if inclusive else bisect_left
        places = (find(self._items, value) for value in values)
        return [(self._weights[place - 1] if place else 0) / self._n for place in places]

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yield each value with the number of values it stands for."""
        yield from zip(self._items, (b - a for a, b in pairwise([0, *self._weights])), strict=True)
