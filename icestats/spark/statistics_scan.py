"""Theta, KLL and column statistics of a snapshot, in one distributed scan.

The driver plans PyIceberg scan tasks; Spark carries them to its executors, where PyIceberg reads the files (schema
evolution, position deletes and deletion vectors applied) one Arrow batch at a time into accumulators. What PyIceberg
cannot read (equality deletes, ORC, Avro), Spark's own scan reads into the same accumulators. These are merged on the
executors first, so that the driver holds one accumulator a column and a task at most. A wide table is read some columns
at a time, as all accumulators of a task pass through the JVM in one piece.
"""

from __future__ import annotations

import functools
import pickle
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from icestats.errors import IcestatsError, UnsupportedError
from icestats.read.manifests.manifest_pool import Progress
from icestats.scan.pair_sample import MOST_PAIRS
from icestats.scan.scan_job import (
    PARTIAL,
    Partial,
    ScanJob,
    Sizes,
    finish_partitions,
    merge_partials,
    merge_rows,
    scan_files,
    scan_rows,
)
from icestats.scan.scan_plan import ScanPlan, build_statistics
from icestats.scan.scan_progress import SaidProgress
from icestats.spark.connect import is_connect
from icestats.spark.jobs import cut_evenly, explained_errors, find_parallelism, spread, watch_jobs
from icestats.spark.python_workers import map_in_workers
from icestats.spark.shipping import ship_package
from icestats.spark.spark_scan import open_in_spark, select_rows
from icestats.spark.versions import find_version
from icestats.stats.table_statistics import PartitionKey, TableStatistics

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyspark.sql import DataFrame, SparkSession

TARGET_TASK_BYTES = 128 << 20
PARTIALS_MERGED_BY_THE_DRIVER = 16
MOST_COLUMNS = 2 * MOST_PAIRS
"""Of one reading of the files; those of all pairs are in the first one. Each column of a task is some 200 kB."""
PYICEBERG_SCAN = "PyIceberg"
SPARK_SCAN = "Spark"
_UNREAD = re.compile(r"UnreadFileError: (.+)")
"""In what Spark says of a failed job: `arrow_files.UnreadFileError`, which only executors have met."""


def run_scan(spark: SparkSession, plan: ScanPlan, sizes: Sizes, *, progress: Progress | None = None) -> TableStatistics:
    """Carry out a scan that has been planned.

    Parameters
    ----------
    spark : SparkSession
        Where the scan runs.
    plan : ScanPlan
        What is read, by table or by partition.
    sizes : Sizes
        Sizes of the sketches.
    progress : callable, optional
        Called with finished and total tasks as Spark works; an exception from it cancels the job and is raised. By
        default the scan says on stderr what it reads, and how far it is.

    Raises
    ------
    UnsupportedError
        Neither PyIceberg nor Spark can read the table; or PyIceberg cannot read some of its files, which alone are to
        be read: Spark reads whole snapshots only.
    SparkUnavailableError
        The executors lack Python or a module.
    IcestatsError
        The job was cancelled, or a data file could not be read.

    Notes
    -----
    Of what types a file's columns are is known once it is read: where PyIceberg then does not know one, Spark starts
    anew with a scan of its own.
    """
    try:
        return _run_scan(spark, plan, sizes, progress)
    except IcestatsError as error:
        unread = _UNREAD.search(str(error))
        if unread is None or plan.fallback is not None:
            raise
        reason = f"PyIceberg cannot read a data file of {plan.source.name}: {unread[1]}"
        if plan.table_size_bytes is None:
            raise UnsupportedError(reason) from error
    return _run_scan(spark, replace(plan, fallback=reason), sizes, progress)


def _run_scan(spark: SparkSession, plan: ScanPlan, sizes: Sizes, progress: Progress | None) -> TableStatistics:
    started = time.perf_counter()
    parts = _cut_columns(plan)
    jobs = [ScanJob(part.fields, sizes, part.partitions, pairs=part.pairs) for part in parts]
    found = [merge_rows(job, ()) for job in jobs]
    if plan.fields and plan.file_count:
        if progress is None:
            progress = SaidProgress()
            sys.stderr.write(f"{plan.describe()}\n")
        name, group = plan.source.name, f"icestats: statistics of {plan.source.name}"
        known = plan.source.storage.properties
        explained = explained_errors(spark, f"the scan of {name}", properties=known)
        with explained, watch_jobs(spark, group, progress):
            ship_package(spark)
            found = [merge_rows(job, _run(spark, part, job)) for part, job in zip(parts, jobs, strict=True)]
    built = [build_statistics(part, sizes, *one, started) for part, one in zip(parts, found, strict=True)]
    return replace(
        _join_columns(plan, built),
        scanned_by=PYICEBERG_SCAN if plan.fallback is None else SPARK_SCAN,
        scan_reason=plan.fallback,
    )


