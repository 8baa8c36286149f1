"""Which statistics a table has at a snapshot, where each of them is, and how old it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import STATISTICS
from icestats.answers.text import counted
from icestats.estimation.engine_statistics import LEVELS
from icestats.iceberg.metadata import Field, Snapshot
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.statistics_age import count_ages
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    HIVE_COLUMNS,
    KLL,
    PARTITION_SKETCHES,
    PRESTO_DATA_SIZE,
    THETA,
    CommittedBlob,
)
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.rollup_cells import known_values

_HIVE = ("NDV", "min value", "max value", "null count", "num trues", "num falses", "avg length", "max length")
_BLOBS = {
    THETA: ("Theta sketch", ("NDV",)),
    KLL: ("KLL sketch", ("histogram", "num trues", "num falses")),
    COLUMN_STATISTICS: (
        "column statistics",
        ("min value", "max value", "null count", "nulls fraction", "NaN count", "avg length", "max length"),
    ),
    PRESTO_DATA_SIZE: ("Presto's blobs", ("size in bytes",)),
    HIVE_COLUMNS: ("Hive's blobs", _HIVE),
}
"""Of each type of blob of one column: the place, and the statistics that it holds. Whether Hive's has a histogram and
a bit vector, its metastore's settings say."""
_SUMMARY = {"total-records": "num rows", "total-data-files": "num files", "total-files-size": "size in bytes"}
_METRICS = {
    "lower_bound": ("min value",),
    "upper_bound": ("max value",),
    "value_count": ("num values",),
    "null_value_count": ("null count", "nulls fraction"),
    "nan_value_count": ("NaN count",),
    "column_size": ("size in bytes",),
}
_LENGTHS = {"avg_lengths": "avg length", "max_lengths": "max length"}


@dataclass(frozen=True, slots=True)
class Holding:
    """A place where a table has a statistic."""

    place: str
    """As `EngineFact.reads` names it."""
    source: str
    """The same, for a person: with the blob's type and the file."""
    commits_behind: int
    """Commits from the snapshot that the statistic is of to the loaded one."""
    blob: CommittedBlob | None = None


Key = tuple[str, int | None, str]
"""A level, a field id where the level is of columns, a statistic."""
_Found = Iterator[tuple[Key, Holding]]


def find_holdings(
    reader: SnapshotReader, blobs: Sequence[CommittedBlob], columns: Sequence[Field]
) -> Mapping[Key, Sequence[Holding]]:
    """Find the places of each statistic that a table has at a snapshot, the newest first.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    blobs : sequence of CommittedBlob
        Those of its `nearest_blobs`.
    columns : sequence of Field
        Top-level columns.

    Returns
    -------
    mapping
        What is unknown, as one live file or one partition lacks it, is not there.
    """
    found: dict[Key, list[Holding]] = defaultdict(list)
    if reader.snapshot is not None:
        for parts in (
            _find_counts(reader, reader.snapshot),
            _find_metrics(reader, columns),
            _find_blobs(blobs, columns),
            _find_partition_file(reader, columns),
            _find_partition_sketches(reader),
        ):
            for key, holding in parts:
                found[key].append(holding)
    return {key: sorted(places, key=lambda place: place.commits_behind) for key, places in found.items()}


def _find_counts(reader: SnapshotReader, snapshot: Snapshot) -> _Found:
    for name, statistic in _SUMMARY.items():
        if parse_count(snapshot.summary.get(name)) is not None:
            yield ("table", None, statistic), Holding("snapshot summary", "snapshot summary", 0)
    data = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "data"))
    if not data["added_rows_count"].null_count + data["existing_rows_count"].null_count:
        yield ("table", None, "num rows"), Holding("manifest list", "manifest list", 0)
    for level in ("table", "partition") if reader.source.metadata.has_partition_fields else ("table",):
        for statistic in LEVELS[level]:
            if statistic != "num total rows":
                yield (level, None, statistic), Holding("manifests", "manifests", 0)


