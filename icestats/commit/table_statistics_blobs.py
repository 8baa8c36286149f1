"""Computed statistics -> the blobs of a Puffin file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from icestats.commit.puffin_writer import NewBlob
from icestats.iceberg.metadata import Field, Snapshot
from icestats.iceberg.types import decode_json
from icestats.read.manifests.manifests import RollUps
from icestats.read.puffin.statistics_files import COLUMN_STATISTICS, KLL, PARTITION_SKETCHES, THETA
from icestats.read.rollups.manifest_statistics import MANIFEST_STATISTICS, write_manifest_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import write_partition_sketches
from icestats.stats.table_statistics import (
    ColumnStatistics,
    ScannedPartitions,
    TableStatistics,
    write_column_statistics,
)
from icestats.stats.theta import ThetaSketch


def build_blobs(statistics: TableStatistics) -> tuple[NewBlob, ...]:
    """Build the blobs: Theta, KLL and column statistics of each column, and what was found by partition.

    Parameters
    ----------
    statistics : TableStatistics
        What a scan found.
    """
    blobs = [blob for column in statistics.columns.values() for blob in _column_blobs(statistics, column)]
    if statistics.by_partition is not None:
        blobs += _partition_blobs(statistics, statistics.by_partition)
    return tuple(blobs)


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


def _partition_blobs(statistics: TableStatistics, found: ScannedPartitions) -> list[NewBlob]:
    blobs = []
    for name, partitions in found.columns.items():
        if partitions:
            payload = write_partition_sketches(partitions, k=found.k, lg_k=found.lg_k)
            sizes = {"k": str(found.k), "lg-k": str(found.lg_k), "partition-count": str(len(partitions))}
            blob = _blob(statistics, PARTITION_SKETCHES, (statistics.columns[name].field_id,), payload, sizes)
            # Compressed inside, sketch by sketch: a reader takes the ranges of the partitions that it needs.
            blobs.append(replace(blob, compression_codec=None))
    return blobs


def _column_blobs(statistics: TableStatistics, column: ColumnStatistics) -> list[NewBlob]:
    ndv = int(ThetaSketch.from_bytes(column.theta).estimate())
    blobs = [_blob(statistics, THETA, (column.field_id,), column.theta, {"ndv": str(ndv)})]
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
            properties["min-value"] = str(decode_json(column.type, column.min_value))
            properties["max-value"] = str(decode_json(column.type, column.max_value))
        blobs.append(_blob(statistics, KLL, (column.field_id,), column.kll, properties))
    blobs.append(_blob(statistics, COLUMN_STATISTICS, (column.field_id,), write_column_statistics([column]), {}))
    return blobs


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
