"""Verbs that set up a place to work: the demo warehouse with its statistics, a notebook."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from icestats.answers.text import one_line, render_count
from icestats.answers.whole_file import write_whole
from icestats.cli.output import Report, plain_value, with_report
from icestats.errors import CallError, StatisticsMissingError, UnsupportedError
from icestats.iceberg.catalog import demo_home
from icestats.table.table import DEMO_TABLES, Table, demo, load

_SHOWN = {"events": ("device_id", "price", "event_type"), "flights": ("dep_delay", "distance", "carrier")}
"""The columns of each table that are shown before and after."""
_BY_PARTITION = {"events": ["event_type", "price", "quantity"]}
"""Columns whose distribution is kept by partition too, so that the explorer can draw that of a few days."""
_BY_PARTITION_BYTES = 2_000_000
KLL_K = 1_000
"""Size of the demo's sketches: ranks within 0.28 %, so that ranges of 1 % of the rows are estimated within a tenth."""


def _walk(name: str, step: str, say: Callable[[str], None]) -> tuple[dict[str, object], str]:
    """Commit a demo table's statistics; return what was done, and seen before and after, for JSON and as text."""
    table = demo(name, progress=say)
    is_missing = table.overview().statistics_commits_behind != 0
    if is_missing:
        say(f"{step}: statistics of {table.name}, in about 20 s; the first time, code is compiled too, for 20 s")
    before = {column: _look(table, column) for column in _SHOWN[name]}
    commit = None
    if is_missing:
        say(f"{table.name}: one scan for Theta, KLL and column statistics of every column")
        commit = str(table.compute(k=KLL_K, progress=_quarters(f"{table.name}: scanned", say)).commit())
        table = table.refresh()
        if columns := _BY_PARTITION.get(name):
            say(f"{table.name}: sketches by partition of {', '.join(columns)}")
            table.compute(columns=columns, by="partition", max_size_bytes=_BY_PARTITION_BYTES).commit()
            table = table.refresh()
    after = {column: _look(table, column) for column in _SHOWN[name]}
    width = max(map(len, after))
    lines = [repr(table), f"  {commit or 'statistics of this snapshot are committed already'}"]
    for column, seen in after.items():
        lines += [f"  {column:<{width}}  before: {before[column]}", f"  {'':<{width}}  after:  {seen}"]
    return {**table.overview().to_json(), "commit": commit, "before": before, "after": after}, "\n".join(lines)


def _quarters(what: str, say: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a callback of finished and total tasks that says each quarter once."""
    said = 0

    def progress(done: int, total: int) -> None:
        nonlocal said
        quarter = 4 * done // max(total, 1)
        if quarter > said:
            said = quarter
            say(f"{what} {quarter * 25}%")

    return progress


def _look(table: Table, column: str) -> str:
    row = next(row for row in table.columns().to_pylist() if row["name"] == column)
    ndv = f"NDV {render_count(row['ndv'])}"
    try:
        found = table.histogram(column)
    except StatisticsMissingError:
        return f"{ndv}, no histogram"
    low, middle, high = (plain_value(found.quantiles[rank]) for rank in (0.05, 0.5, 0.95))
    error = f"rank error {found.rank_error:.2%}"
    return f"{ndv}, 5% below {low}, median {middle}, 5% above {high} ({error}, {render_count(found.null_count)} nulls)"


@click.command("demo")
@with_report
def build_demo_statistics() -> Report:
    """Build the demo warehouse (once), and compute and commit statistics for its tables."""
    from icestats.spark.demo.demo_warehouse import RECIPES, is_finished

    started = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"{time.monotonic() - started:4.0f} s  {line}", err=True)

    if not all(is_finished(demo_home(), recipe) for recipe in RECIPES.values()):
        say("step 1 of 3: Spark writes two tables, in about a minute; the first time, it fetches jars of 60 MB before")
    walks = [_walk(name, f"step {number} of 3", say) for number, name in enumerate(DEMO_TABLES, 2)]
    return lambda: [document for document, _ in walks], "\n\n".join(text for _, text in walks)


@click.command("lab")
@click.argument("source", default="demo.events")
def open_lab(source: str) -> None:
    """Open JupyterLab on a notebook about SOURCE; create it in this folder if there is none."""
    jupyter = shutil.which(
        "jupyter", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    )
    if jupyter is None:
        raise UnsupportedError("JupyterLab is not installed: pip install 'icestats[lab]'")
    if source not in [f"demo.{name}" for name in DEMO_TABLES]:
        load(source)
    notebook = _write_notebook(source, Path.cwd())
    sys.exit(subprocess.call([jupyter, "lab", str(notebook)]))  # noqa: S603 - the interpreter's own jupyter


def _write_notebook(source: str, folder: Path) -> Path:
    """Write a notebook that opens a table in the explorer; one of the same source that exists is left as it is."""
    path = folder / f"icestats_{_file_name(source)}.ipynb"
    if os.path.lexists(path):
        return _check_own(path)
    sources = [f"import icestats\n\ntable = icestats.load({source!r})\ntable", "table.explore()"]
    empty: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "cells": [
            {**empty, "id": f"cell-{i}", "source": text.splitlines(keepends=True)} for i, text in enumerate(sources)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    try:
        write_whole(path, [f"{json.dumps(notebook, indent=1)}\n".encode()])
    except OSError as error:
        raise CallError(
            f"no notebook can be written to {path}: {one_line(error)}; call it in a folder of yours"
        ) from error
    return path


def _check_own(path: Path) -> Path:
    """Refuse a notebook that another user has put into a shared folder: what it says runs when it is opened."""
    if hasattr(os, "getuid") and path.lstat().st_uid not in (os.getuid(), path.parent.stat().st_uid):
        raise CallError(f"{path} is of another user, and would run as you: call it in a folder of yours")
    return path


def _file_name(source: str) -> str:
    """Return a name for files about a table, another one for each source."""
    if re.fullmatch(r"[A-Za-z0-9_.]{1,100}", source):
        return source
    last = source.rsplit("/metadata/", 1)[0].rstrip("/").rsplit("/", 1)[-1]
    readable = re.sub(r"[^A-Za-z0-9]+", "_", last).strip("_")[:100]
    digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{readable}_{digest}".strip("_")
