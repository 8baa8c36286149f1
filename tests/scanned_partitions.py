"""Scans by partition, without Spark."""

from __future__ import annotations

from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import prepare_scan, scan_here


def scan(opened, sizes: Sizes):
    """Return what a scan by partition finds, and its plan."""
    plan = prepare_scan(opened._source, opened.snapshot, opened.schema, by_partition=True)
    return scan_here(plan, sizes), plan
