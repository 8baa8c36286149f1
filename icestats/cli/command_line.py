"""The command line: the verbs of `Table`, one answer on stdout, one line on stderr where something is wrong.

Exit codes: 0 done, 1 an error of the table or the system, 2 a wrong call, 130 interrupted, 143 terminated, 129 hung up.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import re
import sys
import tempfile
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import click

from icestats.answers.text import counted, one_line
from icestats.cli.output import (
    Command,
    Output,
    Report,
    build_column_records,
    build_manifest_records,
    build_partition_records,
    build_sketch_records,
    describe_ages,
    terminal_progress,
    with_output,
    with_report,
)
from icestats.cli.session_options import StartSpark, start_for_scan, with_spark
from icestats.cli.workplace_verbs import build_demo_statistics, open_lab
from icestats.errors import CallError, IcestatsError, UnsupportedError
from icestats.estimation.formulas.source_estimates import DELETES
from icestats.iceberg.metadata import match_names
from icestats.table.table import Table, load

if TYPE_CHECKING:
    from icestats.stats.histogram import Histogram

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_AGE_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST_REPORT_SECONDS = 600


def run() -> int:
    """Run the command line; return its exit code, or raise KeyboardInterrupt."""
    # Without a handler, Python prints what PyIceberg and Thrift log; what went wrong is in the error line.
    for library in ("pyiceberg", "thrift"):
        logging.getLogger(library).addHandler(logging.NullHandler())
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = "icestats" if context is None else context.command_path
        _complain(error.format_message(), hint=f"; see `{command} --help`")
        code = 2
    except IcestatsError as error:
        _complain(str(error))
        code = 2 if isinstance(error, CallError) else 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, KeyboardInterrupt):
            # Click wraps it, and Python before 3.12 what interrupts the making of a class, as modules are imported.
            for note in getattr(cause, "__notes__", ()):
                _complain(note)
            raise KeyboardInterrupt from None
        if os.environ.get("ICESTATS_DEBUG"):
            raise
        # Click takes the end of a file for an interrupt, too.
        _complain(_explain_unexpected(cause if isinstance(cause, EOFError) else error))
        code = 1
    return code if isinstance(code, int) else 0


def _explain_unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        where = error.filename or f"the output, or in the folder for temporary files ({tempfile.gettempdir()})"
        return f"{error.strerror}: expected room for {where}; make some, or name another place (TMPDIR)"
    if isinstance(error, UnicodeEncodeError):
        letter = error.object[error.start : error.start + 1]
        return f"{letter!a} cannot be written in {error.encoding}: expected UTF-8; set PYTHONIOENCODING=utf-8"
    return f"{type(error).__name__}: {error} (ICESTATS_DEBUG=1 shows where)"


def _complain(message: str, hint: str = "") -> None:
    click.echo(f"icestats: {one_line(message, sys.maxsize).rstrip('.')}{hint}", err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="icestats")
def cli() -> None:
    """See, explain and complete the statistics of Apache Iceberg tables.

    SOURCE is catalog.namespace.table, namespace.table (the default catalog of PyIceberg's configuration), or the
    location of a metadata.json. demo.events and demo.flights are the tables of the embedded demo warehouse.
    """


def _with_table(command: Command) -> Any:
    """Give a command the options that choose a table and its snapshot; it gets the opened `table`."""

    @click.argument("source")
    @click.option("--snapshot", metavar="ID", help="Snapshot id; by default the current snapshot.")
    @click.option("--ref", metavar="NAME", help="Branch or tag.")
    @click.option("--as-of", metavar="TIME", help="Use the snapshot that was current at this time: ISO 8601, UTC.")
    @functools.wraps(command)
    def run(source: str, snapshot: str | None, ref: str | None, as_of: str | None, **others: Any) -> Any:
        return command(table=load(source, snapshot=snapshot, ref=ref, as_of=as_of), **others)

    return run


def _with_commit(command: Command) -> Any:
    """Give a command the options of a commit; it gets `commit`, and `how` to do it."""

    @click.option(
        "--commit/--dry-run", default=False, help="Write and register, or only show what would change (default)."
    )
    @click.option("--list-ndv", metavar="A,B", help="Columns whose NDV to list in metadata.json, where engines use it.")
    @click.option("--leave-earlier", is_flag=True, help="Do not keep the statistics of earlier snapshots in the file.")
    @functools.wraps(command)
    def run(list_ndv: str | None, leave_earlier: bool, **others: Any) -> Any:
        return command(how={"list_ndv": _split_names(list_ndv), "keep_earlier": not leave_earlier}, **others)

    return run


def _read_with_bar(table: Table) -> Table:
    """Read a table's manifests, with a bar on stderr where that takes longer than a second."""
    with terminal_progress(f"reading {table.name}", after_s=1.0) as progress:
        return table.read(progress=progress)


def _split_names(text: str | None) -> list[str] | None:
    """Return the names of a list with commas; None stays None."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CallError(f"{text!r:.80} names nothing: expected names with commas between, or leave the option out")
    return names


@cli.command("show")
@_with_table
@with_report
def _show(table: Table) -> Report:
    """Show totals and findings from metadata.json and the manifest list."""
    return lambda: table.overview().to_json(), table


@cli.command("manifests")
@_with_table
@with_output
def _manifests(table: Table) -> Output:
    """List manifests, with the statistics of their live files rolled up."""
    found = _read_with_bar(table).manifests()
    return Output(found, lambda rows: build_manifest_records(rows, table.schema))


@cli.command("partitions")
@_with_table
@with_output
def _partitions(table: Table) -> Output:
    """List partitions, with the statistics of their live files rolled up."""
    found = _read_with_bar(table).partitions()
    return Output(found, lambda rows: build_partition_records(rows, table.schema, table.metadata.specs))


@cli.command("columns")
@_with_table
@with_output
def _columns(table: Table) -> Output:
    """List columns, with their statistics rolled up over the table, and where each figure comes from."""
    found = _read_with_bar(table).columns()
    return Output(found, build_column_records, note=describe_ages(found))


@cli.command("reported")
@_with_table
@with_output
def _reported(table: Table) -> Output:
    """Show what `Table.to_spark` tells Spark's optimizer of each column, and where each figure comes from."""
    return Output(_read_with_bar(table).reported_statistics().to_arrow())


@cli.command("files")
@_with_table
@with_output
@click.option("--where", "row_filter", metavar="FILTER", help="Only data files that a scan with this filter reads.")
@click.option("--columns", metavar="A,B", help="Columns whose statistics to show.")
def _files(table: Table, row_filter: str | None, columns: str | None) -> Output:
    """List the live files: data files and delete files."""
    return Output(table.files(columns=_split_names(columns) or (), row_filter=row_filter))


@cli.command("sql")
@_with_table
@click.argument("query")
@with_output
def _sql(table: Table, query: str) -> Output:
    """Run a DuckDB query over the views manifests, files, partitions, columns, snapshots and refs."""
    return Output(table.sql(query))


@cli.command("estimate")
@_with_table
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
    found = _read_with_bar(table).estimate(
        row_filter,
        columns=_split_names(columns),
        sources=_split_names(sources),
        engines=True if engines == "all" else _split_names(engines) or (),
        **how,
    )
    return Output(found.to_arrow(), lambda _: found.to_json(), text=f"{found!r}\n")


@cli.command("plan")
@_with_table
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


@cli.command("layout")
@_with_table
@click.option("--columns", metavar="A,B", help="Columns beside the partition fields; by default their source columns.")
@with_report
def _layout(table: Table, columns: str | None) -> Report:
    """Show how well files and manifests are clustered, what is wrong, and the statement that fixes it."""
    found = table.layout(columns=_split_names(columns))
    return found.to_json, found


@cli.command("report")
@_with_table
@click.option("-o", "--output", metavar="PATH", required=True, help="The HTML file to write.")
@click.option("--filter", "row_filter", metavar="FILTER", default="", help="A filter to plan and to estimate.")
@click.option("--column", metavar="NAME", help="The column whose distribution is drawn.")
def _report(table: Table, output: str, row_filter: str, column: str | None) -> None:
    """Write what the explorer shows as one HTML file, which needs no network and no kernel."""
    if row_filter:
        table.bind(row_filter)
    explorer = _read_with_bar(table).explore(column=column)
    explorer.state.row_filter = row_filter
    if not explorer.wait(_LONGEST_REPORT_SECONDS):
        raise UnsupportedError(f"{table.name} was not read within {_LONGEST_REPORT_SECONDS:,} s; nothing was written")
    explorer.to_html(output)


@cli.command("sketches")
@_with_table
@with_output
def _sketches(table: Table) -> Output:
    """List the blobs of the committed statistics files."""
    found = table.sketches()
    return Output(found, build_sketch_records)


@cli.command("coverage")
@_with_table
@with_output
@click.option("--columns", metavar="A,B", help="Top-level columns; by default all.")
@click.option("--engines", metavar="A,B", help="Spark, Trino, Presto, Hive, Impala, DuckDB, icestats; by default all.")
def _coverage(table: Table, columns: str | None, engines: str | None) -> Output:
    """Show which statistics each engine's optimizer uses, has of SOURCE, and lacks, and the commands that help."""
    from icestats.estimation.coverage import render_coverage

    found = _read_with_bar(table).coverage(columns=_split_names(columns), engines=_split_names(engines))
    return Output(found, text=render_coverage(found))


@cli.command("histogram")
@_with_table
@click.argument("column")
@with_output
@click.option("--bins", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--kind", type=click.Choice(("equi-width", "equi-height")), default="equi-width", show_default=True)
@click.option("--where", metavar="FILTER", help="Use only these partitions; needs sketches by partition.")
@click.option("--lower", metavar="VALUE", help="Start of the range to draw.")
@click.option("--upper", metavar="VALUE", help="End of the range to draw.")
def _histogram(table: Table, column: str, **options: Any) -> Output:
    """Show a column's histogram from its committed KLL sketch, without touching data files."""
    from icestats.stats.histogram import UPPER_IS_CUT

    found = table.histogram(column, **options)
    is_part = options["lower"] is not None or options["upper"] is not None
    note = (_outside(found) if is_part else "") + (_behind(found) if found.commits_behind else "")
    cut = f"{UPPER_IS_CUT}\n" if found.upper_is_cut else ""
    return Output(found.to_arrow(), document=found.to_json(), note=note + cut)


def _behind(found: Histogram) -> str:
    return f"of snapshot {found.snapshot_id}, {counted(found.commits_behind or 0, 'commit')} behind\n"


def _outside(found: Histogram) -> str:
    error = found.rank_error * found.n
    within = f", each within {error:,.0f}" if error else ""
    return f"not drawn, of {found.n:,} values: {found.below:,.0f} below, {found.above:,.0f} above{within}\n"


@cli.command("compute")
@_with_table
@click.option(
    "--columns",
    metavar="A,B",
    help="Top-level columns, or patterns ('measure_*'); by default all that can be sketched.",
)
@click.option("--table", "of_table", is_flag=True, help="Make sketches of the table's columns: a scan with PySpark.")
@click.option("--partitions", is_flag=True, help="Make the partition statistics file, from manifests.")
@click.option("--manifests", is_flag=True, help="Make statistics of each manifest.")
@click.option(
    "--with-column-stats/--without-column-stats",
    default=None,
    help="Whether the partition statistics file has statistics of columns; by default as the one before.",
)
@click.option("--k", type=click.IntRange(8, 65_535), help="Size of KLL sketches; by default as committed, or 200.")
@click.option("--lg-k", type=click.IntRange(4, 26), help="Log2 of Theta's entries; by default as committed, or 12.")
@click.option("--by", type=click.Choice(("partition",)), help="Also keep the sketches of each partition.")
@click.option("--partition-k", type=click.IntRange(8, 65_535), help="Like --k, for partitions; by default what fits.")
@click.option("--partition-lg-k", type=click.IntRange(4, 26), help="Like --lg-k, for partitions; by default what fits.")
@click.option(
    "--max-size-bytes",
    type=click.IntRange(0),
    help="With --by: what sketches of table and partitions may take; by default 1% of the table's bytes.",
)
@click.option(
    "--together",
    metavar="A,B",
    multiple=True,
    help="Two columns that get statistics together, or 'auto': what a sample shows. May be given again.",
)
@with_spark
@_with_commit
@with_report
def _compute(
    table: Table,
    columns: str | None,
    together: tuple[str, ...],
    of_table: bool,
    commit: bool,
    how: dict[str, Any],
    start_spark: StartSpark | None,
    **options: Any,
) -> Report:
    """Compute statistics of the table, its partitions and manifests (all three by default); commit them on request."""
    from icestats.scan.scan_plan import select_columns

    if commit:
        table.check_commit()
    if not (of_table or options["partitions"] or options["manifests"]):
        of_table = options["partitions"] = options["manifests"] = True
    of_table = of_table or options["by"] is not None or bool(together)
    names = _split_names(columns)
    if how["list_ndv"]:
        scanned = select_columns(table.schema.top_level, names)[0] if of_table else []
        _check_listed(table, how["list_ndv"], {field.name for field in scanned})
    before = _describe_reading(table, names) if of_table else ""
    spark = start_for_scan(start_spark, table, of_table, "--table")
    with terminal_progress(f"scanning {table.name}", before=before) as progress:
        pairs = _split_pairs(together)
        found = table.compute(columns=names, table=of_table, together=pairs, progress=progress, spark=spark, **options)
    report = found.commit(dry_run=not commit, **how)
    return report.to_json, f"{found!r}\n{report}" if commit else f"{report}\n{found!r}"


def _check_listed(table: Table, listed: Sequence[str], read: Collection[str]) -> None:
    """Refuse columns whose NDV cannot be listed before the scan, which would be lost over them."""
    for name in listed:
        table.schema.find(name)
        if name not in read:
            raise CallError(f"--list-ndv names {name!r}, which is not among the columns that are read: leave it out")


def _split_pairs(together: tuple[str, ...]) -> list[tuple[str, str]] | Literal["auto"] | None:
    if not together:
        return None
    if together == ("auto",):
        return "auto"
    pairs = [text.split(",") for text in together]
    if wrong := [text for text, pair in zip(together, pairs, strict=True) if len(pair) != 2]:
        raise CallError(f"--together is {wrong[0]!r:.80}: expected two columns, such as country,city, or auto alone")
    return [(one, other) for one, other in pairs]


def _describe_reading(table: Table, columns: list[str] | None) -> str:
    from icestats.scan.scan_plan import select_columns
    from icestats.scan.scan_progress import describe_reading

    overview, known = table.overview(), table.schema.top_level
    count = len(select_columns(known, columns)[0])
    return describe_reading(table.name, count, len(known), overview.data_file_count, overview.file_size_in_bytes)


@cli.command("refresh-statistics")
@_with_table
@click.option("--columns", metavar="A,B", help="Top-level columns, or patterns; by default those with sketches.")
@click.option(
    "--max-size-bytes",
    type=click.IntRange(0),
    help="What sketches of table and partitions may take; by default as when they were made.",
)
@with_spark
@_with_commit
@with_report
def _refresh_statistics(
    table: Table,
    columns: str | None,
    max_size_bytes: int | None,
    commit: bool,
    how: dict[str, Any],
    start_spark: StartSpark | None,
) -> Report:
    """Update committed statistics to this snapshot, reading only the files added since where possible."""
    if commit:
        table.check_commit()
    if how["list_ndv"]:
        _check_listed(table, how["list_ndv"], _find_refreshed(table, _split_names(columns)))
    spark = None if start_spark is None else start_spark(table)
    with terminal_progress(f"refreshing {table.name}", after_s=1.0) as progress:
        found = table.refresh_statistics(
            columns=_split_names(columns), max_size_bytes=max_size_bytes, spark=spark, progress=progress
        )
    report = found.commit(dry_run=not commit, **how)
    return lambda: {**report.to_json(), "refresh": found.to_json()}, f"{found!r}\n{report}"


def _find_refreshed(table: Table, columns: list[str] | None) -> set[str]:
    if columns is not None:
        return set(match_names(columns, [field.name for field in table.schema.top_level]))
    sketches = table.sketches()
    of_ancestors = sketches.filter(sketches["commits_behind"].is_valid())
    return {name for names in of_ancestors["columns"].to_pylist() for name in names}


@cli.command("remove-statistics")
@_with_table
@click.option("--restore", is_flag=True, help="Restore what the last commit replaced, if it can be found.")
@click.option("--keep-partitions", is_flag=True, help="Leave the partition statistics file registered.")
@click.option("--expired", is_flag=True, help="Remove the entries of expired snapshots instead.")
@click.option("--yes", is_flag=True, help="Remove them; without this, only show what would change.")
@with_report
def _remove_statistics(table: Table, keep_partitions: bool, yes: bool, **options: bool) -> Report:
    """Undo a commit of statistics: remove the snapshot's entries from metadata.json."""
    report = table.remove_statistics(partitions=not keep_partitions, dry_run=not yes, **options)
    return report.to_json, report


@cli.command("export")
@_with_table
@click.option("--to", "engine", required=True, type=click.Choice(("hive", "impala", "spark", "trino")))
@click.option("--name", metavar="NAME", help="The table's name in the engine, such as db.table.")
@click.option("--metastore", metavar="URI", help="With hive: write to this metastore, thrift://host:port.")
@click.option("--bit-vectors", is_flag=True, help="With --metastore: scan for Hive's bit vectors, with PySpark.")
@click.option("--dry-run", is_flag=True, help="With --metastore: only show what would be written.")
@with_spark
def _export(table: Table, engine: str, start_spark: StartSpark | None, **options: Any) -> None:
    """Write the statements or settings that give an engine the known statistics, or write to a Hive metastore."""
    spark = start_for_scan(start_spark, table, options["bit_vectors"], "--bit-vectors")
    click.echo(_read_with_bar(table).export(engine, spark=spark, **options), nl=False)


@cli.command("orphans")
@_with_table
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
    age = _parse_age(older_than)
    if not remove:
        return Output(table.orphans())
    return Output(table.remove_orphans(age, dry_run=not yes, allow_recent=allow_recent, allow_referred=allow_referred))


def _parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no age: expected a whole number and s, m, h, d or w, such as 7d")
    return timedelta(**{_AGE_UNITS[match.group(2)]: int(match.group(1))})


cli.add_command(build_demo_statistics)
cli.add_command(open_lab)
