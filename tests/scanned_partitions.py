"""Scans by partition, without Spark."""

from __future__ import annotations

from dataclasses import replace

from icestats.scan.scan_job import ScanJob, Sizes, finish, read_accumulators
from icestats.scan.scan_plan import prepare_scan, scan_here
from icestats.stats.table_statistics import ScannedPartitions


def scan(opened, sizes: Sizes):
    """Return what a scan by partition finds, and its plan."""
    plan = prepare_scan(opened._source, opened.snapshot, opened.schema, by_partition=True)
    job = ScanJob(plan.fields, sizes, None)
    found = {
        key: finish(sizes, read_accumulators(job, plan.reading, [t for t in plan.tasks if of(t) == key]))
        for of in [lambda task: plan.partitions[task.file.file_path]]
        for key in sorted(set(plan.partitions.values()))
    }
    columns = {f.name: {key: results[i] for key, results in found.items()} for i, f in enumerate(plan.fields)}
    by_partition = ScannedPartitions(sizes.partition_k, sizes.partition_lg_k, columns)
    return replace(scan_here(plan, sizes), by_partition=by_partition), plan
