"""A DataFrame of a snapshot whose scans tell Spark's optimizer what is known of the table."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from icestats.answers.text import one_line, printable, quote_name
from icestats.errors import CallError, UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Schema, Snapshot
from icestats.spark.connect import refuse_connect
from icestats.spark.jobs import explained_errors, first_line
from icestats.spark.jvm import connection_errors
from icestats.spark.plain_sql import run_sql
from icestats.spark.session import check_iceberg
from icestats.spark.spark_scan import open_in_spark
from icestats.spark.versions import find_version
from icestats.stats.reported_statistics import ReportedStatistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KNOWN_VERSIONS = ("4.1",)
"""Of Spark: its optimizer's interfaces are its own affair, and change from version to version."""
_PLAIN = "Spark plans with Iceberg's own statistics, not with those of icestats"

_lock = threading.Lock()
_feeds: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def check_session(spark: SparkSession, table_name: str) -> None:
    """Refuse a session whose optimizer cannot be fed.

    Raises
    ------
    UnsupportedError
        It is one of Spark Connect, or its Spark is of a version that is not known to work.
    SparkUnavailableError
        It has no Iceberg.
    """
    plain = f"read the table without statistics, by spark.table({table_name!r}) or its name in your catalog"
    refuse_connect(spark, "feeding the optimizer", plain)
    if not spark.version.startswith(tuple(f"{known}." for known in KNOWN_VERSIONS)):
        known = " and ".join(KNOWN_VERSIONS)
        raise UnsupportedError(f"the session has Spark {spark.version}, known to work is {known}: {plain}")
    check_iceberg(spark)


def read_fed(
    spark: SparkSession,
    source: Source,
    snapshot: Snapshot,
    schema: Schema,
    reported: ReportedStatistics,
    view: str | None = None,
) -> DataFrame:
    """Return a DataFrame of a snapshot that Spark's optimizer knows statistics of.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session of the DataFrame, of which `check_session` has nothing to say.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot.
    schema : Schema
        The schema that it is read with.
    reported : ReportedStatistics
        What the optimizer is told.
    view : str, optional
        The name of a temporary view to make of it.

    Raises
    ------
    UnsupportedError
        Spark cannot read the table.
    CallError
        The session has a view of this name, or it is no name of a view.
    """
    from pyspark.sql import DataFrame

    if reported.notes:
        warnings.warn(printable(f"{source.name}: {'; '.join(reported.notes)}"), RuntimeWarning, stacklevel=3)
    doing = f"reading {source.name} in Spark"
    failed = f"{source.name} cannot be read by Spark"
    known = source.catalog_properties
    with explained_errors(spark, doing, lambda said: UnsupportedError(f"{failed}: {said}"), known):
        version = find_version(source.metadata, snapshot, schema)
        with open_in_spark(spark, source, "to plan with its statistics", version) as (session, name):
            relation = _find_relation(run_sql(session, f"select * from {name} {version.clause}"))  # noqa: S608 - names are quoted
        jvm: Any = spark._jvm
        fed = _feed(spark, relation, reported, source.name)
        frame = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, fed), spark)
    if view is not None:
        _name_view(spark, frame, view, fed)
    return frame


def _find_relation(frame: DataFrame) -> Any:
    plan: Any = frame._jdf.queryExecution().analyzed()
    return plan.collectLeaves().head()


def _feed(spark: SparkSession, relation: Any, reported: ReportedStatistics, table_name: str) -> Any:
    """Return a relation of the same table whose scans report other statistics; the same one where that fails."""
    figures = reported.to_json()
    try:
        feed = _find_feed(spark)
        feed.check(figures)
        table = feed.wrap(relation.table(), figures)
        parts = (getattr(relation, part)() for part in ("output", "catalog", "identifier", "options", "timeTravelSpec"))
        return relation.copy(table, *parts)
    except Exception as error:  # noqa: BLE001 - whatever fails here, the table can be read without it
        said = first_line(error)
        warnings.warn(printable(f"{table_name}: {_PLAIN}: {said}"), RuntimeWarning, stacklevel=4)
        return relation


def _find_feed(spark: SparkSession) -> Any:
    """Return the one feed of a JVM: proxies of the same table are equal only if they are of the same classes."""
    context: Any = spark.sparkContext
    with _lock:
        if context._gateway not in _feeds:
            jvm = context._jvm
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
            compiler.cook(files("icestats.spark.optimizer_feed").joinpath("StatisticsFeed.java").read_text("utf-8"))
            kind = compiler.getClassLoader().loadClass("icestats.StatisticsFeed")
            nothing = context._gateway.new_array
            made = kind.getDeclaredConstructor(nothing(jvm.java.lang.Class, 0))
            feed = _feeds[context._gateway] = made.newInstance(nothing(jvm.java.lang.Object, 0))
            threading.Thread(target=_pass_on, args=(feed,), name="failures of the statistics feed", daemon=True).start()
        return _feeds[context._gateway]


def _pass_on(feed: Any) -> None:
    """Warn of what fails in the JVM while Spark plans a query, each reason once, as long as the JVM answers."""
    with suppress(*connection_errors()):
        while True:
            said = one_line(feed.takeFailure())
            warnings.warn(f"{_PLAIN}: {said}", RuntimeWarning, stacklevel=1)


def _name_view(spark: SparkSession, frame: DataFrame, view: str, fed: Any) -> None:
    from pyspark.errors import AnalysisException

    try:
        frame.createTempView(view)
    except AnalysisException as error:
        if error.getCondition() != "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS":
            raise CallError(f"{view!r} cannot be the name of a view: {one_line(first_line(error))}") from error
        if not _is_of(spark, view, fed):
            raise CallError(
                f"the session has a view {view!r} already: choose another name, or drop it first by "
                f"spark.catalog.dropTempView({view!r})"
            ) from error
        frame.createOrReplaceTempView(view)


def _is_of(spark: SparkSession, view: str, fed: Any) -> bool:
    """Say whether a view is of this very table, as one is where a cell of a notebook is run again."""
    analyzed: Any = spark.table(quote_name(view))._jdf.queryExecution().analyzed()
    leaves, kind = analyzed.collectLeaves(), fed.getClass().getName()
    if leaves.size() != 1 or leaves.head().getClass().getName() != kind:
        return False
    return bool(leaves.head().table().id() == fed.table().id())
