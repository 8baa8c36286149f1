"""The values of an Arrow array as plain NumPy arrays, whatever the Arrow type.

A reader may give a column sliced, dictionary-encoded, or with another width or time unit than its Iceberg type has.
This module brings all of these into one form, which hashes and sketches are made from.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import binary_places
from icestats.answers.text import one_line
from icestats.iceberg.types import MAX_LONG_PRECISION, encode_unscaled, parse_type, to_arrow_type

_UUID_GROUPS = (0, 8, 12, 16, 20, 32)
_HEX_PAIRS = np.frombuffer(bytes(range(256)).hex().encode(), dtype="<u2")


def dense_values(array: pa.Array, type_text: str) -> pa.Array:
    """Return the non-null values of an array, in one fixed Arrow type for each Iceberg type.

    Parameters
    ----------
    array : pyarrow.Array
        The values from a reader: of any width, unit or offset, dictionary- or run-end-encoded, or an extension type.
    type_text : str
        The Iceberg type.

    Returns
    -------
    pyarrow.Array
        Without nulls: `bool`, `int32` (int, date), `int64` (long, time, timestamps: microseconds, or nanoseconds for
        the `_ns` types), `float`, `double`, `decimal128`, `binary(16)` (uuid), `string` or `large_string`, `binary`
        or `large_binary` (binary, fixed).

    Raises
    ------
    ValueError
        The array cannot be read as that type.

    Examples
    --------
    >>> dense_values(pa.array([1, None], pa.int16()), "long").to_pylist()
    [1]
    """
    kind = parse_type(type_text)
    try:
        plain, target = unify(array), to_arrow_type(type_text)
        if pa.types.is_null(plain.type):
            plain = plain.cast(target)
        if plain.null_count:
            plain = plain.drop_null()
        if kind.name in ("date", "time"):
            return _temporal(plain, kind.name)
        if kind.is_timestamp:
            return _timestamp(plain, target.unit)
        if kind.name == "uuid":
            return _uuid(plain)
        if kind.name in ("string", "binary", "fixed"):
            return _bytes(plain, kind.name)
        return _cast(plain, target)
    except (ValueError, TypeError, KeyError, pa.ArrowNotImplementedError) as error:
        reason = one_line(error)
        raise ValueError(f"an Arrow array of {array.type} cannot be read as Iceberg's {type_text}: {reason}") from error


def fixed_words(dense: pa.Array) -> npt.NDArray[Any]:
    """Return dense fixed-width values as a NumPy array: `uint8` for booleans, else of the type's own width.

    Parameters
    ----------
    dense : pyarrow.Array
        Booleans, integers or floating point numbers from `dense_values`.
    """
    if pa.types.is_boolean(dense.type):
        dense = dense.cast(pa.uint8())
    words: npt.NDArray[Any] = dense.to_numpy(zero_copy_only=True)
    return words


def encode_dense(dense: pa.Array, type_text: str) -> pa.Array:
    """Return dense values as single-value bytes (Iceberg spec, Appendix D), `large_binary`; -0.0 as 0.0.

    Parameters
    ----------
    dense : pyarrow.Array
        Values from `dense_values`.
    type_text : str
        The Iceberg type.

    Examples
    --------
    >>> encode_dense(pa.array([5], pa.int32()), "int")[0].as_py().hex()
    '05000000'
    """
    kind = parse_type(type_text)
    if kind.name in ("string", "binary", "fixed", "uuid"):
        return (dense.cast(pa.binary()) if kind.name == "uuid" else dense).cast(pa.large_binary())
    if kind.name == "decimal":
        pairs = zip(*unscaled_words(dense).T.tolist(), strict=True) if len(dense) else ()
        unscaled = [(high << 64) + low % (1 << 64) for low, high in pairs]
        return pa.array([encode_unscaled(value) for value in unscaled], pa.large_binary())
    words = fixed_words(dense)
    words = np.ascontiguousarray(words + 0 if words.dtype.kind == "f" else words)
    packed = pa.Array.from_buffers(pa.binary(words.itemsize), len(words), [None, pa.py_buffer(words)])
    return packed.cast(pa.binary()).cast(pa.large_binary())


def integer_values(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the non-null values of an array as 64-bit integers: integers, days, units of time, or unscaled decimals.

    Raises
    ------
    ValueError
        The values are of another kind or do not fit: decimals of more than 18 digits, unsigned integers from 2^63 on.
    """
    plain = unify(array).drop_null()
    kind = plain.type
    if pa.types.is_decimal(kind) and kind.precision <= MAX_LONG_PRECISION:
        return np.ascontiguousarray(unscaled_words(_cast(plain, pa.decimal128(kind.precision, kind.scale)))[:, 0])
    if pa.types.is_boolean(kind):
        plain = plain.cast(pa.uint8())
    elif pa.types.is_temporal(kind) and kind.bit_width in (32, 64):
        plain = plain.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not pa.types.is_integer(kind):
        raise ValueError(f"the values of an Arrow array of {array.type} are not 64-bit integers")
    integers: npt.NDArray[np.int64] = _cast(plain, pa.int64()).to_numpy(zero_copy_only=False)
    return integers


