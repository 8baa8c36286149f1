"""What Spark's optimizer expects of a filter, and counting with Spark what PyIceberg cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from icestats.answers.text import quote_name
from icestats.errors import UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Schema, Snapshot
from icestats.spark.connect import refuse_connect
from icestats.spark.jobs import explained_errors, first_line, watch_jobs
from icestats.spark.plain_sql import changed_settings, run_sql
from icestats.spark.session import active
from icestats.spark.spark_scan import is_unchanged, open_in_spark
from icestats.spark.versions import find_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REASON = "to ask its optimizer"
_CBO = "spark.sql.cbo.enabled"
_COLUMN_STATISTICS = "spark.sql.iceberg.report-column-stats"


@dataclass(frozen=True, slots=True)
class OptimizerStatistics:
    """What an optimized plan's root states, as EXPLAIN COST shows it."""

    version: str
    """Of Spark."""
    row_count: int | None
    """None: Spark states none."""
    is_of_scan: bool = False
    """Spark states rows at the scan only: the filter is not estimated."""
    error: str = ""
    """Why Spark failed."""


def explain_with_spark(
    spark: SparkSession,
    source: Source,
    snapshot: Snapshot,
    schema: Schema,
    condition: str,
    columns: Sequence[str] | None,
) -> list[OptimizerStatistics]:
    """Ask Spark's optimizer, with its cost-based part off and on.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session to start from; its settings are put back.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot that is asked about: statistics committed for it are used with CBO on.
    schema : Schema
        The schema that it is read with.
    condition : str
        Of a WHERE clause, in Spark's SQL.
    columns : sequence of str or None
        Quoted names of the projected columns; None: all.

    Returns
    -------
    list of OptimizerStatistics
        With ``spark.sql.cbo.enabled`` false, and true.

    Raises
    ------
    UnsupportedError
        Spark cannot open the table, or the session is one of Spark Connect.
    SparkUnavailableError
        The session's JVM has ended.
    """
    refuse_connect(spark, "asking Spark's optimizer", "give a classic session")
    selected = ", ".join(columns) if columns else "*"
    version = find_version(source.metadata, snapshot, schema)
    with _asked(spark, source), open_in_spark(spark, source, _REASON, version) as (session, name):
        query = f"select {selected} from {name} {version.clause} where {condition}"  # noqa: S608 - names and literals are quoted
        found = []
        for enabled in (False, True):
            with active(session), changed_settings(session, {_CBO: str(enabled).lower(), _COLUMN_STATISTICS: "true"}):
                found.append(_explain(session, query))
        return found


def count_with_spark(
    spark: SparkSession,
    source: Source,
    snapshot: Snapshot,
    schema: Schema,
    conditions: Sequence[str],
    group_by: Sequence[str] = (),
) -> list[int]:
    """Count the live rows of a snapshot, read once with a schema, that satisfy each of some conditions of Spark's SQL.

    Where columns to group by are named, their groups are counted instead.

    Raises
    ------
    UnsupportedError
        Spark cannot read the table.
    SparkUnavailableError
        The session's JVM has ended.
    """
    failed = f"the rows of {source.name} cannot be counted by Spark either"
    version = find_version(source.metadata, snapshot, schema)
    with (
        explained_errors(
            spark,
            f"counting the rows of {source.name}",
            lambda said: UnsupportedError(f"{failed}: {said}"),
            source.catalog_properties,
        ),
        open_in_spark(spark, source, "to count its rows", version) as (session, name),
        watch_jobs(session, f"icestats: counting {source.name}"),
    ):
        if version.takes_filters and not is_unchanged(session, source, name):
            # Since, columns may have taken each other's names, in which Iceberg 1.12 looks up those of a filter.
            version = replace(version, takes_filters=False)
        counted = f"count(distinct struct({', '.join(map(quote_name, group_by))}))" if group_by else "count(*)"
        counts = ", ".join(f"{counted} filter (where {condition})" for condition in conditions)
        # Not in parentheses: to Spark, `where (true)` behind a table is an alias with the name of a column.
        some = version.restrict(" or ".join(conditions))
        query = f"select {counts} from {version.select_all(name)} where {some}"  # noqa: S608 - names and literals are quoted
        return [int(count) for count in run_sql(session, query).collect()[0]]


def _asked(spark: SparkSession, source: Source) -> AbstractContextManager[None]:
    failed = f"Spark's optimizer cannot be asked about {source.name}"
    doing = f"asking Spark's optimizer about {source.name}"
    return explained_errors(spark, doing, lambda said: UnsupportedError(f"{failed}: {said}"), source.catalog_properties)


def _explain(session: SparkSession, query: str) -> OptimizerStatistics:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        plan: Any = run_sql(session, query)._jdf.queryExecution().optimizedPlan()
        rows, of_scan = plan.stats().rowCount(), False
        if not rows.isDefined() and plan.children().size():
            # Without its cost-based part, Spark states rows at the scan only, and takes a filter to leave them all.
            rows, of_scan = plan.collectLeaves().head().stats().rowCount(), True
        count = int(str(rows.get())) if rows.isDefined() else None
        return OptimizerStatistics(session.version, count, of_scan)
    except (Py4JError, PySparkException) as error:
        return OptimizerStatistics(session.version, None, error=first_line(error))
