"""The compiled kernel: inflated blocks of manifests straight into roll-ups or rows, and from there into Arrow buffers.

It is one module, because numba keeps the machine code of a function until the function's own file changes: code that
calls another file, or has taken a constant from there, would outlive it. So nothing of it comes from other modules.

A decoding program runs over each entry. A length is checked against the buffer before anything is read; a position of
-1 stands for a failure, whose kind and place are in `Frame.state`.

Sources: Avro 1.12 specification, "Binary Encoding"; Iceberg spec, "Manifests", "Scan Planning" (inheritance), "Appendix
D: Single-value serialization", and "Schema Evolution" for the widths that promotion leaves behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

# Not from `numba.extending`: Python would have a thread begin with that while another imports numba.
from numba import extending

from icestats.read.kernel.kept_code import compile_and_keep

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]
_Offsets = npt.NDArray[np.int32]
_Integer: TypeAlias = Any
"""Compiled, Python's and NumPy's integers are all 64-bit words."""
_Flag: TypeAlias = Any
"""True or false, whichever kind of bool."""

# Operations of a decoding program, each with its operands; see decoding_program.
END = 0
SKIP_VARINT = 1
SKIP_BYTES = 2
SKIP_FIXED = 3  # length
LONG = 4  # slot
SPAN = 5  # slot
FIXED = 6  # slot, length
BOOLEAN = 7  # slot
FLOAT = 8  # slot
DOUBLE = 9  # slot
UNION = 10  # number of branches, the address of each
JUMP = 11  # address
ARRAY = 12  # address behind the array
NEXT = 13  # address of the first operation of an item
EMPTY_ITEMS = 14
OPEN = 15  # slot
CLOSE = 16  # slot
COUNTS = 17  # metric
BOUNDS = 18  # metric
CLEAR = 19  # slot
PUT = 20  # metric
SEEN = 21  # metric

# Slots: what is captured of an entry. A slot's length is -1 for null, and 0 for a number.
METRICS = 6
STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER, CONTENT, FILE_PATH, FILE_FORMAT = range(6, 13)
RECORD_COUNT, FILE_SIZE, SORT_ORDER_ID, SPLIT_OFFSETS, EQUALITY_IDS, REFERENCED_DATA_FILE = range(13, 19)
CONTENT_OFFSET, CONTENT_SIZE, FIRST_ROW_ID, KEY_METADATA, PARTITION, KEY, VALUE, MANIFEST = range(19, 27)
PARTITION_FIELDS = 27

_MOST_COUNTED = 1 << 53
"""No file has more records or bytes; each whole number up to here is a double of its own, which estimates rely on."""
MAX_DEPTH = 16
"""Arrays and maps inside each other, at most."""

(
    CUT,
    LONG_VARINT,
    NO_BRANCH,
    NEGATIVE,
    TOO_MANY,
    BAD_STATUS,
    BAD_CONTENT,
    IS_NULL,
    IMPOSSIBLE_COUNT,
    LEFT_OVER,
    OVERFLOW,
) = range(1, 12)

# Results of the kernel, and its place in a batch of blocks.
DONE, FULL, FAILED = 0, 1, 2
AT_BLOCK, AT_ENTRY, _AT_BYTE, ERROR, ERROR_BYTE = range(5)

# Statuses of entries, a bit each: EXISTING and ADDED, or DELETED.
LIVE, DELETED = 0b011, 0b100

# How the bounds of a column compare.
NO_BOUNDS, BOOL, INT4, LONG4_8, LONG8, DATE_MICROS, DATE_NANOS, REAL4, REAL4_8, BIG_DECIMAL, UUID, TEXT, FIXED_TEXT = (
    range(13)
)

# Columns of GroupArrays.rows.
FILES, RECORDS, SIZE, DATA_FILES, DATA_RECORDS, DATA_SIZE, POSITION_FILES, POSITION_RECORDS = range(8)
EQUALITY_FILES, EQUALITY_RECORDS, VECTORS, UPDATED_MS, UPDATED_BY = range(8, 13)
ROW_WIDTH = 13

# Columns of a cell of GroupArrays.cells: 4 sums, the 4 numbers of files that have them, then for the lower and for the
# upper bound: the number of files that have it, its two words, its reference.
CELL_WIDTH = 16
LOWER, UPPER = 8, 12

# Columns of Frame.values.
VALUE_WIDTH = 8
_LOWER_START, _LOWER_LENGTH = 4, 6

# GroupArrays.meters.
GROUPS_USED, ARENA_USED, KEYS_USED = range(3)

# Rows.meters.
ROWS_USED, ROWS_ARENA_USED, NEXT_ROW_ID = range(3)


class Frame(NamedTuple):
    """What the kernel knows of the entry at hand."""

    slots: Words
    """Numbers, or where bytes begin in the buffer."""
    lengths: Words
    flags: Bytes
    """For each column one bit a metric that the entry has."""
    values: Words
    """For each column one cache line: 4 counts, where the lower and the upper bound begin, and their lengths."""
    lookup: Words
    """Field id to column, for small field ids; -1 for none."""
    sparse_ids: Words
    """Large field ids, sorted."""
    sparse_columns: Words
    stack: Words
    state: Words


class GroupArrays(NamedTuple):
    """Accumulators of groups of files: manifests and partitions."""

    meters: Words
    rows: Words
    cells: Words
    valueless: Words
    kinds: Words
    """For each column how its bounds compare, and the length that they may have."""
    arena: Bytes
    """Winning bounds that are longer than two words."""
    tags: Words
    keys: Words
    """Where the bytes of each group's key begin in `key_arena`, and their length."""
    key_arena: Bytes
    table: Words
    """Open addressing: a group's number + 1, or 0."""


