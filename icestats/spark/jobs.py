"""Jobs of Spark: their progress, cancelling them, and why one failed, in one line."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from icestats.answers.text import one_line
from icestats.errors import IcestatsError, SparkUnavailableError
from icestats.spark.jvm import connection_errors, explain_end, hush_py4j, unless_ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")

_SHUT_DOWN = "SparkContext was shut down"
_SHUTDOWN_S = 5.0
_INTERVAL_S = 0.2
_CANCELLED = re.compile(rf"cancelled (part of cancelled job group|because|as part of)|{_SHUT_DOWN}", re.I)
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\].*?version: (\S+) than that in driver: (\S+?),")
_NO_INTERPRETER = re.compile(r'Cannot run program "([^"]+)"')
_PYTHON_ERROR = re.compile(r"^([\w.]+(?:Error|Exception|Interrupt)\b.*)$", re.M)


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


@contextmanager
def watch_jobs(spark: SparkSession, group: str, callback: Callable[[int, int], object] | None = None) -> Iterator[None]:
    """Put the Spark jobs of a block into a job group, and report their progress.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The job group's id; `cancel_jobs` takes it from any thread.
    callback : callable, optional
        Called from a thread of its own with the completed and the known tasks, whenever one of them changes, and
        once at the end of a block that did not fail.
    """
    context = spark.sparkContext
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {name: context.getLocalProperty(name) for name in names}
    earlier = frozenset(context.statusTracker().getJobIdsForGroup(group))
    context.setJobGroup(group, group, interruptOnCancel=True)
    finished = threading.Event()

    def watch(report: Callable[[int, int], object]) -> None:
        last = (0, 0)
        while not finished.wait(_INTERVAL_S):
            now = last
            with unless_ended(context):
                now = _count_tasks(spark, group, earlier)
            if now != last:
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
        with unless_ended(context):
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it, the annotation forgets that
    if callback:
        total = _count_tasks(spark, group, earlier)[1]
        callback(total, total)


def cancel_jobs(spark: SparkSession, group: str) -> None:
    """Cancel the running jobs of a group; the call that waits for them raises Spark's own error.

    Nothing happens where the JVM has ended.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    group : str
        The job group's id, as `watch_jobs` was given it.
    """
    with unless_ended(spark.sparkContext):
        spark.sparkContext.cancelJobGroup(group)


def _count_tasks(spark: SparkSession, group: str, earlier: frozenset[int]) -> tuple[int, int]:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(group) if job_id not in earlier]
    stages = [tracker.getStageInfo(stage_id) for job in jobs if job for stage_id in job.stageIds]
    known = [stage for stage in stages if stage]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


@contextmanager
def explained_errors(
    spark: SparkSession, doing: str, explain: Callable[[str], IcestatsError] | None = None
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

    Raises
    ------
    SparkUnavailableError
        The JVM has ended, or the session has been stopped; the executors' Python is missing, is of another version, or
        lacks a module.
    IcestatsError
        The job was cancelled, or failed for a reason of its own.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    hush_py4j()
    try:
        yield
    except connection_errors() as error:
        # A session of Spark Connect has no context.
        context = getattr(spark, "sparkContext", None)
        # A JVM that is told to end stops its context, and the jobs, first.
        wait_s = _SHUTDOWN_S if _SHUT_DOWN in str(error) else 0.0
        if context is not None and (end := explain_end(context, wait_s=wait_s)) is not None:
            raise SparkUnavailableError(f"{doing} failed: {end}") from None
        if not isinstance(error, (PySparkException, Py4JError)):
            raise
        raise (explain_failure(doing, str(error)) if explain is None else explain(first_line(error))) from error


def first_line(error: Exception) -> str:
    """Return what Spark says without its stack trace: of an error in Java, what that says."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java).strip()
    return one_line(text.partition("\n")[0] or error)


def explain_failure(doing: str, text: str) -> IcestatsError:
    """Build the error for what Spark says of a failed job.

    Examples
    --------
    >>> explain_failure("the job", "ModuleNotFoundError: No module named 'numba'").__class__.__name__
    'SparkUnavailableError'
    """
    if _CANCELLED.search(text):
        return IcestatsError(f"{doing} was cancelled: nothing has been changed")
    if found := _VERSIONS.search(text):
        return SparkUnavailableError(
            f"{doing} failed: the executors have Python {found[1]} and the driver {found[2]}: name an interpreter of "
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
    telling = _PYTHON_ERROR.findall(text) or text.splitlines() or ["no reason given"]
    return IcestatsError(f"{doing} failed: {one_line(telling[0])}")
