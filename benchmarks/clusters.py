"""Scans on a standalone cluster of this machine, by number of executors, and on paper of very many data files.

    python -m benchmarks clusters [--rows 6000000] [--files 48] [--executors 1 2 4 8] [--scratch FOLDER] [--write]

A master and two workers are started on loopback. A scan runs with each number of executors, of one core and 512 MB
each, in a driver of its own. Then scans of tables that have metadata only are planned, a small and a larger one: the
slope between them says what a data file costs the driver, from which the figures for 10 and 150 million data files are
computed. `--write` puts all into docs/clusters.md.
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

from benchmarks.generated_table import Shape, generate
from benchmarks.measured_process import Run, run_module
from benchmarks.peers.cluster_scan import EXECUTOR_MEMORY
from benchmarks.published import DOCS, publish
from benchmarks.spark_cluster import run_cluster
from icestats.answers.text import render_bytes
from icestats.spark.statistics_scan import PARTIALS_MERGED_BY_THE_DRIVER, TARGET_TASK_BYTES

PEER = "benchmarks.peers.cluster_scan"
PLANNED = (4_000, 16_000)
"""Data files of the tables whose scans are planned."""
MANIFEST_FILES = 500
COLUMNS = 50
ON_PAPER = (10_000_000, 150_000_000)
FILE_BYTES = 32 << 20
CORES = 1_000
HEAD = (
    *(
        "executors",
        "tasks",
        "files a task",
        "seconds",
        "CPU seconds",
        "first scan",
        "tasks sent",
        "results",
        "Python of an executor",
    ),
    "its JVM",
)


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        scans = _scan(arguments, scratch, Path(temporary)) if arguments.executors else {}
        plans = [_plan(scratch, file_count) for file_count in PLANNED]
    parts = [_conditions(), _extrapolate_plan(*plans)]
    if scans:
        one = next(iter(scans.values()))
        parts += [_describe_scans(one), _build_table(scans), _extrapolate_scan(one)]
    text = "\n\n".join(parts)
    print(text)
    if arguments.write:
        publish("clusters", text, DOCS / "clusters.md")


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks clusters")
    parser.add_argument("--rows", type=int, default=6_000_000, help="of the table that is scanned")
    parser.add_argument("--files", type=int, default=48, help="of the table that is scanned")
    parser.add_argument("--executors", type=int, nargs="*", default=[1, 2, 4, 8], help="how many; none: plans alone")
    parser.add_argument("--scratch", type=Path, help="keep the tables in this folder, and take them from there")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/clusters.md")
    return parser.parse_args(options)


def _scan(arguments: argparse.Namespace, scratch: Path, work: Path) -> dict[int, Run]:
    home = scratch / f"scanned-{arguments.rows}-{arguments.files}"
    run_module(PEER, "create", str(home), str(arguments.rows), str(arguments.files))
    found = {}
    cores = -(-max(arguments.executors) // 2)
    with run_cluster(work, 2, cores=cores, memory=f"{cores}g") as cluster:
        workers = [str(worker.pid) for worker in cluster.workers]
        for count in arguments.executors:
            found[count] = run_module(PEER, "scan", str(home), cluster.master, str(count), *workers)
            print(f"{count} executors: {found[count].seconds:.1f} s", file=sys.stderr)
    return found


def _plan(scratch: Path, file_count: int) -> Run:
    location = generate(
        scratch,
        Shape(days=1, files_per_day=file_count, manifests_per_day=file_count // MANIFEST_FILES, columns=COLUMNS),
    )
    found = run_module(PEER, "plan", str(location / "metadata" / "v1.metadata.json"))
    print(f"plan of {found.sums['files']:,} files: {found.seconds:.1f} s", file=sys.stderr)
    return found


def _conditions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("icestats", "pyspark", "pyiceberg", "pyarrow", "numpy"))
    return (
        f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}. One run each; "
        f"load average at the end {os.getloadavg()[0]:.1f}."
    )


def _describe_scans(one: Run) -> str:
    sums, cores = one.sums, os.cpu_count()
    return (
        f"A scan of {sums['rows']:,} rows, {sums['columns']} columns, {sums['files']} data files "
        f"({render_bytes(sums['size_bytes'])} in all), on executors of one core and {EXECUTOR_MEMORY}. The master, two "
        f"workers and the driver have {cores} cores together: from {cores} executors on they share them, so that the "
        f"last rows show what executors cost, not how a larger cluster scales. Each executor fetches once: the archive "
        f"of icestats ({render_bytes(sums['archive_bytes'])}), and the session's jars "
        f"({render_bytes(sums['jar_bytes'])})."
    )


def _build_table(scans: dict[int, Run]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---:" * len(HEAD) + "|"]
    for count, run in scans.items():
        sums = run.sums
        cells = (
            str(count),
            str(len(sums["task_files"])),
            f"{statistics.median(sums['task_files']):g}",
            f"{run.seconds:.1f}",
            f"{run.call_cpu_seconds:.1f}",
            f"{sums['first_seconds']:.1f}",
            render_bytes(sum(sums["task_bytes"])),
            render_bytes(sums["result_bytes"] + sums["shuffle_bytes"]),
            render_bytes(sums["python_bytes"]),
            render_bytes(sums["jvm_bytes"]),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _extrapolate_plan(small: Run, large: Run) -> str:
    """Compute, from the slope between two plans, what a plan of very many files would take; nobody has made it."""
    files = large.sums["files"] - small.sums["files"]
    plan_s = (large.call_cpu_seconds - small.call_cpu_seconds) / files
    memory, sent = ((large.sums[name] - small.sums[name]) / files for name in ("peak_bytes", "task_bytes"))
    lines = [
        f"The driver, for {COLUMNS} columns, on paper: computed from the slope between plans of "
        f"{small.sums['files']:,} and {large.sums['files']:,} data files, {MANIFEST_FILES} a manifest, which is "
        f"{plan_s * 1e6:,.0f} µs of CPU, {render_bytes(round(memory))} of its Python and {render_bytes(round(sent))} "
        "of tasks for each file. No such plan has been made.",
        "",
        "| data files | planning, on one core | driver's Python | tasks sent, and in the driver's heap |",
        "|---:" * 4 + "|",
    ]
    for count in ON_PAPER:
        sizes = (render_bytes(round(count * each)) for each in (memory, sent))
        lines.append(f"| {' | '.join((f'{count:,}', f'{count * plan_s / 3600:,.1f} h', *sizes))} |")
    return "\n".join(lines)


def _extrapolate_scan(scan: Run) -> str:
    """Compute, from what one scan took, what one of very many files would take; nobody has run it."""
    sums = scan.sums
    partial = sums["result_bytes"] / len(sums["task_files"]) / sums["columns"] * COLUMNS
    per_core = sums["size_bytes"] / scan.call_cpu_seconds
    lines = [
        f"The executors, for {COLUMNS} columns and data files of {render_bytes(FILE_BYTES)}, on paper: computed from "
        f"the sketches of one task ({render_bytes(round(partial))}), and from what executors scan in a second of CPU "
        f"({render_bytes(round(per_core))}). No such scan has been run.",
        "",
        f"| data files | tasks | sketches shuffled | result to the driver, at most | scan on {CORES:,} cores |",
        "|---:" * 5 + "|",
    ]
    for count in ON_PAPER:
        tasks = count * FILE_BYTES // TARGET_TASK_BYTES
        # Each round of merging leaves a sixteenth.
        shuffled = tasks * partial * PARTIALS_MERGED_BY_THE_DRIVER / (PARTIALS_MERGED_BY_THE_DRIVER - 1)
        cells = (
            *(f"{count:,}", f"{tasks:,}", render_bytes(round(shuffled))),
            render_bytes(round(partial * PARTIALS_MERGED_BY_THE_DRIVER)),
            f"{count * FILE_BYTES / per_core / CORES / 3600:,.1f} h",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
