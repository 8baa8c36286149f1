"""The kernel's view of an Avro container: where its blocks are."""

from __future__ import annotations

from icestats.read import kernel_layout as k
from icestats.read.compiling import compiled
from icestats.read.kernel_layout import Bytes, Frame, Integer, Words
from icestats.read.kernel_primitives import fail, read_length, read_long

SYNC_SIZE = 16


@compiled
def scan_blocks(data: Bytes, position: Integer, sync: Bytes, out: Words, frame: Frame) -> Integer:
    """Fill `out` with (start of block, start of data, end of data, number of entries); return how many, or -1."""
    used = 0
    while position < data.size:
        start = position
        count, position = read_long(data, position, data.size, frame)
        if position < 0:
            return -1
        if count < 0:
            return fail(frame, k.NEGATIVE, start)
        length, position = read_length(data, position, data.size, frame)
        if position < 0:
            return -1
        out[used, 0] = start
        out[used, 1] = position
        position += length
        out[used, 2] = position
        out[used, 3] = count
        used += 1
        if data.size - position < SYNC_SIZE:
            return fail(frame, k.CUT, position)
        for i in range(SYNC_SIZE):
            if data[position + i] != sync[i]:
                return fail(frame, k.NO_SYNC, position)
        position += SYNC_SIZE
    return used
