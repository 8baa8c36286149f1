"""Jobs of Spark: how work is spread, progress, cancelling, and why one failed, in one line."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from icestats.answers.redaction import hide_secrets, safe_cause
from icestats.answers.text import one_line
from icestats.errors import IcestatsError, SparkUnavailableError
from icestats.spark.connect import interrupt_operations, is_connect, watch_operations
from icestats.spark.jvm import (
    connection_errors,
    explain_end,
    find_aws_bundle,
    find_runtime,
    hush_py4j,
    interrupts_first,
    spark_errors,
    unless_ended,
    unlogged,
    unshown,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")

WORK = "payload binary"
"""Spark's schema of what `spread` gives."""

_numbers = count(1)
_blocks: dict[str, tuple[str, int]] = {}
"""The group and the thread of each block of `watch_jobs` that runs, by the id that Spark has for its jobs alone."""

_SHUT_DOWN = "SparkContext was shut down"
_STACK_TRACE = "JVM stacktrace:"
"""Of Spark Connect: what comes before it is said for people."""
_SHUTDOWN_S = 5.0
_PATIENCE_S = 15.0
_INTERVAL_S = 0.2
_CANCELLED = re.compile(
    rf"cancelled (part of cancelled job group|because|as part of)|OPERATION_CANCELED|{_SHUT_DOWN}", re.I
)
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
# PySpark 3.5 says "(3, 9)" for "3.9", and leaves the colons out.
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\].*?version:? (\(\d+, \d+\)|\S+) than that in driver:? (\S+?),")
_NO_AWS = re.compile(r'Missing org\.apache\.iceberg\.aws\.|software/amazon/awssdk|No FileSystem for scheme "s3')
_NO_INTERPRETER = re.compile(r'Cannot run program "([^"]+)"')
_NO_ANSWER = re.compile(r'of RPC that terminated with:\s+status = StatusCode\.(\w+)\s+details = "(.*?)"\n', re.S)
"""What gRPC says, in several lines, where a server of Spark Connect has given no answer of its own."""
_LOST = re.compile(r"ExecutorLostFailure \(executor \S+ exited.*?\) Reason: ([^\n]+)")
_OLD_ICEBERG = re.compile(
    r"(?:NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError|"
    r"IncompatibleClassChangeError)\b.*(?:org[./]apache[./]iceberg|Iceberg)|'JavaPackage' object is not callable|"
    r"Method \w+\(.*\) does not exist|org\.apache\.iceberg\S* does not exist in the JVM|"
    r"ROUTINE_NOT_FOUND|FAILED_TO_LOAD_ROUTINE|Cannot convert metadata update action",
    re.S,
)
"""What is said where the session's Iceberg lacks what a call needs, or is made for another Spark."""
_PYTHON_ERROR = re.compile(r"^(?:: )?([\w.]+(?:Error|Exception|Interrupt|ArrowInvalid)\b.*)$", re.M)


