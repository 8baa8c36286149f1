"""Statistics that a scan has found, and their commit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.answers.schemas import COMPUTED
from icestats.answers.text import counted, render_bytes
from icestats.errors import CallError, CommitError, StatisticsMissingError
from icestats.iceberg.catalog import Source, load_writable_table
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.stats.histogram import Histogram, Kind, build_histogram
from icestats.stats.kll import KllSketch
from icestats.stats.sketch_sizes import estimate_size, offer_smaller
from icestats.stats.table_statistics import TableStatistics
from icestats.stats.theta import ThetaSketch
from icestats.table.commit_report import (
    CommitReport,
    build_partition_report,
    build_report,
    find_hidden_ndv,
    join_reports,
)
from icestats.table.metadata_statistics import NOTHING, MetadataStatistics, PartitionFile

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import SparkSession

    from icestats.commit.puffin_writer import NewBlob


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """Sketches by partition that are asked for."""

    k: int | None
    """Size of their KLL sketches; None: that of the table's, which it may not exceed."""
    lg_k: int | None
    """As `k`, for Theta."""
    max_size_bytes: int
    announce: Callable[[str], None] | None

    def sizes(self, k: int, lg_k: int) -> tuple[int, int]:
        """Return the sizes, given those of the table's sketches."""
        return min(k, self.k or k), min(lg_k, self.lg_k or lg_k)

    def check(self, fields: Sequence[Field], row_counts: Sequence[int], k: int, lg_k: int) -> None:
        """Say what they will take; raise CallError where that is more than the limit."""
        size = estimate_size(fields, row_counts, k=k, lg_k=lg_k)
        if size.size_bytes > self.max_size_bytes:
            raise CallError(
                f"{size}, the limit is {render_bytes(self.max_size_bytes)}: raise max_size_bytes, name fewer columns, "
                f"or take smaller sketches ({offer_smaller(fields, row_counts, size)})"
            )
        if self.announce is None:
            sys.stderr.write(f"{size}\n")
        else:
            self.announce(str(size))


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
        return build_histogram(
            KllSketch.from_bytes(found.item_type, found.kll),
            column=column,
            type_text=found.type,
            bins=bins,
            kind=kind,
            snapshot_id=self.found.snapshot_id,
            null_count=found.null_value_count,
            nan_count=found.nan_value_count,
            lower=lower,
            upper=upper,
        )

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
        from icestats.commit.partition_statistics_commit import (
            commit_partition_statistics,
            find_partition_statistics,
            new_partition_statistics_path,
        )

        path = new_partition_statistics_path(table, file.snapshot_id, file.file_format)
        if dry_run:
            before = find_partition_statistics(table, file.snapshot_id)
            return build_partition_report(file, path, before, committed=False)
        done = commit_partition_statistics(table, file.snapshot_id, path, file.data, on_step=on_step)
        return build_partition_report(file, path, done.replaced, committed=True)

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
        return build_report(plan, None if dry_run else commit_statistics(plan, on_step=on_step), hidden)

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


def no_scan(source: Source, snapshot: Snapshot | None) -> TableStatistics:
    """Return what is found without a scan: nothing.

    Raises
    ------
    StatisticsMissingError
        The table has no snapshot yet.
    """
    if snapshot is None:
        raise StatisticsMissingError(f"{source.name} has no snapshot yet: write to it before computing statistics")
    return TableStatistics(snapshot.snapshot_id, snapshot.sequence_number, None, 0, 0, {}, {})


def compute_statistics(
    source: Source,
    snapshot: Snapshot | None,
    schema: Schema,
    *,
    columns: Sequence[str] | None,
    k: int,
    lg_k: int,
    spark: SparkSession | None,
    progress: Callable[[int, int], None] | None,
    partitions: PartitionRequest | None = None,
) -> Statistics:
    """Scan a snapshot with PySpark; see `Table.compute`."""
    sizes = [(k, lg_k)] if partitions is None else [(k, lg_k), partitions.sizes(k, lg_k)]
    for size, lg_size in sizes:
        if not 8 <= size <= 65535:
            raise CallError(f"k is {size}: a KLL sketch takes 8 to 65,535")
        if not 4 <= lg_size <= 26:
            raise CallError(f"lg_k is {lg_size}: a Theta sketch takes 4 to 26")
    no_scan(source, snapshot)
    assert snapshot is not None  # noqa: S101  # checked
    from icestats.scan.scan_job import Sizes
    from icestats.scan.scan_plan import plan_scan
    from icestats.spark.session import get_session
    from icestats.spark.statistics_scan import run_scan

    plan = plan_scan(source, snapshot, schema, columns, by_partition=partitions is not None)
    if partitions is not None:
        partitions.check(plan.fields, list(plan.partition_row_counts.values()), *sizes[-1])
    session = get_session() if spark is None else spark
    return Statistics(source, run_scan(session, plan, Sizes(k, lg_k, *sizes[-1]), progress=progress))
