"""What is measured of reading metadata: the floor, icestats, and its peers."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measured_process import ProcessError, Run, run_module
from benchmarks.peer_environment import build_environment


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    name: str
    title: str
    module: str
    calls: int = 1
    """The last call of a process is timed."""
    cache: str = ""
    """Which manifests the local cache knows: `all`, `all-but-one`, or none."""
    in_peer_environment: bool = False
    compiles: bool = False
    """Whether no compiled code is found."""
    runs: int | None = None
    """How many, where one takes minutes."""


FLOOR = Case("floor", "inflating the same blocks, from memory to memory", "inflating")
IMPORT = Case("import", "`from icestats import load`", "importing")
ROLLUPS = Case("rollups", "**icestats**, all roll-ups, first call of a process", "rollups")
AGAIN = Case("again", "**icestats**, all roll-ups, second call", "rollups", calls=2)
CACHED = Case("cached", "**icestats**, all roll-ups, from the local cache", "rollups", cache="all")
ONE_NEW = Case("one-new", "**icestats**, all roll-ups, one data manifest is new", "rollups", cache="all-but-one")
COMPILE = Case("compile", "**icestats**, all roll-ups, first call ever: compiles", "rollups", compiles=True, runs=1)
FILES = Case("files", "**icestats**, `Table.files()`, a row a file", "files")
PEERS = (
    Case("datafusion", "DataFusion to Arrow, NumPy sums of four maps", "datafusion_sums", in_peer_environment=True),
    Case(
        "datafusion-bounds",
        "DataFusion to Arrow, NumPy sums of four maps and extremes of the bounds",
        "datafusion_rollup",
        in_peer_environment=True,
    ),
    Case("duckdb", "DuckDB `read_avro`, sums of four maps", "duckdb_sums", in_peer_environment=True),
    Case("pyiceberg", "PyIceberg's manifest reader, NumPy sums of four maps", "pyiceberg_manifests", runs=1),
    Case("spark", "Spark's `data_files`, sums of four maps", "spark_sums", runs=1),
    Case("inspect", "PyIceberg's `inspect.data_files()`, no sums", "pyiceberg_data_files", runs=1),
)
CASES = (FLOOR, IMPORT, ROLLUPS, AGAIN, CACHED, ONE_NEW, COMPILE, FILES, *PEERS)
Runs = dict[Case, "list[Run] | str"]
"""The runs of each case, or why there are none."""


@dataclass(slots=True)
class Bench:
    """A table to read, and what runs need besides."""

    location: str
    scratch: Path
    """A folder for caches and for the peers' environment."""
    _python: dict[str, str] = field(default_factory=dict)
    _filled: dict[str, Path] = field(default_factory=dict)

    def run(self, case: Case) -> Run:
        """Run a case once.

        Raises
        ------
        OSError
            The peers cannot be installed.
        ProcessError
            The process failed.
        """
        module = f"benchmarks.peers.{case.module}"
        arguments = [self.location] if case.calls == 1 else [self.location, str(case.calls)]
        if case.cache:
            return self._run_cached(module, case.cache)
        if case.compiles:
            with tempfile.TemporaryDirectory() as folder:
                return run_module(module, *arguments, environment={"NUMBA_CACHE_DIR": folder})
        return run_module(module, *arguments, python=self._peer_python() if case.in_peer_environment else None)

    def _run_cached(self, module: str, cache: str) -> Run:
        # A run adds to the cache: each gets a copy of what was filled once.
        if cache not in self._filled:
            self._filled[cache] = self.scratch / f"cache-{cache}"
            run_module(module, self.location, "1", cache, environment={"ICESTATS_CACHE": str(self._filled[cache])})
        copy = self.scratch / "cache"
        shutil.copytree(self._filled[cache], copy)
        try:
            return run_module(module, self.location, environment={"ICESTATS_CACHE": str(copy)})
        finally:
            shutil.rmtree(copy)

    def _peer_python(self) -> str:
        if "python" not in self._python:
            self._python["python"] = build_environment(self.scratch / "peers")
        return self._python["python"]


def choose(names: Sequence[str]) -> list[Case]:
    """Return the cases of some names, or all."""
    return [case for case in CASES if not names or case.name in names]


def measure(bench: Bench, cases: Sequence[Case], rounds: int) -> Runs:
    """Run all cases, taking turns, after one run of icestats that is not counted and compiles what is not compiled."""
    for case in (ROLLUPS, FILES):
        bench.run(case)
    found: Runs = {case: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            runs = found[case]
            if isinstance(runs, str) or number >= (case.runs or rounds):
                continue
            try:
                runs.append(bench.run(case))
                print(f"{case.name}: {runs[-1].seconds:.2f} s", file=sys.stderr)
            except (OSError, ProcessError) as error:
                found[case] = str(error)
                print(f"{case.name}: {error}", file=sys.stderr)
    return found
