"""The kernel's output: counts column by column, winning bounds back as single values of the column's current type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_bounds import MAGNITUDE, SIGN
from icestats.read.kernel.kernel_layout import Bytes, Groups, Integer, Words
from icestats.read.kernel.kernel_primitives import copy_bytes

Offsets = npt.NDArray[np.int32]


@compiled
def write_counts(groups: Groups, order: Words, places: Words, out: Words) -> None:
    """Fill in the words of cells at `places`, one row of `out` each, group by group."""
    columns = groups.cells.shape[1]
    for i in range(order.size):
        for column in range(columns):
            cell = groups.cells[np.uint64(order[i]), np.uint64(column)]
            at = np.uint64(i * columns + column)
            for j in range(places.size):
                out[j, at] = cell[places[j]]


@inlined
def decimal_length(high: Integer, low: Integer) -> Integer:
    """Return how many bytes a 128-bit number takes, its sign included."""
    low ^= np.int64(SIGN)
    fill = high >> 63
    length = 16
    while length > 1:
        top = byte_of(high, low, length - 1)
        below = byte_of(high, low, length - 2)
        if top != (fill & 255) or (below >> 7) != (fill & 1):
            break
        length -= 1
    return length


@inlined
def byte_of(high: Integer, low: Integer, place: Integer) -> Integer:
    """Return a byte of a 128-bit number, 0 for the lowest."""
    if place >= 8:
        return (high >> (8 * (place - 8))) & 255
    return (low >> (8 * place)) & 255


@inlined
def bound_length(cell: Words, side: Integer, kind: Integer) -> Integer:
    """Return the length of a cell's bound, -1 for none."""
    if cell[side] <= 0:
        return -1
    if kind >= k.TEXT:
        return cell[side + 3] & 0x7FFF_FFFF
    if kind == k.BIG_DECIMAL:
        return decimal_length(cell[side + 1], cell[side + 2])
    if kind == k.UUID:
        return 16
    if kind == k.BOOL:
        return 1
    return 4 if kind == k.INT4 or kind == k.REAL4 else 8


@compiled
def place_bounds(groups: Groups, order: Words, side: Integer, offsets: Offsets, present: Bytes) -> Integer:
    """Fill in where each bound begins, group by group, and a bit for each that there is; return where the last ends.

    The offsets mean nothing where this is more than they hold.
    """
    columns = groups.cells.shape[1]
    used = 0
    for i in range(order.size):
        for column in range(columns):
            at = i * columns + column
            length = bound_length(groups.cells[order[i], column], side, groups.kinds[column, 0])
            if length >= 0:
                present[at >> 3] |= np.uint8(1 << (at & 7))
                used += length
            offsets[at + 1] = np.int32(used)
    return used


@compiled
def write_bound(
    kind: Integer, cell: Words, side: Integer, arena: Bytes, out: Bytes, at: Integer, length: Integer
) -> None:
    """Write one bound."""
    high, low = cell[side + 1], cell[side + 2]
    if kind == k.UUID or (kind >= k.TEXT and length <= 16):
        for i in range(length):
            word = (high if i < 8 else low) ^ np.int64(SIGN)
            out[at + i] = (word >> (56 - 8 * (i & 7))) & 255
    elif kind >= k.TEXT:
        start = cell[side + 3] >> 31
        copy_bytes(arena, start, length, out, at)
    elif kind == k.BIG_DECIMAL:
        for i in range(length):
            out[at + i] = byte_of(high, low ^ np.int64(SIGN), length - 1 - i)
    else:
        bits = high
        if kind == k.REAL4 or kind == k.REAL4_8:
            bits = high ^ MAGNITUDE if high < 0 else high
        if kind == k.REAL4:
            bits = np.int64(np.float32(np.int64(bits).view(np.float64)).view(np.int32))
        for i in range(length):
            out[at + i] = (bits >> (8 * i)) & 255


@compiled
def write_bounds(groups: Groups, order: Words, side: Integer, offsets: Offsets, out: Bytes) -> None:
    """Write all bounds, one behind the other."""
    columns = groups.cells.shape[1]
    for i in range(order.size):
        for column in range(columns):
            at = np.int64(offsets[i * columns + column])
            length = np.int64(offsets[i * columns + column + 1]) - at
            if length > 0:
                kind = groups.kinds[column, 0]
                write_bound(kind, groups.cells[order[i], column], side, groups.arena, out, at, length)
