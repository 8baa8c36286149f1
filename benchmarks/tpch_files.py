"""TPC-H's tables as Parquet files, made by tpchgen-cli (`pip install 'icestats[bench]'`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def generate_table(name: str, folder: Path, scale_factor: float, parts: int, part: int | None = None) -> list[Path]:
    """Return so many files of a table, or one of them, made in a folder unless they are there."""
    if not (folder / name).exists():
        command = Path(sys.executable).with_name("tpchgen-cli")
        if not command.exists():
            sys.exit("benchmarks: tpchgen-cli is missing: pip install 'icestats[bench]'")
        options = ["-s", f"{scale_factor:g}", f"--tables={name}", f"--parts={parts}", f"--output-dir={folder}"]
        one = [] if part is None else [f"--part={part}"]
        subprocess.run([command, "parquet", "--no-progress", *options, *one], check=True)
    return sorted((folder / name).glob("*.parquet"))
