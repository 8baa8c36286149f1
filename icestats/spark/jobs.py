"""Jobs of Spark while they run: how far they are, and cancelling them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icestats.spark.jvm import unless_ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    Of a JVM that has ended there is nothing to cancel.

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
