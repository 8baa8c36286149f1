"""Accumulators of groups of files as NumPy arrays that grow: one set a thread, one for the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from icestats.answers.arrays import map_zeros
from icestats.answers.text import render_bytes
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Bytes, Frame, GroupArrays, Words

_Number = TypeVar("_Number", np.int64, np.uint8)
LOCAL_SIZE = 16 << 20
"""How large the accumulators of one thread are, in bytes: full ones are merged into the table's."""
LOCAL_GROUPS = 16
"""They have room for this many groups at least, however many columns there are."""
_WHOLE_SIZE = 512 << 20
"""How large the table's accumulators are at first, in bytes of address space: memory is taken as groups are made."""
WHOLE_GROUPS = 1 << 16
"""They have room for this many groups at most, however few columns there are."""
MAX_SIZE = 4 << 30
"""How large accumulators get at most, in bytes: that of 30,000 partitions of 1,000 columns."""
_VALUE_SIZE = 32
"""What a partition's value of a field takes, null or not, in bytes: read, in Arrow, and while partitions are sorted."""
_LEAST_VALUES = 64
"""It takes as long to read so many of one layout as one."""
ARENA_SIZE = 1 << 20
"""How many bytes there are at first for bounds that are longer than two words."""
_LOOKUP_SIZE = 1 << 16
_BOUND_KINDS = {
    "boolean": k.BOOL,
    "int": k.INT4,
    "date": k.INT4,
    "long": k.LONG4_8,
    "time": k.LONG8,
    "timestamptz": k.LONG8,
    "timestamptz_ns": k.LONG8,
    "timestamp": k.DATE_MICROS,
    "timestamp_ns": k.DATE_NANOS,
    "float": k.REAL4,
    "double": k.REAL4_8,
    "decimal": k.BIG_DECIMAL,
    "uuid": k.UUID,
    "string": k.TEXT,
    "binary": k.TEXT,
    "fixed": k.FIXED_TEXT,
}


def manifest_tag(index: int) -> int:
    """Return the tag of a manifest's group."""
    return 2 * index + 1


def partition_tag(variant: int) -> int:
    """Return the tag of the groups of a layout of partition values; their keys are these values."""
    return 2 * variant


def build_kinds(columns: Sequence[Field]) -> Words:
    """Return for each column how its bounds compare, and the length that they may have."""
    return np.array([_kind(column.type) for column in columns], np.int64).reshape(-1, 2)


def _kind(type_text: str) -> tuple[int, int]:
    try:
        found = parse_type(type_text)
    except ValueError:
        # A type of a later spec: its order is unknown.
        return k.NO_BOUNDS, 0
    return _BOUND_KINDS.get(found.name, k.NO_BOUNDS), found.length


def build_frame(field_ids: Sequence[int], slot_count: int) -> Frame:
    """Return the kernel's working memory for the metrics of some columns."""
    small = [(column, i) for column, i in enumerate(field_ids) if 0 <= i < _LOOKUP_SIZE]
    lookup = np.full(max((i for _, i in small), default=-1) + 1, -1, np.int64)
    for column, field_id in small:
        lookup[field_id] = column
    sparse = sorted((i, column) for column, i in enumerate(field_ids) if not 0 <= i < _LOOKUP_SIZE)
    size = len(field_ids)
    return Frame(
        slots=np.zeros(slot_count, np.int64),
        lengths=np.full(slot_count, -1, np.int64),
        flags=np.zeros(size, np.uint8),
        values=np.zeros((size, k.VALUE_WIDTH), np.int64),
        lookup=lookup,
        sparse_ids=np.array([i for i, _ in sparse], np.int64),
        sparse_columns=np.array([c for _, c in sparse], np.int64),
        stack=np.zeros(k.MAX_DEPTH, np.int64),
        state=np.zeros(5, np.int64),
    )


