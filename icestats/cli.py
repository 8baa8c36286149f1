"""The command line: the verbs of `Table`, one answer on stdout, one line on stderr where something is wrong.

Exit codes: 0 done, 1 an error of the table or the system, 2 a wrong call.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

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

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


def _source_options(command: _Command) -> _Command:
    command = click.option("--ref", metavar="NAME", help="A branch or a tag.")(command)
    command = click.option("--snapshot", metavar="ID", help="A snapshot's id; by default the current one.")(command)
    return click.argument("source")(command)


def _output_options(command: _Command) -> _Command:
    command = click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of stdout."
    )(command)
    return click.option("--format", "output_format", type=click.Choice(FORMATS), default="table", show_default=True)(
        command
    )


def _load(source: str, snapshot: str | None, ref: str | None) -> Table:
    return load(source, snapshot=snapshot, ref=ref)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="icestats")
def cli() -> None:
    """See, explain and complete the statistics of Apache Iceberg tables.

    SOURCE is catalog.namespace.table, namespace.table (the default catalog of PyIceberg's configuration), or the
    location of a metadata.json. demo.events and demo.flights are the embedded demo warehouse's.
    """


@cli.command()
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table", show_default=True)
def demo(output_format: str) -> None:
    """Build the demo warehouse (once), and compute and commit statistics for its tables."""
    from icestats.demo_walk import walk_demo

    walks = walk_demo(lambda line: click.echo(line, err=True))
    if output_format == "json":
        write_json([walk.to_json() for walk in walks], None)
    else:
        click.echo("\n\n".join(walk.to_text() for walk in walks))


@cli.command()
@_source_options
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table", show_default=True)
def show(source: str, snapshot: str | None, ref: str | None, output_format: str) -> None:
    """Show what the manifest list and metadata.json say: figures and findings."""
    table = _load(source, snapshot, ref)
    if output_format == "json":
        write_json(table.overview().to_json(), None)
    else:
        click.echo(repr(table))


@cli.command()
@_source_options
@_output_options
def manifests(source: str, snapshot: str | None, ref: str | None, output_format: str, output: Path | None) -> None:
    """List the manifests with the roll-up of their live files."""
    table = _load(source, snapshot, ref)
    found = table.manifests()
    write_output(Output(found, lambda: build_manifest_records(found, table.schema)), output_format, output)


@cli.command()
@_source_options
@_output_options
def partitions(source: str, snapshot: str | None, ref: str | None, output_format: str, output: Path | None) -> None:
    """List the partitions with the roll-up of their live files."""
    table = _load(source, snapshot, ref)
    found = table.partitions()
    specs = table.metadata.specs
    write_output(Output(found, lambda: build_partition_records(found, table.schema, specs)), output_format, output)


@cli.command()
@_source_options
@_output_options
def columns(source: str, snapshot: str | None, ref: str | None, output_format: str, output: Path | None) -> None:
    """List the columns with their roll-up over the table, and where each figure is from."""
    found = _load(source, snapshot, ref).columns()
    write_output(Output(found, lambda: build_column_records(found)), output_format, output)


@cli.command()
@_source_options
@_output_options
@click.option("--where", "row_filter", metavar="FILTER", help="Only data files that a scan with this filter reads.")
@click.option("--columns", metavar="A,B", help="Columns whose statistics are wanted.")
def files(
    source: str,
    snapshot: str | None,
    ref: str | None,
    output_format: str,
    output: Path | None,
    row_filter: str | None,
    columns: str | None,
) -> None:
    """List the live files, data and delete files alike."""
    found = _load(source, snapshot, ref).files(columns=_names(columns) or (), row_filter=row_filter)
    write_output(Output(found, lambda: build_plain_records(found)), output_format, output)


@cli.command()
@_source_options
@_output_options
def sketches(source: str, snapshot: str | None, ref: str | None, output_format: str, output: Path | None) -> None:
    """List the blobs of the committed statistics files."""
    found = _load(source, snapshot, ref).sketches()
    write_output(Output(found, lambda: build_sketch_records(found)), output_format, output)


@cli.command()
@_source_options
@click.argument("column")
@_output_options
@click.option("--bins", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--kind", type=click.Choice(("equi-width", "equi-height")), default="equi-width", show_default=True)
@click.option("--where", metavar="FILTER", help="A filter on partitions; needs sketches by partition.")
def histogram(
    source: str,
    column: str,
    snapshot: str | None,
    ref: str | None,
    output_format: str,
    output: Path | None,
    bins: int,
    kind: Any,
    where: str | None,
) -> None:
    """Draw a column's histogram from its committed KLL sketch; no data file is touched."""
    found = _load(source, snapshot, ref).histogram(column, bins=bins, kind=kind, where=where)
    if output_format == "json":
        write_json(found.to_json(), output)
    else:
        write_output(Output(found.to_arrow()), output_format, output)


@cli.command()
@_source_options
@click.option("--columns", metavar="A,B", help="Top-level columns; by default all that have sketches.")
@click.option("--k", type=click.IntRange(8, 65_535), default=200, show_default=True, help="Size of KLL sketches.")
@click.option("--lg-k", type=click.IntRange(4, 26), default=12, show_default=True, help="Log2 of Theta's entries.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only say what would be (default).")
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table", show_default=True)
def compute(
    source: str,
    snapshot: str | None,
    ref: str | None,
    columns: str | None,
    k: int,
    lg_k: int,
    commit: bool,
    output_format: str,
) -> None:
    """Scan the table once with PySpark: Theta, KLL and column statistics; commit them if asked."""
    from icestats.progress import terminal_progress

    table = _load(source, snapshot, ref)
    with terminal_progress(f"scanning {source}") as progress:
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