def _cut_columns(plan: ScanPlan) -> list[ScanPlan]:
    """Return plans of the same scan for a part of the columns each."""
    if len(plan.fields) <= MOST_COLUMNS:
        return [plan]
    places = list(dict.fromkeys([*chain.from_iterable(plan.pairs), *range(len(plan.fields))]))
    parts = []
    for start in range(0, len(places), MOST_COLUMNS):
        fields = tuple(plan.fields[place] for place in places[start : start + MOST_COLUMNS])
        reading = replace(plan.reading, schema=plan.reading.schema.select(*(field.name for field in fields)))
        pairs = () if start else tuple((places.index(one), places.index(other)) for one, other in plan.pairs)
        parts.append(replace(plan, fields=fields, reading=reading, pairs=pairs))
    return parts


def _join_columns(plan: ScanPlan, parts: Sequence[TableStatistics]) -> TableStatistics:
    """Return what has been found of all columns of a plan, in their order."""
    columns = {name: column for part in parts for name, column in part.columns.items()}
    found = replace(parts[-1], columns={one.name: columns[one.name] for one in plan.fields}, together=parts[0].together)
    by_partition = [part.by_partition for part in parts if part.by_partition is not None]
    if not by_partition:
        return found
    partitions = {name: column for part in by_partition for name, column in part.columns.items()}
    sizes = {name: size for part in by_partition for name, size in part.sizes.items()}
    ordered = {one.name: partitions[one.name] for one in plan.fields}
    return replace(found, by_partition=replace(by_partition[0], columns=ordered, sizes=sizes))


def _run(spark: SparkSession, plan: ScanPlan, job: ScanJob) -> Iterator[Partial]:
    if plan.fallback is None:
        bundles = _bundle(plan, find_parallelism(spark))
        job = replace(job, divided=_find_divided(bundles, plan.partitions))
        yield from _collect(_scan_with_pyiceberg(spark, plan, job, bundles), len(bundles), job)
        return
    version = find_version(plan.source.metadata, plan.snapshot, plan.read_schema)
    with open_in_spark(spark, plan.source, plan.fallback, version) as (session, identifier):
        rows = select_rows(session, f"{identifier} {version.clause}", plan)
        partials = map_in_workers(rows, functools.partial(scan_rows, job), PARTIAL)
        # By Spark Connect the number of tasks is not known: they are merged as if they were many.
        count = PARTIALS_MERGED_BY_THE_DRIVER**2 if is_connect(spark) else rows.rdd.getNumPartitions()
        yield from _collect(partials, count, job)


def _scan_with_pyiceberg(
    spark: SparkSession, plan: ScanPlan, job: ScanJob, bundles: Sequence[Sequence[FileScanTask]]
) -> DataFrame:
    work = spread(spark, [pickle.dumps(bundle) for bundle in bundles])
    return map_in_workers(work, functools.partial(scan_files, job, plan.reading), PARTIAL)


def _collect(partials: DataFrame, count: int, job: ScanJob) -> Iterator[Partial]:
    # The files of a partition are neighbours in the bundles: the driver gets two parts a bundle at most.
    if job.partitions is not None and (job.divided is None or count > PARTIALS_MERGED_BY_THE_DRIVER):
        tasks = min(count, PARTIALS_MERGED_BY_THE_DRIVER)
        grouped = partials.repartition(tasks, "partition").sortWithinPartitions("partition")
        partials = map_in_workers(grouped, functools.partial(finish_partitions, job.sizes), PARTIAL)
    while job.partitions is None and count > PARTIALS_MERGED_BY_THE_DRIVER:
        count //= PARTIALS_MERGED_BY_THE_DRIVER
        partials = map_in_workers(partials.repartition(count), merge_partials, PARTIAL)
    for row in partials.collect():
        key = None if row[0] is None else pickle.loads(bytes(row[0]))  # noqa: S301 - of this job's own executors
        yield key, row[1], pickle.loads(bytes(row[2]))  # noqa: S301 - as above


def _find_divided(
    bundles: Sequence[Sequence[FileScanTask]], partitions: Mapping[str, PartitionKey] | None
) -> frozenset[PartitionKey] | None:
    if partitions is None:
        return None
    found = Counter(key for bundle in bundles for key in {partitions[task.file.file_path] for task in bundle})
    return frozenset(key for key, bundle_count in found.items() if bundle_count > 1)


def _bundle(plan: ScanPlan, parallelism: int) -> list[list[FileScanTask]]:
    total = sum(task.file.file_size_in_bytes for task in plan.tasks)
    count = min(len(plan.tasks), max(2 * parallelism, -(-total // TARGET_TASK_BYTES)))
    if plan.partitions is not None:
        # The files of a partition stay together, so that few partitions are cut by the end of a bundle.
        partitions = plan.partitions
        places = {key: place for place, key in enumerate(dict.fromkeys(partitions.values()))}
        ordered = sorted(plan.tasks, key=lambda task: places[partitions[task.file.file_path]])
        return cut_evenly(ordered, [task.file.file_size_in_bytes + 1 for task in ordered], count)
    # Largest first, each to the emptiest bundle: as many bundles as keep every core busy to the end.
    bundles: list[list[FileScanTask]] = [[] for _ in range(count)]
    loads = [0] * count
    for task in sorted(plan.tasks, key=lambda t: t.file.file_size_in_bytes, reverse=True):
        emptiest = loads.index(min(loads))
        bundles[emptiest].append(task)
        loads[emptiest] += task.file.file_size_in_bytes + 1
    return bundles
