"""The kernel's reading of numbers, lengths and counts, each checked against the buffer.

A position of -1 stands for a failure, whose kind and place are in `frame.state`.
"""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_layout import Bytes, Frame, Integer, Words


@inlined
def fail(frame: Frame, error: Integer, position: Integer) -> Integer:
    """Note an error and return the position that stands for failure."""
    frame.state[k.ERROR] = error
    frame.state[k.ERROR_BYTE] = position
    return -1


@inlined
def find_sorted(numbers: Words, wanted: Integer) -> Integer:
    """Return the place of a number among sorted ones, -1 where it is not one of them."""
    low = 0
    high = numbers.size
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < numbers.size and numbers[low] == wanted else -1


@inlined
def copy_bytes(data: Bytes, start: Integer, length: Integer, out: Bytes, at: Integer) -> None:
    """Copy bytes from one array to another."""
    for i in range(length):
        out[at + i] = data[start + i]


@compiled
def read_long_number(data: Bytes, position: Integer, end: Integer, frame: Frame) -> tuple[Integer, Integer]:
    """Read a zig-zag variable-length number of any length, at the end of the buffer too."""
    value = np.uint64(0)
    shift = np.uint64(0)
    start = position
    while position < end:
        byte = np.uint64(data[np.uint64(position)])
        position += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            if shift == np.uint64(63) and byte > np.uint64(1):
                break
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position
        shift += np.uint64(7)
        if shift > np.uint64(63):
            break
    if position >= end and shift <= np.uint64(63) and data[end - 1] >= 128:
        return 0, fail(frame, k.CUT, start)
    return 0, fail(frame, k.CUT if start >= end else k.LONG_VARINT, start)


@inlined
def read_long(data: Bytes, position: Integer, end: Integer, frame: Frame) -> tuple[Integer, Integer]:
    """Read a zig-zag variable-length number."""
    if position + 4 <= end:
        # Nearly all numbers take one to four bytes.
        bits = np.int64(data[np.uint64(position)])
        if bits < 128:
            return (bits >> 1) ^ -(bits & 1), position + 1
        bits = (bits & 127) | (np.int64(data[np.uint64(position + 1)]) << 7)
        if bits < 1 << 14:
            return (bits >> 1) ^ -(bits & 1), position + 2
        bits = (bits & 0x3FFF) | (np.int64(data[np.uint64(position + 2)]) << 14)
        if bits < 1 << 21:
            return (bits >> 1) ^ -(bits & 1), position + 3
        bits = (bits & 0x1FFFFF) | (np.int64(data[np.uint64(position + 3)]) << 21)
        if bits < 1 << 28:
            return (bits >> 1) ^ -(bits & 1), position + 4
    return read_long_number(data, position, end, frame)


@inlined
def read_length(data: Bytes, position: Integer, end: Integer, frame: Frame) -> tuple[Integer, Integer]:
    """Read the length of bytes that follow, all of which are in the buffer."""
    length, after = read_long(data, position, end, frame)
    if after < 0:
        return 0, after
    if length < 0:
        return 0, fail(frame, k.NEGATIVE, position)
    if length > end - after:
        return 0, fail(frame, k.CUT, position)
    return length, after


@inlined
def read_count(data: Bytes, position: Integer, end: Integer, frame: Frame) -> tuple[Integer, Integer]:
    """Read the number of items of a block of an array or map, and the block's length where it has one."""
    count, after = read_long(data, position, end, frame)
    if after < 0 or count == 0:
        return 0, after
    if count < 0:
        count = -count
        _, after = read_length(data, after, end, frame)
        if after < 0:
            return 0, after
    if count < 0 or count > end - after:
        return 0, fail(frame, k.TOO_MANY, position)
    return count, after
