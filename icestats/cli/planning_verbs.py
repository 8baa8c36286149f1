"""Verbs about planning scans."""

from __future__ import annotations

from typing import Any

import click

from icestats.cli.output import write_json
from icestats.cli.verb_options import split_names, text_or_json, with_table
from icestats.table.table import Table


@click.command()
@with_table
@click.argument("row_filter", metavar="FILTER")
@click.option(
    "--files",
    type=click.Choice(("kept", "skipped", "all", "none")),
    default="kept",
    show_default=True,
    help="Which files to list in JSON.",
)
@click.option("--row-groups", is_flag=True, help="Also read the footers of the remaining files.")
@click.option("--rows", is_flag=True, help="Also read the remaining files, and count the matching rows.")
@text_or_json
def plan(table: Table, row_filter: str, files: Any, row_groups: bool, rows: bool, output_format: str) -> None:
    """Show what a scan with FILTER reads, step by step, and why."""
    found = table.plan(row_filter, row_groups=row_groups, rows=rows)
    if output_format == "json":
        write_json(found.to_json(files), None)
    else:
        click.echo(repr(found))


@click.command()
@with_table
@click.option("--columns", metavar="A,B", help="Columns beside the partition fields; by default their source columns.")
@text_or_json
def layout(table: Table, columns: str | None, output_format: str) -> None:
    """Show how well files and manifests are clustered, what is wrong, and the statement that fixes it."""
    found = table.layout(columns=split_names(columns))
    if output_format == "json":
        write_json(found.to_json(), None)
    else:
        click.echo(repr(found))


COMMANDS = (plan, layout)
