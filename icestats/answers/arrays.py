"""Arrow's arrays as NumPy sees them, without a copy where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_numpy(array: pa.Array | pa.ChunkedArray, *, null: Any = None) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or booleans as a NumPy array, without nulls.

    pyarrow's own `to_numpy` makes floats of whole numbers where one of them is null.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        Numbers or booleans, whole or a slice.
    null : number or bool, optional
        What stands for null, a value of the array's type. By default null is refused.

    Returns
    -------
    numpy.ndarray
        Of the array's type. Read-only and without a copy where one chunk of numbers has no null.

    Raises
    ------
    pyarrow.ArrowInvalid
        Nulls where none were expected, or a `null` that the type cannot hold.

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


def combine_chunks(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return an array's chunks as one array: `combine_chunks` that leaves a single chunk as it is, uncopied."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
