"""What a table's metadata holds: manifests, partitions, columns, files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from icestats.errors import CallError
from icestats.table.facet import Facet

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession


class Contents(Facet):
    """What the manifest list and the manifests hold."""

    def manifest_files(self) -> pa.Table:
        """Return the manifest list alone, in milliseconds whatever the number of files.

        Returns
        -------
        pyarrow.Table
            `schemas.MANIFEST_FILES`: one row a manifest, in manifest list order.
        """
        return self._reader.manifest_files

    def read(self, *, progress: Callable[[int, int], None] | None = None) -> Self:
        """Read now what the first question about manifests, partitions or columns would read; return this table.

        Parameters
        ----------
        progress : callable, optional
            Called with the number of manifests that have been read and of all that the local cache does not know; an
            exception from it stops the reading.
        """
        self._reader.fill_rollups(progress)
        return self

    def read_with_spark(
        self, spark: SparkSession | None = None, *, progress: Callable[[int, int], None] | None = None
    ) -> Self:
        """Read the same as `read` on Spark's executors, for a table whose metadata is too large for one machine.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.
        progress : callable, optional
            Called from another thread with finished and total tasks; an exception from it cancels the job.
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

    def files(
        self,
        *,
        columns: Sequence[str] = (),
        row_filter: str | BooleanExpression | None = None,
        manifest_paths: Collection[str] | None = None,
    ) -> pa.Table:
        """Return the live files, data and delete files alike.

        Parameters
        ----------
        columns : sequence of str
            Columns whose statistics are wanted in the map columns; by default none.
        row_filter : str or pyiceberg.expressions.BooleanExpression, optional
            Only the data files that a scan with this filter would read.
        manifest_paths : collection of str, optional
            Only the files of these manifests; no other one is read.

        Returns
        -------
        pyarrow.Table
            `schemas.files_schema`: one row a live entry, in manifest list order.

        Raises
        ------
        ColumnNotFoundError, FilterError, CallError
            A column does not exist; the filter cannot be read or does not fit the schema; the snapshot has no such
            manifest.
        """
        field_ids = [self.schema.find(column).field_id for column in columns]
        files = self._reader.read_files(field_ids, self._find_manifests(manifest_paths))
        if row_filter is None or self.snapshot is None:
            return files
        from icestats.snapshot.plan_reader import read_plan

        kept = read_plan(self._reader, self._bind(row_filter)).kept_file_paths()
        return files.filter(pc.is_in(files["file_path"], pa.array(kept, pa.string())))

    def row_groups(self, files: pa.Table, *, columns: Sequence[str] = ()) -> pa.Table:
        """Return the row groups of some data files, by the footers of these files.

        Parameters
        ----------
        files : pyarrow.Table
            Rows of `files()`.
        columns : sequence of str
            Primitive columns whose statistics are wanted.

        Returns
        -------
        pyarrow.Table
            `schemas.row_group_metrics_schema`: one row a row group, `size_bytes` compressed, and of each
            column `value_count_N`, `null_value_count_N`, `lower_bound_N`, `upper_bound_N`, where N is its field id. A
            file that is not Parquet is one row group without statistics.

        Raises
        ------
        ColumnNotFoundError
            The table has no such column.
        MetadataError
            A data file is missing, or its footer is damaged.
        """
        return self._reader.read_row_groups(files, [self.schema.find(column) for column in columns])

    def _find_manifests(self, manifest_paths: Collection[str] | None) -> pa.Table | None:
        if manifest_paths is None:
            return None
        known = self._reader.manifest_files
        if unknown := set(manifest_paths) - set(known["manifest_path"].to_pylist()):
            raise CallError(f"no manifest {min(unknown)!r} in this snapshot: expected paths of `manifest_files()`")
        return known.filter(pc.is_in(known["manifest_path"], pa.array(sorted(manifest_paths), pa.string())))

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
            The rows of the query. Of columns of one name the later ones get a number: `a`, `a_1`.

        Raises
        ------
        CallError
            The query is wrong, or does more than read.

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
        # DuckDB and Arrow's datasets are slow to import: only a query needs them.
        from icestats.snapshot.sql import build_views, run_query

        return run_query(query, build_views(self._reader))
