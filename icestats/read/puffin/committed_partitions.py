"""Sketches by partition, as they have been committed: the index first, then the partitions that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from icestats.errors import PuffinFormatError, StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader, expanded_limit
from icestats.iceberg.summary import parse_count
from icestats.iceberg.types import decode_value
from icestats.read.puffin.committed_sketches import (
    CommittedFrequentValues,
    CommittedKll,
    check_items,
    check_unit,
    find_nearest,
)
from icestats.read.puffin.puffin import damage_at
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES, CommittedBlobs
from icestats.stats.frequent_items import FrequentItems, FrequentValues, read_frequent_values
from icestats.stats.kll import KllSketch, merge_parts
from icestats.stats.partition_sketches import (
    HEAD_SIZE_BYTES,
    MAX_SIZE_BYTES,
    PartitionEntry,
    PartitionIndex,
    expanded_size,
    find_spans,
    parse_index,
    parse_index_size,
    split_items,
    split_sketches,
)
from icestats.stats.table_statistics import ColumnStatistics, PartitionKey
from icestats.stats.theta import ThetaSketch

_READ_AHEAD_BYTES = 64 << 10
_GAP_BYTES = 64 << 10
FREE_SKETCHES_BYTES = 256 << 20
"""Sketches of partitions that are read together may expand to so much, or to more by their length: `expanded_limit`."""


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
    max_size_bytes: int | None
    """The limit that was asked for when they were made; None: none was."""


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

    @property
    def ndv(self) -> int:
        """The number of distinct values, null aside, at most the number of values; no empty string is counted."""
        return min(self.theta.ndv, self.value_count - self.null_count)


def read_partition_index(storage: FileReader, blobs: CommittedBlobs, field: Field) -> CommittedPartitions:
    """Read which partitions have sketches of a column, from the nearest committed blob.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    blobs : CommittedBlobs
        The table's blobs, as `read_committed_blobs` gives them.
    field : Field
        The column.

    Raises
    ------
    StatisticsMissingError
        No sketches by partition have been committed for the snapshot or an ancestor of it, or those of other items
        than the column's.
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
    check_items(field, index.item_type)
    limit = parse_count(blob.properties.get(MAX_SIZE_BYTES))
    return CommittedPartitions(index, blob.snapshot_id, found.commits_behind or 0, path, blob.offset + end, limit)


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
    parts: list[KllSketch] = []
    for entry, stored in _read_each(storage, committed, entries):
        with damage_at(committed.statistics_path, committed.body_offset + entry.offset, "a partition's sketches"):
            theta_bytes, kll_bytes = split_sketches(entry, stored)
            theta.merge(ThetaSketch.from_bytes(theta_bytes, theta.lg_k))
            if index.item_type is not None and kll_bytes is not None:
                parts.append(_parse_kll(index.item_type, entry, kll_bytes))
    return MergedSketches(
        theta=theta,
        kll=None if index.item_type is None else merge_parts(index.item_type, parts),
        value_count=sum(entry.figures.value_count for entry in entries),
        null_count=sum(entry.figures.null_value_count for entry in entries),
        nan_count=sum(entry.figures.nan_value_count for entry in entries),
        partition_count=len(entries),
        partial_partition_count=partial_count,
        snapshot_id=committed.snapshot_id,
        commits_behind=committed.commits_behind,
    )


def _parse_kll(item_type: str, entry: PartitionEntry, data: bytes) -> KllSketch:
    sketch = KllSketch.from_bytes(item_type, data)
    figures = entry.figures
    expected = figures.filled_count
    if sketch.n != expected:
        raise ValueError(f"a KLL sketch of {sketch.n:,} values, expected {expected:,}")
    return sketch


