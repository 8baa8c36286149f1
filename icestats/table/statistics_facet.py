"""A table's statistics files: what they hold, computing them, bringing them up to date, removing them, cleaning up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from icestats.errors import (
    CallError,
    IcestatsError,
    MetadataError,
    StatisticsMissingError,
    check_choice,
    check_flags,
    check_names,
    check_whole,
    read_snapshot_id,
)
from icestats.iceberg.catalog import find_configured_name, load_iceberg_table, load_writable_table
from icestats.iceberg.metadata import match_names
from icestats.iceberg.summary import find_stated_size
from icestats.table.contents_facet import Contents

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import SparkSession

    from icestats.read.puffin.committed_partitions import MergedSketches
    from icestats.stats.histogram import Histogram, Kind
    from icestats.stats.table_statistics import TableStatistics
    from icestats.table.statistics import RefreshedStatistics, RemovalReport, Statistics


class StatisticsFiles(Contents):
    """What statistics files hold, computing and committing them."""

    def sketches(self) -> pa.Table:
        """Return the blobs of the registered table statistics files.

        Returns
        -------
        pyarrow.Table
            `schemas.SKETCHES`: one row a blob, those nearest to this snapshot first.

        Raises
        ------
        MetadataError
            No statistics file can be used: missing, cut or damaged. Where some can, the others are findings.
        """
        from icestats.read.puffin.statistics_files import build_sketches

        return build_sketches(self._reader.blobs, self.schema)

    def frequent_values(
        self,
        column: str,
        *,
        where: str | BooleanExpression | None = None,
        partial: Literal["refuse", "include"] = "refuse",
    ) -> pa.Table:
        """Return a column's most common values, from its committed frequent items; no data file is touched.

        Parameters
        ----------
        column : str
            A top-level column.
        where : str or pyiceberg.expressions.BooleanExpression, optional
            Only the rows of the partitions that this filter selects; needs common values by partition, which
            `compute(by="partition")` makes.
        partial : {"refuse", "include"}
            What to do if `where` selects parts of partitions: raise FilterError, or count all rows of each partition
            that it may select rows of.

        Returns
        -------
        pyarrow.Table
            `schemas.FREQUENT_VALUES`: one row a value, most common first; last one for any other value.

        Raises
        ------
        ColumnNotFoundError, CallError
            There is no such column, or it can have no sketch.
        FilterError
            The filter is wrong, or selects parts of partitions, which are not to be included.
        StatisticsMissingError
            None have been committed for this snapshot or an ancestor of it, or those of a selected partition were left
            out.

        Examples
        --------
        >>> import icestats
        >>> common = icestats.load("demo.flights").frequent_values("carrier")
        >>> common["value"][0].as_py(), common["rows_at_least"][0].as_py()
        ('UA', 58665)
        """
        from icestats.table.frequent_values import build_frequent_values

        chosen = None if where is None else self.bind(where)
        check_choice("partial", partial, ("refuse", "include"))
        field = self.schema.find(column)
        return build_frequent_values(self._reader, field, chosen, partial)

    def columns_together(self) -> pa.Table:
        """Return the pairs of columns that have statistics together, which `compute(together=...)` makes.

        Returns
        -------
        pyarrow.Table
            `schemas.COLUMNS_TOGETHER`: one row a pair, those first where one column decides most of the other. Pairs
            of a column that is gone, or of another type now, are left out.

        Raises
        ------
        MetadataError
            No statistics file can be used: missing, cut or damaged. Where some can, the others are findings.
        """
        from icestats.table.frequent_values import build_columns_together

        return build_columns_together(self._reader)

    def coverage(self, *, columns: Sequence[str] | None = None, engines: Sequence[str] | None = None) -> pa.Table:
        """Return which statistics each engine's optimizer uses, has of this table, and lacks.

        Parameters
        ----------
        columns : sequence of str, optional
            Primitive top-level columns; by default all.
        engines : sequence of str, optional
            Some of Spark, Trino, Presto, Hive, Impala, DuckDB and icestats; by default all.

        Returns
        -------
        pyarrow.Table
            `schemas.COVERAGE`: one row an engine and statistic of the table, a column, the partitions, or a column of
            the partitions. A statistic that does not apply is left out: NaN of other types than float and double,
            lengths of other types than string and binary, partitions of a table without.

        Raises
        ------
        ColumnNotFoundError, CallError
            There is no such column or engine, the column is nested, or there are more than 10,000 columns.
        MetadataError
            A metadata file is missing, cut or damaged. Statistics files that are lack what they should have.

        Notes
        -----
        What an engine does is of the version in `engine_version`, as its source shows. What an engine has outside of
        the table, such as the columns' statistics of a Hive metastore, is not known. Source: "Extending standardized
        statistics in Iceberg", the tables of statistics by level.

        Examples
        --------
        >>> import icestats
        >>> coverage = icestats.load("demo.flights").coverage(columns=["carrier"], engines=["DuckDB"])
        >>> coverage.filter(coverage["read_by_engine"])["statistic"].to_pylist()
        ['num rows']
        """
        from icestats.estimation.coverage import TableWords, build_coverage

        check_names("columns", columns, or_none=True)
        check_names("engines", engines, or_none=True)
        if columns is None:
            fields = [field for field in self.schema.top_level if field.is_primitive]
        else:
            fields = [self.schema.find(name) for name in dict.fromkeys(columns)]
        if nested := [field for field in fields if not (field.top_level and field.is_primitive)]:
            raise CallError(f"column {nested[0].name!r} is {nested[0].type}: expected a primitive top-level column")
        name, identifier = find_configured_name(self._source), self._source.identifier
        words = TableWords(name, self.pin, self.code(), identifier, columns, self._can_commit())
        return build_coverage(self._reader, words, fields, engines)

    def _can_commit(self) -> bool:
        if self._source.identifier is None or self.snapshot is None:
            return False
        try:
            self._check_writable()
        except IcestatsError:
            return False
        return True

    def histogram(
        self,
        column: str,
        *,
        bins: int = 40,
        kind: Kind = "equi-width",
        where: str | BooleanExpression | None = None,
        partial: Literal["refuse", "include"] = "refuse",
        lower: Any = None,
        upper: Any = None,
    ) -> Histogram:
        """Return a column's histogram from its committed KLL sketch; no data file is touched.

        Parameters
        ----------
        column : str
            A top-level column.
        bins : int
            How many bins, 100,000 at most; fewer are made where the column has fewer values.
        kind : {"equi-width", "equi-height"}
            Bins of the same width, or of the same count. Strings have equi-height ones only.
        where : str or pyiceberg.expressions.BooleanExpression, optional
            Only the rows of the partitions that this filter selects; needs sketches by partition, which
            `compute(by="partition")` makes.
        partial : {"refuse", "include"}
            What to do if `where` selects parts of partitions: raise FilterError, or draw all rows of each partition
            that it may select rows of.
        lower, upper : object, optional
            Draw the part of the range from `lower` to `upper`, both included: values of the column, or their text. How
            many values lie outside is in the result's `below` and `above`.

        Raises
        ------
        ColumnNotFoundError, FilterError, CallError
            The call is wrong, the column can have no sketch, or the filter selects parts of partitions, which are not
            to be included.
        StatisticsMissingError
            No sketch has been committed for this snapshot or an ancestor of it.

        Notes
        -----
        Ranks are within `rank_error` at 99 % confidence; each count within twice that times `n`. All figures are of the
        rows that were live at the result's `snapshot_id`, `commits_behind` commits before this snapshot.
        """
        field = self.schema.find(column)
        bins = check_whole("bins", bins, 1)
        chosen = None if where is None else self.bind(where)
        check_choice("partial", partial, ("refuse", "include"))
        return self._reader.read_histogram(
            field, bins=bins, kind=kind, where=chosen, partial=partial, lower=lower, upper=upper
        )

    def merge_partition_sketches(
        self, column: str, where: str | BooleanExpression, *, partial: Literal["refuse", "include"] = "refuse"
    ) -> MergedSketches:
        """Return the committed sketches of the partitions that a filter selects, merged; no data file is touched.

        Parameters
        ----------
        column : str
            A top-level column.
        where : str or pyiceberg.expressions.BooleanExpression
            A filter that selects whole partitions.
        partial : {"refuse", "include"}
            What to do if it selects parts of partitions: raise FilterError, or merge all rows of each partition that it
            may select rows of; the result's `partial_partition_count` says how many of them may have other rows too.

        Returns
        -------
        MergedSketches
            Theta, KLL and exact counts of the rows of these partitions that were live at its `snapshot_id`,
            `commits_behind` commits before this snapshot. `ndv` is within `theta.relative_error` at 95 % confidence.

        Raises
        ------
        ColumnNotFoundError, FilterError, CallError
            There is no such column, it can have no sketch, or the filter selects parts of partitions, which are not to
            be included.
        StatisticsMissingError
            No sketches by partition of the column have been committed for this snapshot or an ancestor of it, or those
            of a selected partition were left out.

        Examples
        --------
        >>> import icestats
        >>> table = icestats.load("demo.events")
        >>> found = table.merge_partition_sketches("quantity", "event_time < '2026-09-03T00:00:00Z'")
        >>> found.partition_count, found.ndv, found.theta.is_exact
        (128, 22, True)
        """
        from icestats.stats.column_accumulator import can_sketch

        check_choice("partial", partial, ("refuse", "include"))
        field = self.schema.find(column)
        if reason := can_sketch(field):
            raise CallError(f"column {field.name!r}: {reason}")
        chosen = self.bind(where)
        return self._reader.read_partition_sketches(field, chosen, partial=partial)

    def compute(
        self,
        *,
        columns: Sequence[str] | None = None,
        table: bool | None = None,
        partitions: bool = False,
        manifests: bool = False,
        with_column_stats: bool | None = None,
        k: int | None = None,
        lg_k: int | None = None,
        by: Literal["partition"] | None = None,
        partition_k: int | None = None,
        partition_lg_k: int | None = None,
        max_size_bytes: int | None = None,
        together: Sequence[tuple[str, str]] | Literal["auto"] | None = None,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Statistics:
        """Make statistics of this snapshot. Changes nothing until `.commit()`.

        Those of the table are Theta, KLL, frequent items and column statistics: one scan with PySpark. Those of
        partitions and of manifests are made from manifests alone, without Spark.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns; by default all that can have these statistics. Names, or patterns such as `measure_*`
            (`fnmatch`'s); a column's own name stands for it alone, whatever is in it. The statistics of manifests
            always are of all columns.
        table : bool, optional
            Whether to scan the table; by default unless no more than partitions or manifests are asked for.
        partitions : bool
            Whether to make the partition statistics file: Iceberg's columns 1 to 13, added to the file of an ancestor
            where that gives the same.
        manifests : bool
            Whether to roll up each manifest: totals, as the manifest-level statistics proposal has them, and columns.
        with_column_stats : bool, optional
            Whether the partition statistics file has the statistics of columns too; with `by="partition"` average and
            largest lengths among them. By default those of the columns that the nearest such file has.
        k : int, optional
            Size of the table's KLL sketches, 8 to 65,535; 200 is a rank error of 1.33 %. By default as the committed
            sketches of these columns have it, but not below 200.
        lg_k : int, optional
            Base-2 logarithm of the Theta sketches' entries, 4 to 26. By default that of the committed sketches, but not
            below 12, which Iceberg has; one that still holds every value tells no more than how many these are.
        by : {"partition"}, optional
            Keep Theta, KLL and common values for each partition too: `histogram(where=...)` can be drawn of some of
            them, and estimates know the rows of a value in each. What they will take is written to stderr first.
        partition_k, partition_lg_k : int, optional
            Sizes for the sketches of partitions, no larger than the table's; by default the largest that surely fit.
        max_size_bytes : int, optional
            With `by`: what the sketches of the table and of the partitions may take together. By default 1 % of the
            bytes of the table's data files, but not less than 256 KiB nor more than 256 MiB. The table's sketches keep
            their sizes; those of partitions get the largest sizes that fit whatever the values are, as sizes are chosen
            before the scan: what is written takes less, so that larger ones may fit too (`partition_k`,
            `partition_lg_k`). Where the smallest do not fit, common values by partition are left out, then the sketches
            of the largest columns, or of the partitions with the fewest rows; the result says which. The limit is for
            what this call makes: a commit keeps earlier sketches of what is left out, as all that it does not replace.
        together : sequence of tuple of str or "auto", optional
            Pairs of columns that get statistics together, such as `[("country", "city")]`: the number of pairs, the
            most common ones, and how far one column decides the other. "auto": those that a sample of up to 65,536 rows
            shows to go together, 24 at most. By default those that are committed already.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default that of `load`, the running one, or a new local one.
        progress : callable, optional
            Called with finished and total tasks. Without it, the scan says on stderr what it reads, and where it takes
            longer, how far it is. An interrupt stops it.

        Raises
        ------
        ColumnNotFoundError, CallError
            The call is wrong, or even the smallest sketches of partitions are more than the driver can gather.
        SparkUnavailableError
            There is no Java 17, or Spark cannot start.
        UnsupportedError
            Neither PyIceberg nor Spark can read the table.

        Notes
        -----
        Live rows only: position deletes, deletion vectors and equality deletes are applied. Where PyIceberg cannot read
        a table, Spark's own scan does, more slowly; the result says so.
        """
        from icestats.read.puffin.committed_sketches import find_joint
        from icestats.scan.pair_sample import choose_pairs
        from icestats.scan.scan_job import Sizes
        from icestats.scan.scan_plan import prepare_scan
        from icestats.spark.session_catalog import find_session
        from icestats.spark.statistics_scan import run_scan
        from icestats.stats.partition_sketches import find_default_limit
        from icestats.stats.table_statistics import TableStatistics
        from icestats.table.metadata_statistics import (
            compute_metadata_statistics,
            expand_columns,
            find_stored_columns,
        )
        from icestats.table.statistics import Statistics, check_made, choose_sizes, fit_partitions

        check_flags(partitions=partitions, manifests=manifests)
        optional = {"table": table, "with_column_stats": with_column_stats}
        check_flags(**{name: flag for name, flag in optional.items() if flag is not None})
        if by is not None and not (isinstance(by, str) and by == "partition"):
            raise CallError(f"by is {by!r:.80}: expected 'partition', or nothing for the whole table")
        if with_column_stats and not partitions:
            raise CallError("with_column_stats is about the partition statistics file: ask for partitions too")
        if max_size_bytes is not None:
            max_size_bytes = check_whole("max_size_bytes", max_size_bytes, 0)
        snapshot = self._reader.require_snapshot()
        found = TableStatistics(snapshot.snapshot_id, snapshot.sequence_number, None, 0, 0, {}, {})
        if together is not None and not isinstance(together, str | Sequence):
            raise CallError(f"together is {together!r:.80}: expected pairs of columns in a list, or 'auto'")
        of_scan = by is not None or bool(together)
        if table is False and of_scan:
            raise CallError("by and together are of a scan of the table: leave out table=False")
        scans = bool(table or of_scan or not (table is False or partitions or manifests))
        check_made("a scan of the table", scans, k=k, lg_k=lg_k)
        of_partitions = {"partition_k": partition_k, "partition_lg_k": partition_lg_k, "max_size_bytes": max_size_bytes}
        check_made("by='partition'", by is not None, **of_partitions)
        if scans:
            plan = prepare_scan(self._source, snapshot, self.schema, columns, by_partition=by is not None)
            if k is None or lg_k is None:
                known_k, known_lg_k = self._reader.find_committed_sizes(plan.fields)
                k, lg_k = known_k if k is None else k, known_lg_k if lg_k is None else lg_k
            sizes, table_size = Sizes(k, lg_k, k, lg_k), plan.table_size_bytes or 0
            sizes.check()
            if by is not None:
                limit = find_default_limit(table_size) if max_size_bytes is None else max_size_bytes
                sizes = choose_sizes(plan, k, lg_k, (partition_k, partition_lg_k), limit)
            plan = replace(plan, pairs=choose_pairs(plan, together, list(find_joint(self._reader.usable_blobs))))
            found = run_scan(find_session(self._source, spark), plan, sizes, progress=progress)
            found = fit_partitions(found, max_size_bytes, lambda: table_size)
            found = self._say_refuted(found)
        named = expand_columns(self.schema, columns)
        if not with_column_stats:
            named = find_stored_columns(self._reader) if partitions and with_column_stats is None else ()
        of_metadata = compute_metadata_statistics(
            self._reader, snapshot, named if partitions else None, manifests=manifests, scanned=found.by_partition
        )
        return Statistics(self._source, found, of_metadata)

    def check_commit(self) -> None:
        """Raise if no statistics can be committed to this table: ask before a long `compute`.

        Raises
        ------
        CommitError
            The table was opened from a metadata.json or a folder, not through its catalog; the storage failed.
        MetadataError
            A statistics file that the snapshot has is gone or damaged: a commit carries over what is in it.
        UnsupportedError
            PyIceberg cannot write its format version, or such a file is encrypted.
        """
        from icestats.commit.table_state import check_existing

        table = self._check_writable()
        if self.snapshot is not None:
            check_existing(table, self.snapshot.snapshot_id)

    def _check_writable(self) -> IcebergTable:
        from icestats.commit.table_state import find_refusal

        table = load_writable_table(self._source)
        if (refusal := find_refusal(table)) is not None:
            raise refusal
        return table

    def partition_statistics(self) -> pa.Table:
        """Return the rows of the partition statistics file of this snapshot, or of the nearest ancestor that has one.

        Returns
        -------
        pyarrow.Table
            `schemas.partitions_schema`: one row a partition of one spec; the map columns have the columns that the file
            has, of their present type, and are null where it has none, as those that Iceberg writes; no such file has
            `ndvs`. A partition whose last file is gone may have a row. In each row also the file's `snapshot_id`, and
            `commits_behind`: how many commits later this snapshot is.

        Raises
        ------
        StatisticsMissingError
            None is registered for this snapshot or an ancestor of it.
        MetadataError, UnsupportedError
            The file is cut or damaged; its counts are not those of its snapshot's manifest list, as Iceberg 1.12 writes
            them after a change of the partition spec; its field ids are not the spec's, as before Iceberg 1.10.
        """
        from icestats.table.metadata_statistics import read_registered_partitions

        self._reader.require_snapshot()
        return read_registered_partitions(self._reader)

    def refresh_statistics(
        self,
        *,
        columns: Sequence[str] | None = None,
        max_size_bytes: int | None = None,
        spark: SparkSession | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RefreshedStatistics:
        """Bring committed statistics up to this snapshot, reading only the files added since where possible.

        Where a column has sketches by partition, these too: the partitions that have got rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Top-level columns, by names or patterns as for `compute`; by default those that have committed sketches.
        max_size_bytes : int, optional
            What the sketches of the table and of the partitions may take together, as for `compute`; by default what
            was asked for when they were made.
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
        ColumnNotFoundError, CallError
            The table has no such column; the call is wrong.
        PuffinFormatError
            The table's committed statistics are damaged. Damaged sketches by partition are left as they are, and named.
        SparkUnavailableError, UnsupportedError
            As `compute`.

        Notes
        -----
        A column is extended where its Theta sketch, KLL sketch and column statistics were made for one snapshot and for
        its present type, and files were added since and nothing else happened, as the operations of the snapshots and
        the manifests show. Otherwise it is scanned in full. The result is that of a full scan: counts, extremes and
        lengths exactly, the sketches within their error.

        Columns that have statistics together get the new rows there too; where nothing can be added, the pair is named.

        Sketches by partition follow the same rules, in the same scan. A partition whose sketches were left out to save
        space gets counts alone from new files, as its sketches would need all of its files.
        """
        from icestats.read.puffin.committed_columns import find_sketched_fields
        from icestats.read.puffin.statistics_files import PARTITION_SKETCHES
        from icestats.spark.statistics_refresh import Refresh
        from icestats.table.statistics import RefreshedStatistics, find_unlisted, fit_partitions

        if max_size_bytes is not None:
            max_size_bytes = check_whole("max_size_bytes", max_size_bytes, 0)
        snapshot = self._reader.require_snapshot()
        fields, blobs = self.schema.top_level, self._reader.blobs
        asked = find_sketched_fields(blobs, fields)
        if columns is not None:
            names = match_names(columns, [field.name for field in fields])
            asked = tuple(field for field in fields if field.name in names)
        if not asked:
            raise StatisticsMissingError(
                f"{self.name} has no committed statistics for snapshot {snapshot.snapshot_id} or an ancestor of it: "
                "run table.compute().commit(), or `icestats compute SOURCE --commit`, once"
            )
        refresh = Refresh(spark, self._source, snapshot, self.schema, progress, self._reader.find_refuted)
        own = (b.blob for b in blobs if b.blob.type == PARTITION_SKETCHES and b.commits_behind == 0)
        beside_bytes = sum({blob.field_ids: blob.length for blob in own}.values())
        found = fit_partitions(refresh.run(blobs, asked), max_size_bytes, self._find_size_bytes, beside_bytes)
        # Where it cannot be found, the preview does not say what share of the table the file is.
        with suppress(MetadataError):
            found = replace(found, table_size_bytes=self._find_size_bytes())
        found = self._say_refuted(found)
        return RefreshedStatistics(self._source, found, refresh, find_unlisted(found, blobs))

    def _say_refuted(self, found: TableStatistics) -> TableStatistics:
        from icestats.snapshot.refuted_figures import find_refuted_scan

        # Manifests that cannot be read take no scan with them.
        with suppress(MetadataError):
            return replace(found, findings=(*found.findings, *find_refuted_scan(self._reader.find_refuted, found)))
        return found

    def _find_size_bytes(self) -> int:
        stated = find_stated_size(self.metadata, self._reader.require_snapshot())
        return pc.sum(self.files()["file_size_in_bytes"]).as_py() or 0 if stated is None else stated

    def remove_statistics(
        self,
        snapshot: int | str | None = None,
        *,
        restore: bool = False,
        partitions: bool = True,
        expired: bool = False,
        dry_run: bool = False,
    ) -> RemovalReport:
        """Undo a commit of statistics: take a snapshot's entries out of metadata.json, in one commit.

        Parameters
        ----------
        snapshot : int or str, optional
            A snapshot's id: whose statistics; by default this table's snapshot.
        restore : bool
            Whether to go back to what stood there before the last commit, if it can be found. Its files are put back as
            copies: others may remove the earlier ones as orphans at any time.
        partitions : bool
            Whether the partition statistics go too; False leaves them.
        expired : bool
            Take out the entries of all snapshots that have expired instead: some engines leave them.
        dry_run : bool
            Only say what would change.

        Returns
        -------
        RemovalReport
            `print` it to see the entries before and after. The files stay on storage: see `orphans`.

        Raises
        ------
        CallError
            `snapshot` is no id, or a flag is neither True nor False; `snapshot` or `restore` is given with `expired`.
        StatisticsMissingError
            The snapshot has no statistics, or no expired one has.
        CommitError
            The table is read-only, others changed these statistics meanwhile, or what is to be put back cannot be read
            now: nothing was removed. Or the catalog gave no answer, and the message says so.

        Notes
        -----
        Do this before you drop a column whose NDV is listed for the current snapshot: afterwards Spark's joins fail.
        """
        from icestats.commit.statistics_removal import prepare_expired_removal, prepare_removal
        from icestats.table.statistics import build_removal_report, carry_out_removal

        check_flags(restore=restore, partitions=partitions, expired=expired, dry_run=dry_run)
        own = None if self.snapshot is None else self.snapshot.snapshot_id
        snapshot_id = own if snapshot is None else read_snapshot_id(snapshot)
        if expired:
            if restore or snapshot is not None:
                given = "restore" if restore else "snapshot"
                raise CallError(f"expired takes out the entries of all expired snapshots: leave out {given}")
            plan = prepare_expired_removal(load_writable_table(self._source), partitions=partitions)
        elif snapshot_id is None:
            raise StatisticsMissingError(f"{self.name} has no snapshot yet, so it has no statistics")
        else:
            table = load_writable_table(self._source)
            plan = prepare_removal(table, snapshot_id, restore=restore, partitions=partitions)
        return build_removal_report(plan, removed=False) if dry_run else carry_out_removal(self._source, plan)

    def export(
        self,
        engine: str,
        *,
        name: str | None = None,
        metastore: str | None = None,
        bit_vectors: bool = False,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> str:
        """Return what gives an engine the statistics that are known, or writes them to a Hive metastore.

        Parameters
        ----------
        engine : {"hive", "impala", "spark", "trino"}
            Hive and Impala do not read Iceberg's statistics: they get statements. Spark and Trino do: they get the
            settings that make them read, what to beware of, and the statement that shows it.
        name : str, optional
            The table's name in the engine, `database.table` or `catalog.namespace.table`; by default the one that it
            was loaded by.
        metastore : str, optional
            With "hive": `thrift://host:port` of a metastore, which gets the statistics of columns now, instead of by
            statements: histograms too, from the committed KLL sketches, which Hive 4 keeps.
        bit_vectors : bool
            With `metastore`: scan the table with PySpark for Hive's HyperLogLog of each column, which Hive 3 and later
            keep and merge with their own. No committed sketch can give it, because Hive hashes values in its own way.
        dry_run : bool
            With `metastore`: only say what would be written.
        spark : pyspark.sql.SparkSession, optional
            The session that scans; by default that of `load`, the running one, or a new local one.

        Returns
        -------
        str
            A script. Its comments say where each figure comes from, and what was left out, and why. With `metastore`:
            what was written.

        Raises
        ------
        CallError
            There is no such engine, or the table has no name there.
        CatalogError, TableNotFoundError
            The metastore does not answer, refuses the statistics, or does not have the table.
        UnsupportedError
            The package thrift is missing, or Spark cannot read the table.
        SparkUnavailableError
            There is no Java 17, or Spark cannot start.

        Notes
        -----
        Nothing is written that is not known, and nothing as exact that is not: to have exact figures, `compute` and
        commit them first. The Iceberg table is not changed.

        Examples
        --------
        >>> import icestats
        >>> print(icestats.load("demo.flights").export("impala").splitlines()[-1])
        SHOW COLUMN STATS `demo`.`flights`;
        """
        from icestats.table.export import ENGINES, export_table, export_to_metastore

        check_choice("engine", engine, ENGINES)
        check_flags(bit_vectors=bit_vectors, dry_run=dry_run)
        if metastore is None:
            if bit_vectors or dry_run:
                raise CallError("bit_vectors and dry_run are about a metastore: give its thrift://host:port")
            return export_table(self._reader, engine, name)
        if engine != "hive":
            raise CallError(f"a metastore takes the statistics of hive: {engine!r} was given")
        return export_to_metastore(self._reader, metastore, name, bit_vectors=bit_vectors, dry_run=dry_run, spark=spark)

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
            Minimum age of a file to delete, and minimum time since metadata that refers to it was replaced, as far as
            that is still there: `write.metadata.delete-after-commit.enabled` removes it.
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
            `older_than` is less than a day, without `allow_recent`; a flag is neither True nor False.
        CommitError
            The table was opened from a metadata.json: files are deleted through its catalog only.
        MetadataError
            As for `orphans`.

        Notes
        -----
        Data files, manifests and metadata are never touched, nor anything outside the folder of the table's metadata.
        A catalog that has this table too, and is still at a version that this catalog has replaced, is not seen: what
        such a version alone refers to is deleted.
        """
        from icestats.commit.orphans import remove_orphans

        check_flags(dry_run=dry_run, allow_recent=allow_recent, allow_referred=allow_referred)
        return remove_orphans(
            load_iceberg_table(self._source),
            older_than,
            dry_run=dry_run,
            allow_recent=allow_recent,
            allow_referred=allow_referred,
        )
