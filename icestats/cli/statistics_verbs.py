"""Verbs about statistics files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icestats.cli.output import Output, write_json
from icestats.cli.records import build_sketch_records
from icestats.cli.verb_options import split_names, text_or_json, with_output, with_table
from icestats.table.table import Table

if TYPE_CHECKING:
    from icestats.stats.histogram import Histogram


@click.command()
@with_table
@with_output
def sketches(table: Table) -> Output:
    """List the blobs of the committed statistics files."""
    found = table.sketches()
    return Output(found, lambda: build_sketch_records(found))


@click.command()
@with_table
@click.argument("column")
@with_output
@click.option("--bins", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--kind", type=click.Choice(("equi-width", "equi-height")), default="equi-width", show_default=True)
@click.option("--where", metavar="FILTER", help="Use only these partitions; needs sketches by partition.")
@click.option("--lower", metavar="VALUE", help="Start of the range to draw.")
@click.option("--upper", metavar="VALUE", help="End of the range to draw.")
def histogram(table: Table, column: str, **options: Any) -> Output:
    """Show a column's histogram from its committed KLL sketch, without touching data files."""
    found = table.histogram(column, **options)
    is_part = options["lower"] is not None or options["upper"] is not None
    return Output(found.to_arrow(), document=found.to_json(), note=_outside(found) if is_part else None)


def _outside(found: Histogram) -> str:
    error = found.rank_error * found.n
    within = f", each within {error:,.0f}" if error else ""
    return f"not drawn, of {found.n:,} values: {found.below:,.0f} below, {found.above:,.0f} above{within}"


@click.command()
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
@text_or_json
def compute(
    table: Table,
    columns: str | None,
    of_table: bool,
    partitions: bool,
    manifests: bool,
    commit: bool,
    list_ndv: str | None,
    output_format: str,
    **options: Any,
) -> None:
    """Compute statistics of the table, its partitions and manifests (all three by default); commit them on request."""
    from icestats.cli.progress import terminal_progress

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
    if output_format == "json":
        write_json(report.to_json(), None)
    else:
        click.echo(f"{found!r}\n{report}")


COMMANDS = (sketches, histogram, compute)
