"""What the decoding program, the kernel and its callers agree on: operations, slots, errors, accumulators."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from icestats.read.kernel.compiling import argument

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]
Integer: TypeAlias = Any
"""Compiled, Python's and NumPy's integers are all 64-bit words."""
Flag: TypeAlias = Any
"""True or false, whichever kind of bool."""

# Operations of a decoding program, each with its operands; see avro_program.
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
PUT_COUNT = 20  # metric
PUT_BOUND = 21  # metric
SEEN = 22  # metric

# Slots: what is captured of an entry. A slot's length is -1 for null, and 0 for a number.
METRICS = 6
STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER, CONTENT, FILE_PATH, FILE_FORMAT = range(6, 13)
RECORD_COUNT, FILE_SIZE, SORT_ORDER_ID, SPLIT_OFFSETS, EQUALITY_IDS, REFERENCED_DATA_FILE = range(13, 19)
CONTENT_OFFSET, CONTENT_SIZE, FIRST_ROW_ID, KEY_METADATA, PARTITION, KEY, VALUE, MANIFEST = range(19, 27)
PARTITION_FIELDS = 27

MAX_DEPTH = 16
"""Arrays and maps inside each other, at most."""

ERRORS = {
    1: "a value runs past the end of the block",
    2: "a variable-length number is longer than 64 bits",
    3: "a union has no such branch",
    4: "a length is negative",
    5: "a block of an array or map has more items than bytes are left",
    6: "a status is none of 0 (existing), 1 (added), 2 (deleted)",
    7: "a content is none of 0 (data), 1 (position deletes), 2 (equality deletes)",
    8: "a required field is null",
    9: "a record count or file size is negative",
    10: "bytes are left over behind the block's last entry",
    11: "a sum exceeds 64 bits",
    12: "the sync marker behind a block is not the header's",
}
(
    CUT,
    LONG_VARINT,
    NO_BRANCH,
    NEGATIVE,
    TOO_MANY,
    BAD_STATUS,
    BAD_CONTENT,
    IS_NULL,
    NEGATIVE_COUNT,
    LEFT_OVER,
    OVERFLOW,
) = range(1, 12)
NO_SYNC = 12

# Results of the kernel, and its place in a batch of blocks.
DONE, FULL, FAILED = 0, 1, 2
AT_BLOCK, AT_ENTRY, AT_BYTE, ERROR, ERROR_BYTE = range(5)

# Statuses of entries, a bit each: EXISTING and ADDED, or DELETED.
LIVE, DELETED = 0b011, 0b100

# How the bounds of a column compare; see kernel_bounds.
NO_BOUNDS, BOOL, INT4, LONG4_8, LONG8, DATE_MICROS, DATE_NANOS, REAL4, REAL4_8, BIG_DECIMAL, UUID, TEXT, FIXED_TEXT = (
    range(13)
)

# Columns of Groups.rows.
FILES, RECORDS, SIZE, DATA_FILES, DATA_RECORDS, DATA_SIZE, POSITION_FILES, POSITION_RECORDS = range(8)
EQUALITY_FILES, EQUALITY_RECORDS, VECTORS, UPDATED_MS, UPDATED_BY = range(8, 13)
ROW_WIDTH = 13

# Columns of a cell of Groups.cells: 4 sums, the 4 numbers of files that have them, then for the lower and for the upper
# bound: the number of files that have it, its two words, its reference.
CELL_WIDTH = 16
LOWER, UPPER = 8, 12

# Columns of Frame.values.
VALUE_WIDTH = 8
LOWER_START, LOWER_LENGTH = 4, 6

# Groups.meters.
GROUPS_USED, ARENA_USED, KEYS_USED = range(3)


@argument
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


@argument
class Groups(NamedTuple):
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


@argument
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
