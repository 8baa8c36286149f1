"""The table statistics files that metadata.json registers: their blobs, and how old they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import pyarrow as pa

from icestats.answers.schemas import SKETCHES
from icestats.errors import MetadataError, PuffinFormatError, StatisticsMissingError
from icestats.iceberg.metadata import Field, Schema, Snapshot, TableMetadata
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, FileReader, expanded_limit
from icestats.iceberg.summary import parse_count
from icestats.iceberg.types import has_lengths
from icestats.read.puffin.puffin import MAX_BLOB_SIZE_BYTES, PuffinBlob, damage_at, read_blob, read_puffin_footer
from icestats.read.puffin.statistics_age import (
    CREATED_BY,
    ENGINES,
    MERGED,
    PRESTO,
    TRINO,
    count_ages,
    find_presto_file,
    find_presto_refusal,
    find_statistics_users,
    may_be_merged,
)
from icestats.read.puffin.statistics_age import THETA as THETA
from icestats.stats.frequent_items import FrequentValues, describe_values, read_frequent_values
from icestats.stats.joint_statistics import JointStatistics, read_joint_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of
from icestats.stats.rollup_cells import Figure
from icestats.stats.table_statistics import ColumnStatistics, read_column_statistics
from icestats.stats.theta import ThetaSketch

KLL = "apache-datasketches-kll-v1"
COLUMN_STATISTICS = "icestats-column-stats-v1"
FREQUENT_ITEMS = "icestats-frequent-items-v1"
JOINT_STATISTICS = "icestats-joint-stats-v1"
HIVE_COLUMNS = "ColumnStatisticsObj"
PRESTO_DATA_SIZE = "presto-sum-data-size-bytes-v1"
_PRESTO_READS = {THETA: "ndv", PRESTO_DATA_SIZE: "data_size"}
PARTITION_SKETCHES = "icestats-partition-sketches-v1"
MANIFEST_STATISTICS = "icestats-manifest-stats-v1"
_COMPUTE = "table.compute(columns=[{}]).commit(), or `icestats compute SOURCE --commit`"
_MISSING = {
    THETA: ("Theta sketch", _COMPUTE),
    KLL: ("KLL sketch", _COMPUTE),
    FREQUENT_ITEMS: ("frequent items", _COMPUTE),
    PARTITION_SKETCHES: ("sketch by partition", 'table.compute(columns=[{}], by="partition").commit()'),
}
_COMMON_SHOWN = 5
MAX_TABLE_BLOBS = 500_000
"""Behind as many, a table's farther files are not read: thousands of entries may name one file."""
MAX_TABLE_FILES = 20_000
"""Farther ones are not looked for: each is a request to the storage, whether or not the file has blobs, or exists."""
_BLOB_SIZE_BYTES = 256
"""Of a footer: one that is longer than its blobs counts as if it had as many as have room in it."""
_DAMAGED = 1 << 14
"""What a footer counts that has been read in vain."""
FREE_BLOBS_BYTES = 512 << 20
"""All blobs together may expand to this many bytes, or to more by the length of their files: `expanded_limit`."""
_DAMAGED_BYTES = 16 << 20
"""What a blob counts that has been read in vain."""
_NO_COLUMNS = "not column statistics"
_WHOLE_ITEMS = frozenset({"long", "decimal"})
"""Both are whole numbers: a column's items are of the second once its decimals have become longer."""
_Parsed = TypeVar("_Parsed")
_OWN_USE = (*_MISSING, COLUMN_STATISTICS, JOINT_STATISTICS, MANIFEST_STATISTICS)


class BlobRoom:
    """What the blobs of a table may expand to together: each may to a little, and thousands of them take minutes."""

    def __init__(self) -> None:
        self.file_bytes = 0
        self._used_bytes = 0
        self._known: set[tuple[str, int]] = set()

    def read(self, storage: FileReader, blob: PuffinBlob, path: str, most_bytes: int) -> bytes:
        """Return a blob's bytes; raise PuffinFormatError where the others have too many, or it is damaged."""
        most, place, size = expanded_limit(self.file_bytes, FREE_BLOBS_BYTES), (path, blob.offset), _DAMAGED_BYTES
        if place not in self._known and self._used_bytes > most:
            raise PuffinFormatError(
                f"{blob.label} is not read: other blobs expand to more than {most:,} bytes", path, blob.offset
            )
        try:
            data = read_blob(storage, blob, path, max_size_bytes=most_bytes)
            size = len(data)
            return data
        finally:
            self._used_bytes += 0 if place in self._known else size
            self._known.add(place)


