"""The Spark session that icestats works in: started quietly, or the one that is already there."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from icestats.errors import SparkUnavailableError
from icestats.spark.jvm import (
    ICEBERG_RUNTIME,
    SECRETS,
    SQLITE_DRIVER,
    clear_context,
    close_gateway,
    connection_errors,
    explain_end,
    start_session,
    unless_ended,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_HIDDEN_OPTIONS = "spark.sql.redaction.options.regex"
"""Of a session: what it hides of its own settings, beside what `spark.redaction.regex` says of the whole context."""

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
    settings nor temporary views with it. A new session keeps what Spark prints in a log file, off the terminal. Where
    the JVM of a session that was started here has ended, a warning says how, and a new one is started.

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
        PySpark is not installed, there is no suitable Java, the jars are not available, Spark does not start, the
        active session has no Iceberg, or somebody else started it and its JVM has ended.
    """
    if find_spec("pyspark") is None:
        raise SparkUnavailableError("PySpark is not installed: pip install 'icestats[spark]'")
    with _lock:
        try:
            return _find_session(catalogs or {}, master, memory, conf or {})
        except connection_errors():
            context = _active_context()
            if context is None or explain_end(context) is None:
                raise
            return _find_session(catalogs or {}, master, memory, conf or {})


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
    """End the session that `get_session` started, with its JVM, or clear away a session whose JVM has ended.

    A session of somebody else that still runs is left alone.
    """
    global _own
    with _lock:
        context = _active_context()
        if context is not None and explain_end(context) is not None:
            _clear_away(context)
        elif _own is not None:
            with unless_ended(_own.sparkContext):
                _own.stop()
            _own = None
            close_gateway()


def find_running_version() -> str | None:
    """Return the version of the Spark that runs in this process; None where none does."""
    context = _active_context()
    return None if context is None or explain_end(context) is not None else str(context.version)


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
            with unless_ended(session.sparkContext):
                _activate(before)


def _activate(session: SparkSession) -> None:
    kind: Any = type(session)
    kind._activeSession = session
    kind._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def _find_session(
    catalogs: Mapping[str, Mapping[str, str]], master: str | None, memory: str | None, conf: Mapping[str, str]
) -> SparkSession:
    global _own
    _replace_ended()
    session = _active_session()
    if session is None:
        _siblings.clear()
        session = _own = start_session(master, memory, conf)
    else:
        check_iceberg(session)
    return _with_catalogs(session, catalogs)


def _active_context() -> SparkContext | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _replace_ended() -> None:
    context = _active_context()
    end = None if context is None else explain_end(context)
    if context is None or end is None:
        return
    if context._jsc is not None:
        if _own is None or _own.sparkContext is not context:
            raise SparkUnavailableError(f"the active Spark session is dead: {end}")
        warnings.warn(end.partition(";")[0] + ": a new session is started", RuntimeWarning, stacklevel=4)
    _clear_away(context)


def _clear_away(context: SparkContext) -> None:
    global _own
    clear_context(context)
    _own = None
    _siblings.clear()


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


def check_iceberg(session: SparkSession) -> None:
    """Refuse a classic session that has no Iceberg on its class path.

    Raises
    ------
    SparkUnavailableError
        It has none.
    """
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
    hidden = candidate.conf.get(_HIDDEN_OPTIONS, None) or "(?i)url"
    if SECRETS not in hidden:
        candidate.conf.set(_HIDDEN_OPTIONS, f"{hidden}|{SECRETS}")
    for key, value in settings.items():
        candidate.conf.set(key, value)
    return candidate


def _catalog_settings(properties: Mapping[str, str]) -> dict[str, str]:
    return {"": ICEBERG_CATALOG, ".cache-enabled": "false", **{f".{name}": value for name, value in properties.items()}}
