"""Statistics of TPC-H's lineitem: icestats (Theta, KLL, column figures) beside Iceberg's own procedure (Theta alone).

    python -m benchmarks table_statistics [--scale-factor 3 10] [--runs 2] [--cases NAME,NAME...]
        [--scratch FOLDER] [--write]

The table is made by tpchgen-cli, which the extra `bench` installs, and appended file by file to an Iceberg table in a
SQLite catalog. Each case is a process of its own, Spark in local[2]; cases take turns. Wall seconds are those of the
call alone, in a session that has started and has run a query (heap: 512 MB, for Iceberg's procedure 1 GB); CPU seconds
are what the whole process tree (driver, JVM, its Python workers) took during the call. `--write` puts the figures into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.measured_process import ProcessError, Run, run_module
from benchmarks.published import publish
from benchmarks.tpch_files import generate_table

FILES = 6
CASES = {
    "iceberg": "Iceberg's `compute_table_stats`: Theta of all 16 columns",
    "no-text-kll": "**icestats**: all of this, but KLL of the 11 numbers and dates only",
    "all": "**icestats**, as it is: Theta, KLL, common values and column statistics of all 16 columns",
}
"""What is measured; every call reads every row."""
HEAD = ("way", "seconds", "times Iceberg", "CPU seconds", "times Iceberg", "driver's peak MB")
Runs = dict[str, "list[Run] | str"]


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        text = "\n\n".join(_compare(arguments, scratch, scale_factor) for scale_factor in arguments.scale_factor)
    print(text)
    if arguments.write:
        publish("table_statistics", text)


def _compare(arguments: argparse.Namespace, scratch: Path, scale_factor: float) -> str:
    """Measure every case at one scale factor; the text says under which conditions."""
    files = generate_table("lineitem", scratch / f"parquet-{scale_factor:g}", scale_factor, FILES)
    home = scratch / f"lineitem-{scale_factor:g}"
    run_module("benchmarks.peers.lineitem", "create", str(home), *map(str, files))
    runs: Runs = {name: [] for name in arguments.cases or CASES}
    for _ in range(arguments.runs):
        for name in runs:
            _measure(runs, name, home)
    return f"{_conditions(scale_factor, arguments.runs, runs)}\n\n{_build_table(runs)}"


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks table_statistics")
    parser.add_argument("--scale-factor", type=float, nargs="+", default=[3], help="6 million rows each")
    parser.add_argument("--runs", type=int, default=2, help="runs of each case")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=(), help=", ".join(CASES))
    parser.add_argument("--scratch", type=Path, help="keep the table in this folder, and take it from there")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    return parser.parse_args(options)


def _measure(runs: Runs, name: str, home: Path) -> None:
    found = runs[name]
    if isinstance(found, str):
        return
    try:
        found.append(run_module("benchmarks.peers.lineitem", name, str(home)))
        print(f"{name}: {found[-1].seconds:.1f} s, {found[-1].call_cpu_seconds:.1f} s of CPU", file=sys.stderr)
    except ProcessError as error:
        runs[name] = str(error)


def _conditions(scale_factor: float, rounds: int, runs: Runs) -> str:
    rows = next((run[0].sums["rows"] for run in runs.values() if not isinstance(run, str) and run), 0)
    names = ("icestats", "pyspark", "pyiceberg", "pyarrow", "numpy", "datasketches")
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    return (
        f"lineitem at scale factor {scale_factor:g}: {rows:,} rows, 16 columns, {FILES} files. "
        f"{platform.machine()}, {os.cpu_count()} cores, Spark in local[2]; Python {platform.python_version()}, "
        f"{packages}. {_runs(rounds)}; load average at the end {os.getloadavg()[0]:.1f}."
    )


def _runs(rounds: int) -> str:
    return "One run of each case" if rounds == 1 else f"Medians of {rounds} runs, cases taking turns"


def _build_table(runs: Runs) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    for name, found in runs.items():
        if isinstance(found, str):
            lines.append(f"| {CASES[name]} | not measured: {found} |" + " |" * (len(HEAD) - 2))
            continue
        wall = statistics.median(run.seconds for run in found)
        cpu = statistics.median(run.call_cpu_seconds for run in found)
        driver = statistics.median(run.sums["driver_peak_mb"] for run in found)
        ratios = [_ratio(runs, name, field) for field in ("seconds", "call_cpu_seconds")]
        cells = (CASES[name], f"{wall:.1f}", ratios[0], f"{cpu:.1f}", ratios[1], f"{driver:,.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ratio(runs: Runs, name: str, field: str) -> str:
    """The median over rounds: what else the machine does in a round slows both."""
    ours, theirs = runs[name], runs.get("iceberg", "")
    if name == "iceberg" or isinstance(ours, str) or isinstance(theirs, str) or not theirs:
        return ""
    return f"{statistics.median(getattr(a, field) / getattr(b, field) for a, b in zip(ours, theirs, strict=False)):.2f}"