@dataclass(frozen=True, slots=True)
class CommittedBlob:
    """A blob of a registered statistics file, and how old it is for the loaded snapshot."""

    blob: PuffinBlob
    statistics_path: str
    listed: bool
    """Whether metadata.json lists it, or only the file's footer does."""
    commits_behind: int | None
    """Commits from the blob's snapshot to the loaded one; None: the blob's snapshot is no ancestor of it."""
    files_behind: int | None = None
    """Data files that these commits have added, `replace` left out; None: unknown."""
    rows_behind: int | None = None
    """Records in these files; None: unknown."""
    engines: tuple[str, ...] = ()
    """The engines that plan with it now: of `statistics_age.ENGINES`."""
    created_by: str = ""
    """What the file says of its writer, who may have carried the blob over from another file."""
    is_original: bool = False
    """Whether the file is of the snapshot that the blob was made for: others have copies, perhaps of an earlier one."""
    is_merged: bool = False
    """Whether it is a sketch that Trino has, or may have, merged with an earlier one."""
    room: BlobRoom = field(default_factory=BlobRoom, compare=False, repr=False)
    """Shared by the blobs of a table."""

    @property
    def ndv(self) -> int | None:
        """The number of distinct values that the blob's writer stated."""
        return parse_count(self.blob.properties.get("ndv"))

    def find_hashing(self, type_text: str) -> str:
        """Return in whose form values were hashed, "Iceberg", "Presto" or "Trino"; nothing: Iceberg's or Presto's.

        Trino hashes the 16 bytes of a uuid, as the specification says, Iceberg's Spark procedure its text. Presto
        writes a file of its own sketches alone, and does not compress them, as the others do. Who carries a blob over,
        as Trino and icestats do, keeps its codec; icestats says where it comes from (`CREATED_BY`).
        """
        made_by = _find_maker(self.blob, self.created_by)
        if type_text == "uuid" and made_by.startswith(TRINO):
            return "Trino"
        if made_by.startswith(PRESTO):
            return "Presto"
        return "" if self.blob.compression_codec is None else "Iceberg"

    def refuse(self, reason: str) -> PuffinFormatError:
        """Return the error of a blob whose content manifests or other blobs refute."""
        return PuffinFormatError(f"{reason}: compute the statistics anew", self.statistics_path, self.blob.offset)

    def read(self, storage: FileReader, what: str, parse: Callable[[bytes], _Parsed]) -> _Parsed:
        """Return what the blob's bytes hold.

        Parameters
        ----------
        storage : FileReader
            Where to read from.
        what : str
            What they are to be, for errors.
        parse : callable
            Parses the bytes.

        Raises
        ------
        PuffinFormatError
            The blob is damaged: also where parsing raises ValueError, KeyError or TypeError.
        """
        limit = MAX_BLOB_SIZE_BYTES if self.blob.type in (THETA, KLL) else MAX_FILE_SIZE_BYTES
        data = self.room.read(storage, self.blob, self.statistics_path, limit)
        with damage_at(self.statistics_path, self.blob.offset, what):
            return parse(data)


class CommittedBlobs(tuple[CommittedBlob, ...]):
    """The blobs of a table's statistics files; those of a column are found without a look at the others."""

    @cached_property
    def nearest(self) -> Sequence[CommittedBlob]:
        """Those of the snapshot and its ancestors, the nearest first; before copies what a snapshot's file has."""
        own = (one for one in self if one.commits_behind is not None)
        return sorted(own, key=lambda one: (one.commits_behind or 0, not one.is_original))

    @cached_property
    def by_columns(self) -> Mapping[tuple[int, ...], Sequence[CommittedBlob]]:
        """The same by their field ids."""
        found: defaultdict[tuple[int, ...], list[CommittedBlob]] = defaultdict(list)
        for one in self.nearest:
            found[one.blob.field_ids].append(one)
        return dict(found)


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


