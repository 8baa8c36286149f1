"""Statistics that a scan has found, and their commit."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.answers.schemas import COMPUTED
from icestats.answers.text import counted, render_bytes
from icestats.errors import CallError, CommitError, StatisticsMissingError
from icestats.iceberg.catalog import Source, load_writable_table
from icestats.iceberg.metadata import Snapshot
from icestats.read.puffin.committed_columns import find_sketched_fields
from icestats.read.puffin.statistics_age import THETA
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.histogram import Histogram, Kind, build_histogram
from icestats.stats.kll import KllSketch
from icestats.stats.sketch_sizes import estimate_size, offer_smaller
from icestats.stats.table_statistics import TableStatistics
from icestats.stats.theta import ThetaSketch
from icestats.table.metadata_statistics import NOTHING, MetadataStatistics, PartitionFile, compute_metadata_statistics
from icestats.table.reports import (
    CommitReport,
    build_partition_report,
    build_report,
    find_hidden_ndv,
    join_reports,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import SparkSession

    from icestats.commit.puffin_writer import NewBlob
    from icestats.scan.scan_job import Sizes
    from icestats.scan.scan_plan import ScanPlan
    from icestats.spark.statistics_refresh import Refresh


@dataclass(frozen=True, slots=True)
class StatisticsRequest:
    """What `Table.compute` is asked for, as its parameters say."""

    columns: Sequence[str] | None
    scan: bool
    """Whether to scan the table."""
    partitions: bool
    manifests: bool
    with_column_stats: bool
    sizes: Sizes
    by_partition: bool
    """Whether the scan keeps sketches of each partition."""
    max_size_bytes: int
    spark: SparkSession | None
    progress: Callable[[int, int], None] | None


class Statistics:
    """Statistics of one snapshot: of its columns, manifests, partitions. Nothing is written until `commit()`."""

    def __init__(self, source: Source, found: TableStatistics, of_metadata: MetadataStatistics = NOTHING) -> None:
        self._source = source
        self.found = found
        """The statistics by column, as bytes and numbers."""
        self.of_metadata = of_metadata
        """Those of manifests and partitions."""

    def to_arrow(self) -> pa.Table:
        """Return the statistics.

        Returns
        -------
        pyarrow.Table
            `schemas.COMPUTED`: one row a column.
        """
        rows = []
        for name, column in self.found.columns.items():
            theta = ThetaSketch.from_bytes(column.theta)
            rows.append(
                {
                    "field_id": column.field_id,
                    "name": name,
                    "type": column.type,
                    "value_count": column.value_count,
                    "null_value_count": column.null_value_count,
                    "nan_value_count": column.nan_value_count,
                    "min_value": column.min_value,
                    "max_value": column.max_value,
                    "avg_length": column.avg_length,
                    "max_length": column.max_length,
                    "ndv": int(theta.estimate()),
                    "ndv_relative_error": theta.relative_error,
                    "theta_size_bytes": len(column.theta),
                    "kll_size_bytes": None if column.kll is None else len(column.kll),
                }
            )
        return pa.Table.from_pylist(rows, COMPUTED)

    def histogram(
        self, column: str, *, bins: int = 40, kind: Kind = "equi-width", lower: Any = None, upper: Any = None
    ) -> Histogram:
        """Return a column's histogram from the sketch that the scan has made.

        Parameters
        ----------
        column : str
            A column that was scanned.
        bins : int
            How many bins.
        kind : {"equi-width", "equi-height"}
            Bins of the same width, or of the same count.
        lower, upper : object, optional
            The part of the range to draw, as in `Table.histogram`.

        Raises
        ------
        ColumnNotFoundError
            The scan did not read that column.
        StatisticsMissingError
            The column's type has no KLL sketch.
        """
        found = self.found.find(column)
        if found.kll is None or found.item_type is None:
            raise StatisticsMissingError(f"column {column!r} of type {found.type} has no KLL sketch")
        sketch = KllSketch.from_bytes(found.item_type, found.kll)
        made = build_histogram(
            sketch, column=column, type_text=found.type, bins=bins, kind=kind, lower=lower, upper=upper
        )
        nulls, nans = found.null_value_count, found.nan_value_count
        return replace(made, snapshot_id=self.found.snapshot_id, null_count=nulls, nan_count=nans)

    def commit(
        self,
        *,
        dry_run: bool = False,
        list_ndv: Collection[str] | None = None,
        on_step: Callable[[str], None] | None = None,
    ) -> CommitReport:
        """Write the statistics and register them for the snapshot: a Puffin file, a partition statistics file.

        Parameters
        ----------
        dry_run : bool
            Only say what would be written and changed.
        list_ndv : collection of str, optional
            The columns whose NDV metadata.json lists, so that engines use it; by default all.
        on_step : callable, optional
            Called with the name of each step.

        Returns
        -------
        CommitReport
            `print` it to see each file, blob and entry, what engines will do differently, and warnings.

        Raises
        ------
        CommitError
            The table is read-only, its snapshot has expired meanwhile, or the catalog refused; what was written has
            been removed. The partition statistics file is committed first: the message says where it stays.
        """
        from icestats.commit.table_statistics_blobs import build_blobs

        table = load_writable_table(self._source)
        reports = []
        if self.of_metadata.partition_file is not None:
            reports.append(self._commit_partition_file(table, self.of_metadata.partition_file, dry_run, on_step))
        blobs = (*build_blobs(self.found), *self.of_metadata.blobs)
        if not blobs and not reports and self.of_metadata.lines:
            return CommitReport(False, (), (), (), "nothing to commit")
        if blobs or not reports:
            try:
                reports.append(self._commit_blobs(table, blobs, dry_run, list_ndv, on_step))
            except CommitError as error:
                if not reports or dry_run:
                    raise
                raise CommitError(f"{error}; the partition statistics are committed") from error
        return join_reports(reports)

    def _commit_partition_file(
        self, table: IcebergTable, file: PartitionFile, dry_run: bool, on_step: Callable[[str], None] | None
    ) -> CommitReport:
        from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit

        planned = prepare_partition_commit(table, file.snapshot_id, file.data, file.file_format)
        if not dry_run:
            planned = commit_partition_statistics(table, planned.file, file.data, on_step=on_step)
        return build_partition_report(file, planned, committed=not dry_run)

    def _commit_blobs(
        self,
        table: IcebergTable,
        blobs: Sequence[NewBlob],
        dry_run: bool,
        list_ndv: Collection[str] | None,
        on_step: Callable[[str], None] | None,
    ) -> CommitReport:
        from icestats.commit.statistics_commit import commit_statistics, prepare_commit

        # Names are those of the schema that was read with, which the table's current one need not have.
        own = self.found.columns
        listed = None if list_ndv is None else [own[name].field_id if name in own else name for name in list_ndv]
        plan = prepare_commit(table, blobs, snapshot_id=self.found.snapshot_id, list_ndv=listed)
        hidden = find_hidden_ndv(self._source.metadata, plan.after)
        return build_report(plan if dry_run else commit_statistics(plan, on_step=on_step), hidden)

    def __repr__(self) -> str:
        found = self.found
        rows = "no rows" if found.row_count is None else counted(found.row_count, "row")
        title = f"statistics of {self._source.name}, snapshot {found.snapshot_id}"
        lines = [f"{title}: {counted(len(found.columns), 'column')}, {rows}, {found.duration_ms:,} ms"]
        if not found.columns and self.of_metadata.lines:
            lines = [f"{title}, from its metadata"]
        if found.by_partition is not None:
            count = max((len(partitions) for partitions in found.by_partition.columns.values()), default=0)
            lines.append(f"  by partition: {count:,}, lg_k {found.by_partition.lg_k}, k {found.by_partition.k}")
        if found.scan_reason is not None:
            lines.append(f"  read by {found.scanned_by}'s own scan, the slower way: {found.scan_reason}")
        lines += [f"  skipped {name}: {reason}" for name, reason in found.skipped.items()]
        lines += [f"  {line}" for line in self.of_metadata.lines]
        return "\n".join(lines)


class RefreshedStatistics(Statistics):
    """Theta, KLL and column statistics of one snapshot, as `Statistics`; and how they were made."""

    def __init__(
        self, source: Source, found: TableStatistics, refresh: Refresh, unlisted: Collection[str] = ()
    ) -> None:
        super().__init__(source, found)
        self.unlisted = tuple(unlisted)
        """Columns of `added_to` whose NDV metadata.json did not list: `commit` leaves them out, unless told."""
        self.added_to = refresh.added_to
        """Columns whose committed statistics were added to, by name: the snapshot that these are of."""
        self.scanned = refresh.scanned
        """Columns that were read in all live files, by name: why."""
        self.added_file_count = refresh.added_file_count
        """Data files added since, which were read for `added_to`."""
        self.added_row_count = refresh.added_row_count
        """Rows of these files."""

    def commit(
        self,
        *,
        dry_run: bool = False,
        list_ndv: Collection[str] | None = None,
        on_step: Callable[[str], None] | None = None,
    ) -> CommitReport:
        """Write the statistics and register them, as `Statistics.commit`; by default the same columns stay listed."""
        if list_ndv is None and self.unlisted:
            list_ndv = [name for name in self.found.columns if name not in self.unlisted]
        return super().commit(dry_run=dry_run, list_ndv=list_ndv, on_step=on_step)

    def to_json(self) -> dict[str, Any]:
        """Return what was read, as the command line prints it."""
        return {
            "snapshot_id": str(self.found.snapshot_id),
            "added_to": {name: str(snapshot_id) for name, snapshot_id in self.added_to.items()},
            "scanned": self.scanned,
            "added_file_count": self.added_file_count,
            "added_row_count": self.added_row_count,
        }

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        by_snapshot: defaultdict[int, list[str]] = defaultdict(list)
        for name, snapshot_id in self.added_to.items():
            by_snapshot[snapshot_id].append(name)
        for snapshot_id, names in by_snapshot.items():
            lines.append(f"  added to the statistics of snapshot {snapshot_id}: {', '.join(names)}")
        if self.added_to:
            lines.append(
                f"  {counted(self.added_file_count, 'file')} with {counted(self.added_row_count, 'row')} "
                "were added since, and read"
            )
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self.scanned.items():
            by_reason[reason].append(name)
        lines += [f"  scanned in full, as {reason}: {', '.join(names)}" for reason, names in by_reason.items()]
        return "\n".join(lines)


def compute_statistics(reader: SnapshotReader, request: StatisticsRequest) -> Statistics:
    """Make the statistics of a snapshot that are asked for; see `Table.compute`."""
    if request.with_column_stats and not request.partitions:
        raise CallError("with_column_stats is about the partition statistics file: ask for partitions too")
    snapshot = require_snapshot(reader)
    if request.scan:
        found = _scan(reader, snapshot, request)
    else:
        found = TableStatistics(snapshot.snapshot_id, snapshot.sequence_number, None, 0, 0, {}, {})
    return Statistics(reader.source, found, compute_metadata_statistics(reader, request, found.by_partition))


def _scan(reader: SnapshotReader, snapshot: Snapshot, request: StatisticsRequest) -> TableStatistics:
    from icestats.scan.scan_plan import prepare_scan
    from icestats.spark.session import get_session
    from icestats.spark.statistics_scan import run_scan

    request.sizes.check()
    plan = prepare_scan(reader.source, snapshot, reader.schema, request.columns, by_partition=request.by_partition)
    if request.by_partition:
        _check_size(plan, request)
    session = get_session() if request.spark is None else request.spark
    return run_scan(session, plan, request.sizes, progress=request.progress)


def _check_size(plan: ScanPlan, request: StatisticsRequest) -> None:
    """Say what sketches by partition will take; raise CallError where that is more than the limit."""
    row_counts = list(plan.partition_row_counts.values())
    size = estimate_size(plan.fields, row_counts, k=request.sizes.partition_k, lg_k=request.sizes.partition_lg_k)
    if size.size_bytes > request.max_size_bytes:
        raise CallError(
            f"{size}, the limit is {render_bytes(request.max_size_bytes)}: raise max_size_bytes, name fewer columns, "
            f"or take smaller sketches ({offer_smaller(plan.fields, row_counts, size)})"
        )
    sys.stderr.write(f"{size}\n")


def require_snapshot(reader: SnapshotReader) -> Snapshot:
    """Return the snapshot that statistics are to be of; raise StatisticsMissingError where there is none yet."""
    if reader.snapshot is None:
        raise StatisticsMissingError(
            f"{reader.source.name} has no snapshot yet: write to it before computing statistics"
        )
    return reader.snapshot


def refresh_statistics(
    reader: SnapshotReader,
    columns: Sequence[str] | None,
    spark: SparkSession | None,
    progress: Callable[[int, int], None] | None,
) -> RefreshedStatistics:
    """Bring statistics up to a snapshot; see `Table.refresh_statistics`."""
    snapshot = require_snapshot(reader)
    source, schema, blobs = reader.source, reader.schema, reader.blobs
    from icestats.scan.scan_plan import select_columns
    from icestats.spark.statistics_refresh import Refresh

    fields = schema.top_level
    select_columns(fields, columns)
    asked = find_sketched_fields(blobs, fields) if columns is None else [f for f in fields if f.name in columns]
    if not asked:
        raise StatisticsMissingError(
            f"{source.name} has no committed statistics for snapshot {snapshot.snapshot_id} or an ancestor of it: "
            "run table.compute().commit(), or `icestats compute --commit`, once"
        )
    refresh = Refresh(spark, source, snapshot, schema, progress)
    found = refresh.run(blobs, asked)
    return RefreshedStatistics(source, found, refresh, _find_unlisted(found, refresh.added_to, blobs))


def _find_unlisted(found: TableStatistics, added_to: Mapping[str, int], blobs: Sequence[CommittedBlob]) -> list[str]:
    listed = {(b.blob.field_ids, b.blob.snapshot_id) for b in blobs if b.listed and b.blob.type == THETA}
    return [name for name, base_id in added_to.items() if ((found.columns[name].field_id,), base_id) not in listed]
