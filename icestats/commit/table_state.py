"""What a commit reads of a PyIceberg table and its files, and the files that it writes and removes."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pydantic import ValidationError as PydanticValidationError
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError, ValidationError
from pyiceberg.table import StaticTable
from pyiceberg.transforms import UnknownTransform
from pyiceberg.utils.properties import property_as_int

from icestats.answers.text import one_line
from icestats.commit.entries import Entry, EntryChange, find_path
from icestats.commit.puffin_writer import CarriedBlob, NewBlob
from icestats.errors import (
    CommitError,
    IcestatsError,
    MetadataError,
    PuffinFormatError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.catalog import explain_catalog_error, explain_invalid
from icestats.iceberg.confined_io import find_unsafe_deletes, find_unsafe_write, is_true, metadata_folder
from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.storage import read_range, reading, size_of
from icestats.read.puffin.puffin import PuffinBlob, PuffinFooter, read_puffin_footer, read_stored_blob
from icestats.read.puffin.statistics_age import CREATED_BY, PRESTO, THETA, TRINO

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

BlobKey = tuple[str, tuple[int, ...]]
"""The type and fields of a blob: a file has one of each."""
MOST_CARRIED_BYTES = 1 << 30
"""What a commit carries over, or puts back: it is in memory three times, and may be nothing but a hole on the disk."""
_MOST_FILES = 16
"""Of a snapshot: their footers are read whatever they have."""
_LOG_ENTRIES_TO_SEARCH = 1000
COPY_OF = "-copy-of-"
_COPY = re.compile(rf"{COPY_OF}([0-9a-f]{{8}})\.\w+$")
_UNREAD = (
    "the present blobs cannot be carried over, so nothing was committed: try again, or remove_statistics() takes them "
    "out of the table"
)
_NUMBERS = tuple(f"commit.retry.{name}" for name in ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms"))
"""Properties that PyIceberg reads at the start of each commit."""
_LOCKS = "engine.hive.lock-enabled"


@dataclass(frozen=True, slots=True)
class Column:
    """What a plan needs to know of a field of the current schema."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """A statistics file that others committed for the snapshot, with its blobs as they are stored."""

    entry: StatisticsFile
    blobs: tuple[CarriedBlob, ...]
    properties: Mapping[str, str]


def blob_key(blob: NewBlob | PuffinBlob | BlobMetadata) -> BlobKey:
    """Return what tells a blob from the others of its file."""
    return blob.type, tuple(blob.field_ids)


class TableFiles:
    """A `storage.FileReader` over a PyIceberg table's own FileIO, with the credentials that its catalog gave it."""

    def __init__(self, io: FileIO) -> None:
        self._io = io

    def size(self, location: str) -> int:
        """Return the length of a file in bytes."""
        with reading(location, self._io.properties):
            return size_of(self._io.new_input(location), location)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes from `offset`, all of them or at most `length`."""
        with reading(location, self._io.properties), self._io.new_input(location).open() as stream:
            return read_range(stream, location, offset, length)


def table_name(table: Table) -> str:
    """Return a table's name as a person writes it."""
    return ".".join(table.name())


def known_properties(table: Table) -> dict[str, Any]:
    """Return what a table's catalog and its files are opened with, whose secrets no error tells."""
    return {"catalog": table.catalog.properties, **table.io.properties}


def check_snapshot(table: Table, snapshot_id: int) -> None:
    """Raise SnapshotNotFoundError where the table, as it was loaded, does not have a snapshot."""
    if table.metadata.snapshot_by_id(snapshot_id) is None:
        raise SnapshotNotFoundError(f"{table_name(table)} has no snapshot {snapshot_id}: it may have expired")


def warn_of_refusal(table: Table) -> tuple[str, ...]:
    """Return what a preview says where nothing can be committed to a table."""
    refusal = find_refusal(table)
    return () if refusal is None else (f"cannot be committed: {refusal}",)


