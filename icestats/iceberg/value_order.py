"""The order of the values of a type: the one definition for bounds, literals, partitions and roll-ups.

A value has a key that compares as the value does: a 64-bit number, or bytes. Numbers, dates, times and decimals of up
to 18 digits are numbers, as are floating-point values, in Java's order: -0.0 before 0.0. Longer decimals are 16 bytes
that order like them; strings, binaries and uuids are their own bytes. NaN is no bound, and the last of partitions.
Source: Iceberg spec, "Binary single-value serialization" (Appendix D), and "Schema Evolution" for the widths that
promotion leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import binary_places, to_numpy
from icestats.iceberg.types import MAX_LONG_PRECISION, UNITS_A_DAY, WIDTHS, parse_type

Mask: TypeAlias = npt.NDArray[np.bool_]
Longs: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = int | bytes

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_BYTES = frozenset({"string", "binary", "fixed", "uuid"})
_REAL = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class Keys:
    """A key a row."""

    values: Any
    """numpy.ndarray of int64, or a pyarrow.BinaryArray; anything where unknown."""
    known: Mask

    def count_passed(self, reached: Sequence[Key], exceeded: Sequence[Key]) -> Longs:
        """Return for each row how many of `reached` its key is at least, and how many of `exceeded` it is above."""
        if len(reached) + len(exceeded) > _FEW:
            return self._rank(reached, "right") + self._rank(exceeded, "left")
        passed = np.zeros(len(self.known), np.int64)
        for keys, by_number, by_bytes in (
            (reached, np.greater_equal, pc.greater_equal),
            (exceeded, np.greater, pc.greater),
        ):
            for key in keys:
                if isinstance(key, int):
                    passed += by_number(self.values, key)
                else:
                    passed += to_numpy(by_bytes(self.values, pa.scalar(key, self.values.type)), null=False)
        return passed

    def _rank(self, keys: Sequence[Key], side: Literal["left", "right"]) -> Longs:
        """Return for each row how many keys are below its own, on the right: or equal to it."""
        if isinstance(self.values, np.ndarray):
            below, fitting = _fit(keys)
            return below + np.searchsorted(np.sort(fitting), self.values, side)
        own, others = self.ranks(Keys(pa.array(keys, pa.binary()), np.ones(len(keys), np.bool_)))
        return np.searchsorted(np.sort(others), own, side)

    def is_within(self, keys: Sequence[Key]) -> Mask:
        """Say for each row whether its key is known and one of some."""
        if isinstance(self.values, np.ndarray):
            within: Mask = np.isin(self.values, _fit(keys)[1])
        else:
            within = to_numpy(pc.is_in(self.values, pa.array(keys, self.values.type)), null=False)
        return self.known & within

    def is_at_most(self, other: Keys) -> Mask:
        """Say for each row whether its key is no greater than the other's; anything where one is unknown."""
        if isinstance(self.values, np.ndarray):
            return np.asarray(self.values <= other.values)
        return to_numpy(pc.less_equal(self.values, other.values), null=False)

    def take(self, rows: Longs) -> Keys:
        """Return some rows."""
        values = self.values[rows] if isinstance(self.values, np.ndarray) else self.values.take(pa.array(rows))
        return Keys(values, self.known[rows])

    def join(self, other: Keys) -> Keys:
        """Return these keys and then others of the same type."""
        known = np.concatenate([self.known, other.known])
        if isinstance(self.values, np.ndarray):
            return Keys(np.concatenate([self.values, other.values]), known)
        return Keys(pa.concat_arrays([self.values.cast(pa.binary()), other.values.cast(pa.binary())]), known)

    def ranks(self, *others: Keys) -> list[Longs]:
        """Return integers that order like the keys, of these and of others together; anything where unknown."""
        every = (self, *others)
        if isinstance(self.values, np.ndarray):
            return [keys.values for keys in every]
        together = pa.concat_arrays([keys.values.cast(pa.binary()) for keys in every])
        return np.split(_dense_ranks(together), np.cumsum([len(keys.known) for keys in every])[:-1])

    def find_extremes(self, groups: Longs, count: int, *, highest: bool) -> Longs:
        """Return for each of `count` groups a row with its least or greatest known key, -1 where none is known."""
        rows = np.flatnonzero(self.known)
        ranks, members = self.ranks()[0][rows], groups[rows]
        limits = np.iinfo(np.int64)
        extremes = np.full(count, limits.min if highest else limits.max)
        (np.maximum if highest else np.minimum).at(extremes, members, ranks)
        found = rows[ranks == extremes[members]][::-1]
        chosen = np.full(count, -1, np.int64)
        # The last write to a place stays: the first row.
        chosen[groups[found]] = found
        return chosen


