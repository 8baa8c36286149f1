"""What an optimizer would estimate from a table's statistics, source by source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.errors import CallError, StatisticsMissingError, check_filters, check_flags, check_names, check_whole
from icestats.table.contents_facet import Contents

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import DataFrame, SparkSession

    from icestats.estimation.estimates import Estimates, Workload
    from icestats.estimation.evidence import Evidence
    from icestats.estimation.formulas.grouped_sources import Question
    from icestats.stats.reported_statistics import ReportedStatistics


class Estimating(Contents):
    """Estimates of rows and bytes."""

    @cached_property
    def _evidence(self) -> Evidence:
        from icestats.estimation.evidence import Evidence

        return Evidence(self._reader)

    def _ask(
        self, row_filter: str | BooleanExpression, columns: Sequence[str] | None = None, deletes: str = "deduct"
    ) -> Question:
        from icestats.estimation.formulas.grouped_sources import build_question

        return build_question(self.bind(row_filter), self.schema, columns, deletes)

    def estimate(
        self,
        row_filter: str | BooleanExpression,
        *,
        columns: Sequence[str] | None = None,
        deletes: str = "deduct",
        sources: Sequence[str] | None = None,
        double_filtering: bool = False,
        actual: bool = False,
        engines: bool | Sequence[str] = False,
        spark: SparkSession | None = None,
    ) -> Estimates:
        """Estimate how many rows satisfy a filter, from each source of statistics side by side.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter.
        columns : sequence of str, optional
            The projected columns, which `bytes` are about: what a broadcast would carry. By default all.
        deletes : {"deduct", "positions", "ignore"}
            What `rows` does with row-level deletes: deduct position deletes and deletion vectors in proportion and take
            equality deletes for filters; only the former; ignore all. The other results stand beside it.
        sources : sequence of str, optional
            Which of `estimation.sources.SOURCES` to ask.
        double_filtering : bool
            Show, too, what the manifest-level formula gives where partition filters are applied twice.
        actual : bool
            Count the rows, too, deletes applied, and give each estimate its q-error. Reads data.
        engines : bool or sequence of str
            Which optimizers to ask: some of `estimation.engines.ENGINES`, or all. `spark` starts a session.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default that of `load`, the running one, or a new local one.

        Returns
        -------
        Estimates
            One row a source; `.to_arrow()` gives `schemas.ESTIMATES`.

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong.
        UnsupportedError
            `actual`: neither PyIceberg nor Spark can read the rows.

        Examples
        --------
        >>> import icestats
        >>> estimates = icestats.load("demo.flights").estimate("carrier = 'UA'")
        >>> round(estimates["partitions"].rows)
        58665
        """
        from icestats.estimation.formulas.source_estimates import build_counted
        from icestats.snapshot.pruning.counted_rows import count_matching

        check_flags(actual=actual)
        question = self._ask(row_filter, columns, deletes)
        found = self._estimate(question, sources, double_filtering, engines, spark)
        if columns is not None:
            found = replace(found, columns=tuple(columns))
        if not actual:
            return found
        begin = time.perf_counter()
        rows, by = count_matching(self._reader, question.row_filter, spark)
        counted = build_counted(rows, f"live rows counted by {by}; deletes applied", begin)
        estimates = tuple(one.with_actual(rows) for one in (*found, counted))
        return replace(found, estimates=estimates, actual=rows)

    def _estimate(
        self,
        question: Question,
        sources: Sequence[str] | None,
        double_filtering: bool,
        engines: bool | Sequence[str],
        spark: SparkSession | None,
    ) -> Estimates:
        from icestats.estimation.engines import ask_engines, choose_engines, find_traps
        from icestats.estimation.estimates import Estimates
        from icestats.estimation.sources import ask_sources

        asked = choose_engines(engines)
        found = ask_sources(self._evidence, question, sources, double_filtering=double_filtering)
        found += ask_engines(self._reader, question, asked, spark)
        return Estimates(
            table_name=self.name,
            row_filter=question.row_filter.text,
            columns=None,
            deletes=question.deletes,
            estimates=tuple(found),
            findings=(*find_traps(self._reader, question, found), *self._evidence.findings),
        )

    def estimate_workload(
        self,
        filters: Sequence[str | BooleanExpression] | None = None,
        *,
        n: int = 50,
        seed: int = 0,
        columns: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        double_filtering: bool = False,
        engines: bool | Sequence[str] = False,
        spark: SparkSession | None = None,
    ) -> Workload:
        """Estimate many filters, and count their rows: the distribution of each source's q-errors.

        Parameters
        ----------
        filters : sequence of str or pyiceberg.expressions.BooleanExpression, optional
            The filters; by default generated ones, with values from the committed KLL sketches.
        n : int
            How many to generate, 100,000 at most.
        seed : int
            What they are generated from.
        columns : sequence of str, optional
            The columns that generated filters are about; by default all that have sketches.
        sources, double_filtering, engines, spark
            As in `estimate`.

        Returns
        -------
        Workload
            `.to_arrow()` has every estimate, `.summary()` a row a source.

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong.
        StatisticsMissingError
            Filters are to be generated, and no sketch has been committed.
        UnsupportedError
            Neither PyIceberg nor Spark can read the rows.

        Notes
        -----
        The columns of the filters are read once, for all of them.
        """
        from icestats.estimation.estimates import Workload
        from icestats.estimation.generated_filters import generate_filters
        from icestats.snapshot.pruning.counted_rows import count_each_matching

        n = check_whole("n", n, 1, 100_000)
        seed = check_whole("seed", seed, 0)
        check_filters("filters", filters, or_none=True)
        check_names("columns", columns, or_none=True)
        chosen = list(filters) if filters is not None else generate_filters(self._evidence, n, seed, columns)
        questions = [self._ask(one) for one in chosen]
        answers = [self._estimate(one, sources, double_filtering, engines, spark) for one in questions]
        counts = count_each_matching(self._reader, [one.row_filter for one in questions], spark)
        counted = [answer.with_actual(count) for answer, count in zip(answers, counts, strict=True)]
        return Workload(self.name, None if filters is not None else seed, tuple(counted))

    def estimate_join(
        self,
        other: Estimating,
        on: str | tuple[str, str],
        *,
        row_filter: str | BooleanExpression = "true",
        other_filter: str | BooleanExpression = "true",
        actual: bool = False,
    ) -> Estimates:
        """Estimate how many rows an equi-join with another table has.

        Parameters
        ----------
        other : Table
            The other table.
        on : str or tuple of two str
            The key column, of both or of each.
        row_filter, other_filter : str or pyiceberg.expressions.BooleanExpression
            Filters of this and of the other table; their rows are those that `combined` estimates.
        actual : bool
            Count the rows, too. Reads the key columns.

        Returns
        -------
        Estimates
            `join-ndv`, the classic estimate, and `join-theta`, from the keys that both sides have in common with the
            error of their number.

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong; a key is nested, or the keys have no common type.
        UnsupportedError
            `actual`: PyIceberg cannot read the rows.

        Notes
        -----
        Keys are compared in the common type that SQL engines take: int and long as long, float and double as double.
        The first two take each key for as frequent as another; where keys are skewed on both sides the truth is larger.
        `join-frequent-items` counts the common keys one by one. What a filter demands of its key holds on both sides. A
        filter that may leave a row is taken to leave one.

        Examples
        --------
        >>> import icestats
        >>> flights = icestats.load("demo.flights")
        >>> [one.source for one in flights.estimate_join(flights, "carrier")]
        ['join-ndv', 'join-theta', 'join-frequent-items']
        """
        from icestats.estimation.estimates import Estimates
        from icestats.estimation.joins import (
            build_side,
            carry_keys,
            count_join,
            estimate_join_by_items,
            estimate_join_by_ndv,
            estimate_join_by_theta,
        )
        from icestats.scan.actual_rows import find_key_type

        check_flags(actual=actual)
        if not isinstance(other, Estimating):
            raise CallError(f"other is {other!r:.80}: expected a table, such as icestats.load('demo.flights')")
        names = (on, on) if isinstance(on, str) else tuple(on) if isinstance(on, list | tuple) else ()
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise CallError(f"on is {on!r:.80}: expected a column of both tables, or one of each")
        keys = self.schema.find(names[0]), other.schema.find(names[1])
        find_key_type(*keys)
        questions = self._ask(row_filter), other._ask(other_filter)
        sides = [
            build_side(table._evidence, question, key, table.name)
            for table, question, key in zip((self, other), carry_keys(questions, keys), keys, strict=True)
        ]
        found = [ask(*sides) for ask in (estimate_join_by_ndv, estimate_join_by_theta, estimate_join_by_items)]
        rows = None
        if actual:
            rows, counted = count_join(self._evidence, other._evidence, questions, keys)
            found = [one.with_actual(rows) for one in (*found, counted)]
        filters = [f"{name}: {q.row_filter.text}" for name, q in zip((self.name, other.name), questions, strict=True)]
        return Estimates(
            table_name=f"{self.name} join {other.name}",
            row_filter=f"{sides[0].name} = {sides[1].name}, {'; '.join(filters)}",
            columns=None,
            deletes="deduct",
            estimates=tuple(found),
            findings=tuple(dict.fromkeys((*self._evidence.findings, *other._evidence.findings))),
            actual=rows,
        )

    def estimate_groups(
        self,
        columns: Sequence[str],
        row_filter: str | BooleanExpression = "true",
        *,
        actual: bool = False,
        spark: SparkSession | None = None,
    ) -> Estimates:
        """Estimate how many groups a GROUP BY of some columns has.

        Parameters
        ----------
        columns : sequence of str
            Top-level columns. A null is a group of its own.
        row_filter : str or pyiceberg.expressions.BooleanExpression, optional
            The rows that are grouped; by default all.
        actual : bool
            Count the groups, too, and give each estimate its q-error. Reads data.
        spark : pyspark.sql.SparkSession, optional
            As in `estimate`.

        Returns
        -------
        Estimates
            `rows` is the number of groups. `groups-independent` takes the columns for independent, `groups-together`
            uses what has been computed of pairs of them (`compute(together=...)`).

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong.
        UnsupportedError
            `actual`: neither PyIceberg nor Spark can read the rows.

        Notes
        -----
        The number of distinct values of each column, and of pairs, is that of Theta sketches. Of more than two columns
        those pairs are used that say most (Chow and Liu). A filter leaves of groups of the same size what Cardenas'
        formula says.

        Examples
        --------
        >>> import icestats
        >>> groups = icestats.load("demo.flights").estimate_groups(["carrier"])
        >>> groups["groups-together"].rows
        16.0
        """
        from icestats.estimation.estimates import Estimates
        from icestats.estimation.groups import count_actual_groups, estimate_groups

        check_names("columns", columns)
        check_flags(actual=actual)
        fields = [self.schema.find(name) for name in dict.fromkeys(columns)]
        if not fields:
            raise CallError("columns is empty: expected columns to group by")
        if nested := [field for field in fields if not (field.top_level and field.is_primitive)]:
            raise CallError(f"column {nested[0].name!r} is {nested[0].type}: expected a primitive top-level column")
        question = self._ask(row_filter)
        found, groups = estimate_groups(self._evidence, question, fields), None
        if actual:
            groups, counted = count_actual_groups(self._evidence, question, fields, spark)
            found = [one.with_actual(groups) for one in (*found, counted)]
        names = ", ".join(field.name for field in fields)
        return Estimates(
            table_name=self.name,
            row_filter=f"{question.row_filter.text} group by {names}",
            columns=None,
            deletes="deduct",
            estimates=tuple(found),
            findings=self._evidence.findings,
            actual=groups,
        )

    def reported_statistics(self) -> ReportedStatistics:
        """Return what `to_spark` tells Spark's optimizer of this snapshot, and where each figure comes from.

        Returns
        -------
        ReportedStatistics
            `print` it; `.to_arrow()` gives `schemas.REPORTED`.

        Notes
        -----
        Reads manifests' roll-ups and statistics files, no data, and needs no Spark. Statistics of an earlier snapshot
        are scaled to the rows that are live now; `sources` says how many commits they are behind, and what these have
        changed.

        Examples
        --------
        >>> import icestats
        >>> reported = icestats.load("demo.flights").reported_statistics()
        >>> reported.row_count
        336776
        """
        return self._reported

    @cached_property
    def _reported(self) -> ReportedStatistics:
        from icestats.estimation.optimizer_statistics import build_reported_statistics

        return build_reported_statistics(self._evidence)

    def to_spark(self, spark: SparkSession | None = None, *, view: str | None = None) -> DataFrame:
        """Return a DataFrame of this snapshot that Spark's cost-based optimizer knows the committed statistics of.

        Spark reads the snapshot as it always does; only what a scan reports to the optimizer is different: live rows,
        bytes by the columns that are read, and of each column distinct values, bounds, nulls, lengths, and an
        equi-height histogram from its KLL sketch, in which committed common values have bins of their own.
        `reported_statistics()` shows these figures.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession, optional
            The session of the DataFrame; by default that of `load`, the running one, or a new local one.
        view : str, optional
            The name of a temporary view to make of it.

        Returns
        -------
        pyspark.sql.DataFrame
            A plain one, pinned to this snapshot. If its statistics cannot be given to Spark, it is planned with
            Iceberg's own, and one warning says why.

        Raises
        ------
        StatisticsMissingError
            The table has no snapshot.
        UnsupportedError
            The session is one of Spark Connect, or its Spark is of a version that this is not known to work with.
        SparkUnavailableError
            The session has no Iceberg.
        CallError
            `view` cannot be the name of a view, or the session has one of this name that is not of this table.

        Notes
        -----
        Set ``spark.sql.cbo.enabled`` (and ``spark.sql.cbo.joinReorder.enabled``) to true: without it Spark looks at
        sizes alone. A filter that Iceberg evaluates fully, such as one on whole partitions, leaves the rows of its
        files; one that Spark applies again is left to Spark's own estimate, although it prunes files too.
        """
        from icestats.spark.optimizer_feed.optimizer_feed import check_session, read_fed
        from icestats.spark.session_catalog import find_session

        if not (view is None or isinstance(view, str)):
            raise CallError(f"view is {view!r:.80}: expected the name of a view, or nothing")
        if self.snapshot is None:
            raise StatisticsMissingError(f"{self.name} has no snapshot yet: there is nothing to read")
        session = find_session(self._source, spark)
        check_session(session, self.name)
        return read_fed(session, self._source, self.snapshot, self.schema, self._reported, view)
