"""Estimates of a large table, from each source that needs no committed sketches.

    python -m benchmarks estimate_times [--table LOCATION | --days 90 --files-per-day 5000 --manifests-per-day 24
                                   --columns 50] [--runs 7]

The table is opened and its roll-ups are read first; then a filter of two days is estimated, the first time (what has
not been read yet is read) and again.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generated_table import Shape, write_table
from benchmarks.measuring import print_table

TWO_DAYS = "event_time >= '2026-08-03T00:00:00' and event_time < '2026-08-05T00:00:00'"
SOURCES = (("manifests",), ("manifests-each",), ("partitions",), ("table",), ("data-files",))


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    if arguments.table:
        _measure(arguments.table, arguments.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "table"
        shape = Shape(arguments.days, arguments.files_per_day, arguments.manifests_per_day, arguments.columns)
        write_table(location, shape)
        _measure(str(location), arguments.runs)


def _measure(location: str, runs: int) -> None:
    import icestats

    rows = []
    for sources in SOURCES:
        table = icestats.load(location).read()
        seconds = []
        for _ in range(runs + 1):
            started = time.perf_counter()
            found = table.estimate(TWO_DAYS, sources=sources)[0]
            seconds.append(time.perf_counter() - started)
        later = sorted(seconds[1:])
        cells = (f"{1000 * seconds[0]:,.0f}", f"{1000 * statistics.median(later):,.1f}", f"{1000 * later[-1]:,.1f}")
        rows.append((sources[0], *cells, f"{found.values_read:,}", f"{found.bytes_read / 1e6:,.1f}"))
    files = sum(icestats.load(location).read().manifests()["live_file_count"].to_pylist())
    print(f"`Table.estimate` of two days, after `read()`, of a table of {files:,} live files: milliseconds\n")
    print_table(("source", "first", "later, median", "later, most", "values read", "MB that hold them"), rows)


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks estimate_times")
    parser.add_argument("--table", help="A table's folder or metadata.json; by default one is generated.")
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--files-per-day", type=int, default=5000)
    parser.add_argument("--manifests-per-day", type=int, default=24)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--runs", type=int, default=7)
    return parser.parse_args(list(options))