def read_partitioned_column(
    storage: FileReader, committed: CommittedPartitions
) -> dict[PartitionKey, ColumnStatistics]:
    """Read all that is committed of a column by partition.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    committed : CommittedPartitions
        The index.

    Returns
    -------
    dict of PartitionKey to ColumnStatistics
        As they were written: without sketches, and with counts only, where sketches were left out to save space.

    Raises
    ------
    PuffinFormatError
        A sketch or a bound is damaged.
    """
    index = committed.index
    found = {entry.key: entry.figures for entry in index.partitions}
    sketched = [entry for entry in index.partitions if entry.has_sketches]
    for entry, stored in _read_each(storage, committed, sketched):
        with damage_at(committed.statistics_path, committed.body_offset + entry.offset, "a partition's sketches"):
            theta, kll = split_sketches(entry, stored)
            items, _ = split_items(index, entry, stored)
            ThetaSketch.from_bytes(theta)
            k = None if kll is None or index.item_type is None else _parse_kll(index.item_type, entry, kll).k
            if k != (None if index.item_type is None else index.k):
                raise ValueError(f"a KLL sketch of k {k}, expected {index.k}")
            for bound in (entry.figures.min_value, entry.figures.max_value):
                if bound is not None:
                    decode_value(index.type, bound)
        found[entry.key] = replace(entry.figures, theta=theta, kll=kll, frequent_items=items, lg_k=index.lg_k)
    return found


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
                found[entry.key] = _parse_kll(item_type, entry, kll_bytes)
    return found


def read_items_by_partition(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry]
) -> dict[PartitionKey, FrequentValues]:
    """Read the common values of some partitions, each by itself; those without any are left out.

    Parameters
    ----------
    storage, committed, entries
        As for `read_kll_by_partition`.

    Raises
    ------
    PuffinFormatError
        Some are damaged.
    """
    found: dict[PartitionKey, FrequentValues] = {}
    for entry, stored in _read_each(storage, committed, [entry for entry in entries if entry.items_length]):
        with damage_at(committed.statistics_path, committed.body_offset + entry.offset, "a partition's common values"):
            _, values = split_items(committed.index, entry, stored)
            if values is not None:
                found[entry.key] = values
    return found


def read_merged_items(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry]
) -> CommittedFrequentValues:
    """Read and merge the common values of some partitions, in the form of a table's.

    Parameters
    ----------
    storage, committed, entries
        As for `read_kll_by_partition`; each of the partitions has common values.

    Raises
    ------
    PuffinFormatError
        Some are damaged.
    """
    merged, type_text = FrequentItems(), committed.index.type
    for one in read_items_by_partition(storage, committed, entries).values():
        merged.merge(FrequentItems.from_values(one))
    return CommittedFrequentValues(
        values=read_frequent_values(merged.to_bytes(type_text)),
        snapshot_id=committed.snapshot_id,
        commits_behind=committed.commits_behind,
        null_count=sum(entry.figures.null_value_count for entry in entries),
        nan_count=sum(entry.figures.nan_value_count for entry in entries),
        size_bytes=sum(entry.items_length for entry in entries),
    )


def _read_each(
    storage: FileReader, committed: CommittedPartitions, entries: Sequence[PartitionEntry]
) -> Iterator[tuple[PartitionEntry, bytes]]:
    """Yield the partitions and their sketches as they are stored; those that lie together are read at once.

    PuffinFormatError where they expand to too much together: each may to a little, and all of them are held.
    """
    most = expanded_limit(sum(entry.end - entry.offset for entry in entries), FREE_SKETCHES_BYTES)
    size = 0
    for begin, end, span in find_spans(entries, _GAP_BYTES):
        data = storage.read(committed.statistics_path, committed.body_offset + begin, end - begin)
        for entry in span:
            stored = data[entry.offset - begin : entry.end - begin]
            size += expanded_size(entry, stored)
            if size > most:
                raise PuffinFormatError(
                    f"the sketches of {len(entries):,} partitions expand to more than {most:,} bytes",
                    committed.statistics_path,
                    committed.body_offset + entry.offset,
                )
            yield entry, stored


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
