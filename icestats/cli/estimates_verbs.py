"""Verbs about estimates of optimizers."""

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
@click.option("--columns", metavar="A,B", help="Count the bytes of these columns only; by default all.")
@click.option(
    "--deletes", type=click.Choice(DELETES), default="deduct", show_default=True, help="How to treat row-level deletes."
)
@click.option("--sources", metavar="A,B", help="Use only these sources of statistics.")
@click.option("--double-filtering", is_flag=True, help="Also show the result of applying partition filters twice.")
@click.option("--actual", is_flag=True, help="Count the rows, and show the q-error of each estimate. Reads data.")
@click.option("--engines", metavar="A,B", help="Ask these optimizers: duckdb, spark, or all.")
def estimate(
    table: Table, row_filter: str, columns: str | None, sources: str | None, engines: str | None, **how: Any
) -> Output:
    """Estimate how many rows and bytes match FILTER, from each source of statistics."""
    found = read_with_bar(table).estimate(
        row_filter,
        columns=split_names(columns),
        sources=split_names(sources),
        engines=True if engines == "all" else split_names(engines) or (),
        **how,
    )
    return Output(found.to_arrow(), found.to_json, text=f"{found!r}\n")


COMMANDS = (estimate,)
