"""Running a piece of Python in fresh processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence


def installed_environment() -> dict[str, str]:
    """Return the variables of a process that keeps its bytecode, as that of an installed package is kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_fresh(code: str, *, runs: int = 5, warm_up: int = 1) -> list[float]:
    """Return the wall seconds of fresh processes that run some code, their start included."""
    seconds = []
    for run in range(warm_up + runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=installed_environment())
        if run >= warm_up:
            seconds.append(time.perf_counter() - started)
    return seconds


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
