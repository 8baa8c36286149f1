"""Making the statistics of a snapshot's manifests and partitions, and reading its partition statistics file."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa

from icestats.errors import CallError, StatisticsMissingError
from icestats.iceberg.metadata import Snapshot
from icestats.read.manifests.manifests import RollUps, find_partition_types, manifests_to_read, read_rollups
from icestats.read.partitions.partition_history import read_snapshot_partitions
from icestats.read.partitions.partition_statistics import read_partition_statistics
from icestats.read.rollups.rollup_cache import cache_folder
from icestats.snapshot.rollup_tables import build_partition_file_rows
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.table_statistics import ScannedPartitions
from icestats.table.metadata_statistics import (
    NOTHING,
    MetadataStatistics,
    build_manifest_statistics,
    build_partition_statistics,
    select_columns,
)

_LOG = logging.getLogger("icestats")


def compute_metadata_statistics(
    reader: SnapshotReader,
    *,
    partitions: bool,
    manifests: bool,
    columns: Sequence[str] | None,
    with_column_stats: bool,
    scanned: ScannedPartitions | None = None,
) -> MetadataStatistics:
    """Make the statistics of manifests and of partitions; see `Table.compute`.

    Raises
    ------
    CallError
        Statistics of columns are asked for without those of partitions.
    """
    if with_column_stats and not partitions:
        raise CallError("with_column_stats is about the partition statistics file: ask for partitions too")
    made = NOTHING
    snapshot = reader.snapshot
    if snapshot is not None and manifests:
        rollups = _read_manifest_rollups(reader, alone=not partitions)
        made = build_manifest_statistics(snapshot, reader.manifest_files, rollups, reader.schema)
    if snapshot is not None and partitions:
        made = made.join(_compute_partitions(reader, snapshot, columns, with_column_stats, scanned))
    for line in made.lines:
        _LOG.info("%s: %s", reader.source.name, line)
    return made


def _read_manifest_rollups(reader: SnapshotReader, *, alone: bool) -> RollUps:
    """Read without the roll-up by partition, where nobody asks for it and nothing would keep it."""
    metadata = reader.source.metadata
    if not alone or cache_folder() is not None or metadata.statistics or "rollups" in reader.__dict__:
        return reader.manifest_rollups
    manifests = manifests_to_read(reader.manifest_files)
    return read_rollups(manifests, metadata, reader.source.storage, reader.schema, by=("manifest",))


def _compute_partitions(
    reader: SnapshotReader,
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    with_column_stats: bool,
    scanned: ScannedPartitions | None,
) -> MetadataStatistics:
    metadata, storage, name = reader.source.metadata, reader.source.storage, reader.source.name
    if not any(spec.fields for spec in metadata.specs.values()):
        line = f"{name} is not partitioned: no partition statistics file, its one row is the whole table"
        return MetadataStatistics(partitions=reader.read_partitions(), lines=(line,))
    chosen = select_columns(reader.schema, columns) if with_column_stats else ()
    found = read_snapshot_partitions(metadata, storage, snapshot, reader.manifest_files, chosen, lambda: reader.rollups)
    return build_partition_statistics(snapshot, found, metadata, scanned if with_column_stats else None)


def read_registered_partitions(reader: SnapshotReader) -> pa.Table:
    """Return the rows of the snapshot's partition statistics file as `schemas.partitions_schema`.

    Raises
    ------
    StatisticsMissingError
        None is registered for the snapshot.
    """
    metadata, storage = reader.source.metadata, reader.source.storage
    snapshot_id = None if reader.snapshot is None else reader.snapshot.snapshot_id
    file = next((f for f in metadata.partition_statistics if f.snapshot_id == snapshot_id), None)
    if file is None:
        raise StatisticsMissingError(
            f"no partition statistics file is registered for snapshot {snapshot_id}: run "
            "table.compute(partitions=True).commit(), or `icestats compute --partitions --commit`"
        )
    partition = find_partition_types(manifests_to_read(reader.manifest_files), metadata, storage)
    data = storage.read(file.statistics_path)
    found = read_partition_statistics(data, file.statistics_path, partition, reader.schema.columns)
    return build_partition_file_rows(found, reader.schema)
