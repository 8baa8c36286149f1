"""The kernel's bounds: single values as two order-preserving 64-bit words, and bytes where two words are too few.

Source: Iceberg spec, "Appendix D: Single-value serialization", and "Schema Evolution" for the widths that promotion
leaves behind. A bound whose length its type cannot have, and NaN, count as no bound.
"""

from __future__ import annotations

import numpy as np

from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import compiled, inlined
from icestats.read.kernel.kernel_layout import Bytes, Flag, Groups, Integer
from icestats.read.kernel.kernel_primitives import copy_bytes

SIGN = -0x8000_0000_0000_0000
MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
MICROS_A_DAY = 86_400_000_000
NANOS_A_DAY = 86_400_000_000_000
MAX_NANO_DAYS = 106_751
MAX_MICRO_DAYS = 106_751_991


@inlined
def little_endian(data: Bytes, start: Integer, width: Integer) -> Integer:
    """Return a little-endian number of 4 or 8 bytes with its sign."""
    bits = np.uint64(0)
    if width == 8:
        for i in range(8):
            bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(8 * i)
        return np.int64(bits)
    for i in range(4):
        bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(8 * i)
    return np.int64(np.int32(np.uint32(bits)))


@inlined
def big_endian(data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return up to 8 bytes as the high bytes of a word."""
    if length <= 0:
        return np.uint64(0)
    bits = np.uint64(0)
    if start + 8 <= data.size:
        for i in range(8):
            bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(56 - 8 * i)
        unused = np.uint64(64 - 8 * min(length, 8))
        return (bits >> unused) << unused
    for i in range(min(length, 8)):
        bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(56 - 8 * i)
    return bits


@inlined
def text_word(data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return up to 8 bytes, padded with zeros, as a number that orders like the bytes."""
    return np.int64(big_endian(data, start, length)) ^ np.int64(SIGN)


@compiled
def decimal_words(data: Bytes, start: Integer, length: Integer) -> tuple[Flag, Integer, Integer]:
    """Return a big-endian two's complement number of any length that fits 128 bits."""
    if length == 0:
        return False, 0, 0
    fill = np.uint64(0xFF) if data[start] >= 128 else np.uint64(0)
    while length > 16:
        if np.uint64(data[start]) != fill:
            return False, 0, 0
        start += 1
        length -= 1
        if length == 16 and np.uint64(data[start] & 128) != fill & np.uint64(128):
            return False, 0, 0
    if length <= 8:
        number = np.int64(big_endian(data, start, length)) >> (64 - 8 * length)
        return True, number >> 63, number ^ np.int64(SIGN)
    high = np.int64(big_endian(data, start, length - 8)) >> (128 - 8 * length)
    return True, high, text_word(data, start + length - 8, 8)


@inlined
def real_word(bits: Integer) -> tuple[Flag, Integer]:
    """Return the bits of a double as a number that orders like it, -0.0 before 0.0; NaN is no bound."""
    if bits & MAGNITUDE > 0x7FF0_0000_0000_0000:
        return False, 0
    return True, bits ^ MAGNITUDE if bits < 0 else bits


@compiled
def rare_words(
    kind: Integer, limit: Integer, data: Bytes, start: Integer, length: Integer
) -> tuple[Flag, Integer, Integer]:
    """Return the two words of a bound of one of the rarer types."""
    if kind == k.BOOL:
        return length == 1, np.int64(length == 1 and data[start] != 0), 0
    if kind == k.UUID:
        if length != 16:
            return False, 0, 0
        return True, text_word(data, start, 8), text_word(data, start + 8, 8)
    if kind == k.FIXED_TEXT:
        if length > limit:
            return False, 0, 0
        return True, text_word(data, start, length), text_word(data, start + 8, max(length - 8, 0))
    if kind == k.DATE_MICROS or kind == k.DATE_NANOS:
        return date_words(kind, data, start, length)
    return False, 0, 0


@inlined
def date_words(kind: Integer, data: Bytes, start: Integer, length: Integer) -> tuple[Flag, Integer, Integer]:
    """Return the timestamp of a date from before its column was promoted."""
    if length != 4:
        return False, 0, 0
    days = little_endian(data, start, 4)
    if kind == k.DATE_NANOS:
        return -MAX_NANO_DAYS <= days <= MAX_NANO_DAYS, days * NANOS_A_DAY, 0
    return -MAX_MICRO_DAYS <= days <= MAX_MICRO_DAYS, days * MICROS_A_DAY, 0


@inlined
def bound_words(
    kind: Integer, limit: Integer, data: Bytes, start: Integer, length: Integer
) -> tuple[Flag, Integer, Integer]:
    """Return whether the bytes are a bound, and its two words."""
    if kind == k.TEXT:
        return True, text_word(data, start, length), text_word(data, start + 8, max(length - 8, 0))
    if length == 8 and k.LONG4_8 <= kind <= k.DATE_NANOS:
        return True, little_endian(data, start, 8), 0
    if kind == k.INT4 or kind == k.LONG4_8:
        return length == 4, little_endian(data, start, 4) if length == 4 else 0, 0
    if kind == k.REAL4_8 or kind == k.REAL4:
        if length == 8 and kind == k.REAL4_8:
            bits = little_endian(data, start, 8)
        elif length == 4:
            bits = np.float64(np.int32(little_endian(data, start, 4)).view(np.float32)).view(np.int64)
        else:
            return False, 0, 0
        ok, word = real_word(bits)
        return ok, word, 0
    if kind == k.BIG_DECIMAL:
        return decimal_words(data, start, length)
    return rare_words(kind, limit, data, start, length)


@compiled
def longer_precedes(
    data: Bytes, start: Integer, length: Integer, other: Bytes, other_start: Integer, other_length: Integer
) -> Flag:
    """Say whether bytes precede others that share their first 16 bytes."""
    for i in range(16, min(length, other_length)):
        if data[start + i] != other[other_start + i]:
            return data[start + i] < other[other_start + i]
    return length < other_length


@inlined
def improves(
    cell: k.Words,
    side: Integer,
    high: Integer,
    low: Integer,
    data: Bytes,
    start: Integer,
    length: Integer,
    arena: Bytes,
) -> Flag:
    """Say whether a bound is lower (`side` LOWER), or higher (UPPER), than the best so far."""
    if cell[side] == 0:
        return True
    if high != cell[side + 1]:
        return (high < cell[side + 1]) == (side == k.LOWER)
    if low != cell[side + 2]:
        return (low < cell[side + 2]) == (side == k.LOWER)
    best_length = cell[side + 3] & 0x7FFF_FFFF
    if length == best_length and length <= 16:
        return False
    if length <= 16 or best_length <= 16:
        return (length < best_length) == (side == k.LOWER)
    best_start = cell[side + 3] >> 31
    if side == k.LOWER:
        return longer_precedes(data, start, length, arena, best_start, best_length)
    return longer_precedes(arena, best_start, best_length, data, start, length)


@compiled
def keep_bytes(groups: Groups, data: Bytes, start: Integer, length: Integer) -> Integer:
    """Return the reference of a bound: its length, and where it is in the arena if two words cannot hold it."""
    if length <= 16:
        return length
    offset = groups.meters[k.ARENA_USED]
    copy_bytes(data, start, length, groups.arena, offset)
    groups.meters[k.ARENA_USED] = offset + length
    return (offset << 31) | length
