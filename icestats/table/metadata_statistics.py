"""Statistics that metadata alone gives: those of manifests and of partitions, made without reading a data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.text import counted
from icestats.commit.manifest_statistics_blob import build_manifest_statistics_blob
from icestats.commit.partition_statistics_file import (
    FileFormat,
    build_stored_table,
    write_stored_table,
)
from icestats.commit.puffin_writer import NewBlob
from icestats.iceberg.metadata import Field, Schema, Snapshot, TableMetadata
from icestats.read.manifests.manifests import RollUps
from icestats.read.partitions.partition_history import SnapshotPartitions
from icestats.stats.partition_sketches import PartitionKey
from icestats.stats.table_statistics import ScannedPartitions

_MOST_NAMES = 5


@dataclass(frozen=True)
class PartitionFile:
    """A partition statistics file that is ready to be written."""

    snapshot_id: int
    file_format: FileFormat
    data: bytes
    row_count: int
    columns: tuple[str, ...]
    """The columns that it has statistics of."""

    def describe(self) -> str:
        """Return what the file is, in a line."""
        columns = (
            f", statistics of {counted(len(self.columns), 'column')}" if self.columns else ", no statistics of columns"
        )
        return f"{counted(self.row_count, 'partition')}{columns}, {len(self.data):,} bytes of {self.file_format}"


@dataclass(frozen=True)
class MetadataStatistics:
    """What has been made, ready to be committed."""

    blobs: tuple[NewBlob, ...] = ()
    """For the snapshot's Puffin file."""
    partition_file: PartitionFile | None = None
    partitions: pa.Table | None = None
    """The rows of the partition statistics file, as they are stored."""
    lines: tuple[str, ...] = ()
    """What was made, and what was left out and why, a line each."""

    def join(self, other: MetadataStatistics) -> MetadataStatistics:
        """Return both, the partitions of `other` where it has some."""
        return MetadataStatistics(
            blobs=(*self.blobs, *other.blobs),
            partition_file=other.partition_file or self.partition_file,
            partitions=self.partitions if other.partitions is None else other.partitions,
            lines=(*self.lines, *other.lines),
        )


NOTHING = MetadataStatistics()


def select_columns(schema: Schema, names: Sequence[str] | None) -> tuple[Field, ...]:
    """Return the columns of these names, or all; a nested column stands for the fields inside.

    Raises
    ------
    ColumnNotFoundError
        The schema has no such column.
    """
    if names is None:
        return schema.columns
    wanted = [schema.find(name).name for name in names]
    return tuple(c for c in schema.columns if any(c.name == n or c.name.startswith(f"{n}.") for n in wanted))


def build_manifest_statistics(
    snapshot: Snapshot, manifest_files: pa.Table, rollups: RollUps, schema: Schema
) -> MetadataStatistics:
    """Build the statistics of a snapshot's manifests.

    Parameters
    ----------
    snapshot : Snapshot
        Of which.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    rollups : RollUps
        By manifest, in their order.
    schema : Schema
        Whose columns the cells have.
    """
    blob = build_manifest_statistics_blob(snapshot, manifest_files, rollups, schema.columns)
    count = pc.sum(pc.equal(manifest_files["content"], "data")).as_py() or 0
    what = f"{counted(count, 'data manifest')}, {counted(len(schema.columns), 'column')}"
    lines = [f"{what}: {len(blob.payload):,} bytes uncompressed"]
    unknown = [
        column.name
        for column, cell in zip(schema.columns, rollups.table_cells.to_pylist(), strict=True)
        if cell["value_count_file_count"] == 0
    ]
    if unknown:
        lines.append(f"no data file has statistics of {', '.join(unknown)}")
    return MetadataStatistics(blobs=(blob,), lines=tuple(lines))


