"""What `pip install icestats` brings, by extra: packages, megabytes on disk, seconds with nothing cached."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.published import README, ROOT, publish

_EXTRAS = {
    "": "reads, plans, estimates, SQL; computes and commits what metadata alone gives",
    "explorer": "the explorer in a notebook",
    "spark": "PySpark, for those who have none: sketches of the data, rewrites",
    "connect": "`spark`, and what a Spark Connect session needs",
    "hive": "a Hive metastore as the catalog",
    "demo": "`spark`, and the demo warehouse",
    "lab": "`demo`, `explorer`, JupyterLab and Voila",
}


def main(arguments: list[str]) -> None:
    """Install the kit into new environments, and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks installation", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into README.md")
    options = parser.parse_args(arguments)
    lines = ["| install | packages | MB | seconds | for |", "|---|---:|---:|---:|---|"]
    for extra, purpose in _EXTRAS.items():
        name = f"icestats[{extra}]" if extra else "icestats"
        packages, size_bytes, seconds = _install(f"{ROOT}[{extra}]" if extra else str(ROOT))
        lines.append(f"| `pip install '{name}'` | {packages} | {size_bytes / 1e6:,.0f} | {seconds:.0f} | {purpose} |")
    text = "\n".join(lines)
    print(text)
    if options.write:
        publish("installation", text, README)


def _install(what: str) -> tuple[int, int, float]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        before = _size_bytes(folder)
        started = time.monotonic()
        subprocess.run([*pip, "install", "--quiet", "--no-cache-dir", what], check=True)
        seconds = time.monotonic() - started
        listed = subprocess.run([*pip, "list", "--format=json"], check=True, capture_output=True, text=True).stdout
        packages = {package["name"] for package in json.loads(listed)} - {"pip", "setuptools"}
        return len(packages), _size_bytes(folder) - before, seconds


def _size_bytes(folder: str) -> int:
    return sum(path.lstat().st_size for path in Path(folder).rglob("*"))
