"""The Spark session that icestats works in: started quietly, or the one that is already there."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from icestats.errors import SparkUnavailableError
from icestats.spark.launcher import ICEBERG_RUNTIME, SQLITE_DRIVER, close_gateway, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"

_lock = threading.RLock()
_own: SparkSession | None = None
_siblings: list[SparkSession] = []


def get_session(
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
    *,
    master: str | None = None,
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Give a Spark session that knows some Iceberg catalogs: the active one, or a new one.

    A session that exists is used as it is, and the catalogs that it lacks are added to it. Where it knows a catalog of
    the same name with other properties, a sibling session on the same Spark context is made, which shares neither
    settings nor temporary views with it. A new session keeps what Spark prints in a log file, off the terminal.

    Parameters
    ----------
    catalogs : mapping of str to mapping of str to str, optional
        For each catalog its name and its Spark properties, as `spark_catalog_properties` gives them.
    master : str, optional
        Spark's master for a new session: by default the variable ICESTATS_SPARK_MASTER, else ``local[*]``.
    memory : str, optional
        The driver's heap for a new session, such as ``4g``; 2g by default.
    conf : mapping of str to str, optional
        Further Spark properties for a new session; they win over those of icestats.

    Returns
    -------
    pyspark.sql.SparkSession
        The session; `stop_session` ends one that was started here.

    Raises
    ------
    SparkUnavailableError
        No Java that fits, the jars cannot be had, Spark does not start, or the active session has no Iceberg.
    """
    global _own
    with _lock:
        session = _active_session()
        if session is None:
            _siblings.clear()
            session = _own = start_session(master, memory, conf or {})
        else:
            _check_iceberg(session)
        return _with_catalogs(session, catalogs or {})