def build_partition_statistics(
    snapshot: Snapshot,
    found: SnapshotPartitions,
    metadata: TableMetadata,
    scanned: ScannedPartitions | None = None,
) -> MetadataStatistics:
    """Build the partition statistics file of a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        Of which.
    found : SnapshotPartitions
        The statistics of its partitions.
    metadata : TableMetadata
        The table: its format version, and `write.format.default`, which says the file's format.
    scanned : stats.table_statistics.PartitionStatistics, optional
        What a scan found by partition: the lengths of values are from it.
    """
    lengths = None if scanned is None else build_lengths(found, scanned, metadata)
    table = build_stored_table(found.statistics, found.partition, metadata.format_version, lengths)
    file_format, lines = _file_format(metadata)
    data = write_stored_table(table, found.partition, file_format)
    columns = found.statistics.columns
    file = PartitionFile(snapshot.snapshot_id, file_format, data, len(table), tuple(column.name for column in columns))
    if found.base_snapshot_id is None:
        how = f"all of {counted(found.manifests_read, 'manifest')} read: {found.reason}"
    else:
        read = counted(found.manifests_read, "manifest")
        how = f"added to the file of snapshot {found.base_snapshot_id}: {read} read"
    what = f"{counted(len(table), 'partition')}, {counted(len(columns), 'column')}"
    made = [f"{what}; {how}", *_missing_lines(table, found)]
    deletes = pc.sum(found.statistics.groups["position_delete_file_count"]).as_py() or 0
    deletes += pc.sum(found.statistics.groups["equality_delete_file_count"]).as_py() or 0
    deletes += pc.sum(found.statistics.groups["dv_count"]).as_py() or 0
    if columns and deletes:
        made.append(
            "row-level deletes are not applied to the figures of columns: bounds still bound, counts are of files"
        )
    return MetadataStatistics(partition_file=file, partitions=table, lines=(*made, *lines))


def build_lengths(
    found: SnapshotPartitions, scanned: ScannedPartitions, metadata: TableMetadata
) -> dict[str, pa.Array]:
    """Build `avg_lengths` (rounded) and `max_lengths` of each partition: bytes of the values of live rows.

    Source: "Extending standardized statistics in Iceberg", part 3.
    """
    from icestats.scan.scan_plan import encode_fields

    groups = found.statistics.groups
    encoded = encode_fields(combine_chunks(groups["partition"]), metadata)
    wanted = {column.field_id for column in found.statistics.columns}
    maps: dict[str, list[list[tuple[int, int]]]] = {"avg_lengths": [], "max_lengths": []}
    for row, spec_id in enumerate(groups["spec_id"].to_pylist()):
        ids = [field.field_id for field in metadata.specs[spec_id].fields]
        key = PartitionKey(spec_id, tuple((i, encoded[i][row]) for i in ids if i in encoded))
        columns = [one[key] for one in scanned.columns.values() if key in one]
        columns = [column for column in columns if column.field_id in wanted]
        maps["avg_lengths"].append([(c.field_id, round(c.avg_length)) for c in columns if c.avg_length is not None])
        maps["max_lengths"].append([(c.field_id, c.max_length) for c in columns if c.max_length is not None])
    return {name: pa.array(entries, pa.map_(pa.int32(), pa.int64())) for name, entries in maps.items()}


def _file_format(metadata: TableMetadata) -> tuple[FileFormat, list[str]]:
    wanted = metadata.properties.get("write.format.default", "parquet").lower()
    if wanted == "avro":
        return "avro", []
    if wanted == "parquet":
        return "parquet", []
    return "parquet", [f"write.format.default is {wanted}: partition statistics are written as Parquet"]


def _missing_lines(table: pa.Table, found: SnapshotPartitions) -> list[str]:
    """Say which statistics of columns are not aggregated, since a file lacks them, and in how many partitions."""
    names = {column.field_id: column.name for column in found.statistics.columns}
    lines = []
    for name in table.column_names:
        if not name.endswith("_missing_files"):
            continue
        entries: Any = combine_chunks(table[name])
        rows = int((np.diff(to_numpy(entries.offsets)) > 0).sum())
        lacking = [names[field_id] for field_id in sorted(entries.keys.unique().to_pylist())]
        if rows:
            more = f" and {len(lacking) - _MOST_NAMES} more" if len(lacking) > _MOST_NAMES else ""
            of_all = f"{rows:,} of {counted(len(table), 'partition')}"
            lines.append(
                f"{name.removesuffix('_missing_files')} not aggregated in {of_all}, since "
                f"one or more files lack it: {', '.join(lacking[:_MOST_NAMES])}{more}"
            )
    return lines
