"""What the kernel has captured -> Arrow arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.iceberg.types import parse_type, to_arrow_type
from icestats.read.kernel.kernel_layout import Bytes, Frame, Words

_Mask = npt.NDArray[np.bool_]


def build_array(type_text: str | None, numbers: Words, lengths: Words, arena: Bytes) -> pa.Array:
    """Build the Arrow array of captured values.

    Parameters
    ----------
    type_text : str or None
        Their Iceberg type; None gives an array of nulls.
    numbers, lengths : numpy.ndarray of int64
        Numbers, or where bytes begin in the arena; a length of -1 is null.
    arena : numpy.ndarray of uint8
        Captured bytes.

    Raises
    ------
    ValueError
        A value is not of that type.
    """
    if type_text is None:
        return pa.nulls(len(numbers))
    kind, arrow = parse_type(type_text), to_arrow_type(type_text)
    nulls = lengths < 0
    if kind.name == "boolean":
        return pa.array(numbers != 0, mask=nulls)
    if kind.name in ("float", "double"):
        return pa.array(numbers.view(np.float64), mask=nulls).cast(arrow, safe=False)
    if kind.name == "decimal":
        return _decimals(arrow, numbers, lengths, arena)
    if pa.types.is_fixed_size_binary(arrow):
        return _fixed(arrow, numbers, lengths, arena)
    if kind.name in ("string", "binary"):
        return build_binary(arrow, numbers, lengths, arena)
    try:
        storage = pa.array(np.where(nulls, 0, numbers), mask=nulls)
        return (storage.cast(pa.int32()) if arrow.bit_width == 32 else storage).view(arrow)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value is too large for type {type_text}") from error


def build_binary(arrow: pa.DataType, starts: Words, lengths: Words, arena: Bytes) -> pa.Array:
    """Build an array of strings or binaries."""
    from icestats.read.kernel.kernel_rows import gather_bytes

    sizes = np.maximum(lengths, 0)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > 0x7FFF_FFFF:
        raise ValueError(f"values have {offsets[-1]:,} bytes together, more than 2 GiB")
    out: Bytes = np.empty(int(offsets[-1]), np.uint8)
    gather_bytes(arena, starts, lengths, out)
    buffers = [_validity(lengths < 0), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    array = pa.Array.from_buffers(arrow, len(starts), buffers)
    if pa.types.is_string(arrow):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError("a string is not UTF-8") from error
    return array


def build_lists(item: pa.DataType, starts: Words, lengths: Words, arena: Bytes, frame: Frame) -> pa.Array:
    """Build an array of lists of numbers from Avro arrays."""
    from icestats.read.kernel.kernel_rows import gather_lists

    offsets = np.zeros(len(starts) + 1, np.int64)
    # A number takes a byte at least.
    out: Words = np.empty(int(np.maximum(lengths, 0).sum()), np.int64)
    used = gather_lists(arena, starts, lengths, offsets, out, frame)
    try:
        values = pa.array(out[:used]).cast(item)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value is too large for type {item}") from error
    nulls = np.append(lengths < 0, False)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=nulls), values, type=pa.list_(item))


def _decimals(arrow: pa.DataType, starts: Words, lengths: Words, arena: Bytes) -> pa.Array:
    from icestats.read.kernel.kernel_rows import gather_decimals

    out: Bytes = np.zeros(16 * len(starts), np.uint8)
    wrong = gather_decimals(arena, starts, lengths, out)
    if wrong >= 0:
        raise ValueError(f"a decimal has {lengths[wrong]} bytes, expected 1 to 16")
    array = pa.Array.from_buffers(arrow, len(starts), [_validity(lengths < 0), pa.py_buffer(out)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value is too large for type {arrow}") from error
    return array


def _fixed(arrow: pa.DataType, starts: Words, lengths: Words, arena: Bytes) -> pa.Array:
    from icestats.read.kernel.kernel_rows import gather_bytes

    width = arrow.byte_width
    present = lengths >= 0
    wrong = np.flatnonzero(present & (lengths != width))
    if wrong.size:
        raise ValueError(f"a value has {lengths[wrong[0]]} bytes, expected {width}")
    packed: Bytes = np.empty(int(present.sum()) * width, np.uint8)
    gather_bytes(arena, starts, lengths, packed)
    out = np.zeros((len(starts), width), np.uint8)
    out[present] = packed.reshape(-1, width)
    return pa.Array.from_buffers(arrow, len(starts), [_validity(~present), pa.py_buffer(out)])


def _validity(nulls: _Mask) -> pa.Buffer | None:
    return pa.array(~nulls).buffers()[1] if nulls.any() else None
