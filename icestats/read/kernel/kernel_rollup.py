"""The kernel: batches of inflated Avro blocks straight into roll-ups, into rows of files, or into Arrow buffers."""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_decode import decode_entry
from icestats.read.kernel.kernel_groups import add_columns, add_row, find_group
from icestats.read.kernel.kernel_layout import Bytes, Flag, Frame, Groups, Integer, Job, Words
from icestats.read.kernel.kernel_primitives import fail, find_sorted

PUFFIN = int.from_bytes(b"puffin", "big")


@inlined
def check_entry(frame: Frame, start: Integer) -> Integer:
    """Check what every entry must have; return 0, or -1 with the error noted."""
    slots = frame.slots
    for slot in (k.STATUS, k.RECORD_COUNT, k.FILE_SIZE):
        if frame.lengths[slot] < 0:
            return fail(frame, k.IS_NULL, start)
    if slots[k.STATUS] < 0 or slots[k.STATUS] > 2:
        return fail(frame, k.BAD_STATUS, start)
    if frame.lengths[k.CONTENT] < 0:
        slots[k.CONTENT] = 0
        frame.lengths[k.CONTENT] = 0
    if slots[k.CONTENT] < 0 or slots[k.CONTENT] > 2:
        return fail(frame, k.BAD_CONTENT, start)
    if slots[k.RECORD_COUNT] < 0 or slots[k.FILE_SIZE] < 0:
        return fail(frame, k.NEGATIVE_COUNT, start)
    return 0


@inlined
def is_puffin(data: Bytes, start: Integer, length: Integer) -> Flag:
    """Say whether a file format is Puffin, in whatever case."""
    if length != 6:
        return False
    word = np.uint64(0)
    for i in range(6):
        word = (word << np.uint64(8)) | np.uint64(data[start + i] | 32)
    return word == np.uint64(PUFFIN)


@inlined
def committed_ms(job: Job, snapshot_id: Integer) -> Integer:
    """Return when a snapshot was committed, -1 where it is unknown."""
    place = find_sorted(job.snapshot_ids, snapshot_id)
    return job.timestamps_ms[place] if place >= 0 else -1


@inlined
def add_entry(data: Bytes, frame: Frame, groups: Groups, job: Job, manifest: Integer) -> Integer:
    """Add an entry to its manifest and its partition; a result of `roll_up`."""
    slots = frame.slots
    partition = -1
    if job.partition_tag >= 0:
        partition = find_group(groups, job.partition_tag, data, slots[k.PARTITION], frame.lengths[k.PARTITION])
        if partition < 0:
            return k.FULL
    snapshot_id = slots[k.SNAPSHOT_ID]
    known = frame.lengths[k.SNAPSHOT_ID] >= 0
    if not known:
        snapshot_id = job.added_snapshot_id
        known = job.has_snapshot_id
    ms = committed_ms(job, snapshot_id) if known else -1
    content = slots[k.CONTENT]
    vector = content == 1 and is_puffin(data, slots[k.FILE_FORMAT], frame.lengths[k.FILE_FORMAT])
    records, size = slots[k.RECORD_COUNT], slots[k.FILE_SIZE]
    overflow = add_row(groups.rows[manifest], content, vector, records, size, snapshot_id, ms)
    if partition >= 0:
        overflow |= add_row(groups.rows[partition], content, vector, records, size, snapshot_id, ms)
    if content == 0:
        overflow |= add_columns(data, frame, groups, manifest, partition)
    return k.DONE if overflow >= 0 else k.FAILED


@inlined
def roll_up_block(
    data: Bytes, end: Integer, count: Integer, code: Words, frame: Frame, groups: Groups, job: Job, manifest: Integer
) -> Integer:
    """Add the entries of one block, from `frame.state` on."""
    state = frame.state
    while state[k.AT_ENTRY] < count:
        start = state[k.AT_BYTE]
        frame.lengths[:] = -1
        position = decode_entry(data, start, end, code, frame)
        if position < 0 or check_entry(frame, start) < 0:
            return k.FAILED
        result = k.DONE
        if position - start > groups.arena.size - groups.meters[k.ARENA_USED]:
            result = k.FULL
        elif (job.statuses >> frame.slots[k.STATUS]) & 1:
            result = add_entry(data, frame, groups, job, manifest)
        frame.flags[:] = 0
        if result != k.DONE:
            fail(frame, k.OVERFLOW, start)
            return result
        state[k.AT_BYTE] = position
        state[k.AT_ENTRY] += 1
    if state[k.AT_BYTE] != end:
        fail(frame, k.LEFT_OVER, state[k.AT_BYTE])
        return k.FAILED
    return k.DONE


@compiled
def roll_up(
    data: Bytes, blocks: Words, code: Words, frame: Frame, groups: Groups, job: Job, manifest_tag: Integer
) -> Integer:
    """Add a batch of blocks (start, end, number of entries) to the groups, from `frame.state` on.

    DONE; FULL: the groups must be emptied, and the call repeated; FAILED: see `frame.state`.
    """
    state = frame.state
    manifest = find_group(groups, manifest_tag, data, 0, 0)
    if manifest < 0:
        return k.FULL
    while state[k.AT_BLOCK] < blocks.shape[0]:
        block = blocks[state[k.AT_BLOCK]]
        if state[k.AT_ENTRY] == 0:
            state[k.AT_BYTE] = block[0]
        result = roll_up_block(data, block[1], block[2], code, frame, groups, job, manifest)
        if result != k.DONE:
            return result
        state[k.AT_BLOCK] += 1
        state[k.AT_ENTRY] = 0
    return k.DONE
