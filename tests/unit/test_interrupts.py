"""Ctrl-C ends the command line with exit code 130 and no traceback, whenever it comes."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOK = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

sys.meta_path.insert(0, Interrupt())
"""


def entry_points() -> dict[str, list[str]]:
    """How the command line is started: as pip writes the console script, and as a module."""
    module, _, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "icestats"
    ].partition(":")
    return {
        "script": ["-c", f"import sys; from {module} import {function}; sys.exit({function}())"],
        "module": ["-m", "icestats"],
    }


@pytest.mark.parametrize("started", ["script", "module"])
@pytest.mark.parametrize("module", ["icestats.command_line", "numpy", "pyarrow", "click", "icestats.verbs.contents"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(tmp_path, started, module):
    (tmp_path / "sitecustomize.py").write_text(HOOK.format(module=module))
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    command = [sys.executable, *entry_points()[started], "show", str(tmp_path / "nothing.metadata.json")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_package_itself_imports_nothing_heavy():
    """What is imported before the command line's guard is interrupted with a traceback."""
    code = "import sys; before = set(sys.modules); import icestats.cli; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in found if name.startswith("icestats")} == {"icestats", "icestats.cli"}
    assert not {"numpy", "pyarrow", "click"} & set(found)
