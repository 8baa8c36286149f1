"""Statistics of a small table, computed in this process, as `Table.compute` does with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import icestats
from icestats.read.puffin.committed_sketches import find_joint
from icestats.scan.pair_sample import choose_pairs
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import ScanPlan, prepare_scan, scan_here
from icestats.stats.table_statistics import TableStatistics
from icestats.table.statistics import Statistics

SIZES = Sizes(200, 12, 200, 12)


def _plan(table: icestats.Table, columns: Sequence[str] | None, by_partition: bool) -> ScanPlan:
    snapshot = table._reader.require_snapshot()
    return prepare_scan(table._source, snapshot, table.schema, columns, by_partition=by_partition)


def scan_table(
    table: icestats.Table, *, columns: Sequence[str] | None = None, by_partition: bool = False, sizes: Sizes = SIZES
) -> TableStatistics:
    return scan_here(_plan(table, columns, by_partition), sizes)


def compute_here(
    table: icestats.Table,
    *,
    columns: Sequence[str] | None = None,
    together: Any = None,
    by_partition: bool = False,
    sizes: Sizes = SIZES,
) -> Statistics:
    plan = _plan(table, columns, by_partition)
    plan = replace(plan, pairs=choose_pairs(plan, together, list(find_joint(table._reader.blobs))))
    assert plan.fallback is None, plan.fallback
    return Statistics(table._source, scan_here(plan, sizes))