def unscaled_words(dense: pa.Array) -> npt.NDArray[np.int64]:
    """Return the unscaled values of `decimal128` as rows of two 64-bit words: the low bits, the signed high word."""
    words = np.frombuffer(dense.buffers()[1], dtype="<i8", count=2 * (dense.offset + len(dense)))
    return words.reshape(-1, 2)[dense.offset :].astype(np.int64, copy=False)


def byte_ranges(dense: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of n dense strings or binaries, end to end, and the n + 1 offsets of the values in them."""
    places, content = binary_places(dense)
    return content[places[0] : places[-1]], places - places[0]


def uuid_texts(dense: pa.Array) -> npt.NDArray[np.uint8]:
    """Return each dense uuid value as a row of its 36 characters, in lower case and with hyphens."""
    data = np.frombuffer(dense.buffers()[1], dtype=np.uint8, count=16 * (dense.offset + len(dense)))
    digits = _HEX_PAIRS[data.reshape(-1, 16)[dense.offset :]].view(np.uint8)
    texts = np.full((len(dense), 36), ord("-"), np.uint8)
    for place, (start, end) in enumerate(pairwise(_UUID_GROUPS)):
        texts[:, start + place : end + place] = digits[:, start:end]
    return texts


def unify(array: pa.Array | pa.ChunkedArray, *, decodes: bool = True) -> pa.Array:
    """Return an array in one piece, plain: not an extension's, dictionary- or run-end-encoded, or of views.

    Unless `decodes`, a dictionary-encoded one stays as it is, but for a dictionary that holds null.
    """
    if isinstance(array, pa.ChunkedArray):
        array = (array.unify_dictionaries() if pa.types.is_dictionary(array.type) else array).combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        if not decodes and not array.dictionary.null_count:
            return array
        array = array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    # Arrow has hardly any functions for views.
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if _is_text(array.type) and not pa.types.is_fixed_size_binary(target):
        raise TypeError("it holds text")
    return array if array.type == target else array.cast(target)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _temporal(array: pa.Array, name: str) -> pa.Array:
    if pa.types.is_integer(array.type):
        return _cast(array, pa.int32() if name == "date" else pa.int64())
    if name == "date":
        return _cast(array, pa.date32()).view(pa.int32())
    return _floor_units(array, pa.time64("us"), "us").view(pa.int64())


def _timestamp(array: pa.Array, unit: str) -> pa.Array:
    if pa.types.is_integer(array.type):
        return _cast(array, pa.int64())
    if not pa.types.is_timestamp(array.type):
        return _cast(_cast(array, pa.timestamp("us")), pa.timestamp(unit)).view(pa.int64())
    return _floor_units(array, pa.timestamp(unit, tz=array.type.tz), unit).view(pa.int64())


def _floor_units(array: pa.Array, target: pa.DataType, unit: str) -> pa.Array:
    # Arrow's unsafe cast rounds towards zero: before 1970 that is up to the next microsecond.
    if getattr(array.type, "unit", None) == "ns" and unit == "us":
        micros = array.view(pa.int64()).to_numpy(zero_copy_only=True) // 1000
        return pa.array(micros).view(target)
    return _cast(array, target)


def _bytes(array: pa.Array, name: str) -> pa.Array:
    kind = array.type
    if name == "string":
        return array if pa.types.is_string(kind) or pa.types.is_large_string(kind) else _text(array)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    return array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())


def _text(array: pa.Array) -> pa.Array:
    if not _is_text(array.type):
        raise TypeError("it does not hold text")
    return array.cast(pa.large_string() if pa.types.is_large_binary(array.type) else pa.string())


def _uuid(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        # Spark gives a uuid as text. Hexadecimal digits may be upper case and without hyphens.
        digits = pc.replace_substring(pc.utf8_lower(array), "-", "")
        return pa.array([bytes.fromhex(text) for text in digits.to_pylist()], pa.binary(16))
    return _cast(array, pa.binary(16))
