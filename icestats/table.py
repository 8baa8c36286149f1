"""The table that a person works with: one snapshot of an Iceberg table, and everything its metadata knows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.catalog import Source, load_iceberg_table, reopen_source
from icestats.errors import CallError, StatisticsMissingError
from icestats.metadata import Schema, Snapshot, TableMetadata
from icestats.overview import Overview, build_overview
from icestats.plan.scan_files import check_row_filter, read_kept_file_paths
from icestats.presentation import render_html, render_text
from icestats.read.statistics_files import build_sketches
from icestats.snapshot_reader import SnapshotReader
from icestats.statistics import Statistics, compute_statistics
from icestats.stats.histogram import Histogram, Kind

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession


class Table:
    """One snapshot of an Iceberg table, read-only until a `compute(...).commit()`.

    What has been read is kept; `refresh()` gives the table as it is now.

    Parameters
    ----------
    source : Source
        An opened table.
    snapshot_id : int, optional
        By default the current snapshot.
    ref : str, optional
        A branch or a tag instead.
    """

    def __init__(self, source: Source, snapshot_id: int | None = None, ref: str | None = None) -> None:
        self._source = source
        self._pin = (snapshot_id, ref)
        self.snapshot: Snapshot | None = source.metadata.find_snapshot(snapshot_id, ref)
        """The snapshot that everything is about; None for a table that has none yet."""
        self.schema: Schema = source.metadata.schema_of(self.snapshot)
        """The schema that the snapshot is read with."""
        self._reader = SnapshotReader(source, self.snapshot, self.schema)

    @property
    def name(self) -> str:
        """The name or location that the table was loaded by."""
        return self._source.name

    @property
    def metadata(self) -> TableMetadata:
        """The version of the metadata that was loaded."""
        return self._source.metadata

    def refresh(self) -> Table:
        """Return the table as it is now; a pinned snapshot stays."""
        return Table(reopen_source(self._source), *self._pin)

    def manifest_files(self) -> pa.Table:
        """Return the manifest list alone, in milliseconds whatever the number of files.

        Returns
        -------
        pyarrow.Table
            `schemas.MANIFEST_FILES`: one row a manifest, in manifest list order.
        """
        return self._reader.manifest_files

    def read(self, *, progress: Callable[[int, int], None] | None = None) -> Table:
        """Read now what the first question about manifests, partitions or columns would read; return this table.

        Parameters
        ----------
        progress : callable, optional
            Called with the number of manifests that are done and of those that the local cache does not know; what it
            raises stops the reading.
        """
        self._reader.fill_rollups(progress)
        return self

    def read_with_spark(
        self, spark: SparkSession | None = None, *, progress: Callable[[int, int], None] | None = None
    ) -> Table:
        """Do as `read` does on Spark's executors, for a table whose metadata one machine should not read.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.
        progress : callable, optional
            Called from another thread with finished and total tasks; what it raises cancels the job.
        """
        from icestats.spark.session import get_session

        self._reader.fill_rollups(progress, get_session() if spark is None else spark)
        return self

    def manifests(self) -> pa.Table:
        """Return the manifests with the roll-up of their live files.

        Returns
        -------
        pyarrow.Table
            `schemas.MANIFESTS`: one row a manifest, in manifest list order. A statistic that a live file lacks is null,
            that is unknown, and the number of files that lack it stands beside it.

        Notes
        -----
        Counts and sizes are exact sums over data files; row-level deletes are not deducted. Bounds are bounds: strings
        may be cut. Source: the manifest-level statistics proposal, fields 521 to 527; the missing-field rule of
        "Extending standardized statistics in Iceberg", part 2.

        Examples
        --------
        >>> import icestats
        >>> manifests = icestats.load("demo.flights").manifests()
        >>> sum(manifests["total_record_count"].to_pylist())
        336776
        """
        return self._reader.read_manifests()

    def partitions(self) -> pa.Table:
        """Return the partitions with the roll-up of their live files.

        Returns
        -------
        pyarrow.Table
            `schemas.partitions_schema`: one row a partition of one spec, sorted by partition, nulls first; the columns
            of the partition statistics file under their spec names, then the map columns of `manifests`. An
            unpartitioned table has one row.
        """
        return self._reader.read_partitions()

    def columns(self) -> pa.Table:
        """Return the columns with their roll-up over the table.

        Returns
        -------
        pyarrow.Table
            `schemas.COLUMNS`: one row a primitive field at any depth; `provenance` says for each figure whether it is
            exact, a bound, an estimate with its error, or unknown and why.
        """
        return self._reader.read_columns()

    def files(self, *, columns: Sequence[str] = (), row_filter: str | BooleanExpression | None = None) -> pa.Table:
        """Return the live files, data and delete files alike.

        Parameters
        ----------
        columns : sequence of str
            Columns whose statistics are wanted in the map columns; by default none.
        row_filter : str or pyiceberg.expressions.BooleanExpression, optional
            Only the data files that a scan with this filter would read.

        Returns
        -------
        pyarrow.Table
            `schemas.files_schema`: one row a live entry, in manifest list order.

        Raises
        ------
        ColumnNotFoundError, FilterError
            A column does not exist; the filter cannot be read or does not fit the schema.
        """
        field_ids = [self.schema.find(column).field_id for column in columns]
        files = self._reader.read_files(field_ids)
        if row_filter is None or self.snapshot is None:
            return files
        kept = read_kept_file_paths(self._source, self.snapshot, row_filter)
        return files.filter(pc.is_in(files["file_path"], pa.array(sorted(kept), pa.string())))

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
        return build_sketches(self._reader.blobs, self.schema)

    def histogram(
        self,
        column: str,
        *,
        bins: int = 40,
        kind: Kind = "equi-width",
        where: str | BooleanExpression | None = None,
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
            A filter on partitions; needs sketches by partition.

        Raises
        ------
        ColumnNotFoundError, FilterError, CallError
            The call is wrong.
        StatisticsMissingError
            No sketch has been committed for this snapshot or an ancestor of it.

        Notes
        -----
        Ranks are within `rank_error` at 99 % confidence; each count within twice that times `n`.
        """
        field = self.schema.find(column)
        if bins < 1:
            raise CallError(f"bins is {bins}: expected a whole number from 1")
        if where is not None:
            check_row_filter(self._source, where)
            raise StatisticsMissingError(
                f"no sketches by partition have been committed for column {column!r}, which a histogram of a part of "
                "the table needs; without a filter it is drawn from the table's sketch"
            )
        return self._reader.read_histogram(field, bins=bins, kind=kind)

    def compute(
        self,
        *,
        columns: Sequence[str] | None = None,
        k: int = 200,
        lg_k: int = 12,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Statistics:
        """Scan this snapshot once with PySpark: Theta, KLL and column statistics. Changes nothing until `.commit()`.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns; by default all of a type that has sketches.
        k : int
            Size of the KLL sketches, 8 to 65,535; 200 is a rank error of 1.33 %.
        lg_k : int
            Base-2 logarithm of the Theta sketches' entries, 4 to 26; 12 as Iceberg has it.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.
        progress : callable, optional
            Called with finished and total tasks.

        Raises
        ------
        ColumnNotFoundError, CallError
            The call is wrong.
        SparkUnavailableError
            There is no Java 17, or Spark cannot start.
        UnsupportedError
            The table holds deletes that cannot be applied.
        """
        return compute_statistics(
            self._source, self.snapshot, columns=columns, k=k, lg_k=lg_k, spark=spark, progress=progress
        )

    def sql(self, query: str) -> pa.Table:
        """Run a DuckDB query over the table's metadata.

        Parameters
        ----------
        query : str
            A SELECT over the views `manifests`, `files`, `partitions`, `columns` (the answers of the methods of these
            names, `files` with the statistics of every column), `snapshots` and `refs`.

        Returns
        -------
        pyarrow.Table
            The rows of the query.

        Raises
        ------
        CallError
            The query is wrong.

        Notes
        -----
        A view is read when the query needs it. Filters on `files` about partition values, content, spec or manifest
        leave out whole manifests by the manifest list.

        Examples
        --------
        >>> import icestats
        >>> table = icestats.load("demo.flights")
        >>> table.sql("select sum(record_count) as records from files").to_pylist()
        [{'records': Decimal('336776')}]
        """
        # Arrow's datasets import pandas, which the first picture must not wait for.
        from icestats.sql import run_query
        from icestats.sql_views import build_views

        return run_query(query, build_views(self._reader))

    def orphans(self) -> pa.Table:
        """Return statistics files below the table's location that the current metadata does not refer to.

        Returns
        -------
        pyarrow.Table
            `commit.orphans.ORPHANS`: one row a file, with its size in bytes and its age.
        """
        from icestats.commit.orphans import find_orphans

        return find_orphans(load_iceberg_table(self._source), history=False)

    def explore(self) -> Any:
        """Return the widget: manifests, partitions, histograms, compute and commit."""
        # The notebook layer stands above the library: it is looked up when it is asked for.
        return importlib.import_module("icestats_widgets").Explorer(self)

    def overview(self) -> Overview:
        """Return the figures that the manifest list and metadata.json give: what a table draws of itself."""
        return build_overview(self.name, self.metadata, self.snapshot, self._reader.manifest_files)

    def __repr__(self) -> str:
        return render_text(self.overview())

    def _repr_html_(self) -> str:
        return render_html(self.overview())
