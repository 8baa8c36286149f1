"""The sketches of a column that are nearest to a snapshot, and whether they are of what the column is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from icestats.errors import StatisticsMissingError
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.storage import FileReader
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    PARTITION_SKETCHES,
    THETA,
    CommittedBlob,
    CommittedBlobs,
)
from icestats.stats.frequent_items import FrequentValues, read_frequent_values
from icestats.stats.joint_statistics import JointStatistics, read_joint_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of
from icestats.stats.table_statistics import read_column_statistics

_COMPUTE = "table.compute(columns=[{}]).commit(), or `icestats compute SOURCE --commit`"
_MISSING = {
    THETA: ("Theta sketch", _COMPUTE),
    KLL: ("KLL sketch", _COMPUTE),
    FREQUENT_ITEMS: ("frequent items", _COMPUTE),
    PARTITION_SKETCHES: ("sketch by partition", 'table.compute(columns=[{}], by="partition").commit()'),
}
_WHOLE_ITEMS = frozenset({"long", "decimal"})
"""Both are whole numbers: a column's items are of the second once its decimals have become longer."""


@dataclass(frozen=True, slots=True)
class CommittedKll:
    """A committed KLL sketch, and the counts of nulls and NaN that were committed with it."""

    sketch: KllSketch
    snapshot_id: int
    commits_behind: int
    null_count: int | None
    nan_count: int | None


@dataclass(frozen=True, slots=True)
class CommittedFrequentValues:
    """The committed common values of a column, and the counts of nulls and NaN that were committed with them."""

    values: FrequentValues
    snapshot_id: int
    commits_behind: int
    null_count: int
    nan_count: int
    size_bytes: int
    """Of the blob."""


def find_nearest(blobs: CommittedBlobs, blob_type: str, field: Field) -> CommittedBlob:
    """Return the blob of a column, of type THETA, KLL or PARTITION_SKETCHES, that is the fewest commits behind.

    Raises
    ------
    StatisticsMissingError
        None has been committed for the snapshot or an ancestor of it.
    """
    own = blobs.by_columns.get((field.field_id,), ())
    found = next((one for one in own if one.blob.type == blob_type), None)
    if found is None:
        what, advice = _MISSING[blob_type]
        raise StatisticsMissingError(
            f"no {what} of column {field.name!r} has been committed for this snapshot or an ancestor of it: "
            f"run {advice.format(repr(field.name))}"
        )
    return found


def find_stated_type(storage: FileReader, blobs: CommittedBlobs, sketch: CommittedBlob) -> str | None:
    """Return the type of a sketch's values as the column statistics beside it state it; None: they do not.

    Those of the same snapshot in another file may have been made when the column had another type.

    Raises
    ------
    PuffinFormatError
        The blob is damaged.
    """
    place = sketch.blob.snapshot_id, sketch.statistics_path
    for found in blobs.by_columns.get(sketch.blob.field_ids, ()):
        if found.blob.type == COLUMN_STATISTICS and (found.blob.snapshot_id, found.statistics_path) == place:
            column = found.read(storage, "not column statistics", read_column_statistics).get(sketch.blob.field_ids[0])
            return None if column is None else column.type
    return None


def check_unit(field: Field, type_then: str | None) -> None:
    """Refuse sketches of values that the column does not count as its own.

    Those are days for timestamps, timestamps for a snapshot of before their promotion from days, and bytes of another
    type than the column's: none is promoted, and the order of uuids takes 16 bytes for granted. Neither has a column
    that is nested now any: `create or replace table` gives it the id of the earlier one of its name.

    Raises
    ------
    StatisticsMissingError
        They are.
    """
    has_items = field.is_primitive and item_type_of(field.type) is not None
    is_other = (type_then == "date") != (field.type == "date") or not has_items
    if type_then is not None and type_then != field.type and is_other:
        raise StatisticsMissingError(
            f"the sketches of column {field.name!r} are of when its type was {type_then}, and it is {field.type} here"
            + (f": run {_COMPUTE.format(repr(field.name))}" if field.is_primitive else "")
        )


def check_items(field: Field, item_type: str | None) -> None:
    """Refuse KLL sketches whose items are no values of their column, as another writer may have made them.

    Raises
    ------
    StatisticsMissingError
        They are.
    """
    expected = item_type_of(field.type)
    if item_type != expected and not {item_type, expected} <= _WHOLE_ITEMS:
        raise StatisticsMissingError(
            f"the sketches of column {field.name!r} have items of type {item_type!s:.80}, and the column is "
            f"{field.type}: run {_COMPUTE.format(repr(field.name))}"
        )


