"""The kernel's accumulators: groups found by key, cells that sum and compare."""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_bounds import bound_words, improves, keep_bytes
from icestats.read.kernel.kernel_layout import Bytes, Flag, Frame, Groups, Integer, Words
from icestats.read.kernel.kernel_primitives import copy_bytes


@inlined
def hash_key(tag: Integer, data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return a hash of a tag and key bytes."""
    code = np.uint64(tag) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xCBF29CE484222325)
    for i in range(length):
        code = (code ^ np.uint64(data[start + i])) * np.uint64(0x100000001B3)
    code ^= code >> np.uint64(29)
    code *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(code >> np.uint64(20))


@inlined
def find_place(groups: Groups, tag: Integer, data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return where the hash table has the group of a tag and key bytes, or is free for it."""
    mask = groups.table.size - 1
    place = hash_key(tag, data, start, length) & mask
    while groups.table[place] != 0:
        group = groups.table[place] - 1
        if groups.tags[group] == tag and groups.keys[group, 1] == length:
            key = groups.keys[group, 0]
            same = 0
            while same < length and groups.key_arena[key + same] == data[start + same]:
                same += 1
            if same == length:
                return place
        place = (place + 1) & mask
    return place


@compiled
def find_group(groups: Groups, tag: Integer, data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return the group of a tag and key bytes, made if need be; -1 where there is no room for one more."""
    place = find_place(groups, tag, data, start, length)
    if groups.table[place] != 0:
        return groups.table[place] - 1
    group = groups.meters[k.GROUPS_USED]
    used = groups.meters[k.KEYS_USED]
    if group == groups.tags.size or length > groups.key_arena.size - used:
        return -1
    groups.table[place] = group + 1
    groups.rows[group, k.UPDATED_MS] = -1
    groups.tags[group] = tag
    groups.keys[group, 0] = used
    groups.keys[group, 1] = length
    copy_bytes(data, start, length, groups.key_arena, used)
    groups.meters[k.GROUPS_USED] = group + 1
    groups.meters[k.KEYS_USED] = used + length
    return group


@compiled
def make_groups(groups: Groups, tag: Integer, step: Integer, count: Integer, no_bytes: Bytes) -> None:
    """Make groups whose tags begin at `tag`, `step` apart, and which have no key; there must be room for them."""
    for i in range(count):
        find_group(groups, tag + i * step, no_bytes, 0, 0)


@inlined
def add_bound(
    groups: Groups,
    cell: Words,
    side: Integer,
    high: Integer,
    low: Integer,
    data: Bytes,
    start: Integer,
    length: Integer,
    reference: Integer,
) -> Integer:
    """Compare a bound with the best so far; return the reference of its bytes, -1 where they are not kept yet."""
    if improves(cell, side, high, low, data, start, length, groups.arena):
        if reference < 0:
            reference = keep_bytes(groups, data, start, length)
        cell[side + 1] = high
        cell[side + 2] = low
        cell[side + 3] = reference
    cell[side] += 1
    return reference


@inlined
def add_counts(cell: Words, values: Words, bits: Integer) -> Integer:
    """Add the counts of one file; the result is negative where a sum has run over."""
    overflow = 0
    for metric in range(4):
        has = (bits >> metric) & 1
        total = cell[metric] + (values[metric] & -has)
        cell[metric] = total
        cell[4 + metric] += has
        overflow |= total
    return overflow


@inlined
def known_counts(values: Words, bits: Integer) -> Integer:
    """Return the metrics that a file has: a negative count is none."""
    for metric in range(4):
        bits &= ~(((values[metric] >> 63) & 1) << metric)
    return bits


@inlined
def is_valueless(values: Words, bits: Integer) -> Flag:
    """Say whether a file's column has nothing to bound: every value is null or NaN."""
    if not bits & 2:
        return False
    left = values[1]
    if bits & 4:
        left -= values[2]
    if bits & 8:
        left -= values[3]
    return left == 0


@inlined
def add_side(
    data: Bytes, frame: Frame, groups: Groups, first: Words, second: Words, column: Integer, side: Integer, twice: Flag
) -> Flag:
    """Add the lower or the upper bound of one file to one cell, or two; False if it is none."""
    start = frame.values[np.uint64(column), k.LOWER_START + side]
    length = frame.values[np.uint64(column), k.LOWER_LENGTH + side]
    kind = groups.kinds[np.uint64(column), 0]
    ok, high, low = bound_words(kind, groups.kinds[np.uint64(column), 1], data, start, length)
    if not ok:
        return False
    if kind < k.TEXT:
        length = 0
    place = k.LOWER if side == 0 else k.UPPER
    reference = add_bound(groups, first, place, high, low, data, start, length, -1)
    if twice:
        add_bound(groups, second, place, high, low, data, start, length, reference)
    return True


@inlined
def add_columns(data: Bytes, frame: Frame, groups: Groups, first: Integer, second: Integer) -> Integer:
    """Add the metrics of one data file to its groups, and forget them; negative where a sum has run over."""
    overflow = 0
    twice = second >= 0
    for column in range(frame.flags.size):
        bits = np.int64(frame.flags[column])
        if bits == 0:
            continue
        frame.flags[column] = 0
        values = frame.values[np.uint64(column)]
        bits = known_counts(values, bits)
        cell = groups.cells[np.uint64(first), np.uint64(column)]
        other = groups.cells[np.uint64(max(second, 0)), np.uint64(column)]
        overflow |= add_counts(cell, values, bits)
        if twice:
            overflow |= add_counts(other, values, bits)
        bounded = False
        if bits & 16:
            bounded = add_side(data, frame, groups, cell, other, column, 0, twice)
        if bits & 32 and add_side(data, frame, groups, cell, other, column, 1, twice):
            bounded = True
        if not bounded and is_valueless(values, bits):
            groups.valueless[first, column] += 1
            if twice:
                groups.valueless[second, column] += 1
    return overflow


@inlined
def add_row(
    row: Words, content: Integer, is_vector: Flag, records: Integer, size: Integer, snapshot_id: Integer, ms: Integer
) -> Integer:
    """Add one live file to a group's counts; negative where a sum has run over. `ms` is -1 for unknown."""
    row[k.FILES] += 1
    row[k.RECORDS] += records
    row[k.SIZE] += size
    if content == 0:
        row[k.DATA_FILES] += 1
        row[k.DATA_RECORDS] += records
        row[k.DATA_SIZE] += size
    elif content == 1:
        row[k.VECTORS if is_vector else k.POSITION_FILES] += 1
        row[k.POSITION_RECORDS] += records
    else:
        row[k.EQUALITY_FILES] += 1
        row[k.EQUALITY_RECORDS] += records
    update_row(row, snapshot_id, ms)
    return row[k.RECORDS] | row[k.SIZE]


@inlined
def update_row(row: Words, snapshot_id: Integer, ms: Integer) -> None:
    """Keep the latest snapshot; of two at the same time the one with the greater id."""
    if ms < 0:
        return
    if row[k.UPDATED_MS] < ms or (row[k.UPDATED_MS] == ms and row[k.UPDATED_BY] < snapshot_id):
        row[k.UPDATED_MS] = ms
        row[k.UPDATED_BY] = snapshot_id
