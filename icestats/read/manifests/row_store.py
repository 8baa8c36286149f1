"""Captured entries as NumPy arrays, and taken from there as Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.arrays import map_zeros
from icestats.iceberg.types import parse_type, to_arrow_type
from icestats.iceberg.value_order import widen_decimals
from icestats.read.avro.avro_file import Batch
from icestats.read.avro.decoding_program import kernel_error
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Bytes, Words
from icestats.read.manifests.group_store import build_frame

CAPACITY = 16_384
"""Rows that are captured before they become Arrow arrays, at most."""
_CELLS = 1 << 21
_BYTE_SLOTS = (k.FILE_PATH, k.FILE_FORMAT, k.SPLIT_OFFSETS, k.EQUALITY_IDS, k.REFERENCED_DATA_FILE, k.KEY_METADATA)
_BYTE_TYPES = frozenset({"string", "binary", "fixed", "uuid", "decimal"})
_DECIMAL_WIDTH = 16

_Mask = npt.NDArray[np.bool_]


class RowStore:
    """Rows of captured entries.

    Parameters
    ----------
    types : sequence of str or None
        Iceberg's type of each partition field. None: the type is unknown, and the values are null.
    field_ids : sequence of int
        The columns whose metrics are captured.
    capacity : int, optional
        How many rows there is room for.
    """

    def __init__(self, types: Sequence[str | None], field_ids: Sequence[int] = (), capacity: int | None = None) -> None:
        slots = k.PARTITION_FIELDS + len(types)
        if capacity is None:
            capacity = max(64, min(CAPACITY, _CELLS // max(k.METRICS * len(field_ids), slots)))
        texts = [k.PARTITION_FIELDS + i for i, kind in enumerate(types) if _holds_bytes(kind)]
        metrics = (capacity, k.METRICS, len(field_ids))
        self._types = types
        self.frame = build_frame(field_ids, slots)
        self.rows = k.Rows(
            meters=np.zeros(3, np.int64),
            numbers=map_zeros((capacity, slots), np.int64),
            lengths=map_zeros((capacity, slots), np.int64),
            arena=np.zeros(1 << 16, np.uint8),
            copied=np.array([*_BYTE_SLOTS, *texts], np.int64),
            values=map_zeros(metrics, np.int64),
            sizes=map_zeros(metrics, np.int64),
        )

    def __len__(self) -> int:
        return int(self.rows.meters[k.ROWS_USED])

    @property
    def arena_used(self) -> int:
        """How many bytes of paths, bounds and the like there are."""
        return int(self.rows.meters[k.ROWS_ARENA_USED])

    def clear(self) -> None:
        """Forget all rows."""
        self.rows.meters[[k.ROWS_USED, k.ROWS_ARENA_USED]] = 0

    def inherit_row_ids(self, first_row_id: int | None) -> None:
        """Give data files without a first_row_id one from here on; None: the manifest has none."""
        self.rows.meters[k.NEXT_ROW_ID] = -1 if first_row_id is None else first_row_id

    def capture(self, batch: Batch, code: Words, manifest: int, path: str) -> bool:
        """Capture the live entries of a batch, from `frame.state` on; False if rows must be taken away first."""
        self._reserve(len(batch.data))
        result = k.capture_rows(batch.data, batch.blocks, code, self.frame, self.rows, manifest, True)
        if result == k.FAILED:
            raise kernel_error(self.frame, path, batch)
        return bool(result == k.DONE)

    def capture_keys(self, keys: Bytes, count: int, code: Words) -> None:
        """Capture partition values, one behind the other; ValueError where the code is not that of all."""
        self._reserve(len(keys))
        self.frame.state[:] = 0
        blocks = np.array([[0, len(keys), count]], np.int64)
        if k.capture_rows(keys, blocks, code, self.frame, self.rows, 0, False) != k.DONE:
            # A manifest's schema may have several for them.
            raise ValueError("the partitions of a manifest are of another type than its schema has first")

    def slot(self, slot: int) -> tuple[Words, Words]:
        """Return the numbers (or places of bytes) of a slot of all rows, and its lengths (-1: null)."""
        count = len(self)
        return (
            np.ascontiguousarray(self.rows.numbers[:count, slot]),
            np.ascontiguousarray(self.rows.lengths[:count, slot]),
        )

    def partition_values(self) -> list[pa.Array]:
        """Return the partition values of all rows, an array a field; ValueError if a value is not of its type."""
        return [self.array(kind, k.PARTITION_FIELDS + i) for i, kind in enumerate(self._types)]

    def array(self, type_text: str | None, slot: int) -> pa.Array:
        """Return a slot of all rows as an Arrow array; ValueError if a value is not of the Iceberg type."""
        numbers, lengths = self.slot(slot)
        if type_text is None:
            return pa.nulls(len(numbers))
        kind, arrow, nulls = parse_type(type_text), to_arrow_type(type_text), lengths < 0
        if kind.name == "boolean":
            return pa.array(numbers != 0, mask=nulls)
        if kind.name in ("float", "double"):
            return pa.array(numbers.view(np.float64), mask=nulls).cast(arrow, safe=False)
        if kind.name == "decimal":
            return self._decimals(arrow, numbers, lengths)
        if pa.types.is_fixed_size_binary(arrow):
            return self._fixed(arrow, numbers, lengths)
        if kind.name in ("string", "binary"):
            return self.binary(arrow, numbers, lengths)
        try:
            storage = pa.array(np.where(nulls, 0, numbers), mask=nulls)
            return (storage.cast(pa.int32()) if arrow.bit_width == 32 else storage).view(arrow)
        except pa.ArrowInvalid as error:
            raise ValueError(f"a value is too large for type {type_text}") from error

    def binary(self, arrow: pa.DataType, starts: Words, lengths: Words) -> pa.Array:
        """Return strings or binaries that begin at `starts`; ValueError if a string is not UTF-8."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
        if offsets[-1] > 0x7FFF_FFFF:
            raise ValueError(f"values have {offsets[-1]:,} bytes together, more than 2 GiB")
        out: Bytes = np.empty(int(offsets[-1]), np.uint8)
        k.gather_bytes(self.rows.arena, starts, lengths, out)
        buffers = [_validity(lengths < 0), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
        array = pa.Array.from_buffers(arrow, len(starts), buffers)
        if pa.types.is_string(arrow):
            _validate(array, "a string is not UTF-8")
        return array

    def split_paths(self, slot: int) -> dict[str, pa.Array]:
        """Return the folders and the names of a slot of paths, which make them: in less than half the memory."""
        starts, lengths = self.slot(slot)
        slashes = np.flatnonzero(self.rows.arena[: self.arena_used] == ord("/"))
        last = np.append(slashes, -1)[np.searchsorted(slashes, starts + lengths) - 1]
        sizes = np.maximum(last + 1 - starts, 0)
        folders = self.binary(pa.string(), starts, sizes)
        names = self.binary(pa.string(), starts + sizes, lengths - sizes)
        return {"folder": folders.dictionary_encode(), "file_name": names}

    def lists(self, item: pa.DataType, slot: int) -> pa.Array:
        """Return a slot of Avro arrays of numbers as lists; ValueError if a number is not of the type."""
        starts, lengths = self.slot(slot)
        offsets = np.zeros(len(starts) + 1, np.int64)
        # A number takes a byte at least.
        out: Words = np.empty(int(np.maximum(lengths, 0).sum()), np.int64)
        used = k.gather_lists(self.rows.arena, starts, lengths, offsets, out, self.frame)
        try:
            values = pa.array(out[:used]).cast(item)
        except pa.ArrowInvalid as error:
            raise ValueError(f"a value is too large for type {item}") from error
        nulls = np.append(lengths < 0, False)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=nulls), values, type=pa.list_(item))

    def _decimals(self, arrow: pa.DataType, starts: Words, lengths: Words) -> pa.Array:
        nulls = lengths < 0
        wrong = np.flatnonzero(~nulls & ((lengths == 0) | (lengths > _DECIMAL_WIDTH)))
        if wrong.size:
            raise ValueError(f"a decimal has {lengths[wrong[0]]} bytes, expected 1 to {_DECIMAL_WIDTH}")
        wide = widen_decimals(self.rows.arena, starts, lengths)
        # Arrow has the lowest byte first.
        buffers = [_validity(nulls), pa.py_buffer(wide[:, ::-1].tobytes())]
        array = pa.Array.from_buffers(arrow, len(starts), buffers)
        _validate(array, f"a value is too large for type {arrow}")
        return array

    def _fixed(self, arrow: pa.DataType, starts: Words, lengths: Words) -> pa.Array:
        width, nulls = arrow.byte_width, lengths < 0
        wrong = np.flatnonzero(~nulls & (lengths != width))
        if wrong.size:
            raise ValueError(f"a value has {lengths[wrong[0]]} bytes, expected {width}")
        out = np.lib.stride_tricks.sliding_window_view(self.rows.arena, width)[np.where(nulls, 0, starts)]
        return pa.Array.from_buffers(arrow, len(starts), [_validity(nulls), pa.py_buffer(out)])

    def _reserve(self, size: int) -> None:
        used = self.arena_used
        if self.rows.arena.size - used < size:
            arena: Bytes = map_zeros(max(2 * self.rows.arena.size, used + size), np.uint8)
            arena[:used] = self.rows.arena[:used]
            self.rows = self.rows._replace(arena=arena)


def _holds_bytes(type_text: str | None) -> bool:
    return type_text is not None and parse_type(type_text).name in _BYTE_TYPES


def _validity(nulls: _Mask) -> pa.Buffer | None:
    return pa.array(~nulls).buffers()[1] if nulls.any() else None


def _validate(array: pa.Array, otherwise: str) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(otherwise) from error