def find_refusal(table: Table) -> IcestatsError | None:
    """Return why nothing can be committed to a table, or None."""
    if isinstance(table, StaticTable):
        return CommitError(f"{table.metadata_location} is read-only: open the table through its catalog to commit")
    if table.metadata.format_version > 2 and isinstance(table.catalog, MetastoreCatalog):
        return UnsupportedError(
            f"{table_name(table)} has format version {table.metadata.format_version}: PyIceberg 0.12 writes versions 1 "
            "and 2 only, commit through a REST catalog"
        )
    if (refusal := find_unsafe_write(table)) is not None:
        return refusal
    if isinstance(table.catalog, ForeignCatalog) and (refusal := find_unsafe_deletes(table)) is not None:
        return refusal
    try:
        _check_next_version(table)
    except (ValueError, ValidationError, NotImplementedError) as error:
        return CommitError(f"{table_name(table)} takes no commit of PyIceberg: {one_line(error)}")
    return None


def _check_next_version(table: Table) -> None:
    """Raise what PyIceberg raises over a table's next version, once files have been written for it.

    A ValueError too where it would write a version that takes something from others.
    """
    metadata, schema = table.metadata, table.schema()
    for name in _NUMBERS:
        property_as_int(metadata.properties, name)
    metadata.spec().check_compatible(schema)
    metadata.sort_order().check_compatible(schema)
    if hasattr(table.catalog, "_check_endpoint"):
        from pyiceberg.catalog.rest import Capability

        table.catalog._check_endpoint(Capability.V1_UPDATE_TABLE)
    if not isinstance(table.catalog, MetastoreCatalog):
        return
    property_as_int(metadata.properties, "write.metadata.previous-versions-max")
    table.location_provider()
    transforms = [field.transform for spec in metadata.partition_specs for field in spec.fields]
    transforms += [field.transform for order in metadata.sort_orders for field in order.fields]
    for transform in transforms:
        if isinstance(transform, UnknownTransform):
            # It would write "unknown" in place of its name.
            raise ValueError(f"it does not know {transform!r}, and would not keep it for other engines")
    modules = {kind.__module__ for kind in type(table.catalog).__mro__}
    if modules & {"pyiceberg.catalog.bigquery_metastore", "pyiceberg.catalog.dynamodb"}:
        raise ValueError("it only reads tables of such a catalog")
    if "pyiceberg.catalog.hive" in modules and not is_true(table.properties, _LOCKS, default=True):
        raise ValueError(f"it locks the table, which others then commit to all the same ({_LOCKS} is not true)")


def reload_table(table: Table, *, to_commit: bool = True) -> Table:
    """Return the table as its catalog has it now.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was loaded at some time.
    to_commit : bool
        Whether to refuse a table that nothing can be committed to.

    Raises
    ------
    CommitError
        The table is read-only or dropped, or the catalog or its storage fails.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    """
    if to_commit:
        _refuse(table)
    try:
        fresh = table.catalog.load_table(table.name())
    except NoSuchTableError as error:
        cause = explain_catalog_error(error, known_properties(table))[1]
        raise CommitError(f"{table_name(table)} is no longer in its catalog; nothing was committed") from cause
    except (ValidationError, PydanticValidationError) as error:
        raise UnsupportedError(f"PyIceberg cannot load {table_name(table)}: {explain_invalid(error)}") from None
    except IcestatsError:
        raise
    except Exception as error:  # noqa: BLE001 - each catalog has its own errors
        said, cause = explain_catalog_error(error, known_properties(table))
        raise CommitError(f"{table_name(table)} cannot be loaded from its catalog: {said}") from cause
    if fresh.metadata.table_uuid != table.metadata.table_uuid:
        raise CommitError(f"{table_name(table)} is another table now, dropped and made anew; nothing was committed")
    if to_commit:
        _refuse(fresh)
    return fresh


def _refuse(table: Table) -> None:
    refusal = find_refusal(table)
    if refusal is not None:
        raise refusal


def current_columns(table: Table) -> dict[int, Column]:
    """Return the fields of the current schema, nested ones included, by id."""
    schema = table.schema()
    return {i: Column(schema.find_column_name(i) or f"#{i}", str(schema.find_type(i))) for i in schema.field_ids}


