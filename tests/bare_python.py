"""An interpreter as executors have it that nobody has installed icestats for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numba


def make_bare_python(folder: Path) -> Path:
    """Make an interpreter of this version in `bare` that has everything but icestats and numba; return its packages."""
    environment = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for found in Path(numba.__file__).parent.parent.iterdir():
        if not re.match(r"_?icestats|_editable|numba$|.*\.pth$", found.name):
            (packages / found.name).symlink_to(found)
    return packages
