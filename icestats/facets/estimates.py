"""What an optimizer would estimate from a table's statistics, source by source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.estimation.answer import Estimates
from icestats.estimation.evidence import Evidence
from icestats.estimation.sources import ask_sources
from icestats.estimation.traps import find_traps
from icestats.estimation.truth import ask_engines, choose_engines, count_actual
from icestats.facets.base import Facet
from icestats.plan.questions import Questioner

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession


class Estimating(Facet):
    """Estimates of rows and bytes."""

    @cached_property
    def _evidence(self) -> Evidence:
        return Evidence(self._reader)

    @cached_property
    def _questioner(self) -> Questioner:
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
