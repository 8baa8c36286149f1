"""Archive the classes of Spark that a JVM has loaded, so that each JVM of the tests starts with half the CPU.

`python scripts/spark_archive.py ARCHIVE` takes half a minute; `tests/conftest.py` lets Java use the archive.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from icestats.spark.session import get_session


def main(archive: Path) -> None:
    part = archive.with_suffix(".part").absolute()
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={part}"
    get_session().range(9).mapInArrow(lambda batches: batches, "id long").count()
    gateway: Any = SparkContext._gateway
    # The JVM writes the archive when it ends, and it ends when nobody can speak to it any more.
    gateway.proc.stdin.close()
    gateway.proc.wait()
    part.replace(archive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
