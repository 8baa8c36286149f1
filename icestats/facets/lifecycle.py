"""The life of statistics after their commit: bringing them up to date, taking them back, cleaning up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from icestats.facets.base import Facet
from icestats.refreshed_statistics import RefreshedStatistics, refresh_statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StatisticsLifecycle(Facet):
    """What becomes of statistics as the table goes on."""

    def refresh_statistics(
        self,
        *,
        columns: Sequence[str] | None = None,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RefreshedStatistics:
        """Make this snapshot's statistics from committed ones of an ancestor: read only the files that came since.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns; by default those that have committed sketches.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.
        progress : callable, optional
            Called with finished and total tasks.

        Returns
        -------
        RefreshedStatistics
            As `compute` returns, with the same `.commit()`; `print` it to see which columns were added to, and which
            were scanned in full and why. Sketches have the sizes of the committed ones.

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
        A column is added to where its Theta sketch, KLL sketch and column statistics are of one snapshot and of its
        present type, and since then files were added and nothing else: by the operations of the snapshots, and by the
        manifests. Otherwise it is scanned in full. The result is that of a full scan: counts, extremes and lengths
        exactly, the sketches within their error.
        """
        return refresh_statistics(
            self._source,
            self.snapshot,
            self.schema.top_level,
            self._reader.blobs,
            columns=columns,
            spark=spark,
            progress=progress,
        )
