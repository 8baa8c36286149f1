"""Verbs about what a scan reads."""

from __future__ import annotations

from typing import Any

import click

from icestats.output import write_json
from icestats.table import Table
from icestats.verbs.options import text_or_json, with_table


@click.command()
@with_table
@click.argument("row_filter", metavar="FILTER")
@click.option(
    "--files",
    type=click.Choice(("kept", "skipped", "all", "none")),
    default="kept",
    show_default=True,
    help="Which files are listed in JSON.",
)
@text_or_json
def plan(table: Table, row_filter: str, files: Any, output_format: str) -> None:
    """Show what a scan with a filter reads of the table, step by step, and why."""
    found = table.plan(row_filter)
    if output_format == "json":
        write_json(found.to_json(files), None)
    else:
        click.echo(repr(found))


COMMANDS = (plan,)
