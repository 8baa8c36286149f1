"""Starting Spark: the JVM, the jars it needs, and what to say when it does not come up."""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestats.answers.text import one_line
from icestats.errors import SparkUnavailableError
from icestats.spark.java import find_java
from icestats.spark.jvm import Jvm, add_jvm, drop_jvm, hush_py4j

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

_UNRESOLVED = re.compile(r"unresolved dependency: ([^#\s]+)#([^;\s]+);([^:\s]+): not found")


def start_session(master: str | None, memory: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Start a JVM and a Spark session in it; what either prints goes to a log file, removed when Python ends.

    Parameters
    ----------
    master : str or None
        Spark's master; None takes the variable ICESTATS_SPARK_MASTER, else ``local[*]``.
    memory : str or None
        The driver's heap, such as ``4g``; None takes 2g.
    conf : mapping of str to str
        Further Spark properties, which win over those set here.

    Returns
    -------
    pyspark.sql.SparkSession
        The session, the default one of this process.

    Raises
    ------
    SparkUnavailableError
        No Java that fits, the jars cannot be had, or Spark does not start; the message names the log file.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    properties = _new_properties(master, memory, conf)
    environment = {"JAVA_HOME": str(find_java().home)}
    if _is_loopback(properties["spark.master"]):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        environment["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    close_gateway()
    settings = SparkConf(loadDefaults=False).setAll(list(properties.items()))
    descriptor, log = tempfile.mkstemp(prefix="icestats-spark-", suffix=".log")
    with os.fdopen(descriptor, "wb") as output, _environment(environment):
        try:
            gateway = launch_gateway(settings, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
            if gateway.proc is not None:
                add_jvm(Jvm(gateway._gateway_client, gateway.proc, Path(log)))
            session = SparkSession(SparkContext(conf=settings, gateway=gateway))
            hush_py4j()
            _hush_accumulators(session.sparkContext)
        except Exception as error:
            close_gateway()
            raise SparkUnavailableError(_explain_start(Path(log), error)) from error
    atexit.register(Path(log).unlink, missing_ok=True)
    return session


def clear_context(context: SparkContext) -> None:
    """Empty what PySpark keeps of a context whose JVM has ended, so that a new one can be started in this process.

    Parameters
    ----------
    context : pyspark.SparkContext
        The active context.
    """
    from pyspark.sql import SparkSession, SQLContext

    # As `stop` itself leaves it: it does not call the JVM then.
    context._jsc = None
    context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = SQLContext._instantiatedContext = None
    close_gateway()


def close_gateway() -> None:
    """Let go of the JVM of this process and wait until it has ended, if it has not; no Spark context may be active."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    if process is not None:
        drop_jvm(process)
    gateway.shutdown()
    if process is not None:
        process.stdin.close()
        process.wait(timeout=30)


def _new_properties(master: str | None, memory: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    chosen = master or os.environ.get("ICESTATS_SPARK_MASTER") or "local[*]"
    properties = {
        "spark.master": chosen,
        "spark.app.name": "icestats",
        "spark.driver.memory": memory or "2g",
        "spark.jars.packages": f"{ICEBERG_RUNTIME},{SQLITE_DRIVER}",
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_loopback(chosen):
        properties |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**properties, **conf}


def _hush_accumulators(context: SparkContext) -> None:
    """Keep the traceback of PySpark's server of accumulators, of a JVM that hangs up, off the terminal."""
    server: Any = context._accumulatorServer
    report = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError):
            report(request, address)

    server.handle_error = handle_error


def _is_loopback(master: str) -> bool:
    return re.match(r"local\b|spark://(127\.|localhost\b)", master) is not None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _explain_start(log: Path, error: Exception) -> str:
    lines = log.read_text(errors="replace").splitlines()
    missing = sorted({":".join(found) for line in lines for found in _UNRESOLVED.findall(line)})
    if missing:
        return (
            f"Spark could not get {' and '.join(missing)}: not in Ivy's cache and not downloaded; run once with a "
            f"network, or name a mirror in spark.jars.repositories of spark-defaults.conf (log: {log})"
        )
    telling = [line.strip() for line in lines if "Exception" in line or "Error" in line or "ERROR" in line]
    said = (telling or lines or [str(error)])[-1]
    return f"Spark did not start: {one_line(said)} (log: {log})"
