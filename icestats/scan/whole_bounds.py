"""Bounds of columns that PyIceberg writes into manifests: of all row groups of a file, or none, once this is imported.

Parquet files have no extremes of a row group where one of these is longer than 4,096 bytes, as texts may be. PyIceberg
0.12 then takes those of the other row groups for the file's, and engines skip files that have matching rows
(`data_file_statistics_from_parquet_metadata`).
"""

from __future__ import annotations

import functools
from typing import Any

from pyiceberg.io import pyarrow as writer

_REAL = frozenset({"FLOAT", "DOUBLE"})
"""Without extremes where all values are NaN, of which bounds say nothing."""
_build_statistics = writer.data_file_statistics_from_parquet_metadata


@functools.wraps(_build_statistics)
def _build_whole_statistics(
    parquet_metadata: Any, stats_columns: Any, parquet_column_mapping: dict[str, int]
) -> writer.DataFileStatistics:
    found = _build_statistics(parquet_metadata, stats_columns, parquet_column_mapping)
    for place in range(parquet_metadata.num_row_groups):
        group = parquet_metadata.row_group(place)
        for column in (group.column(number) for number in range(group.num_columns)):
            if not _has_extremes(column):
                found.column_aggregates.pop(parquet_column_mapping[column.path_in_schema], None)
    return found


def _has_extremes(column: Any) -> bool:
    """Whether a row group has the extremes of a column, or the column no values there."""
    known = column.statistics
    if known is None or known.has_min_max:
        return known is not None
    return column.physical_type in _REAL or (known.has_null_count and known.null_count == column.num_values)


writer.data_file_statistics_from_parquet_metadata = _build_whole_statistics
