"""The JVM behind a Spark session: starting it with the jars it needs, whether it still runs, and what to say of it."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestats.answers.redaction import HIDDEN_IN_URLS, HIDDEN_NAMES
from icestats.answers.text import one_line
from icestats.errors import SparkUnavailableError
from icestats.spark.java import find_java

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
JAR_SHA256 = {
    ICEBERG_RUNTIME: "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    SQLITE_DRIVER: "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
}
"""The checksums of the jars that Spark fetches, by what they are fetched as."""
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SECRETS = f"(?i){HIDDEN_NAMES}|{HIDDEN_IN_URLS}"
"""Names and values of settings that Spark shows nowhere: a regular expression of Java's."""

_LAST_BREATH_S = 10.0
# SparkExitCode.OOM
_HEAP_FULL = 52
_UNRESOLVED = re.compile(r"unresolved dependency: ([^#\s]+)#([^;\s]+);([^:\s]+): not found")
_OURS = "run it again in the new session that get_session() starts; its memory= is the heap, 2g by default"
_THEIRS = (
    "icestats did not start it, so it does not replace it: restart Python, or call stop_session() of "
    "icestats.spark.session to clear the dead session, and run it again in a new one"
)


@dataclass(frozen=True, eq=False)
class Jvm:
    """A JVM that was started here and has not been stopped.

    Attributes
    ----------
    client : py4j.java_gateway.GatewayClient
        What talks to it.
    process : subprocess.Popen
        Its process.
    log : pathlib.Path
        What it prints.
    """

    client: Any
    process: subprocess.Popen[bytes]
    log: Path


_started: list[Jvm] = []


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
        There is no suitable Java, the jars are not available or not those that are expected, or Spark does not start;
        the message names the log file.
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
                _started.append(Jvm(gateway._gateway_client, gateway.proc, Path(log)))
            _check_jars(str(gateway.jvm.java.lang.System.getProperty("spark.jars") or ""))
            session = SparkSession(SparkContext(conf=settings, gateway=gateway))
            hush_py4j()
            _hush_accumulators(session.sparkContext)
        except SparkUnavailableError:
            close_gateway()
            raise
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
        _forget(process)
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
        "spark.redaction.regex": SECRETS,
    }
    if _is_loopback(chosen):
        properties |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**properties, **conf}


def _check_jars(locations: str) -> None:
    """Refuse a fetched jar that is not the one that the kit was tested with, before any of its code has run."""
    expected = {
        f"{coordinate.replace(':', '_', 1).replace(':', '-')}.jar": jar for coordinate, jar in JAR_SHA256.items()
    }
    for path in (Path(location.removeprefix("file://")) for location in locations.split(",")):
        if path.name not in expected:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected[path.name]:
            raise SparkUnavailableError(
                f"{path} has the SHA-256 {found}, expected {expected[path.name]}: it is damaged, or not the "
                "released one; remove it, from Ivy's cache too, and run again to fetch it anew"
            )


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


def _forget(process: subprocess.Popen[bytes]) -> None:
    """Forget a JVM that is about to be stopped, if it still runs, so that `read_ended` does not return it."""
    _started[:] = [jvm for jvm in _started if jvm.process is not process or process.poll() is not None]


def read_ended() -> list[Jvm]:
    """Return the JVMs that were started here and have ended though nobody has stopped them."""
    return [jvm for jvm in _started if jvm.process.poll() is not None]


def explain_end(context: SparkContext, *, wait_s: float = 0.0) -> str | None:
    """Say in one line that the JVM of a Spark context is gone, how it ended, and what to do; None while it runs.

    Parameters
    ----------
    context : pyspark.SparkContext
        A classic context.
    wait_s : float
        Seconds to wait for the end of a JVM that still answers.
    """
    java: Any = context._jsc
    if java is None:
        return "its Spark session has been stopped: take the one that get_session() gives"
    client = java._gateway_client
    jvm = next((jvm for jvm in _started if jvm.client is client), None)
    process = _find_process(client) if jvm is None else jvm.process
    if process is None:
        return None if _answers(client) else f"{_say_end(None)}; {_THEIRS}"
    if process.poll() is None:
        try:
            process.wait(wait_s if _answers(client) else _LAST_BREATH_S)
        except subprocess.TimeoutExpired:
            return None if _answers(client) else f"{_say_end(None)}; {_OURS if jvm else _THEIRS}"
    if jvm is None:
        return f"{_say_end(process.returncode)}; {_THEIRS}"
    return f"{_say_end(process.returncode)} (log: {jvm.log}); {_OURS}"


@contextmanager
def unless_ended(context: SparkContext) -> Iterator[None]:
    """Run a block that talks to a JVM; where the JVM has ended, leave out the rest of the block."""
    try:
        yield
    except connection_errors():
        if explain_end(context) is None:
            raise


def connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors that calls into an ended JVM raise; some have other causes too."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError, EOFError, AttributeError


def hush_py4j() -> None:
    """Drop what Py4J logs of a call that the JVM's end cuts short: to the root logger, and so to the terminal.

    It may come later too, from Py4J's own thread that tells the JVM which objects Python has freed.
    """
    logging.getLogger().addFilter(_is_no_cut_call)


def _is_no_cut_call(record: logging.LogRecord) -> bool:
    return (record.module, record.msg) != ("java_gateway", "Exception while sending command.")


def _say_end(code: int | None) -> str:
    if code is None:
        return "Spark's JVM does not answer any more"
    # Java takes some signals, closes down, and exits with 128 and the signal's number.
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"Spark's JVM ended with exit code {code}{', as its heap was full' if code == _HEAP_FULL else ''}"
    why = ", as Linux does when memory runs out" if number == signal.SIGKILL else ""
    return f"Spark's JVM was ended by signal {number} ({name}){why}"


def _find_process(client: Any) -> subprocess.Popen[bytes] | None:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or gateway._gateway_client is not client:
        return None
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return process


def _answers(client: Any) -> bool:
    place = getattr(client, "java_parameters", client.gateway_parameters)
    try:
        socket.create_connection((place.address, place.port), timeout=_LAST_BREATH_S).close()
    except OSError:
        return False
    return True
