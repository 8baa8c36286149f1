"""The table statistics files that metadata.json registers: their blobs, and how old they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from icestats.answers.schemas import SKETCHES
from icestats.errors import MetadataError, PuffinFormatError
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, FileReader, expanded_limit
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.puffin import MAX_BLOB_SIZE_BYTES, PuffinBlob, damage_at, read_blob, read_puffin_footer
from icestats.read.puffin.statistics_age import CREATED_BY, PRESTO, TRINO, count_ages, may_be_merged
from icestats.read.puffin.statistics_age import THETA as THETA
from icestats.read.puffin.statistics_users import ENGINES, find_presto_file, find_presto_refusal, find_statistics_users

KLL = "apache-datasketches-kll-v1"
COLUMN_STATISTICS = "icestats-column-stats-v1"
FREQUENT_ITEMS = "icestats-frequent-items-v1"
JOINT_STATISTICS = "icestats-joint-stats-v1"
HIVE_COLUMNS = "ColumnStatisticsObj"
PRESTO_DATA_SIZE = "presto-sum-data-size-bytes-v1"
_PRESTO_READS = {THETA: "ndv", PRESTO_DATA_SIZE: "data_size"}
PARTITION_SKETCHES = "icestats-partition-sketches-v1"
MANIFEST_STATISTICS = "icestats-manifest-stats-v1"
LG_K = "lg-k"
"""The property of a Theta sketch of the kit's that says the size it was made with; engines read `ndv` alone."""
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
_Parsed = TypeVar("_Parsed")
_OWN_USE = (
    THETA,
    KLL,
    FREQUENT_ITEMS,
    PARTITION_SKETCHES,
    COLUMN_STATISTICS,
    JOINT_STATISTICS,
    MANIFEST_STATISTICS,
)


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
    """The engines that plan with it now: of `statistics_users.ENGINES`."""
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
                and may_be_merged(_find_maker(blob, created_by), metadata.snapshots.get(blob.snapshot_id)),
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
