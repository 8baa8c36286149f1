"""Statistics files on storage that no live metadata of the table refers to.

Iceberg replaces the entry of a statistics file and leaves the file; so does a commit that was killed half way.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.fs import FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from icestats.answers.redaction import safe_cause
from icestats.commit.metadata_versions import (
    SUFFIXES,
    ListedFolder,
    OtherVersion,
    list_replaced_versions,
    referred_names,
)
from icestats.commit.table_state import TableFiles, reload_table, remove_file
from icestats.errors import CallError, CommitError, MetadataError, PuffinFormatError
from icestats.iceberg.confined_io import is_at_home, is_true, metadata_folder
from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.reach import check_reach, is_below
from icestats.iceberg.storage import unreadable
from icestats.read.puffin.puffin import read_puffin_footer

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
        pa.field("last_referred_at", pa.timestamp("ms", tz="UTC")),
        pa.field("referred_by", pa.string()),
    ]
)
"""One row a file, by path. `kind` is `table statistics` or `partition statistics`. `age_seconds` is since
`modified_at`; both are null where the storage does not say. `last_referred_at` is when the last version of the metadata
that refers to the file was replaced; null where none that can be read does. `referred_by` is a metadata file beside
the table's own that refers to it and is no version of this table's metadata: a killed commit has left it, or another
catalog has this table too; null where there is none."""

REMOVED_ORPHANS = ORPHANS.append(pa.field("removed", pa.bool_(), nullable=False)).append(
    pa.field("kept_because", pa.string())
)
"""As `ORPHANS`; whether the file has been deleted; why it is kept, null where it was or, in a dry run, would be."""

YOUNGEST = timedelta(days=1)
"""Least age of a file to delete, unless told: a running commit has a file that nothing refers to yet, and readers may
still use a version of the metadata that has just been replaced."""

_CLOCK_SKEW = timedelta(minutes=1)
"""By how much the clocks of two writers may differ: Iceberg's own limit for the times in a metadata log."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: str
    kind: str
    size_bytes: int
    modified_at: datetime | None

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)


def find_orphans(table: Table) -> pa.Table:
    """Find the statistics files in the table's `metadata` folder that its live metadata does not refer to.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From a catalog, which is asked for the live metadata; or from a metadata.json, which then counts as live with
        all later versions beside it.

    Returns
    -------
    pyarrow.Table
        `ORPHANS`: one row a file, by path:

        - path : string
        - kind : string, `table statistics` (`*.stats`) or `partition statistics` (`partition-stats-*`)
        - size_bytes : int64
        - modified_at : timestamp[ms, UTC], null where the storage does not say
        - age_seconds : int64, since then
        - last_referred_at : timestamp[ms, UTC], when the last version that refers to it was replaced; null: none known
        - referred_by : string, a metadata file that is no version of this table's and refers to it; null: none

    Raises
    ------
    MetadataError
        A metadata file exists and cannot be read, so what it refers to is unknown.
    CommitError
        The table is no longer in its catalog.

    Notes
    -----
    Only the folder where the table keeps its metadata is listed, and only where that is below the table's location and
    has its metadata.json; names that no location can hold, such as those with `#`, are left out. A file that is being
    committed right now shows up too. A metadata file that was cut, so that no reader can read it, refers to nothing.
    Source: Iceberg spec, "Table Statistics" and "Partition Statistics".
    """
    now = datetime.now(UTC)
    files = TableFiles(table.io)
    current = table if isinstance(table, StaticTable) else reload_table(table, to_commit=False)
    metadata = read_metadata(files, current.metadata_location)
    live = referred_names(metadata)
    location = _metadata_folder(current) or ""
    listed = sorted(_list_folder(table, location), key=lambda c: c.path)
    folder = ListedFolder(location, frozenset(c.name for c in listed))
    found = [c for c in listed if c.kind and c.name not in live]
    if not found:
        return ORPHANS.empty_table()
    wanted = {candidate.name for candidate in found}
    own = posixpath.basename(current.metadata_location)
    beside = {c.name: c.path for c in listed if c.name.endswith(SUFFIXES) and c.name != own}
    last_referred = _walk_versions(files, metadata, folder, {c.name: c.modified_at for c in found}, beside)
    referred_by: dict[str, str] = {}
    for foreign in (OtherVersion(files, beside[name], folder) for name in sorted(beside)):
        names = foreign.referred_names & wanted
        referred_by.update(dict.fromkeys(names, foreign.location))
        if isinstance(table, StaticTable) and foreign.follows(own):
            found = [c for c in found if c.name not in names]
    rows = [
        {
            "path": c.path,
            "kind": c.kind,
            "size_bytes": c.size_bytes,
            "modified_at": c.modified_at,
            "age_seconds": None if c.modified_at is None else max(0, int((now - c.modified_at).total_seconds())),
            "last_referred_at": last_referred.get(c.name),
            "referred_by": referred_by.get(c.name),
        }
        for c in found
    ]
    return pa.Table.from_pylist(rows, schema=ORPHANS)


