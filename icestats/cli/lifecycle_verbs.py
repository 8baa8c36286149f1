"""Verbs for committed statistics: refresh them, undo a commit, clean up."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from icestats.cli.output import Output, write_json
from icestats.cli.records import build_plain_records
from icestats.cli.verb_options import split_names, text_or_json, with_output, with_table
from icestats.table.table import Table

_AGE_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command("refresh-statistics")
@with_table
@click.option("--columns", metavar="A,B", help="Top-level columns; by default those with committed sketches.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only show what would change (default).")
@click.option("--list-ndv", metavar="A,B", help="Columns whose NDV to list in metadata.json, where engines use it.")
@text_or_json
def refresh_statistics(
    table: Table, columns: str | None, commit: bool, list_ndv: str | None, output_format: str
) -> None:
    """Update committed statistics to this snapshot, reading only the files added since where possible."""
    from icestats.cli.progress import terminal_progress

    with terminal_progress(f"refreshing {table.name}", after_s=1.0) as progress:
        found = table.refresh_statistics(columns=split_names(columns), progress=progress)
    report = found.commit(dry_run=not commit, list_ndv=split_names(list_ndv))
    if output_format == "json":
        write_json({**report.to_json(), "refresh": found.to_json()}, None)
    else:
        click.echo(f"{found!r}\n{report}")


@click.command("remove-statistics")
@with_table
@click.option("--restore", is_flag=True, help="Restore what the last commit replaced, if it can be found.")
@click.option("--yes", is_flag=True, help="Remove them; without this, only show what would change.")
@text_or_json
def remove_statistics(table: Table, restore: bool, yes: bool, output_format: str) -> None:
    """Undo a commit of statistics: remove the snapshot's entry from metadata.json."""
    report = table.remove_statistics(restore=restore, dry_run=not yes)
    if output_format == "json":
        write_json(report.to_json(), None)
    else:
        click.echo(str(report))


@click.command()
@with_table
@with_output
@click.option("--remove", is_flag=True, help="Show which files would be deleted, and why the others are kept.")
@click.option("--older-than", metavar="AGE", default="1d", show_default=True, help="Minimum age: 12h, 7d, 2w.")
@click.option("--allow-recent", is_flag=True, help="Allow --older-than below a day; nobody may commit or read.")
@click.option(
    "--allow-referred", is_flag=True, help="Also delete what stray metadata refers to; no other catalog may have it."
)
@click.option("--yes", is_flag=True, help="With --remove: delete the files.")
def orphans(table: Table, remove: bool, older_than: str, allow_recent: bool, allow_referred: bool, yes: bool) -> Output:
    """List statistics files below the table's location that no live metadata refers to, or delete them."""
    if yes and not remove:
        raise click.UsageError("--yes goes with --remove")
    if remove:
        found = table.remove_orphans(
            _parse_age(older_than), dry_run=not yes, allow_recent=allow_recent, allow_referred=allow_referred
        )
    else:
        found = table.orphans()
    return Output(found, lambda: build_plain_records(found))


def _parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no age: expected a whole number and s, m, h, d or w, such as 7d")
    return timedelta(**{_AGE_UNITS[match.group(2)]: int(match.group(1))})


COMMANDS = (refresh_statistics, remove_statistics, orphans)
