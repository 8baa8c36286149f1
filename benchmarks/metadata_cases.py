"""What is measured of reading metadata: icestats, the floor below it, and its peers."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured_process import Run, run_module


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    name: str
    title: str
    module: str
    arguments: Sequence[str] = ()
    whole_process: bool = True
    """Whether the process does nothing else, so that what it took in all says something."""
    in_peer_environment: bool = False
    runs: int | None = None
    """Where one run takes minutes."""


ROLLUPS = Case("rollups", "**icestats**, all roll-ups: the first call of a process", "rollups")
WARM = Case("rollups-again", "**icestats**, all roll-ups: a second call", "rollups", ("2",), whole_process=False)
FLOOR = Case("floor", "inflating the same blocks, nothing else", "inflating", whole_process=False)
CACHED = Case("cached", "**icestats**, all roll-ups: from the local cache", "rollups")
ONE_NEW = Case("one-new", "**icestats**, all roll-ups: one manifest is new, the others from the cache", "rollups")
FILES = Case("files", "**icestats**, `Table.files()`: a row a file, no metrics", "files")
PEERS = (
    Case("datafusion", "DataFusion, four maps as Arrow, NumPy sums", "datafusion_sums", in_peer_environment=True),
    Case("duckdb", "DuckDB `read_avro`, SQL sums of four maps", "duckdb_sums", in_peer_environment=True),
    Case("pyiceberg", "PyIceberg manifest reader, NumPy sums of four maps", "pyiceberg_manifests", runs=1),
    Case("spark", "Spark `data_files`, SQL sums of four maps", "spark_sums"),
    Case("inspect", "PyIceberg `inspect.data_files()`, no sums", "pyiceberg_data_files", runs=1),
)
CASES = (FLOOR, ROLLUPS, WARM, CACHED, ONE_NEW, FILES, *PEERS)
