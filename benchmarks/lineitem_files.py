"""TPC-H's lineitem as Parquet files, made by tpchgen-cli (`pip install 'icestats[bench]'`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def generate_lineitem(folder: Path, scale_factor: float, parts: int, part: int | None = None) -> list[Path]:
    """Return so many files of lineitem, or one of them, made in a folder unless it is there."""
    if not folder.exists():
        command = Path(sys.executable).with_name("tpchgen-cli")
        if not command.exists():
            sys.exit("benchmarks: tpchgen-cli is missing: pip install 'icestats[bench]'")
        options = ["-s", f"{scale_factor:g}", "--tables=lineitem", f"--parts={parts}", f"--output-dir={folder}"]
        one = [] if part is None else [f"--part={part}"]
        subprocess.run([command, "parquet", *options, *one], check=True)
    return sorted((folder / "lineitem").glob("*.parquet"))