def find_statistics(table: Table, snapshot_id: int) -> StatisticsFile | None:
    """Return a snapshot's entry in metadata.json's `statistics`, the first one."""
    return next(list_statistics(table, snapshot_id), None)


def list_statistics(table: Table, snapshot_id: int | None = None) -> Iterator[StatisticsFile]:
    """Yield a snapshot's entries in metadata.json's `statistics`, one, though the spec forbids no more; or all."""
    for entry in table.metadata.statistics:
        if snapshot_id in (None, entry.snapshot_id):
            blobs = tuple(
                BlobMetadata(b.type, b.snapshot_id, b.sequence_number, tuple(b.fields), dict(b.properties or {}))
                for b in entry.blob_metadata
            )
            sizes = (entry.file_size_in_bytes, entry.file_footer_size_in_bytes)
            yield StatisticsFile(entry.snapshot_id, entry.statistics_path, *sizes, blobs, entry.key_metadata)


def list_further_paths(table: Table, snapshot_id: int) -> list[str]:
    """Return the paths of a snapshot's statistics files but the first, which goes for the snapshot's."""
    return [entry.statistics_path for entry in list_statistics(table, snapshot_id)][1:]


def find_partition_statistics(table: Table, snapshot_id: int) -> PartitionStatisticsFile | None:
    """Return a snapshot's entry in metadata.json's `partition-statistics`."""
    return next((entry for entry in list_partition_statistics(table) if entry.snapshot_id == snapshot_id), None)


def list_partition_statistics(table: Table) -> Iterator[PartitionStatisticsFile]:
    """Yield the entries of metadata.json's `partition-statistics`."""
    for entry in table.metadata.partition_statistics:
        yield PartitionStatisticsFile(entry.snapshot_id, entry.statistics_path, entry.file_size_in_bytes)


def read_all_existing(table: Table, snapshot_id: int) -> list[ExistingFile]:
    """Read a snapshot's statistics files; raises as `read_existing`, also where they are too many or too large."""
    found: list[ExistingFile] = []
    left = MOST_CARRIED_BYTES
    for entry in _list_few(table, snapshot_id):
        found.append(read_existing(table, entry, left))
        left -= sum(len(held.stored) for held in found[-1].blobs)
    return found


def _list_few(table: Table, snapshot_id: int) -> Iterator[StatisticsFile]:
    """Yield a snapshot's entries; raise MetadataError where there are too many."""
    for number, entry in enumerate(list_statistics(table, snapshot_id)):
        if number == _MOST_FILES:
            what = f"snapshot {snapshot_id} has more than {_MOST_FILES} statistics files, expected one"
            raise MetadataError(f"{what}: remove_statistics() takes them out of the table", table.metadata_location)
        yield entry


def check_carried(blobs: Sequence[PuffinBlob], left: int, path: str) -> None:
    """Raise MetadataError where blobs that are to be carried over are larger than what is left for them."""
    if (size := sum(blob.length for blob in blobs)) > left:
        raise MetadataError(
            f"its blobs have {size:,} bytes, expected {left:,} at most: a commit carries {MOST_CARRIED_BYTES:,}", path
        )


def read_carried(
    table: Table, entry: StatisticsFile, footer: PuffinFooter, blobs: Sequence[PuffinBlob]
) -> ExistingFile:
    """Read blobs of a file as they are stored, sketches marked with their maker where the new file does not tell it."""
    files, path = TableFiles(table.io), entry.statistics_path
    made_by = footer.properties.get("created-by", "")
    maker = TRINO if made_by.startswith(TRINO) else "Presto" if made_by.startswith(PRESTO) else ""
    marks = {CREATED_BY: maker} if maker else {}
    carried = [CarriedBlob(_mark(b, marks), read_stored_blob(files, b, path)) for b in blobs]
    return ExistingFile(entry, tuple(carried), footer.properties)


def _mark(blob: PuffinBlob, marks: Mapping[str, str]) -> PuffinBlob:
    """Return a sketch with properties that it does not have yet; other blobs as they are."""
    return replace(blob, properties={**marks, **blob.properties}) if blob.type == THETA else blob


