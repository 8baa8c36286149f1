"""The statistics of a whole table at one snapshot, as one scan finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icestats.errors import ColumnNotFoundError
from icestats.stats.column_statistics import ColumnStatistics
from icestats.stats.partition_sketches import PartitionKey


@dataclass(frozen=True)
class ScannedPartitions:
    """The statistics of each partition, with the sizes that their sketches have."""

    k: int
    lg_k: int
    columns: Mapping[str, Mapping[PartitionKey, ColumnStatistics]]
    """By the column's name, then by partition: spec by spec, by value, nulls first."""


@dataclass(frozen=True)
class TableStatistics:
    """What one scan of a snapshot found: live rows only, deletes applied."""

    snapshot_id: int
    sequence_number: int
    row_count: int | None
    """Live rows that were read; None where no column was."""
    file_count: int
    """Data files that were read."""
    duration_ms: int
    columns: Mapping[str, ColumnStatistics]
    """By the column's name."""
    skipped: Mapping[str, str]
    """Columns that have no sketches, and why."""
    scanned_by: str = "PyIceberg"
    """What has read the rows on the executors: PyIceberg, or Spark itself."""
    scan_reason: str | None = None
    """Why it was not PyIceberg, which is faster; None where it was."""
    by_partition: ScannedPartitions | None = None
    """None where statistics by partition were not asked for."""

    def find(self, column: str) -> ColumnStatistics:
        """Return the statistics of one column.

        Raises
        ------
        ColumnNotFoundError
            The scan did not read that column.
        """
        if column not in self.columns:
            raise ColumnNotFoundError(column, tuple(self.columns))
        return self.columns[column]
