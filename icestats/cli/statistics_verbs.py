"""Verbs of statistics files: what they hold, computing, refreshing and removing them, cleaning up."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from icestats.cli.output import Output
from icestats.cli.records import build_sketch_records
from icestats.cli.verb_options import Report, split_names, terminal_progress, with_output, with_report, with_table
from icestats.table.table import Table

if TYPE_CHECKING:
    from icestats.stats.histogram import Histogram

_AGE_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command("sketches")
@with_table
@with_output
def _sketches(table: Table) -> Output:
    """List the blobs of the committed statistics files."""
    found = table.sketches()
    return Output(found, lambda: build_sketch_records(found))


@click.command("histogram")
@with_table
@click.argument("column")
@with_output
@click.option("--bins", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--kind", type=click.Choice(("equi-width", "equi-height")), default="equi-width", show_default=True)
@click.option("--where", metavar="FILTER", help="Use only these partitions; needs sketches by partition.")
@click.option("--lower", metavar="VALUE", help="Start of the range to draw.")
@click.option("--upper", metavar="VALUE", help="End of the range to draw.")
def _histogram(table: Table, column: str, **options: Any) -> Output:
    """Show a column's histogram from its committed KLL sketch, without touching data files."""
    found = table.histogram(column, **options)
    is_part = options["lower"] is not None or options["upper"] is not None
    return Output(found.to_arrow(), document=found.to_json(), note=_outside(found) if is_part else "")


def _outside(found: Histogram) -> str:
    error = found.rank_error * found.n
    within = f", each within {error:,.0f}" if error else ""
    return f"not drawn, of {found.n:,} values: {found.below:,.0f} below, {found.above:,.0f} above{within}\n"


@click.command("compute")
@with_table
@click.option("--columns", metavar="A,B", help="Top-level columns; by default all that can have sketches.")
@click.option("--table", "of_table", is_flag=True, help="Make sketches of the table's columns: a scan with PySpark.")
@click.option("--partitions", is_flag=True, help="Make the partition statistics file, from manifests.")
@click.option("--manifests", is_flag=True, help="Make statistics of each manifest.")
@click.option("--with-column-stats", is_flag=True, help="Add column statistics to the partition statistics file.")
@click.option("--k", type=click.IntRange(8, 65_535), default=200, show_default=True, help="Size of KLL sketches.")
@click.option("--lg-k", type=click.IntRange(4, 26), default=12, show_default=True, help="Log2 of Theta's entries.")
@click.option("--by", type=click.Choice(("partition",)), help="Also keep the sketches of each partition.")
@click.option("--partition-k", type=click.IntRange(8, 65_535), help="Like --k, for partitions; by default the same.")
@click.option("--partition-lg-k", type=click.IntRange(4, 26), help="Like --lg-k, for partitions; by default the same.")
@click.option("--max-size-bytes", type=click.IntRange(0), default=256 << 20, show_default=True, help="Limit for --by.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only show what would change (default).")
@click.option("--list-ndv", metavar="A,B", help="Columns whose NDV to list in metadata.json, where engines use it.")
@with_report
def _compute(
    table: Table,
    columns: str | None,
    of_table: bool,
    partitions: bool,
    manifests: bool,
    commit: bool,
    list_ndv: str | None,
    **options: Any,
) -> Report:
    """Compute statistics of the table, its partitions and manifests (all three by default); commit them on request."""
    if not (of_table or partitions or manifests):
        of_table = partitions = manifests = True
    with terminal_progress(f"scanning {table.name}") as progress:
        found = table.compute(
            columns=split_names(columns),
            table=of_table,
            partitions=partitions,
            manifests=manifests,
            progress=progress,
            **options,
        )
    report = found.commit(dry_run=not commit, list_ndv=split_names(list_ndv))
    return report.to_json, f"{found!r}\n{report}"


@click.command("refresh-statistics")
@with_table
@click.option("--columns", metavar="A,B", help="Top-level columns; by default those with committed sketches.")
@click.option("--commit/--dry-run", default=False, help="Write and register, or only show what would change (default).")
@click.option("--list-ndv", metavar="A,B", help="Columns whose NDV to list in metadata.json, where engines use it.")
@with_report
def _refresh_statistics(table: Table, columns: str | None, commit: bool, list_ndv: str | None) -> Report:
    """Update committed statistics to this snapshot, reading only the files added since where possible."""
    with terminal_progress(f"refreshing {table.name}", after_s=1.0) as progress:
        found = table.refresh_statistics(columns=split_names(columns), progress=progress)
    report = found.commit(dry_run=not commit, list_ndv=split_names(list_ndv))
    return lambda: {**report.to_json(), "refresh": found.to_json()}, f"{found!r}\n{report}"


@click.command("remove-statistics")
@with_table
@click.option("--restore", is_flag=True, help="Restore what the last commit replaced, if it can be found.")
@click.option("--yes", is_flag=True, help="Remove them; without this, only show what would change.")
@with_report
def _remove_statistics(table: Table, restore: bool, yes: bool) -> Report:
    """Undo a commit of statistics: remove the snapshot's entry from metadata.json."""
    report = table.remove_statistics(restore=restore, dry_run=not yes)
    return report.to_json, report


@click.command("orphans")
@with_table
@with_output
@click.option("--remove", is_flag=True, help="Show which files would be deleted, and why the others are kept.")
@click.option("--older-than", metavar="AGE", default="1d", show_default=True, help="Minimum age: 12h, 7d, 2w.")
@click.option("--allow-recent", is_flag=True, help="Allow --older-than below a day; nobody may commit or read.")
@click.option(
    "--allow-referred", is_flag=True, help="Also delete what stray metadata refers to; no other catalog may have it."
)
@click.option("--yes", is_flag=True, help="With --remove: delete the files.")
def _orphans(
    table: Table, remove: bool, older_than: str, allow_recent: bool, allow_referred: bool, yes: bool
) -> Output:
    """List statistics files below the table's location that no live metadata refers to, or delete them."""
    if yes and not remove:
        raise click.UsageError("--yes goes with --remove")
    if not remove:
        return Output(table.orphans())
    age = _parse_age(older_than)
    return Output(table.remove_orphans(age, dry_run=not yes, allow_recent=allow_recent, allow_referred=allow_referred))


def _parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no age: expected a whole number and s, m, h, d or w, such as 7d")
    return timedelta(**{_AGE_UNITS[match.group(2)]: int(match.group(1))})


COMMANDS = (_sketches, _histogram, _compute, _refresh_statistics, _remove_statistics, _orphans)
