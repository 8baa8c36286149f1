"""Verbs about what becomes of committed statistics: refreshing them, taking them back, cleaning up."""

from __future__ import annotations

import click

from icestats.output import write_json
from icestats.table import Table
from icestats.verbs.options import split_names, text_or_json, with_table


@click.command("refresh-statistics")
@with_table
@click.option("--columns", metavar="A,B", help="Top-level columns; by default those that have committed sketches.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only say what would be (default).")
@click.option("--list-ndv", metavar="A,B", help="Columns whose NDV metadata.json lists, so that engines use it.")
@text_or_json
def refresh_statistics(
    table: Table, columns: str | None, commit: bool, list_ndv: str | None, output_format: str
) -> None:
    """Bring committed statistics up to this snapshot: read only the files that came since, where that is enough."""
    from icestats.progress import terminal_progress

    with terminal_progress(f"refreshing {table.name}", after_s=1.0) as progress:
        found = table.refresh_statistics(columns=split_names(columns), progress=progress)
    report = found.commit(dry_run=not commit, list_ndv=split_names(list_ndv))
    if output_format == "json":
        write_json({**report.to_json(), "refresh": found.to_json()}, None)
    else:
        click.echo(f"{found!r}\n{report}")


COMMANDS = (refresh_statistics,)
