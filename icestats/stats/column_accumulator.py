"""The statistics of one column, gathered one Arrow batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.text import one_line
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import PrimitiveType, encode_value, has_lengths, parse_type
from icestats.iceberg.value_order import find_extreme
from icestats.stats.batch_counts import (
    FEW_DISTINCT,
    as_counted,
    count_ranges,
    count_words,
    cut_long,
    has_few_distinct,
)
from icestats.stats.column_values import byte_ranges, dense_values, encode_dense, fixed_words, unify, unscaled_words
from icestats.stats.frequent_items import CountedValues, FrequentItems, is_counted_by_word
from icestats.stats.hashing import EMPTY_HASH, hash_all, hash_dense, hash_words
from icestats.stats.joint_statistics import encode_column
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of, item_value
from icestats.stats.row_sample import RowSample, cut_values, draw_numbers
from icestats.stats.table_statistics import ColumnStatistics
from icestats.stats.theta import ThetaSketch

_RANGED = frozenset({"string", "binary", "fixed"})


def can_sketch(field: Field) -> str | None:
    """Return why a column cannot have sketches; None if it can.

    Examples
    --------
    >>> can_sketch(Field(1, "tags", "list", required=False, top_level=True))
    "type list is nested: sketches hold a column's own values"
    >>> can_sketch(Field(2, "price", "double", required=False, top_level=True)) is None
    True
    """
    if not field.is_primitive:
        return f"type {field.type} is nested: sketches hold a column's own values"
    if not field.top_level:
        return "the column is part of a nested one: only top-level columns have sketches"
    try:
        kind = parse_type(field.type)
    except ValueError:
        return f"type {field.type} is not known"
    if not kind.is_orderable:
        return f"type {field.type} has no single-value form to hash or to compare"
    return None


def can_distribute(field: Field) -> str | None:
    """Return why a column cannot have a KLL sketch, and so no histogram; None if it can.

    Examples
    --------
    >>> can_distribute(Field(1, "raw", "binary", required=False, top_level=True))
    'values of type binary have no order that means anything'
    """
    reason = can_sketch(field)
    if reason is None and item_type_of(field.type) is None:
        return f"values of type {field.type} have no order that means anything"
    return reason


class ColumnAccumulator:
    """Counts, extremes, lengths and sketches of one top-level column, which grow with each batch.

    Parameters
    ----------
    field : Field
        The column; `can_sketch` must return None for it.
    k : int
        The size of the KLL sketch.
    lg_k : int
        The size of the Theta sketch: it keeps 2^lg_k hashes.

    Raises
    ------
    ValueError
        The column cannot have sketches.

    Notes
    -----
    Merging is associative. This is exact for everything but the KLL sketch, whose random choices may differ within its
    error, and the sample. A pickle has at most about 300 kilobytes for numbers, and 700 for long texts.

    Examples
    --------
    >>> accumulator = ColumnAccumulator(Field(1, "id", "long", required=False, top_level=True))
    >>> accumulator.update(pa.array([7, None, 7]))
    >>> result = accumulator.result()
    >>> result.value_count, result.null_value_count, result.min_value.hex()
    (3, 1, '0700000000000000')
    """

    def __init__(self, field: Field, k: int = 200, lg_k: int = 12, sample_limit: float = 1.0) -> None:
        reason = can_sketch(field)
        if reason is not None:
            raise ValueError(f"column {field.name!r}: {reason}")
        self._field = field
        self._theta = ThetaSketch(lg_k)
        item_type = item_type_of(field.type)
        self._kll = None if item_type is None else KllSketch(item_type, k)
        self._value_count = self._null_count = self._nan_count = 0
        self._length = self._max_length = 0
        self._items = FrequentItems()
        self.sample = RowSample(sample_limit)
        # Smallest and largest value as single-value bytes.
        self._extremes: tuple[bytes, bytes] | None = None

    def update(self, array: pa.Array, numbers: npt.NDArray[np.float64] | None = None) -> None:
        """Add the values of an array.

        Parameters
        ----------
        array : pyarrow.Array
            In any form that `column_values.dense_values` takes.
        numbers : numpy.ndarray of float64, optional
            Of each row, by `row_sample.draw_numbers`: the same for all columns; by default of the column alone.

        Raises
        ------
        ValueError
            The array cannot be read as the column's type, or has a text that is not UTF-8.
        """
        if self._field.type == "string":
            _check_text(array, self._field.name)
        encoded = self._read_encoded(array)
        dense = dense_values(array, self._field.type) if encoded is None else encoded[0]
        self._value_count += len(array)
        self._null_count += len(array) - (len(dense) if encoded is None else int(encoded[1].sum()))
        self._update_sample(array, number_rows([array], [self._field.type]) if numbers is None else numbers)
        if len(dense) == 0:
            return
        kind = parse_type(self._field.type)
        if encoded is not None:
            self._update_encoded(*encoded)
        elif is_counted_by_word(kind):
            self._update_words(dense, kind)
        elif kind.name in _RANGED:
            self._update_ranges(dense)
        else:
            self._update_bytes(dense, dense, is_cut=False)

    def _update_sample(self, array: pa.Array, numbers: npt.NDArray[np.float64]) -> None:
        places, kind = self.sample.choose(numbers), self._field.type
        taken = unify(unify(array, decodes=False).take(pa.array(places)))
        values = cut_values(encode_dense(dense_values(taken, kind), kind), kind)
        if taken.null_count:
            is_null = taken.is_null().to_numpy(zero_copy_only=False)
            values = values.take(pa.array(np.cumsum(~is_null) - 1, mask=is_null))
        self.sample.update(len(array), numbers[places], values)

    def _read_encoded(self, array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]] | None:
        """Return the values of a dictionary of a few texts or binaries, and their rows; None: it is none."""
        if parse_type(self._field.type).name not in ("string", "binary") or not pa.types.is_dictionary(array.type):
            return None
        if len(array.dictionary) > FEW_DISTINCT or array.dictionary.null_count:
            return None
        counts = np.bincount(array.indices.drop_null().to_numpy(), minlength=len(array.dictionary))
        distinct = dense_values(array.dictionary.filter(pa.array(counts > 0)), self._field.type)
        return None if cut_long(distinct)[1] else (distinct, counts[counts > 0])

    def _update_encoded(self, distinct: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        lengths = np.diff(byte_ranges(distinct)[1])
        self._length += int((lengths * counts).sum())
        self._max_length = max(self._max_length, int(lengths.max()))
        self._update_counted(distinct, pa.array(counts))

    def _update_ranges(self, dense: pa.Array) -> None:
        lengths = np.diff(byte_ranges(dense)[1])
        self._length += int(lengths.sum())
        self._max_length = max(self._max_length, int(lengths.max()))
        short, is_cut = cut_long(dense)
        if not is_cut and has_few_distinct(dense):
            counted = dense.value_counts()
            self._update_counted(counted.field("values"), counted.field("counts"), dense)
            return
        self._update_bytes(dense, short, is_cut=is_cut)

    def _update_counted(self, distinct: pa.Array, counts: pa.Array, dense: pa.Array | None = None) -> None:
        hashes = hash_all(distinct, self._field.type)
        self._theta.update(hashes[hashes != EMPTY_HASH])
        self._bound(*_arrow_extremes(distinct))
        if self._kll is not None and (dense is None or len(counts) <= FEW_DISTINCT):
            self._kll.update_counted(distinct.to_pylist(), counts.to_pylist())
        elif dense is not None:
            self._distribute(dense)
        counted = as_counted(distinct, counts, self._field.type)
        self._items.update(counted, hashes, counted.counts)

    def _update_bytes(self, dense: pa.Array, short: pa.Array, *, is_cut: bool) -> None:
        """Add values of more than 8 bytes, many of them different; `short` are those that common values are of."""
        type_text, items = self._field.type, self._items
        hashes = hash_dense(dense, type_text)
        self._theta.update(hashes)
        self._bound(*_arrow_extremes(dense))
        self._distribute(dense)
        hashes = hash_dense(short, type_text) if is_cut else hashes
        found = count_ranges(short, type_text, hashes, items.values, items.capacity)
        every = np.append(hashes, np.full(len(short) - len(hashes), EMPTY_HASH))
        items.update(replace(found, is_cut=is_cut), every)

    def _update_words(self, dense: pa.Array, kind: PrimitiveType) -> None:
        if kind.name in ("float", "double"):
            self._update_floats(fixed_words(dense))
            return
        words = np.ascontiguousarray(unscaled_words(dense)[:, 0]) if kind.name == "decimal" else fixed_words(dense)
        distinct, counts = np.unique(words, return_counts=True)
        hashes = hash_words(distinct, self._field.type)
        self._theta.update(hashes)
        ends = int(distinct[0]), int(distinct[-1])
        self._bound(*(item_value(self._field.type, end) if kind.name == "decimal" else end for end in ends))
        if kind.name == "boolean" and self._kll is not None:
            self._kll.update_counted(distinct.tolist(), counts.tolist())
        else:
            self._distribute(words)
        self._items.update(self._count_words(distinct, counts), hashes, counts)

    def _update_floats(self, words: npt.NDArray[np.floating[Any]]) -> None:
        bits, counts = np.unique(words.view(f"i{words.itemsize}"), return_counts=True)
        hashes = hash_words(bits, self._field.type)
        self._theta.update(hashes)
        distinct = bits.view(words.dtype)
        is_nan = np.isnan(distinct)
        if is_nan.any():
            self._nan_count += int(counts[is_nan].sum())
            distinct, counts, words = distinct[~is_nan], counts[~is_nan], words[~np.isnan(words)]
            hashes = hashes[~is_nan]
        if len(distinct) == 0:
            return
        low, high = float(distinct.min()), float(distinct.max())
        zeros = distinct[distinct == 0]
        if low == 0:
            low = -0.0 if np.signbit(zeros).any() else 0.0
        if high == 0:
            high = -0.0 if np.signbit(zeros).all() else 0.0
        self._bound(low, high)
        self._distribute(words)
        hashes[distinct == 0] = hash_words(np.zeros(1, bits.dtype), self._field.type)
        self._items.update(self._count_floats(distinct, counts), hashes, counts)

    def _count_floats(self, distinct: npt.NDArray[np.floating[Any]], counts: npt.NDArray[np.int64]) -> CountedValues:
        # As a filter has it, -0.0 equals 0.0.
        is_zero = distinct == 0
        if np.count_nonzero(is_zero) == 2:
            zeros = counts[is_zero].sum()
            distinct, counts = np.append(distinct[~is_zero], distinct.dtype.type(0)), np.append(counts[~is_zero], zeros)
        bits = (distinct + 0).view(f"i{distinct.itemsize}")
        order = np.argsort(bits)
        return self._count_words(bits[order], counts[order])

    def _count_words(self, distinct: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> CountedValues:
        return count_words(distinct, counts, self._items.values, self._items.capacity)

    def _distribute(self, values: pa.Array | npt.NDArray[Any]) -> None:
        if self._kll is not None:
            self._kll.update(values)

    def _bound(self, low: Any, high: Any) -> None:
        ends = [end if isinstance(end, bytes) else encode_value(self._field.type, end) for end in (low, high)]
        ends += self._extremes or ()
        values = pa.array(ends, pa.binary())
        low, high = (find_extreme(values, self._field.type, highest=highest) for highest in (False, True))
        self._extremes = None if low is None or high is None else (low, high)

    def merge(self, other: ColumnAccumulator) -> None:
        """Add what another accumulator of the same column has gathered. The other does not change.

        Raises
        ------
        ValueError
            The other accumulator is for another column.
        """
        if (other._field.field_id, other._field.type) != (self._field.field_id, self._field.type):
            mine, theirs = (f"{f.field_id} ({f.type})" for f in (self._field, other._field))
            raise ValueError(f"statistics of field {theirs} cannot be merged into those of field {mine}")
        self._value_count += other._value_count
        self._null_count += other._null_count
        self._nan_count += other._nan_count
        self._length += other._length
        self._max_length = max(self._max_length, other._max_length)
        if other._extremes is not None:
            self._bound(*other._extremes)
        self._theta.merge(other._theta)
        self._items.merge(other._items)
        self.sample.merge(other.sample)
        if self._kll is not None and other._kll is not None:
            self._kll.merge(other._kll)

    def result(
        self, *, k: int | None = None, lg_k: int | None = None, items_size_bytes: int | None = None
    ) -> ColumnStatistics:
        """Return the statistics of all values added so far.

        Parameters
        ----------
        k, lg_k : int, optional
            Smaller sizes for the returned sketches; by default the accumulator's own.
        items_size_bytes : int, optional
            What the most common values may take, before they are compressed, without a sample of rows; by default
            `MOST_PAYLOAD_BYTES`, and the sample.
        """
        theta, kll = self._theta, self._kll
        if lg_k is not None and lg_k != theta.lg_k:
            theta = ThetaSketch(lg_k)
            theta.merge(self._theta)
        if kll is not None and k is not None and k != kll.k:
            smaller = KllSketch(kll.item_type, k)
            smaller.merge(kll)
            kll = smaller
        if items_size_bytes is None:
            items = self._items.to_bytes(self._field.type, sample=self.sample, ndv=float(self._theta.ndv))
        else:
            items = self._items.to_bytes(self._field.type, items_size_bytes)
        filled = self._value_count - self._null_count
        has_length = has_lengths(self._field.type) and filled > 0
        return ColumnStatistics(
            field_id=self._field.field_id,
            type=self._field.type,
            value_count=self._value_count,
            null_value_count=self._null_count,
            nan_value_count=self._nan_count,
            min_value=None if self._extremes is None else self._extremes[0],
            max_value=None if self._extremes is None else self._extremes[1],
            avg_length=self._length / filled if has_length else None,
            max_length=self._max_length if has_length else None,
            theta=theta.to_bytes(),
            kll=None if kll is None else kll.to_bytes(),
            item_type=None if kll is None else kll.item_type,
            frequent_items=items,
            lg_k=theta.lg_k,
        )


def number_rows(columns: Sequence[pa.Array], type_texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return a number for each row of a batch, as `row_sample.draw_numbers`; its seed is made of some of its values."""
    if not columns or not len(columns[0]):
        return np.zeros(0)
    row_count, seed = len(columns[0]), 0
    places = pa.array([0, row_count // 2, row_count - 1])
    for column, type_text in zip(columns, type_texts, strict=True):
        encoded = encode_column(unify(column, decodes=False).take(places), type_text)
        for found in encoded.hashes[encoded.codes].tolist():
            seed = (31 * seed + found) % (1 << 63)
    return draw_numbers(row_count, seed + row_count)


def _check_text(array: pa.Array, name: str) -> None:
    # Spark writes what a cast of any binary gives.
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"column {name!r} has a text that is not UTF-8 ({one_line(error)}): leave it out, naming the other columns"
        ) from error


def _arrow_extremes(dense: pa.Array) -> tuple[Any, Any]:
    # Iceberg orders strings by their UTF-8 bytes.
    extremes = pc.min_max(dense)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return (low.encode(), high.encode()) if isinstance(low, str) else (low, high)
