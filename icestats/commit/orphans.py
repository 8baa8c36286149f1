"""Statistics files on storage that no metadata of the table refers to.

Iceberg replaces the entry of a statistics file and leaves the file; so does a commit that was killed half way.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from icestats.commit.table_state import TableFiles, reload_table, remove_file
from icestats.errors import CallError, CommitError, MetadataError, PuffinFormatError
from icestats.metadata import TableMetadata
from icestats.metadata_json import read_metadata
from icestats.read.puffin import read_puffin_footer

if TYPE_CHECKING:
    from pyiceberg.table import Table

TABLE_STATISTICS = "table statistics"
PARTITION_STATISTICS = "partition statistics"

ORPHANS = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("modified_at", pa.timestamp("ms", tz="UTC")),
        pa.field("age_seconds", pa.int64()),
    ]
)
"""One row a file, by path. `kind` is `table statistics` or `partition statistics`; `age_seconds` is since
`modified_at`, and both are null where the storage does not say."""

_YOUNGEST = timedelta(days=1)


def find_orphans(table: Table, *, history: bool = True) -> pa.Table:
    """Find the statistics files in the table's `metadata` folder that none of its metadata refers to.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From a catalog, which is asked for the current metadata; or from a metadata.json, where the metadata files
        beside it that are newer count as well.
    history : bool
        Whether earlier versions of the metadata count, as far as the metadata log has them: with them, statistics that
        were replaced or removed are no orphans as long as the table can be rolled back to a version that knew them.

    Returns
    -------
    pyarrow.Table
        One row a file, by path:

        - path : string
        - kind : string, `table statistics` (`*.stats`) or `partition statistics` (`partition-stats-*`)
        - size_bytes : int64
        - modified_at : timestamp[ms, UTC], null where the storage does not say
        - age_seconds : int64, since then

    Raises
    ------
    MetadataError
        A metadata file of the table exists and cannot be read, so what it refers to is unknown.
    CommitError
        The table is no longer in its catalog.

    Notes
    -----
    A file counts as referred to when the current metadata names it in `statistics` or `partition-statistics`, or, with
    `history`, a metadata file of its log that still exists does. Only the folder where the table keeps its metadata is
    listed, and only where that is below the table's location. A file that is being committed right now shows up too.
    Source: Iceberg spec, "Table Statistics" and "Partition Statistics".
    """
    now = datetime.now(UTC)
    found = list(_list_candidates(table))
    referred = _referred_names(table, history=history)
    rows = [
        {
            "path": path,
            "kind": kind,
            "size_bytes": size,
            "modified_at": modified,
            "age_seconds": None if modified is None else max(0, int((now - modified).total_seconds())),
        }
        for path, kind, size, modified in sorted(found)
        if posixpath.basename(path) not in referred
    ]
    return pa.Table.from_pylist(rows, schema=ORPHANS)


def remove_orphans(
    table: Table,
    older_than: timedelta = _YOUNGEST,
    *,
    dry_run: bool = True,
    allow_recent: bool = False,
    history: bool = True,
) -> pa.Table:
    """Delete orphaned statistics files; by default only show which.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From a catalog.
    older_than : timedelta
        The least age of a file to delete. A commit on its way has a file that nothing refers to yet.
    dry_run : bool
        Whether only to show what would be deleted.
    allow_recent : bool
        Whether `older_than` may be less than a day.
    history : bool
        As for `find_orphans`.

    Returns
    -------
    pyarrow.Table
        The rows of `find_orphans` that are old enough, and `removed` (bool): whether the file has been deleted. A
        Puffin file that holds a deletion vector, or whose age is unknown, is never among them.

    Raises
    ------
    CallError
        `older_than` is less than a day, without `allow_recent`.
    CommitError
        The table was opened from a metadata.json, or is no longer in its catalog.
    MetadataError
        As for `find_orphans`.
    """
    if older_than < _YOUNGEST and not allow_recent:
        raise CallError(f"older_than is {older_than}, expected a day at least: say allow_recent=True if nobody commits")
    if not dry_run and isinstance(table, StaticTable):
        raise CommitError(f"{table.metadata_location} is read-only: open the table through its catalog to delete files")
    orphans = find_orphans(table, history=history)
    old_enough = pc.fill_null(pc.greater_equal(orphans["age_seconds"], int(older_than.total_seconds())), False)
    orphans = orphans.filter(old_enough)
    files = TableFiles(table.io)
    paths = [path for path in orphans["path"].to_pylist() if not _has_deletion_vector(files, path)]
    orphans = orphans.filter(pc.is_in(orphans["path"], pa.array(paths, pa.string())))
    removed = [not dry_run and remove_file(table, path) for path in paths]
    return orphans.append_column(pa.field("removed", pa.bool_(), nullable=False), pa.array(removed, pa.bool_()))


def _list_candidates(table: Table) -> Iterator[tuple[str, str, int, datetime | None]]:
    folder = _metadata_folder(table)
    if folder is None:
        return
    for name, size, modified in _list_folder(table, folder):
        kind = _kind(name)
        if kind is not None:
            yield f"{folder}/{name}", kind, size, modified


def _kind(name: str) -> str | None:
    if name.startswith("partition-stats-"):
        return PARTITION_STATISTICS
    return TABLE_STATISTICS if name.endswith(".stats") else None


def _metadata_folder(table: Table) -> str | None:
    """Return where the table keeps its metadata, None where that is not below its location."""
    location = table.location().rstrip("/")
    folder = table.properties.get("write.metadata.path", f"{location}/metadata").rstrip("/")
    return folder if folder.startswith(f"{location}/") and ".." not in folder.split("/") else None


def _list_folder(table: Table, folder: str) -> Iterator[tuple[str, int, datetime | None]]:
    io = table.io if isinstance(table.io, PyArrowFileIO) else PyArrowFileIO(table.io.properties)
    scheme, netloc, path = io.parse_location(folder, io.properties)
    file_system = io.fs_by_scheme(scheme, netloc)
    for info in file_system.get_file_info(FileSelector(path, allow_not_found=True)):
        if info.type == FileType.File:
            yield info.base_name, info.size, info.mtime


def _referred_names(table: Table, *, history: bool) -> set[str]:
    # Names go without their folders: they hold a UUID, and writers spell one location in several ways.
    files = TableFiles(table.io)
    static = isinstance(table, StaticTable)
    current = table if static else reload_table(table, to_commit=False)
    names = _names(read_metadata(files, current.metadata_location))
    others = _newer_metadata(table) if static else []
    if history:
        others += [entry.metadata_file for entry in current.metadata.metadata_log]
    for location in others:
        try:
            names |= _names(read_metadata(files, location))
        except MetadataError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return names


def _newer_metadata(table: Table) -> list[str]:
    folder, _, own = table.metadata_location.rpartition("/")
    listed = [entry for entry in _list_folder(table, folder) if entry[0].endswith(".metadata.json")]
    since = next((modified for name, _, modified in listed if name == own), None)
    return [f"{folder}/{n}" for n, _, m in listed if n != own and (since is None or m is None or m >= since)]


def _names(metadata: TableMetadata) -> set[str]:
    paths = [file.statistics_path for file in metadata.statistics]
    paths += [file.statistics_path for file in metadata.partition_statistics]
    return {name for path in paths for name in (posixpath.basename(path), unquote(posixpath.basename(path)))}


def _has_deletion_vector(files: TableFiles, path: str) -> bool:
    if _kind(posixpath.basename(path)) != TABLE_STATISTICS:
        return False
    try:
        return any(blob.type == "deletion-vector-v1" for blob in read_puffin_footer(files, path).blobs)
    except PuffinFormatError:
        return False
