"""What makes Spark and Trino use the statistics of an Iceberg table, which they read themselves: nothing is exported.

Sources: Iceberg 1.12 `SparkScan`; Trino 476 `IcebergSessionProperties`, `TableStatisticsReader`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from icestats.answers.text import counted, printable_lines, quote_name
from icestats.commit.engines.exported_table import ExportedTable
from icestats.iceberg.metadata import Schema
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.read.puffin.statistics_users import is_zeroed_by_spark

_QUOTE = '"'


def write_spark_settings(
    table: ExportedTable, schema: Schema, blobs: Sequence[CommittedBlob], of_partitions: Collection[int]
) -> str:
    """Return the settings that make Spark read what is committed, the traps, and the statement that shows it.

    `of_partitions` is what `find_partition_values` finds.
    """
    used = _find_used("Spark", blobs, schema)
    types = {field.name: field.type for field in schema.top_level if field.field_id not in of_partitions}
    trapped = [name for name in used if is_zeroed_by_spark(types.get(name, ""), 2)]
    said = [
        f"{table.describe()}: Spark reads Iceberg's statistics itself, so nothing is exported.",
        *_found(
            used,
            "for exactly this snapshot, the only one whose statistics it reads",
            "icestats compute SOURCE --commit",
        ),
    ]
    traps = [
        "TRAP: Spark before 4.2 estimates 0 rows for an equality on numbers, dates and times that have an NDV, and for "
        "IN on booleans (SPARK-52868)"
        + (f": here {', '.join(trapped)}. " if trapped else ". ")
        + "Commit with list_ndv= (--list-ndv) to choose the columns.",
        "TRAP: remove the statistics before you drop a column that has a listed NDV, or joins of the table fail.",
        "Shows rowCount and sizes, estimated with these settings:",
    ]
    return _write(
        said,
        ["SET spark.sql.cbo.enabled=true;", "SET `spark.sql.iceberg.report-column-stats`=true;"],
        traps,
        f"EXPLAIN COST SELECT * FROM {quote_name(*table.name)};",  # noqa: S608 - the name is quoted
    )


def write_trino_settings(table: ExportedTable, schema: Schema, blobs: Sequence[CommittedBlob]) -> str:
    """Return the same for Trino."""
    used = _find_used("Trino", blobs, schema)
    catalog = quote_name(table.name[0], quote=_QUOTE)
    said = [
        f"{table.describe()}: Trino reads Iceberg's statistics itself, so nothing is exported.",
        *_found(used, "of the nearest ancestor that has statistics", "icestats compute SOURCE --commit"),
        "Smallest and largest values, and nulls, it takes from the manifests. The setting is true by default, as is "
        "extended_statistics_enabled, which Trino 480 removed; in the catalog's properties it is "
        "iceberg.table-statistics-enabled.",
    ]
    fixed = [column.name for column in table.columns if column.type.startswith("fixed")]
    traps = [
        "TRAP: one listed NDV that is no integer makes all of the table's statistics null.",
        "TRAP: an INSERT of Trino's writes a new statistics file without the distributions: commit them again.",
        *([f"TRAP: a query that selects {', '.join(fixed)} (fixed) has no statistics at all."] if fixed else []),
        "Shows row count, NDV, nulls and ranges:",
    ]
    statement = f"SHOW STATS FOR {quote_name(*table.name, quote=_QUOTE)};"
    return _write(said, [f"SET SESSION {catalog}.statistics_enabled = true;"], traps, statement)


def _find_used(engine: str, blobs: Sequence[CommittedBlob], schema: Schema) -> list[str]:
    ids = {field_id for found in blobs if engine in found.engines for field_id in found.blob.field_ids}
    return [field.name for field in schema.top_level if field.field_id in ids]


def _found(used: Sequence[str], whose: str, command: str) -> Iterator[str]:
    if used:
        yield f"It finds the NDV of {counted(len(used), 'column')}, {whose}: {', '.join(used)}."
    else:
        yield f"It finds no NDV now {whose}: run {command}."


def _write(said: Sequence[str], settings: Sequence[str], traps: Sequence[str], statement: str) -> str:
    comments = [[printable_lines([f"-- {text}"]) for text in texts] for texts in (said, traps)]
    return "\n".join([*comments[0], *settings, *comments[1], statement]) + "\n"
