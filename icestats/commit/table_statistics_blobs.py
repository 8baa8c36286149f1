"""Computed statistics -> the blobs of a Puffin file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.iceberg.metadata import Field, Snapshot
from icestats.iceberg.types import decode_json
from icestats.read.manifests.manifests import RollUps
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    LG_K,
    MANIFEST_STATISTICS,
    PARTITION_SKETCHES,
    THETA,
)
from icestats.read.rollups.manifest_statistics import write_manifest_statistics
from icestats.stats.frequent_items import drop_sample, read_frequent_values
from icestats.stats.joint_statistics import JointStatistics, write_joint_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import MAX_SIZE_BYTES, write_partition_sketches
from icestats.stats.table_statistics import (
    ColumnStatistics,
    PartitionKey,
    ScannedPartitions,
    TableStatistics,
    write_column_statistics,
)
from icestats.stats.theta import ThetaSketch

_Columns = dict[str, Mapping[PartitionKey, ColumnStatistics]]

_MOST_BOUND_LENGTH = 1000
"""Longest minimum or maximum in a blob's properties, in characters: column statistics have longer ones."""
_FOOTER_ENTRY_BYTES = 512
"""More than a blob's entry in the footer takes."""
_SHARE_OF_CHANCE = 100
"""The next scan's KLL sketches keep other values, so that compressed they take up to 0.3 % more."""


def build_blobs(statistics: TableStatistics) -> tuple[NewBlob, ...]:
    """Build the blobs of each column, of columns together, and of what was found by partition.

    Parameters
    ----------
    statistics : TableStatistics
        What a scan found.
    """
    blobs = [blob for column in statistics.columns.values() for blob in _column_blobs(statistics, column)]
    blobs += [_joint_blob(statistics, found) for found in statistics.together]
    if statistics.by_partition is not None:
        blobs += _partition_blobs(statistics, statistics.by_partition)
    return tuple(blobs)


def fit_partition_sketches(statistics: TableStatistics, limit_bytes: int, beside_bytes: int = 0) -> TableStatistics:
    """Leave out sketches of partitions, so that the file with those of the table takes no more than a limit.

    Parameters
    ----------
    statistics : TableStatistics
        What a scan by partition found.
    limit_bytes : int
        What the file may take. The sketches of the table stay, whatever they take.
    beside_bytes : int
        What sketches by partition of further columns take, which have been fitted before.

    Returns
    -------
    TableStatistics
        The same figures. The table's sample of rows is left out first, then common values of partitions, then their
        sketches. Columns are left out whole, those that take most first, so that what stays answers for any partitions.
        Where no column fits whole, the partitions with the most rows stay, of the column that takes least.
    """
    found = statistics.by_partition
    if found is None:
        return statistics
    complete = _find_sizes(found)
    needed = _find_own_size(statistics) + sum(complete.values()) + beside_bytes
    if needed <= limit_bytes or not complete:
        return statistics
    statistics = without_samples(statistics)
    own = _find_own_size(statistics) + beside_bytes
    told = f"the sample of rows is left out to stay within {render_bytes(limit_bytes)}"
    if own + sum(complete.values()) <= limit_bytes:
        return replace(statistics, by_partition=replace(found, left_out=_join(found.left_out, told)))
    bare = replace(found, columns={name: _without_items(partitions) for name, partitions in found.columns.items()})
    sizes = _find_sizes(bare)
    columns, whole, left = _fit_columns(bare, sizes, limit_bytes - own, whole_only=beside_bytes > 0)
    for name in sorted(whole, key=lambda name: complete[name] - sizes[name]):
        left -= complete[name] - sizes[name]
        columns[name] = found.columns[name] if left >= 0 else columns[name]
    text = _describe_left_out(found, columns, limit_bytes, needed)
    if not whole:
        name = min(sizes, key=lambda name: sizes[name])
        alone = own + sizes[name]
        text += f"; all those of {name} alone need max_size_bytes={alone + alone // _SHARE_OF_CHANCE:_}"
    return replace(statistics, by_partition=replace(found, columns=columns, left_out=_join(found.left_out, told, text)))


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def _find_own_size(statistics: TableStatistics) -> int:
    return len(write_puffin(build_blobs(replace(statistics, by_partition=None))).data)


