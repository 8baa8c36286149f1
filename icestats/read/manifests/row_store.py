"""Captured entries and records as NumPy arrays, and taken from there as Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icestats.iceberg.types import parse_type
from icestats.read.avro.avro_file import Batch, kernel_error
from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.compiling import is_kept
from icestats.read.kernel.kernel_layout import Bytes, Words
from icestats.read.manifests.captured_columns import build_array, build_lists
from icestats.read.manifests.group_store import build_frame

CAPACITY = 16_384
"""Rows that are captured before they become Arrow arrays, at most."""
_CELLS = 1 << 21
_BYTE_SLOTS = (k.FILE_PATH, k.FILE_FORMAT, k.SPLIT_OFFSETS, k.EQUALITY_IDS, k.REFERENCED_DATA_FILE, k.KEY_METADATA)
_BYTE_TYPES = frozenset({"string", "binary", "fixed", "uuid", "decimal"})


class RowStore:
    """Rows of captured entries.

    Parameters
    ----------
    types : sequence of str or None
        Iceberg's type of each further value that is captured, from slot `kernel_layout.PARTITION_FIELDS` on: of a
        manifest's entry its partition fields. None: no value is.
    field_ids : sequence of int
        The columns whose metrics are captured.
    capacity : int, optional
        How many rows there is room for.
    """

    def __init__(self, types: Sequence[str | None], field_ids: Sequence[int] = (), capacity: int | None = None) -> None:
        from icestats.read.kernel.kernel_rows import Rows

        if capacity is None:
            capacity = max(64, min(CAPACITY, _CELLS // (k.METRICS * max(len(field_ids), 1))))
        slots = k.PARTITION_FIELDS + len(types)
        texts = [k.PARTITION_FIELDS + i for i, kind in enumerate(types) if _holds_bytes(kind)]
        metrics = (capacity, k.METRICS, len(field_ids))
        self._types = types
        self.frame = build_frame(field_ids, slots)
        self.rows = Rows(
            meters=np.zeros(3, np.int64),
            numbers=np.zeros((capacity, slots), np.int64),
            lengths=np.zeros((capacity, slots), np.int64),
            arena=np.zeros(1 << 16, np.uint8),
            copied=np.array([*_BYTE_SLOTS, *texts], np.int64),
            values=np.zeros(metrics, np.int64),
            sizes=np.zeros(metrics, np.int64),
        )

    def __len__(self) -> int:
        return int(self.rows.meters[0])

    def clear(self) -> None:
        """Forget all rows."""
        self.rows.meters[:2] = 0

    def capture(self, batch: Batch, code: Words, manifest: int, path: str) -> bool:
        """Capture the live entries of a batch, from `frame.state` on; False if rows must be taken away first."""
        result = self._run(batch.data, batch.blocks, code, manifest, True)
        if result == k.FAILED:
            raise kernel_error(self.frame, path, batch)
        return result == k.DONE

    def capture_records(self, data: Bytes, blocks: Words, code: Words) -> int:
        """Capture records of whatever kind, from `frame.state` on; DONE, FULL or FAILED, as `capture_rows`."""
        return self._run(data, blocks, code, 0, False)

    def capture_keys(self, keys: Bytes, count: int, code: Words) -> None:
        """Capture partition values, one behind the other."""
        self.frame.state[:] = 0
        if self.capture_records(keys, np.array([[0, len(keys), count]], np.int64), code) != k.DONE:
            raise AssertionError("partition values that were decoded before cannot be decoded")

    def is_compiled(self, data: Bytes, blocks: Words, code: Words) -> bool:
        """Say whether records are captured without being compiled first."""
        from icestats.read.kernel.kernel_rows import capture_rows

        return is_kept(capture_rows, data, blocks, code, self.frame, self.rows, 0, False)

    def _run(self, data: Bytes, blocks: Words, code: Words, manifest: int, is_manifest: bool) -> int:
        from icestats.read.kernel.kernel_rows import capture_rows

        self._reserve(len(data))
        return int(capture_rows(data, blocks, code, self.frame, self.rows, manifest, is_manifest))

    def array(self, type_text: str | None, slot: int) -> pa.Array:
        """Return a slot of all rows as an Arrow array; ValueError if a value is not of the type."""
        numbers, lengths = self.slot(slot)
        return build_array(type_text, numbers, lengths, self.rows.arena)

    def slot(self, slot: int) -> tuple[Words, Words]:
        """Return the numbers (or places of bytes) of a slot of all rows, and its lengths (-1: null)."""
        count = len(self)
        return (
            np.ascontiguousarray(self.rows.numbers[:count, slot]),
            np.ascontiguousarray(self.rows.lengths[:count, slot]),
        )

    def lists(self, item: pa.DataType, slot: int) -> pa.Array:
        """Return a slot of Avro arrays of numbers as lists; ValueError if a number is not of the type."""
        starts, lengths = self.slot(slot)
        return build_lists(item, starts, lengths, self.rows.arena, self.frame)

    def inherit_row_ids(self, first_row_id: int | None) -> None:
        """Give data files without a first_row_id one from here on; None: the manifest has none."""
        self.rows.meters[2] = -1 if first_row_id is None else first_row_id

    def values(self) -> list[pa.Array]:
        """Return the further values of all rows; ValueError if a value is not of its type."""
        return [self.array(kind, k.PARTITION_FIELDS + i) for i, kind in enumerate(self._types)]

    def _reserve(self, size: int) -> None:
        used = int(self.rows.meters[1])
        if self.rows.arena.size - used < size:
            arena: Bytes = np.zeros(max(2 * self.rows.arena.size, used + size), np.uint8)
            arena[:used] = self.rows.arena[:used]
            self.rows = self.rows._replace(arena=arena)


def _holds_bytes(type_text: str | None) -> bool:
    return type_text is not None and parse_type(type_text).name in _BYTE_TYPES
