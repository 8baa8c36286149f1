"""Make once what each process of the tests would make anew: an archive of Spark's classes, the kernel's compiled code.

`python scripts/warm_up.py ARCHIVE` takes half a minute. With the archive of the classes that a JVM has loaded, each JVM
of the tests starts with half the CPU; `tests/conftest.py` lets Java use it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark import SparkContext

import icestats
from icestats.spark.session import get_session


def compile_kernel() -> None:
    """Read manifests, for which numba compiles the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
        with SqlCatalog("catalog", **properties) as catalog:
            catalog.create_namespace("db")
            catalog.create_table("db.t", rows.schema).append(rows)
        table = icestats.load("db.t", catalog=properties)
        table.manifests()
        table.files()


def archive_classes(archive: Path) -> None:
    """Start a JVM that writes the archive when it ends."""
    part = archive.with_suffix(".part").absolute()
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={part}"
    get_session().range(9).mapInArrow(lambda batches: batches, "id long").count()
    gateway: Any = SparkContext._gateway
    # It ends when nobody can speak to it any more.
    gateway.proc.stdin.close()
    gateway.proc.wait()
    part.replace(archive)


if __name__ == "__main__":
    os.environ["ICESTATS_CACHE"] = "off"
    with ThreadPoolExecutor() as pool:
        compiled = pool.submit(compile_kernel)
        archive_classes(Path(sys.argv[1]))
        compiled.result()
