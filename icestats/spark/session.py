"""The Spark session that icestats works in: started quietly, or the one that is already there."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from icestats.errors import HIDDEN, CallError, SparkUnavailableError
from icestats.iceberg.configuration import find_catalog_type, find_sqlite_path
from icestats.iceberg.reach import store_of
from icestats.spark.connect import find_connect_session, refuse_connect
from icestats.spark.jvm import (
    REDACTION,
    SECRETS,
    SQLITE_DRIVER,
    clear_context,
    close_gateway,
    connection_errors,
    explain_end,
    find_runtime,
    interrupts_first,
    start_session,
    unless_ended,
    unlogged,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_CLASSIC = "unset SPARK_REMOTE, or work in a process without Spark Connect"
_JAVA_NAMES = {
    "s3.region": "client.region",
    "s3.path-style": "s3.path-style-access",
    **{f"client.{name}": f"s3.{name}" for name in ("access-key-id", "secret-access-key", "session-token")},
}
_DELEGATION = "header.X-Iceberg-Access-Delegation"
"""What a REST catalog's server is asked to give for a table: credentials for its files, or signatures of requests."""
_VIRTUAL = "s3.force-virtual-addressing"
_HIDDEN_OPTIONS = "spark.sql.redaction.options.regex"
"""Of a session: what it hides of its own settings, beside what `spark.redaction.regex` says of the whole context."""

_NAMED = {"spark.master": "local[*]", "spark.driver.memory": "2g", "spark.executor.memory": "1g"}
"""The properties that have an option of their own, with an example."""

_lock = threading.RLock()
_own: SparkSession | None = None
_siblings: list[SparkSession] = []


