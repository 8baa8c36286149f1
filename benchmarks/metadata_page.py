"""The benchmark's table, the conditions it was made under, and the page that both stand on."""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fastavro

from benchmarks.measured_process import Run
from benchmarks.metadata_cases import AGAIN, COMPILE, FLOOR, IMPORT, ROLLUPS, Case, Runs
from benchmarks.peer_environment import REQUIREMENTS
from benchmarks.peers.table_location import last_field_id, manifest_list_path
from benchmarks.published import DOCS, README, publish

PLOT = DOCS / "images" / "metadata_reading.svg"

HEAD = ("way", "seconds", "times roll-ups", "whole process", "CPU", "peak MB", "sums")
PACKAGES = ("icestats", "numba", "deflate", "pyarrow", "pyiceberg", "pyspark")


def describe_conditions(location: str, rounds: int) -> str:
    """Say what was read, on what, with what."""
    with Path(manifest_list_path(location)).open("rb") as file:
        manifests: list[Any] = list(fastavro.reader(file))
    data = [manifest for manifest in manifests if manifest["content"] == 0]
    files = sum(manifest["added_files_count"] + manifest["existing_files_count"] for manifest in data)
    size = sum(manifest["manifest_length"] for manifest in data)
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    packages += re.findall(r"^(?:duckdb|datafusion)==.*", REQUIREMENTS.read_text(), re.MULTILINE)
    return (
        f"{files:,} data files in {len(data):,} data manifests ({size / 1e6:,.0f} MB), {len(manifests) - len(data)} "
        f"manifests of deletes, {last_field_id(location)} columns. {_processor()}, {os.cpu_count()} cores, "
        f"{platform.system()}; Python {platform.python_version()}, {', '.join(packages).replace('==', ' ')}. "
        f"Medians of {rounds} runs (PyIceberg, Spark and compiling: one), cases taking turns."
    )


def load_average() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def build_table(runs: Runs) -> str:
    """Build the Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 2) + "---|"]
    lines += ["| " + " | ".join(_row(case, runs)) + " |" for case in runs]
    lines.append("")
    for case, title in ((ROLLUPS, "The first call of all roll-ups"), (AGAIN, "a second call")):
        wall, cpu = _ratio(runs, case, FLOOR), _ratio(runs, case, FLOOR, lambda run: run.call_cpu_seconds)
        if wall:
            lines.append(f"{title} takes {wall} times as long as inflating alone, and {cpu} times its CPU seconds;")
    lines[-1] = lines[-1].removesuffix(";") + "." * bool(lines[-1])
    return "\n".join(lines)


def build_summary(runs: Runs) -> str:
    """Build the README's table: seconds, times the first call of all roll-ups, peak memory."""
    lines = ["| way | seconds | times | peak MB |", "|---|---:|---:|---:|"]
    for case, found in runs.items():
        if not isinstance(found, str) and case not in (FLOOR, IMPORT, COMPILE):
            seconds = f"{_median(found, lambda run: run.seconds):.2f}"
            lines.append(f"| {case.title} | {seconds} | {_ratio(runs, case, ROLLUPS)} | {_peak_mb(case, found)} |")
    return "\n".join(lines)


def write_page(text: str, summary: str, plot: str | None) -> None:
    """Put the texts between the markers of the page and of README, and the plot beside the page."""
    publish("metadata_reading", text)
    publish("metadata_reading", summary, README)
    if plot is not None:
        PLOT.write_text(plot)


def _row(case: Case, runs: Runs) -> tuple[str, ...]:
    found = runs[case]
    if isinstance(found, str):
        return (case.title, f"not measured: {found}", *[""] * (len(HEAD) - 2))
    seconds = _spread([run.seconds for run in found])
    ratio = "" if case.module in ("rollups", "importing") else _ratio(runs, case, ROLLUPS)
    if case in (FLOOR, AGAIN):
        rest = ("", f"{_median(found, lambda run: run.call_cpu_seconds):.2f}", "")
    else:
        process, cpu = (_median(found, get) for get in (lambda run: run.process_seconds, lambda run: run.cpu_seconds))
        rest = (f"{process:.2f}", f"{cpu:.2f}", _peak_mb(case, found))
    return (case.title, seconds, ratio, *rest, _compare(case, found, runs))


def _peak_mb(case: Case, found: list[Run]) -> str:
    return "" if case is AGAIN else f"{_median(found, lambda run: run.peak_mb):,.0f}"


def _spread(seconds: list[float]) -> str:
    median = f"{statistics.median(seconds):.2f}"
    return median if len(seconds) == 1 else f"{median} ({min(seconds):.2f} to {max(seconds):.2f})"


def _ratio(runs: Runs, above: Case, below: Case, get: Callable[[Run], float] = lambda run: run.seconds) -> str:
    """The median over rounds: what else the machine does in a round slows both cases."""
    first, second = runs.get(above, ""), runs.get(below, "")
    if isinstance(first, str) or isinstance(second, str):
        return ""
    return f"{statistics.median(get(a) / get(b) for a, b in zip(first, second, strict=False)):.1f}"


def _compare(case: Case, found: list[Run], runs: Runs) -> str:
    ours = runs.get(ROLLUPS, "")
    if case is ROLLUPS or isinstance(ours, str) or not found[0].sums:
        return ""
    known = ours[0].sums
    same = all(found_map == known[name] for run in found for name, found_map in run.sums.items())
    return "equal" if same else "**differ**"


def _median(runs: list[Run], get: Callable[[Run], float]) -> float:
    return statistics.median(get(run) for run in runs)


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
