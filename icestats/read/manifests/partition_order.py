"""Partition groups -> one row a partition: layouts put together, equal partitions merged, sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.value_order import rank_values
from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.kernel_layout import Words
from icestats.read.manifests.group_store import GroupStore
from icestats.read.manifests.group_tables import decode_partitions
from icestats.read.manifests.manifest_programs import PartitionVariant


def merge_partitions(
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
    numbers = [np.flatnonzero(tags == 2 * i) for i in range(len(variants))]
    parts = [
        decode_partitions(store.groups, found, variant, columns)
        for found, variant in zip(numbers, variants, strict=True)
    ]
    arrays = [pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True)]
    groups = np.concatenate([np.zeros(0, np.int64), *numbers])
    spec_ids = np.repeat(np.array([v.spec_id for v in variants], np.int64), [len(found) for found in numbers])
    return groups, arrays, spec_ids


def _merge_repeated(store: GroupStore, groups: Words, first: np.ndarray) -> None:
    from icestats.read.kernel.kernel_merge import merge_pairs

    repeated = np.flatnonzero(~first)
    if not repeated.size:
        return
    heads = np.flatnonzero(first)
    targets = groups[heads[np.searchsorted(heads, repeated, side="right") - 1]]
    store.reserve_merge()
    if merge_pairs(store.groups, store.groups, np.stack([targets, groups[repeated]], axis=1)) < 0:
        raise OverflowError(k.ERRORS[k.OVERFLOW])