def get_session(
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
    *,
    location: str | None = None,
    master: str | None = None,
    driver_memory: str | None = None,
    executor_memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Give a Spark session that knows some Iceberg catalogs: the active one, or a new one.

    A session that exists is used as it is, and the catalogs that it lacks are added to it. Where it knows a catalog of
    the same name with other properties, a sibling session on the same Spark context is made, which shares neither
    settings nor temporary views with it. A new session keeps what Spark prints in a log file, off the terminal. Where
    the JVM of a session that was started here has ended, or the cluster has ended its application, a warning says how,
    and a new one is started.

    In a process that works with Spark Connect it is the Connect session, whose catalogs are its server's.

    Parameters
    ----------
    catalogs : mapping of str to mapping of str to str, optional
        For each catalog its name and its Spark properties, as `spark_catalog_properties` gives them.
    location : str, optional
        Where a table is that the session is for. A new session gets the jar that opens S3 where this, or what the
        properties of a catalog name, is on S3, or a catalog is AWS Glue.
    master : str, optional
        Spark's master for a new session: by default the variable ICESTATS_SPARK_MASTER, else ``local[*]``.
    driver_memory : str, optional
        The driver's heap for a new session, such as ``4g``; 2g by default.
    executor_memory : str, optional
        The heap of each executor of a new session on a cluster, such as ``4g``; 1g by default, Spark's own.
    conf : mapping of str to str, optional
        Further Spark properties for a new session; they win over those of icestats.

    Returns
    -------
    pyspark.sql.SparkSession
        The session; `stop_session` ends one that was started here.

    Raises
    ------
    CallError
        A session is active and has another master, memory or property than is asked for; or what is asked for is no
        property of Spark's, or contradicts itself.
    SparkUnavailableError
        PySpark is not installed, there is no suitable Java, the jars are not available, the master does not answer,
        Spark does not start, the active session has no Iceberg and catalogs are asked for, or somebody else started it
        and its JVM has ended.
    UnsupportedError
        Catalogs or properties are asked for, and the process works with Spark Connect.
    """
    if find_spec("pyspark") is None:
        raise SparkUnavailableError("PySpark is not installed: pip install 'icestats[spark]'")
    asked = _name_options(master, driver_memory, executor_memory, conf or {})
    with _lock:
        connected = find_connect_session()
        if connected is not None:
            if catalogs:
                refuse_connect(connected, f"adding the catalog {' and '.join(catalogs)}", _CLASSIC)
            if asked:
                refuse_connect(connected, f"starting Spark with {next(iter(asked))}", _CLASSIC)
            return connected
        on_aws = is_on_aws(location, catalogs or {})
        try:
            return _find_session(catalogs or {}, asked, on_aws)
        except connection_errors():
            context = _active_context()
            if context is None or explain_end(context) is None:
                raise
            return _find_session(catalogs or {}, asked, on_aws)


def add_catalogs(session: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> SparkSession:
    """Give a session that knows some Iceberg catalogs: the given one, or a sibling where it knows others so named.

    Parameters
    ----------
    session : SparkSession
        A classic session.
    catalogs : mapping of str to mapping of str to str
        For each catalog its name and its Spark properties, as `spark_catalog_properties` gives them.

    Raises
    ------
    SparkUnavailableError
        It has no Iceberg on its class path.
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
            with unless_ended(_own):
                _own.stop()
            _own = None
            close_gateway()


def find_running_version() -> str | None:
    """Return the version of the Spark that runs in this process; None where none does."""
    return _ask_running(lambda context: str(context.version))


def find_running_session() -> SparkSession | None:
    """Return the classic session that runs in this process, the active one first; None where none does."""
    return _ask_running(lambda _: _active_session())


def _ask_running(ask: Callable[[SparkContext], Answer | None]) -> Answer | None:
    context = _active_context()
    if context is None or explain_end(context) is not None:
        return None
    try:
        return ask(context)
    except connection_errors():
        # It may end while it is asked.
        if explain_end(context) is None:
            raise
        return None


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
    kind = find_catalog_type(properties)
    translated = _translate(properties)
    if kind == "rest":
        # As PyIceberg asks by itself: a server may answer otherwise with what Java cannot use.
        translated.setdefault(_DELEGATION, "vended-credentials")
    if kind in ("rest", "hive", "glue") and "py-catalog-impl" not in properties:
        return {"type": kind, **translated}
    if kind != "sql" or "py-catalog-impl" in properties:
        return None
    path = find_sqlite_path(properties.get("uri", ""))
    if path is None:
        return None
    return {"type": "jdbc", **translated, "uri": f"jdbc:sqlite:{path}", "jdbc.schema-version": "V1"}


def _translate(properties: Mapping[str, str]) -> dict[str, str]:
    """Give properties the names that Iceberg's Java library has for them."""
    # Sorted: what PyIceberg takes of S3 alone wins over what it takes of the whole of AWS.
    # Nested ones are PyIceberg's alone.
    texts = sorted(name for name, value in properties.items() if isinstance(value, str))
    translated = {_JAVA_NAMES.get(name, name): properties[name] for name in texts}
    for name in ("type", "py-catalog-impl", "py-io-impl"):
        translated.pop(name, None)
    is_virtual = translated.pop(_VIRTUAL, "").lower() == "true"
    if "s3.endpoint" in translated:
        # The bucket is a part of the path in PyIceberg by default, of the host in Java.
        translated.setdefault("s3.path-style-access", "false" if is_virtual else "true")
    return translated


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one for a block: what Spark plans late goes by the active session's settings."""
    kind: Any = type(session)
    before, of_python = _find_active(), kind._activeSession
    try:
        _activate(session)
        yield
    finally:
        with interrupts_first(), unless_ended(session):
            if before is not None:
                _activate(before)
            else:
                kind._activeSession = of_python
                _java_class(session).clearActiveSession()


def _activate(session: SparkSession) -> None:
    kind: Any = type(session)
    kind._activeSession = session
    _java_class(session).setActiveSession(session._jsparkSession)


def _java_class(session: SparkSession) -> Any:
    # PySpark 3.5 has one class of Java's, and no name for it.
    find_class = getattr(type(session), "_get_j_spark_session_class", lambda jvm: jvm.SparkSession)
    return find_class(session._jvm)


def is_on_aws(location: str | None, catalogs: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a table's location or the Spark properties of catalogs name S3, or a catalog is AWS Glue."""
    named = [item for properties in catalogs.values() for item in properties.items()]
    return (
        any(store_of(value) == "s3" for value in (location or "", *(value for _, value in named)))
        or any(name.startswith("s3.") for name, _ in named)
        or ("type", "glue") in named
    )


def _name_options(
    master: str | None, driver_memory: str | None, executor_memory: str | None, conf: Mapping[str, str]
) -> dict[str, str]:
    """Return what is asked of a session as Spark's properties."""
    options = (master, driver_memory, executor_memory)
    asked = {name: value for name, value in zip(_NAMED, options, strict=True) if value is not None}
    for name, value in [*asked.items(), *conf.items()]:
        if not isinstance(name, str) or not name.startswith("spark."):
            raise CallError(f"conf has {name!r:.80}: expected a property of Spark's, whose name begins with 'spark.'")
        if not isinstance(value, str) or not value:
            raise CallError(f"{name} is no text, or an empty one: expected one such as {_NAMED.get(name, '2')!r}")
        if asked.get(name, value) != value:
            raise CallError(f"{name} is {asked[name]!r}, and {value!r} in conf: give it once")
    return asked | dict(conf)


def _find_session(catalogs: Mapping[str, Mapping[str, str]], asked: Mapping[str, str], on_aws: bool) -> SparkSession:
    global _own
    _replace_ended()
    session = _active_session()
    if session is None:
        _siblings.clear()
        session = _own = start_session(asked, on_aws=on_aws)
    else:
        _check_options(session, asked)
    return _with_catalogs(session, catalogs)


def _check_options(session: SparkSession, asked: Mapping[str, str]) -> None:
    """Refuse options that the active session does not have: they are of a new one."""
    for name, value in asked.items():
        found = session.conf.get(name, None)
        if found != value:
            has = "no" if found is None else "another" if name not in _NAMED else f"{found!r} as"
            raise CallError(
                f"the active Spark session has {has} {name}, and it cannot be changed: stop it (stop_session() of "
                "icestats.spark.session ends one that icestats started) and ask again, or leave the option out"
            )


def _active_context() -> SparkContext | None:
    # `pyspark-client` has no such class.
    found: type[SparkContext] | None = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return None if found is None else found._active_spark_context


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

    if SparkContext._active_spark_context is None:
        return None
    return _find_active() or SparkSession.builder.getOrCreate()


def _find_active() -> SparkSession | None:
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        return None
    # PySpark 3.5 gives the session that Python used last, which need not be the active one.
    active = _java_class(found).getActiveSession()
    if active.isDefined() and not active.get().equals(found._jsparkSession):
        return SparkSession(found.sparkContext, active.get())
    return found


def check_iceberg(session: SparkSession) -> None:
    """Refuse a classic session that has no Iceberg on its class path, whether it was found or given.

    Raises
    ------
    SparkUnavailableError
        It has none.
    """
    from py4j.protocol import Py4JJavaError

    jvm: Any = session.sparkContext._jvm
    try:
        jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(ICEBERG_CATALOG)
    except Py4JJavaError as error:
        runtime = find_runtime(session.version, jvm.scala.util.Properties.versionNumberString())
        raise SparkUnavailableError(
            f"the Spark session has no Iceberg runtime on its class path: start it with "
            f"spark.jars.packages={runtime},{SQLITE_DRIVER}, or stop it and let icestats start one"
        ) from error


@unlogged()
def _with_catalogs(session: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> SparkSession:
    if catalogs:
        check_iceberg(session)
    context: Any = session.sparkContext
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
        for key in (key for key, value in context._conf.getAll() if value == HIDDEN):
            candidate.conf.unset(key)
    hidden = candidate.conf.get(_HIDDEN_OPTIONS, None) or "(?i)url"
    if SECRETS not in hidden:
        candidate.conf.set(_HIDDEN_OPTIONS, f"{hidden}|{SECRETS}")
    # As Scala reads it.
    if (context._conf.get("spark.eventLog.enabled") or "").strip().lower() == "true":
        _hide_in_events(context._conf, settings)
    for key, value in settings.items():
        candidate.conf.set(key, value)
    return candidate


def _hide_in_events(conf: Any, settings: Mapping[str, str]) -> None:
    """Have the log of events hide secrets: of what a session sets, it hides only what its context has a setting for."""
    pattern = conf.get(REDACTION) or ""
    if SECRETS not in pattern:
        conf.set(REDACTION, f"{pattern}|{SECRETS}" if pattern else SECRETS)
    for key, value in settings.items():
        if not conf.contains(key) and (re.search(SECRETS, key) or re.search(SECRETS, value)):
            conf.set(key, HIDDEN)


def _catalog_settings(properties: Mapping[str, str]) -> dict[str, str]:
    return {"": ICEBERG_CATALOG, ".cache-enabled": "false", **{f".{name}": value for name, value in properties.items()}}
