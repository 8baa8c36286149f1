"""Statistics that metadata alone gives: those of manifests and of partitions, made without reading a data file."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.schemas import COUNTS
from icestats.answers.text import counted, printable
from icestats.commit.partition_statistics_file import FileFormat, build_stored_table, write_stored_table
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.table_statistics_blobs import build_manifest_statistics_blob
from icestats.errors import StatisticsMissingError
from icestats.iceberg.metadata import Field, PartitionStatisticsFile, Schema, Snapshot, TableMetadata, match_names
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.partitions.partition_history import SnapshotPartitions, read_snapshot_partitions
from icestats.read.partitions.partition_statistics import LENGTH_MAPS, merge_partition_statistics
from icestats.read.puffin.statistics_age import count_ages
from icestats.read.rollups.manifest_statistics import can_be_written
from icestats.read.rollups.rollup_cache import cache_folder
from icestats.snapshot.snapshot_reader import SnapshotReader, build_partition_file_rows
from icestats.stats.table_statistics import ScannedPartitions

_LOG = logging.getLogger("icestats")
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


def compute_metadata_statistics(
    reader: SnapshotReader,
    snapshot: Snapshot,
    partition_columns: Sequence[Field] | None,
    *,
    manifests: bool,
    scanned: ScannedPartitions | None = None,
) -> MetadataStatistics:
    """Make statistics of manifests, and of partitions where their columns are given; see `Table.compute`."""
    made = MetadataStatistics()
    if manifests:
        rollups = _read_manifest_rollups(reader, alone=partition_columns is None)
        made = _build_manifest_statistics(snapshot, reader, rollups)
    if partition_columns is not None and not can_be_written(partition_columns):
        made = replace(made, lines=(*made.lines, f"partitions have {_left_out(partition_columns)}"))
        partition_columns = ()
    if partition_columns is not None:
        found = _compute_partitions(reader, snapshot, partition_columns, scanned)
        made = replace(found, blobs=made.blobs, lines=(*made.lines, *found.lines))
    for line in made.lines:
        _LOG.info("%s: %s", printable(reader.source.name), printable(line))
    return made


def _read_manifest_rollups(reader: SnapshotReader, *, alone: bool) -> RollUps:
    """Leave out the roll-up by partition where it is not asked for and would not be kept."""
    metadata = reader.source.metadata
    if not alone or cache_folder() is not None or metadata.statistics or reader.known_rollups() is not None:
        return reader.manifest_rollups
    manifests = manifests_to_read(reader.manifest_files)
    return read_rollups(manifests, metadata, reader.source.storage, reader.schema, by=("manifest",))


def _compute_partitions(
    reader: SnapshotReader, snapshot: Snapshot, columns: Sequence[Field], scanned: ScannedPartitions | None
) -> MetadataStatistics:
    metadata, storage, name = reader.source.metadata, reader.source.storage, reader.source.name
    if not metadata.has_partition_fields:
        line = f"{name} is not partitioned: no partition statistics file, its one row is the whole table"
        return MetadataStatistics(partitions=reader.read_partitions(), lines=(line,))
    found = read_snapshot_partitions(
        metadata, storage, snapshot, reader.manifest_files, columns, lambda: reader.rollups
    )
    lengths = _build_lengths(reader, found, scanned) if columns else {}
    return _build_partition_statistics(snapshot, found, metadata, lengths)


def read_registered_partitions(reader: SnapshotReader) -> pa.Table:
    """Return the rows of the nearest partition statistics file as `Table.partition_statistics` describes them.

    Raises
    ------
    StatisticsMissingError
        None is registered for the snapshot or an ancestor of it.
    """
    file, commits = _find_nearest_file(reader)
    if file is None and not reader.source.metadata.has_partition_fields:
        raise StatisticsMissingError(f"{reader.source.name} is not partitioned, so it has no partition statistics file")
    if file is None:
        raise StatisticsMissingError(
            f"no partition statistics file is registered for a snapshot of {reader.source.name} up to this one: run "
            "table.compute(partitions=True).commit(), or `icestats compute SOURCE --partitions --commit`"
        )
    found = reader.read_partition_file(file, reader.schema.columns)
    # After a change of the spec, Iceberg 1.12 adds to a file by writing a second row for a partition.
    merged = merge_partition_statistics([found])
    rows = build_partition_file_rows(merged if len(merged.groups) < len(found.groups) else found)
    made_for = {"snapshot_id": file.snapshot_id, "commits_behind": commits}
    for name, value in made_for.items():
        rows = rows.append_column(pa.field(name, pa.int64(), nullable=False), pa.array([value] * len(rows), pa.int64()))
    return rows


def find_stored_columns(reader: SnapshotReader) -> tuple[Field, ...]:
    """Return the columns that the nearest partition statistics file has statistics of."""
    file, _ = _find_nearest_file(reader)
    found = None if file is None else reader.find_partition_file(file, reader.schema.columns)
    return () if found is None else found.columns


def _find_nearest_file(reader: SnapshotReader) -> tuple[PartitionStatisticsFile | None, int]:
    """Return the partition statistics file of the snapshot or of the nearest ancestor, and its age in commits."""
    files = reader.source.metadata.first_partition_statistics()
    ages = count_ages(reader.source.metadata, reader.snapshot)
    return next(((files[one], age.commits) for one, age in ages.items() if one in files), (None, 0))


def expand_columns(schema: Schema, names: Sequence[str] | None) -> tuple[Field, ...]:
    """Return the columns of these names or patterns, or all; a nested column stands for the fields inside."""
    if names is None:
        return schema.columns
    wanted = match_names(names, [field.name for field in schema.fields])
    return tuple(c for c in schema.columns if any(c.name == n or c.name.startswith(f"{n}.") for n in wanted))


def _left_out(columns: Sequence[Field]) -> str:
    return f"no statistics of columns: those of {len(columns):,} make a file that is too large for its readers"


def _build_manifest_statistics(snapshot: Snapshot, reader: SnapshotReader, rollups: RollUps) -> MetadataStatistics:
    manifest_files, schema = reader.manifest_files, reader.schema
    if not can_be_written(schema.columns):
        return MetadataStatistics(lines=(f"manifests have {_left_out(schema.columns)}",))
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


def _build_partition_statistics(
    snapshot: Snapshot, found: SnapshotPartitions, metadata: TableMetadata, lengths: Mapping[str, pa.Array]
) -> MetadataStatistics:
    table = build_stored_table(found.statistics, found.partition, metadata.format_version, lengths)
    file_format, lines = _file_format(metadata)
    data = write_stored_table(table, found.partition, file_format)
    columns = found.statistics.columns
    file = PartitionFile(snapshot.snapshot_id, file_format, data, len(table), tuple(column.name for column in columns))
    read = f"{counted(found.manifests_read, 'manifest')} read"
    how = f"all of {read}: {found.reason}"
    if found.base_snapshot_id is not None:
        how = f"added to the file of snapshot {found.base_snapshot_id}: {read}"
    what = f"{counted(len(table), 'partition')}, {counted(len(columns), 'column')}"
    made = [f"{what}; {how}", *_missing_lines(table, found)]
    groups = found.statistics.groups
    kinds = ("position_delete_file_count", "equality_delete_file_count", "dv_count")
    deletes = any(pc.sum(groups[kind]).as_py() for kind in kinds)
    if columns and deletes:
        made.append(
            "row-level deletes are not applied to the figures of columns: bounds still bound, counts are of files"
        )
    return MetadataStatistics(partition_file=file, partitions=table, lines=(*made, *lines))


def _build_lengths(
    reader: SnapshotReader, found: SnapshotPartitions, scanned: ScannedPartitions | None
) -> dict[str, pa.Array]:
    """Build `avg_lengths` (rounded) and `max_lengths` of each partition: bytes of the values of live rows.

    Those that were not scanned now are of the snapshot's present file, where that has any.

    Source: "Extending standardized statistics in Iceberg", part 3.
    """
    from icestats.scan.scan_plan import build_scanned_keys

    groups, wanted = found.statistics.groups, {column.field_id for column in found.statistics.columns}
    stored = reader.read_stored_lengths(groups)
    if scanned is None and not stored:
        return {}
    maps = {name: [dict(row or ()) for row in stored.get(name, [()] * len(groups))] for name in LENGTH_MAPS}
    averages, longest = (maps[name] for name in LENGTH_MAPS)
    by_column = () if scanned is None else scanned.columns.values()
    for place, key in enumerate(build_scanned_keys(groups, reader.source.metadata) if by_column else ()):
        columns = [one[key] for one in by_column if key in one]
        averages[place] |= {c.field_id: round(c.avg_length) for c in columns if c.avg_length is not None}
        longest[place] |= {c.field_id: c.max_length for c in columns if c.max_length is not None}
    return {
        name: pa.array([[one for one in sorted(row.items()) if one[0] in wanted] for row in rows], COUNTS)
        for name, rows in maps.items()
    }


def _file_format(metadata: TableMetadata) -> tuple[FileFormat, list[str]]:
    wanted = metadata.properties.get("write.format.default", "parquet").lower()
    if wanted == "avro":
        return "avro", []
    line = f"write.format.default is {wanted}: partition statistics are written as Parquet"
    return "parquet", [] if wanted == "parquet" else [line]


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
