"""How many rows match a filter, counted: by PyIceberg, or by Spark where PyIceberg cannot read the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icestats.errors import UnsupportedError
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.iceberg.filters.value_sets import build_tree
from icestats.iceberg.metadata import Field
from icestats.scan.actual_rows import count_groups, count_rows, count_rows_of_many
from icestats.snapshot.filter_sql import build_sql
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_matching(reader: SnapshotReader, row_filter: RowFilter, spark: SparkSession | None) -> tuple[int, str]:
    """Count the live rows that match a filter, and say who counted them.

    Raises
    ------
    UnsupportedError
        Neither PyIceberg nor Spark can read them.
    """
    try:
        rows = count_rows(reader.source, reader.snapshot, reader.schema, row_filter)
    except UnsupportedError:
        (rows,) = _count_with_spark(reader, [row_filter], spark)
        return rows, "Spark, as PyIceberg cannot read the table"
    return rows, "PyIceberg, over the files that the filter leaves"


def count_matching_groups(
    reader: SnapshotReader, row_filter: RowFilter, fields: Sequence[Field], spark: SparkSession | None
) -> tuple[int, str]:
    """Count the groups by some columns of the live rows that match a filter, and say who counted them.

    Raises
    ------
    UnsupportedError
        Neither PyIceberg nor Spark can read them.
    """
    try:
        return count_groups(reader.source, reader.snapshot, reader.schema, row_filter, fields), "PyIceberg"
    except UnsupportedError:
        (groups,) = _count_with_spark(reader, [row_filter], spark, [field.name for field in fields])
        return groups, "Spark, as PyIceberg cannot read the table"


def count_each_matching(
    reader: SnapshotReader, row_filters: Sequence[RowFilter], spark: SparkSession | None
) -> list[int]:
    """Count the live rows that match each filter, reading the table once.

    Raises
    ------
    UnsupportedError
        Neither PyIceberg nor Spark can read them.
    """
    try:
        return count_rows_of_many(reader.source, reader.snapshot, reader.schema, row_filters)
    except UnsupportedError:
        return _count_with_spark(reader, row_filters, spark)


def _count_with_spark(
    reader: SnapshotReader,
    row_filters: Sequence[RowFilter],
    spark: SparkSession | None,
    group_by: Sequence[str] = (),
) -> list[int]:
    from icestats.spark.optimizer import count_with_spark
    from icestats.spark.session_catalog import find_session

    if reader.snapshot is None:
        return [0] * len(row_filters)
    _refuse_promoted_dates(reader, row_filters)
    conditions = [build_sql(build_tree(one.condition), reader.schema, "spark", exact=True) for one in row_filters]
    session = find_session(reader.source, spark)
    return count_with_spark(session, reader.source, reader.snapshot, reader.schema, conditions, group_by)


def _refuse_promoted_dates(reader: SnapshotReader, row_filters: Sequence[RowFilter]) -> None:
    """Refuse filters on dates that have become timestamps (format version 3).

    Iceberg 1.12 in Spark takes the days in the bounds of older files for microseconds, and skips files that have
    matching rows.
    """
    for field in reader.schema.select(sorted({field_id for one in row_filters for field_id in one.field_ids})):
        known = [schema.get(field.field_id) for schema in reader.source.metadata.schemas.values()]
        if field.type.startswith("timestamp") and any(one is not None and one.type == "date" for one in known):
            raise UnsupportedError(
                f"the rows of {reader.source.name} cannot be counted: {field.name!r} was promoted from date to "
                f"{field.type}, which neither PyIceberg nor Spark reads"
            )
