"""Statistics of a snapshot from those of an earlier one: only the files added since are read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icestats.errors import MetadataError
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.manifests.manifests import manifests_to_read
from icestats.read.puffin.committed_columns import CommittedColumn, read_committed_column
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.scan.appended_files import AppendedFiles, find_appended_files
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import check_manifests, find_unread, is_small, prepare_scan, scan_here
from icestats.spark.session_catalog import find_session
from icestats.spark.statistics_scan import PYICEBERG_SCAN, run_scan
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.table_statistics import (
    DEFAULT_K,
    DEFAULT_LG_K,
    ColumnStatistics,
    TableStatistics,
    find_kll_k,
    find_theta_lg_k,
    merge_column_statistics,
)

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyspark.sql import SparkSession


@dataclass
class Refresh:
    """Makes the statistics of a snapshot from committed ones of an ancestor, where only files were added since.

    Parameters
    ----------
    spark : SparkSession or None
        The session that reads. None: added files of up to 128 MiB are read in this process, for anything else the
        running session is used, or one is started.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot that the statistics are to be of.
    schema : Schema
        The schema to read it with.
    progress : callable or None
        Called with finished and total tasks of each scan.
    """

    spark: SparkSession | None
    source: Source
    snapshot: Snapshot
    schema: Schema
    progress: Progress | None
    added_to: dict[str, int] = field(default_factory=dict)
    """Columns whose committed statistics were added to, by name: the snapshot of these."""
    scanned: dict[str, str] = field(default_factory=dict)
    """Columns that were read in all live files, by name: why."""
    added_file_count: int = 0
    """Data files added since, which were read."""
    added_row_count: int = 0
    _columns: dict[str, ColumnStatistics] = field(default_factory=dict)
    _scan: TableStatistics | None = None
    """Of the columns that were read in full."""

    def run(self, blobs: Sequence[CommittedBlob], fields: Sequence[Field]) -> TableStatistics:
        """Make the statistics of some columns.

        Parameters
        ----------
        blobs : sequence of CommittedBlob
            The table's committed blobs, seen from that snapshot.
        fields : sequence of Field
            The columns.

        Returns
        -------
        TableStatistics
            As a full scan would find them: counts, extremes and lengths exactly, sketches within their error.

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
        bases = self._read_bases(blobs, wanted)
        kll_sizes = {name: find_kll_k(base.statistics) for name, base in bases.items()}
        k = max((size for size in kll_sizes.values() if size is not None), default=DEFAULT_K)
        lg_k = max((find_theta_lg_k(base.statistics) for base in bases.values()), default=DEFAULT_LG_K)
        # One scan does the columns whose statistics are of one snapshot and size.
        groups: dict[tuple[int, int], dict[str, ColumnStatistics]] = {}
        for name, base in bases.items():
            group = groups.setdefault((base.snapshot_id, kll_sizes[name] or k), {})
            group[name] = base.statistics
        for (base_id, group_k), columns in groups.items():
            self._add(base_id, columns, Sizes(group_k, lg_k, group_k, lg_k))
        self._scan_in_full([f.name for f in wanted if f.name in self.scanned], Sizes(k, lg_k, k, lg_k))
        found = {f.name: self._columns[f.name] for f in wanted}
        return TableStatistics(
            snapshot_id=self.snapshot.snapshot_id,
            sequence_number=self.snapshot.sequence_number,
            row_count=next((column.value_count for column in found.values()), None),
            file_count=self.added_file_count + (0 if self._scan is None else self._scan.file_count),
            duration_ms=round((time.perf_counter() - started) * 1000),
            columns=found,
            skipped=skipped,
            scanned_by=PYICEBERG_SCAN if self._scan is None else self._scan.scanned_by,
            scan_reason=None if self._scan is None else self._scan.scan_reason,
        )

    def _read_bases(self, blobs: Sequence[CommittedBlob], fields: Sequence[Field]) -> dict[str, CommittedColumn]:
        bases = {}
        for one in fields:
            found = read_committed_column(self.source.storage, blobs, one)
            if isinstance(found, str):
                self.scanned[one.name] = found
            else:
                bases[one.name] = found
        return bases

    def _check_manifests(self, base_id: int) -> None:
        metadata = self.source.metadata
        snapshots = [one for one in (metadata.snapshots.get(base_id), self.snapshot) if one is not None]
        listed = [manifests_to_read(read_manifest_list(self.source.storage, one)) for one in snapshots]
        times = Counter(manifest for manifests in listed for manifest in set(manifests))
        check_manifests(self.source, [manifest for manifest, count in times.items() if count < len(listed)])

    def _add(self, base_id: int, columns: Mapping[str, ColumnStatistics], sizes: Sizes) -> None:
        """Add the new files to the statistics of some columns; or leave these to a full scan, and say why."""
        self._check_manifests(base_id)
        if (unread := find_unread(self.source)) is not None:
            appended = AppendedFiles(reason=unread)
        else:
            table = load_iceberg_table(self.source)
            appended = find_appended_files(table, self.source.metadata, base_id, self.snapshot)
        if appended.reason is not None:
            self.scanned.update(dict.fromkeys(columns, appended.reason))
            return
        if appended.tasks:
            found = self._read(list(columns), sizes, appended.tasks)
            if found.row_count != appended.row_count:
                raise MetadataError(
                    f"the files added since snapshot {base_id} hold {found.row_count} rows, their manifests say "
                    f"{appended.row_count}: compute the statistics anew",
                    self.source.metadata_location,
                )
            columns = {
                name: merge_column_statistics(column, found.columns[name], lg_k=sizes.lg_k)
                for name, column in columns.items()
            }
        self._columns.update(columns)
        self.added_to.update(dict.fromkeys(columns, base_id))
        self.added_file_count += len(appended.tasks)
        self.added_row_count += appended.row_count

    def _scan_in_full(self, names: Sequence[str], sizes: Sizes) -> None:
        if names:
            self._scan = self._read(names, sizes)
            self._columns.update(self._scan.columns)

    def _read(self, names: Sequence[str], sizes: Sizes, tasks: Sequence[FileScanTask] | None = None) -> TableStatistics:
        """Read some files, by default all: on Spark's executors, or a few new ones here where no session is given."""
        plan = prepare_scan(self.source, self.snapshot, self.schema, names, tasks=tasks)
        if tasks is not None and self.spark is None and is_small(plan):
            return scan_here(plan, sizes)
        return run_scan(find_session(self.source, self.spark), plan, sizes, progress=self.progress)