def read_kll(storage: FileReader, blobs: CommittedBlobs, field: Field) -> CommittedKll:
    """Read the nearest committed KLL sketch of a column.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    blobs : CommittedBlobs
        The table's blobs, as `read_committed_blobs` gives them.
    field : Field
        The column.

    Raises
    ------
    StatisticsMissingError
        No KLL sketch of the column has been committed for the snapshot or an ancestor of it, or one of days for
        timestamps or the other way round, or one of other items than the column's.
    PuffinFormatError
        The blob is damaged.
    """
    found = find_nearest(blobs, KLL, field)
    item_type = found.blob.properties.get("item-type", "double")
    check_items(field, item_type)
    if field.type.startswith(("date", "timestamp")):
        check_unit(field, find_stated_type(storage, blobs, found))
    properties = found.blob.properties
    parse = partial(KllSketch.from_bytes, item_type)
    return CommittedKll(
        sketch=found.read(storage, f"the KLL sketch of column {field.name!r}", parse),
        snapshot_id=found.blob.snapshot_id,
        commits_behind=found.commits_behind or 0,
        null_count=parse_count(properties.get("null-count")),
        nan_count=parse_count(properties.get("nan-count")),
    )


def read_frequent_items(storage: FileReader, blobs: CommittedBlobs, field: Field) -> CommittedFrequentValues:
    """Read the nearest committed common values of a column.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    blobs : CommittedBlobs
        The table's blobs, as `read_committed_blobs` gives them.
    field : Field
        The column.

    Raises
    ------
    StatisticsMissingError
        None have been committed for the snapshot or an ancestor of it, or those of another type than the column's.
    PuffinFormatError
        The blob is damaged.
    """
    found = find_nearest(blobs, FREQUENT_ITEMS, field)
    items = read_frequent_blob(storage, found, field)
    check_items(field, item_type_of(items.values.type))
    check_unit(field, items.values.type)
    return items


def read_frequent_blob(storage: FileReader, found: CommittedBlob, field: Field) -> CommittedFrequentValues:
    """Return what a blob of frequent items holds; raise PuffinFormatError where it is damaged."""
    what = f"the frequent items of column {field.name!r}"
    values = found.read(storage, what, read_frequent_values)
    nulls, nans = (parse_count(found.blob.properties.get(name)) for name in ("null-count", "nan-count"))
    if nulls is None or nans is None:
        reason = f"{what}: the blob does not say how many nulls and NaN there are"
        raise found.refuse(reason)
    behind = found.commits_behind or 0
    return CommittedFrequentValues(values, found.blob.snapshot_id, behind, nulls, nans, found.blob.length)


@dataclass(frozen=True, slots=True)
class CommittedJoint:
    """The committed statistics of two columns together."""

    statistics: JointStatistics
    snapshot_id: int
    commits_behind: int
    size_bytes: int
    """Of the blob."""


def find_joint(blobs: Sequence[CommittedBlob]) -> dict[tuple[int, int], CommittedBlob]:
    """Return the nearest blob of each pair of columns that has statistics together, by field ids."""
    found: dict[tuple[int, int], CommittedBlob] = {}
    own = [b for b in blobs if b.blob.type == JOINT_STATISTICS and b.commits_behind is not None]
    for one in sorted(own, key=lambda b: b.commits_behind or 0):
        if len(one.blob.field_ids) == len(set(one.blob.field_ids)) == 2:
            found.setdefault((one.blob.field_ids[0], one.blob.field_ids[1]), one)
    return found


def read_joint(storage: FileReader, found: CommittedBlob, schema: Schema) -> CommittedJoint | None:
    """Read the statistics of two columns together; None where a column is gone, or is of another type now.

    Raises
    ------
    PuffinFormatError
        The blob is damaged.
    """
    first, second = found.blob.field_ids
    if schema.get(first) is None or schema.get(second) is None:
        return None
    parse = partial(read_joint_statistics, field_ids=(first, second))
    statistics = found.read(storage, f"the joint statistics of fields {first} and {second}", parse)
    fields = [schema.get(field_id) for field_id in statistics.field_ids]
    if [None if field is None else field.type for field in fields] != list(statistics.types):
        return None
    return CommittedJoint(statistics, found.blob.snapshot_id, found.commits_behind or 0, found.blob.length)
