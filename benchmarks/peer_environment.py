"""A Python environment with the peers that the package does not depend on."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements-peers.txt")


def build_environment(folder: Path) -> str:
    """Install the peers into an environment in a folder, unless it is there, and return its Python.

    Raises
    ------
    OSError
        They cannot be installed; the message is pip's last line.
    """
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError((done.stderr.splitlines() or ["pip failed"])[-1])
    return str(python)
