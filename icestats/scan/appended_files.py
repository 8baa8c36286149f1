"""Which data files a table has got since an earlier snapshot, where it has got files and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import FileScanTask

from icestats.errors import MetadataError
from icestats.iceberg.metadata import Snapshot, TableMetadata
from icestats.iceberg.storage import FileReader, reading
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import manifests_to_read, read_files

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

# A replace changes no row by the spec; whether it has changed files, the manifests say.
_HARMLESS_OPERATIONS = frozenset({"append", "replace"})
_DELETED = ("file_path", "sequence_number", "referenced_data_file", "content_offset", "record_count")
"""What tells delete files apart: a Puffin file has many, and a newer one is about more data files."""


@dataclass(frozen=True, slots=True)
class AppendedFiles:
    """The data files added since a snapshot; or why they are not the only change."""

    tasks: tuple[FileScanTask, ...] = ()
    row_count: int = 0
    reason: str | None = None
    """None where files were added, and nothing else was done."""


def read_changed_files(storage: FileReader, metadata: TableMetadata, base_id: int, snapshot: Snapshot) -> pa.Table:
    """Read the manifests that only one of two snapshots has: PyIceberg inflates without limits, and reads them next.

    Returns
    -------
    pyarrow.Table
        `schemas.files_schema`.
    """
    snapshots = [one for one in (metadata.snapshots.get(base_id), snapshot) if one is not None]
    listed = [manifests_to_read(read_manifest_list(storage, one)) for one in snapshots]
    times = Counter(manifest for manifests in listed for manifest in set(manifests))
    return read_files([one for one, count in times.items() if count < len(listed)], metadata, storage)


def find_appended_files(
    table: Table, metadata: TableMetadata, base_id: int, snapshot: Snapshot, changed: pa.Table
) -> AppendedFiles:
    """Find the data files that came between two snapshots.

    Parameters
    ----------
    table : pyiceberg.table.Table
        Whose files to read the manifests with.
    metadata : TableMetadata
        The table.
    base_id : int
        The earlier snapshot.
    snapshot : Snapshot
        The later one.
    changed : pyarrow.Table
        What `read_changed_files` gives of them.

    Returns
    -------
    AppendedFiles
        With a reason, and no files, unless all of this holds: the earlier snapshot is an ancestor; each snapshot after
        it says `append` or `replace`; no manifest that came has a DELETED entry; every data file of the earlier
        snapshot is live; the delete files are the same; and the files that came are Parquet.

    Raises
    ------
    MetadataError
        A manifest list or a manifest cannot be read.

    Notes
    -----
    Manifests that both snapshots have are not read: they never change. Delete files of the earlier snapshot are of no
    effect on files that came later, as their sequence numbers are lower (spec, "Scan Planning").
    """
    reason = _unfit_operations(metadata, base_id, snapshot)
    if reason is not None:
        return AppendedFiles(reason=reason)
    earlier, later = (_read_manifests(table, snapshot_id) for snapshot_id in (base_id, snapshot.snapshot_id))
    if earlier is None or later is None:
        return AppendedFiles(reason="a snapshot has no manifest list")
    gone = [manifest for path, manifest in earlier.items() if path not in later]
    came = [manifest for path, manifest in later.items() if path not in earlier]
    if _count_deletes(changed, gone) != _count_deletes(changed, came):
        return AppendedFiles(reason="rows have been deleted since: the delete files have changed")
    return _added(*(_read_entries(table.io, manifests) for manifests in (gone, came)))


def _unfit_operations(metadata: TableMetadata, base_id: int, snapshot: Snapshot) -> str | None:
    for ancestor in metadata.ancestors(snapshot):
        if ancestor.snapshot_id == base_id:
            return None
        if ancestor.operation not in _HARMLESS_OPERATIONS:
            return f"snapshot {ancestor.snapshot_id} since then is of the operation {ancestor.operation}"
    return f"snapshot {base_id} is no ancestor that is known"


def _read_manifests(table: Table, snapshot_id: int) -> dict[str, ManifestFile] | None:
    found = table.metadata.snapshot_by_id(snapshot_id)
    if found is None or not found.manifest_list:
        return None
    with reading(found.manifest_list, table.io.properties):
        return {manifest.manifest_path: manifest for manifest in found.manifests(table.io)}


def _count_deletes(files: pa.Table, manifests: Sequence[ManifestFile]) -> Counter[tuple[Any, ...]]:
    """Count the delete files of some manifests by what tells them apart, of which PyIceberg reads half."""
    own = pc.is_in(files["manifest_path"], pa.array([one.manifest_path for one in manifests], pa.string()))
    deletes = files.filter(pc.and_(own, pc.not_equal(files["content"], "data")))
    return Counter(zip(*(deletes[name].to_pylist() for name in _DELETED), strict=True))


def _read_entries(io: FileIO, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
    found: list[ManifestEntry] = []
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            with reading(manifest.manifest_path, io.properties):
                entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
            counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
            # PyIceberg 0.12 takes the place where a manifest is cut for its end.
            if None not in counts and len(entries) < sum(count or 0 for count in counts):
                raise MetadataError(f"{len(entries):,} entries, the manifest list counts more", manifest.manifest_path)
            found += entries
    return found


def _added(gone: Sequence[ManifestEntry], came: Sequence[ManifestEntry]) -> AppendedFiles:
    if any(entry.status == ManifestEntryStatus.DELETED for entry in came):
        return AppendedFiles(reason="data files have been removed since")
    before, after = (
        Counter(entry.data_file.file_path for entry in entries if entry.status != ManifestEntryStatus.DELETED)
        for entries in (gone, came)
    )
    if before - after:
        return AppendedFiles(reason="data files have been removed since")
    files: dict[str, DataFile] = {entry.data_file.file_path: entry.data_file for entry in came}
    # A file may be there any number of times: readers read its rows as often.
    added = [files[path] for path in (after - before).elements()]
    odd = next((file for file in added if file.file_format != FileFormat.PARQUET), None)
    if odd is not None:
        return AppendedFiles(reason=f"a file added since is {odd.file_format.value}, not Parquet")
    return AppendedFiles(tuple(FileScanTask(file) for file in added), sum(file.record_count for file in added))
