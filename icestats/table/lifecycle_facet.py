"""Committed statistics: bringing them up to date, removing them, cleaning up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from icestats.errors import StatisticsMissingError
from icestats.iceberg.catalog import load_iceberg_table, load_writable_table
from icestats.table.facet import Facet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icestats.table.reports import RemovalReport
    from icestats.table.statistics import RefreshedStatistics


class StatisticsLifecycle(Facet):
    """Refreshing and removing committed statistics."""

    def refresh_statistics(
        self,
        *,
        columns: Sequence[str] | None = None,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RefreshedStatistics:
        """Bring committed statistics up to this snapshot, reading only the files added since where possible.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns; by default those that have committed sketches.
        spark : pyspark.sql.SparkSession, optional
            The session that reads. By default up to 128 MiB of new files are read in this process, without Spark; for
            anything else the running session is used, or a new local one.
        progress : callable, optional
            Called with finished and total tasks of Spark's.

        Returns
        -------
        RefreshedStatistics
            As `compute` returns, with the same `.commit()`; `print` it to see which columns were extended, and which
            were scanned in full and why. Sketches keep the sizes of the committed ones.

        Raises
        ------
        StatisticsMissingError
            Nothing has been committed for this snapshot or an ancestor of it.
        ColumnNotFoundError
            The table has no such column.
        PuffinFormatError
            The committed statistics are damaged.
        SparkUnavailableError, UnsupportedError
            As `compute`.

        Notes
        -----
        A column is extended where its Theta sketch, KLL sketch and column statistics were made for one snapshot and for
        its present type, and files were added since and nothing else happened, as the operations of the snapshots and
        the manifests show. Otherwise it is scanned in full. The result is that of a full scan: counts, extremes and
        lengths exactly, the sketches within their error.
        """
        from icestats.table.statistics import refresh_statistics

        return refresh_statistics(self._reader, columns, spark, progress)

    def remove_statistics(
        self, snapshot: int | None = None, *, restore: bool = False, dry_run: bool = False
    ) -> RemovalReport:
        """Undo a commit of statistics: take a snapshot's entry out of metadata.json.

        Parameters
        ----------
        snapshot : int, optional
            Whose statistics; by default this table's snapshot.
        restore : bool
            Whether to put back the entry that the last commit replaced, if it can be found.
        dry_run : bool
            Only say what would change.

        Returns
        -------
        RemovalReport
            `print` it to see the entry before and after. The file stays on storage: see `orphans`.

        Raises
        ------
        StatisticsMissingError
            The snapshot has no statistics.
        CommitError
            The table is read-only, or others changed these statistics meanwhile: nothing was removed.

        Notes
        -----
        Do this before you drop a column whose NDV is listed for the current snapshot: afterwards Spark's joins fail.
        """
        from icestats.commit.statistics_removal import commit_removal, prepare_removal
        from icestats.table.reports import RemovalReport

        if snapshot is None:
            if self.snapshot is None:
                raise StatisticsMissingError(f"{self.name} has no snapshot yet, so it has no statistics")
            snapshot = self.snapshot.snapshot_id
        plan = prepare_removal(load_writable_table(self._source), snapshot, restore=restore)
        if not dry_run:
            commit_removal(plan)
        return RemovalReport(
            removed=not dry_run,
            snapshot_id=plan.snapshot_id,
            statistics_path=plan.before.statistics_path,
            restored_path=None if plan.after is None else plan.after.statistics_path,
            text=plan.describe(done=not dry_run),
        )

    def orphans(self) -> pa.Table:
        """Return the statistics files below the table's location that no live metadata refers to.

        Returns
        -------
        pyarrow.Table
            `commit.orphans.ORPHANS`: one row a Puffin or partition statistics file: its path, kind, size in bytes, time
            and age in seconds; when the last version of the metadata that refers to it was replaced; and the metadata
            file that refers to it and is no version of this table's (left by a killed commit, or by another catalog
            that has this table too).

        Raises
        ------
        MetadataError
            A metadata file cannot be read, so what it refers to is unknown.

        Notes
        -----
        Only the folder of the table's metadata is searched. The live metadata is what the catalog has now.
        """
        from icestats.commit.orphans import find_orphans

        return find_orphans(load_iceberg_table(self._source))

    def remove_orphans(
        self,
        older_than: timedelta = timedelta(days=1),
        *,
        dry_run: bool = True,
        allow_recent: bool = False,
        allow_referred: bool = False,
    ) -> pa.Table:
        """Delete statistics files that no live metadata refers to; by default only show which.

        Parameters
        ----------
        older_than : datetime.timedelta
            Minimum age of a file to delete, and minimum time since metadata that refers to it was replaced.
        dry_run : bool
            Whether only to show what would be deleted.
        allow_recent : bool
            Whether `older_than` may be less than a day. Safe only while nobody commits or reads.
        allow_referred : bool
            Whether to delete files that only metadata which is no version of this table's refers to. Safe only if no
            other catalog has this table.

        Returns
        -------
        pyarrow.Table
            `commit.orphans.REMOVED_ORPHANS`: the rows of `orphans()`, whether each `removed`, and if not
            `kept_because`; null there in a dry run: it would be deleted.

        Raises
        ------
        CallError
            `older_than` is less than a day, without `allow_recent`.
        CommitError
            The table was opened from a metadata.json: files are deleted through its catalog only.
        MetadataError
            As for `orphans`.

        Notes
        -----
        Data files, manifests and metadata are never touched, nor anything outside the folder of the table's metadata.
        """
        from icestats.commit.orphans import remove_orphans

        return remove_orphans(
            load_iceberg_table(self._source),
            older_than,
            dry_run=dry_run,
            allow_recent=allow_recent,
            allow_referred=allow_referred,
        )