class Job(NamedTuple):
    """What the kernel knows of the manifest at hand."""

    partition_tag: int
    """-1: no roll-up by partition."""
    added_snapshot_id: int
    has_snapshot_id: bool
    snapshot_ids: Words
    """Sorted."""
    timestamps_ms: Words
    statuses: int
    """One bit a status of entries that count."""


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


# Nothing is allocated here, and counting the references to every view of an array takes 17 times as long as the work
# itself: `_nrt=False`, as numba documents for `register_jitable`.
_called = extending.register_jitable(_nrt=False, error_model="numpy")
_inlined = extending.register_jitable(_nrt=False, error_model="numpy", forceinline=True)


def _compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call, without the interpreter's lock, and keep the machine code."""
    return compile_and_keep(function, nogil=True, error_model="numpy")


@_inlined
def _fail(frame: Frame, error: _Integer, position: _Integer) -> _Integer:
    """Note an error and return the position that stands for failure."""
    frame.state[ERROR] = error
    frame.state[ERROR_BYTE] = position
    return -1


@_inlined
def _find_sorted(numbers: Words, wanted: _Integer) -> _Integer:
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


@_inlined
def _copy_bytes(data: Bytes, start: _Integer, length: _Integer, out: Bytes, at: _Integer) -> None:
    """Copy bytes from one array to another."""
    for i in range(length):
        out[at + i] = data[start + i]


@_called
def _read_long_number(data: Bytes, position: _Integer, end: _Integer, frame: Frame) -> tuple[_Integer, _Integer]:
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
        return 0, _fail(frame, CUT, start)
    return 0, _fail(frame, CUT if start >= end else LONG_VARINT, start)


@_inlined
def _read_long(data: Bytes, position: _Integer, end: _Integer, frame: Frame) -> tuple[_Integer, _Integer]:
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
    return _read_long_number(data, position, end, frame)


@_inlined
def _read_length(data: Bytes, position: _Integer, end: _Integer, frame: Frame) -> tuple[_Integer, _Integer]:
    """Read the length of bytes that follow, all of which are in the buffer."""
    length, after = _read_long(data, position, end, frame)
    if after < 0:
        return 0, after
    if length < 0:
        return 0, _fail(frame, NEGATIVE, position)
    if length > end - after:
        return 0, _fail(frame, CUT, position)
    return length, after


@_inlined
def _read_count(data: Bytes, position: _Integer, end: _Integer, frame: Frame) -> tuple[_Integer, _Integer]:
    """Read the number of items of a block of an array or map, and the block's length where it has one."""
    count, after = _read_long(data, position, end, frame)
    if after < 0 or count == 0:
        return 0, after
    if count < 0:
        count = -count
        _, after = _read_length(data, after, end, frame)
        if after < 0:
            return 0, after
    if count < 0 or count > end - after:
        return 0, _fail(frame, TOO_MANY, position)
    return count, after


@_inlined
def _find_column(frame: Frame, field_id: _Integer) -> _Integer:
    """Return the column of a field id, -1 for none."""
    if 0 <= field_id < frame.lookup.size:
        return frame.lookup[field_id]
    place = _find_sorted(frame.sparse_ids, field_id)
    return frame.sparse_columns[place] if place >= 0 else -1


@_inlined
def _read_metrics(
    data: Bytes, position: _Integer, end: _Integer, metric: _Integer, are_bounds: _Flag, frame: Frame
) -> _Integer:
    """Read a map of field id to count or bound."""
    bit = np.uint8(1 << metric)
    values = frame.values
    while True:
        count, position = _read_count(data, position, end, frame)
        if count == 0:
            return position
        for _ in range(count):
            field_id, position = _read_long(data, position, end, frame)
            if position < 0:
                return -1
            if are_bounds:
                length, position = _read_length(data, position, end, frame)
                value = position
            else:
                length = 0
                value, position = _read_long(data, position, end, frame)
            if position < 0:
                return -1
            column = _find_column(frame, field_id)
            if column >= 0:
                values[np.uint64(column), metric] = value
                if are_bounds:
                    values[np.uint64(column), metric + 2] = length
                frame.flags[column] |= bit
            position += length


@_called
def _put_metric(frame: Frame, metric: _Integer) -> None:
    """Store the captured key and value of an unusual metrics map."""
    if frame.lengths[KEY] < 0 or frame.lengths[VALUE] < 0:
        return
    column = _find_column(frame, frame.slots[KEY])
    if column < 0:
        return
    frame.values[column, metric] = frame.slots[VALUE]
    if metric >= 4:
        frame.values[column, metric + 2] = frame.lengths[VALUE]
    frame.flags[column] |= np.uint8(1 << metric)


@_called
def _read_number(
    data: Bytes, position: _Integer, end: _Integer, operation: _Integer, slot: _Integer, frame: Frame
) -> _Integer:
    """Capture a boolean, a float or a double; the latter two as the bits of a double."""
    width = 1 if operation == BOOLEAN else 4 if operation == FLOAT else 8
    if end - position < width:
        return _fail(frame, CUT, position)
    bits = np.uint64(0)
    for i in range(width):
        bits |= np.uint64(data[position + i]) << np.uint64(8 * i)
    if operation == FLOAT:
        frame.slots[slot] = np.float64(np.uint32(bits).view(np.float32)).view(np.int64)
    else:
        frame.slots[slot] = np.int64(bits)
    frame.lengths[slot] = 0
    return position + width


@_called
def _next_item(
    data: Bytes, position: _Integer, end: _Integer, depth: _Integer, frame: Frame
) -> tuple[_Integer, _Integer]:
    """Step to the next item of the innermost array: the items left, at least one, or 0 behind the array."""
    left = frame.stack[depth] - 1
    if left <= 0:
        left, position = _read_count(data, position, end, frame)
    frame.stack[depth] = left
    return left, position


