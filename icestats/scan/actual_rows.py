"""The truth beside estimates: live rows that satisfy a filter, counted by reading them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks
from icestats.answers.text import one_line
from icestats.errors import UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Schema, Snapshot
from icestats.plan.filters.row_filter import RowFilter
from icestats.scan.scan_job import gather
from icestats.scan.scan_plan import open_scan

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema


def count_rows(source: Source, snapshot: Snapshot | None, schema: Schema, row_filter: RowFilter) -> int:
    """Count the live rows that satisfy a filter, in the files that it leaves; deletes are applied.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot or None
        The snapshot; None: no rows.
    schema : Schema
        The schema that the snapshot is read with.
    row_filter : RowFilter
        The filter.

    Raises
    ------
    UnsupportedError
        PyIceberg cannot read the files: equality deletes, ORC.
    """
    if snapshot is None:
        return 0
    scan = open_scan(source, snapshot, schema)
    with _explained_errors(source):
        try:
            return _count(scan.select(*_columns([row_filter], scan.projection())), row_filter)
        except TypeError:
            # PyIceberg compares null partition values of truncate with literals: read without planning by the filter.
            return count_rows_of_many(source, snapshot, schema, [row_filter])[0]


def count_rows_of_many(
    source: Source, snapshot: Snapshot | None, schema: Schema, row_filters: Sequence[RowFilter]
) -> list[int]:
    """Count the live rows that satisfy each of some filters, reading their columns of the whole table once.

    Parameters
    ----------
    source, snapshot, schema
        As in `count_rows`.
    row_filters : sequence of RowFilter
        The filters.

    Raises
    ------
    UnsupportedError
        As in `count_rows`.
    """
    if snapshot is None or not row_filters:
        return [0] * len(row_filters)
    from pyiceberg.io.pyarrow import expression_to_pyarrow

    scan = open_scan(source, snapshot, schema)
    projection = scan.projection()
    conditions = [expression_to_pyarrow(one.bound, projection) for one in row_filters]
    counts = [0] * len(conditions)
    with _explained_errors(source):
        for table in gather(scan.select(*_columns(row_filters, projection)).to_arrow_batch_reader()):
            for place, condition in enumerate(conditions):
                counts[place] += table.filter(condition).num_rows
    return counts


def _excludes(expression: Any) -> bool:
    """Whether a filter excludes values: PyIceberg's residuals hold those for true of partitions that are null."""
    from pyiceberg import expressions as e

    if isinstance(expression, e.And | e.Or):
        return _excludes(expression.left) or _excludes(expression.right)
    return isinstance(expression, e.BoundNotEqualTo | e.BoundNotIn | e.BoundNotStartsWith)


JoinInput = tuple[Source, Snapshot | None, Schema, RowFilter, str]
"""Table, snapshot, schema, filter and key column of one side of a join."""


def count_join_rows(left: JoinInput, right: JoinInput) -> int:
    """Count the rows of an equi-join, from how often each key is on each side; null keys meet none.

    Raises
    ------
    UnsupportedError
        PyIceberg cannot read the files, or the keys cannot be compared.
    """
    one, other = _key_counts(*left), _key_counts(*right)
    try:
        keys = other["key"].cast(one["key"].type)
    except pa.ArrowException as error:
        raise UnsupportedError(f"{left[-1]} and {right[-1]} cannot be compared: {error}") from error
    both = one.join(pa.table({"key": keys, "other_count": other["count"]}), "key", join_type="inner")
    return int(pc.sum(pc.multiply(both["count"], both["other_count"])).as_py() or 0)


def _key_counts(source: Source, snapshot: Snapshot | None, schema: Schema, row_filter: RowFilter, key: str) -> pa.Table:
    if snapshot is None:
        return pa.table({"key": pa.array([], pa.int64()), "count": pa.array([], pa.int64())})
    scan = open_scan(source, snapshot, schema).filter(row_filter.expression).select(key)
    with _explained_errors(source):
        counted = combine_chunks(scan.to_arrow()[key]).drop_null().value_counts()
    return pa.table({"key": counted.field("values"), "count": counted.field("counts")})


def _count(scan: Any, row_filter: RowFilter) -> int:
    """Files that partition values answer for are counted by their metadata; others are read, several at a time."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow

    rows, to_read = 0, []
    decides = not _excludes(row_filter.bound)
    for task in scan.filter(row_filter.expression).plan_files():
        if decides and task.residual == AlwaysTrue() and not task.delete_files:
            rows += task.file.record_count
        else:
            to_read.append(task)
    if to_read:
        # Arrow prunes row groups wrongly where NaN matches: whole files are read, and filtered afterwards.
        reader = ArrowScan(scan.table_metadata, scan.io, scan.projection(), AlwaysTrue(), scan.case_sensitive)
        condition = expression_to_pyarrow(row_filter.bound, scan.projection())
        rows += sum(table.filter(condition).num_rows for table in gather(reader.to_record_batches(to_read)))
    return int(rows)


def _columns(row_filters: Sequence[RowFilter], schema: IcebergSchema) -> list[str]:
    from pyiceberg.expressions.visitors import extract_field_ids

    ids = {field_id for one in row_filters for field_id in extract_field_ids(one.bound)}
    names = {(schema.find_column_name(field_id) or "").split(".")[0] for field_id in ids}
    return sorted(names) or [schema.fields[0].name]


@contextmanager
def _explained_errors(source: Source) -> Iterator[None]:
    try:
        yield
    except (NotImplementedError, ValueError, OSError) as error:
        raise UnsupportedError(
            f"the rows of {source.name} cannot be counted by PyIceberg: {one_line(error)}; "
            "Table.estimate(..., actual=True) counts them with Spark"
        ) from error
