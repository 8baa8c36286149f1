"""The command line: the verbs of `Table`, one answer on stdout, one line on stderr where something is wrong.

Exit codes: 0 done, 1 an error of the table or the system, 2 a wrong call.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from icestats.errors import CallError, IcestatsError, UnsupportedError
from icestats.opening import load
from icestats.output import FORMATS, Output, write_json, write_output
from icestats.records import (
    build_column_records,
    build_manifest_records,
    build_partition_records,
    build_plain_records,
    build_sketch_records,
)
from icestats.table import Table

_Command = Callable[..., Any]


def main() -> None:
    """Run the command line and exit."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        _complain(error.format_message(), hint=f"; see `{_command_path(error)} --help`")
        code = 2
    except CallError as error:
        _complain(str(error))
        code = 2
    except IcestatsError as error:
        _complain(str(error))
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except Exception as error:
        if os.environ.get("ICESTATS_DEBUG"):
            raise
        _complain(f"{type(error).__name__}: {error}", hint=" (ICESTATS_DEBUG=1 shows where)")
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _command_path(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "icestats"


def _complain(message: str, hint: str = "") -> None:
    print(f"icestats: {' '.join(message.split()).rstrip('.')}{hint}", file=sys.stderr)  # noqa: T201 - the error line


def _with_table(command: _Command) -> Any:
    """Give a command the options that choose a table and its snapshot; it gets the opened `table`."""

    @functools.wraps(command)
    def run(source: str, snapshot: str | None, ref: str | None, as_of: str | None, **others: Any) -> Any:
        return command(table=load(source, snapshot=snapshot, ref=ref, as_of=as_of), **others)

    options = (
        click.argument("source"),
        click.option("--snapshot", metavar="ID", help="A snapshot's id; by default the current one."),
        click.option("--ref", metavar="NAME", help="A branch or a tag."),
        click.option("--as-of", metavar="TIME", help="The snapshot that was current then: ISO 8601, UTC."),
    )
    return _apply(options, run)


def _with_output(command: _Command) -> Any:
    """Give a command the options that say where its answer goes; it returns an `Output`."""

    @functools.wraps(command)
    def run(output_format: str, output: Path | None, **others: Any) -> None:
        write_output(command(**others), output_format, output)

    file = click.Path(dir_okay=False, path_type=Path)
    options = (
        click.option("--format", "output_format", type=click.Choice(FORMATS), default="table", show_default=True),
        click.option("--output", type=file, help="A file instead of stdout."),
    )
    return _apply(options, run)


def _apply(options: Sequence[Callable[[Any], Any]], command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


_text_or_json = click.option(
    "--format", "output_format", type=click.Choice(("table", "json")), default="table", show_default=True
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="icestats")
def cli() -> None:
    """See, explain and complete the statistics of Apache Iceberg tables.

    SOURCE is catalog.namespace.table, namespace.table (the default catalog of PyIceberg's configuration), or the
    location of a metadata.json. demo.events and demo.flights are the embedded demo warehouse's.
    """


@cli.command()
@_text_or_json
def demo(output_format: str) -> None:
    """Build the demo warehouse (once), and compute and commit statistics for its tables."""
    from icestats.demo_walk import walk_demo

    walks = walk_demo(lambda line: click.echo(line, err=True))
    if output_format == "json":
        write_json([walk.to_json() for walk in walks], None)
    else:
        click.echo("\n\n".join(walk.to_text() for walk in walks))


@cli.command()
@_with_table
@_text_or_json
def show(table: Table, output_format: str) -> None:
    """Show what the manifest list and metadata.json say: figures and findings."""
    if output_format == "json":
        write_json(table.overview().to_json(), None)
    else:
        click.echo(repr(table))


def _read(table: Table) -> Table:
    from icestats.progress import terminal_progress

    with terminal_progress(f"reading {table.name}", after_s=1.0) as progress:
        return table.read(progress=progress)


@cli.command()
@_with_table
@_with_output
def manifests(table: Table) -> Output:
    """List the manifests with the roll-up of their live files."""
    found = _read(table).manifests()
    return Output(found, lambda: build_manifest_records(found, table.schema))


@cli.command()
@_with_table
@_with_output
def partitions(table: Table) -> Output:
    """List the partitions with the roll-up of their live files."""
    found = _read(table).partitions()
    return Output(found, lambda: build_partition_records(found, table.schema, table.metadata.specs))


@cli.command()
@_with_table
@_with_output
def columns(table: Table) -> Output:
    """List the columns with their roll-up over the table, and where each figure is from."""
    found = _read(table).columns()
    return Output(found, lambda: build_column_records(found))


@cli.command()
@_with_table
@_with_output
@click.option("--where", "row_filter", metavar="FILTER", help="Only data files that a scan with this filter reads.")
@click.option("--columns", metavar="A,B", help="Columns whose statistics are wanted.")
def files(table: Table, row_filter: str | None, columns: str | None) -> Output:
    """List the live files, data and delete files alike."""
    found = table.files(columns=_names(columns) or (), row_filter=row_filter)
    return Output(found, lambda: build_plain_records(found))


@cli.command()
@_with_table
@click.argument("query")
@_with_output
def sql(table: Table, query: str) -> Output:
    """Run a DuckDB query over the views manifests, files, partitions, columns, snapshots and refs."""
    found = table.sql(query)
    return Output(found, lambda: build_plain_records(found))


@cli.command()
@_with_table
@_with_output
def sketches(table: Table) -> Output:
    """List the blobs of the committed statistics files."""
    found = table.sketches()
    return Output(found, lambda: build_sketch_records(found))


@cli.command()
@_with_table
@_with_output
def orphans(table: Table) -> Output:
    """List statistics files below the table's location that its metadata does not refer to."""
    found = table.orphans()
    return Output(found, lambda: build_plain_records(found))


@cli.command()
@_with_table
@click.argument("column")
@_with_output
@click.option("--bins", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--kind", type=click.Choice(("equi-width", "equi-height")), default="equi-width", show_default=True)
@click.option("--where", metavar="FILTER", help="A filter on partitions; needs sketches by partition.")
def histogram(table: Table, column: str, bins: int, kind: Any, where: str | None) -> Output:
    """Draw a column's histogram from its committed KLL sketch; no data file is touched."""
    found = table.histogram(column, bins=bins, kind=kind, where=where)
    return Output(found.to_arrow(), document=found.to_json())


@cli.command()
@_with_table
@click.option("--columns", metavar="A,B", help="Top-level columns; by default all that have sketches.")
@click.option("--k", type=click.IntRange(8, 65_535), default=200, show_default=True, help="Size of KLL sketches.")
@click.option("--lg-k", type=click.IntRange(4, 26), default=12, show_default=True, help="Log2 of Theta's entries.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only say what would be (default).")
@_text_or_json
def compute(table: Table, columns: str | None, k: int, lg_k: int, commit: bool, output_format: str) -> None:
    """Scan the table once with PySpark: Theta, KLL and column statistics; commit them if asked."""
    from icestats.progress import terminal_progress

    with terminal_progress(f"scanning {table.name}") as progress:
        found = table.compute(columns=_names(columns), k=k, lg_k=lg_k, progress=progress)
    report = found.commit(dry_run=not commit)
    if output_format == "json":
        write_json(report.to_json(), None)
    else:
        click.echo(f"{found!r}\n{report}")


@cli.command()
@click.argument("source", default="demo.events")
def lab(source: str) -> None:
    """Open JupyterLab on a notebook about SOURCE, made in this folder if there is none."""
    from icestats.notebook import write_notebook

    jupyter = shutil.which("jupyter", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if jupyter is None:
        raise UnsupportedError("JupyterLab is not installed: pip install 'icestats[lab]'")
    notebook = write_notebook(source, Path.cwd())
    sys.exit(subprocess.call([jupyter, "lab", str(notebook)]))  # noqa: S603 - the interpreter's own jupyter


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
