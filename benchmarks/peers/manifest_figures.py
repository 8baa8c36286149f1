"""icestats: statistics of manifests and partitions, made, committed and read. `FOLDER CASE [LOCATION]`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icestats
from benchmarks.peers.reporting import argument, report
from benchmarks.registered_table import CATALOG, NAME, catalog_properties
from icestats.iceberg.catalog import load_iceberg_table
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.table import preview
from icestats.table.table import Table


def folder() -> Path:
    return Path(argument(1))


def load() -> Table:
    return icestats.load(NAME, catalog={**catalog_properties(folder()), "name": CATALOG})


def build(table: Table) -> int:
    return len(table.compute(manifests=True).of_metadata.blobs[0].payload)


def commit(table: Table) -> None:
    table.compute(manifests=True).commit()


def append(table: Table) -> None:
    """One small data file: a commit of one manifest."""
    target = load_iceberg_table(table._source)
    schema = target.schema().as_arrow()
    arrays = [pa.nulls(1, f.type) if f.nullable else pa.array([1], pa.int64()).cast(f.type) for f in schema]
    target.append(pa.table(arrays, schema=schema))


def read(table: Table) -> Any:
    found = table.manifests()
    if table._reader.known_rollups() is not None:
        raise SystemExit("the manifests were read, the blob was not used")
    return found


def read_columns(table: Table) -> Any:
    return table.columns()


def partitions(table: Table) -> int:
    file = table.compute(partitions=True, with_column_stats=True).of_metadata.partition_file
    return 0 if file is None else len(file.data)


def write_designs(table: Table) -> None:
    preview.write_preview_manifest_list(table, folder() / "preview", i_know_this_breaks_pyiceberg=True)
    (folder() / "content_stats.parquet").write_bytes(preview.build_content_stats(table))


def read_list(table: Table) -> Any:
    return read_manifest_list(table._source.storage, table.snapshot)


def read_preview(_: Table) -> Any:
    return preview.read_preview_manifest_list(icestats.load(str(folder() / "preview/metadata/v1.metadata.json")))


def read_content_stats(_: Table) -> Any:
    return pq.ParquetFile(folder() / "content_stats.parquet").read(use_threads=False)


def read_one_column(table: Table) -> Any:
    found, columns = table._reader.read_manifest_rollups([table.schema.columns[3].field_id])
    if len(columns) != 1:
        raise SystemExit("all columns were decoded")
    return found


def iceberg() -> Callable[[], Any]:
    from icestats.spark.session import get_session, spark_catalog_properties

    properties = spark_catalog_properties(catalog_properties(folder()))
    session = get_session({CATALOG: properties or {}}, master="local[2]", driver_memory="4g")
    session.range(1).collect()
    return lambda: session.sql(f"call {CATALOG}.system.compute_partition_stats('{NAME}')").collect()


CASES = {
    one.__name__: one
    for one in (build, commit, append, read, read_columns, partitions, write_designs, read_list, read_preview)
}
CASES |= {"read_content_stats": read_content_stats, "read_one_column": read_one_column}


def main() -> None:
    case = argument(2)
    if case == "iceberg":
        from icestats.spark.session import stop_session

        report(iceberg())
        stop_session()
        return
    table = load()
    cpu, started = time.process_time(), time.perf_counter()
    answer = CASES[case](table)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    sums = answer if isinstance(answer, int) else None
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "sums": sums}))


if __name__ == "__main__":
    main()
