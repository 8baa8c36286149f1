"""Verbs about what optimizers would estimate."""

from __future__ import annotations

from typing import Any

import click

from icestats.cli.output import Output
from icestats.cli.verb_options import read_with_bar, split_names, with_output, with_table
from icestats.estimation.formulas.source_estimates import DELETES
from icestats.table.table import Table


@click.command()
@with_table
@click.argument("row_filter", metavar="FILTER")
@with_output
@click.option("--columns", metavar="A,B", help="Projected columns, which bytes are about; by default all.")
@click.option(
    "--deletes", type=click.Choice(DELETES), default="deduct", show_default=True, help="What rows do with them."
)
@click.option("--sources", metavar="A,B", help="Only these sources of statistics.")
@click.option("--double-filtering", is_flag=True, help="Show what applying partition filters twice would give.")
@click.option("--actual", is_flag=True, help="Count the rows, and give each estimate its q-error. Reads data.")
@click.option("--engines", metavar="A,B", help="Ask optimizers: duckdb, spark, or all.")
def estimate(
    table: Table, row_filter: str, columns: str | None, sources: str | None, engines: str | None, **how: Any
) -> Output:
    """Estimate how many rows and bytes satisfy FILTER, from each source of statistics side by side."""
    found = read_with_bar(table).estimate(
        row_filter,
        columns=split_names(columns),
        sources=split_names(sources),
        engines=True if engines == "all" else split_names(engines) or (),
        **how,
    )
    return Output(found.to_arrow(), found.to_json, text=f"{found!r}\n")


COMMANDS = (estimate,)
