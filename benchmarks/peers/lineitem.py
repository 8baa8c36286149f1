"""One call over lineitem in an Iceberg table: `create HOME FILE...`, or a case of the benchmark and HOME.

Prints JSON: the wall seconds of the call, the CPU seconds of the process tree during it, the rows that were read, and
the driver's peak (the largest resident sizes of its JVM, which has the rows of Spark's tasks too, and of its Python
process, added up).
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

import icestats
from icestats.scan.scan_job import Accumulators, ScanJob, Sizes, column_accumulators, merge_rows
from icestats.scan.scan_plan import prepare_scan
from icestats.spark.session import get_session, spark_catalog_properties, stop_session
from icestats.spark.statistics_scan import _run


def properties(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": f"file://{home}", "name": "bench"}


def create(home: Path, files: list[str]) -> dict[str, Any]:
    """Append the files to a new Iceberg table, unless there is one."""
    if home.exists():
        return {"seconds": 0, "cpu_seconds": 0, "sums": None}
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    home.mkdir(parents=True)
    with SqlCatalog(**properties(home)) as catalog:
        catalog.create_namespace("tpch")
        table = catalog.create_table("tpch.lineitem", pq.read_schema(files[0]))
        for file in files:
            table.append(pq.read_table(file))
    return {"seconds": 0, "cpu_seconds": 0, "sums": None}


def measure(home: Path, case: str) -> dict[str, Any]:
    known = spark_catalog_properties(properties(home)) or {}
    spark = get_session({"bench": known}, master="local[2]", driver_memory="1g" if case == "iceberg" else "512m")
    rows = spark.sql("select count(*) from bench.tpch.lineitem where l_orderkey > 0").collect()[0][0]
    table = icestats.load("tpch.lineitem", catalog=properties(home))
    names = [field.name for field in table.schema.top_level]

    def iceberg(columns: list[str]) -> None:
        listed = ", ".join(f"'{name}'" for name in columns)
        spark.sql(
            f"call bench.system.compute_table_stats(table => 'tpch.lineitem', columns => array({listed}))"
        ).collect()

    calls: dict[str, Callable[[], object]] = {
        "iceberg": lambda: iceberg(names),
        "all": lambda: table.compute(spark=spark),
        "no-text-kll": lambda: scan_without_text_kll(table, spark),
    }
    before, started = _cpu_seconds(), time.perf_counter()
    calls[case]()
    seconds, cpu = time.perf_counter() - started, _cpu_seconds() - before
    peak = _driver_peak_mb()
    stop_session()
    return {"seconds": seconds, "cpu_seconds": cpu, "sums": {"rows": rows, "driver_peak_mb": peak}}


class NoTextKll(ScanJob):
    """A job whose accumulators of text have no KLL; pickled by value, as it is of this very process."""

    def new_accumulators(self, whole: Accumulators | None = None) -> Accumulators:
        """Return empty accumulators."""
        accumulators = super().new_accumulators(whole)
        for accumulator in column_accumulators(accumulators):
            if accumulator._field.type == "string":
                accumulator._kll = None
        return accumulators


def scan_without_text_kll(table: icestats.Table, spark: Any) -> None:
    if table.snapshot is None:
        raise SystemExit("the table of the benchmark is empty")
    plan = prepare_scan(table._source, table.snapshot, table.schema)
    sizes = Sizes(200, 12, 200, 12)
    job = NoTextKll(plan.fields, sizes, None)
    merged, _ = merge_rows(job, _run(spark, plan, job))
    [accumulator.result() for accumulator in column_accumulators(merged)]


def _cpu_seconds() -> float:
    """User and system seconds of this process and all below it; those that have ended count in their parents."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _driver_peak_mb() -> float:
    """The JVM in local mode is driver and executor in one; Python's workers are not counted."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    for child in psutil.Process().children(recursive=True):
        if child.name().startswith("java"):
            status = Path(f"/proc/{child.pid}/status").read_text()
            peak += int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    return peak


def main() -> None:
    case, home, *files = sys.argv[1:]
    found = create(Path(home), files) if case == "create" else measure(Path(home), case)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
