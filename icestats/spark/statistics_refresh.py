"""Statistics of a snapshot from those of an earlier one: only the files that came since are read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icestats.errors import MetadataError
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.puffin.committed_columns import read_committed_column
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.scan.appended_files import find_appended_files
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import is_small, prepare_scan, scan_here
from icestats.spark.session import get_session
from icestats.spark.statistics_scan import PYICEBERG_SCAN, run_scan
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.column_statistics import ColumnStatistics, find_kll_k, find_theta_lg_k, merge_column_statistics
from icestats.stats.table_statistics import TableStatistics

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyspark.sql import SparkSession

_DEFAULT_K = 200
_DEFAULT_LG_K = 12


@dataclass(frozen=True, slots=True)
class RefreshedColumns:
    """What a refresh has read, and why not less."""

    added_to: Mapping[str, int]
    """Columns whose committed statistics were added to, by name: the snapshot of these."""
    scanned: Mapping[str, str]
    """Columns that were read in all live files, by name: why."""
    added_file_count: int
    """Data files that came since, and were read."""
    added_row_count: int


def refresh_table_statistics(
    spark: SparkSession | None,
    source: Source,
    snapshot: Snapshot,
    schema: Schema,
    blobs: Sequence[CommittedBlob],
    fields: Sequence[Field],
    *,
    progress: Progress | None = None,
) -> tuple[TableStatistics, RefreshedColumns]:
    """Make the statistics of a snapshot from committed ones of an ancestor, where only files were added since.

    Parameters
    ----------
    spark : SparkSession or None
        The session that reads. None: files of up to 128 MiB that came since are read in this process, for anything else
        the running session is used, or one is started.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot that the statistics are to be of.
    schema : Schema
        The schema that it is read with.
    blobs : sequence of CommittedBlob
        The table's committed blobs, seen from that snapshot.
    fields : sequence of Field
        The columns.
    progress : callable, optional
        Called with finished and total tasks of each scan.

    Returns
    -------
    statistics : TableStatistics
        As a full scan would find them: counts, extremes and lengths exactly, sketches within their error.
    refreshed : RefreshedColumns
        What was read.

    Raises
    ------
    PuffinFormatError
        A committed blob is damaged.
    SparkUnavailableError, UnsupportedError, IcestatsError
        As `run_scan`.
    """
    started = time.perf_counter()
    skipped = {f.name: reason for f in fields if (reason := can_sketch(f)) is not None}
    wanted = [f for f in fields if f.name not in skipped]
    run = _Refresh(spark, source, snapshot, schema, progress)
    run.read_bases(blobs, wanted)
    for (base_id, k), names in run.groups().items():
        run.add(base_id, k, names)
    run.scan([f.name for f in wanted if f.name in run.scanned])
    columns = {f.name: run.columns[f.name] for f in wanted}
    statistics = TableStatistics(
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        row_count=next((column.value_count for column in columns.values()), None),
        file_count=run.added_file_count + run.scanned_file_count,
        duration_ms=round((time.perf_counter() - started) * 1000),
        columns=columns,
        skipped=skipped,
        scanned_by=run.scanned_by,
        scan_reason=run.scan_reason,
    )
    return statistics, RefreshedColumns(run.added_to, run.scanned, run.added_file_count, run.added_row_count)


class _Refresh:
    """One refresh, column by column."""

    def __init__(
        self,
        spark: SparkSession | None,
        source: Source,
        snapshot: Snapshot,
        schema: Schema,
        progress: Progress | None,
    ) -> None:
        self.spark = spark
        self.source = source
        self.snapshot = snapshot
        self.schema = schema
        self.progress = progress
        self.bases: dict[str, tuple[int, int | None, ColumnStatistics]] = {}
        self.columns: dict[str, ColumnStatistics] = {}
        self.added_to: dict[str, int] = {}
        self.scanned: dict[str, str] = {}
        self.added_file_count = self.added_row_count = self.scanned_file_count = 0
        self.k, self.lg_k = _DEFAULT_K, _DEFAULT_LG_K
        self.scanned_by = PYICEBERG_SCAN
        self.scan_reason: str | None = None

    def read_bases(self, blobs: Sequence[CommittedBlob], fields: Sequence[Field]) -> None:
        """Read the committed statistics, and take their sizes for what is to be read anew."""
        for field in fields:
            found = read_committed_column(self.source.storage, blobs, field)
            if isinstance(found, str):
                self.scanned[field.name] = found
            else:
                self.bases[field.name] = (found.snapshot_id, find_kll_k(found.statistics), found.statistics)
        self.k = max((k for _, k, _ in self.bases.values() if k is not None), default=_DEFAULT_K)
        self.lg_k = max((find_theta_lg_k(column) for *_, column in self.bases.values()), default=_DEFAULT_LG_K)

    def groups(self) -> dict[tuple[int, int], list[str]]:
        """Return the columns by the snapshot and the KLL size of their statistics: what one scan can do."""
        groups: dict[tuple[int, int], list[str]] = {}
        for name, (base_id, k, _) in self.bases.items():
            groups.setdefault((base_id, self.k if k is None else k), []).append(name)
        return groups

    def add(self, base_id: int, k: int, names: Sequence[str]) -> None:
        """Add the files that came since to some columns' statistics; or leave the columns to a scan, and say why."""
        table = load_iceberg_table(self.source)
        appended = find_appended_files(table, self.source.metadata, base_id, self.snapshot)
        if appended.reason is not None:
            self.scanned.update(dict.fromkeys(names, appended.reason))
            return
        columns = {name: self.bases[name][2] for name in names}
        if appended.tasks:
            found = self.read(appended.tasks, names, Sizes(k, self.lg_k, k, self.lg_k))
            if found.row_count != appended.row_count:
                raise MetadataError(
                    f"the files that came since snapshot {base_id} hold {found.row_count} rows, their manifests say "
                    f"{appended.row_count}: compute the statistics anew",
                    self.source.metadata_location,
                )
            columns = {
                name: merge_column_statistics(column, found.columns[name], lg_k=self.lg_k)
                for name, column in columns.items()
            }
        self.columns.update(columns)
        self.added_to.update(dict.fromkeys(names, base_id))
        self.added_file_count += len(appended.tasks)
        self.added_row_count += appended.row_count

    def read(self, tasks: Sequence[FileScanTask], names: Sequence[str], sizes: Sizes) -> TableStatistics:
        """Read some files: on Spark's executors, or here where they are one task and no session is given."""
        plan = prepare_scan(self.source, self.snapshot, self.schema, names, tasks=tasks)
        if self.spark is None and is_small(plan):
            return scan_here(plan, sizes)
        return run_scan(self.session(), plan, sizes, progress=self.progress)

    def session(self) -> SparkSession:
        """Return the session that was given, or one that is started now."""
        return get_session() if self.spark is None else self.spark

    def scan(self, names: Sequence[str]) -> None:
        """Read some columns of all live files."""
        if not names:
            return
        plan = prepare_scan(self.source, self.snapshot, self.schema, names)
        found = run_scan(self.session(), plan, Sizes(self.k, self.lg_k, self.k, self.lg_k), progress=self.progress)
        self.columns.update(found.columns)
        self.scanned_file_count = found.file_count
        self.scanned_by, self.scan_reason = found.scanned_by, found.scan_reason
