"""Sketches in the form in which Hive's metastore keeps them: HyperLogLog of distinct values, KLL of floats.

A HyperLogLog of Hive's, dense, without bit packing:

    byte 0-2    HLL
    byte 3      p in the upper four bits, 7 in the lower: a byte a register
    then        the estimate, as a varint; 2^p registers, a byte each

Register h mod 2^p of a hash h has the largest number of zero bits at the lower end of h / 2^p, plus one.
Source: Hive 4 `HyperLogLogUtils`, `HLLDenseRegister`; `ColumnStatsSemanticAnalyzer` for what the histogram is of.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.iceberg.types import PrimitiveType, parse_type
from icestats.stats.column_values import dense_values
from icestats.stats.hashing import hash_for_hive
from icestats.stats.kll import KllSketch

_P: Final = 10
"""Hive's own size."""
REGISTER_COUNT: Final = 1 << _P
BIT_VECTOR_ERROR: Final = 1.04 / REGISTER_COUNT**0.5
"""Relative standard error of the number of distinct values."""
_DAY_S: Final = 86_400

Registers = npt.NDArray[np.uint8]


def has_bit_vector(type_text: str) -> bool:
    """Return whether Hive keeps a bit vector of a type: not of booleans and binaries, nor of what it reads as text."""
    kind = parse_type(type_text)
    return kind.is_timestamp or kind.name in ("int", "long", "float", "double", "decimal", "date", "string")


def update_registers(registers: Registers, array: pa.Array, type_text: str) -> None:
    """Take the values of an array, without nulls, into the registers of a HyperLogLog of Hive's.

    Parameters
    ----------
    registers : numpy.ndarray of uint8
        `REGISTER_COUNT` of them, zeros at first. Those of two arrays merge by their maximum.
    array : pyarrow.Array
        The values.
    type_text : str
        The Iceberg type, one that `has_bit_vector`.
    """
    hashes = hash_for_hive(dense_values(array, type_text), type_text)
    rest = hashes >> np.uint64(_P)
    lowest = rest & (~rest + np.uint64(1))
    zeros = np.where(rest == 0, 64, np.log2(np.maximum(lowest, 1).astype(np.float64)))
    np.maximum.at(registers, (hashes & np.uint64(REGISTER_COUNT - 1)).astype(np.int64), (zeros + 1).astype(np.uint8))


def write_bit_vector(registers: Registers) -> bytes:
    r"""Return the bytes of a HyperLogLog of Hive's, which Hive merges with its own.

    Examples
    --------
    >>> write_bit_vector(np.zeros(REGISTER_COUNT, np.uint8))[:5]
    b'HLL\xa7\x00'
    """
    estimate, head = _estimate(registers), bytearray(b"HLL" + bytes([_P << 4 | 7]))
    while estimate > 0x7F:
        head.append(estimate & 0x7F | 0x80)
        estimate >>= 7
    return bytes([*head, estimate]) + registers.tobytes()


def _estimate(registers: Registers) -> int:
    # Hive looks this number up without the registers only; with them, it estimates anew.
    count, zeros = REGISTER_COUNT, int(np.count_nonzero(registers == 0))
    raw = 0.7213 / (1 + 1.079 / count) * count**2 / float(np.exp2(-registers.astype(np.float64)).sum())
    return round(count * math.log(count / zeros) if zeros and raw <= 2.5 * count else raw)


def write_float_kll(sketch: KllSketch, type_text: str) -> bytes | None:
    """Return a column's KLL sketch as Hive's histogram: of floats, seconds for dates and timestamps.

    Parameters
    ----------
    sketch : KllSketch
        The sketch of the column.
    type_text : str
        The column's Iceberg type.

    Returns
    -------
    bytes or None
        DataSketches' `KllFloatsSketch`; None where Hive has no histogram of the type.

    Notes
    -----
    The items and their weights stay as they are, so the error of a rank does too. Only the values are rounded, to 24
    bits: two of them may become one, as in Hive's own.
    """
    kind = parse_type(type_text)
    if kind.name in ("boolean", "string", "time"):
        return None
    layout = sketch.layout
    if layout.n == 0:
        return None

    def to_float(item: Any) -> float:
        return float(np.float32(_to_number(kind, item)))

    low, high = to_float(layout.min_value), to_float(layout.max_value)
    levels = tuple([to_float(item) for item in level] for level in layout.levels)
    return replace(layout, item_type="float", min_value=low, max_value=high, levels=levels).to_bytes()


def _to_number(kind: PrimitiveType, item: Any) -> float:
    if kind.name == "decimal":
        return float(item / 10**kind.scale)
    if kind.name == "date":
        return float(item * _DAY_S)
    return float(item // (10**9 if kind.name.endswith("_ns") else 10**6)) if kind.is_timestamp else float(item)
