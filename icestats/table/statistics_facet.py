"""A table's statistics files: what they hold, histograms from them, computing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from icestats.errors import CallError
from icestats.table.facet import Facet

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession

    from icestats.stats.histogram import Histogram, Kind
    from icestats.table.statistics import Statistics


class StatisticsFiles(Facet):
    """What statistics files hold, and computing them."""

    def sketches(self) -> pa.Table:
        """Return the blobs of the registered table statistics files.

        Returns
        -------
        pyarrow.Table
            `schemas.SKETCHES`: one row a blob, those nearest to this snapshot first.

        Raises
        ------
        MetadataError
            A statistics file is missing, cut or damaged.
        """
        from icestats.read.puffin.statistics_files import build_sketches

        return build_sketches(self._reader.blobs, self.schema)

    def histogram(
        self,
        column: str,
        *,
        bins: int = 40,
        kind: Kind = "equi-width",
        where: str | BooleanExpression | None = None,
        lower: Any = None,
        upper: Any = None,
    ) -> Histogram:
        """Return a column's histogram from its committed KLL sketch; no data file is touched.

        Parameters
        ----------
        column : str
            A top-level column.
        bins : int
            How many bins; fewer are made where the column has fewer values.
        kind : {"equi-width", "equi-height"}
            Bins of the same width, or of the same count. Strings have equi-height ones only.
        where : str or pyiceberg.expressions.BooleanExpression, optional
            Only the rows of the partitions that this filter selects; needs sketches by partition, which
            `compute(by="partition")` makes.
        lower, upper : object, optional
            Draw the part of the range from `lower` to `upper`, both included: values of the column, or their text. How
            many values lie outside is in the result's `below` and `above`.

        Raises
        ------
        ColumnNotFoundError, FilterError, CallError
            The call is wrong, or the filter selects parts of partitions.
        StatisticsMissingError
            No sketch has been committed for this snapshot or an ancestor of it.

        Notes
        -----
        Ranks are within `rank_error` at 99 % confidence; each count within twice that times `n`.
        """
        field = self.schema.find(column)
        if bins < 1:
            raise CallError(f"bins is {bins}: expected a whole number from 1")
        chosen = None if where is None else self._bind(where)
        return self._reader.read_histogram(field, bins=bins, kind=kind, where=chosen, lower=lower, upper=upper)

    def compute(
        self,
        *,
        columns: Sequence[str] | None = None,
        table: bool | None = None,
        partitions: bool = False,
        manifests: bool = False,
        with_column_stats: bool = False,
        k: int = 200,
        lg_k: int = 12,
        by: Literal["partition"] | None = None,
        partition_k: int | None = None,
        partition_lg_k: int | None = None,
        max_size_bytes: int = 256 << 20,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Statistics:
        """Make statistics of this snapshot. Changes nothing until `.commit()`.

        Those of the table are Theta, KLL and column statistics: one scan with PySpark. Those of partitions and of
        manifests are made from manifests alone, without Spark.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns; by default all that can have these statistics. The statistics of manifests always are of
            all columns.
        table : bool, optional
            Whether to scan the table; by default unless partitions or manifests are asked for.
        partitions : bool
            Whether to make the partition statistics file: Iceberg's columns 1 to 13, added to the file of an ancestor
            where that gives the same.
        manifests : bool
            Whether to roll up each manifest: the manifest-level statistics proposal's fields 521 to 527.
        with_column_stats : bool
            Whether the partition statistics file has the statistics of columns too; with `by="partition"` average and
            largest lengths among them.
        k : int
            Size of the KLL sketches, 8 to 65,535; 200 is a rank error of 1.33 %.
        lg_k : int
            Base-2 logarithm of the Theta sketches' entries, 4 to 26; 12 as Iceberg has it.
        by : {"partition"}, optional
            Keep Theta and KLL for each partition too, so that `histogram(where=...)` can be drawn of some of them. What
            they will take is written to stderr first: about 38 kB a column and a large partition.
        partition_k, partition_lg_k : int, optional
            Smaller sizes for the sketches of partitions; the table's stay as `k` and `lg_k` have them.
        max_size_bytes : int
            Sketches of partitions that may take more than this are not computed: 256 MiB.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.
        progress : callable, optional
            Called with finished and total tasks.

        Raises
        ------
        ColumnNotFoundError, CallError
            The call is wrong, or sketches of partitions would take more than the limit.
        SparkUnavailableError
            There is no Java 17, or Spark cannot start.
        UnsupportedError
            Neither PyIceberg nor Spark can read the table.

        Notes
        -----
        Live rows only: position deletes, deletion vectors and equality deletes are applied. Where PyIceberg cannot read
        a table, Spark's own scan does, more slowly; the result says so.
        """
        from icestats.scan.scan_job import Sizes
        from icestats.table.statistics import StatisticsRequest, compute_statistics

        if by not in (None, "partition"):
            raise CallError(f"by is {by!r}: expected 'partition', or nothing for the whole table")
        request = StatisticsRequest(
            columns=columns,
            scan=by is not None or not (partitions or manifests) if table is None else table,
            partitions=partitions,
            manifests=manifests,
            with_column_stats=with_column_stats,
            sizes=Sizes(k, lg_k, min(k, partition_k or k), min(lg_k, partition_lg_k or lg_k)),
            by_partition=by is not None,
            max_size_bytes=max_size_bytes,
            spark=spark,
            progress=progress,
        )
        return compute_statistics(self._reader, request)

    def partition_statistics(self) -> pa.Table:
        """Return the rows of the partition statistics file that is registered for this snapshot.

        Returns
        -------
        pyarrow.Table
            `schemas.partitions_schema`: one row a partition of one spec; the map columns are null where the file has
            no statistics of columns, as those that Iceberg writes. A partition whose last file is gone may have a row.

        Raises
        ------
        StatisticsMissingError
            None is registered for this snapshot.
        MetadataError, UnsupportedError
            The file is cut or damaged; its field ids are not the spec's, as before Iceberg 1.10.
        """
        from icestats.table.metadata_statistics import read_registered_partitions

        return read_registered_partitions(self._reader)
