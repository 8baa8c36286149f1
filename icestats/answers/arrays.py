"""Arrow arrays as NumPy arrays, without a copy where possible; large NumPy arrays."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_PART_BYTES = 1 << 18
"""Of a column that becomes Python values at a time, in Arrow: maps take twenty times as much in Python."""


def to_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Return the rows as Python values; in columns with dates and times beyond Python's years, these as integers.

    Examples
    --------
    >>> import datetime as dt
    >>> list(to_rows(pa.table({"day": pa.array([2**31 - 1], pa.date32()), "other": [dt.date(2026, 1, 1)]})))
    [{'day': 2147483647, 'other': datetime.date(2026, 1, 1)}]
    """
    has_times = [field.type != without_times(field.type) for field in table.schema]
    columns = [
        to_values(column) if is_whole else _iterate_values(column)
        for column, is_whole in zip(table.columns, has_times, strict=True)
    ]
    return (dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True))


def _iterate_values(column: pa.ChunkedArray) -> Iterator[Any]:
    count = max(1, len(column) * _PART_BYTES // max(column.nbytes, 1))
    for start in range(0, len(column), count):
        yield from column.slice(start, count).to_pylist()


def to_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of one column in the same way."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(without_times(column.type)).to_pylist()
    return found


def without_times(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column is cast to for dates and times as integers, whatever year they are of."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_times(field.type)) for field in kind.fields])
    # The keys of DuckDB's empty map are of the null type, of which Arrow makes no map.
    if pa.types.is_map(kind) and not pa.types.is_null(kind.key_type):
        return pa.map_(without_times(kind.key_type), without_times(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(without_times(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(without_times(kind.value_type), kind.list_size)
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else kind


def to_numpy(array: pa.Array | pa.ChunkedArray, *, null: Any = None) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or booleans as a NumPy array without nulls.

    pyarrow's own `to_numpy` turns integers into floats when one of them is null.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        Numbers or booleans; may be a slice.
    null : number or bool, optional
        The value that replaces null. By default a null is an error.

    Returns
    -------
    numpy.ndarray
        Of the array's type. One chunk of numbers without nulls is not copied; that array is read-only.

    Raises
    ------
    pyarrow.ArrowInvalid
        The array has a null and `null` is not given, or the type cannot hold `null`.

    Examples
    --------
    >>> to_numpy(pa.array([1, None, 3])[1:], null=-1).tolist()
    [-1, 3]
    """
    whole = combine_chunks(array)
    if whole.null_count and null is None:
        raise pa.ArrowInvalid(f"{whole.null_count} of {len(whole)} values are null, expected none")
    values: npt.NDArray[Any] = (whole.fill_null(null) if whole.null_count else whole).to_numpy(zero_copy_only=False)
    return values


def to_doubles(numbers: pa.Array) -> pa.Array:
    """Return numbers as doubles, each the nearest one; null stays null.

    Examples
    --------
    >>> from decimal import Decimal
    >>> to_doubles(pa.array([Decimal("0.70"), None, Decimal("-12.30")])).to_pylist()
    [0.7, None, -12.3]
    """
    # Arrow casts decimals to within one unit, https://github.com/apache/arrow/pull/36667; their texts, to the nearest.
    exact = numbers.cast(pa.string()) if pa.types.is_decimal(numbers.type) else numbers
    return exact.cast(pa.float64(), safe=False)


def binary_places(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each value of a string or binary array begins and ends, and the bytes that hold them.

    Parameters
    ----------
    array : pyarrow.Array
        Of type string, binary, large_string or large_binary; may be a slice.

    Returns
    -------
    places : numpy.ndarray of int64
        One more than the number of values: value i is `content[places[i]:places[i + 1]]`. A null is empty.
    content : numpy.ndarray of uint8
        The whole buffer, read-only and shared with the array.

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


def take_rows(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Return some rows of a table, in the order in which they are named.

    pyarrow's own `take` copies all strings of a table of several chunks, to take some of them.

    Examples
    --------
    >>> table = pa.table({"path": pa.chunked_array([["a", "b"], ["c"]])})
    >>> [take_rows(table, np.array(rows))["path"].to_pylist() for rows in ([0, 2], [2, 0, 2])]
    [['a', 'c'], ['c', 'a', 'c']]
    """
    is_taken = np.zeros(table.num_rows, np.bool_)
    is_taken[rows] = True
    found = table.filter(pa.array(is_taken))
    is_ascending = bool((np.diff(rows) > 0).all())
    return found if is_ascending else found.take(pa.array((np.cumsum(is_taken) - 1)[rows]))


def join_paths(files: pa.Table) -> pa.Table:
    """Return files with a `file_path`, which their `folder` and `file_name` make; those that have one as they are.

    Examples
    --------
    >>> join_paths(pa.table({"folder": ["a/b/", ""], "file_name": ["c", "d"]}))["file_path"].to_pylist()
    ['a/b/c', 'd']
    """
    if "file_path" in files.column_names:
        return files
    paths = pc.binary_join_element_wise(pc.cast(files["folder"], pa.string()), files["file_name"], "")
    return files.append_column("file_path", paths)


def combine_chunks(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return an array's chunks as one array, as pyarrow's `combine_chunks` does, but without copying a single chunk."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def map_zeros(shape: int | tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros in memory of their own: taken as they are written to, and given back as a whole.

    Where C libraries free large arrays, glibc keeps as much for later in each thread's arena.

    Examples
    --------
    >>> map_zeros((2, 2), np.int64).tolist()
    [[0, 0], [0, 0]]
    """
    count = prod(shape) if isinstance(shape, tuple) else shape
    is_private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    memory = mmap.mmap(-1, max(count * np.dtype(kind).itemsize, 1), **is_private)
    return np.frombuffer(memory, kind, count).reshape(shape)
