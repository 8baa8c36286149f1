"""The statistics of a table at one snapshot, as one scan finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icestats.errors import ColumnNotFoundError
from icestats.stats.column_statistics import ColumnStatistics
from icestats.stats.partition_sketches import PartitionKey


@dataclass(frozen=True)
class ScannedPartitions:
    """The statistics of each partition, and the sizes of their sketches."""

    k: int
    lg_k: int
    columns: Mapping[str, Mapping[PartitionKey, ColumnStatistics]]
    """By column name, then by partition: ordered by spec, then by value, nulls first."""


@dataclass(frozen=True)
class TableStatistics:
    """What one scan of a snapshot found, over live rows: deletes are applied."""

    snapshot_id: int
    sequence_number: int
    row_count: int | None
    """Live rows that were read; None if no column was read."""
    file_count: int
    """Data files that were read."""
    duration_ms: int
    columns: Mapping[str, ColumnStatistics]
    """By column name."""
    skipped: Mapping[str, str]
    """Columns without sketches, and the reason for each."""
    scanned_by: str = "PyIceberg"
    """What read the rows on the executors: PyIceberg, or Spark itself."""
    scan_reason: str | None = None
    """Why PyIceberg, which is faster, did not read them; None if it did."""
    by_partition: ScannedPartitions | None = None
    """None if statistics by partition were not asked for."""

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
