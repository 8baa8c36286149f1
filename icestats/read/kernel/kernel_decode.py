"""The kernel's decoder: runs a decoding program over one manifest entry, and never reads past the buffer."""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_layout import Bytes, Frame, Integer, Words
from icestats.read.kernel.kernel_primitives import fail, find_sorted, read_count, read_length, read_long


@inlined
def find_column(frame: Frame, field_id: Integer) -> Integer:
    """Return the column of a field id, -1 for none."""
    if 0 <= field_id < frame.lookup.size:
        return frame.lookup[field_id]
    place = find_sorted(frame.sparse_ids, field_id)
    return frame.sparse_columns[place] if place >= 0 else -1


@inlined
def read_pair(data: Bytes, position: Integer, end: Integer, frame: Frame) -> tuple[Integer, Integer, Integer]:
    """Read a key of one byte and a value of up to four, or any."""
    at = np.uint64(position)
    if position + 5 <= end:
        key = np.int64(data[at])
        if key < 128:
            key = (key >> 1) ^ -(key & 1)
            bits = np.int64(data[at + np.uint64(1)])
            if bits < 128:
                return key, (bits >> 1) ^ -(bits & 1), position + 2
            bits = (bits & 127) | (np.int64(data[at + np.uint64(2)]) << 7)
            if bits < 1 << 14:
                return key, (bits >> 1) ^ -(bits & 1), position + 3
            bits = (bits & 0x3FFF) | (np.int64(data[at + np.uint64(3)]) << 14)
            if bits < 1 << 21:
                return key, (bits >> 1) ^ -(bits & 1), position + 4
            bits = (bits & 0x1FFFFF) | (np.int64(data[at + np.uint64(4)]) << 21)
            if bits < 1 << 28:
                return key, (bits >> 1) ^ -(bits & 1), position + 5
    field_id, position = read_long(data, position, end, frame)
    if position < 0:
        return 0, 0, -1
    value, position = read_long(data, position, end, frame)
    return field_id, value, position


@inlined
def read_counts(data: Bytes, position: Integer, end: Integer, metric: Integer, frame: Frame) -> Integer:
    """Read a map of field id to count."""
    bit = np.uint8(1 << metric)
    values = frame.values
    while True:
        count, position = read_count(data, position, end, frame)
        if count == 0:
            return position
        for _ in range(count):
            field_id, value, position = read_pair(data, position, end, frame)
            if position < 0:
                return -1
            column = find_column(frame, field_id)
            if column >= 0:
                values[np.uint64(column), metric] = value
                frame.flags[column] |= bit


@inlined
def read_bounds(data: Bytes, position: Integer, end: Integer, metric: Integer, frame: Frame) -> Integer:
    """Read a map of field id to bound."""
    bit = np.uint8(1 << metric)
    values = frame.values
    while True:
        count, position = read_count(data, position, end, frame)
        if count == 0:
            return position
        for _ in range(count):
            field_id, position = read_long(data, position, end, frame)
            if position < 0:
                return -1
            length, position = read_length(data, position, end, frame)
            if position < 0:
                return -1
            column = find_column(frame, field_id)
            if column >= 0:
                values[np.uint64(column), metric] = position
                values[np.uint64(column), metric + 2] = length
                frame.flags[column] |= bit
            position += length


@compiled
def put_metric(frame: Frame, metric: Integer) -> None:
    """Store the captured key and value of an unusual metrics map."""
    if frame.lengths[k.KEY] < 0 or frame.lengths[k.VALUE] < 0:
        return
    column = find_column(frame, frame.slots[k.KEY])
    if column < 0:
        return
    frame.values[column, metric] = frame.slots[k.VALUE]
    if metric >= 4:
        frame.values[column, metric + 2] = frame.lengths[k.VALUE]
    frame.flags[column] |= np.uint8(1 << metric)


@compiled
def read_number(
    data: Bytes, position: Integer, end: Integer, operation: Integer, slot: Integer, frame: Frame
) -> Integer:
    """Capture a boolean, a float or a double; the latter two as the bits of a double."""
    width = 1 if operation == k.BOOLEAN else 4 if operation == k.FLOAT else 8
    if end - position < width:
        return fail(frame, k.CUT, position)
    bits = np.uint64(0)
    for i in range(width):
        bits |= np.uint64(data[position + i]) << np.uint64(8 * i)
    if operation == k.FLOAT:
        frame.slots[slot] = np.float64(np.uint32(bits).view(np.float32)).view(np.int64)
    else:
        frame.slots[slot] = np.int64(bits)
    frame.lengths[slot] = 0
    return position + width