def check_existing(table: Table, snapshot_id: int) -> None:
    """Raise as `read_all_existing` would, as far as the footers of a snapshot's statistics files tell."""
    for entry in _list_few(table, snapshot_id):
        with _explained(entry.statistics_path):
            _read_footer(table, entry, MOST_CARRIED_BYTES)


def read_existing(table: Table, entry: StatisticsFile, left: int = MOST_CARRIED_BYTES) -> ExistingFile:
    """Read a statistics file with all its blobs, as they are stored.

    Raises
    ------
    MetadataError
        It is gone, or damaged, or its blobs have more bytes than are left.
    CommitError
        The storage failed.
    UnsupportedError
        It is encrypted.
    """
    with _explained(entry.statistics_path):
        footer = _read_footer(table, entry, left)
        return read_carried(table, entry, footer, footer.blobs)


def _read_footer(table: Table, entry: StatisticsFile, left: int) -> PuffinFooter:
    path = entry.statistics_path
    if entry.key_metadata is not None:
        raise UnsupportedError(f"{path} is encrypted: its blobs cannot be carried over")
    footer = read_puffin_footer(TableFiles(table.io), path)
    check_carried(footer.blobs, left, path)
    return footer


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except MetadataError as error:
        refuse_storage_failure(error, _UNREAD)
        kind = PuffinFormatError if isinstance(error, PuffinFormatError) else MetadataError
        reason = str(error).removeprefix(f"{path}: ")
        raise kind(
            f"the present blobs cannot be carried over (remove_statistics() takes them out of the table): {reason}",
            path,
        ) from error


def refuse_storage_failure(error: MetadataError, refusal: str) -> None:
    """Raise CommitError where a file could not be read, but may be another time: it is neither gone nor damaged."""
    if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
        raise CommitError(f"{refusal}: {error}") from error


def new_metadata_path(table: Table, prefix: str, suffix: str) -> str:
    """Return a name that no file has, where the table keeps its metadata."""
    return f"{metadata_folder(table.metadata)}/{prefix}{uuid.uuid4()}{suffix}"


def write_file(table: Table, path: str, data: bytes, on_open: Callable[[], None]) -> None:
    """Create a file; never overwrite one. `on_open` is called when it exists and is still empty."""
    with table.io.new_output(path).create(overwrite=False) as stream:
        on_open()
        stream.write(data)


def remove_file(table: Table, path: str) -> bool:
    """Delete a file; return whether it is gone."""
    try:
        table.io.delete(path)
    except FileNotFoundError:
        return True
    except Exception:  # noqa: BLE001 - each FileIO has its own errors, and the file is harmless where it is
        return False
    return True


def find_predecessor(table: Table, ours: Sequence[Entry]) -> TableMetadata | None:
    """Return the newest version of the metadata from before all of some entries of a snapshot stood in it.

    Where the next version put copies in their place, it is the one from before what was copied stood in it earlier.

    Raises
    ------
    MetadataError
        A metadata file of the log cannot be read, or more versions have been written since than are looked through.
    """
    paths: list[str | None] = [entry.statistics_path for entry in ours]
    copied: list[str | None] = []
    for version in _read_log(table, ()):
        found = [find_path(version, entry) for entry in ours]
        if any(copied):
            if all(one in (None, path and name_original(path)) for one, path in zip(copied, found, strict=True)):
                paths, copied = found, []
        elif found != paths:
            copied = [None if path == old else _find_copied(path) for path, old in zip(paths, found, strict=True)]
            if not any(copied):
                return version
    if len(table.metadata.metadata_log) > _LOG_ENTRIES_TO_SEARCH:
        raise MetadataError(
            f"they stand in each of the last {_LOG_ENTRIES_TO_SEARCH:,} versions, and no more are looked through",
            table.metadata_location,
        )
    return None


def name_original(path: str) -> str:
    """Return a checksum of the name of a file, or of that which it is a copy of: the names of copies end with it."""
    return _find_copied(path) or f"{crc32(path.rpartition('/')[2].encode(errors='replace')):08x}"