def without_samples(statistics: TableStatistics) -> TableStatistics:
    """Return statistics without the sample of the table's rows."""
    columns = {
        name: replace(one, frequent_items=one.frequent_items and drop_sample(one.frequent_items))
        for name, one in statistics.columns.items()
    }
    return replace(statistics, columns=columns)


def _find_sizes(found: ScannedPartitions) -> dict[str, int]:
    return {name: _payload_size(found, name, partitions) for name, partitions in found.columns.items() if partitions}


def _fit_columns(
    found: ScannedPartitions, sizes: Mapping[str, int], left: int, *, whole_only: bool
) -> tuple[_Columns, list[str], int]:
    """Return the columns with the sketches that fit, those whose sketches all do, and the bytes that are left."""
    columns: _Columns = {name: _without_sketches(partitions, ()) for name, partitions in found.columns.items()}
    whole: list[str] = []
    for name in sorted(sizes, key=lambda name: sizes[name]):
        if not whole and not whole_only and sizes[name] > left:
            columns[name] = _keep_largest(found, name, left)
        if sizes[name] > left:
            break
        columns[name], left = found.columns[name], left - sizes[name]
        whole.append(name)
    return columns, whole, left


def build_manifest_statistics_blob(
    snapshot: Snapshot, manifest_files: pa.Table, rollups: RollUps, columns: Sequence[Field]
) -> NewBlob:
    """Build the blob of a snapshot's manifests.

    Parameters
    ----------
    snapshot : Snapshot
        What the blob is registered for. What it says of a manifest holds for every snapshot that has it.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    rollups : RollUps
        The roll-up by manifest of these, in their order.
    columns : sequence of Field
        The columns of its cells.
    """
    payload = write_manifest_statistics(manifest_files, rollups, columns)
    properties = {"manifest-count": str(len(manifest_files)), "column-count": str(len(columns))}
    return NewBlob(MANIFEST_STATISTICS, (), snapshot.snapshot_id, snapshot.sequence_number, payload, properties)


def _payload_size(found: ScannedPartitions, name: str, partitions: Mapping[PartitionKey, ColumnStatistics]) -> int:
    k, lg_k = found.sizes[name]
    return len(write_partition_sketches(partitions, k=k, lg_k=lg_k)) + _FOOTER_ENTRY_BYTES


def _without_sketches(
    partitions: Mapping[PartitionKey, ColumnStatistics], kept: Collection[PartitionKey]
) -> dict[PartitionKey, ColumnStatistics]:
    return {key: one if key in kept else one.without_sketches() for key, one in partitions.items()}


def _without_items(partitions: Mapping[PartitionKey, ColumnStatistics]) -> dict[PartitionKey, ColumnStatistics]:
    return {key: replace(one, frequent_items=b"") for key, one in partitions.items()}


def _keep_largest(found: ScannedPartitions, name: str, limit_bytes: int) -> dict[PartitionKey, ColumnStatistics]:
    """Keep the sketches of as many partitions of a column as fit, those with the most rows first."""
    partitions = found.columns[name]
    largest = sorted(partitions, key=lambda key: -partitions[key].value_count)
    most, too_many = 0, len(largest)
    while too_many - most > 1:
        count = (most + too_many) // 2
        is_small = _payload_size(found, name, _without_sketches(partitions, set(largest[:count]))) <= limit_bytes
        most, too_many = (count, too_many) if is_small else (most, count)
    return _without_sketches(partitions, set(largest[:most]))


