"""Verbs that read: what a table holds, what a scan reads of it, what an optimizer would estimate."""

from __future__ import annotations

import functools
from typing import Any

import click

from icestats.cli.output import Output
from icestats.cli.records import build_column_records, build_manifest_records, build_partition_records
from icestats.cli.verb_options import Report, read_with_bar, split_names, with_output, with_report, with_table
from icestats.estimation.formulas.source_estimates import DELETES
from icestats.table.table import Table


@click.command("show")
@with_table
@with_report
def _show(table: Table) -> Report:
    """Show totals and findings from metadata.json and the manifest list."""
    return lambda: table.overview().to_json(), table


@click.command("manifests")
@with_table
@with_output
def _manifests(table: Table) -> Output:
    """List manifests, with the statistics of their live files rolled up."""
    found = read_with_bar(table).manifests()
    return Output(found, lambda: build_manifest_records(found, table.schema))


@click.command("partitions")
@with_table
@with_output
def _partitions(table: Table) -> Output:
    """List partitions, with the statistics of their live files rolled up."""
    found = read_with_bar(table).partitions()
    return Output(found, lambda: build_partition_records(found, table.schema, table.metadata.specs))


@click.command("columns")
@with_table
@with_output
def _columns(table: Table) -> Output:
    """List columns, with their statistics rolled up over the table, and where each figure comes from."""
    found = read_with_bar(table).columns()
    return Output(found, lambda: build_column_records(found))


@click.command("files")
@with_table
@with_output
@click.option("--where", "row_filter", metavar="FILTER", help="Only data files that a scan with this filter reads.")
@click.option("--columns", metavar="A,B", help="Columns whose statistics to show.")
def _files(table: Table, row_filter: str | None, columns: str | None) -> Output:
    """List the live files: data files and delete files."""
    return Output(table.files(columns=split_names(columns) or (), row_filter=row_filter))


@click.command("sql")
@with_table
@click.argument("query")
@with_output
def _sql(table: Table, query: str) -> Output:
    """Run a DuckDB query over the views manifests, files, partitions, columns, snapshots and refs."""
    return Output(table.sql(query))


@click.command("estimate")
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
def _estimate(
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


@click.command("plan")
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
@with_report
def _plan(table: Table, row_filter: str, files: Any, row_groups: bool, rows: bool) -> Report:
    """Show what a scan with FILTER reads, step by step, and why."""
    found = table.plan(row_filter, row_groups=row_groups, rows=rows)
    return functools.partial(found.to_json, files), found


@click.command("layout")
@with_table
@click.option("--columns", metavar="A,B", help="Columns beside the partition fields; by default their source columns.")
@with_report
def _layout(table: Table, columns: str | None) -> Report:
    """Show how well files and manifests are clustered, what is wrong, and the statement that fixes it."""
    found = table.layout(columns=split_names(columns))
    return found.to_json, found


COMMANDS = (_show, _manifests, _partitions, _columns, _files, _sql, _estimate, _plan, _layout)
