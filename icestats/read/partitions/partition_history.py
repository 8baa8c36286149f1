"""Statistics of a snapshot's partitions: from an ancestor's file and the manifests added later, or from all manifests.

Source: Iceberg spec, "Partition Statistics"; what counts when is as in Iceberg's own `compute_partition_stats`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import ROLLUP_CELLS
from icestats.errors import IcestatsError, MetadataError
from icestats.iceberg.metadata import Field, PartitionStatisticsFile, Schema, Snapshot, TableMetadata
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.storage import FileReader
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifests import RollUps, find_partition_types, manifests_to_read, read_rollups
from icestats.read.partitions.partition_statistics import (
    ADDED,
    PartitionStatistics,
    merge_partition_statistics,
    read_partition_statistics,
)
from icestats.read.rollups.rollup_merge import LATEST

_COUNTS = (
    ("data", "added_files_count", ("data_file_count",)),
    ("data", "added_rows_count", ("data_record_count",)),
    ("deletes", "added_rows_count", ("position_delete_record_count", "equality_delete_record_count")),
)
"""What manifests hold, as the manifest list counts it and as partitions do."""


@dataclass(frozen=True, slots=True)
class SnapshotPartitions:
    """The statistics of a snapshot's partitions, and how they were made."""

    statistics: PartitionStatistics
    partition: tuple[PartitionColumn, ...]
    """The partition fields of all specs."""
    base_snapshot_id: int | None
    """The ancestor whose file they were made from; None where all manifests were read."""
    manifests_read: int
    reason: str
    """Why all manifests were read; empty where they were not."""


class _UnusableError(Exception):
    """An ancestor's file cannot be added to; the message says why."""


def read_snapshot_partitions(
    metadata: TableMetadata,
    storage: FileReader,
    snapshot: Snapshot,
    manifest_files: pa.Table,
    columns: Sequence[Field],
    read_all: Callable[[], RollUps],
    *,
    incremental: bool = True,
) -> SnapshotPartitions:
    """Make the statistics of a snapshot's partitions.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    storage : FileReader
        Where to read from.
    snapshot : Snapshot
        Of which.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES` of the snapshot.
    columns : sequence of Field
        The columns whose statistics are wanted; none for those of files and rows alone.
    read_all : callable
        Reads the roll-up by partition of all manifests, with the cells of these columns and perhaps of more.
    incremental : bool
        Whether to add to the nearest ancestor's file, and read only the manifests that were added later.

    Notes
    -----
    An ancestor's file is added to if this snapshot still has each manifest of the file's snapshot, if its counts of
    files and rows are those of that snapshot's manifest list, and if none of the snapshots that it names has been
    expired: the result is then the same as from all manifests. From sums, the figures of a rewritten manifest could be
    deducted; from bounds they could not.

    Row-level deletes are counted as files and rows; no other figure is reduced by them.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged.
    """
    manifests = manifests_to_read(manifest_files)
    partition = find_partition_types(manifests, metadata, storage)
    reason = "no ancestor has partition statistics"
    ancestors = list(metadata.ancestors(snapshot)) if incremental else []
    files = metadata.first_partition_statistics()
    base = next((ancestor for ancestor in ancestors if ancestor.snapshot_id in files), None)
    deleting = _deleting(manifest_files)
    if base is not None:
        try:
            known, lengths = _read_base(metadata, storage, base, files[base.snapshot_id], partition, columns)
            new = _added_since(manifests, lengths)
            parts = [known] + ([_read_new(new, deleting, metadata, storage, columns)] if new else [])
            return SnapshotPartitions(merge_partition_statistics(parts), partition, base.snapshot_id, len(new), "")
        except (_UnusableError, IcestatsError) as error:
            reason = f"the file of snapshot {base.snapshot_id} was not used: {error}"
    live = _of_rollups(read_all(), columns)
    removed = [manifest for manifest in manifests if manifest.path in deleting]
    parts = [live, _read_removed(removed, metadata, storage, columns)] if removed else [live]
    statistics = merge_partition_statistics(parts)
    return SnapshotPartitions(statistics, partition, None, len(manifests), reason if incremental else "as asked")


def read_committed_partitions(
    metadata: TableMetadata,
    storage: FileReader,
    snapshot: Snapshot,
    partition: Sequence[PartitionColumn],
    columns: Sequence[Field],
    on_unused: Callable[[IcestatsError], None],
) -> tuple[pa.Table, pa.Table] | None:
    """Return the roll-up by partition from the snapshot's own file, None where it does not hold it.

    Returns
    -------
    tuple of pyarrow.Table or None
        `schemas.partition_groups_schema` and its `schemas.ROLLUP_CELLS`, as the manifests give them. `on_unused` takes
        the error that says why a file is not used.
    """
    file = metadata.first_partition_statistics().get(snapshot.snapshot_id)
    if file is None or not columns:
        return None
    try:
        found, _ = _read_base(metadata, storage, snapshot, file, partition, columns)
    except _UnusableError:
        return None
    except IcestatsError as error:
        on_unused(error)
        return None
    groups = found.groups
    for name, added in zip(LATEST, ADDED, strict=True):
        place = groups.column_names.index(name)
        groups = groups.set_column(place, groups.schema.field(place), groups[added])
    files = ("data_file_count", "position_delete_file_count", "equality_delete_file_count", "dv_count")
    live = np.flatnonzero(sum(to_numpy(groups[name]) for name in files) > 0)
    rows = (live[:, None] * len(columns) + np.arange(len(columns))).ravel()
    return groups.drop_columns(list(ADDED)).take(pa.array(live)), found.cells.take(pa.array(rows))


