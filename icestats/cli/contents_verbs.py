"""Verbs about what a table holds."""

from __future__ import annotations

import click

from icestats.cli.output import Output, write_json
from icestats.cli.records import (
    build_column_records,
    build_manifest_records,
    build_partition_records,
    build_plain_records,
)
from icestats.cli.verb_options import read_with_bar, split_names, text_or_json, with_output, with_table
from icestats.table.table import Table


@click.command()
@with_table
@text_or_json
def show(table: Table, output_format: str) -> None:
    """Show totals and findings from metadata.json and the manifest list."""
    if output_format == "json":
        write_json(table.overview().to_json(), None)
    else:
        click.echo(repr(table))


@click.command()
@with_table
@with_output
def manifests(table: Table) -> Output:
    """List manifests, with the statistics of their live files rolled up."""
    found = read_with_bar(table).manifests()
    return Output(found, lambda: build_manifest_records(found, table.schema))


@click.command()
@with_table
@with_output
def partitions(table: Table) -> Output:
    """List partitions, with the statistics of their live files rolled up."""
    found = read_with_bar(table).partitions()
    return Output(found, lambda: build_partition_records(found, table.schema, table.metadata.specs))


@click.command()
@with_table
@with_output
def columns(table: Table) -> Output:
    """List columns, with their statistics rolled up over the table, and where each figure comes from."""
    found = read_with_bar(table).columns()
    return Output(found, lambda: build_column_records(found))


@click.command()
@with_table
@with_output
@click.option("--where", "row_filter", metavar="FILTER", help="Only data files that a scan with this filter reads.")
@click.option("--columns", metavar="A,B", help="Columns whose statistics to show.")
def files(table: Table, row_filter: str | None, columns: str | None) -> Output:
    """List the live files: data files and delete files."""
    found = table.files(columns=split_names(columns) or (), row_filter=row_filter)
    return Output(found, lambda: build_plain_records(found))


@click.command()
@with_table
@click.argument("query")
@with_output
def sql(table: Table, query: str) -> Output:
    """Run a DuckDB query over the views manifests, files, partitions, columns, snapshots and refs."""
    found = table.sql(query)
    return Output(found, lambda: build_plain_records(found))


COMMANDS = (show, manifests, partitions, columns, files, sql)
