"""How single values of a type compare, and the least and greatest of many.

Source: Iceberg spec, "Binary single-value serialization" (Appendix D).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.types import parse_type

_NUMBER_WIDTHS = {"int": 4, "date": 4, "float": 4, "long": 8, "time": 8, "double": 8}
_NUMBER_WIDTHS |= dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), 8)
_WIDTHS = {**_NUMBER_WIDTHS, "boolean": 1, "uuid": 16}
_BY_BYTES = ("string", "binary", "fixed", "uuid", "boolean")
_REAL = ("float", "double")


def find_width(type_text: str) -> int | None:
    """Return how many bytes every value of a type has; None where they differ, or the type is of a later spec.

    Examples
    --------
    >>> [find_width(kind) for kind in ("date", "fixed[3]", "string")]
    [4, 3, None]
    """
    try:
        kind = parse_type(type_text)
    except ValueError:
        return None
    return kind.length if kind.name == "fixed" else _WIDTHS.get(kind.name)


def find_extreme(values: pa.BinaryArray, type_text: str, *, highest: bool) -> bytes | None:
    r"""Return the least or the greatest of single values of a type, None where all are null.

    Parameters
    ----------
    values : pyarrow.BinaryArray
        Values of that very type, not of a narrower one.
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
    name = parse_type(type_text).name
    if name in _BY_BYTES:
        return _as_bytes((pc.max if highest else pc.min)(values))
    if name in _NUMBER_WIDTHS:
        width = _NUMBER_WIDTHS[name]
        numbers = to_numpy(values.cast(pa.binary(width)).view(pa.int32() if width == 4 else pa.int64()))
        if name in _REAL:
            # As Java orders: -0.0 before 0.0.
            numbers = np.where(numbers < 0, numbers ^ np.iinfo(numbers.dtype).max, numbers)
        return _as_bytes(values[int(numbers.argmax() if highest else numbers.argmin())])
    extreme: bytes = (max if highest else min)(values.to_pylist(), key=order_of(type_text))
    return extreme


def _as_bytes(value: pa.BinaryScalar) -> bytes:
    data: bytes = value.as_py()
    return data


def order_of(type_text: str) -> Callable[[bytes], int | bytes]:
    """Return what orders single values of a type; values are of that very type, not of a narrower one."""
    name = parse_type(type_text).name
    if name in _BY_BYTES:
        return bytes
    if name == "decimal":
        return lambda data: int.from_bytes(data, "big", signed=True)
    if name in _REAL:
        return _float_order
    return lambda data: int.from_bytes(data, "little", signed=True)


def _float_order(data: bytes) -> int:
    # As Java orders: -0.0 before 0.0.
    width = len(data)
    bits = int(struct.unpack("<i" if width == 4 else "<q", data)[0])
    return bits if bits >= 0 else bits ^ ((1 << (8 * width - 1)) - 1)
