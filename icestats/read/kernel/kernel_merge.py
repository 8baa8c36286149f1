"""The kernel's merging of accumulators, and making room in them."""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled
from icestats.read.kernel.kernel_groups import add_bound, find_group, find_place, hash_key, update_row
from icestats.read.kernel.kernel_layout import Bytes, Groups, Integer, Words
from icestats.read.kernel.kernel_primitives import copy_bytes


@compiled
def merge_group(target: Groups, group: Integer, source: Groups, other: Integer) -> Integer:
    """Add a group to another; negative where a sum has run over."""
    row = target.rows[group]
    overflow = 0
    for i in range(k.UPDATED_MS):
        row[i] += source.rows[other, i]
        overflow |= row[i]
    update_row(row, source.rows[other, k.UPDATED_BY], source.rows[other, k.UPDATED_MS])
    for column in range(target.cells.shape[1]):
        target.valueless[group, column] += source.valueless[other, column]
        cell = target.cells[np.uint64(group), np.uint64(column)]
        more = source.cells[np.uint64(other), np.uint64(column)]
        for i in range(8):
            cell[i] += more[i]
            overflow |= cell[i]
        for side in (k.LOWER, k.UPPER):
            if more[side] > 0:
                count = cell[side] + more[side]
                start = more[side + 3] >> 31
                length = more[side + 3] & 0x7FFF_FFFF
                add_bound(target, cell, side, more[side + 1], more[side + 2], source.arena, start, length, -1)
                cell[side] = count
    return overflow


@compiled
def count_new_groups(target: Groups, source: Groups) -> Integer:
    """Return how many groups `target` lacks."""
    count = 0
    for other in range(source.meters[k.GROUPS_USED]):
        start, length = source.keys[other, 0], source.keys[other, 1]
        if target.table[find_place(target, source.tags[other], source.key_arena, start, length)] == 0:
            count += 1
    return count


@compiled
def merge_groups(target: Groups, source: Groups) -> Integer:
    """Add all groups to those of the same key, for which there must be room; negative where a sum has run over."""
    overflow = 0
    for other in range(source.meters[k.GROUPS_USED]):
        group = find_group(target, source.tags[other], source.key_arena, source.keys[other, 0], source.keys[other, 1])
        if group < 0:
            return -1
        overflow |= merge_group(target, group, source, other)
    return overflow


@compiled
def merge_pairs(target: Groups, source: Groups, pairs: Words) -> Integer:
    """Add groups of `source` (second of each pair) to groups of `target` (first), which may be the same arrays."""
    overflow = 0
    for i in range(pairs.shape[0]):
        overflow |= merge_group(target, pairs[i, 0], source, pairs[i, 1])
    return overflow


@compiled
def forget_groups(groups: Groups) -> None:
    """Empty the accumulators."""
    used = groups.meters[k.GROUPS_USED]
    groups.cells[:used] = 0
    groups.valueless[:used] = 0
    groups.rows[:used] = 0
    groups.table[:] = 0
    groups.meters[:] = 0


@compiled
def live_arena_size(groups: Groups) -> Integer:
    """Return how many bytes of the arena are still referred to; shared ones count once a reference."""
    total = 0
    for group in range(groups.meters[k.GROUPS_USED]):
        for column in range(groups.cells.shape[1]):
            for side in (k.LOWER, k.UPPER):
                length = groups.cells[group, column, side + 3] & 0x7FFF_FFFF
                if length > 16:
                    total += length
    return total


@compiled
def move_arena(groups: Groups, arena: Bytes) -> Integer:
    """Copy what is still referred to into another arena; return its length."""
    used = 0
    for group in range(groups.meters[k.GROUPS_USED]):
        for column in range(groups.cells.shape[1]):
            for side in (k.LOWER, k.UPPER):
                reference = groups.cells[group, column, side + 3]
                length = reference & 0x7FFF_FFFF
                if length > 16:
                    start = reference >> 31
                    copy_bytes(groups.arena, start, length, arena, used)
                    groups.cells[group, column, side + 3] = (used << 31) | length
                    used += length
    return used


@compiled
def refill_table(groups: Groups, table: Words) -> None:
    """Enter all groups into another hash table."""
    mask = table.size - 1
    for group in range(groups.meters[k.GROUPS_USED]):
        start, length = groups.keys[group, 0], groups.keys[group, 1]
        place = hash_key(groups.tags[group], groups.key_arena, start, length) & mask
        while table[place] != 0:
            place = (place + 1) & mask
        table[place] = group + 1
