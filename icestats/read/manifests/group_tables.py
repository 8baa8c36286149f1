"""Accumulators -> the Arrow tables of a roll-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS, SUMMED_STATISTICS, partition_groups_schema
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.partition_columns import PartitionColumn, struct_type
from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.kernel_layout import Bytes, Groups, Words
from icestats.read.manifests.group_store import GroupStore
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifest_programs import PartitionVariant
from icestats.read.manifests.row_store import RowStore

_CELLS_A_CHUNK = 1 << 20
_COUNT_PLACES = np.array([0, 4, 1, 5, 2, 6, 3, 7, k.LOWER, k.UPPER], np.int64)
"""Of a cell: each sum before the number of files that have it, then how many have each bound."""


def build_manifest_groups(store: GroupStore, manifests: Sequence[ManifestToRead]) -> pa.Table:
    """Build `schemas.MANIFEST_GROUPS` from the first groups, one a manifest."""
    rows = store.groups.rows[: len(manifests)]
    columns = {
        "manifest_path": [m.path for m in manifests],
        "live_file_count": rows[:, k.FILES],
        "record_count": rows[:, k.RECORDS],
        "file_size_in_bytes": rows[:, k.SIZE],
        "position_delete_file_count": rows[:, k.POSITION_FILES],
        "equality_delete_file_count": rows[:, k.EQUALITY_FILES],
        "dv_count": rows[:, k.VECTORS],
    }
    return pa.Table.from_pydict(columns, MANIFEST_GROUPS)


def build_partition_groups(store: GroupStore, order: Words, partitions: pa.StructArray, spec_ids: Words) -> pa.Table:
    """Build `schemas.partition_groups_schema` from the groups in `order`, one a partition."""
    rows = store.groups.rows[order]
    unknown = rows[:, k.UPDATED_MS] < 0
    columns = {
        "partition": partitions,
        "spec_id": pa.array(spec_ids.astype(np.int32)),
        "data_record_count": rows[:, k.DATA_RECORDS],
        "data_file_count": rows[:, k.DATA_FILES],
        "total_data_file_size_in_bytes": rows[:, k.DATA_SIZE],
        "position_delete_record_count": rows[:, k.POSITION_RECORDS],
        "position_delete_file_count": rows[:, k.POSITION_FILES],
        "equality_delete_record_count": rows[:, k.EQUALITY_RECORDS],
        "equality_delete_file_count": rows[:, k.EQUALITY_FILES],
        "total_record_count": pa.nulls(len(order), pa.int64()),
        "last_updated_at": pa.array(rows[:, k.UPDATED_MS], mask=unknown).cast(pa.timestamp("ms", tz="UTC")),
        "last_updated_snapshot_id": pa.array(rows[:, k.UPDATED_BY], mask=unknown),
        "dv_count": rows[:, k.VECTORS],
    }
    return pa.Table.from_pydict(columns, partition_groups_schema(partitions.type))


def build_cells(store: GroupStore, order: Words, columns: Sequence[Field], pool: Executor) -> Callable[[], pa.Table]:
    """Begin to build `schemas.ROLLUP_CELLS`: every column, for each group of `order` in turn; the result waits for it.

    It waits for other work of `pool`: a thread of that must not call it.
    """
    field_ids = np.array([c.field_id for c in columns], np.int32)
    step = max(1, _CELLS_A_CHUNK // max(len(columns), 1))
    parts = [_begin_batch(store.groups, order[i : i + step], field_ids, pool) for i in range(0, len(order), step)]
    return lambda: pa.Table.from_batches([finish() for finish in parts], ROLLUP_CELLS)


def _begin_batch(
    groups: Groups, order: Words, field_ids: npt.NDArray[np.int32], pool: Executor
) -> Callable[[], pa.RecordBatch]:
    counts = [pool.submit(_counts, groups, order, places) for places in np.split(_COUNT_PLACES, 2)]
    bounds = [pool.submit(_bounds, groups, order, side) for side in (k.LOWER, k.UPPER)]

    def finish() -> pa.RecordBatch:
        columns = iter([column for half in counts for column in half.result()])
        arrays: list[pa.Array] = [pa.array(np.tile(field_ids, len(order)))]
        arrays += [pa.array(next(columns)) for _ in range(2 * len(SUMMED_STATISTICS))]
        for side in bounds:
            arrays += [side.result(), pa.array(next(columns))]
        arrays.append(pa.array(groups.valueless[order].ravel()))
        return pa.RecordBatch.from_arrays(arrays, schema=ROLLUP_CELLS)

    return finish


def _counts(groups: Groups, order: Words, places: Words) -> Words:
    from icestats.read.kernel.kernel_output import write_counts

    counts: Words = np.empty((len(places), len(order) * groups.cells.shape[1]), np.int64)
    write_counts(groups, order, places, counts)
    return counts


def _bounds(groups: Groups, order: Words, side: int) -> pa.Array:
    from icestats.read.kernel.kernel_output import place_bounds, write_bounds

    count = len(order) * groups.cells.shape[1]
    offsets, present = np.zeros(count + 1, np.int32), np.zeros(-(-count // 8), np.uint8)
    size = place_bounds(groups, order, side, offsets, present)
    if size > 0x7FFF_FFFF:
        raise UnsupportedError(f"the bounds of {count:,} cells have {size:,} bytes, more than 2 GiB")
    out: Bytes = np.empty(size, np.uint8)
    write_bounds(groups, order, side, offsets, out)
    return pa.Array.from_buffers(pa.binary(), count, [pa.py_buffer(part) for part in (present, offsets, out)])


def merge_all(store: GroupStore, order: Words) -> GroupStore:
    """Merge groups into a store of one group."""
    from icestats.read.kernel.kernel_groups import find_group
    from icestats.read.kernel.kernel_merge import merge_pairs

    needed = 2 * int(store.groups.meters[k.ARENA_USED]) + 1
    whole = GroupStore(store.groups.kinds, 1, needed)
    nothing = np.zeros(0, np.uint8)
    find_group(whole.groups, 0, nothing, 0, 0)
    pairs = np.stack([np.zeros_like(order), order], axis=1)
    if merge_pairs(whole.groups, store.groups, pairs) < 0:
        raise OverflowError(k.ERRORS[k.OVERFLOW])
    return whole


def decode_partitions(
    groups: Groups, numbers: Words, variant: PartitionVariant, columns: Sequence[PartitionColumn]
) -> list[pa.Array]:
    """Decode the keys of partition groups: one array a partition field."""
    from icestats.read.kernel.kernel_rows import gather_bytes

    starts, lengths = (np.ascontiguousarray(groups.keys[numbers, i]) for i in range(2))
    keys: Bytes = np.empty(int(lengths.sum()), np.uint8)
    gather_bytes(groups.key_arena, starts, lengths, keys)
    rows = RowStore([column.type for column in columns], capacity=len(numbers))
    rows.capture_keys(keys, len(numbers), variant.code)
    return rows.values()


def struct_array(columns: Sequence[PartitionColumn], arrays: Sequence[pa.Array], length: int) -> pa.StructArray:
    """Put the arrays of partition fields together."""
    kind = struct_type(columns)
    if not length:
        return pa.nulls(0, kind)
    if not columns:
        return pa.Array.from_buffers(kind, length, [None])
    return pa.StructArray.from_arrays(list(arrays), fields=list(kind))