def _find_metrics(reader: SnapshotReader, columns: Sequence[Field]) -> _Found:
    rollups = reader.manifest_rollups
    is_data = pc.equal(reader.manifest_files["content"], "data")
    files = pc.sum(rollups.manifests["live_file_count"].filter(is_data)).as_py() or 0
    is_partitioned = reader.source.metadata.has_partition_fields
    levels = ("table-column", "partition-column") if is_partitioned else ("table-column",)
    holding = Holding("manifests", "manifests", 0)
    for field_id, statistic in _known_metrics(rollups.table_cells, np.array([files]), reader.schema.columns, columns):
        for level in levels:
            yield (level, field_id, statistic), holding


def _known_metrics(
    cells: pa.Table, live_file_counts: np.ndarray, of: Sequence[Field], columns: Sequence[Field]
) -> Iterator[tuple[int, str]]:
    """Yield the columns and statistics that no live file of any group lacks, by roll-up cells of some columns."""
    wanted = {field.field_id for field in columns}
    for metric in STATISTICS if of else ():
        missing = known_values(cells, metric, np.repeat(live_file_counts, len(of)))[1].reshape(-1, len(of))
        for place, field in enumerate(of):
            if field.field_id in wanted and not missing[:, place].any():
                yield from ((field.field_id, statistic) for statistic in _METRICS[metric])


def _find_blobs(blobs: Sequence[CommittedBlob], columns: Sequence[Field]) -> _Found:
    wanted = {field.field_id for field in columns}
    for found in blobs:
        blob = found.blob
        if found.commits_behind is None or blob.type not in _BLOBS:
            continue
        place, statistics = _BLOBS[blob.type]
        level = "table-column"
        if blob.type == HIVE_COLUMNS and "partition" in blob.properties:
            level, place = "partition-column", "Hive's blobs by partition"
        elif len(blob.field_ids) != 1:
            continue
        holding = Holding(place, f"{blob.type} in {found.statistics_path}", found.commits_behind, found)
        for field_id in wanted.intersection(blob.field_ids):
            yield from (((level, field_id, statistic), holding) for statistic in statistics)


def _find_partition_file(reader: SnapshotReader, columns: Sequence[Field]) -> _Found:
    metadata = reader.source.metadata
    ages = count_ages(metadata, reader.snapshot)
    files = metadata.first_partition_statistics()
    file = next((files[snapshot_id] for snapshot_id in ages if snapshot_id in files), None)
    found = None if file is None else reader.find_partition_file(file, reader.schema.columns)
    if file is None or found is None:
        return
    commits = ages[file.snapshot_id].commits
    holding = Holding("partition statistics", f"partition statistics {file.statistics_path}", commits)
    for statistic in LEVELS["partition"]:
        if statistic != "num total rows" or not found.groups["total_record_count"].null_count:
            yield ("partition", None, statistic), holding
    if found.columns:
        live = to_numpy(found.groups["data_file_count"])
        for field_id, statistic in _known_metrics(found.cells, live, found.columns, columns):
            yield ("partition-column", field_id, statistic), holding
    for name, lengths in (found.lengths or {}).items():
        for field_id in pc.unique(lengths.keys).to_pylist():
            yield ("partition-column", field_id, _LENGTHS[name]), holding


def _find_partition_sketches(reader: SnapshotReader) -> _Found:
    for found in reader.partition_indexes:
        entries = found.index.partitions
        kept = sum(entry.theta_length > 0 for entry in entries)
        part = "" if kept == len(entries) else f", of {kept:,} of {counted(len(entries), 'partition')}"
        source = f"{PARTITION_SKETCHES} in {found.statistics_path}{part}"
        holding = Holding("partition sketches", source, found.commits_behind)
        for statistic in ("NDV",) if found.index.item_type is None else ("NDV", "histogram"):
            if kept:
                yield ("partition-column", found.index.field_id, statistic), holding
