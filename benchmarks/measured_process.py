"""Running a module in a fresh process, and what the process took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import installed_environment

FOLDER = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took, its children included."""

    seconds: float
    """Wall seconds of the call alone, as the process itself timed it: after its imports."""
    call_cpu_seconds: float
    """User and system seconds of the call alone, its child processes left out."""
    process_seconds: float
    """Wall seconds of the whole process."""
    cpu_seconds: float
    """User and system seconds of the whole process."""
    peak_mb: float
    """The largest resident size of the process, or of one that it started, in MB of 1,000,000 bytes."""
    sums: Any


class ProcessError(Exception):
    """A measured process failed; the message is the last line that it wrote."""


def run_module(
    module: str, *arguments: str, python: str | None = None, environment: Mapping[str, str] | None = None
) -> Run:
    """Run `python -m module arguments` once, with the local cache off unless `environment` says where it is."""
    variables = {**installed_environment(), "ICESTATS_CACHE": "off", **(environment or {})}
    command = [python or sys.executable, "-m", module, *arguments]
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=FOLDER, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        lines = process.stdout.read().splitlines()
        # wait4 gives the resources of this very process and of those that it waited for.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    taken = time.perf_counter() - started
    if process.returncode != 0:
        raise ProcessError(f"{module}: {lines[-1] if lines else f'exit code {process.returncode}'}")
    said = json.loads(lines[-1])
    # Kilobytes of 1,024 bytes, on a Mac bytes.
    peak_mb = used.ru_maxrss / 1e6 if sys.platform == "darwin" else used.ru_maxrss * 1024 / 1e6
    return Run(said["seconds"], said["cpu_seconds"], taken, used.ru_utime + used.ru_stime, peak_mb, said["sums"])
