"""Common values of columns, and of pairs of columns, as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.answers.schemas import COLUMNS_TOGETHER, FREQUENT_VALUES
from icestats.errors import CallError
from icestats.iceberg.metadata import Field
from icestats.read.puffin.committed_sketches import CommittedJoint, find_joint, read_frequent_items, read_joint
from icestats.snapshot.snapshot_reader import Partial, SnapshotReader
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.frequent_items import describe_values, to_text
from icestats.stats.joint_statistics import JointItem

if TYPE_CHECKING:
    from icestats.iceberg.filters.row_filter import RowFilter

_PAIRS_SHOWN = 10


def build_frequent_values(
    reader: SnapshotReader, field: Field, row_filter: RowFilter | None = None, partial: Partial = "refuse"
) -> pa.Table:
    """Build the table of a column's common values.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    field : Field
        The column.
    row_filter : RowFilter, optional
        Of the partitions that this selects only.
    partial : {"refuse", "include", "leave out"}
        As for `SnapshotReader.read_partition_sketches`.

    Returns
    -------
    pyarrow.Table
        `schemas.FREQUENT_VALUES`.

    Raises
    ------
    CallError
        The column can have no sketch.
    FilterError
        The filter selects parts of partitions.
    StatisticsMissingError
        None have been committed.
    """
    if reason := can_sketch(field):
        raise CallError(f"column {field.name!r}: {reason}")
    reader.require_snapshot()
    found = (
        read_frequent_items(reader.source.storage, reader.blobs, field)
        if row_filter is None
        else reader.read_partition_items(field, row_filter, partial=partial)
    )
    values, row_count = found.values, found.values.value_count + found.null_count + found.nan_count
    rows = describe_values(values, row_count)
    if values.others_at_most:
        share = values.others_at_most / 2 / row_count
        rows.append({"value": None, "rows_at_least": 0, "rows_at_most": values.others_at_most, "share": share})
    age = {"snapshot_id": found.snapshot_id, "commits_behind": found.commits_behind}
    rows = [row | age for row in rows]
    return pa.Table.from_pylist(rows, FREQUENT_VALUES)


def build_columns_together(reader: SnapshotReader) -> pa.Table:
    """Build the table of the pairs of columns that have statistics together.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.

    Returns
    -------
    pyarrow.Table
        `schemas.COLUMNS_TOGETHER`.
    """
    blobs = find_joint(reader.blobs).values()
    joints = [one for blob in blobs if (one := read_joint(reader.source.storage, blob, reader.schema)) is not None]
    joints.sort(key=lambda one: max(one.statistics.strength(0), one.statistics.strength(1)), reverse=True)
    return pa.Table.from_pylist([_describe(reader, one) for one in joints], COLUMNS_TOGETHER)


def _describe(reader: SnapshotReader, found: CommittedJoint) -> dict[str, Any]:
    statistics = found.statistics
    one, other = (field.name for field in reader.schema.select(statistics.field_ids))
    return {
        "first": one,
        "second": other,
        "first_decides_second": statistics.strength(0),
        "second_decides_first": statistics.strength(1),
        "ndv": statistics.ndv,
        "row_count": statistics.row_count,
        "common_pairs": [_show_pair(statistics.types, item) for item in statistics.items[:_PAIRS_SHOWN]],
        "snapshot_id": found.snapshot_id,
        "commits_behind": found.commits_behind,
    }


def _show_pair(types: tuple[str, str], item: JointItem) -> dict[str, Any]:
    one, other = (None if v is None else to_text(t, v) for t, v in zip(types, item.pair, strict=True))
    return {"first": one, "second": other, "rows_at_least": item.lower, "rows_at_most": item.upper}
