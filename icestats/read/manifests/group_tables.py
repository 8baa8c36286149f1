"""Accumulators -> the Arrow tables of a roll-up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS, SUMMED_STATISTICS, partition_groups_schema
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.partition_columns import PartitionColumn, struct_type
from icestats.iceberg.value_order import rank_values
from icestats.read.avro.decoding_program import ERRORS
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Bytes, GroupArrays, Words
from icestats.read.manifests.group_store import GroupStore, partition_tag
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifest_programs import PartitionVariant
from icestats.read.manifests.row_store import RowStore

_CELLS_A_CHUNK = 1 << 20


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


def build_cells(store: GroupStore, order: Words, columns: Sequence[Field]) -> pa.Table:
    """Build `schemas.ROLLUP_CELLS`: every column, for each group of `order` in turn."""
    field_ids = np.array([c.field_id for c in columns], np.int32)
    step = max(1, _CELLS_A_CHUNK // max(len(columns), 1))
    parts = [_build_batch(store.groups, order[i : i + step], field_ids) for i in range(0, len(order), step)]
    return pa.Table.from_batches(parts, ROLLUP_CELLS)


def _build_batch(groups: GroupArrays, order: Words, field_ids: npt.NDArray[np.int32]) -> pa.RecordBatch:
    def column(place: int) -> pa.Array:
        return pa.array(groups.cells[order, :, place].ravel())

    columns = [pa.array(np.tile(field_ids, len(order)))]
    for metric in range(len(SUMMED_STATISTICS)):
        columns += [column(metric), column(len(SUMMED_STATISTICS) + metric)]
    for side in (k.LOWER, k.UPPER):
        columns += [_bounds(groups, order, side), column(side)]
    columns.append(pa.array(groups.valueless[order].ravel()))
    return pa.RecordBatch.from_arrays(columns, schema=ROLLUP_CELLS)


def _bounds(groups: GroupArrays, order: Words, side: int) -> pa.Array:
    count = len(order) * groups.cells.shape[1]
    offsets, present = np.zeros(count + 1, np.int32), np.zeros(-(-count // 8), np.uint8)
    size = k.place_bounds(groups, order, side, offsets, present)
    if size > 0x7FFF_FFFF:
        raise UnsupportedError(f"the bounds of {count:,} cells have {size:,} bytes, more than 2 GiB")
    out: Bytes = np.empty(size, np.uint8)
    k.write_bounds(groups, order, side, offsets, out)
    return pa.Array.from_buffers(pa.binary(), count, [pa.py_buffer(part) for part in (present, offsets, out)])


def merge_all(store: GroupStore, order: Words) -> GroupStore:
    """Merge groups into a store of one group."""
    needed = 2 * int(store.groups.meters[k.ARENA_USED]) + 1
    whole = GroupStore(store.groups.kinds, 1, needed)
    whole.make_groups([0])
    pairs = np.stack([np.zeros_like(order), order], axis=1)
    if k.merge_pairs(whole.groups, store.groups, pairs) < 0:
        raise OverflowError(ERRORS[k.OVERFLOW])
    return whole


def _decode_partitions(
    groups: GroupArrays, numbers: Words, variant: PartitionVariant, columns: Sequence[PartitionColumn]
) -> list[pa.Array]:
    """Decode the keys of partition groups: one array a partition field."""
    starts, lengths = (np.ascontiguousarray(groups.keys[numbers, i]) for i in range(2))
    keys: Bytes = np.empty(int(lengths.sum()), np.uint8)
    k.gather_bytes(groups.key_arena, starts, lengths, keys)
    rows = RowStore([column.type for column in columns], capacity=len(numbers))
    rows.capture_keys(keys, len(numbers), variant.code)
    return rows.partition_values()


def struct_array(columns: Sequence[PartitionColumn], arrays: Sequence[pa.Array], length: int) -> pa.StructArray:
    """Put the arrays of partition fields together."""
    kind = struct_type(columns)
    if not length:
        return pa.nulls(0, kind)
    if not columns:
        return pa.Array.from_buffers(kind, length, [None])
    return pa.StructArray.from_arrays(list(arrays), fields=list(kind))


def merge_repeated_partitions(
    store: GroupStore, variants: Sequence[PartitionVariant], columns: Sequence[PartitionColumn]
) -> tuple[Words, list[pa.Array], Words]:
    """Merge groups that are the same partition of the same spec, and sort: nulls first, then by spec.

    Returns
    -------
    order : numpy.ndarray of int64
        The group of each partition.
    arrays : list of pyarrow.Array
        Its values, one array a partition field.
    spec_ids : numpy.ndarray of int64
        Its spec.
    """
    groups, arrays, spec_ids = _decode_all(store, variants, columns)
    if not len(groups):
        return groups, arrays, spec_ids
    ranks = np.stack([*(rank_values(array) for array in arrays), spec_ids])
    order = np.lexsort(ranks[::-1])
    ranks = ranks[:, order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (ranks[:, 1:] != ranks[:, :-1]).any(axis=0)
    _merge_repeated(store, groups[order], first)
    kept = order[first]
    indices = pa.array(kept)
    return groups[kept], [array.take(indices) for array in arrays], spec_ids[kept]


def _decode_all(
    store: GroupStore, variants: Sequence[PartitionVariant], columns: Sequence[PartitionColumn]
) -> tuple[Words, list[pa.Array], Words]:
    tags = store.groups.tags[: len(store)]
    numbers = [np.flatnonzero(tags == partition_tag(i)) for i in range(len(variants))]
    store.check_values(list(map(len, numbers)), len(columns))
    parts = [
        _decode_partitions(store.groups, found, variant, columns)
        for found, variant in zip(numbers, variants, strict=True)
    ]
    arrays = [pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True)]
    groups = np.concatenate([np.zeros(0, np.int64), *numbers])
    spec_ids = np.repeat(np.array([v.spec_id for v in variants], np.int64), [len(found) for found in numbers])
    return groups, arrays, spec_ids


def _merge_repeated(store: GroupStore, groups: Words, first: np.ndarray) -> None:
    repeated = np.flatnonzero(~first)
    if not repeated.size:
        return
    heads = np.flatnonzero(first)
    targets = groups[heads[np.searchsorted(heads, repeated, side="right") - 1]]
    store.reserve(0, 0, int(store.groups.meters[k.ARENA_USED]))
    if k.merge_pairs(store.groups, store.groups, np.stack([targets, groups[repeated]], axis=1)) < 0:
        raise OverflowError(ERRORS[k.OVERFLOW])