@_called
def _skip_empty_items(data: Bytes, position: _Integer, end: _Integer, frame: Frame) -> _Integer:
    """Skip an array whose items take no bytes, however many they are."""
    while True:
        count, position = _read_long(data, position, end, frame)
        if position < 0 or count == 0:
            return position
        if count < 0:
            _, position = _read_length(data, position, end, frame)
            if position < 0:
                return position


@_called
def _decode_entry(data: Bytes, position: _Integer, end: _Integer, code: Words, frame: Frame) -> _Integer:  # noqa: C901
    """Run a decoding program over one entry; return the position behind it, or -1.

    One branch an operation, as in any interpreter: numba cannot dispatch through a table of functions at this speed.
    """
    slots = frame.slots
    lengths = frame.lengths
    at = 0
    depth = -1
    while position >= 0:
        operation = code[at]
        if operation == END:
            return position
        if operation == SKIP_VARINT:
            _, position = _read_long(data, position, end, frame)
            at += 1
        elif operation == SKIP_BYTES:
            length, position = _read_length(data, position, end, frame)
            position += length
            at += 1
        elif operation == SKIP_FIXED:
            if code[at + 1] > end - position:
                return _fail(frame, CUT, position)
            position += code[at + 1]
            at += 2
        elif operation == LONG:
            slots[code[at + 1]], position = _read_long(data, position, end, frame)
            lengths[code[at + 1]] = 0
            at += 2
        elif operation == SPAN:
            length, position = _read_length(data, position, end, frame)
            slots[code[at + 1]] = position
            lengths[code[at + 1]] = length
            position += length
            at += 2
        elif operation == FIXED:
            length = code[at + 2]
            if length > end - position:
                return _fail(frame, CUT, position)
            slots[code[at + 1]] = position
            lengths[code[at + 1]] = length
            position += length
            at += 3
        elif operation <= DOUBLE:
            position = _read_number(data, position, end, operation, code[at + 1], frame)
            at += 2
        elif operation == UNION:
            start = position
            branch, position = _read_long(data, position, end, frame)
            if branch < 0 or branch >= code[at + 1]:
                return _fail(frame, NO_BRANCH, start)
            at = code[at + 2 + branch]
        elif operation == JUMP:
            at = code[at + 1]
        elif operation == ARRAY:
            count, position = _read_count(data, position, end, frame)
            if count == 0:
                at = code[at + 1]
            else:
                depth += 1
                frame.stack[depth] = count
                at += 2
        elif operation == NEXT:
            left, position = _next_item(data, position, end, depth, frame)
            if left == 0:
                depth -= 1
                at += 2
            else:
                at = code[at + 1]
        elif operation == EMPTY_ITEMS:
            position = _skip_empty_items(data, position, end, frame)
            at += 1
        elif operation == OPEN:
            slots[code[at + 1]] = position
            at += 2
        elif operation == CLOSE:
            lengths[code[at + 1]] = position - slots[code[at + 1]]
            at += 2
        elif operation == COUNTS:
            lengths[code[at + 1]] = 0
            position = _read_metrics(data, position, end, code[at + 1], False, frame)
            at += 2
        elif operation == BOUNDS:
            lengths[code[at + 1]] = 0
            position = _read_metrics(data, position, end, code[at + 1], True, frame)
            at += 2
        elif operation == CLEAR:
            lengths[code[at + 1]] = -1
            at += 2
        elif operation == SEEN:
            lengths[code[at + 1]] = 0
            at += 2
        else:
            _put_metric(frame, code[at + 1])
            at += 2
    return -1


_SIGN = -0x8000_0000_0000_0000
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
_MICROS_A_DAY = 86_400_000_000
_NANOS_A_DAY = 86_400_000_000_000
_MAX_NANO_DAYS = 106_751
_MAX_MICRO_DAYS = 106_751_991


@_inlined
def _little_endian(data: Bytes, start: _Integer, width: _Integer) -> _Integer:
    """Return a little-endian number of 4 or 8 bytes with its sign."""
    bits = np.uint64(0)
    if width == 8:
        for i in range(8):
            bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(8 * i)
        return np.int64(bits)
    for i in range(4):
        bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(8 * i)
    return np.int64(np.int32(np.uint32(bits)))


