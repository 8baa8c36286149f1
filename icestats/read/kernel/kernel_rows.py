"""The kernel's rows: what is captured of each entry, and gathering captured bytes into Arrow buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import argument, compiled, inlined
from icestats.read.kernel.kernel_decode import decode_entry
from icestats.read.kernel.kernel_layout import Bytes, Flag, Frame, Integer, Words
from icestats.read.kernel.kernel_primitives import copy_bytes, fail, read_long
from icestats.read.kernel.kernel_rollup import check_entry

# Rows.meters.
ROWS_USED, ROWS_ARENA_USED, NEXT_ROW_ID = range(3)


@argument
class Rows(NamedTuple):
    """Captured entries, one row each."""

    meters: Words
    """Rows and bytes used; the next first_row_id to inherit, -1 for none."""
    numbers: Words
    lengths: Words
    arena: Bytes
    copied: Words
    """The slots that hold bytes."""
    values: Words
    """For each row, metric and wanted column: the count, or where the bound begins in `arena`."""
    sizes: Words
    """For each row, metric and wanted column: the length of a bound, 0 for a count, -1 for none."""


@inlined
def inherit_first_row_id(frame: Frame, rows: Rows) -> None:
    """Give a live data file the first_row_id that it inherits, in the order of the manifest."""
    slots, lengths = frame.slots, frame.lengths
    if rows.meters[NEXT_ROW_ID] < 0 or slots[k.CONTENT] != 0:
        lengths[k.FIRST_ROW_ID] = -1
    elif lengths[k.FIRST_ROW_ID] < 0:
        slots[k.FIRST_ROW_ID] = rows.meters[NEXT_ROW_ID]
        lengths[k.FIRST_ROW_ID] = 0
        rows.meters[NEXT_ROW_ID] += slots[k.RECORD_COUNT]


@inlined
def keep(data: Bytes, start: Integer, length: Integer, rows: Rows) -> Integer:
    """Copy bytes into the arena; return where they begin."""
    used = rows.meters[ROWS_ARENA_USED]
    copy_bytes(data, start, length, rows.arena, used)
    rows.meters[ROWS_ARENA_USED] = used + length
    return used


@compiled
def keep_row(data: Bytes, frame: Frame, rows: Rows, manifest: Integer) -> None:
    """Store the entry at hand as one more row."""
    row = rows.meters[ROWS_USED]
    rows.meters[ROWS_USED] = row + 1
    for slot in range(frame.slots.size):
        rows.numbers[row, slot] = frame.slots[slot]
        rows.lengths[row, slot] = frame.lengths[slot]
    rows.numbers[row, k.MANIFEST] = manifest
    for slot in rows.copied:
        if frame.lengths[slot] > 0:
            rows.numbers[row, slot] = keep(data, frame.slots[slot], frame.lengths[slot], rows)
    for column in range(frame.flags.size):
        bits = np.int64(frame.flags[column])
        frame.flags[column] = 0
        for metric in range(k.METRICS):
            rows.sizes[row, metric, column] = -1
            if bits & (1 << metric):
                value = frame.values[column, metric]
                size = 0
                if metric >= 4:
                    size = frame.values[column, metric + 2]
                    value = keep(data, value, size, rows)
                rows.values[row, metric, column] = value
                rows.sizes[row, metric, column] = size


@compiled
def capture_block(
    data: Bytes,
    end: Integer,
    count: Integer,
    code: Words,
    frame: Frame,
    rows: Rows,
    manifest: Integer,
    is_manifest: Flag,
) -> Integer:
    """Store the live entries of one block, from `frame.state` on."""
    state = frame.state
    while state[k.AT_ENTRY] < count:
        start = state[k.AT_BYTE]
        if rows.meters[ROWS_USED] == rows.numbers.shape[0]:
            return k.FULL
        frame.flags[:] = 0
        frame.lengths[:] = -1
        position = decode_entry(data, start, end, code, frame)
        if position < 0 or (is_manifest and check_entry(frame, start) < 0):
            return k.FAILED
        if position - start > rows.arena.size - rows.meters[ROWS_ARENA_USED]:
            return k.FULL
        if not is_manifest:
            keep_row(data, frame, rows, manifest)
        elif frame.slots[k.STATUS] != 2:
            inherit_first_row_id(frame, rows)
            keep_row(data, frame, rows, manifest)
        state[k.AT_BYTE] = position
        state[k.AT_ENTRY] += 1
    if state[k.AT_BYTE] != end:
        fail(frame, k.LEFT_OVER, state[k.AT_BYTE])
        return k.FAILED
    return k.DONE


@compiled
def capture_rows(
    data: Bytes, blocks: Words, code: Words, frame: Frame, rows: Rows, manifest: Integer, is_manifest: Flag
) -> Integer:
    """Store the live entries of a batch of blocks as rows, from `frame.state` on.

    DONE; FULL: the rows must be taken away, and the call repeated; FAILED: see `frame.state`.
    """
    state = frame.state
    while state[k.AT_BLOCK] < blocks.shape[0]:
        block = blocks[state[k.AT_BLOCK]]
        if state[k.AT_ENTRY] == 0:
            state[k.AT_BYTE] = block[0]
        result = capture_block(data, block[1], block[2], code, frame, rows, manifest, is_manifest)
        if result != k.DONE:
            return result
        state[k.AT_BLOCK] += 1
        state[k.AT_ENTRY] = 0
    return k.DONE


@compiled
def gather_bytes(arena: Bytes, starts: Words, lengths: Words, out: Bytes) -> None:
    """Copy bytes one behind the other; a length of -1 is null."""
    used = 0
    for i in range(starts.size):
        length = lengths[i]
        if length > 0:
            copy_bytes(arena, starts[i], length, out, used)
            used += length


@compiled
def gather_decimals(arena: Bytes, starts: Words, lengths: Words, out: Bytes) -> Integer:
    """Copy big-endian numbers of at most 16 bytes as little-endian ones of 16; return the first row that is not one."""
    for i in range(starts.size):
        length = lengths[i]
        if length < 0:
            continue
        if length == 0 or length > 16:
            return i
        last = starts[i] + length - 1
        fill = np.uint8(255) if arena[starts[i]] >= 128 else np.uint8(0)
        for j in range(16):
            out[16 * i + j] = arena[last - j] if j < length else fill
    return -1


@compiled
def gather_lists(arena: Bytes, starts: Words, lengths: Words, offsets: Words, out: Words, frame: Frame) -> Integer:
    """Decode Avro arrays of numbers, which have been checked; return how many numbers there are."""
    used = 0
    for i in range(starts.size):
        offsets[i] = used
        if lengths[i] > 0:
            position = starts[i]
            end = position + lengths[i]
            while True:
                count, position = read_long(arena, position, end, frame)
                if position < 0 or count == 0:
                    break
                if count < 0:
                    count = -count
                    _, position = read_long(arena, position, end, frame)
                for _ in range(count):
                    out[used], position = read_long(arena, position, end, frame)
                    used += 1
    offsets[starts.size] = used
    return used
