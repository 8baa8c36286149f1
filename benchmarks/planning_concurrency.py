"""Planning scans of a large table: against PyIceberg, and many at one time with and without manifest-level statistics.

    python -m benchmarks planning_concurrency [--table LOCATION | --days 90 --files-per-day 5000 --manifests-per-day 24
        --columns 50] [--small-days 9] [--runs 3] [--scratch FOLDER] [--write]

First a plan of one day, the layout of the whole table and an estimate from committed manifest statistics, each in a
fresh process that makes three calls with tables loaded anew, from a SQLite catalog unless said; what is timed begins
once the table is loaded. Then 1, 10 and 100 plannings at one time, each a thread
with a table of its own, of a smaller table whose files have every statistic: of one day, which partitions rule out, and
of one `event_id`, which only bounds do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.generated_table import Shape, generate
from benchmarks.measured_process import run_module
from benchmarks.measuring import installed_environment
from benchmarks.metadata_page import describe_conditions, load_average
from benchmarks.peers.table_location import metadata_path
from benchmarks.published import publish
from benchmarks.registered_table import register_table

if TYPE_CHECKING:
    from icestats import Table
    from icestats.snapshot.pruning.plan import Plan


ONE_DAY = "event_time >= '2026-08-{0:02d}T00:00:00' and event_time < '2026-08-{1:02d}T00:00:00'"
CROWDS = (1, 10, 100)


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    os.environ["ICESTATS_CACHE"] = "off"
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        sizes = (arguments.files_per_day, arguments.manifests_per_day, arguments.columns)
        location = arguments.table or str(generate(scratch, Shape(arguments.days, *sizes)))
        plain, registered = Path(temporary) / "plain", Path(temporary) / "registered"
        register_table(location, plain)
        register_table(location, registered)
        run_module("benchmarks.peers.manifest_figures", str(registered), "commit")
        places = {"location": location, "plain": str(plain), "committed": str(registered)}
        small = str(generate(scratch, Shape(arguments.small_days, *sizes, is_complete=True)))
        before = load_average()
        text = "\n".join(
            [
                f"{_describe(location)} Medians of {arguments.runs} processes of each, taking turns.",
                "",
                *_measure_plans(places, arguments.runs),
                "",
                f"{_describe(small)} Every file has every statistic.",
                "",
                *_measure_crowds(small, arguments.small_days),
            ]
        )
        text += f"\n\nLoad average {before} before, {load_average()} after."
        print(text)
    if arguments.write:
        publish("planning", text)


def _describe(location: str) -> str:
    return describe_conditions(location, 1).partition(" Medians of")[0]


def _measure_plans(places: Mapping[str, str], runs: int) -> list[str]:
    row_filter = ONE_DAY.format(10, 11)
    ways = {
        "plan": ("plain", "**icestats**, `Table.plan` of one day"),
        "plan_location": ("location", "the same, of a table loaded by its location, which imports no PyIceberg"),
        "pyiceberg": ("plain", "PyIceberg, `plan_files` of one day"),
        "layout": ("plain", "**icestats**, `Table.layout`"),
        "estimate": ("committed", "**icestats**, `Table.estimate` of one day from the committed blob"),
        "estimate_again": ("committed", "the same, asked again of the same table"),
    }
    found: dict[str, list[dict[str, list[float]]]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, (place, _) in ways.items():
            command = [sys.executable, "-m", "benchmarks.peers.plans", way, places[place], row_filter]
            run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=installed_environment())
            found[way].append(json.loads(run.stdout))
            print(f"{way}: {found[way][-1]['seconds']}", file=sys.stderr)
    head = "| what | first call of a process, s | later calls, s | files, or rows estimated |"
    lines = [head, "|---|---:|---:|---:|"]
    for way, (_, title) in ways.items():
        first = [run["seconds"][0] for run in found[way]]
        later = [second for run in found[way] for second in run["seconds"][1:]]
        lines.append(f"| {title} | {_spread(first)} | {_spread(later)} | {found[way][0]['counts'][0]:,} |")
    ratio = _median(found["pyiceberg"]) / _median(found["plan"])
    return [*lines, "", f"PyIceberg takes {ratio:.0f} times as long as later plans."]


def _median(runs: list[dict[str, list[float]]]) -> float:
    return statistics.median(second for run in runs for second in run["seconds"][1:])


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def _measure_crowds(location: str, days: int) -> list[str]:
    import icestats

    reference = icestats.load(metadata_path(location)).read()
    reference.plan(ONE_DAY.format(3, 4))
    rollups = reference._reader.rollups
    head = ("filter", "manifest-level statistics", "plannings at one time", "manifests opened, each",
            "values looked at, each", "bytes of manifests read, each", "ms each", "plannings a second")  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    one_id = f"event_id = {days // 2 * 24 * 10**6 + 250_000}"
    for title, row_filter in (("one day", ONE_DAY.format(3, 4)), ("one event_id", one_id)):
        for with_statistics in (False, True):
            for crowd in CROWDS:
                tables = [icestats.load(metadata_path(location)) for _ in range(crowd)]
                for table in tables:
                    # Statistics that a coordinator has read once, for all plannings.
                    table._reader._rollups = rollups
                lines.append(_measure_crowd(title, row_filter, tables, with_statistics))
                print(lines[-1], file=sys.stderr)
    return lines


def _measure_crowd(title: str, row_filter: str, tables: list[Table], with_statistics: bool) -> str:
    def plan(table: Table) -> tuple[Plan, float]:
        started = time.perf_counter()
        found = table.plan(row_filter, manifest_statistics=with_statistics)
        return found, (time.perf_counter() - started) * 1000.0

    started = time.perf_counter()
    with ThreadPoolExecutor(len(tables)) as pool:
        results = list(pool.map(plan, tables))
    seconds = time.perf_counter() - started
    steps = results[0][0].steps
    opened = [step.kept for step in steps if step.unit == "manifest"][-1]
    cells = (
        title,
        "yes" if with_statistics else "no",
        f"{len(tables)}",
        f"{opened:,}",
        f"{sum(step.values_read for step in steps):,}",
        f"{sum(step.bytes_read for step in steps):,}",
        f"{statistics.median(ms for _, ms in results):,.0f}",
        f"{len(tables) / seconds:,.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks planning_concurrency")
    parser.add_argument("--table", help="a table's folder, with metadata/v1.metadata.json")
    shape = Shape()
    for name in ("days", "files_per_day", "manifests_per_day", "columns"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(shape, name))
    parser.add_argument("--small-days", type=int, default=9, help="of the table that many plan at one time")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="keep tables in this folder")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/")
    return parser.parse_args(options)


if __name__ == "__main__":
    main(sys.argv[1:])