def cut_evenly(items: Sequence[Item], sizes: Sequence[int], count: int) -> list[list[Item]]:
    """Cut items into at most so many parts of about the same size, in their order.

    Examples
    --------
    >>> cut_evenly("abcde", [10, 10, 90, 5, 5], 2)
    [['a', 'b'], ['c', 'd', 'e']]
    """
    total, before = sum(sizes), 0
    parts: list[list[Item]] = [[] for _ in range(count)]
    for item, size in zip(items, sizes, strict=True):
        # By the middle of the item, so that a large one does not draw its neighbours to it.
        parts[min(count - 1, (2 * before + size) * count // (2 * total))].append(item)
        before += size
    return [part for part in parts if part]


def runs_here(spark: SparkSession) -> bool:
    """Say whether the executors of a classic session are threads of its driver."""
    return (spark.sparkContext.master or "local").split("[")[0] == "local"


def find_parallelism(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at once, as far as it says; on a cluster it waits for the first executor."""
    if not is_connect(spark):
        if not runs_here(spark):
            # Executors tell of their cores when they come: before, a cluster counts as two.
            with watch_jobs(spark, "icestats: the first executor"):
                spark.range(1).count()
        return spark.sparkContext.defaultParallelism
    # Spark cuts a range into as many parts; a server does not say it otherwise.
    return spark.range(1 << 16).selectExpr("spark_partition_id()").distinct().count()


def spread(spark: SparkSession, payloads: Sequence[bytes]) -> DataFrame:
    """Return a DataFrame of a column `payload` and a row a payload, each in a task of its own, in their order."""
    count = len(payloads)
    if not is_connect(spark):
        rows = [(bytearray(payload),) for payload in payloads]
        # `toDF` would use the session that PySpark has made last.
        return spark.createDataFrame(spark.sparkContext.parallelize(rows, count), WORK)
    numbered = spark.createDataFrame([(i, bytearray(payload)) for i, payload in enumerate(payloads)], f"i int, {WORK}")
    # Of so few rows Spark samples all, and finds the bounds that keep each by itself.
    return numbered.repartitionByRange(count, "i").select("payload")


@contextmanager
def said_if_none_comes(spark: SparkSession, after_s: float = _PATIENCE_S) -> Iterator[None]:
    """Say on stderr, once, that a cluster has given no executor some seconds after a block has begun.

    Spark itself waits without an end, be the cluster busy or none of its workers large enough.

    Parameters
    ----------
    spark : SparkSession
        The session of the block.
    after_s : float
        How long nothing is said.
    """
    if is_connect(spark) or runs_here(spark):
        yield
        return
    context = spark.sparkContext
    needed = context.getConf().get("spark.executor.memory", "1g")

    def say() -> None:
        with unless_ended(spark):
            # The driver is one of them.
            if context._jsc.sc().getExecutorMemoryStatus().size() < 2:
                sys.stderr.write(
                    f"{context.master} has given no executor for {after_s:.0f} s: it is busy, or has no worker with "
                    f"{needed} of memory and a core to spare (--executor-memory, executor_memory=); an interrupt "
                    "(Ctrl-C) stops waiting\n"
                )

    timer = threading.Timer(after_s, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def watch_jobs(spark: SparkSession, group: str, callback: Callable[[int, int], object] | None = None) -> Iterator[None]:
    """Put the Spark jobs of a block into a job group, report their progress, and cancel them at an interrupt.

    Another block of the same group, of another thread, goes on.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The group's name; `cancel_jobs` takes it from any thread.
    callback : callable, optional
        Called from a thread of its own with the completed and the known tasks, whenever one of them changes, and
        once at the end of a block that did not fail. By Spark Connect from the thread of the block. An exception from
        it cancels the jobs, and is raised.
    """
    own = f"{group} ({next(_numbers)})"
    _blocks[own] = group, threading.get_ident()
    try:
        with watch_operations(spark, own, callback) if is_connect(spark) else _watch(spark, own, callback):
            yield
    finally:
        del _blocks[own]


@contextmanager
def _watch(spark: SparkSession, own: str, callback: Callable[[int, int], object] | None) -> Iterator[None]:
    context = spark.sparkContext
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {name: context.getLocalProperty(name) for name in names}
    context.setJobGroup(own, own, interruptOnCancel=True)
    try:
        with (
            _tell(spark, own, callback),
            _interrupts_raised(),
            interrupts_first(),
            said_if_none_comes(spark),
        ):
            yield
    except KeyboardInterrupt:
        _cancel_interrupted(spark, own)
        raise
    finally:
        with interrupts_first(), unless_ended(spark):
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it, the annotation forgets that
    if callback:
        total = _count_tasks(spark, own)[1]
        callback(total, total)


@contextmanager
def _tell(spark: SparkSession, own: str, callback: Callable[[int, int], object] | None) -> Iterator[None]:
    """Report the tasks of a block from a thread of its own; what it raises there ends the jobs, and is raised here."""
    if callback is None:
        yield
        return
    finished, raised = threading.Event(), list[BaseException]()

    def watch(report: Callable[[int, int], object]) -> None:
        try:
            _report_tasks(spark, own, report, finished)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread of the block
            raised.append(error)
            while not finished.wait(_INTERVAL_S):
                _cancel_block(spark, own)

    watcher = threading.Thread(target=watch, args=(callback,), name=f"watch {own}", daemon=True)
    try:
        watcher.start()
        yield
    except Exception:
        if raised:
            raise raised[0] from None
        raise
    finally:
        finished.set()
        watcher.join()
    if raised:
        raise raised[0]


def _report_tasks(
    spark: SparkSession, own: str, report: Callable[[int, int], object], finished: threading.Event
) -> None:
    last = (0, 0)
    while not finished.wait(_INTERVAL_S):
        now = last
        with unless_ended(spark):
            now = _count_tasks(spark, own)
        if now != last:
            last = now
            report(*now)


@contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt, and do nothing else.

    PySpark's own handler calls the JVM on the connection that it has interrupted, which fails: no job is cancelled, and
    in place of KeyboardInterrupt comes Py4J's error without a reason.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not getattr(handler, "__module__", "").startswith("pyspark."):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _cancel_interrupted(spark: SparkSession, own: str) -> None:
    """Cancel the jobs of a call that was interrupted: the connection that it was made on may fail, once."""
    try:
        _cancel_block(spark, own)
    except spark_errors():
        with suppress(*spark_errors()):
            _cancel_block(spark, own)


def cancel_jobs(spark: SparkSession, group: str, thread: int | None = None) -> None:
    """Cancel the running jobs of a group; the call that waits for them raises Spark's own error.

    Nothing happens where the JVM has ended.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The group's name, as `watch_jobs` was given it.
    thread : int, optional
        The thread that waits for them, as `threading.get_ident` calls it; by default all that do.
    """
    for own in [own for own, (name, waits) in list(_blocks.items()) if name == group and thread in (None, waits)]:
        _cancel_block(spark, own)


def _cancel_block(spark: SparkSession, own: str) -> None:
    if is_connect(spark):
        interrupt_operations(spark, own)
        return
    with unless_ended(spark):
        spark.sparkContext.cancelJobGroup(own)


def _count_tasks(spark: SparkSession, own: str) -> tuple[int, int]:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(own)]
    stages = [tracker.getStageInfo(stage_id) for job in jobs if job for stage_id in job.stageIds]
    known = [stage for stage in stages if stage]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


@contextmanager
def explained_errors(
    spark: SparkSession,
    doing: str,
    explain: Callable[[str], IcestatsError] | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Turn what Spark raises in a block into one line.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session that the block works in.
    doing : str
        What the job does, as the subject of the message: `the Spark job that ...`.
    explain : callable, optional
        Gives the error for the first line that Spark, whose JVM still runs, says; by default `explain_failure` of all.
    properties : mapping of str to Any, optional
        What the block opens files and catalogs with: their secrets are hidden, as those of the session's settings.

    Raises
    ------
    SparkUnavailableError
        The JVM has ended, or the session has been stopped; it lacks the jar that opens S3, or its Iceberg is too old;
        the executors' Python is missing, is of another version, or lacks a module.
    IcestatsError
        The job was cancelled, or failed for a reason of its own.
    """
    hush_py4j()
    # Py4J gives a package for a class that is not there, and a package cannot be called.
    caught: tuple[type[Exception], ...] = (*connection_errors(), TypeError)
    try:
        with unshown():
            yield
    except caught as error:
        # A session of Spark Connect has no context.
        context = getattr(spark, "sparkContext", None)
        # A JVM that is told to end stops its context, and the jobs, first.
        wait_s = _SHUTDOWN_S if _SHUT_DOWN in str(error) else 0.0
        if context is not None and (end := explain_end(context, wait_s=wait_s)) is not None:
            raise SparkUnavailableError(f"{doing} failed: {end}") from None
        known = list_settings(spark) | dict(properties or {})
        if _NO_AWS.search(str(error)):
            raise SparkUnavailableError(f"{doing} failed: {_explain_no_aws(spark)}") from safe_cause(error, known)
        if context is not None and _OLD_ICEBERG.search(str(error)):
            lacking = hide_secrets(_explain_iceberg(context, error), known)
            raise SparkUnavailableError(f"{doing} failed: {lacking}") from safe_cause(error, known)
        if not isinstance(error, spark_errors()):
            raise
        said = str(error).partition(_STACK_TRACE)[0] if explain is None else first_line(error)
        explained = partial(explain_failure, doing) if explain is None else explain
        raise explained(hide_secrets(said, known)) from safe_cause(error, known)


@unlogged()
def list_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session, its secrets too; none by Spark Connect, whose server has them."""
    if is_connect(spark):
        return {}
    # `conf.getAll` came with PySpark 4.
    found: Any = spark._jsparkSession.sessionState().conf().settings()
    return {str(key): str(value) for key, value in found.items()}


def _explain_no_aws(spark: SparkSession) -> str:
    if is_connect(spark):
        bundle = find_aws_bundle(find_runtime(spark.version))
        return f"Spark has no jar that opens S3: add {bundle} to spark.jars.packages of its server"
    jvm: Any = spark.sparkContext._jvm
    version = jvm.org.apache.iceberg.IcebergBuild.version()
    return (
        "Spark has no jar that opens S3: add "
        f"{find_aws_bundle(version)} to spark.jars.packages; a session that icestats starts for a table on S3 "
        "has it (stop_session() of icestats.spark.session, then run this again)"
    )


def _explain_iceberg(context: SparkContext, error: Exception) -> str:
    from py4j.protocol import Py4JError

    jvm: Any = context._jvm
    try:
        version = jvm.org.apache.iceberg.IcebergBuild.version()
    except (Py4JError, TypeError):
        version = "of an unknown version"
    runtime = find_runtime(context.version, jvm.scala.util.Properties.versionNumberString())
    return (
        f"the session's Iceberg {version} lacks what it needs, or is made for another Spark ({first_line(error)}): "
        f"start the session with spark.jars.packages={runtime}"
    )


def first_line(error: Exception) -> str:
    """Return what Spark says without its stack trace: of an error in Java, what that says."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java).strip()
    return _explain_no_answer(text) or one_line(text.partition("\n")[0] or error)


def _explain_no_answer(text: str) -> str:
    """Say that a server of Spark Connect gave no answer, and may still be at work; nothing: it gave one."""
    found = _NO_ANSWER.search(text)
    return f"no answer from the server of Spark Connect ({found[1]}: {one_line(found[2])})" if found else ""


def explain_failure(doing: str, text: str) -> IcestatsError:
    """Build the error for what Spark says of a failed job.

    Examples
    --------
    >>> explain_failure("the job", "ModuleNotFoundError: No module named 'numba'").__class__.__name__
    'SparkUnavailableError'
    """
    if _CANCELLED.search(text):
        return IcestatsError(f"{doing} was cancelled: nothing has been changed")
    if unanswered := _explain_no_answer(text):
        return SparkUnavailableError(f"{doing} failed: {unanswered}")
    if found := _VERSIONS.search(text):
        return SparkUnavailableError(
            f"{doing} failed: the executors have Python {'.'.join(re.findall(r'[0-9]+', found[1]))} and the driver "
            f"{found[2]}: name an interpreter of "
            "the driver's version in PYSPARK_PYTHON"
        )
    if found := _MISSING_MODULE.search(text):
        return SparkUnavailableError(
            f"{doing} failed: the executors' Python has no {found[1]!r}: install what icestats depends on there, or "
            "name an interpreter that has it in PYSPARK_PYTHON"
        )
    if found := _NO_INTERPRETER.search(text):
        return SparkUnavailableError(
            f"{doing} failed: the executors have no {found[1]}: name their interpreter in PYSPARK_PYTHON"
        )
    if found := _LOST.search(text):
        return SparkUnavailableError(
            f"{doing} failed: its executors ended ({one_line(found[1].rstrip())}); where memory ran out, give them "
            "more (executor_memory=, spark.executor.memoryOverhead for their Python) or fewer cores"
        )
    # Py4J says in its first line which of its own calls failed.
    java = text.partition("\n: ")[2] or text
    telling = _PYTHON_ERROR.findall(text) or java.splitlines() or ["no reason given"]
    return IcestatsError(f"{doing} failed: {one_line(telling[0])}")
