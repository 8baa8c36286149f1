"""The statements that give Hive and Impala a table's statistics, with what was left out as comments.

Sources: Hive 4 `ColumnStatsUpdateTask`, `HiveIcebergStorageHandler`; Impala 4.5 `AlterTableSetColumnStats`,
`ColumnStats`, `IcebergSchemaConverter`, and its test `iceberg-compute-stats`; how Beeline cuts a script: Hive's
`Commands.removeComments`, `Commands.getCmdList`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from icestats.answers.text import CUTTING, can_stand, printable_lines, quote_name
from icestats.commit.engines.exported_table import ExportedColumn, ExportedTable
from icestats.commit.engines.hive_figures import find_hive_figures
from icestats.stats.rollup_cells import Figure

Values = Mapping[str, Figure]
"""What an engine is told of a column, by the engine's own names."""

_IMPALA_TYPES = frozenset(
    {"boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string", "binary"}
)


def write_hive_script(table: ExportedTable) -> str:
    """Return the statements for Hive.

    Notes
    -----
    Hive may answer min(), max() and count() from its statistics, so a smallest and a largest value and a count of nulls
    are in them only if they are exact for the live rows of this snapshot.
    """
    database, name = table.name
    lines = [
        *_comment(
            f"Statistics of {table.describe()}, for Hive.",
            "Hive 4 plans with them only after SET hive.iceberg.stats.source=metastore, or so in hive-site.xml. Its "
            "default, iceberg, knows none but what Hive's own ANALYZE has written. Hive 2 and 3 have no such setting.",
            "Nobody updates them: after the next commit of data they are old. Iceberg's partitions are none of the "
            "metastore's, so all figures are the table's.",
        ),
        f"USE {quote_name(database)};",
        *_row_count(table, f"ALTER TABLE {quote_name(name)} UPDATE STATISTICS SET", ""),
    ]
    start = f"ALTER TABLE {quote_name(name)} UPDATE STATISTICS FOR COLUMN"
    lines += _columns(
        table, _of_hive_script, lambda column, values: f"{start} {quote_name(column)} SET ({values});", CUTTING
    )
    return "\n".join([*lines, *_comment("To see them: DESCRIBE FORMATTED, the table, and a column.")]) + "\n"


def write_impala_script(table: ExportedTable) -> str:
    """Return the statements for Impala."""
    target = quote_name(*table.name)
    lines = [
        *_comment(
            f"Statistics of {table.describe()}, for Impala.",
            "Impala has no minimum and maximum in SET COLUMN STATS. A newer NDV that metadata.json lists wins over "
            "these, where --enable_reading_puffin_stats is set.",
            "Nobody updates them: after the next commit of data they are old. Impala counts the rows of partitions "
            "of Iceberg itself.",
            "The row count has no effect on a table of a Hive catalog: Iceberg writes it there with each commit.",
        ),
        *_row_count(table, f"ALTER TABLE {target} SET TBLPROPERTIES", ", 'STATS_GENERATED_VIA_STATS_TASK'='true'"),
    ]
    start = f"ALTER TABLE {target} SET COLUMN STATS"
    lines += _columns(table, _of_impala, lambda column, values: f"{start} {quote_name(column)} ({values});", ";`\\")
    return "\n".join([*lines, f"SHOW COLUMN STATS {target};"]) + "\n"


def _comment(*texts: str) -> Iterator[str]:
    # What comes from a table cannot end the line of a comment. None begins with a plus: to Impala, that is a hint.
    return (printable_lines([f"-- {text}"]) for text in texts)


def _row_count(table: ExportedTable, start: str, more: str) -> Iterator[str]:
    yield from _comment(f"rows: {table.row_count.provenance}")
    if table.row_count.value is not None:
        yield f"{start} ('numRows'='{table.row_count.value}'{more});"


def _columns(
    table: ExportedTable,
    find: Callable[[ExportedColumn], tuple[Values, str]],
    write: Callable[[str, str], str],
    forbidden: Collection[str],
) -> Iterator[str]:
    for column in table.columns:
        values, left_out = find(column)
        if not can_stand(column.name, forbidden):
            values, left_out = {}, "its name cannot stand in a script"
        said = describe_figures(values) + ([f"left out: {left_out}"] if left_out else [])
        yield from _comment(f"column {column.name}: {'; '.join(said)}")
        if values:
            yield write(column.name, ", ".join(f"'{name}'='{figure.value}'" for name, figure in values.items()))


def describe_figures(values: Values) -> list[str]:
    """Return where figures come from, those of one provenance together."""
    names: dict[str, list[str]] = {}
    for name, figure in values.items():
        names.setdefault(figure.provenance, []).append(name)
    return [f"{', '.join(own)}: {provenance}" for provenance, own in names.items()]


def _of_hive_script(column: ExportedColumn) -> tuple[Values, str]:
    if column.type == "timestamptz":
        return {}, "Hive has no statistics of type timestamp with local time zone"
    found = find_hive_figures(column)
    return ({}, found.left_out) if found.is_refused else (found.values, found.left_out)


def _of_impala(column: ExportedColumn) -> tuple[Values, str]:
    kind = column.type.partition("(")[0]
    if kind not in _IMPALA_TYPES:
        return {}, f"Impala has no statistics of type {column.type}"
    wanted = {"numNulls": "null_value_count"}
    if kind == "boolean":
        wanted |= {"numTrues": "true_count", "numFalses": "false_count"}
    elif kind != "binary":
        wanted = {"numDVs": "ndv"} | wanted
    if kind in ("string", "binary"):
        wanted |= {"maxSize": "max_length", "avgSize": "avg_length"}
    values = {name: column.figures[own] for name, own in wanted.items() if own in column.figures}
    return values, ", ".join(f"{name} is unknown" for name in wanted if name not in values)