def _describe_left_out(found: ScannedPartitions, columns: _Columns, limit_bytes: int, needed_bytes: int) -> str:
    missing = {name: sum(not one.theta for one in partitions.values()) for name, partitions in columns.items()}
    count = max(map(len, columns.values()))
    texts = [
        f"of {name} those of {lacking:,} of {counted(count, 'partition')}, which have the fewest rows"
        for name, lacking in missing.items()
        if 0 < lacking < len(columns[name])
    ]
    gone = [name for name, lacking in missing.items() if lacking == len(columns[name])]
    texts += [f"all of {', '.join(gone)}"] if gone else []
    kept = [name for name, lacking in missing.items() if lacking < len(columns[name])]
    bare = [name for name in kept if _count_items(columns[name]) < _count_items(found.columns[name])]
    texts += [f"common values of {', '.join(bare)}"] if bare else []
    return (
        f"sketches of partitions are left out to stay within {render_bytes(limit_bytes)}: {'; '.join(texts)}. "
        f"All of them would take {render_bytes(needed_bytes)}: raise max_size_bytes, or name fewer columns"
    )


def _count_items(partitions: Mapping[PartitionKey, ColumnStatistics]) -> int:
    return sum(bool(one.frequent_items) for one in partitions.values())


def _partition_blobs(statistics: TableStatistics, found: ScannedPartitions) -> list[NewBlob]:
    blobs = []
    for name, partitions in found.columns.items():
        if any(one.theta for one in partitions.values()):
            k, lg_k = found.sizes[name]
            payload = write_partition_sketches(partitions, k=k, lg_k=lg_k)
            properties = {"k": str(k), LG_K: str(lg_k), "partition-count": str(len(partitions))}
            if name in found.max_size_bytes:
                properties[MAX_SIZE_BYTES] = str(found.max_size_bytes[name])
            blob = _blob(statistics, PARTITION_SKETCHES, (statistics.columns[name].field_id,), payload, properties)
            # Compressed inside, sketch by sketch: a reader takes the ranges of the partitions that it needs.
            blobs.append(replace(blob, compression_codec=None))
    return blobs


def _column_blobs(statistics: TableStatistics, column: ColumnStatistics) -> list[NewBlob]:
    ndv = column.count_distinct(ThetaSketch.from_bytes(column.theta))
    properties = {"ndv": str(ndv)} | ({} if column.lg_k is None else {LG_K: str(column.lg_k)})
    blobs = [_blob(statistics, THETA, (column.field_id,), column.theta, properties)]
    if column.kll is not None and column.item_type is not None:
        sketch = KllSketch.from_bytes(column.item_type, column.kll)
        properties = {
            "k": str(sketch.k),
            "n": str(sketch.n),
            "item-type": column.item_type,
            "null-count": str(column.null_value_count),
            "nan-count": str(column.nan_value_count),
        }
        if column.min_value is not None and column.max_value is not None:
            bounds = [str(decode_json(column.type, value)) for value in (column.min_value, column.max_value)]
            if max(map(len, bounds)) <= _MOST_BOUND_LENGTH:
                properties |= zip(("min-value", "max-value"), bounds, strict=True)
        blobs.append(_blob(statistics, KLL, (column.field_id,), column.kll, properties))
    found = read_frequent_values(column.frequent_items)
    properties = {
        "value-count": str(found.value_count),
        "null-count": str(column.null_value_count),
        "nan-count": str(column.nan_value_count),
        "item-count": str(len(found.items)),
        "others-at-most": str(found.others_at_most),
    }
    blobs.append(_blob(statistics, FREQUENT_ITEMS, (column.field_id,), column.frequent_items, properties))
    blobs.append(_blob(statistics, COLUMN_STATISTICS, (column.field_id,), write_column_statistics([column]), {}))
    return blobs


def _joint_blob(statistics: TableStatistics, found: JointStatistics) -> NewBlob:
    properties = {
        "ndv": str(found.ndv),
        "item-count": str(len(found.items)),
        "strengths": ",".join(f"{found.strength(side):.4f}" for side in (0, 1)),
    }
    return _blob(statistics, JOINT_STATISTICS, found.field_ids, write_joint_statistics(found), properties)


def _blob(
    statistics: TableStatistics, blob_type: str, field_ids: tuple[int, ...], payload: bytes, properties: dict[str, str]
) -> NewBlob:
    return NewBlob(
        type=blob_type,
        field_ids=field_ids,
        snapshot_id=statistics.snapshot_id,
        sequence_number=statistics.sequence_number,
        payload=payload,
        properties=properties,
    )
