"""What the verbs share: the options that choose a table, and those that say where the answer goes."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from icestats.cli.output import FORMATS, write_json, write_output
from icestats.table.opening import load
from icestats.table.table import Table

Command = Callable[..., Any]

_TEXT_OR_JSON = click.Choice(("table", "json"))
_SHOWN: dict[str, Any] = {"default": "table", "show_default": True}


def with_table(command: Command) -> Any:
    """Give a command the options that choose a table and its snapshot; it gets the opened `table`."""

    @functools.wraps(command)
    def run(source: str, snapshot: str | None, ref: str | None, as_of: str | None, **others: Any) -> Any:
        return command(table=load(source, snapshot=snapshot, ref=ref, as_of=as_of), **others)

    options = (
        click.argument("source"),
        click.option("--snapshot", metavar="ID", help="Snapshot id; by default the current snapshot."),
        click.option("--ref", metavar="NAME", help="Branch or tag."),
        click.option("--as-of", metavar="TIME", help="Use the snapshot that was current at this time: ISO 8601, UTC."),
    )
    return _apply(options, run)


def with_output(command: Command) -> Any:
    """Give a command the options that say where its answer goes; it returns an `Output`."""

    @functools.wraps(command)
    def run(output_format: str, output: Path | None, **others: Any) -> None:
        write_output(command(**others), output_format, output)

    file = click.Path(dir_okay=False, path_type=Path)
    options = (
        click.option("--format", "output_format", type=click.Choice(FORMATS), **_SHOWN),
        click.option("--output", type=file, help="Write to this file instead of stdout."),
    )
    return _apply(options, run)


Report = tuple[Callable[[], Any], object]
"""What JSON is made of, and what text is."""


def with_report(command: Command) -> Any:
    """Give a command the choice between text and JSON; it returns a `Report`."""

    @functools.wraps(command)
    def run(output_format: str, **others: Any) -> None:
        to_json, text = command(**others)
        if output_format == "json":
            write_json(to_json(), None)
        else:
            click.echo(str(text))

    return _apply([click.option("--format", "output_format", type=_TEXT_OR_JSON, **_SHOWN)], run)


def _apply(options: Sequence[Callable[[Any], Any]], command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def read_with_bar(table: Table) -> Table:
    """Read a table's manifests, with a bar on stderr where that takes longer than a second."""
    with terminal_progress(f"reading {table.name}", after_s=1.0) as progress:
        return table.read(progress=progress)


def split_names(text: str | None) -> list[str] | None:
    """Return the names of a list with commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def terminal_progress(description: str, *, after_s: float = 0.0) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback of finished and total tasks that draws a bar on stderr, or None without a terminal.

    What is done within `after_s` seconds draws nothing.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(description, total=None)
    begin = time.monotonic() + after_s

    def show(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if time.monotonic() >= begin:
            bar.start()

    try:
        if not after_s:
            bar.start()
        yield show
    finally:
        bar.stop()