def _find_copied(path: str | None) -> str | None:
    found = _COPY.search(path or "")
    return None if found is None else found[1]


def find_committed(
    table: Table, changes: Sequence[EntryChange], known: Collection[str], written: Collection[str] = ()
) -> Table | None:
    """Return the table as its catalog has it now if all of some changes are in it, or were since a version; else None.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table.
    changes : sequence of EntryChange
        What was to be committed.
    known : collection of str
        Where the metadata.json is that they were to change, and where those before it are.
    written : collection of str
        The files that were written for this commit alone: one of them in the table shows that it has been done, though
        others have changed the rest since.
    """

    def is_done(metadata: IcebergMetadata | TableMetadata) -> bool:
        return shows_all(metadata, changes) or any(find_path(metadata, change) in written for change in changes)

    fresh = reload_table(table)
    if fresh.metadata_location in known:
        return None
    if is_done(fresh.metadata):
        return fresh
    return fresh if any(map(is_done, _read_log(fresh, known))) else None


def find_between(table: Table, of: Sequence[Entry | EntryChange], known: str) -> list[TableMetadata]:
    """Return the versions of the metadata between a known one and that which some entries made, the newest first.

    Where the log does not have the known version, only the newest.

    Raises
    ------
    MetadataError
        A metadata file of the log cannot be read.
    """
    found = list(_versions_before(table, of, known))
    logged = {entry.metadata_file for entry in table.metadata.metadata_log[-_LOG_ENTRIES_TO_SEARCH:]}
    return found if known in logged else found[:1]


def list_since(table: Table, snapshot_id: int, known: str) -> list[StatisticsFile | None]:
    """Return a snapshot's statistics entry in each version since a known one, the present one last.

    Where the log does not have the known version, it is that of the newest replaced one and of the present one.

    Raises
    ------
    MetadataError
        A metadata file of the log cannot be read.
    """
    if table.metadata_location == known:
        return []
    logged = {entry.metadata_file for entry in table.metadata.metadata_log[-_LOG_ENTRIES_TO_SEARCH:]}
    replaced = _read_log(table, (known,)) if known in logged or not known else islice(_read_log(table, ()), 1)
    found = [next((e for e in version.statistics if e.snapshot_id == snapshot_id), None) for version in replaced]
    return [*reversed(found), find_statistics(table, snapshot_id)]


def shows_all(metadata: IcebergMetadata | TableMetadata, changes: Sequence[EntryChange]) -> bool:
    """Whether the metadata is as some changes leave it."""
    return all(find_path(metadata, change) == (change.after and change.after.statistics_path) for change in changes)


def _versions_before(
    table: Table, of: Sequence[Entry | EntryChange], known: str | None = None
) -> Iterator[TableMetadata]:
    """Yield the versions, the newest first, from before all of some entries or changes stood in the metadata."""
    wanted = [one.after if isinstance(one, EntryChange) else one for one in of]
    paths = [None if entry is None else entry.statistics_path for entry in wanted]

    def is_done(metadata: IcebergMetadata | TableMetadata) -> bool:
        return [find_path(metadata, one) for one in of] == paths

    seen = is_done(table.metadata)
    is_before = False
    for metadata in _read_log(table, () if known is None else (known,)):
        is_before = is_before or (seen and not is_done(metadata))
        seen = seen or is_done(metadata)
        if is_before:
            yield metadata


def _read_log(table: Table, known: Collection[str]) -> Iterator[TableMetadata]:
    """Yield the replaced versions of the metadata, the newest first, back to the first after one that is known."""
    files, seen = TableFiles(table.io), set[str]()
    for log_entry in reversed(table.metadata.metadata_log[-_LOG_ENTRIES_TO_SEARCH:]):
        if log_entry.metadata_file in known:
            return
        # A log may name a file any number of times; names hold a UUID, or a number.
        if (name := log_entry.metadata_file.rpartition("/")[2]) not in seen:
            seen.add(name)
            yield read_metadata(files, log_entry.metadata_file)
