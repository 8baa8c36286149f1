"""What a commit reads of a PyIceberg table and its files, and the files that it writes and removes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError as PydanticValidationError
from pyiceberg.exceptions import NoSuchTableError, ValidationError
from pyiceberg.table import StaticTable

from icestats.answers.text import one_line
from icestats.commit.entries import Entry, checks_requirements, find_path
from icestats.commit.puffin_writer import CarriedBlob
from icestats.errors import CommitError, IcestatsError, MetadataError, PuffinFormatError, UnsupportedError
from icestats.iceberg.confined_io import find_unsafe_write, metadata_folder
from icestats.iceberg.metadata import BlobMetadata, StatisticsFile, TableMetadata, read_metadata
from icestats.iceberg.storage import check_regular, local_path, read_range, unreadable
from icestats.read.puffin.puffin import read_puffin_footer, read_stored_blob

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

_LOG_ENTRIES_TO_SEARCH = 20


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


class TableFiles:
    """A `storage.FileReader` over a PyIceberg table's own FileIO, with the credentials that its catalog gave it."""

    def __init__(self, io: FileIO) -> None:
        self._io = io

    def size(self, location: str) -> int:
        """Return the length of a file in bytes."""
        try:
            _check_local(location)
            return len(self._io.new_input(location))
        except (OSError, ValueError) as error:
            raise unreadable(location, error) from error

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes from `offset`, all of them or at most `length`."""
        try:
            _check_local(location)
            with self._io.new_input(location).open() as stream:
                return read_range(stream, location, offset, length)
        except (OSError, ValueError) as error:
            raise unreadable(location, error) from error


def _check_local(location: str) -> None:
    path = local_path(location)
    if path is not None:
        check_regular(path.stat(), location)


def table_name(table: Table) -> str:
    """Return a table's name as a person writes it."""
    return ".".join(table.name())


def find_refusal(table: Table) -> IcestatsError | None:
    """Return why nothing can be committed to a table, or None."""
    if isinstance(table, StaticTable):
        return CommitError(f"{table.metadata_location} is read-only: open the table through its catalog to commit")
    if table.metadata.format_version > 2 and checks_requirements(table):
        return UnsupportedError(
            f"{table_name(table)} has format version {table.metadata.format_version}: PyIceberg 0.12 writes versions 1 "
            "and 2 only, commit through a REST catalog"
        )
    return find_unsafe_write(table)


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
        The table is read-only or dropped.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    """
    if to_commit:
        _refuse(table)
    try:
        fresh = table.catalog.load_table(table.name())
    except NoSuchTableError as error:
        raise CommitError(f"{table_name(table)} is no longer in its catalog: nothing was committed") from error
    except (ValidationError, PydanticValidationError) as error:
        raise UnsupportedError(
            f"PyIceberg cannot load {table_name(table)}, perhaps for a type of statistics blob that it does not know: "
            f"{one_line(error)}"
        ) from error
    if fresh.metadata.table_uuid != table.metadata.table_uuid:
        raise CommitError(f"{table_name(table)} is another table now, dropped and made anew: nothing was committed")
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
    """Return a snapshot's entry in metadata.json's `statistics`."""
    for entry in table.metadata.statistics:
        if entry.snapshot_id == snapshot_id:
            blobs = tuple(
                BlobMetadata(b.type, b.snapshot_id, b.sequence_number, tuple(b.fields), dict(b.properties or {}))
                for b in entry.blob_metadata
            )
            return StatisticsFile(
                snapshot_id, entry.statistics_path, entry.file_size_in_bytes, entry.file_footer_size_in_bytes, blobs
            )
    return None


def read_existing(table: Table, entry: StatisticsFile) -> ExistingFile:
    """Read a statistics file with all its blobs, as they are stored.

    Raises
    ------
    MetadataError
        It cannot be read.
    UnsupportedError
        It is encrypted.
    """
    path = entry.statistics_path
    if any(s.statistics_path == path and s.key_metadata is not None for s in table.metadata.statistics):
        raise UnsupportedError(f"{path} is encrypted: its blobs cannot be carried over")
    files = TableFiles(table.io)
    try:
        footer = read_puffin_footer(files, path)
        blobs = tuple(CarriedBlob(blob, read_stored_blob(files, blob, path)) for blob in footer.blobs)
    except MetadataError as error:
        kind = PuffinFormatError if isinstance(error, PuffinFormatError) else MetadataError
        reason = str(error).removeprefix(f"{path}: ")
        raise kind(
            f"the present blobs cannot be carried over (remove_statistics() takes them out of the table): {reason}",
            path,
        ) from error
    return ExistingFile(entry, blobs, footer.properties)


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


def find_predecessor(table: Table, ours: StatisticsFile) -> StatisticsFile | None:
    """Return the entry that stood where `ours` stands, in the newest metadata file that does not have `ours` yet.

    Raises
    ------
    MetadataError
        A metadata file of the log cannot be read.
    """
    seen = find_path(table.metadata, ours) == ours.statistics_path
    for metadata in _read_log(table):
        found = next((s for s in metadata.statistics if s.snapshot_id == ours.snapshot_id), None)
        if found is not None and found.statistics_path == ours.statistics_path:
            seen = True
        elif seen:
            return found
    return None


def find_committed(table: Table, ours: Entry) -> Table | None:
    """Return the table as its catalog has it now if an entry stands in its metadata, or has stood there; else None."""
    fresh = reload_table(table)
    if find_path(fresh.metadata, ours) == ours.statistics_path:
        return fresh
    known = any(find_path(metadata, ours) == ours.statistics_path for metadata in _read_log(fresh))
    return fresh if known else None


def _read_log(table: Table) -> Iterator[TableMetadata]:
    """Yield the replaced versions of the metadata, the newest first."""
    files = TableFiles(table.io)
    for log_entry in reversed(table.metadata.metadata_log[-_LOG_ENTRIES_TO_SEARCH:]):
        yield read_metadata(files, log_entry.metadata_file)
