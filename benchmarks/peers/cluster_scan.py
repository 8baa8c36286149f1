"""One scan on a cluster: `create HOME ROWS FILES`, `scan HOME MASTER EXECUTORS WORKER...`, or `plan TABLE`.

Prints JSON. Of a scan: its wall seconds, in a session whose executors have run a scan before, and the CPU seconds of
all executors meanwhile; what Spark's own figures say went over the network; and the largest resident sizes of the
executors' JVMs and Pythons, which are below the workers' processes. Of a plan, of a table that has its metadata only:
the seconds, and what the driver's process took.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import icestats
from icestats.scan.scan_plan import prepare_scan
from icestats.spark.session import get_session, stop_session
from icestats.spark.shipping import write_package
from icestats.spark.statistics_scan import _bundle

EXECUTOR_MEMORY = "512m"


def properties(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": f"file://{home}", "name": "bench"}


def create(home: Path, row_count: int, file_count: int) -> dict[str, Any]:
    """Write a table of eight columns; files of about the same size."""
    from pyiceberg.catalog.sql import SqlCatalog

    if home.exists():
        return {"seconds": 0, "cpu_seconds": 0, "sums": None}
    home.mkdir(parents=True)
    rng, count = np.random.default_rng(0), row_count // file_count
    with SqlCatalog(**properties(home)) as catalog:
        catalog.create_namespace("db")
        paths = []
        for number in range(file_count):
            ids = np.arange(number * count, (number + 1) * count)
            columns: dict[str, Any] = {
                "id": ids,
                "device": rng.integers(0, 50_000, count),
                "price": rng.gamma(2.0, 30.0, count).round(2),
                "quantity": rng.integers(1, 100, count).astype(np.int32),
                "at": (1_790_000_000_000_000 + ids * 1_000).astype("datetime64[us]"),
                "day": (20_000 + ids // 100_000).astype("datetime64[D]"),
                "kind": pa.array([f"kind-{i}" for i in range(40)]).take(pa.array(rng.integers(0, 40, count))),
                "code": pa.array([f"{i:08x}" for i in rng.integers(0, 1 << 31, count)]),
            }
            paths.append(str(home / f"part-{number:05}.parquet"))
            pq.write_table(pa.table(columns), paths[-1])
        catalog.create_table("db.t", pq.read_schema(paths[0])).add_files(paths, check_duplicate_files=False)
    return {"seconds": 0, "cpu_seconds": 0, "sums": None}


def scan(home: Path, master: str, executors: int, workers: list[int]) -> dict[str, Any]:
    cores = {"spark.cores.max": str(executors), "spark.executor.cores": "1"}
    # They end before Java's second compiler pays off.
    cores |= {"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    started = time.perf_counter()
    spark = get_session(master=master, driver_memory="1g", executor_memory=EXECUTOR_MEMORY, conf=cores)
    started_s = time.perf_counter() - started
    table = icestats.load("db.t", catalog=properties(home))

    def ignore(done: int, total: int) -> None:
        del done, total

    # The first scan starts the executors' Pythons, and sends them icestats.
    started = time.perf_counter()
    table.compute(spark=spark, columns=["quantity"], progress=ignore)
    first_s = time.perf_counter() - started
    before, cpu = len(_stages(spark)), _cpu_seconds(workers)
    started = time.perf_counter()
    found = table.compute(spark=spark, progress=ignore).found
    seconds, cpu = time.perf_counter() - started, _cpu_seconds(workers) - cpu
    stages = _stages(spark)[before:]
    if table.snapshot is None:
        raise SystemExit("the table of the benchmark is empty")
    plan = prepare_scan(table._source, table.snapshot, table.schema)
    bundles = _bundle(plan, spark.sparkContext.defaultParallelism)
    with tempfile.TemporaryDirectory() as folder:
        archive_bytes = write_package(Path(folder) / "icestats.zip").stat().st_size
    jars = str(spark.sparkContext._jvm.java.lang.System.getProperty("spark.jars"))  # type: ignore[union-attr]
    sums = {
        "rows": found.row_count,
        "size_bytes": found.table_size_bytes,
        "columns": len(found.columns),
        "files": found.file_count,
        "session_seconds": started_s,
        "first_seconds": first_s,
        "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
        "task_files": [len(bundle) for bundle in bundles],
        "task_bytes": [len(pickle.dumps(bundle)) for bundle in bundles],
        "result_bytes": sum(stage["result_bytes"] for stage in stages),
        "shuffle_bytes": sum(stage["shuffle_bytes"] for stage in stages),
        "archive_bytes": archive_bytes,
        "jar_bytes": sum(Path(jar.removeprefix("file://")).stat().st_size for jar in jars.split(",")),
        "python_bytes": _largest(workers, "python"),
        "jvm_bytes": _largest(workers, "java"),
    }
    stop_session()
    return {"seconds": seconds, "cpu_seconds": cpu, "sums": sums}


def _cpu_seconds(workers: list[int]) -> float:
    """User and system seconds of all below the workers: executors and their Pythons."""
    total = 0.0
    for process in [child for worker in workers for child in psutil.Process(worker).children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _stages(spark: Any) -> list[dict[str, int]]:
    """Return what Spark says of the stages so far, the first one first."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    nothing = context._gateway.new_array(context._jvm.double, 0)
    listed = context._jsc.sc().statusStore().stageList(None, False, False, nothing, None)
    every = [listed.apply(place) for place in range(listed.size())]
    return [
        {"result_bytes": one.resultSize(), "shuffle_bytes": one.shuffleWriteBytes()}
        for one in sorted(every, key=lambda one: int(one.stageId()))
    ]


def _largest(workers: list[int], name: str) -> int:
    """Return the largest resident size that a process of executors has had."""
    sizes = [0]
    for worker in workers:
        for process in psutil.Process(worker).children(recursive=True):
            if name in process.name():
                status = Path(f"/proc/{process.pid}/status").read_text()
                sizes.append(int(status.split("VmHWM:")[1].split()[0]) * 1024)
    return max(sizes)


def plan(location: str) -> dict[str, Any]:
    """Plan a scan as `compute` does, and cut it into tasks."""
    table = icestats.load(location)
    if table.snapshot is None:
        raise SystemExit("the table of the benchmark is empty")
    before = _peak_bytes()
    started, cpu = time.perf_counter(), time.process_time()
    planned = prepare_scan(table._source, table.snapshot, table.schema)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    sums = {
        "files": len(planned.tasks),
        "peak_bytes": _peak_bytes() - before,
        "task_bytes": sum(len(pickle.dumps(bundle)) for bundle in _bundle(planned, 8)),
    }
    return {"seconds": seconds, "cpu_seconds": cpu, "sums": sums}


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    call, *arguments = sys.argv[1:]
    if call == "create":
        found = create(Path(arguments[0]), int(arguments[1]), int(arguments[2]))
    elif call == "plan":
        found = plan(arguments[0])
    else:
        home, master, executors, *workers = arguments
        found = scan(Path(home), master, int(executors), [int(worker) for worker in workers])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