def remove_orphans(
    table: Table,
    older_than: timedelta = YOUNGEST,
    *,
    dry_run: bool = True,
    allow_recent: bool = False,
    allow_referred: bool = False,
) -> pa.Table:
    """Delete orphaned statistics files; by default only show which.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From a catalog.
    older_than : timedelta
        Least age of a file to delete, and least time since a version of the metadata that refers to it was replaced,
        as far as that version is still there: `write.metadata.delete-after-commit.enabled` removes it.
    dry_run : bool
        Whether only to show what would be deleted.
    allow_recent : bool
        Whether `older_than` may be less than a day.
    allow_referred : bool
        Whether to delete files that a metadata file which is no version of this table's refers to: only where no other
        catalog has this table.

    Returns
    -------
    pyarrow.Table
        `REMOVED_ORPHANS`: the rows of `find_orphans`, and:

        - removed : bool, whether the file has been deleted
        - kept_because : string, why it is not; null where it has been or, in a dry run, would be

    Raises
    ------
    CallError
        `older_than` is less than a day, without `allow_recent`.
    CommitError
        The table was opened from a metadata.json, or is no longer in its catalog.
    MetadataError
        As for `find_orphans`.
    """
    if not isinstance(older_than, timedelta):
        raise CallError(f"older_than is {older_than!r:.80}: expected a datetime.timedelta")
    if older_than < YOUNGEST and not allow_recent:
        raise CallError(f"older_than is {older_than}, expected a day at least: allow_recent=True if nobody commits")
    if not dry_run and isinstance(table, StaticTable):
        raise CommitError(f"{table.metadata_location} is read-only: open the table through its catalog to delete files")
    files = TableFiles(table.io)
    rows = find_orphans(table).to_pylist()
    is_shared = not is_true(table.metadata.properties, "gc.enabled", default=True)
    for row in rows:
        row["kept_because"] = _reason_to_keep(files, row, older_than, allow_referred=allow_referred)
        if is_shared:
            row["kept_because"] = "the table's property gc.enabled is not true: other tables may refer to its files"
        row["removed"] = False
        if row["kept_because"] is None and not dry_run:
            row["removed"] = remove_file(table, row["path"])
            row["kept_because"] = None if row["removed"] else "the storage did not delete it"
    return pa.Table.from_pylist(rows, schema=REMOVED_ORPHANS)


def _walk_versions(
    files: TableFiles,
    metadata: TableMetadata,
    folder: ListedFolder,
    modified_at: Mapping[str, datetime | None],
    beside: dict[str, str],
) -> dict[str, datetime]:
    """Return when the last version that refers to each file was replaced; take earlier versions out of `beside`."""
    # A version that was replaced before a file was written cannot refer to it.
    oldest = min((time for time in modified_at.values() if time is not None), default=None)
    found: dict[str, datetime] = {}
    for version, replaced_at in list_replaced_versions(files, metadata, folder):
        beside.pop(version.name, None)
        if len(found) < len(modified_at) and (oldest is None or replaced_at >= oldest - _CLOCK_SKEW):
            for name in version.referred_names & modified_at.keys():
                found.setdefault(name, replaced_at)
        elif not beside:
            break
    return found


def _in_days(duration: timedelta) -> str:
    return str(duration).removesuffix(", 0:00:00")


def _reason_to_keep(
    files: TableFiles, row: Mapping[str, Any], older_than: timedelta, *, allow_referred: bool
) -> str | None:
    age = row["age_seconds"]
    if age is None:
        return "its age is unknown"
    if age < older_than.total_seconds():
        return f"it is younger than {_in_days(older_than)}"
    replaced_at = row["last_referred_at"]
    if replaced_at is not None and datetime.now(UTC) - replaced_at < older_than:
        return f"the metadata that refers to it was replaced less than {_in_days(older_than)} ago"
    if row["referred_by"] is not None and not allow_referred:
        return "a metadata file refers to it that is no version of this table's: another catalog may have the table"
    try:
        if row["kind"] == TABLE_STATISTICS and _has_deletion_vector(files, row["path"]):
            return "it holds a deletion vector"
    except MetadataError as error:
        return f"it cannot be read: {error}"
    return None


def _kind(name: str) -> str:
    if name.startswith("partition-stats-"):
        return PARTITION_STATISTICS
    return TABLE_STATISTICS if name.endswith(".stats") else ""


def _metadata_folder(table: Table) -> str | None:
    """Return where the table keeps its metadata; None: that is not below its location, or has not its metadata.json."""
    folder = metadata_folder(table.metadata)
    is_home = is_at_home(table.metadata, table.metadata_location)
    return folder if is_home and is_below(folder, table.location()) else None


def _list_folder(table: Table, folder: str) -> Iterator[_Candidate]:
    if not folder:
        return
    check_reach(folder, table.metadata_location, table.io.properties)
    if isinstance(table.catalog, ForeignCatalog) and table.catalog.file_io is not None:
        try:
            found = list(table.catalog.list_files(folder))
        except OSError as error:
            raise unreadable(folder, error, table.io.properties) from safe_cause(error, table.io.properties)
        for location, size_bytes, modified_at in found:
            name = posixpath.basename(location)
            yield _Candidate(f"{folder}/{name}", _kind(name), size_bytes, modified_at)
        return
    io = PyArrowFileIO(table.io.properties)
    try:
        scheme, netloc, path = io.parse_location(folder, io.properties)
        listed = io.fs_by_scheme(scheme, netloc).get_file_info(FileSelector(path, allow_not_found=True))
    except (OSError, ValueError) as error:
        raise unreadable(folder, error, io.properties) from safe_cause(error, io.properties)
    for info in listed:
        try:
            name = info.base_name
        except UnicodeDecodeError:
            # No metadata can name it.
            continue
        # PyIceberg leaves out what follows `?` or `#`, and line ends: it would delete another file.
        reached = posixpath.basename(io.parse_location(f"{folder}/{name}", io.properties)[2])
        if info.type == FileType.File and reached == name:
            yield _Candidate(f"{folder}/{name}", _kind(name), info.size, info.mtime)


def _has_deletion_vector(files: TableFiles, path: str) -> bool:
    try:
        return any(blob.type == "deletion-vector-v1" for blob in read_puffin_footer(files, path).blobs)
    except PuffinFormatError:
        return False
