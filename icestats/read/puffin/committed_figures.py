"""What committed statistics say of a column, each figure with where it comes from and how good it is."""

from __future__ import annotations

from collections.abc import Iterator

from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.storage import FileReader
from icestats.iceberg.types import has_lengths
from icestats.read.puffin.committed_sketches import read_frequent_blob
from icestats.read.puffin.statistics_age import MERGED
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    THETA,
    CommittedBlob,
    CommittedBlobs,
)
from icestats.stats.frequent_items import describe_values
from icestats.stats.rollup_cells import Figure
from icestats.stats.table_statistics import ColumnStatistics, read_column_statistics
from icestats.stats.theta import ThetaSketch

_COMMON_SHOWN = 5


def find_figures(blobs: CommittedBlobs, schema: Schema) -> Iterator[tuple[CommittedBlob, Field]]:
    """Yield the blobs that have figures of a column of a schema, with the column, the nearest first."""
    for one in blobs.nearest:
        field = schema.get(one.blob.field_ids[0]) if len(one.blob.field_ids) == 1 else None
        is_stated = one.blob.type == THETA and one.ndv is not None
        if field is not None and (is_stated or one.blob.type in (COLUMN_STATISTICS, FREQUENT_ITEMS)):
            yield one, field


def read_committed_figures(storage: FileReader, found: CommittedBlob, field: Field) -> dict[str, Figure]:
    """Read the figures of a column that a committed blob adds to the roll-ups.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    found : CommittedBlob
        Of `find_figures`.
    field : Field
        The column. Statistics of a type that it no longer has are left out.

    Returns
    -------
    dict of str to Figure
        `ndv`, an estimate; the counts of values, nulls and NaN, the smallest and the largest value (as bounds),
        `avg_length` and `max_length` in bytes, exact for the live rows of their snapshot; `common_values`, as
        `schemas.COLUMNS` has them, and the `row_count` that they are of.

    Raises
    ------
    PuffinFormatError
        The blob is damaged.
    """
    if found.blob.type == THETA:
        return {"ndv": Figure(found.ndv, f"estimate: {_read_theta_error(storage, found)}, {_age(found)}")}
    if found.blob.type == COLUMN_STATISTICS:
        column = found.read(storage, "not column statistics", read_column_statistics).get(field.field_id)
        return {} if column is None or column.type != field.type else _column_figures(column, found)
    return _common_figures(storage, found, field)


def _common_figures(storage: FileReader, found: CommittedBlob, field: Field) -> dict[str, Figure]:
    items = read_frequent_blob(storage, found, field)
    if items.values.type != field.type:
        return {}
    row_count = items.values.value_count + items.null_count + items.nan_count
    rows = describe_values(items.values, row_count, _COMMON_SHOWN)
    provenance = f"bound: rows at least and at most, as counted over the live rows, {_age(found)}"
    return {"common_values": Figure(rows, provenance), "row_count": Figure(row_count, provenance)}


def _column_figures(column: ColumnStatistics, found: CommittedBlob) -> dict[str, Figure]:
    counts = ("value_count", "null_value_count", "nan_value_count")
    extremes = {"lower_bound": column.min_value, "upper_bound": column.max_value}
    lengths = {"avg_length": column.avg_length, "max_length": column.max_length} if has_lengths(column.type) else {}
    values = {name: getattr(column, name) for name in counts} | extremes | lengths
    if found.commits_behind:
        other = f"the exact one that is committed is of {_age(found)}"
        figures = {name: Figure(value, other, is_current=False) for name, value in values.items()}
        then = f"estimate: exact over the live rows of {_age(found)}"
        return figures | {name: Figure(lengths[name], then) for name in lengths if lengths[name] is not None}
    exact, none = (f"{what} the live rows, {_age(found)}" for what in ("exact: over", "none: no value in"))
    return {name: Figure(value, none if value is None else exact) for name, value in values.items()}


def _read_theta_error(storage: FileReader, found: CommittedBlob) -> str:
    sketch, stated = found.read(storage, "a Theta sketch", ThetaSketch.from_bytes), found.ndv or 0
    # An empty value is one more: Theta leaves it out. Beyond twice the error no sketch in ten thousand is.
    if not -2 * sketch.relative_error * sketch.ndv <= stated - sketch.ndv <= 1 + 2 * sketch.relative_error * sketch.ndv:
        return f"as its writer states it, whose Theta sketch has {sketch.ndv:,}"
    if found.is_merged:
        return f"Theta sketch that {MERGED}"
    if sketch.is_exact:
        return "Theta sketch that still holds every value, so exact but for hash collisions"
    cut = "" if sketch.ndv <= stated else ", cut to the number of values that are not null"
    return f"Theta sketch, within {sketch.relative_error:.1%} at 95% confidence{cut}"


def _age(found: CommittedBlob) -> str:
    if not found.commits_behind:
        return "this snapshot"
    commits = "1 commit" if found.commits_behind == 1 else f"{found.commits_behind:,} commits"
    return f"snapshot {found.blob.snapshot_id}, {commits} behind"
