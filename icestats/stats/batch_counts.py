"""How often each value of a batch is there, without counting one by one those that are there once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.stats.column_values import byte_ranges, encode_dense
from icestats.stats.frequent_items import VALUE_LENGTH, CountedValues
from icestats.stats.hashing import Hashes, hash_keys

_Words = npt.NDArray[Any]
_SLOTS: Final = 1 << 18
"""Hashes are looked up by their lowest bits: a value too many that is found so is only counted."""
_SAMPLE = 1_024
FEW_DISTINCT: Final = 512
"""So few distinct values are counted one by one."""
_LOW_BITS = np.uint64(_SLOTS - 1)


def count_words(distinct: _Words, counts: npt.NDArray[np.int64], kept: pa.Array | None, capacity: int) -> CountedValues:
    """Return the words of a batch that a sketch needs to know: the most common, and those that it keeps already.

    Parameters
    ----------
    distinct, counts : numpy.ndarray
        Distinct integers in ascending order, and how often each is there.
    kept : pyarrow.Array or None
        The words that the sketch keeps.
    capacity : int
        How many are returned at most, beside these.
    """
    total = int(counts.sum())
    if len(distinct) <= capacity:
        return CountedValues(pa.array(distinct.astype(np.int64)), counts, total)
    wanted = _most_common(counts, capacity)
    if kept is not None and len(kept):
        words = kept.to_numpy(zero_copy_only=False).astype(distinct.dtype)
        places = np.minimum(np.searchsorted(distinct, words), len(distinct) - 1)
        wanted[places[distinct[places] == words]] = True
    others = int(counts[~wanted].max(initial=0))
    return CountedValues(pa.array(distinct[wanted].astype(np.int64)), counts[wanted], total, others)


def _most_common(counts: npt.NDArray[np.int64], capacity: int) -> npt.NDArray[np.bool_]:
    wanted = counts > 1
    if np.count_nonzero(wanted) > capacity:
        least = np.partition(counts, len(counts) - capacity)[len(counts) - capacity]
        wanted = counts > least
    return wanted


def count_ranges(
    dense: pa.Array, type_text: str, hashes: Hashes, kept: pa.Array | None, capacity: int
) -> CountedValues:
    """Return the same for strings, binaries and other values that are wider than a word.

    Parameters
    ----------
    dense : pyarrow.Array
        Values from `column_values.dense_values`, none of them longer than `VALUE_LENGTH`.
    type_text : str
        The Iceberg type.
    hashes : numpy.ndarray of uint64
        Theta's, of the values in their order, but of no empty ones. What has other hashes is another value.
    kept, capacity
        As for `count_words`.
    """
    filled = dense
    if len(hashes) < len(dense):
        filled = dense.filter(pa.array(np.diff(byte_ranges(dense)[1]) > 0))
    ordered, slots = np.sort(hashes), np.zeros(_SLOTS, np.bool_)
    if np.count_nonzero(ordered[1:] != ordered[:-1]) < capacity:
        counted = dense.value_counts()
        return as_counted(counted.field("values"), counted.field("counts"), type_text)
    slots[ordered[1:][ordered[1:] == ordered[:-1]] & _LOW_BITS] = True
    if kept is not None and len(kept):
        slots[hash_keys(kept, type_text) & _LOW_BITS] = True
    subset = filled.filter(pa.array(slots[hashes & _LOW_BITS]))
    counted = subset.value_counts()
    found = as_counted(counted.field("values"), counted.field("counts"), type_text)
    wanted = _most_common(found.counts, capacity)
    if kept is not None and len(kept):
        wanted |= pc.is_in(found.values, kept).to_numpy(zero_copy_only=False)
    others = max(int(found.counts[~wanted].max(initial=0)), int(len(subset) < len(filled)))
    values, counts = found.values.filter(pa.array(wanted)), found.counts[wanted]
    if empty := len(dense) - len(filled):
        values = pa.concat_arrays([values, pa.array([b""], pa.large_binary())])
        counts = np.append(counts, empty)
    return CountedValues(values, counts, len(dense), others)


def as_counted(values: pa.Array, counts: pa.Array, type_text: str) -> CountedValues:
    """Return what Arrow's `value_counts` found in a batch of values that are wider than a word."""
    rows = counts.to_numpy(zero_copy_only=False).astype(np.int64)
    return CountedValues(encode_dense(values, type_text), rows, int(rows.sum()))


def has_few_distinct(dense: pa.Array) -> bool:
    """Whether so many of the first values repeat that counting each distinct one is the fastest way."""
    return len(pc.unique(dense.slice(0, _SAMPLE))) <= FEW_DISTINCT


def cut_long(dense: pa.Array) -> tuple[pa.Array, bool]:
    """Return strings or binaries cut to `VALUE_LENGTH`, and whether any is."""
    if len(dense) == 0 or int(np.diff(byte_ranges(dense)[1]).max()) <= VALUE_LENGTH:
        return dense, False
    is_text = pa.types.is_string(dense.type) or pa.types.is_large_string(dense.type)
    cut = (pc.utf8_slice_codeunits if is_text else pc.binary_slice)(dense, 0, VALUE_LENGTH)
    return cut, not cut.equals(dense)
