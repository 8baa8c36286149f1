"""What a table's metadata holds, what a scan reads of it, and how well it is clustered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from icestats.errors import CallError, check_filters, check_flags, check_names, check_whole
from icestats.iceberg.catalog import Source, find_configured_name
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession

    from icestats.iceberg.filters.row_filter import FilterSchema, RowFilter
    from icestats.snapshot.layout.layout import Layout
    from icestats.snapshot.layout.what_if import ManifestRewrite
    from icestats.snapshot.pruning.plan import Plan, PlanOutlook


class Contents:
    """One snapshot of an Iceberg table, read once; made as `Table` says."""

    def __init__(self, source: Source, snapshot_id: int | None = None, ref: str | None = None) -> None:
        self._source = source
        self._pin = (snapshot_id, ref)
        self.name: str = source.name
        """The name or location that the table was loaded by."""
        self.metadata: TableMetadata = source.metadata
        """The version of the metadata that was loaded."""
        self.snapshot: Snapshot | None = source.metadata.find_snapshot(snapshot_id, ref)
        """The snapshot that everything is about; None for a table that has none yet."""
        self.schema: Schema = source.metadata.find_schema(snapshot_id, ref)
        """The schema that the snapshot is read with: a branch's is the current one, a tag's and an id's its own."""
        self._reader = SnapshotReader(source, self.snapshot, self.schema)

    @cached_property
    def _filter_schema(self) -> FilterSchema:
        from icestats.iceberg.filters.row_filter import read_filter_schema

        return read_filter_schema(self._source, self.schema.schema_id)

    def bind(self, row_filter: str | BooleanExpression) -> RowFilter:
        """Read a filter and bind it to the schema of this snapshot, in half a millisecond; nothing else is read.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter, in PyIceberg's language.

        Raises
        ------
        FilterError
            The filter cannot be read, or does not fit the schema.

        Examples
        --------
        >>> import icestats
        >>> str(icestats.load("demo.flights").bind("not month > 6").condition)
        'month <= 6'
        """
        from icestats.iceberg.filters.row_filter import bind_row_filter

        return bind_row_filter(row_filter, self._filter_schema)

    @property
    def pin(self) -> dict[str, int | str]:
        """What the table was loaded with beside its name: `snapshot`, `ref`, or neither."""
        snapshot_id, ref = self._pin
        return {name: value for name, value in (("snapshot", snapshot_id), ("ref", ref)) if value is not None}

    def code(self) -> str:
        """Return the Python that loads this table; `spark`, or `catalog`, in it is what it was loaded with.

        Examples
        --------
        >>> import icestats
        >>> icestats.load("demo.events").code()
        "icestats.load('demo.events')"
        """
        name = find_configured_name(self._source)
        pins = [f"{pin}={value!r}" for pin, value in self.pin.items()]
        given = [] if name else ["catalog=catalog" if self._source.catalog is None else "spark=spark"]
        return f"icestats.load({', '.join([repr(name or self.name), *pins, *given])})"

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
            The session to use; by default that of `load`, the running one, or a new local one.
        progress : callable, optional
            Called from another thread with finished and total tasks; an exception from it cancels the job.
        """
        from icestats.spark.session_catalog import find_session

        self._reader.fill_rollups(progress, find_session(self._source, spark))
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
            of the partition statistics file under their spec names, then the map columns of `manifests`, then what
            committed statistics know: `ndvs` with their errors and ages, and lengths of values. An unpartitioned table
            has one row.
        """
        return self._reader.read_partitions()

    def columns(self) -> pa.Table:
        """Return the columns with their roll-up over the table.

        Returns
        -------
        pyarrow.Table
            `schemas.COLUMNS`: one row a primitive field at any depth; `provenance` says for each figure whether it is
            exact, a bound, an estimate with its error, or unknown and why.

        Notes
        -----
        Counts of values, nulls and NaN, and the smallest and largest value are exact, over live rows, where they are
        committed for this snapshot. Those of an earlier snapshot promise nothing for this one: the files' sums and
        bounds are shown, and `provenance` says which snapshot the exact ones are of.
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
        check_names("columns", columns)
        field_ids = [self.schema.find(column).field_id for column in columns]
        check_names("manifest_paths", manifest_paths, or_none=True)
        manifests = self._find_manifests(manifest_paths)
        files = self._reader.read_files(field_ids, manifests)
        if row_filter is None or self.snapshot is None:
            return files
        from icestats.snapshot.pruning.plan_reader import read_plan

        kept = read_plan(self._reader, self.bind(row_filter), manifests=manifests).kept_file_paths()
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
        CallError
            `files` or `columns` is something else.
        MetadataError
            A data file is missing, or its footer is damaged.
        """
        from icestats.snapshot.pruning.row_groups import FILE_COLUMNS, read_row_groups

        if not isinstance(files, pa.Table) or not set(FILE_COLUMNS) <= set(files.column_names):
            raise CallError(f"files is {files!r:.80}: expected rows of `files()`")
        check_names("columns", columns)
        wanted = [self.schema.find(column) for column in columns]
        return read_row_groups(self._source.storage, files, wanted, self._source.metadata.name_mapping)[0]

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

        if not isinstance(query, str):
            raise CallError(f"the query is {query!r:.80}: expected text, one SELECT")
        return run_query(query, build_views(self._reader))

    def plan(
        self,
        row_filter: str | BooleanExpression,
        *,
        row_groups: bool = False,
        rows: bool = False,
        manifest_statistics: bool | None = None,
        manifest_paths: Collection[str] | None = None,
    ) -> Plan:
        """Return what a scan with a filter reads of this snapshot, step by step, and why.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter, in PyIceberg's language.
        row_groups : bool, optional
            Whether the footers of the files that are left are read too, for a step by row group.
        rows : bool, optional
            Whether the files that are left are read too, for the number of rows that match; by Spark where PyIceberg
            cannot read them. Without it there is a step of rows only where the metadata proves that every row of the
            files that are left matches.
        manifest_statistics : bool, optional
            Whether manifests are judged by their columns' bounds too. By default where statistics of manifests are
            committed and 64 MiB of manifests are left, whatever has been read before; True reads what is missing.
        manifest_paths : collection of str, optional
            Only what a scan reads of these manifests of data; by default of all.

        Returns
        -------
        Plan
            `.steps`, `.partition_filters`, `.manifests()`, `.files()`.

        Raises
        ------
        FilterError, CallError
            The filter cannot be read, or does not fit the schema; the snapshot has no such manifest; rows of some
            manifests alone cannot be counted.
        MetadataError
            A metadata file is missing, cut or damaged.

        Notes
        -----
        A file is skipped only where its metadata proves that no row of it matches: a statistic that is missing keeps
        it. The files that are kept are those of Iceberg's own scan planning, from 1.11 on. Source: Iceberg spec, "Scan
        Planning".

        Examples
        --------
        >>> import icestats
        >>> plan = icestats.load("demo.flights").plan("carrier = 'UA' and month = 7")
        >>> [step.step for step in plan.steps if step.unit == "file"]
        ['data files by partition tuple', 'data files by column bounds']
        >>> all(step.kept + step.skipped == step.total for step in plan.steps)
        True
        """
        from icestats.snapshot.pruning.plan_reader import read_plan

        bound = self.bind(row_filter)
        check_flags(
            row_groups=row_groups,
            rows=rows,
            manifest_statistics=False if manifest_statistics is None else manifest_statistics,
        )
        check_names("manifest_paths", manifest_paths, or_none=True)
        if rows and manifest_paths is not None:
            raise CallError("rows can be counted of the whole table only: leave out rows or manifest_paths")

        return read_plan(
            self._reader,
            bound,
            row_groups=row_groups,
            rows=rows,
            manifest_statistics=manifest_statistics,
            manifests=self._find_manifests(manifest_paths),
        )

    def plan_outlook(
        self, row_filter: str | BooleanExpression, *, manifest_paths: Collection[str] | None = None
    ) -> PlanOutlook:
        """Return what the manifest list alone says of a plan, in milliseconds: what is shown while `plan` reads.

        Parameters
        ----------
        row_filter, manifest_paths
            As for `plan`.

        Returns
        -------
        PlanOutlook
            `.manifest_count`, how many manifests' files `plan` is going to read: none that it has read before;
            `.file_count`, the number of data files that it keeps at most, None if the manifest list has no counts.

        Raises
        ------
        FilterError, CallError, MetadataError
            As by `plan`.

        Examples
        --------
        >>> import icestats
        >>> table = icestats.load("demo.flights")
        >>> most = table.plan_outlook("carrier = 'UA' and month = 7").file_count
        >>> len(table.plan("carrier = 'UA' and month = 7").kept_file_paths()) <= most
        True
        """
        from icestats.snapshot.pruning.plan_reader import read_outlook

        bound = self.bind(row_filter)
        check_names("manifest_paths", manifest_paths, or_none=True)
        return read_outlook(self._reader, bound, manifests=self._find_manifests(manifest_paths))

    def layout(self, *, columns: Sequence[str] | None = None) -> Layout:
        """Measure how well the metadata of this snapshot is clustered: what a lookup of one key opens.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to look at beside the partition fields; by default those that partitions are made of.

        Returns
        -------
        Layout
            `.fields`, `.spread`, `.late`, `.findings`, and `.what_if(...)`.

        Raises
        ------
        ColumnNotFoundError
            There is no such column.
        MetadataError
            A metadata file is missing, cut or damaged.

        Notes
        -----
        Exact over the bounds that files have. A key lies in a range between a lower and an upper bound whether or not a
        row of the file has it; keys are drawn as rows are, each bound of a file standing for half of its rows. All data
        manifests are read.

        Examples
        --------
        >>> import icestats
        >>> layout = icestats.load("demo.flights").layout()
        >>> layout.spread.record_count
        336776
        """
        from icestats.snapshot.layout.layout_reader import read_layout

        check_names("columns", columns, or_none=True)
        return read_layout(self._reader, self.bind, columns)

    def rewrite_manifests(
        self,
        *,
        sort_by: str | None = None,
        workload: Sequence[str | BooleanExpression] = (),
        manifest_size_bytes: int | None = None,
        dry_run: bool = True,
        spark: SparkSession | None = None,
    ) -> ManifestRewrite:
        """Regroup the current snapshot's files in manifests by partition, or say what that would bring.

        Parameters
        ----------
        sort_by : str, optional
            The partition field to cluster by; by default all of them, in the spec's order.
        workload : sequence of str or pyiceberg.expressions.BooleanExpression, optional
            Filters whose funnels are compared.
        manifest_size_bytes : int, optional
            The size that manifests are to have, set as the table's `commit.manifest.target-size-bytes`; by default what
            that says, or 8 MiB.
        dry_run : bool, optional
            Whether only to predict (the default), or to run Iceberg's `rewrite_manifests` through Spark.
        spark : pyspark.sql.SparkSession, optional
            A session that knows the table's catalog by its name; by default the running one, or a new local one.

        Returns
        -------
        ManifestRewrite
            The statements, and each figure before, predicted, and after where it has been run.

        Raises
        ------
        CallError
            There is no such partition field, or this is not the table's current snapshot.
        CommitError
            The table is a bare metadata.json, or the rewrite was not committed.
        SparkUnavailableError
            There is no Java 17, or Spark cannot start.

        Notes
        -----
        Data files stay as they are, and so do all answers. The prediction is from metadata alone: Spark samples where
        one manifest ends, so that manifests may hold a little more or less.
        """
        from icestats.snapshot.layout.layout_reader import rewrite_manifests

        check_filters("workload", workload)
        check_flags(dry_run=dry_run)
        if manifest_size_bytes is not None:
            manifest_size_bytes = check_whole("manifest_size_bytes", manifest_size_bytes, 1)
        if not dry_run and self._pin not in ((None, None), (None, "main")):
            raise CallError("only the current snapshot's manifests can be rewritten: load the table without a snapshot")
        return rewrite_manifests(
            self._reader,
            [self.bind(one) for one in workload],
            sort_by=sort_by,
            manifest_size_bytes=manifest_size_bytes,
            dry_run=dry_run,
            spark=spark,
        )
