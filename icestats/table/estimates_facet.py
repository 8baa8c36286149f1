"""What an optimizer would estimate from a table's statistics, source by source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.errors import CallError
from icestats.table.facet import Facet

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession

    from icestats.estimation.answer import Estimates
    from icestats.estimation.evidence import Evidence
    from icestats.estimation.formulas.questions import Questioner
    from icestats.estimation.workload import Workload


class Estimating(Facet):
    """Estimates of rows and bytes."""

    @cached_property
    def _evidence(self) -> Evidence:
        from icestats.estimation.evidence import Evidence

        return Evidence(self._reader)

    @cached_property
    def _questioner(self) -> Questioner:
        from icestats.estimation.formulas.questions import Questioner

        return Questioner(self._source, self.schema)

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
            Which optimizers to ask: some of `estimation.truth.ENGINES`, or all. `spark` starts a session.
        spark : pyspark.sql.SparkSession, optional
            The session to use; by default the running one, or a new local one.

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
        from icestats.estimation.answer import Estimates
        from icestats.estimation.sources import ask_sources
        from icestats.estimation.traps import find_traps
        from icestats.estimation.truth import ask_engines, choose_engines, count_actual

        question = self._questioner.ask(row_filter, columns, deletes)
        asked = choose_engines(engines)
        found = ask_sources(self._evidence, question, sources, double_filtering=double_filtering)
        found += ask_engines(self._reader, self._questioner.filter_schema, question, asked, spark)
        rows = None
        if actual:
            rows, counted = count_actual(self._reader, question, spark)
            found = [one.with_actual(rows) for one in (*found, counted)]
        return Estimates(
            table_name=self.name,
            row_filter=question.row_filter,
            columns=None if columns is None else tuple(columns),
            deletes=deletes,
            estimates=tuple(found),
            actual=rows,
            findings=tuple(find_traps(self._reader, question, found)),
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
            How many to generate.
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
            PyIceberg cannot read the rows.

        Notes
        -----
        The columns of the filters are read once, for all of them.
        """
        from icestats.estimation.generated_filters import generate_filters
        from icestats.estimation.workload import Workload
        from icestats.scan.actual_rows import count_rows_of_many

        if n < 1:
            raise CallError(f"n is {n}: expected a whole number from 1")
        chosen = list(filters) if filters is not None else generate_filters(self._evidence, n, seed, columns)
        answers = [
            self.estimate(one, sources=sources, double_filtering=double_filtering, engines=engines, spark=spark)
            for one in chosen
        ]
        counts = count_rows_of_many(self._source, self.snapshot, self.schema, chosen)
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
        FilterError, ColumnNotFoundError
            The call is wrong.
        UnsupportedError
            `actual`: PyIceberg cannot read the rows.

        Notes
        -----
        Both take each key for as frequent as another; where keys are skewed on both sides the truth is larger.

        Examples
        --------
        >>> import icestats
        >>> flights = icestats.load("demo.flights")
        >>> [one.source for one in flights.estimate_join(flights, "carrier")]
        ['join-ndv', 'join-theta']
        """
        from icestats.estimation.answer import Estimates
        from icestats.estimation.joins import build_side, count_join, estimate_both

        names = (on, on) if isinstance(on, str) else on
        keys = self.schema.find(names[0]), other.schema.find(names[1])
        questions = (
            self._questioner.ask(row_filter, None, "deduct"),
            other._questioner.ask(other_filter, None, "deduct"),
        )
        sides = [
            build_side(table._evidence, question, key, table.name)
            for table, question, key in zip((self, other), questions, keys, strict=True)
        ]
        found = estimate_both(sides[0], sides[1])
        rows = None
        if actual:
            rows, counted = count_join(self._evidence, other._evidence, questions, keys)
            found = [one.with_actual(rows) for one in (*found, counted)]
        filters = [f"{name}: {q.row_filter}" for name, q in zip((self.name, other.name), questions, strict=True)]
        return Estimates(
            table_name=f"{self.name} join {other.name}",
            row_filter=f"{sides[0].name} = {sides[1].name}, {'; '.join(filters)}",
            columns=None,
            deletes="deduct",
            estimates=tuple(found),
            actual=rows,
        )