def read_committed_blobs(
    storage: FileReader,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    on_damage: Callable[[MetadataError], None] | None = None,
    schema: Schema | None = None,
) -> Iterator[CommittedBlob]:
    """Yield the blobs of every registered statistics file, the files nearest to the snapshot first.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot that ages are counted from.
    on_damage : callable, optional
        Takes the error of a file that is then left out; by default it is raised.
    schema : Schema, optional
        What the snapshot is read with; by default the table's current one.

    Raises
    ------
    MetadataError
        A file is missing, or (as PuffinFormatError) cut or damaged.
    """
    ages = count_ages(metadata, snapshot)
    order = {snapshot_id: age.commits for snapshot_id, age in ages.items()}
    moved = metadata.find_moved()
    find_users, presto_file = find_statistics_users(metadata, ages, schema), find_presto_file(metadata, snapshot)
    count, room = 0, BlobRoom()
    files = sorted(metadata.statistics, key=lambda f: order.get(f.snapshot_id, len(ages)))
    for number, file in enumerate(files):
        entries = {(b.type, b.field_ids, b.snapshot_id): b for b in reversed(file.blobs)}
        refusal = _find_refusal(file.statistics_path, number, count, len(files))
        try:
            if refusal is not None:
                raise refusal
            footer = read_puffin_footer(storage, file.statistics_path)
        except MetadataError as error:
            if on_damage is None:
                raise
            on_damage(error)
            if error is refusal:
                return
            count += _DAMAGED if isinstance(error, PuffinFormatError) else 0
            continue
        room.file_bytes += footer.file_size_bytes
        count += max(len(footer.blobs), footer.payload_size_bytes // _BLOB_SIZE_BYTES)
        is_prestos = file is presto_file and not find_presto_refusal(metadata, metadata.schema, footer.blobs)
        created_by = footer.properties.get("created-by", "")
        for blob in footer.blobs:
            # Nothing says whether a column's blob was made before another column got its name.
            age = None if moved.intersection(blob.field_ids) else ages.get(blob.snapshot_id)
            entry = entries.get((blob.type, blob.field_ids, blob.snapshot_id))
            users = {
                *(() if entry is None else find_users(file, entry)),
                *(["Presto"] * (is_prestos and _is_seen(blob))),
            }
            yield CommittedBlob(
                blob,
                file.statistics_path,
                listed=entry is not None,
                commits_behind=None if age is None else age.commits,
                files_behind=None if age is None else age.files,
                rows_behind=None if age is None else age.rows,
                engines=tuple(engine for engine in ENGINES if engine in users),
                created_by=created_by,
                is_original=file.snapshot_id == blob.snapshot_id,
                is_merged=blob.type == THETA
                and may_be_merged(_find_maker(blob, created_by), blob.snapshot_id, metadata),
                room=room,
            )


def _find_maker(blob: PuffinBlob, created_by: str) -> str:
    """Return who wrote a blob, as far as it or its file says."""
    return blob.properties.get(CREATED_BY, created_by)


def _find_refusal(path: str, number: int, blob_count: int, file_count: int) -> MetadataError | None:
    """Return why a statistics file, and those of farther snapshots, are not read; None if it is."""
    if blob_count > MAX_TABLE_BLOBS:
        return MetadataError(
            f"other files of the table have {blob_count:,} blobs, or footers as long, expected {MAX_TABLE_BLOBS:,} at "
            "most",
            path,
        )
    if number == MAX_TABLE_FILES:
        return MetadataError(
            f"the table has {file_count:,} statistics files, expected {MAX_TABLE_FILES:,} at most: this one and those "
            "of farther snapshots are not read",
            path,
        )
    return None


def _is_seen(blob: PuffinBlob) -> bool:
    """Whether Presto takes a figure from a blob of its file."""
    stated = blob.properties.get(_PRESTO_READS.get(blob.type, ""))
    return not blob.is_hidden and parse_count(stated) is not None


def build_sketches(blobs: Sequence[CommittedBlob], schema: Schema) -> pa.Table:
    """Build the table of committed blobs.

    Parameters
    ----------
    blobs : sequence of CommittedBlob
        In the order of the rows.
    schema : Schema
        Names the columns.

    Returns
    -------
    pyarrow.Table
        `schemas.SKETCHES`: one row a blob.
    """
    nearest: dict[tuple[str, tuple[int, ...]], CommittedBlob] = {}
    for found in sorted((b for b in blobs if b.commits_behind is not None), key=lambda b: b.commits_behind or 0):
        if found.blob.type in _OWN_USE:
            nearest.setdefault(_key(found), found)
    rows = [
        {
            "type": found.blob.type,
            "field_ids": list(found.blob.field_ids),
            "columns": [_column_name(schema, field_id) for field_id in found.blob.field_ids],
            "snapshot_id": found.blob.snapshot_id,
            "commits_behind": found.commits_behind,
            "files_behind": found.files_behind,
            "rows_behind": found.rows_behind,
            "used_by": [*found.engines, *(["icestats"] if nearest.get(_key(found)) is found else [])],
            "ndv": found.ndv,
            "properties": list(found.blob.properties.items()),
            "length": found.blob.length,
            "listed": found.listed,
            "statistics_path": found.statistics_path,
        }
        for found in blobs
    ]
    return pa.Table.from_pylist(rows, SKETCHES)


def _key(found: CommittedBlob) -> tuple[str, tuple[int, ...]]:
    return found.blob.type, found.blob.field_ids


def _column_name(schema: Schema, field_id: int) -> str:
    field = schema.get(field_id)
    return f"#{field_id}" if field is None else field.name


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
            column = found.read(storage, _NO_COLUMNS, read_column_statistics).get(sketch.blob.field_ids[0])
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
    items = _read_items(storage, found, field)
    check_items(field, item_type_of(items.values.type))
    check_unit(field, items.values.type)
    return items


def _read_items(storage: FileReader, found: CommittedBlob, field: Field) -> CommittedFrequentValues:
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
        column = found.read(storage, _NO_COLUMNS, read_column_statistics).get(field.field_id)
        return {} if column is None or column.type != field.type else _column_figures(column, found)
    return _common_figures(storage, found, field)


def _common_figures(storage: FileReader, found: CommittedBlob, field: Field) -> dict[str, Figure]:
    items = _read_items(storage, found, field)
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
