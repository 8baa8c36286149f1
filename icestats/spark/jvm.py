"""The JVM behind a Spark session: starting it with the jars it needs, whether it still runs, and what to say of it."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, BinaryIO

from icestats.answers.redaction import HIDDEN_NAMES, hide_secrets, safe_cause
from icestats.answers.text import one_line
from icestats.errors import HIDDEN_IN_URLS, SparkUnavailableError
from icestats.spark.java import find_java

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-"
_AWS = "org.apache.iceberg:iceberg-aws-bundle:"
JAR_SHA256 = {
    f"{_RUNTIME}3.5_2.12:1.12.0": "8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc",
    f"{_RUNTIME}3.5_2.13:1.11.0": "86e763a4f1b1b83f47306a1ec34c8b719002f08bb4b1adcaea520888234f1c81",
    f"{_RUNTIME}4.0_2.13:1.11.0": "63c3b812549dc232c1920865ff42436df8604a9bbacd693930985c06bd97e6dc",
    f"{_RUNTIME}4.1_2.13:1.12.0": "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    f"{_AWS}1.11.0": "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f",
    f"{_AWS}1.12.0": "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
    SQLITE_DRIVER: "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
}
"""The checksums of the jars that Spark fetches, by what they are fetched as: of Iceberg the newest for each version of
Spark and Scala, pip's first."""
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SECRETS = f"(?i){HIDDEN_NAMES}|{HIDDEN_IN_URLS}"
"""Names and values of settings that Spark shows nowhere: a regular expression of Java's."""

REDACTION = "spark.redaction.regex"
_CUT_CALLS = (
    ("java_gateway", "Exception while sending command."),
    ("java_gateway", "KeyboardInterrupt while sending command."),
    ("clientserver", "Exception occurred while shutting down connection"),
)
_LAST_BREATH_S = 10.0
# SparkExitCode.OOM
_HEAP_FULL = 52
_MASTER_S = 5.0
_LOCAL = re.compile(r"local(\[([0-9]+|\*)(\s*,\s*[0-9]+)?\])?")
_KILLED = re.compile(r"Application has been killed\. Reason: (.+)")
_CAUSES = (
    _KILLED,
    re.compile(r"^(.+)\n(?:Error: Could not create the Java Virtual Machine)", re.M),
    re.compile(r'^Exception in thread "main" (.+)$', re.M),
)
"""What the log of a Spark that does not start says of the cause, the best first."""
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
_NEXT_LINE = "\n"
_UNRESOLVED = re.compile(r"unresolved dependency: ([^#\s]+)#([^;\s]+);([^:\s]+): not found")
_OURS = "run it again in the new session that get_session() starts; its driver_memory= is the heap, 2g by default"
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
_scratch: list[Path] = []
"""Folders of the JVM of this process, which are removed when it has ended."""


