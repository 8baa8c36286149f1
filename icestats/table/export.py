"""A table's statistics for an engine: what is known of it is gathered here, and written by `commit.engines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from icestats.answers.text import counted
from icestats.commit.engines.exported_table import ExportedTable, build_exported_columns, find_row_count, split_name
from icestats.commit.engines.metastore import ColumnSketches, write_to_metastore
from icestats.commit.engines.settings import write_spark_settings, write_trino_settings
from icestats.commit.engines.statements import write_hive_script, write_impala_script
from icestats.errors import MetadataError, StatisticsMissingError
from icestats.estimation.evidence import Evidence
from icestats.iceberg.metadata import Field
from icestats.read.puffin.committed_sketches import read_kll
from icestats.read.puffin.statistics_users import find_partition_values
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.histogram import Histogram
from icestats.stats.hive_sketches import BIT_VECTOR_ERROR, has_bit_vector, write_bit_vector, write_float_kll
from icestats.stats.kll_items import item_type_of
from icestats.table.overview import build_overview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCRIPTS: Mapping[str, Callable[[ExportedTable], str]] = {"hive": write_hive_script, "impala": write_impala_script}
ENGINES = (*_SCRIPTS, "spark", "trino")
_MOST_NAMESPACES = 16


def export_table(reader: SnapshotReader, engine: str, name: str | None) -> str:
    """Return what an engine needs to be told, as `Table.export` does without a metastore."""
    table = _gather_table(reader, engine, name)
    if engine in _SCRIPTS:
        return _SCRIPTS[engine](table)
    if engine == "trino":
        return write_trino_settings(table, reader.schema, reader.usable_blobs)
    of_partitions = find_partition_values(reader.source.metadata.specs.values())
    return write_spark_settings(table, reader.schema, reader.usable_blobs, of_partitions)


def export_to_metastore(
    reader: SnapshotReader,
    uri: str,
    name: str | None,
    *,
    bit_vectors: bool,
    dry_run: bool,
    spark: SparkSession | None,
) -> str:
    """Write a table's statistics to a Hive metastore; return in words what was written."""
    table = _gather_table(reader, "hive", name)
    sketches = {field.name: _find_sketches(reader, field) for field in reader.schema.top_level if field.is_primitive}
    if bit_vectors and not dry_run and reader.snapshot is not None:
        # A scan is long: first see that the metastore answers, and has the table.
        write_to_metastore(uri, table, sketches, dry_run=True)
        from icestats.spark.hive_bit_vectors import scan_bit_vectors
        from icestats.spark.session_catalog import find_session

        fields = [one for one in reader.schema.top_level if one.is_primitive and has_bit_vector(one.type)]
        session = find_session(reader.source, spark)
        found = scan_bit_vectors(session, reader.source, reader.snapshot, reader.schema, fields)
        note = f"bit vector (HyperLogLog of every value, standard error {BIT_VECTOR_ERROR:.1%}, this snapshot)"
        for column, registers in found.items():
            own = sketches[column]
            sketches[column] = replace(own, bit_vector=write_bit_vector(registers), notes=(*own.notes, note))
    return write_to_metastore(uri, table, sketches, dry_run=dry_run)


def _gather_table(reader: SnapshotReader, engine: str, name: str | None) -> ExportedTable:
    source, of_hive = reader.source, engine in _SCRIPTS
    known = source.identifier
    if known is not None and not of_hive and source.catalog_name is not None:
        known = (source.catalog_name, *known)
    most = 2 if of_hive else _MOST_NAMESPACES
    parts = split_name(name, known, engine.capitalize(), 2, most)
    fields = {field.field_id: field for field in reader.schema.top_level}
    rows = [row for row in reader.read_columns().to_pylist() if row["field_id"] in fields]
    nested = [field for field in fields.values() if not field.is_primitive]
    evidence = Evidence(reader)
    booleans = {i: found for i, field in fields.items() if (found := _count_booleans(evidence, field)) is not None}
    columns = build_exported_columns(rows, booleans, nested)
    totals = build_overview(source.name, source.metadata, reader.snapshot, reader.schema, reader.manifest_files)
    row_count = find_row_count(rows, totals.record_count, totals.delete_file_count)
    current = source.metadata.find_snapshot(None, None)
    return ExportedTable(source.name, parts, reader.snapshot, reader.snapshot == current, row_count, columns)


def _count_booleans(evidence: Evidence, field: Field) -> Histogram | None:
    if field.type != "boolean" or evidence.spare(evidence.read_distribution, field) is None:
        return None
    return evidence.reader.read_histogram(field, bins=2, kind="equi-width")


def _find_sketches(reader: SnapshotReader, field: Field) -> ColumnSketches:
    if item_type_of(field.type) is None:
        return ColumnSketches()
    try:
        found = read_kll(reader.source.storage, reader.blobs, field)
    except (StatisticsMissingError, MetadataError):
        return ColumnSketches()
    histogram = write_float_kll(found.sketch, field.type)
    if histogram is None:
        return ColumnSketches()
    behind = f"{counted(found.commits_behind, 'commit')} behind" if found.commits_behind else "this snapshot"
    note = f"histogram (KLL of {found.sketch.n:,} values, ranks within {found.sketch.rank_error:.2%}, {behind})"
    return ColumnSketches(histogram=histogram, notes=(note,))