def _deleting(manifest_files: pa.Table) -> set[str]:
    """Return the manifests that have DELETED entries, or may have some."""
    some = pc.fill_null(pc.not_equal(manifest_files["deleted_files_count"], 0), True)
    return set(manifest_files["manifest_path"].filter(some).to_pylist())


def _read_base(
    metadata: TableMetadata,
    storage: FileReader,
    base: Snapshot,
    file: PartitionStatisticsFile,
    partition: Sequence[PartitionColumn],
    columns: Sequence[Field],
) -> tuple[PartitionStatistics, set[tuple[str, int]]]:
    data = storage.read(file.statistics_path)
    found = read_partition_statistics(data, file.statistics_path, partition, columns, metadata.specs)
    if found.columns != tuple(columns):
        raise _UnusableError("it lacks statistics of a column, or has them of another type")
    if columns and not found.knows_added:
        raise _UnusableError("it does not say when files were added")
    manifest_files = read_manifest_list(storage, base)
    _check_totals(found, manifest_files)
    for name in ("last_updated_snapshot_id", "last_added_snapshot_id"):
        if any(i is not None and i not in metadata.snapshots for i in found.groups[name].unique().to_pylist()):
            raise _UnusableError("a snapshot that it names has been expired since")
    lengths = zip(
        manifest_files["manifest_path"].to_pylist(), manifest_files["manifest_length"].to_pylist(), strict=True
    )
    return found, set(lengths)


def _check_totals(found: PartitionStatistics, manifest_files: pa.Table) -> None:
    for content, added, counted in _COUNTS:
        listed = manifest_files.filter(pc.equal(manifest_files["content"], content))
        existing = added.replace("added", "existing")
        if listed[added].null_count or listed[existing].null_count:
            return
        expected = sum(pc.sum(listed[name]).as_py() or 0 for name in (added, existing))
        stated = sum(pc.sum(found.groups[name]).as_py() or 0 for name in counted)
        if stated != expected:
            names = " and ".join(counted)
            raise _UnusableError(f"it has {stated:,} as the sum of {names}, its manifest list has {expected:,}")


def check_counts(found: PartitionStatistics, path: str, manifest_files: pa.Table) -> None:
    """Refuse a file whose counts are not those of its snapshot's manifest list, as after apache/iceberg#17915."""
    try:
        _check_totals(found, manifest_files)
    except _UnusableError as error:
        raise MetadataError(f"wrong partition statistics: {error} (apache/iceberg#17915)", path) from error


def _added_since(manifests: Sequence[ManifestToRead], known: set[tuple[str, int]]) -> list[ManifestToRead]:
    gone = known - {(manifest.path, manifest.length) for manifest in manifests}
    if gone:
        raise _UnusableError(f"{len(gone):,} of its snapshot's {len(known):,} manifests have been rewritten since")
    return [manifest for manifest in manifests if (manifest.path, manifest.length) not in known]


def _read_new(
    manifests: Sequence[ManifestToRead],
    deleting: set[str],
    metadata: TableMetadata,
    storage: FileReader,
    columns: Sequence[Field],
) -> PartitionStatistics:
    schema = Schema(metadata.current_schema_id, tuple(columns))
    live = _of_rollups(read_rollups(manifests, metadata, storage, schema, by=("partition",)), columns)
    removed = [manifest for manifest in manifests if manifest.path in deleting]
    if not removed:
        return live
    return merge_partition_statistics([live, _read_removed(removed, metadata, storage, columns)])


def _of_rollups(rollups: RollUps, columns: Sequence[Field]) -> PartitionStatistics:
    groups = rollups.partitions
    for name, added in zip(LATEST, ADDED, strict=True):
        groups = groups.append_column(added, groups[name])
    if not columns:
        return PartitionStatistics(groups, ROLLUP_CELLS.empty_table(), ())
    width = len(rollups.table_cells)
    ids = rollups.table_cells["field_id"].to_pylist()
    chosen = np.array([ids.index(column.field_id) for column in columns], np.int64)
    rows = (np.arange(len(groups))[:, None] * width + chosen).ravel()
    cells = rollups.partition_cells
    cells = cells if np.array_equal(rows, np.arange(len(cells))) else cells.take(pa.array(rows))
    return PartitionStatistics(groups, cells, tuple(columns))


def _read_removed(
    manifests: Sequence[ManifestToRead], metadata: TableMetadata, storage: FileReader, columns: Sequence[Field]
) -> PartitionStatistics:
    """Return the partitions that files were removed from: when that was, and nothing else."""
    nothing = Schema(metadata.current_schema_id, ())
    groups = read_rollups(manifests, metadata, storage, nothing, by=("partition",), deleted=True).partitions
    zeros = pa.array(np.zeros(len(groups), np.int64))
    for place, field in enumerate(groups.schema):
        if field.name.endswith(("_count", "_in_bytes")) and field.name != "total_record_count":
            groups = groups.set_column(place, field, zeros)
    for name, kind in zip(ADDED, (groups.schema.field("last_updated_at").type, pa.int64()), strict=True):
        groups = groups.append_column(name, pa.nulls(len(groups), kind))
    return PartitionStatistics(groups, _empty_cells(len(groups), columns), tuple(columns))


def _empty_cells(group_count: int, columns: Sequence[Field]) -> pa.Table:
    size = group_count * len(columns)
    ids = np.tile(np.array([column.field_id for column in columns], np.int32), group_count)
    arrays = [pa.array(ids), *(_empty(field, size) for field in list(ROLLUP_CELLS)[1:])]
    return pa.table(arrays, schema=ROLLUP_CELLS)


def _empty(field: pa.Field, size: int) -> pa.Array:
    return pa.nulls(size, field.type) if field.nullable else pa.array(np.zeros(size, np.int64))
