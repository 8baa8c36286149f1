"""NumPy arrays as Arrow's and back, by their buffers: pyarrow's own ways import pandas (apache/arrow#34994)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]

_NUMBERS: dict[Any, str] = {
    pa.int8(): "<i1",
    pa.int16(): "<i2",
    pa.int32(): "<i4",
    pa.int64(): "<i8",
    pa.uint8(): "<u1",
    pa.uint16(): "<u2",
    pa.uint32(): "<u4",
    pa.uint64(): "<u8",
    pa.float16(): "<f2",
    pa.float32(): "<f4",
    pa.float64(): "<f8",
}
_ARROW = {np.dtype(text): kind for kind, text in _NUMBERS.items()}


def to_arrow(values: npt.NDArray[Any], kind: pa.DataType | None = None, *, nulls: Mask | None = None) -> pa.Array:
    """Return a NumPy array of numbers or booleans as an Arrow array, as `pyarrow.array` does.

    Parameters
    ----------
    values : numpy.ndarray
        One dimension of whole numbers, floats or booleans in the machine's byte order. NaN stays NaN.
    kind : pyarrow.DataType, optional
        The Arrow type; by default the values' own. Any other is reached by a checked cast: narrower numbers, also
        dates, times and timestamps over whole numbers.
    nulls : numpy.ndarray of bool, optional
        True where the value is null, whatever stands there.

    Returns
    -------
    pyarrow.Array
        Without a cast it shares the memory of `values`, booleans excepted, which Arrow packs to bits.

    Raises
    ------
    pyarrow.ArrowInvalid
        Another number of dimensions or type of value, a mask that does not fit, a value that the type cannot hold.

    Examples
    --------
    >>> to_arrow(np.array([1, 2, 3]), nulls=np.array([False, True, False])).to_pylist()
    [1, None, 3]
    """
    if values.ndim != 1:
        raise pa.ArrowInvalid(f"an array of {values.ndim} dimensions was given, expected one dimension")
    own = pa.bool_() if values.dtype == np.bool_ else _ARROW.get(values.dtype)
    if own is None:
        raise pa.ArrowInvalid(f"values of type {values.dtype} were given, expected numbers or booleans")
    data = pack_bits(values) if own == pa.bool_() else pa.py_buffer(np.ascontiguousarray(values))
    array = pa.Array.from_buffers(own, len(values), [_validity(len(values), nulls), data])
    return array if kind is None or kind == own else array.cast(kind)


def to_numpy(array: pa.Array | pa.ChunkedArray, *, null: Any = None) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or booleans as a NumPy array.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        Numbers or booleans, whole or a slice.
    null : number or bool, optional
        What stands for null. By default null is refused.

    Returns
    -------
    numpy.ndarray
        Of the array's type. Read-only and without a copy where one chunk of numbers has no null.

    Raises
    ------
    pyarrow.ArrowInvalid
        An array of another type, nulls where none were expected, or a `null` that the type cannot hold.

    Examples
    --------
    >>> to_numpy(to_arrow(np.array([1, 2, 3]), nulls=np.array([False, True, False]))[1:], null=-1).tolist()
    [-1, 3]
    """
    whole = combine(array)
    values = _bits(whole, 1) if whole.type == pa.bool_() else _numbers(whole)
    if not whole.null_count:
        values.flags.writeable = False
        return values
    if null is None:
        raise pa.ArrowInvalid(f"{whole.null_count} of {len(whole)} values are null, expected none")
    with np.errstate(invalid="ignore", over="ignore"):
        filler = np.asarray(null).astype(values.dtype)
    if filler != null and (null == null or values.dtype.kind != "f"):
        raise pa.ArrowInvalid(f"{null!r} cannot stand for null among values of type {whole.type}")
    return np.where(_bits(whole, 0), values, filler)


def find_nulls(array: pa.Array | pa.ChunkedArray) -> Mask:
    """Return a mask that is True where an Arrow array of any type is null.

    Examples
    --------
    >>> find_nulls(pa.array(["a", None])).tolist()
    [False, True]
    """
    return to_numpy(pc.is_null(array))


def fill_null(array: pa.Array | pa.ChunkedArray, value: bool | float) -> pa.Array:
    """Return an Arrow array of numbers or booleans with one of its own values wherever it is null.

    Raises
    ------
    pyarrow.ArrowInvalid
        As `to_numpy`.
    """
    return combine(array) if not array.null_count else to_arrow(to_numpy(array, null=value))


def binary_places(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where the values of an array of strings or binaries begin and end, and the bytes they lie in.

    Parameters
    ----------
    array : pyarrow.Array
        Of type string, binary, large_string or large_binary; whole or a slice.

    Returns
    -------
    places : numpy.ndarray of int64
        One more than there are values: value i is `content[places[i]:places[i + 1]]`. A null is empty.
    content : numpy.ndarray of uint8
        The whole buffer, shared with the array and read-only.

    Examples
    --------
    >>> places, content = binary_places(pa.array(["ab", None, "c"])[1:])
    >>> places.tolist(), content[places[1] : places[2]].tobytes()
    ([2, 2, 3], b'c')
    """
    if array.type in (pa.string(), pa.binary()):
        width = "<i4"
    elif array.type in (pa.large_string(), pa.large_binary()):
        width = "<i8"
    else:
        raise pa.ArrowInvalid(f"an array of {array.type} was given, expected strings or binaries")
    _, offsets, data = array.buffers()
    content = np.frombuffer(data or b"", np.uint8)
    if not len(array):
        return np.zeros(1, np.int64), content
    return np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1].astype(np.int64), content


def combine(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the one array that an array's chunks make, as `combine_chunks` does, also where there is no chunk."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    if array.num_chunks == 1:
        return array.chunk(0)
    return array.combine_chunks() if array.num_chunks else pa.nulls(0, array.type)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table of a schema without rows, as `pyarrow.Schema.empty_table` does."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def pack_bits(mask: Mask) -> pa.Buffer:
    """Return booleans as the buffer of bits that Arrow keeps them in, the first the lowest of its byte."""
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _validity(count: int, nulls: Mask | None) -> pa.Buffer | None:
    if nulls is None:
        return None
    if nulls.dtype != np.bool_ or nulls.shape != (count,):
        raise pa.ArrowInvalid(f"a mask of {nulls.dtype} {nulls.shape} was given, expected {count} booleans")
    return pack_bits(~nulls) if nulls.any() else None


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    text = _NUMBERS.get(array.type)
    if text is None:
        raise pa.ArrowInvalid(f"an array of {array.type} was given, expected numbers or booleans")
    if not len(array):
        return np.zeros(0, text)
    return np.frombuffer(array.buffers()[1], text)[array.offset : array.offset + len(array)]


def _bits(array: pa.Array, place: int) -> Mask:
    if not len(array):
        return np.zeros(0, np.bool_)
    first = array.offset // 8
    packed = np.frombuffer(array.buffers()[place], np.uint8, (array.offset + len(array) + 7) // 8 - first, first)
    start = array.offset - 8 * first
    return np.unpackbits(packed, count=start + len(array), bitorder="little")[start:].view(np.bool_)
