"""Single values as comparable items: integers, floats or bytes, in the order of their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import binary_places, combine_chunks, to_numpy
from icestats.iceberg.types import decode_value, parse_type, to_integer

Booleans = npt.NDArray[np.bool_]
Items = npt.NDArray[Any]


def build_items(type_text: str, bounds: pa.Array | pa.ChunkedArray) -> tuple[Items, Booleans]:
    """Build comparable items from single values as bytes.

    Parameters
    ----------
    type_text : str
        Iceberg's type.
    bounds : pyarrow.Array of binary
        Single values, of older and narrower types too; null for none.

    Returns
    -------
    tuple of numpy.ndarray and numpy.ndarray of bool
        int64, float64 or objects (long decimals as int; text and binary as bytes), and which of them are known.
    """
    array = combine_chunks(bounds)
    known = ~to_numpy(pc.is_null(array))
    kind = parse_type(type_text)
    width, dtype = _FIXED.get(kind.name, (8 if kind.is_timestamp else 0, "<i8"))
    if width and _all_long(array, width):
        places, content = binary_places(array.drop_null())
        items = np.zeros(len(array), np.float64 if dtype[1] == "f" else np.int64)
        items[known] = content[places[0] : places[-1]].view(dtype)
        return items, known
    return _decoded(type_text, array, known)


_FIXED = {"int": (4, "<i4"), "long": (8, "<i8"), "date": (4, "<i4"), "time": (8, "<i8"), "boolean": (1, "<i1")}
_FIXED |= {"float": (4, "<f4"), "double": (8, "<f8")}


def _all_long(array: pa.Array, width: int) -> bool:
    return bool(pc.all(pc.equal(pc.binary_length(array), width)).as_py() is not False)


def _decoded(type_text: str, array: pa.Array, known: Booleans) -> tuple[Items, Booleans]:
    kind = parse_type(type_text)
    if kind.name == "decimal":
        values: list[Any] = [None if b is None else int.from_bytes(b, "big", signed=True) for b in array.to_pylist()]
    elif kind.name in ("string", "uuid", "fixed", "binary") or not kind.is_orderable:
        values = array.to_pylist()
    else:
        values, known = _python_values(type_text, array), known.copy()
        known &= np.asarray([value is not None for value in values], np.bool_)
    if kind.name in ("string", "uuid", "fixed", "binary") or (kind.name == "decimal" and kind.precision > 18):
        items = np.empty(len(values), object)
        items[:] = (
            [b"" if value is None else value for value in values]
            if kind.name != "decimal"
            else [value or 0 for value in values]
        )
        return items, known
    dtype = np.float64 if kind.name in ("float", "double") else np.int64
    return np.asarray([0 if value is None else value for value in values], dtype), known


def _python_values(type_text: str, array: pa.Array) -> list[Any]:
    is_float = parse_type(type_text).name in ("float", "double")
    values: list[Any] = []
    for data in array.to_pylist():
        try:
            value = None if data is None else decode_value(type_text, data)
        except ValueError:
            value = None
        values.append(value if value is None or is_float else to_integer(value))
    return values