_FEW = 32
"""So many keys are compared one by one."""


def _fit(keys: Sequence[Key]) -> tuple[int, Longs]:
    """Return how many keys are below all 64-bit numbers, and those that are such numbers."""
    try:
        return 0, np.array(keys, np.int64)
    except OverflowError:
        fitting = [key for key in keys if isinstance(key, int) and -(1 << 63) <= key < 1 << 63]
        return sum(isinstance(key, int) and key < -(1 << 63) for key in keys), np.array(fitting, np.int64)


def _dense_ranks(array: pa.Array) -> Longs:
    ranks: Longs = to_numpy(pc.rank(array, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense"))
    return ranks.astype(np.int64)


def build_keys(type_text: str, bounds: pa.Array) -> Keys:
    """Build the keys of single values as bytes.

    Parameters
    ----------
    type_text : str
        The type that the column has now; narrower encodings of older files are read as that type.
    bounds : pyarrow.BinaryArray
        Single values; null is unknown.

    Returns
    -------
    Keys
        Unknown where the value is null, NaN, or not of the type.
    """
    known: Mask = bounds.is_valid().to_numpy(zero_copy_only=False)
    kind = parse_type(type_text)
    if kind.name == "uuid":
        known &= to_numpy(pc.equal(pc.binary_length(bounds), 16), null=False)
    if kind.name in _BYTES:
        return Keys(bounds, known)
    if kind.name == "decimal":
        return _decimal_keys(bounds, known, kind.precision)
    if kind.name not in WIDTHS:
        return Keys(np.zeros(len(bounds), np.int64), np.zeros(len(bounds), np.bool_))
    places, data = binary_places(bounds)
    starts, lengths = places[:-1], np.diff(places)
    values = np.zeros(len(bounds), np.int64)
    valid = np.zeros(len(bounds), np.bool_)
    for width in WIDTHS[kind.name]:
        rows = np.flatnonzero(known & (lengths == width))
        if rows.size:
            values[rows], valid[rows] = _decode(kind.name, _take_raw(data, starts[rows], width))
    return Keys(values, valid)


def _take_raw(data: npt.NDArray[np.uint8], starts: Longs, width: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of values of one width, a row each."""
    first, end = int(starts[0]), int(starts[-1]) + width
    if end - first == width * len(starts):
        # They lie one behind the other.
        return data[first:end].reshape(-1, width)
    raw: npt.NDArray[np.uint8] = data[starts[:, None] + np.arange(width)]
    return raw


def _decode(name: str, raw: npt.NDArray[np.uint8]) -> tuple[Longs, Mask]:
    width = raw.shape[1]
    every = np.ones(len(raw), np.bool_)
    if name == "boolean":
        return (raw[:, 0] != 0).astype(np.int64), every
    if name in _REAL:
        reals = raw.view("<f4" if width == 4 else "<f8")[:, 0].astype(np.float64)
        return keys_of_reals(reals), ~np.isnan(reals)
    values = raw.view("<i4" if width == 4 else "<i8")[:, 0].astype(np.int64)
    if width == 4 and name.startswith("timestamp"):
        # Promoted from date: days, as far as 64 bits hold them.
        most = int(_MAGNITUDE) // UNITS_A_DAY[name]
        fits = np.abs(values) <= most
        return np.where(fits, values, 0) * UNITS_A_DAY[name], fits
    return values, every


def reals_of_keys(keys: Longs) -> Floats:
    """Return the floating-point numbers of keys; the inverse of `keys_of_reals`."""
    reals: Floats = np.where(keys < 0, keys ^ _MAGNITUDE, keys).view(np.float64)
    return reals


def keys_of_reals(reals: Floats) -> Longs:
    """Return integers that order like floating-point numbers, -0.0 before 0.0 and every NaN last."""
    bits = np.ascontiguousarray(np.where(np.isnan(reals), np.nan, reals)).view(np.int64)
    keys: Longs = np.where(bits < 0, bits ^ _MAGNITUDE, bits)
    return keys


def _decimal_keys(bounds: pa.Array, known: Mask, precision: int) -> Keys:
    places, data = binary_places(bounds)
    lengths = np.diff(places)
    values, fits = _of_wide(widen_decimals(data, places[:-1], lengths), precision)
    return Keys(values, known & (lengths > 0) & (lengths <= 16) & fits)


def widen_decimals(data: npt.NDArray[np.uint8], starts: Longs, lengths: Longs) -> npt.NDArray[np.uint8]:
    """Return the unscaled values of decimals as 16 bytes each, the highest first; zeros for other than 1 to 16 bytes.

    Parameters
    ----------
    data : numpy.ndarray of uint8
        Single values: big-endian numbers with their sign.
    starts, lengths : numpy.ndarray of int64
        Where each begins, and how many bytes it has.
    """
    wide = np.zeros((len(starts), 16), np.uint8)
    rows = np.flatnonzero((lengths > 0) & (lengths <= 16))
    first, size = starts[rows], lengths[rows]
    wide[rows] = np.where(data[first] >= 128, 255, 0).astype(np.uint8)[:, None]
    for place in range(int(size.max(initial=0))):
        there = rows[size > place]
        wide[there, 15 - place] = data[(first + size - 1 - place)[size > place]]
    return wide


def _of_wide(words: npt.NDArray[np.uint8], precision: int) -> tuple[Any, Mask]:
    """Return the keys of decimals, 16 bytes each with the highest first, and which of them the type holds."""
    if precision <= MAX_LONG_PRECISION:
        high, low = words.view(">i8").astype(np.int64).T
        return low, high == low >> 63
    words[:, 0] ^= 0x80
    fixed = pa.Array.from_buffers(pa.binary(16), len(words), [None, pa.py_buffer(words)])
    return fixed.cast(pa.binary()), np.ones(len(words), np.bool_)


def build_value_keys(values: pa.Array, type_text: str | None = None) -> tuple[Keys, Mask, Mask]:
    """Build the keys of values themselves, such as partition values.

    Parameters
    ----------
    values : pyarrow.Array
        In the Arrow type of `types.to_arrow_type`.
    type_text : str, optional
        The Iceberg type that they are compared as, where it may be a narrower one.

    Returns
    -------
    keys : Keys
        Unknown where the value is null or NaN.
    is_null, is_nan : numpy.ndarray of bool
        Where it is.
    """
    is_null: Mask = to_numpy(pc.is_null(values, nan_is_null=False))
    is_nan = np.zeros(len(values), np.bool_)
    kind = values.type
    keys: Any
    if pa.types.is_null(kind):
        keys = np.zeros(len(values), np.int64)
    elif pa.types.is_floating(kind):
        reals = to_numpy(values.cast(pa.float64()), null=0.0)
        is_nan = np.isnan(reals)
        keys = keys_of_reals(reals)
    elif pa.types.is_decimal(kind):
        wide = pc.fill_null(values.cast(pa.decimal128(38, kind.scale)), 0)
        raw = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, 16)[wide.offset : wide.offset + len(wide), ::-1]
        precision = kind.precision if type_text is None else parse_type(type_text).precision
        keys = _of_wide(raw.copy(), precision)[0]
    elif pa.types.is_boolean(kind):
        keys = to_numpy(values, null=False).astype(np.int64)
    elif pa.types.is_primitive(kind):
        keys = to_numpy(values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64()), null=0)
    else:
        keys = values if kind == pa.binary() else values.cast(pa.binary())
    return Keys(keys, ~(is_null | is_nan)), is_null, is_nan


def rank_values(values: pa.Array) -> Longs:
    """Return the dense rank of each value: nulls first, NaN last."""
    keys, is_null, _ = build_value_keys(values)
    plain = pa.array(keys.values) if isinstance(keys.values, np.ndarray) else keys.values
    return _dense_ranks(pc.if_else(pa.array(is_null), pa.scalar(None, plain.type), plain))


@lru_cache(1 << 16)
def literal_keys(type_text: str, item: Any) -> tuple[Key, Key]:
    """Return the least and the greatest key of the values that equal a literal: they differ for zero alone.

    Parameters
    ----------
    type_text : str
        Iceberg's type of the values.
    item : int, float, str or bytes
        As `value_sets.build_item` has it.

    Examples
    --------
    >>> literal_keys("int", 5), literal_keys("string", "a"), literal_keys("double", 0.0)
    ((5, 5), (b'a', b'a'), (-1, 0))
    """
    if isinstance(item, str | bytes):
        data = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item
        return data, data
    kind = parse_type(type_text)
    if kind.name in _REAL:
        least, greatest = keys_of_reals(np.array([item or -0.0, item or 0.0], np.float64)).tolist()
        return least, greatest
    if kind.name == "decimal" and kind.precision > MAX_LONG_PRECISION:
        limit = 1 << 127
        wide = (min(max(item, -limit), limit - 1) + limit).to_bytes(16, "big")
        return wide, wide
    return item, item


def to_floats(type_text: str, keys: Keys) -> Floats:
    """Return the numbers that keys stand for, times in their column's unit, decimals without their point."""
    if not isinstance(keys.values, np.ndarray):
        words = np.frombuffer(keys.values.cast(pa.binary(16)).fill_null(bytes(16)).buffers()[1], ">u8").reshape(-1, 2)
        high, low = (words[:, 0] ^ np.uint64(1 << 63)).astype(np.int64), words[:, 1].astype(np.int64)
        # The lower half as a signed number, so that small negative numbers are exact.
        return (high + (low < 0)).astype(np.float64) * 2.0**64 + low.astype(np.float64)
    values: Longs = keys.values
    if parse_type(type_text).name in _REAL:
        return np.where(values < 0, values ^ _MAGNITUDE, values).view(np.float64)
    return values.astype(np.float64)


def find_extreme(values: pa.BinaryArray, type_text: str, *, highest: bool) -> bytes | None:
    r"""Return the least or the greatest of single values of a type, None where none is known.

    Parameters
    ----------
    values : pyarrow.BinaryArray
        Single values; null is unknown.
    type_text : str
        Iceberg's type.
    highest : bool
        Whether the greatest is wanted.

    Examples
    --------
    >>> find_extreme(pa.array([b"\x05\x00\x00\x00", b"\xff\xff\xff\xff", None], pa.binary()), "int", highest=False)
    b'\xff\xff\xff\xff'
    """
    values = values.drop_null()
    if not len(values):
        return None
    keys = build_keys(type_text, values)
    if isinstance(keys.values, np.ndarray):
        if not keys.known.any():
            return None
        rows = np.flatnonzero(keys.known)
        place = rows[keys.values[rows].argmax() if highest else keys.values[rows].argmin()]
    else:
        place = pc.index(keys.values, (pc.max if highest else pc.min)(keys.values)).as_py()
    found: bytes = values[int(place)].as_py()
    return found
