"""Values of a column as keys that compare in its order: 64-bit numbers, or bytes.

Numbers, dates and times become integers, floating-point numbers integers that order like them (-0.0 and 0.0 are one
key, NaN is none), decimals 16 bytes that order like them; strings, binaries and uuids are their bytes. Source: Iceberg
spec, "Appendix D: Single-value serialization", and "Schema Evolution" for the widths that promotion leaves behind.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import binary_places, to_numpy
from icestats.iceberg.types import MICROS_A_DAY, parse_type
from icestats.plan.filters.literals import literal_bytes

Mask = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
Key = int | bytes

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_INFINITY = 0x7FF0_0000_0000_0000
_WIDTHS = {
    "boolean": (1,), "int": (4,), "long": (4, 8), "date": (4,), "time": (8,), "timestamp": (4, 8),
    "timestamptz": (4, 8), "timestamp_ns": (4, 8), "timestamptz_ns": (4, 8), "float": (4,), "double": (4, 8),
}  # fmt: skip
_BYTES = frozenset({"string", "binary", "fixed", "uuid"})
_DATE_UNITS = {"timestamp": MICROS_A_DAY, "timestamptz": MICROS_A_DAY}
_DATE_UNITS |= dict.fromkeys(("timestamp_ns", "timestamptz_ns"), MICROS_A_DAY * 1000)


@dataclass(frozen=True, slots=True)
class Keys:
    """A key a row."""

    values: Any
    """numpy.ndarray of int64, or a pyarrow.BinaryArray; anything where unknown."""
    known: Mask

    def compare(self, operator: Literal["<", "<=", ">", ">="], key: Key) -> Mask:
        """Say for each row whether its key is known and compares so."""
        if isinstance(key, int):
            compared: Mask = _COMPARE[operator][0](self.values, key)
            return self.known & compared
        return self.known & _mask(_COMPARE[operator][1](self.values, pa.scalar(key, self.values.type)))

    def is_within(self, keys: Sequence[Key]) -> Mask:
        """Say for each row whether its key is known and one of some."""
        if not keys or isinstance(keys[0], int):
            return self.known & np.isin(self.values, np.array(keys, np.int64))
        return self.known & _mask(pc.is_in(self.values, pa.array(keys, self.values.type)))

    def take(self, rows: Longs) -> Keys:
        """Return some rows."""
        values = self.values[rows] if isinstance(self.values, np.ndarray) else self.values.take(pa.array(rows))
        return Keys(values, self.known[rows])

    def ranks(self, *others: Keys) -> list[Longs]:
        """Return integers that order like the keys, of these and of others together; anything where unknown."""
        every = (self, *others)
        if isinstance(self.values, np.ndarray):
            return [keys.values for keys in every]
        together = pa.concat_arrays([keys.values.cast(pa.binary()) for keys in every])
        ranks = to_numpy(pc.rank(together, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense"))
        return np.split(ranks.astype(np.int64), np.cumsum([len(keys.known) for keys in every])[:-1])


_COMPARE: dict[str, tuple[Any, Any]] = {
    "<": (np.less, pc.less),
    "<=": (np.less_equal, pc.less_equal),
    ">": (np.greater, pc.greater),
    ">=": (np.greater_equal, pc.greater_equal),
}


def _mask(array: pa.Array) -> Mask:
    return to_numpy(array, null=False)


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
    known = ~to_numpy(pc.is_null(bounds))
    name = parse_type(type_text).name
    if name in _BYTES:
        return Keys(bounds, known)
    if name == "decimal":
        return _decimal_keys(bounds, known)
    if name not in _WIDTHS:
        return Keys(np.zeros(len(bounds), np.int64), np.zeros(len(bounds), np.bool_))
    places, data = binary_places(bounds)
    starts, lengths = places[:-1], np.diff(places)
    values = np.zeros(len(bounds), np.int64)
    valid = np.zeros(len(bounds), np.bool_)
    for width in _WIDTHS[name]:
        rows = np.flatnonzero(known & (lengths == width))
        if rows.size:
            values[rows], valid[rows] = _decode(name, _take_raw(data, starts[rows], width))
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
    if name in ("float", "double"):
        reals = raw.view("<f4" if width == 4 else "<f8")[:, 0].astype(np.float64)
        return real_keys(reals), ~np.isnan(reals)
    values = raw.view("<i4" if width == 4 else "<i8")[:, 0].astype(np.int64)
    if width == 4 and name in _DATE_UNITS:
        # Promoted from date: days, as far as 64 bits hold them.
        most = int(_MAGNITUDE) // _DATE_UNITS[name]
        fits = np.abs(values) <= most
        return np.where(fits, values, 0) * _DATE_UNITS[name], fits
    return values, every


def real_keys(reals: npt.NDArray[np.float64]) -> Longs:
    """Return integers that order like floating-point numbers, -0.0 as 0.0."""
    bits = np.ascontiguousarray(reals + 0.0).view(np.int64)
    keys: Longs = np.where(bits < 0, bits ^ _MAGNITUDE, bits)
    return keys


def _decimal_keys(bounds: pa.Array, known: Mask) -> Keys:
    places, data = binary_places(bounds)
    starts, lengths = places[:-1], np.diff(places)
    valid = known & (lengths > 0) & (lengths <= 16)
    out = np.zeros((len(bounds), 16), np.uint8)
    rows = np.flatnonzero(valid)
    if rows.size:
        first, size = starts[rows], lengths[rows]
        out[rows] = np.where(data[first] >= 128, 255, 0).astype(np.uint8)[:, None]
        for place in range(int(size.max())):
            there = rows[size > place]
            out[there, 15 - place] = data[(first + size - 1 - place)[size > place]]
    out[:, 0] ^= 0x80
    fixed = pa.Array.from_buffers(pa.binary(16), len(bounds), [None, pa.py_buffer(out)])
    return Keys(fixed.cast(pa.binary()), valid)


def build_value_keys(type_text: str, values: pa.Array) -> tuple[Keys, Mask, Mask]:
    """Build the keys of values themselves, such as partition values.

    Parameters
    ----------
    type_text : str
        Their Iceberg type.
    values : pyarrow.Array
        In the Arrow type of `types.to_arrow_type`.

    Returns
    -------
    keys : Keys
        Unknown where the value is null or NaN.
    is_null, is_nan : numpy.ndarray of bool
        Where it is.
    """
    is_null = to_numpy(pc.is_null(values))
    is_nan = np.zeros(len(values), np.bool_)
    name = parse_type(type_text).name
    if pa.types.is_null(values.type):
        return Keys(np.zeros(len(values), np.int64), ~is_null), is_null, is_nan
    if name in _BYTES:
        binary = values.cast(pa.binary()) if values.type != pa.binary() else values
        return Keys(binary, ~is_null), is_null, is_nan
    if name == "decimal":
        return Keys(_decimal_values(values), ~is_null), is_null, is_nan
    if name in ("float", "double"):
        reals = to_numpy(values.cast(pa.float64()), null=0.0)
        is_nan = np.isnan(reals)
        return Keys(real_keys(reals), ~(is_null | is_nan)), is_null, is_nan
    if name == "boolean":
        return Keys(_mask(values).astype(np.int64), ~is_null), is_null, is_nan
    storage = pa.int32() if values.type.bit_width == 32 else pa.int64()
    return Keys(to_numpy(values.view(storage).cast(pa.int64()), null=0), ~is_null), is_null, is_nan


def _decimal_values(values: pa.Array) -> pa.Array:
    kind = pa.decimal128(38, values.type.scale)
    wide = pc.fill_null(values.cast(kind), pa.scalar(0, kind))
    raw = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, 16)[wide.offset : wide.offset + len(wide), ::-1].copy()
    raw[:, 0] ^= 0x80
    return pa.Array.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(raw)]).cast(pa.binary())


def literal_keys(type_text: str, value: Any) -> tuple[Key, Key]:
    """Return the keys that a literal may have in a column: the least and the greatest.

    They differ for a `float` column only: engines compare either with the literal or with the `float` next to it.

    Examples
    --------
    >>> literal_keys("int", 5)
    (5, 5)
    >>> literal_keys("string", "a")
    (b'a', b'a')
    """
    name = parse_type(type_text).name
    if name in ("float", "double"):
        near = struct.unpack("<f", literal_bytes("float", value))[0] if name == "float" else value
        found = real_keys(np.array([value, near], np.float64))
        return int(found.min()), int(found.max())
    keys = build_keys(type_text, pa.array([literal_bytes(type_text, value)], pa.binary()))
    if isinstance(keys.values, np.ndarray):
        return int(keys.values[0]), int(keys.values[0])
    return keys.values[0].as_py(), keys.values[0].as_py()


def successor(prefix: bytes) -> bytes | None:
    r"""Return the least bytes that are greater than all that start with a prefix; None where there are none.

    Examples
    --------
    >>> successor(b"ab"), successor(b"a\xff"), successor(b"\xff")
    (b'ac', b'b', None)
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