def start_session(asked: Mapping[str, str], *, on_aws: bool = False) -> SparkSession:
    """Start a JVM and a Spark session in it; what either prints goes to a log file, removed when Python ends.

    Parameters
    ----------
    asked : mapping of str to str
        Spark's properties, which win over those set here.
    on_aws : bool
        Whether files on S3 will be opened, or a catalog of AWS asked: the jar for it has 69 MB.

    Returns
    -------
    pyspark.sql.SparkSession
        The session, the default one of this process.

    Raises
    ------
    SparkUnavailableError
        There is no suitable Java, no master answers, the jars are not available or not those that are expected, or
        Spark does not start; the message names the log file.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    properties = _new_properties(asked, on_aws)
    environment = {"JAVA_HOME": str(find_java().home)}
    _check_master(properties["spark.master"])
    if _is_loopback(properties["spark.master"]):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        environment["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
        if not _imports_from_here():
            environment["PYTHONSAFEPATH"] = "1"
    close_gateway()
    settings = SparkConf(loadDefaults=False).setAll(list(properties.items()))
    descriptor, log = tempfile.mkstemp(prefix="icestats-spark-", suffix=".log")
    hush_py4j()
    gateway: Any = None
    with os.fdopen(descriptor, "wb") as output, _environment(environment):
        try:
            gateway = _launch(settings, output, Path(log))
            if gateway.proc is not None:
                _started.append(Jvm(gateway._gateway_client, gateway.proc, Path(log)))
            with interrupts_first():
                _check_jars(_known_to(gateway, "spark.jars"))
                is_named = _known_to(gateway, "spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS")
                if _LOCAL.fullmatch(properties["spark.master"]) and not is_named:
                    # Spark's own is the temporary folder of all, and what is shuffled as readable as the umask says.
                    settings.set("spark.local.dir", _make_scratch())
                if REDACTION not in asked:
                    theirs = _known_to(gateway, REDACTION)
                    settings.set(REDACTION, f"{theirs}|{SECRETS}" if theirs else SECRETS)
                with _handler_kept(), warnings.catch_warnings():
                    # Of a context that was interrupted while it was made.
                    warnings.filterwarnings("ignore", "Unable to cleanly shutdown", RuntimeWarning)
                    context = SparkContext(conf=settings, gateway=gateway)
                session = SparkSession(context)
                _hush_accumulators(context)
        except (KeyboardInterrupt, SystemExit):
            if gateway is not None:
                SparkContext._gateway = gateway
                _abandon([gateway.proc] if gateway.proc else [])
                Path(log).unlink(missing_ok=True)
                _drop_context()
            raise
        except SparkUnavailableError:
            close_gateway()
            raise
        except Exception as error:  # noqa: BLE001 - Spark and Py4J have many
            said = hide_secrets(_explain_start(Path(log), error), asked)
            _drop_context()
            raise SparkUnavailableError(said) from safe_cause(error, asked)
    atexit.register(Path(log).unlink, missing_ok=True)
    return session


def _known_to(gateway: Any, name: str) -> str:
    """Return a property that a JVM was started with, of the user's spark-defaults.conf too; empty where it has none."""
    return str(gateway.jvm.java.lang.System.getProperty(name) or "")


