"""The JVM behind a Spark context: whether it still runs, and what to say when it does not."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

# A process that ends closes its sockets first, and can be waited for a little later.
_LAST_BREATH_S = 10.0
# SparkExitCode.OOM
_HEAP_FULL = 52


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


def add_jvm(jvm: Jvm) -> None:
    """Take note of a JVM that has been started."""
    _started.append(jvm)


def drop_jvm(process: subprocess.Popen[bytes]) -> None:
    """Forget a JVM that is about to be stopped, if it still runs: `read_ended` is not to give it."""
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
    """Do what a block does in a JVM; where that has ended, leave the rest of the block out."""
    try:
        yield
    except connection_errors():
        if explain_end(context) is None:
            raise


def connection_errors() -> tuple[type[Exception], ...]:
    """Return what is raised of a JVM that has ended, and also for other reasons."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError, EOFError, AttributeError


def hush_py4j() -> None:
    """Drop what Py4J logs of a call that the JVM's end cuts short: to the root logger, and so to the terminal.

    It may come later too, from Py4J's own thread, which tells the JVM what Python has let go of.
    """
    logging.getLogger().addFilter(_is_no_cut_call)


def _is_no_cut_call(record: logging.LogRecord) -> bool:
    return (record.module, record.msg) != ("java_gateway", "Exception while sending command.")


_OURS = "run it again in the new session that get_session() starts; its memory= is the heap, 2g by default"
_THEIRS = (
    "icestats did not start it and starts no other in its place: restart Python, or let stop_session() of "
    "icestats.spark.session clear the dead session away and run it again in a new one"
)


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
