"""The blobs of ancestors' statistics files that a new file carries forward: engines look no further than one file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from icestats.commit.puffin_writer import CarriedBlob
from icestats.commit.table_state import (
    BlobKey,
    ExistingFile,
    TableFiles,
    blob_key,
    current_columns,
    find_statistics,
    refuse_storage_failure,
)
from icestats.errors import MetadataError
from icestats.read.puffin.puffin import read_puffin_footer, read_stored_blob

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from icestats.iceberg.metadata import StatisticsFile

CARRIES_EARLIER = "icestats.carries-earlier-blobs"
"""Property of a file that has the nearest blob of each kind and field of all ancestors: no older one is looked at."""
_DELETION_VECTOR = "deletion-vector-v1"


def read_earlier(
    table: Table, snapshot_id: int, known: Collection[BlobKey]
) -> tuple[list[ExistingFile], tuple[str, ...]]:
    """Read the nearest blob of each kind and field that the ancestors of a snapshot have.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table.
    snapshot_id : int
        The snapshot.
    known : collection of BlobKey
        What the snapshot's own file will have anyway.

    Returns
    -------
    tuple of list of ExistingFile and tuple of str
        The files, the nearest first, with nothing but these blobs and their entries; and why files could not be read.

    Notes
    -----
    Left out are blobs of columns that the current schema does not have. A file that is gone or damaged hinders no
    commit; a storage that fails does, with CommitError.
    """
    taken, columns = set(known), current_columns(table)
    found: list[ExistingFile] = []
    unread: list[str] = []
    for entry in _ancestors_files(table, snapshot_id):
        files, path = TableFiles(table.io), entry.statistics_path
        try:
            footer = read_puffin_footer(files, path)
            wanted = [b for b in footer.blobs if b.type != _DELETION_VECTOR and blob_key(b) not in taken]
            wanted = [b for b in wanted if columns.keys() >= set(b.field_ids)]
            blobs = tuple(CarriedBlob(blob, read_stored_blob(files, blob, path)) for blob in wanted)
        except MetadataError as error:
            refuse_storage_failure(error)
            unread.append(str(error))
            continue
        carried = {blob_key(blob) for blob in wanted}
        taken |= carried
        listed = tuple(listed for listed in entry.blobs if blob_key(listed) in carried)
        found.append(ExistingFile(replace(entry, blobs=listed), blobs, {}))
        if CARRIES_EARLIER in footer.properties:
            break
    return found, tuple(unread)


def leave_earlier(file: ExistingFile, snapshot_id: int) -> ExistingFile:
    """Return a snapshot's file without the blobs that were made for other snapshots."""
    blobs = tuple(carried for carried in file.blobs if carried.blob.snapshot_id == snapshot_id)
    listed = tuple(entry for entry in file.entry.blobs if entry.snapshot_id == snapshot_id)
    return replace(file, entry=replace(file.entry, blobs=listed), blobs=blobs)


def _ancestors_files(table: Table, snapshot_id: int) -> Iterator[StatisticsFile]:
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in table.metadata.snapshots}
    registered = {entry.snapshot_id for entry in table.metadata.statistics} - {snapshot_id}
    ancestor = parents.pop(snapshot_id, None)
    while registered and ancestor in parents:
        if ancestor in registered and (entry := find_statistics(table, ancestor)) is not None:
            registered.remove(ancestor)
            yield entry
        ancestor = parents.pop(ancestor)
