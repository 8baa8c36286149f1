"""The blobs of ancestors' statistics files that a new file carries forward: engines look no further than one file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from icestats.commit.table_state import (
    MOST_CARRIED_BYTES,
    BlobKey,
    ExistingFile,
    TableFiles,
    blob_key,
    check_carried,
    current_columns,
    list_statistics,
    read_carried,
    refuse_storage_failure,
)
from icestats.errors import MetadataError
from icestats.iceberg.metadata import walk_ancestors
from icestats.read.puffin.puffin import PuffinBlob, read_puffin_footer
from icestats.read.puffin.statistics_files import HIVE_COLUMNS

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from icestats.iceberg.metadata import BlobMetadata, StatisticsFile

CARRIES_EARLIER = "icestats.carries-earlier-blobs"
"""Property of a file: checksums of the paths of ancestors' files, whose blobs it has where no nearer file has them."""
_NEVER_CARRIED = ("deletion-vector-v1", HIVE_COLUMNS)
"""Hive takes what a snapshot's file has for that snapshot's, whatever a blob says (`IcebergTableUtil.readColStats`)."""
_UNREAD = "earlier blobs cannot be carried over, so nothing was committed: try again, or keep_earlier=False"


def read_earlier(
    table: Table, snapshot_id: int, existing: Sequence[ExistingFile], asked: Collection[BlobKey]
) -> tuple[list[ExistingFile], list[ExistingFile], tuple[str, ...], str]:
    """Read the nearest blob of each kind and field that the ancestors of a snapshot have.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table.
    snapshot_id : int
        The snapshot.
    existing : sequence of ExistingFile
        Files of the snapshot itself. What they, or those of ancestors, carry already is not looked at.
    asked : collection of BlobKey
        What is made anew.

    Returns
    -------
    tuple of list of ExistingFile, list of ExistingFile, tuple of str and str
        The snapshot's own files, without what they carry where a file of an ancestor has it of a nearer snapshot; those
        of ancestors, the nearest first, with nothing but these blobs and their entries; why files could not be read;
        and the file's property `CARRIES_EARLIER`.

    Notes
    -----
    What metadata.json does not list takes the place of nothing that it lists. Of two as near, that of the snapshot's
    own file is taken. Left out are blobs of columns that the current schema does not have, and Hive's own. A file that
    is gone or damaged hinders no commit; a storage that fails does, with CommitError.
    """
    columns, ages = current_columns(table), _count_ages(table, snapshot_id)

    def age(blob: PuffinBlob | BlobMetadata) -> int:
        return ages.get(blob.snapshot_id, len(ages))

    taken: dict[BlobKey, int] = {}
    for file in reversed(existing):
        taken |= {blob_key(entry): age(entry) for entry in file.entry.blobs}
        taken |= {blob_key(held.blob): age(held.blob) for held in file.blobs}
    taken |= dict.fromkeys(asked, 0)
    listed = {blob_key(one) for file in existing for one in file.entry.blobs}
    found: list[ExistingFile] = []
    unread: list[str] = []
    left = MOST_CARRIED_BYTES - sum(len(held.stored) for file in existing for held in file.blobs)
    carried_files = {checksum for file in existing for checksum in _carried_files(file.properties)}
    for entry in _ancestors_files(table, ages):
        path = entry.statistics_path
        if (checksum := f"{crc32(path.encode()):08x}") in carried_files:
            continue
        try:
            footer = read_puffin_footer(TableFiles(table.io), path)
            blobs_there = [b for b in footer.blobs if b.type not in _NEVER_CARRIED]
            # Somebody may have committed to an ancestor after its descendants: a farther file may have what is nearer.
            # Nothing that is not listed replaces what is: engines would lose an NDV.
            kept = dict.fromkeys(listed - {blob_key(one) for one in entry.blobs}, -1)
            # Of a snapshot's own file also what is as near: others may have copies of what stood there before.
            most, own = {**taken, **kept}, entry.snapshot_id
            lacking = [b for b in blobs_there if age(b) < most.get(blob_key(b), len(ages) + 1) + (b.snapshot_id == own)]
            wanted = [b for b in lacking if columns.keys() >= set(b.field_ids)]
            check_carried(wanted, left, path)
            file = read_carried(table, entry, footer, wanted)
        except MetadataError as error:
            refuse_storage_failure(error, _UNREAD)
            unread.append(str(error))
            continue
        left -= sum(blob.length for blob in wanted)
        carried = {blob_key(blob): age(blob) for blob in wanted}
        if carried.keys() & taken.keys():
            existing = [_without(file, carried) for file in existing]
            found = [_without(file, carried) for file in found]
        taken |= carried
        entries = tuple(one for one in file.entry.blobs if blob_key(one) in carried)
        listed |= {blob_key(one) for one in entries}
        found.append(ExistingFile(replace(entry, blobs=entries), file.blobs, {}))
        # A column that was dropped may come back: the file is looked at again then.
        carried_files |= {*([checksum] if len(wanted) == len(lacking) else []), *_carried_files(footer.properties)}
    return list(existing), found, tuple(unread), " ".join(sorted(carried_files))


def _count_ages(table: Table, snapshot_id: int) -> dict[int, int]:
    """Return how many commits before a snapshot its ancestors are, itself 0."""
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    ancestors = walk_ancestors(snapshots, snapshots.get(snapshot_id))
    return {ancestor.snapshot_id: age for age, ancestor in enumerate(ancestors)}


def _without(file: ExistingFile, keys: Collection[BlobKey]) -> ExistingFile:
    blobs = tuple(carried for carried in file.blobs if blob_key(carried.blob) not in keys)
    listed = tuple(entry for entry in file.entry.blobs if blob_key(entry) not in keys)
    return replace(file, entry=replace(file.entry, blobs=listed), blobs=blobs)


def _carried_files(properties: Mapping[str, str]) -> list[str]:
    return properties.get(CARRIES_EARLIER, "").split()


def leave_earlier(file: ExistingFile, snapshot_id: int, asked: Collection[BlobKey]) -> ExistingFile:
    """Return a snapshot's file without the blobs that were made for other snapshots, but for what is made anew."""
    blobs = tuple(held for held in file.blobs if held.blob.snapshot_id == snapshot_id or blob_key(held.blob) in asked)
    listed = tuple(entry for entry in file.entry.blobs if entry.snapshot_id == snapshot_id)
    return replace(file, entry=replace(file.entry, blobs=listed), blobs=blobs)


def _ancestors_files(table: Table, ages: Collection[int]) -> Iterator[StatisticsFile]:
    registered: dict[int, list[StatisticsFile]] = {}
    for entry in list_statistics(table):
        registered.setdefault(entry.snapshot_id, []).append(entry)
    for ancestor in islice(ages, 1, None):
        yield from registered.get(ancestor, ())