@compiled
def next_item(data: Bytes, position: Integer, end: Integer, depth: Integer, frame: Frame) -> tuple[Integer, Integer]:
    """Step to the next item of the innermost array: the items left, at least one, or 0 behind the array."""
    left = frame.stack[depth] - 1
    if left <= 0:
        left, position = read_count(data, position, end, frame)
    frame.stack[depth] = left
    return left, position


@compiled
def skip_empty_items(data: Bytes, position: Integer, end: Integer, frame: Frame) -> Integer:
    """Skip an array whose items take no bytes, however many they are."""
    while True:
        count, position = read_long(data, position, end, frame)
        if position < 0 or count == 0:
            return position
        if count < 0:
            _, position = read_length(data, position, end, frame)
            if position < 0:
                return position


@compiled
def decode_entry(data: Bytes, position: Integer, end: Integer, code: Words, frame: Frame) -> Integer:  # noqa: C901
    """Run a decoding program over one entry; return the position behind it, or -1.

    One branch an operation, as in any interpreter: numba cannot dispatch through a table of functions at this speed.
    """
    slots = frame.slots
    lengths = frame.lengths
    at = 0
    depth = -1
    while position >= 0:
        operation = code[at]
        if operation == k.END:
            return position
        if operation == k.SKIP_VARINT:
            _, position = read_long(data, position, end, frame)
            at += 1
        elif operation == k.SKIP_BYTES:
            length, position = read_length(data, position, end, frame)
            position += length
            at += 1
        elif operation == k.SKIP_FIXED:
            if code[at + 1] > end - position:
                return fail(frame, k.CUT, position)
            position += code[at + 1]
            at += 2
        elif operation == k.LONG:
            slots[code[at + 1]], position = read_long(data, position, end, frame)
            lengths[code[at + 1]] = 0
            at += 2
        elif operation == k.SPAN:
            length, position = read_length(data, position, end, frame)
            slots[code[at + 1]] = position
            lengths[code[at + 1]] = length
            position += length
            at += 2
        elif operation == k.FIXED:
            length = code[at + 2]
            if length > end - position:
                return fail(frame, k.CUT, position)
            slots[code[at + 1]] = position
            lengths[code[at + 1]] = length
            position += length
            at += 3
        elif operation <= k.DOUBLE:
            position = read_number(data, position, end, operation, code[at + 1], frame)
            at += 2
        elif operation == k.UNION:
            start = position
            branch, position = read_long(data, position, end, frame)
            if branch < 0 or branch >= code[at + 1]:
                return fail(frame, k.NO_BRANCH, start)
            at = code[at + 2 + branch]
        elif operation == k.JUMP:
            at = code[at + 1]
        elif operation == k.ARRAY:
            count, position = read_count(data, position, end, frame)
            if count == 0:
                at = code[at + 1]
            else:
                depth += 1
                frame.stack[depth] = count
                at += 2
        elif operation == k.NEXT:
            left, position = next_item(data, position, end, depth, frame)
            if left == 0:
                depth -= 1
                at += 2
            else:
                at = code[at + 1]
        elif operation == k.EMPTY_ITEMS:
            position = skip_empty_items(data, position, end, frame)
            at += 1
        elif operation == k.OPEN:
            slots[code[at + 1]] = position
            at += 2
        elif operation == k.CLOSE:
            lengths[code[at + 1]] = position - slots[code[at + 1]]
            at += 2
        elif operation == k.COUNTS:
            lengths[code[at + 1]] = 0
            position = read_counts(data, position, end, code[at + 1], frame)
            at += 2
        elif operation == k.BOUNDS:
            lengths[code[at + 1]] = 0
            position = read_bounds(data, position, end, code[at + 1], frame)
            at += 2
        elif operation == k.CLEAR:
            lengths[code[at + 1]] = -1
            at += 2
        elif operation == k.SEEN:
            lengths[code[at + 1]] = 0
            at += 2
        else:
            put_metric(frame, code[at + 1])
            at += 2
    return -1
