"""A scan that Spark would do in one task, done in this process: without a JVM, and in no more time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from icestats.answers.text import one_line
from icestats.errors import IcestatsError
from icestats.scan.scan_job import FileReading, ScanJob, Sizes, read_accumulators
from icestats.scan.scan_plan import ScanPlan, build_statistics

if TYPE_CHECKING:
    from icestats.stats.table_statistics import TableStatistics

LIMIT_BYTES = 128 << 20
"""Files of so many bytes together are one task of Spark's."""


def is_small(plan: ScanPlan) -> bool:
    """Whether a planned scan is one task, and PyIceberg can do it."""
    size = sum(task.file.file_size_in_bytes for task in plan.tasks)
    return plan.fallback is None and plan.partitions is None and size <= LIMIT_BYTES


def scan_here(plan: ScanPlan, sizes: Sizes) -> TableStatistics:
    """Carry out a planned scan in this process; as `table_statistics.run_scan`, which it takes the functions of.

    Parameters
    ----------
    plan : ScanPlan
        What is read; `is_small` should hold.
    sizes : Sizes
        Sizes of the sketches.

    Raises
    ------
    IcestatsError
        A data file cannot be read.
    """
    started = time.perf_counter()
    job = ScanJob(plan.fields, sizes, None)
    try:
        found = read_accumulators(job, FileReading(plan.metadata, plan.io, plan.schema), plan.tasks)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise IcestatsError(f"a data file of {plan.source.name} cannot be read: {one_line(error)}") from error
    return build_statistics(plan, found, started)