def add_catalogs(session: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> SparkSession:
    """Give a session that knows some Iceberg catalogs: the given one, or a sibling where it knows others so named.

    Parameters
    ----------
    session : SparkSession
        A classic session with Iceberg on its class path.
    catalogs : mapping of str to mapping of str to str
        For each catalog its name and its Spark properties, as `spark_catalog_properties` gives them.
    """
    with _lock:
        return _with_catalogs(session, catalogs)


def stop_session() -> None:
    """End the session that `get_session` started, with its JVM; a session of somebody else is left alone."""
    global _own
    with _lock:
        if _own is None:
            return
        _own.stop()
        _own = None
        close_gateway()


def spark_catalog_properties(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Translate a catalog's configuration from PyIceberg's to Spark's.

    Parameters
    ----------
    properties : mapping of str to str
        PyIceberg's catalog properties: `type`, or a `uri` from which PyIceberg takes the type.

    Returns
    -------
    dict of str to str, or None
        The properties below ``spark.sql.catalog.NAME.``; None where Spark has no such catalog: a SQL catalog that is
        not in a SQLite file, an in-memory one, or a class of the user's own.

    Examples
    --------
    >>> spark_catalog_properties({"type": "sql", "uri": "sqlite:////data/c.db", "warehouse": "file:///data/w"})["uri"]
    'jdbc:sqlite:/data/c.db'
    >>> spark_catalog_properties({"uri": "thrift://metastore:9083"})["type"]
    'hive'
    """
    kind = properties.get("type") or _type_of_uri(properties.get("uri", ""))
    translated = {_java_name(name): value for name, value in properties.items()}
    for name in ("type", "py-catalog-impl", "py-io-impl"):
        translated.pop(name, None)
    if kind in ("rest", "hive", "glue") and "py-catalog-impl" not in properties:
        return {"type": kind, **translated}
    if kind != "sql" or "py-catalog-impl" in properties:
        return None
    path = re.fullmatch(r"sqlite(?:\+\w+)?:///([^?]+)(?:\?.*)?", properties.get("uri", ""))
    if path is None or path[1] == ":memory:":
        return None
    return {"type": "jdbc", **translated, "uri": f"jdbc:sqlite:{path[1]}", "jdbc.schema-version": "V1"}


@contextmanager
def watch_jobs(
    spark: SparkSession, group: str, callback: Callable[[int, int], object] | None = None, *, interval_s: float = 0.2
) -> Iterator[None]:
    """Put the Spark jobs of a block into a job group, and tell how far they are.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The job group's id; `cancel_jobs` takes it from any thread.
    callback : callable, optional
        Called from a thread of its own with the completed and the known tasks, whenever one of them changes, and
        once at the end of a block that did not fail.
    interval_s : float
        Seconds between two looks.
    """
    context = spark.sparkContext
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {name: context.getLocalProperty(name) for name in names}
    earlier = frozenset(context.statusTracker().getJobIdsForGroup(group))
    context.setJobGroup(group, group, interruptOnCancel=True)
    finished = threading.Event()

    def watch(report: Callable[[int, int], object]) -> None:
        last = (0, 0)
        while not finished.wait(interval_s):
            if (now := _count_tasks(spark, group, earlier)) != last:
                last = now
                report(*now)

    watcher = threading.Thread(target=watch, args=(callback,), name=f"watch {group}", daemon=True) if callback else None
    try:
        if watcher:
            watcher.start()
        yield
    finally:
        finished.set()
        if watcher:
            watcher.join()
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it, the annotation forgets that
    if callback:
        total = _count_tasks(spark, group, earlier)[1]
        callback(total, total)


def cancel_jobs(spark: SparkSession, group: str) -> None:
    """Cancel the running jobs of a group; the call that waits for them raises Spark's own error.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The job group's id, as `watch_jobs` was given it.
    """
    spark.sparkContext.cancelJobGroup(group)


def _count_tasks(spark: SparkSession, group: str, earlier: frozenset[int]) -> tuple[int, int]:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(group) if job_id not in earlier]
    stages = [tracker.getStageInfo(stage_id) for job in jobs if job for stage_id in job.stageIds]
    known = [stage for stage in stages if stage]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def _type_of_uri(uri: str) -> str:
    scheme = uri.partition(":")[0].partition("+")[0]
    return {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}.get(scheme, "")


def _java_name(name: str) -> str:
    return {"s3.region": "client.region", "s3.path-style": "s3.path-style-access"}.get(name, name)


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one for a block: what Spark plans late goes by the active session's settings."""
    from pyspark.sql import SparkSession

    before = SparkSession.getActiveSession()
    _activate(session)
    try:
        yield
    finally:
        if before is not None:
            _activate(before)


def _activate(session: SparkSession) -> None:
    kind: Any = type(session)
    kind._activeSession = session
    kind._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def _active_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise SparkUnavailableError(
            "the active Spark session is a Spark Connect one, and icestats needs a classic one: unset SPARK_REMOTE, "
            "or work in a process without Spark Connect"
        )
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _check_iceberg(session: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError

    jvm = session.sparkContext._jvm
    try:
        jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(ICEBERG_CATALOG)  # type: ignore[union-attr]  # a running context has its JVM
    except Py4JJavaError as error:
        raise SparkUnavailableError(
            f"the active Spark session has no Iceberg runtime on its class path: start it with "
            f"spark.jars.packages={ICEBERG_RUNTIME},{SQLITE_DRIVER}, or stop it and let icestats start one"
        ) from error


def _with_catalogs(session: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> SparkSession:
    settings = {
        f"spark.sql.catalog.{name}{suffix}": value
        for name, properties in catalogs.items()
        for suffix, value in _catalog_settings(properties).items()
    }
    for candidate in (session, *(sibling for sibling in _siblings if sibling.sparkContext._jsc)):
        if all(candidate.conf.get(key, value) == value for key, value in settings.items()):
            break
    else:
        candidate = session.newSession()
        _siblings.append(candidate)
    for key, value in settings.items():
        candidate.conf.set(key, value)
    return candidate


def _catalog_settings(properties: Mapping[str, str]) -> dict[str, str]:
    return {"": ICEBERG_CATALOG, ".cache-enabled": "false", **{f".{name}": value for name, value in properties.items()}}
