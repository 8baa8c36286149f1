"""One call over lineitem in an Iceberg table, to which 1 % of rows were appended after its statistics were committed.

`create HOME NEW_FILE FILE...` makes the table; `full HOME` computes all statistics, `refresh HOME` brings the committed
ones up to date without Spark, `refresh-spark HOME` with it. Prints JSON: the seconds of the call, those that Spark took
to start before it, and what was found.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def properties(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": f"file://{home}", "name": "bench"}


def create(home: Path, new: str, files: list[str]) -> dict[str, Any]:
    """Append the files to a new table, commit its statistics, and append the new file."""
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    import icestats

    home.mkdir(parents=True)
    with SqlCatalog(**properties(home)) as catalog:
        catalog.create_namespace("tpch")
        table = catalog.create_table("tpch.lineitem", pq.read_schema(files[0]))
        for file in files:
            table.append(pq.read_table(file))
        _start_spark()
        icestats.load("tpch.lineitem", catalog=properties(home)).compute().commit()
        table.refresh().append(pq.read_table(new))
    return {"seconds": 0, "cpu_seconds": 0, "sums": None}


def measure(home: Path, call: str) -> dict[str, Any]:
    import icestats

    start = 0.0 if call == "refresh" else _start_spark()
    table = icestats.load("tpch.lineitem", catalog=properties(home))
    started, cpu = time.perf_counter(), time.process_time()
    found = table.compute() if call == "full" else table.refresh_statistics(spark=_session(call))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    exact = [
        (
            name,
            c.value_count,
            c.null_value_count,
            c.nan_value_count,
            c.min_value,
            c.max_value,
            c.avg_length,
            c.max_length,
        )
        for name, c in sorted(found.found.columns.items())
    ]
    sums = {
        "start_seconds": start,
        "rows": found.found.row_count,
        "files": found.found.file_count,
        "added_rows": getattr(found, "added_row_count", None),
        "scanned": getattr(found, "scanned", {}),
        "exact": hashlib.sha256(repr(exact).encode()).hexdigest(),
        "theta": hashlib.sha256(b"".join(c.theta for _, c in sorted(found.found.columns.items()))).hexdigest(),
    }
    return {"seconds": seconds, "cpu_seconds": cpu, "sums": sums}


def _session(call: str) -> Any:
    from icestats.spark.session import get_session

    return None if call == "refresh" else get_session()


def _start_spark() -> float:
    """Start Spark and its Python workers with a job of no rows; return the seconds."""
    from icestats.spark.session import get_session

    started = time.perf_counter()
    spark = get_session(master="local[2]")
    spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
    return time.perf_counter() - started


def main() -> None:
    call, home, *files = sys.argv[1:]
    found = create(Path(home), files[0], files[1:]) if call == "create" else measure(Path(home), call)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