class GroupStore:
    """Accumulators of groups.

    Parameters
    ----------
    kinds : numpy.ndarray
        Of `build_kinds`.
    capacity : int
        How many groups there is room for.
    arena_size : int, optional
        How many bytes of bounds there is room for.
    most_bytes : int, optional
        How large they get at most, where that is less than `MAX_SIZE`.

    Raises
    ------
    UnsupportedError
        They are larger than that, now or as they grow.
    """

    def __init__(
        self, kinds: Words, capacity: int, arena_size: int | None = None, most_bytes: int | None = None
    ) -> None:
        self._most_bytes = MAX_SIZE if most_bytes is None else min(MAX_SIZE, most_bytes)
        _check_size(capacity, kinds, self._most_bytes)
        self.groups = GroupArrays(
            meters=np.zeros(3, np.int64),
            rows=map_zeros((capacity, k.ROW_WIDTH), np.int64),
            cells=map_zeros((capacity, len(kinds), k.CELL_WIDTH), np.int64),
            valueless=map_zeros((capacity, len(kinds)), np.int64),
            kinds=kinds,
            arena=map_zeros(arena_size or ARENA_SIZE, np.uint8),
            tags=np.zeros(capacity, np.int64),
            keys=np.zeros((capacity, 2), np.int64),
            key_arena=map_zeros(64 * capacity, np.uint8),
            table=map_zeros(_table_size(capacity), np.int64),
        )

    @classmethod
    def local(cls, kinds: Words) -> GroupStore:
        """Return the accumulators of one thread: as many groups as `LOCAL_SIZE` holds."""
        return cls(kinds, max(LOCAL_GROUPS, LOCAL_SIZE // _group_size(kinds)))

    @classmethod
    def whole(cls, kinds: Words, least: int, most_bytes: int | None = None) -> GroupStore:
        """Return the accumulators of a table: room for so many groups at least."""
        return cls(kinds, max(least, min(WHOLE_GROUPS, _WHOLE_SIZE // _group_size(kinds))), most_bytes=most_bytes)

    def __len__(self) -> int:
        return int(self.groups.meters[k.GROUPS_USED])

    def check_values(self, group_counts: Sequence[int], field_count: int) -> None:
        """Raise UnsupportedError where groups, by layout, have more partition values than there is room for."""
        values = field_count * sum(max(count, _LEAST_VALUES) for count in group_counts)
        if _VALUE_SIZE * values > self._most_bytes:
            raise UnsupportedError(
                f"the values of {sum(group_counts):,} partitions by {field_count:,} partition fields of all specs take "
                f"more than {render_bytes(self._most_bytes)}: ask files() in place of these, with a filter"
            )

    def make_groups(self, tags: Sequence[int]) -> None:
        """Make groups that have a tag and no key, for which there is room."""
        k.make_groups(self.groups, np.array(tags, np.int64), np.zeros(0, np.uint8))

    def reserve_bytes(self, size: int) -> None:
        """Make room for bounds and a key of `size` bytes, in accumulators that are empty or have it."""
        groups = self.groups
        if groups.arena.size < size:
            self.groups = groups = groups._replace(arena=_grown(groups.arena, size))
        if groups.key_arena.size < size:
            self.groups = groups._replace(key_arena=_grown(groups.key_arena, size))

    def absorb(self, other: GroupStore) -> bool:
        """Add all groups of another store; False where a sum has run over 64 bits."""
        more = len(other)
        if len(self) + more > self.groups.tags.size:
            more = k.count_new_groups(self.groups, other.groups)
        # A bound is copied for each group that it wins in: manifest and partition.
        self.reserve(more, int(other.groups.meters[k.KEYS_USED]), 2 * int(other.groups.meters[k.ARENA_USED]))
        return bool(k.merge_groups(self.groups, other.groups) >= 0)

    def has_more_text(self, most_bytes: int) -> bool:
        """Return whether bounds and keys have more bytes together than these."""
        keys = int(self.groups.meters[k.KEYS_USED])
        used = keys + int(self.groups.meters[k.ARENA_USED])
        return used > most_bytes and keys + _live_size(self.groups) > most_bytes

    def clear(self) -> None:
        """Forget all groups."""
        groups, used = self.groups, len(self)
        for array in (groups.cells, groups.valueless, groups.rows):
            array[:used] = 0
        groups.table[:] = 0
        groups.meters[:] = 0

    def reserve(self, group_count: int, key_size: int, arena_size: int) -> None:
        """Make room for so many more groups, bytes of keys and bytes of bounds."""
        groups = self.groups
        needed = len(self) + group_count
        if needed > groups.tags.size:
            _check_size(needed, groups.kinds, self._most_bytes)
            capacity = max(needed, min(2 * groups.tags.size, self._most_bytes // _group_size(groups.kinds)))
            table = np.zeros(_table_size(capacity), np.int64)
            groups = groups._replace(
                rows=_grown(groups.rows, capacity),
                cells=_grown(groups.cells, capacity),
                valueless=_grown(groups.valueless, capacity),
                tags=_grown(groups.tags, capacity),
                keys=_grown(groups.keys, capacity),
                table=table,
            )
            k.refill_table(groups, table)
        keys = int(groups.meters[k.KEYS_USED]) + key_size
        if keys > groups.key_arena.size:
            groups = groups._replace(key_arena=_grown(groups.key_arena, 2 * keys))
        if groups.meters[k.ARENA_USED] + arena_size > groups.arena.size:
            arena: Bytes = np.empty(2 * (_live_size(groups) + arena_size), np.uint8)
            groups.meters[k.ARENA_USED] = k.move_arena(groups, arena)
            groups = groups._replace(arena=arena)
        self.groups = groups


def _live_size(groups: GroupArrays) -> int:
    """Return how many bytes of the arena are still referred to; shared ones count once a reference."""
    sizes = groups.cells[: groups.meters[k.GROUPS_USED], :, [k.LOWER + 3, k.UPPER + 3]] & 0x7FFF_FFFF
    return int(sizes[sizes > 16].sum())


def _group_size(kinds: Words) -> int:
    return 8 * ((k.CELL_WIDTH + 1) * len(kinds) + k.ROW_WIDTH)


def _check_size(capacity: int, kinds: Words, most_bytes: int) -> None:
    size = capacity * _group_size(kinds)
    if size > most_bytes:
        raise UnsupportedError(
            f"the statistics of {capacity:,} or more manifests and partitions by {len(kinds):,} columns take more than "
            f"{render_bytes(most_bytes)}: ask files() in place of these, which has a row a file"
        )


def _table_size(capacity: int) -> int:
    return 1 << (2 * capacity).bit_length()


def _grown(array: npt.NDArray[_Number], size: int) -> npt.NDArray[_Number]:
    grown = map_zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