def _launch(settings: SparkConf, output: BinaryIO, log: Path) -> Any:
    """Start a JVM; where that is interrupted, end it, and remove its log unless it may say why.

    PySpark then drops it, with the folder that the JVM is about to write to: it fails, and waits for calls for ever.
    """
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(settings, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    except BaseException as error:
        found = (local for frame, _ in walk_tb(error.__traceback__) for local in frame.f_locals.values())
        _abandon({one for one in found if isinstance(one, subprocess.Popen)})
        if not isinstance(error, Exception):
            log.unlink(missing_ok=True)
        raise


def _abandon(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End the JVM of a start that was interrupted."""
    for process in processes:
        process.kill()
        process.wait()


def _drop_context() -> None:
    """Forget a start that has failed: a context that was stopped while it was made is still the active one."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        clear_context(SparkContext._active_spark_context)
    close_gateway()


@contextmanager
def _handler_kept() -> Iterator[None]:
    """Put back the handler of interrupts that PySpark replaces: its own calls the JVM on the connection that was cut.

    That fails, so that no job is cancelled, and in place of KeyboardInterrupt comes Py4J's error without a reason.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def interrupts_first() -> Iterator[None]:
    """Raise the interrupt where PySpark, leaving a call that was interrupted, has failed at another one."""
    try:
        yield
    except Exception as error:
        before = error.__context__
        while before is not None and not isinstance(before, KeyboardInterrupt):
            before = before.__context__
        if before is not None:
            raise KeyboardInterrupt from error
        raise


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
    process = getattr(gateway, "proc", None)
    if process is not None:
        _forget(process)
    if gateway is not None:
        gateway.shutdown()
    if process is not None:
        process.stdin.close()
        process.wait(timeout=30)
    _remove_scratch()


def _make_scratch() -> str:
    """Return a new folder of this user alone, which is removed with the JVM, at the latest when Python ends."""
    if not _scratch:
        atexit.register(_remove_scratch)
    _scratch.append(Path(tempfile.mkdtemp(prefix="icestats-spark-")))
    return str(_scratch[-1])


def _remove_scratch() -> None:
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


def find_runtime(spark_version: str, scala_version: str = "") -> str:
    """Return what Iceberg's jar for a version of Spark is fetched as.

    Parameters
    ----------
    spark_version : str
        Such as ``4.1.4``.
    scala_version : str
        Such as ``2.13.17``; by default the one that pip's PySpark has.

    Raises
    ------
    SparkUnavailableError
        Iceberg has none for it.

    Examples
    --------
    >>> find_runtime("3.5.9")
    'org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0'
    """
    spark, scala = (".".join(version.split(".")[:2]) for version in (spark_version, scala_version))
    for coordinate in JAR_SHA256:
        if coordinate.startswith(f"{_RUNTIME}{spark}_{scala}"):
            return coordinate
    raise SparkUnavailableError(
        f"no Iceberg runtime is known for Spark {spark_version}{f' with Scala {scala}' if scala else ''}: known are "
        "those for 3.5, 4.0 and 4.1; pip install 'icestats[spark]'"
    )


def find_aws_bundle(runtime: str) -> str:
    """Return what the jar that opens S3 is fetched as, for Iceberg's jar as `find_runtime` names it.

    Examples
    --------
    >>> find_aws_bundle("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0")
    'org.apache.iceberg:iceberg-aws-bundle:1.12.0'
    """
    return f"{_AWS}{runtime.rpartition(':')[2]}"


def _new_properties(asked: Mapping[str, str], on_aws: bool) -> dict[str, str]:
    from pyspark import __version__

    runtime = find_runtime(__version__)
    packages = [runtime, SQLITE_DRIVER, *([find_aws_bundle(runtime)] if on_aws else [])]
    chosen = asked.get("spark.master") or os.environ.get("ICESTATS_SPARK_MASTER") or "local[*]"
    properties = {
        "spark.master": chosen,
        "spark.app.name": "icestats",
        "spark.driver.memory": "2g",
        "spark.jars.packages": ",".join(packages),
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_loopback(chosen):
        properties |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if _LOCAL.fullmatch(chosen):
        # A secret that Spark makes up: any user of the machine could fetch blocks, and send objects to the driver.
        properties["spark.authenticate"] = "true"
    return {**properties, **asked}


def _check_master(master: str) -> None:
    """Refuse a standalone master that does not answer: Spark itself waits a minute for it."""
    places = re.fullmatch(r"spark://(.+:\d+)", master)
    if places is None:
        return
    errors = []
    for place in places[1].split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port or 0)), timeout=_MASTER_S).close()
        except (OSError, OverflowError, ValueError) as error:
            errors.append(f"{place}: {one_line(error)}")
        else:
            return
    raise SparkUnavailableError(
        f"no master of Spark answers at {master} ({'; '.join(errors)}): is it running, and is this its address?"
    )


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


def _imports_from_here() -> bool:
    """Whether this Python imports from the current folder; PySpark's workers always would, before all else."""
    try:
        return os.path.realpath("") in map(os.path.realpath, sys.path)
    except OSError:
        return False


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
    text = log.read_text(errors="replace")
    missing = sorted({":".join(found) for found in _UNRESOLVED.findall(text)})
    if missing:
        return (
            f"Spark could not get {' and '.join(missing)}: not in Ivy's cache and not downloaded; run once with a "
            f"network, or name a mirror in spark.jars.repositories of spark-defaults.conf (log: {log})"
        )
    said = [found[-1] for cause in _CAUSES if (found := cause.findall(text))] or _causes(error)
    # Spark says some things in several lines.
    return f"Spark did not start: {one_line(_PACKAGE.sub('', said[0]).partition(_NEXT_LINE)[0])} (log: {log})"


def _causes(error: Exception) -> list[str]:
    """Return what Java says went wrong, the cause of all first; else what Python says."""
    java = getattr(error, "java_exception", None)
    said = [str(error)]
    while java is not None:
        said.insert(0, str(java.toString()))
        java = java.getCause()
    return said


def _forget(process: subprocess.Popen[bytes]) -> None:
    """Forget a JVM that is about to be stopped, if it still runs, so that `read_ended` does not return it."""
    _started[:] = [jvm for jvm in _started if jvm.process is not process or process.poll() is not None]


def read_ended() -> list[Jvm]:
    """Return the JVMs that were started here and have ended though nobody has stopped them."""
    return [jvm for jvm in _started if jvm.process.poll() is not None]


def explain_end(context: SparkContext, *, wait_s: float = 0.0) -> str | None:
    """Say in one line that a Spark context or its JVM is gone, how it ended, and what to do; None while it runs.

    Parameters
    ----------
    context : pyspark.SparkContext
        A classic context.
    wait_s : float
        Seconds to wait for the end of a JVM that still answers.

    Notes
    -----
    A context that Spark itself has stopped, as it does when a cluster ends the application, is gone too.
    """
    java: Any = context._jsc
    if java is None:
        return "its Spark session has been stopped: take the one that get_session() gives"
    client = java._gateway_client
    jvm = next((jvm for jvm in _started if jvm.client is client), None)
    process = _find_process(client) if jvm is None else jvm.process
    if process is None:
        return _explain_stop(java, None) if _answers(client) else f"{_say_end(None)}; {_THEIRS}"
    if process.poll() is None:
        try:
            process.wait(wait_s if _answers(client) else _LAST_BREATH_S)
        except subprocess.TimeoutExpired:
            if not _answers(client):
                return f"{_say_end(None)}; {_OURS if jvm else _THEIRS}"
            try:
                return _explain_stop(java, jvm)
            except connection_errors():
                # It may end while it is asked.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LAST_BREATH_S)
                if process.returncode is None:
                    raise
    if jvm is None:
        return f"{_say_end(process.returncode)}; {_THEIRS}"
    return f"{_say_end(process.returncode)} (log: {jvm.log}); {_OURS}"


def _explain_stop(java: Any, jvm: Jvm | None) -> str | None:
    """Say why Spark has stopped a context in a JVM that still runs; None where it has not."""
    if not java.sc().isStopped():
        return None
    reasons = [] if jvm is None else _KILLED.findall(jvm.log.read_text(errors="replace"))
    said = "".join(f": {one_line(reason)}" for reason in reasons[-1:])
    return f"Spark has ended the application{said}{f' (log: {jvm.log})' if jvm else ''}; {_OURS if jvm else _THEIRS}"


@contextmanager
def unless_ended(spark: SparkSession) -> Iterator[None]:
    """Run a block that talks to a session's JVM; where the JVM has ended, leave out the rest of the block."""
    try:
        yield
    except connection_errors():
        # A session of Spark Connect has no context.
        context = getattr(spark, "sparkContext", None)
        if context is None or explain_end(context) is None:
            raise


def connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors that calls into an ended JVM raise; some have other causes too."""
    return *spark_errors(), OSError, EOFError, AttributeError


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the errors of PySpark, and Py4J's where there is one: `pyspark-client` is Spark Connect alone."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return (PySparkException,)
    return PySparkException, Py4JError


def hush_py4j() -> None:
    """Drop what Py4J logs of a call that the JVM's end or an interrupt cuts short: to the root logger, so a terminal.

    It may come later too, from Py4J's own thread that tells the JVM which objects Python has freed.
    """
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_cut_call)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep what goes to the JVM and comes back, which Py4J logs at its finest level, out of logs: it has secrets."""

    def is_no_call(record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG

    with _filtered([logging.getLogger(f"py4j.{name}") for name in ("clientserver", "java_gateway")], is_no_call):
        yield


@contextmanager
def unshown() -> Iterator[None]:
    """Keep off the terminal what PySpark 4 shows of an error in SQL, with Java's stack: who catches it says it."""
    if find_spec("pyspark.logger") is None:
        yield
        return
    from pyspark.logger import PySparkLogger

    own = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    # Others than PySpark's own would not take what it logs.
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    with _filtered(loggers, is_of_others):
        yield


@contextmanager
def _filtered(loggers: Sequence[logging.Logger], is_kept: Callable[[logging.LogRecord], bool]) -> Iterator[None]:
    for logger in loggers:
        logger.addFilter(is_kept)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_kept)


def _is_no_cut_call(record: logging.LogRecord) -> bool:
    return (record.module, record.msg) not in _CUT_CALLS


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
