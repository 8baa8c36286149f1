"""What a scan reads of a table, and why; how well its metadata is clustered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icestats.errors import CallError
from icestats.table.facet import Facet

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession

    from icestats.plan.layout.layout import Layout
    from icestats.plan.layout.what_if import ManifestRewrite
    from icestats.plan.pruning.plan import Plan


class Planning(Facet):
    """Plans, and the layout of the metadata."""

    def plan(
        self,
        row_filter: str | BooleanExpression,
        *,
        row_groups: bool = False,
        rows: bool = False,
        manifest_statistics: bool | None = None,
    ) -> Plan:
        """Return what a scan with a filter reads of this snapshot, step by step, and why.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter, in PyIceberg's language.
        row_groups : bool, optional
            Whether the footers of the files that are left are read too, for a step by row group.
        rows : bool, optional
            Whether the files that are left are read too, for the number of rows that match. Without it there is a step
            of rows only where the metadata proves that every row of the files that are left matches.
        manifest_statistics : bool, optional
            Whether manifests are judged by their columns' bounds too. By default where statistics of manifests are
            committed and 64 MiB of manifests are left, whatever has been read before; True reads what is missing.

        Returns
        -------
        Plan
            `.steps`, `.partition_filters`, `.manifests()`, `.files()`.

        Raises
        ------
        FilterError
            The filter cannot be read, or does not fit the schema.
        MetadataError
            A metadata file is missing, cut or damaged.

        Notes
        -----
        A file is skipped only where its metadata proves that no row of it matches: a statistic that is missing keeps
        it. The files that are kept are those of Iceberg's own scan planning. Source: Iceberg spec, "Scan Planning".

        Examples
        --------
        >>> import icestats
        >>> plan = icestats.load("demo.flights").plan("carrier = 'UA' and month = 7")
        >>> [step.step for step in plan.steps if step.unit == "file"]
        ['data files by partition tuple', 'data files by column bounds']
        >>> all(step.kept + step.skipped == step.total for step in plan.steps)
        True
        """
        from icestats.snapshot.plan_reader import read_plan

        return read_plan(
            self._reader,
            self._bind(row_filter),
            row_groups=row_groups,
            rows=rows,
            manifest_statistics=manifest_statistics,
        )

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
        from icestats.snapshot.layout_reader import read_layout

        return read_layout(self._reader, self._bind, columns)

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
        from icestats.snapshot.layout_reader import rewrite_manifests

        if not dry_run and self._pin not in ((None, None), (None, "main")):
            raise CallError("only the current snapshot's manifests can be rewritten: load the table without a snapshot")
        return rewrite_manifests(
            self._reader,
            [self._bind(one) for one in workload],
            sort_by=sort_by,
            manifest_size_bytes=manifest_size_bytes,
            dry_run=dry_run,
            spark=spark,
        )
