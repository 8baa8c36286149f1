"""The explorer in a process of its own: it waits neither for plotly nor for Spark, and works without the latter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from tests.committed_statistics import KLL, blob, commit
from tests.kll_sketches import sketch_of


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
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=True)
    assert run.stdout.splitlines() == ["False None True", "True True"]


def test_a_process_ends_in_silence(
    catalog: SqlCatalog, catalog_properties: dict[str, str], hostile_table: icestats.Table
) -> None:
    """DataSketches prints what is still alive when Python ends, such as a sketch that an explorer keeps."""
    table = catalog.load_table("db.hostile")
    numbers = sketch_of("double", pa.array(range(1_000), pa.float64()))
    texts = sketch_of("string", pa.array([str(i) for i in range(1_000)]))
    commit(
        table,
        blob(table, KLL, 3, numbers.to_bytes(), **{"item-type": "double"}),
        blob(table, KLL, 4, texts.to_bytes(), **{"item-type": "string"}),
    )
    code = (
        "import icestats\n"
        f"table = icestats.load('db.hostile', catalog={catalog_properties!r})\n"
        "table._repr_html_()\n"
        "explorer = table.explore()\n"
        "print(*(table.histogram(name).n for name in table.columns()['name'].to_pylist()[2:]))\n"
        "assert explorer.wait()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (run.stdout, run.stderr) == ("1000 1000\n", "")


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
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    assert run.stdout.startswith("idle Spark did not start")
    assert run.stdout.count("\n") == 1
    assert "Traceback" not in run.stdout + run.stderr
