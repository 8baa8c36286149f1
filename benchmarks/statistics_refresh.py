"""Statistics of TPC-H's lineitem after 1 % of rows were appended: refreshed, beside a full computation.

    python -m benchmarks statistics_refresh [--scale-factor 3] [--runs 3] [--scratch FOLDER] [--write]

tpchgen-cli makes the rows (`pip install 'icestats[bench]'`), which are appended file by file to an Iceberg table in a
SQLite catalog; then its statistics are committed, and a part of 1 % is appended. Each call is a process of its own,
Spark in local[2]; the calls take turns. `--write` puts the figures into docs/benchmarks.md.
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

from benchmarks.measured_process import Run, run_module
from benchmarks.published import publish
from benchmarks.tpch_files import generate_table

PEER = "benchmarks.peers.refreshed_lineitem"
FILES = 6
TITLES = {
    "full": "`compute()`: all rows",
    "refresh": "`refresh_statistics()`: the rows added since, read without Spark",
    "refresh-spark": "`refresh_statistics(spark=...)`: the same rows, in a Spark job",
}
HEAD = (
    "call",
    "seconds",
    "of a full computation",
    "Spark's start before it",
    "data files read",
    "exact figures, Theta",
)


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        home = scratch / f"refreshed-lineitem-{arguments.scale_factor:g}"
        if not home.exists():
            scale = arguments.scale_factor
            files = generate_table("lineitem", scratch / f"parquet-{scale:g}", scale, FILES)
            new = generate_table("lineitem", scratch / f"part-1-of-100-{scale:g}", scale, 100, 1)
            run_module(PEER, "create", str(home), *map(str, [*new, *files]))
        runs: dict[str, list[Run]] = {name: [] for name in TITLES}
        for _ in range(arguments.runs):
            for name, found in runs.items():
                found.append(run_module(PEER, name, str(home)))
                print(f"{name}: {found[-1].seconds:.2f} s", file=sys.stderr)
    text = f"{_conditions(arguments, runs)}\n\n{_build_table(runs)}"
    print(text)
    if arguments.write:
        publish("statistics_refresh", text)


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks statistics_refresh")
    parser.add_argument("--scale-factor", type=float, default=3, help="6 million rows each")
    parser.add_argument("--runs", type=int, default=3, help="runs of each call")
    parser.add_argument("--scratch", type=Path, help="keep the table in this folder, and take it from there")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    return parser.parse_args(options)


def _conditions(arguments: argparse.Namespace, runs: dict[str, list[Run]]) -> str:
    full, refresh = runs["full"][0].sums, runs["refresh"][0].sums
    scale = arguments.scale_factor
    packages = ", ".join(f"{name} {version(name)}" for name in ("icestats", "pyspark", "pyiceberg", "pyarrow", "numpy"))
    return (
        f"lineitem at scale factor {scale:g}: {full['rows']:,} rows, 16 columns, {full['files']} files; "
        f"{refresh['added_rows']:,} of the rows, in {refresh['files']} file, came after the statistics were committed. "
        f"{platform.machine()}, {os.cpu_count()} cores, Spark in local[2]; Python {platform.python_version()}, "
        f"{packages}. Medians of {arguments.runs} runs (least to most), taking turns; load average at the end "
        f"{os.getloadavg()[0]:.1f}."
    )


def _build_table(runs: dict[str, list[Run]]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 2) + "---|"]
    full = runs["full"]
    for name, found in runs.items():
        seconds = [run.seconds for run in found]
        share = statistics.median(a.seconds / b.seconds for a, b in zip(found, full, strict=True))
        start = statistics.median(run.sums["start_seconds"] for run in found)
        pairs = list(zip(found, full, strict=True))
        same = all((a.sums["exact"], a.sums["theta"]) == (b.sums["exact"], b.sums["theta"]) for a, b in pairs)
        cells = (
            TITLES[name],
            f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})",
            f"{share:.1%}",
            f"{start:.1f}" if start else "none",
            str(found[0].sums["files"]),
            "equal" if same else "different",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
