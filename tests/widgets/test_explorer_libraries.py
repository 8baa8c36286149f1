"""The explorer in a process of its own: it waits neither for plotly nor for Spark, and works without the latter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_first_picture_does_without_plotly(hostile_location: str, tmp_path: Path) -> None:
    """In a notebook figures and tree are there first; plotly comes when the page shows them, or after a while."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, sys, icestats\n"
        "async def notebook():\n"
        f"    return icestats.load({hostile_location!r}).explore()\n"
        "explorer = asyncio.run(notebook())\n"
        "is_there = 'plotly.basedatatypes' in sys.modules\n"
        "print(is_there, explorer.manifests.figure, '>120<' in explorer.summary.body.children[0].value)\n"
        "explorer.tree.grid.receive({'kind': 'shown'})\n"
        "assert explorer.wait()\n"
        "print(explorer.manifests.figure is not None, explorer.state.partitions is not None)\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.splitlines() == ["False None True", "True True"]


@pytest.mark.spark
def test_without_spark_everything_else_works(hostile_location: str, tmp_path: Path) -> None:
    """Where no usable Spark can be had, the panel says so in one line."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, icestats\n"
        f"explorer = icestats.load({hostile_location!r}).explore()\n"
        "assert explorer.wait()\n"
        "explorer.compute.compute.click()\n"
        "assert explorer.wait()\n"
        "assert explorer.partitions.figure is not None\n"
        "print(explorer.state.phase, explorer.state.notes['compute'])\n"
    )
    environment = {**os.environ, "ICESTATS_SPARK_MASTER": "nowhere"}
    run = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.startswith("idle Spark did not start")
    assert run.stdout.count("\n") == 1
    assert "Traceback" not in run.stdout + run.stderr