@_inlined
def _big_endian(data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return up to 8 bytes as the high bytes of a word."""
    if length <= 0:
        return np.uint64(0)
    bits = np.uint64(0)
    for i in range(min(length, 8)):
        bits |= np.uint64(data[np.uint64(start + i)]) << np.uint64(56 - 8 * i)
    return bits


@_inlined
def _text_word(data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return up to 8 bytes, padded with zeros, as a number that orders like the bytes."""
    return np.int64(_big_endian(data, start, length)) ^ np.int64(_SIGN)


@_called
def _decimal_words(data: Bytes, start: _Integer, length: _Integer) -> tuple[_Flag, _Integer, _Integer]:
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
        number = np.int64(_big_endian(data, start, length)) >> (64 - 8 * length)
        return True, number >> 63, number ^ np.int64(_SIGN)
    high = np.int64(_big_endian(data, start, length - 8)) >> (128 - 8 * length)
    return True, high, _text_word(data, start + length - 8, 8)


@_inlined
def _real_word(bits: _Integer) -> tuple[_Flag, _Integer]:
    """Return the bits of a double as a number that orders like it, -0.0 before 0.0; NaN is no bound."""
    if bits & _MAGNITUDE > 0x7FF0_0000_0000_0000:
        return False, 0
    return True, bits ^ _MAGNITUDE if bits < 0 else bits


@_called
def _rare_words(
    kind: _Integer, limit: _Integer, data: Bytes, start: _Integer, length: _Integer
) -> tuple[_Flag, _Integer, _Integer]:
    """Return the two words of a bound of one of the rarer types."""
    if kind == BOOL:
        return length == 1, np.int64(length == 1 and data[start] != 0), 0
    if kind == UUID:
        if length != 16:
            return False, 0, 0
        return True, _text_word(data, start, 8), _text_word(data, start + 8, 8)
    if kind == FIXED_TEXT:
        if length > limit:
            return False, 0, 0
        return True, _text_word(data, start, length), _text_word(data, start + 8, max(length - 8, 0))
    if kind in (DATE_MICROS, DATE_NANOS):
        return _date_words(kind, data, start, length)
    return False, 0, 0


@_inlined
def _date_words(kind: _Integer, data: Bytes, start: _Integer, length: _Integer) -> tuple[_Flag, _Integer, _Integer]:
    """Return the timestamp of a date from before its column was promoted."""
    if length != 4:
        return False, 0, 0
    days = _little_endian(data, start, 4)
    if kind == DATE_NANOS:
        return -_MAX_NANO_DAYS <= days <= _MAX_NANO_DAYS, days * _NANOS_A_DAY, 0
    return -_MAX_MICRO_DAYS <= days <= _MAX_MICRO_DAYS, days * _MICROS_A_DAY, 0


@_inlined
def _bound_words(
    kind: _Integer, limit: _Integer, data: Bytes, start: _Integer, length: _Integer
) -> tuple[_Flag, _Integer, _Integer]:
    """Return whether the bytes are a bound, and two words that order like it.

    NaN is no bound, and neither are bytes of a length that the type, and those promoted to it, cannot have.
    """
    if kind == TEXT:
        return True, _text_word(data, start, length), _text_word(data, start + 8, max(length - 8, 0))
    if length == 8 and LONG4_8 <= kind <= DATE_NANOS:
        return True, _little_endian(data, start, 8), 0
    if kind in (INT4, LONG4_8):
        return length == 4, _little_endian(data, start, 4) if length == 4 else 0, 0
    if kind in (REAL4_8, REAL4):
        if length == 8 and kind == REAL4_8:
            bits = _little_endian(data, start, 8)
        elif length == 4:
            bits = np.float64(np.int32(_little_endian(data, start, 4)).view(np.float32)).view(np.int64)
        else:
            return False, 0, 0
        ok, word = _real_word(bits)
        return ok, word, 0
    if kind == BIG_DECIMAL:
        return _decimal_words(data, start, length)
    return _rare_words(kind, limit, data, start, length)


@_called
def _longer_precedes(
    data: Bytes, start: _Integer, length: _Integer, other: Bytes, other_start: _Integer, other_length: _Integer
) -> _Flag:
    """Say whether bytes precede others that share their first 16 bytes."""
    for i in range(16, min(length, other_length)):
        if data[start + i] != other[other_start + i]:
            return data[start + i] < other[other_start + i]
    return length < other_length


@_inlined
def _improves(
    cell: Words,
    side: _Integer,
    high: _Integer,
    low: _Integer,
    data: Bytes,
    start: _Integer,
    length: _Integer,
    arena: Bytes,
) -> _Flag:
    """Say whether a bound is lower (`side` LOWER), or higher (UPPER), than the best so far."""
    if cell[side] == 0:
        return True
    if high != cell[side + 1]:
        return (high < cell[side + 1]) == (side == LOWER)
    if low != cell[side + 2]:
        return (low < cell[side + 2]) == (side == LOWER)
    best_length = cell[side + 3] & 0x7FFF_FFFF
    if length == best_length and length <= 16:
        return False
    if length <= 16 or best_length <= 16:
        return (length < best_length) == (side == LOWER)
    best_start = cell[side + 3] >> 31
    if side == LOWER:
        return _longer_precedes(data, start, length, arena, best_start, best_length)
    return _longer_precedes(arena, best_start, best_length, data, start, length)


@_called
def _keep_bytes(groups: GroupArrays, data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return the reference of a bound: its length, and where it is in the arena if two words cannot hold it."""
    if length <= 16:
        return length
    offset = groups.meters[ARENA_USED]
    _copy_bytes(data, start, length, groups.arena, offset)
    groups.meters[ARENA_USED] = offset + length
    return (offset << 31) | length


@_inlined
def _hash_key(tag: _Integer, data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return a hash of a tag and key bytes."""
    code = np.uint64(tag) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xCBF29CE484222325)
    for i in range(length):
        code = (code ^ np.uint64(data[start + i])) * np.uint64(0x100000001B3)
    code ^= code >> np.uint64(29)
    code *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(code >> np.uint64(20))


@_inlined
def _find_place(groups: GroupArrays, tag: _Integer, data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return where the hash table has the group of a tag and key bytes, or is free for it."""
    mask = groups.table.size - 1
    place = _hash_key(tag, data, start, length) & mask
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


@_called
def _find_group(groups: GroupArrays, tag: _Integer, data: Bytes, start: _Integer, length: _Integer) -> _Integer:
    """Return the group of a tag and key bytes, made if need be; -1 where there is no room for one more."""
    place = _find_place(groups, tag, data, start, length)
    if groups.table[place] != 0:
        return groups.table[place] - 1
    group = groups.meters[GROUPS_USED]
    used = groups.meters[KEYS_USED]
    if group == groups.tags.size or length > groups.key_arena.size - used:
        return -1
    groups.table[place] = group + 1
    groups.rows[group, UPDATED_MS] = -1
    groups.tags[group] = tag
    groups.keys[group, 0] = used
    groups.keys[group, 1] = length
    _copy_bytes(data, start, length, groups.key_arena, used)
    groups.meters[GROUPS_USED] = group + 1
    groups.meters[KEYS_USED] = used + length
    return group


@_compiled
def make_groups(groups: GroupArrays, tags: Words, no_bytes: Bytes) -> None:
    """Make groups of these tags that have no key; there must be room for them."""
    for i in range(tags.size):
        _find_group(groups, tags[i], no_bytes, 0, 0)


@_inlined
def _add_bound(
    groups: GroupArrays,
    cell: Words,
    side: _Integer,
    high: _Integer,
    low: _Integer,
    data: Bytes,
    start: _Integer,
    length: _Integer,
    reference: _Integer,
) -> _Integer:
    """Compare a bound with the best so far; return the reference of its bytes, -1 where they are not kept yet."""
    if _improves(cell, side, high, low, data, start, length, groups.arena):
        if reference < 0:
            reference = _keep_bytes(groups, data, start, length)
        cell[side + 1] = high
        cell[side + 2] = low
        cell[side + 3] = reference
    cell[side] += 1
    return reference


@_inlined
def _add_counts(cell: Words, values: Words, bits: _Integer) -> _Integer:
    """Add the counts of one file; the result is negative where a sum has run over."""
    overflow = 0
    for metric in range(4):
        has = (bits >> metric) & 1
        total = cell[metric] + (values[metric] & -has)
        cell[metric] = total
        cell[4 + metric] += has
        overflow |= total
    return overflow


@_inlined
def _known_counts(values: Words, bits: _Integer) -> _Integer:
    """Return the metrics that a file has: a negative count is none, nor are fewer values than nulls and NaN."""
    for metric in range(4):
        bits &= ~(((values[metric] >> 63) & 1) << metric)
    if bits & 2:
        left = values[1] - (values[2] if bits & 4 else 0)
        if left < 0 or (bits & 8 and left < values[3]):
            bits &= ~14
    return bits


@_inlined
def _is_valueless(values: Words, bits: _Integer) -> _Flag:
    """Say whether a file's column has nothing to bound: every value is null or NaN."""
    if not bits & 2:
        return False
    left = values[1]
    if bits & 4:
        left -= values[2]
    if bits & 8:
        left -= values[3]
    return left == 0


@_inlined
def _add_side(
    data: Bytes,
    frame: Frame,
    groups: GroupArrays,
    first: Words,
    second: Words,
    column: _Integer,
    side: _Integer,
    twice: _Flag,
) -> _Flag:
    """Add the lower or the upper bound of one file to one cell, or two; False if it is none."""
    start = frame.values[np.uint64(column), _LOWER_START + side]
    length = frame.values[np.uint64(column), _LOWER_LENGTH + side]
    kind = groups.kinds[np.uint64(column), 0]
    ok, high, low = _bound_words(kind, groups.kinds[np.uint64(column), 1], data, start, length)
    if not ok:
        return False
    if kind < TEXT:
        length = 0
    place = LOWER if side == 0 else UPPER
    reference = _add_bound(groups, first, place, high, low, data, start, length, -1)
    if twice:
        _add_bound(groups, second, place, high, low, data, start, length, reference)
    return True


@_inlined
def _add_columns(
    data: Bytes, frame: Frame, groups: GroupArrays, records: _Integer, first: _Integer, second: _Integer
) -> _Integer:
    """Add the metrics of one data file to its groups, and forget them; negative where a sum has run over.

    A file without rows has no values, whether it says so or not.
    """
    overflow = 0
    twice = second >= 0
    for column in range(frame.flags.size):
        bits = np.int64(frame.flags[column])
        if bits == 0 and records != 0:
            continue
        frame.flags[column] = 0
        values = frame.values[np.uint64(column)]
        if records == 0:
            for metric in range(1, 4):
                values[metric] &= -((bits >> metric) & 1)
            bits |= 14
        bits = _known_counts(values, bits)
        cell = groups.cells[np.uint64(first), np.uint64(column)]
        other = groups.cells[np.uint64(max(second, 0)), np.uint64(column)]
        overflow |= _add_counts(cell, values, bits)
        if twice:
            overflow |= _add_counts(other, values, bits)
        bounded = False
        if bits & 16:
            bounded = _add_side(data, frame, groups, cell, other, column, 0, twice)
        if bits & 32 and _add_side(data, frame, groups, cell, other, column, 1, twice):
            bounded = True
        if not bounded and _is_valueless(values, bits):
            groups.valueless[first, column] += 1
            if twice:
                groups.valueless[second, column] += 1
    return overflow


@_inlined
def _add_row(
    row: Words,
    content: _Integer,
    is_vector: _Flag,
    records: _Integer,
    size: _Integer,
    snapshot_id: _Integer,
    ms: _Integer,
) -> _Integer:
    """Add one live file to a group's counts; negative where a sum has run over. `ms` is -1 for unknown."""
    row[FILES] += 1
    row[RECORDS] += records
    row[SIZE] += size
    if content == 0:
        row[DATA_FILES] += 1
        row[DATA_RECORDS] += records
        row[DATA_SIZE] += size
    elif content == 1:
        row[VECTORS if is_vector else POSITION_FILES] += 1
        row[POSITION_RECORDS] += records
    else:
        row[EQUALITY_FILES] += 1
        row[EQUALITY_RECORDS] += records
    _update_row(row, snapshot_id, ms)
    return row[RECORDS] | row[SIZE]


@_inlined
def _update_row(row: Words, snapshot_id: _Integer, ms: _Integer) -> None:
    """Keep the latest snapshot; of two at the same time the one with the greater id."""
    if ms < 0:
        return
    if row[UPDATED_MS] < ms or (row[UPDATED_MS] == ms and row[UPDATED_BY] < snapshot_id):
        row[UPDATED_MS] = ms
        row[UPDATED_BY] = snapshot_id


_PUFFIN = int.from_bytes(b"puffin", "big")


@_inlined
def _check_entry(frame: Frame, start: _Integer) -> _Integer:
    """Check what every entry must have; return 0, or -1 with the error noted."""
    slots = frame.slots
    for slot in (STATUS, RECORD_COUNT, FILE_SIZE, PARTITION):
        if frame.lengths[slot] < 0:
            return _fail(frame, IS_NULL, start)
    if slots[STATUS] < 0 or slots[STATUS] > 2:
        return _fail(frame, BAD_STATUS, start)
    if frame.lengths[CONTENT] < 0:
        slots[CONTENT] = 0
        frame.lengths[CONTENT] = 0
    if slots[CONTENT] < 0 or slots[CONTENT] > 2:
        return _fail(frame, BAD_CONTENT, start)
    for slot in (RECORD_COUNT, FILE_SIZE):
        if slots[slot] < 0 or slots[slot] > _MOST_COUNTED:
            return _fail(frame, IMPOSSIBLE_COUNT, start)
    return 0


@_inlined
def _is_puffin(data: Bytes, start: _Integer, length: _Integer) -> _Flag:
    """Say whether a file format is Puffin, in whatever case."""
    if length != 6:
        return False
    word = np.uint64(0)
    for i in range(6):
        word = (word << np.uint64(8)) | np.uint64(data[start + i] | 32)
    return word == np.uint64(_PUFFIN)


@_inlined
def _committed_ms(job: Job, snapshot_id: _Integer) -> _Integer:
    """Return when a snapshot was committed, -1 where it is unknown."""
    place = _find_sorted(job.snapshot_ids, snapshot_id)
    return job.timestamps_ms[place] if place >= 0 else -1


@_inlined
def _add_entry(data: Bytes, frame: Frame, groups: GroupArrays, job: Job, manifest: _Integer) -> _Integer:
    """Add an entry to its manifest and its partition; a result of `roll_up_blocks`."""
    slots = frame.slots
    partition = -1
    if job.partition_tag >= 0:
        partition = _find_group(groups, job.partition_tag, data, slots[PARTITION], frame.lengths[PARTITION])
        if partition < 0:
            return FULL
    snapshot_id = slots[SNAPSHOT_ID]
    known = frame.lengths[SNAPSHOT_ID] >= 0
    if not known:
        snapshot_id = job.added_snapshot_id
        known = job.has_snapshot_id
    ms = _committed_ms(job, snapshot_id) if known else -1
    content = slots[CONTENT]
    vector = content == 1 and _is_puffin(data, slots[FILE_FORMAT], frame.lengths[FILE_FORMAT])
    records, size = slots[RECORD_COUNT], slots[FILE_SIZE]
    overflow = _add_row(groups.rows[manifest], content, vector, records, size, snapshot_id, ms)
    if partition >= 0:
        overflow |= _add_row(groups.rows[partition], content, vector, records, size, snapshot_id, ms)
    if content == 0:
        overflow |= _add_columns(data, frame, groups, records, manifest, partition)
    return DONE if overflow >= 0 else FAILED


@_inlined
def _end_block(frame: Frame, end: _Integer) -> _Integer:
    """Step to the next block, if this one has been read to its end."""
    if frame.state[_AT_BYTE] != end:
        _fail(frame, LEFT_OVER, frame.state[_AT_BYTE])
        return FAILED
    frame.state[AT_BLOCK] += 1
    frame.state[AT_ENTRY] = 0
    return DONE


@_inlined
def _roll_up_block(
    data: Bytes,
    block: Words,
    code: Words,
    frame: Frame,
    groups: GroupArrays,
    job: Job,
    manifest: _Integer,
) -> _Integer:
    """Add the entries of one block, from `frame.state` on."""
    state, end = frame.state, block[1]
    if state[AT_ENTRY] == 0:
        state[_AT_BYTE] = block[0]
    while state[AT_ENTRY] < block[2]:
        start = state[_AT_BYTE]
        frame.lengths[:] = -1
        position = _decode_entry(data, start, end, code, frame)
        if position < 0 or _check_entry(frame, start) < 0:
            return FAILED
        result = DONE
        if position - start > groups.arena.size - groups.meters[ARENA_USED]:
            result = FULL
        elif (job.statuses >> frame.slots[STATUS]) & 1:
            result = _add_entry(data, frame, groups, job, manifest)
        frame.flags[:] = 0
        if result != DONE:
            _fail(frame, OVERFLOW, start)
            return result
        state[_AT_BYTE] = position
        state[AT_ENTRY] += 1
    return _end_block(frame, end)


@_compiled
def roll_up_blocks(
    data: Bytes, blocks: Words, code: Words, frame: Frame, groups: GroupArrays, job: Job, manifest_tag: _Integer
) -> _Integer:
    """Add a batch of blocks (start, end, number of entries) to the groups, from `frame.state` on.

    DONE; FULL: the groups must be emptied, and the call repeated; FAILED: see `frame.state`.
    """
    manifest = _find_group(groups, manifest_tag, data, 0, 0)
    if manifest < 0:
        return FULL
    while frame.state[AT_BLOCK] < blocks.shape[0]:
        result = _roll_up_block(data, blocks[frame.state[AT_BLOCK]], code, frame, groups, job, manifest)
        if result != DONE:
            return result
    return DONE


@_inlined
def _inherit_first_row_id(frame: Frame, rows: Rows) -> None:
    """Give a live data file the first_row_id that it inherits, in the order of the manifest."""
    slots, lengths = frame.slots, frame.lengths
    if rows.meters[NEXT_ROW_ID] < 0 or slots[CONTENT] != 0:
        lengths[FIRST_ROW_ID] = -1
    elif lengths[FIRST_ROW_ID] < 0:
        slots[FIRST_ROW_ID] = rows.meters[NEXT_ROW_ID]
        lengths[FIRST_ROW_ID] = 0
        rows.meters[NEXT_ROW_ID] += slots[RECORD_COUNT]


@_inlined
def _keep(data: Bytes, start: _Integer, length: _Integer, rows: Rows) -> _Integer:
    """Copy bytes into the arena; return where they begin."""
    used = rows.meters[ROWS_ARENA_USED]
    _copy_bytes(data, start, length, rows.arena, used)
    rows.meters[ROWS_ARENA_USED] = used + length
    return used


@_called
def _keep_row(data: Bytes, frame: Frame, rows: Rows, manifest: _Integer) -> None:
    """Store the entry at hand as one more row."""
    row = rows.meters[ROWS_USED]
    rows.meters[ROWS_USED] = row + 1
    for slot in range(frame.slots.size):
        rows.numbers[row, slot] = frame.slots[slot]
        rows.lengths[row, slot] = frame.lengths[slot]
    rows.numbers[row, MANIFEST] = manifest
    for slot in rows.copied:
        if frame.lengths[slot] > 0:
            rows.numbers[row, slot] = _keep(data, frame.slots[slot], frame.lengths[slot], rows)
    for column in range(frame.flags.size):
        bits = np.int64(frame.flags[column])
        frame.flags[column] = 0
        for metric in range(METRICS):
            rows.sizes[row, metric, column] = -1
            if bits & (1 << metric):
                value = frame.values[column, metric]
                size = 0
                if metric >= 4:
                    size = frame.values[column, metric + 2]
                    value = _keep(data, value, size, rows)
                rows.values[row, metric, column] = value
                rows.sizes[row, metric, column] = size


@_called
def _capture_block(
    data: Bytes,
    block: Words,
    code: Words,
    frame: Frame,
    rows: Rows,
    manifest: _Integer,
    is_manifest: _Flag,
) -> _Integer:
    """Store the live entries of one block, from `frame.state` on."""
    state, end = frame.state, block[1]
    if state[AT_ENTRY] == 0:
        state[_AT_BYTE] = block[0]
    while state[AT_ENTRY] < block[2]:
        start = state[_AT_BYTE]
        if rows.meters[ROWS_USED] == rows.numbers.shape[0]:
            return FULL
        frame.flags[:] = 0
        frame.lengths[:] = -1
        position = _decode_entry(data, start, end, code, frame)
        if position < 0 or (is_manifest and _check_entry(frame, start) < 0):
            return FAILED
        if position - start > rows.arena.size - rows.meters[ROWS_ARENA_USED]:
            return FULL
        if not is_manifest:
            _keep_row(data, frame, rows, manifest)
        elif frame.slots[STATUS] != 2:
            _inherit_first_row_id(frame, rows)
            _keep_row(data, frame, rows, manifest)
        state[_AT_BYTE] = position
        state[AT_ENTRY] += 1
    return _end_block(frame, end)


@_compiled
def capture_rows(
    data: Bytes, blocks: Words, code: Words, frame: Frame, rows: Rows, manifest: _Integer, is_manifest: _Flag
) -> _Integer:
    """Store the live entries of a batch of blocks as rows, from `frame.state` on.

    DONE; FULL: the rows must be taken away, and the call repeated; FAILED: see `frame.state`.
    """
    while frame.state[AT_BLOCK] < blocks.shape[0]:
        result = _capture_block(data, blocks[frame.state[AT_BLOCK]], code, frame, rows, manifest, is_manifest)
        if result != DONE:
            return result
    return DONE


@_compiled
def gather_bytes(arena: Bytes, starts: Words, lengths: Words, out: Bytes) -> None:
    """Copy bytes one behind the other; a length of -1 is null."""
    used = 0
    for i in range(starts.size):
        length = lengths[i]
        if length > 0:
            _copy_bytes(arena, starts[i], length, out, used)
            used += length


@_compiled
def gather_lists(arena: Bytes, starts: Words, lengths: Words, offsets: Words, out: Words, frame: Frame) -> _Integer:
    """Decode Avro arrays of numbers, which have been checked; return how many numbers there are."""
    used = 0
    for i in range(starts.size):
        offsets[i] = used
        if lengths[i] > 0:
            position = starts[i]
            end = position + lengths[i]
            while True:
                count, position = _read_long(arena, position, end, frame)
                if position < 0 or count == 0:
                    break
                if count < 0:
                    count = -count
                    _, position = _read_long(arena, position, end, frame)
                for _ in range(count):
                    out[used], position = _read_long(arena, position, end, frame)
                    used += 1
    offsets[starts.size] = used
    return used


@_called
def _merge_group(target: GroupArrays, group: _Integer, source: GroupArrays, other: _Integer) -> _Integer:
    """Add a group to another; negative where a sum has run over."""
    row = target.rows[group]
    overflow = 0
    for i in range(UPDATED_MS):
        row[i] += source.rows[other, i]
        overflow |= row[i]
    _update_row(row, source.rows[other, UPDATED_BY], source.rows[other, UPDATED_MS])
    for column in range(target.cells.shape[1]):
        target.valueless[group, column] += source.valueless[other, column]
        cell = target.cells[np.uint64(group), np.uint64(column)]
        more = source.cells[np.uint64(other), np.uint64(column)]
        for i in range(8):
            cell[i] += more[i]
            overflow |= cell[i]
        for side in (LOWER, UPPER):
            if more[side] > 0:
                count = cell[side] + more[side]
                start = more[side + 3] >> 31
                length = more[side + 3] & 0x7FFF_FFFF
                _add_bound(target, cell, side, more[side + 1], more[side + 2], source.arena, start, length, -1)
                cell[side] = count
    return overflow


@_compiled
def count_new_groups(target: GroupArrays, source: GroupArrays) -> _Integer:
    """Return how many groups `target` lacks."""
    count = 0
    for other in range(source.meters[GROUPS_USED]):
        start, length = source.keys[other, 0], source.keys[other, 1]
        if target.table[_find_place(target, source.tags[other], source.key_arena, start, length)] == 0:
            count += 1
    return count


@_compiled
def merge_groups(target: GroupArrays, source: GroupArrays) -> _Integer:
    """Add all groups to those of the same key, for which there must be room; negative where a sum has run over."""
    overflow = 0
    for other in range(source.meters[GROUPS_USED]):
        group = _find_group(target, source.tags[other], source.key_arena, source.keys[other, 0], source.keys[other, 1])
        if group < 0:
            return -1
        overflow |= _merge_group(target, group, source, other)
    return overflow


@_compiled
def merge_pairs(target: GroupArrays, source: GroupArrays, pairs: Words) -> _Integer:
    """Add groups of `source` (second of each pair) to groups of `target` (first), which may be the same arrays."""
    overflow = 0
    for i in range(pairs.shape[0]):
        overflow |= _merge_group(target, pairs[i, 0], source, pairs[i, 1])
    return overflow


@_compiled
def move_arena(groups: GroupArrays, arena: Bytes) -> _Integer:
    """Copy what is still referred to into another arena; return its length."""
    used = 0
    for group in range(groups.meters[GROUPS_USED]):
        for column in range(groups.cells.shape[1]):
            for side in (LOWER, UPPER):
                reference = groups.cells[group, column, side + 3]
                length = reference & 0x7FFF_FFFF
                if length > 16:
                    start = reference >> 31
                    _copy_bytes(groups.arena, start, length, arena, used)
                    groups.cells[group, column, side + 3] = (used << 31) | length
                    used += length
    return used


@_compiled
def refill_table(groups: GroupArrays, table: Words) -> None:
    """Enter all groups into another hash table."""
    mask = table.size - 1
    for group in range(groups.meters[GROUPS_USED]):
        start, length = groups.keys[group, 0], groups.keys[group, 1]
        place = _hash_key(groups.tags[group], groups.key_arena, start, length) & mask
        while table[place] != 0:
            place = (place + 1) & mask
        table[place] = group + 1


@_inlined
def _decimal_length(high: _Integer, low: _Integer) -> _Integer:
    """Return how many bytes a 128-bit number takes, its sign included."""
    low ^= np.int64(_SIGN)
    fill = high >> 63
    length = 16
    while length > 1:
        top = _byte_of(high, low, length - 1)
        below = _byte_of(high, low, length - 2)
        if top != (fill & 255) or (below >> 7) != (fill & 1):
            break
        length -= 1
    return length


@_inlined
def _byte_of(high: _Integer, low: _Integer, place: _Integer) -> _Integer:
    """Return a byte of a 128-bit number, 0 for the lowest."""
    if place >= 8:
        return (high >> (8 * (place - 8))) & 255
    return (low >> (8 * place)) & 255


@_inlined
def _bound_length(cell: Words, side: _Integer, kind: _Integer) -> _Integer:
    """Return the length of a cell's bound, -1 for none."""
    if cell[side] <= 0:
        return -1
    if kind >= TEXT:
        return cell[side + 3] & 0x7FFF_FFFF
    if kind == BIG_DECIMAL:
        return _decimal_length(cell[side + 1], cell[side + 2])
    if kind == UUID:
        return 16
    if kind == BOOL:
        return 1
    return 4 if kind in (INT4, REAL4) else 8


@_compiled
def place_bounds(groups: GroupArrays, order: Words, side: _Integer, offsets: _Offsets, present: Bytes) -> _Integer:
    """Fill in where each bound begins, group by group, and a bit for each that there is; return where the last ends.

    The offsets mean nothing where this is more than they hold.
    """
    columns = groups.cells.shape[1]
    used = 0
    for i in range(order.size):
        for column in range(columns):
            at = i * columns + column
            length = _bound_length(groups.cells[order[i], column], side, groups.kinds[column, 0])
            if length >= 0:
                present[at >> 3] |= np.uint8(1 << (at & 7))
                used += length
            offsets[at + 1] = np.int32(used)
    return used


@_called
def _write_bound(
    kind: _Integer, cell: Words, side: _Integer, arena: Bytes, out: Bytes, at: _Integer, length: _Integer
) -> None:
    """Write one bound."""
    high, low = cell[side + 1], cell[side + 2]
    if kind == UUID or (kind >= TEXT and length <= 16):
        for i in range(length):
            word = (high if i < 8 else low) ^ np.int64(_SIGN)
            out[at + i] = (word >> (56 - 8 * (i & 7))) & 255
    elif kind >= TEXT:
        start = cell[side + 3] >> 31
        _copy_bytes(arena, start, length, out, at)
    elif kind == BIG_DECIMAL:
        for i in range(length):
            out[at + i] = _byte_of(high, low ^ np.int64(_SIGN), length - 1 - i)
    else:
        bits = high
        if kind in (REAL4, REAL4_8):
            bits = high ^ _MAGNITUDE if high < 0 else high
        if kind == REAL4:
            bits = np.int64(np.float32(np.int64(bits).view(np.float64)).view(np.int32))
        for i in range(length):
            out[at + i] = (bits >> (8 * i)) & 255


@_compiled
def write_bounds(groups: GroupArrays, order: Words, side: _Integer, offsets: _Offsets, out: Bytes) -> None:
    """Write all bounds, one behind the other."""
    columns = groups.cells.shape[1]
    for i in range(order.size):
        for column in range(columns):
            at = np.int64(offsets[i * columns + column])
            length = np.int64(offsets[i * columns + column + 1]) - at
            if length > 0:
                kind = groups.kinds[column, 0]
                _write_bound(kind, groups.cells[order[i], column], side, groups.arena, out, at, length)
