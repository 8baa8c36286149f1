"""Sketches by partition, as they have been committed: the index first, then the partitions that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icestats.errors import StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader
from icestats.read.puffin.puffin import damage_at
from icestats.read.puffin.statistics_files import (
    PARTITION_SKETCHES,
    CommittedBlob,
    CommittedKll,
    check_unit,
    find_nearest,
)
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import (
    HEAD_SIZE_BYTES,
    PartitionEntry,
    PartitionIndex,
    find_spans,
    parse_index,
    parse_index_size,
    split_sketches,
)
from icestats.stats.table_statistics import PartitionKey
from icestats.stats.theta import ThetaSketch

_READ_AHEAD_BYTES = 64 << 10
_GAP_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class CommittedPartitions:
    """The index of a column's committed sketches by partition."""

    index: PartitionIndex
    snapshot_id: int
    """The snapshot whose live rows the sketches describe."""
    commits_behind: int
    statistics_path: str
    body_offset: int
    """Where the sketches begin: bytes from the beginning of the file."""


@dataclass(frozen=True, slots=True)
class MergedSketches:
    """The sketches of some partitions, merged, and their exact figures together."""

    theta: ThetaSketch
    """Distinct values; exact where `theta.is_exact`, else within `theta.relative_error` at 95 %."""
    kll: KllSketch | None
    """The distribution, ranks within `kll.rank_error` at 99 %; None for types that have none."""
    value_count: int
    """Live rows, nulls and NaN among them."""
    null_count: int
    nan_count: int
    partition_count: int
    partial_partition_count: int
    """Partitions of which the filter selects some rows but maybe not all: with 0 everything above is of exactly the
    rows that the filter selects, else of more rows."""
    snapshot_id: int
    """The snapshot whose live rows they describe."""
    commits_behind: int
    """Commits from there to the snapshot that was loaded."""


def read_partition_index(storage: FileReader, blobs: Sequence[CommittedBlob], field: Field) -> CommittedPartitions:
    """Read which partitions have sketches of a column, from the nearest committed blob.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    blobs : sequence of CommittedBlob
        The table's blobs, as `read_committed_blobs` gives them.
    field : Field
        The column.

    Raises
    ------
    StatisticsMissingError
        No sketches by partition have been committed for the snapshot or an ancestor of it.
    PuffinFormatError
        The blob is damaged.
    """
    found = find_nearest(blobs, PARTITION_SKETCHES, field)
    blob, path = found.blob, found.statistics_path
    with damage_at(path, blob.offset, f"column {field.name!r}"):
        if blob.compression_codec is not None:
            raise ValueError(f"the blob has the codec {blob.compression_codec!r}, expected none")
        head = storage.read(path, blob.offset, min(blob.length, _READ_AHEAD_BYTES))
        size = parse_index_size(head)
        begin, end = HEAD_SIZE_BYTES, HEAD_SIZE_BYTES + size
        if end > blob.length:
            raise ValueError(f"an index of {size} bytes in a blob of {blob.length}")
        stored = head[begin:end] if end <= len(head) else storage.read(path, blob.offset + begin, size)
        index = parse_index(stored, blob.length - end)
        if index.field_id != field.field_id:
            raise ValueError(f"the sketches are of field {index.field_id}, expected {field.field_id}")
    check_unit(field, index.type)
    return CommittedPartitions(index, blob.snapshot_id, found.commits_behind, path, blob.offset + end)


def read_merged_sketches(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry], partial_count: int = 0
) -> MergedSketches:
    """Read and merge the sketches of some partitions.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    committed : CommittedPartitions
        The index that the partitions are of.
    entries : sequence of PartitionEntry
        The partitions; none give empty sketches.
    partial_count : int
        Passed on as `partial_partition_count`.

    Raises
    ------
    PuffinFormatError
        A sketch is damaged.
    """
    index = committed.index
    theta = ThetaSketch(index.lg_k)
    kll = None if index.item_type is None else KllSketch(index.item_type, index.k)
    for entry, stored in _read_each(storage, committed, entries):
        with damage_at(committed.statistics_path, committed.body_offset + entry.offset, "a partition's sketches"):
            theta_bytes, kll_bytes = split_sketches(entry, stored)
            theta.merge(ThetaSketch.from_bytes(theta_bytes, theta.lg_k))
            if kll is not None and kll_bytes is not None:
                kll.merge(KllSketch.from_bytes(kll.item_type, kll_bytes))
    return MergedSketches(
        theta=theta,
        kll=kll,
        value_count=sum(entry.value_count for entry in entries),
        null_count=sum(entry.null_value_count for entry in entries),
        nan_count=sum(entry.nan_value_count for entry in entries),
        partition_count=len(entries),
        partial_partition_count=partial_count,
        snapshot_id=committed.snapshot_id,
        commits_behind=committed.commits_behind,
    )


def read_kll_by_partition(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry]
) -> dict[PartitionKey, KllSketch]:
    """Read the KLL sketches of some partitions, each by itself.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    committed : CommittedPartitions
        The index that the partitions are of.
    entries : sequence of PartitionEntry
        The partitions.

    Raises
    ------
    PuffinFormatError
        A sketch is damaged.
    """
    found: dict[PartitionKey, KllSketch] = {}
    item_type = committed.index.item_type
    for entry, stored in _read_each(storage, committed, entries):
        with damage_at(committed.statistics_path, committed.body_offset + entry.offset, "a partition's sketches"):
            _, kll_bytes = split_sketches(entry, stored)
            if kll_bytes is not None and item_type is not None:
                found[entry.key] = KllSketch.from_bytes(item_type, kll_bytes)
    return found


def _read_each(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry]
) -> Iterator[tuple[PartitionEntry, bytes]]:
    """Yield the partitions and their sketches as they are stored; those that lie together are read at once."""
    for begin, end, span in find_spans(entries, _GAP_BYTES):
        data = storage.read(committed.statistics_path, committed.body_offset + begin, end - begin)
        for entry in span:
            yield entry, data[entry.offset - begin : entry.end - begin]


def partitions_kll(field: Field, merged: MergedSketches) -> CommittedKll:
    """Return the KLL sketch of some partitions in the form of a table's.

    Raises
    ------
    StatisticsMissingError
        The column's type has none.
    """
    if merged.kll is None:
        raise StatisticsMissingError(
            f"column {field.name!r} of type {field.type} has no KLL sketch: no order to rank by"
        )
    return CommittedKll(
        sketch=merged.kll,
        snapshot_id=merged.snapshot_id,
        commits_behind=merged.commits_behind,
        null_count=merged.null_count,
        nan_count=merged.nan_count,
    )
