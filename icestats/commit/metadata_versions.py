"""The versions of a table's metadata: the live one, those that it has replaced, and files that are neither.

A metadata.json that lies beside a table's own and is no earlier version of it was left by a commit that was killed, or
belongs to another catalog in which the same table is registered: its content does not tell which.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

from icestats.errors import MetadataError
from icestats.iceberg.metadata import TableMetadata, read_metadata
from icestats.iceberg.storage import FileReader

SUFFIXES = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True)
class ReplacedVersion:
    """An earlier version of a table's metadata."""

    location: str
    replaced_at: datetime


def referred_names(metadata: TableMetadata) -> set[str]:
    """Return the names of the statistics files that a version refers to.

    Names go without their folders: they hold a UUID, and writers spell one location in several ways.
    """
    paths = [file.statistics_path for file in metadata.statistics]
    paths += [file.statistics_path for file in metadata.partition_statistics]
    return {name for path in paths for name in (posixpath.basename(path), unquote(posixpath.basename(path)))}


def list_replaced_versions(files: FileReader, metadata: TableMetadata) -> Iterator[ReplacedVersion]:
    """Yield the earlier versions of a table's metadata, the newest first.

    The metadata log has the last few only; the log of the oldest of these reaches further back, and so on, as long as
    the files are there. A file is read when the versions before it are asked for.
    """
    known: set[str] = set()
    version: TableMetadata | None = metadata
    while version is not None:
        times = [written_ms for written_ms, _ in version.metadata_log] + [version.last_updated_ms]
        log = [(location, times[i + 1]) for i, (_, location) in enumerate(version.metadata_log)]
        log = [(location, replaced_ms) for location, replaced_ms in log if posixpath.basename(location) not in known]
        known.update(posixpath.basename(location) for location, _ in log)
        for location, replaced_ms in reversed(log):
            yield ReplacedVersion(location, datetime.fromtimestamp(replaced_ms / 1000, UTC))
        version = read_version(files, log[0][0]) if log else None


def find_foreign_versions(
    files: FileReader, own_location: str, metadata: TableMetadata, beside: Iterable[str]
) -> list[str]:
    """Find the metadata files that are neither a version of a table nor one of its earlier ones.

    Parameters
    ----------
    files : FileReader
        Where to read from.
    own_location : str
        The live version's file.
    metadata : TableMetadata
        The live version.
    beside : iterable of str
        Locations of the metadata files in its folder.

    Returns
    -------
    list of str
        Their locations. An older version that the log has dropped is no foreign one, as long as the versions that
        link it to the log can be read.
    """
    unknown = {posixpath.basename(location): location for location in beside}
    unknown.pop(posixpath.basename(own_location), None)
    versions = list_replaced_versions(files, metadata)
    while unknown and (version := next(versions, None)) is not None:
        unknown.pop(posixpath.basename(version.location), None)
    return sorted(unknown.values())


def find_later_versions(files: FileReader, own_location: str, locations: Iterable[str]) -> list[str]:
    """Return those of some metadata files whose log has a version: they came after it."""
    own = posixpath.basename(own_location)
    later = []
    for location in locations:
        version = read_version(files, location)
        if version is not None and own in {posixpath.basename(path) for _, path in version.metadata_log}:
            later.append(location)
    return later


def read_version(files: FileReader, location: str) -> TableMetadata | None:
    """Read a version of the metadata; None where it is gone, or was cut so that nobody can read it.

    Raises
    ------
    MetadataError
        It is there and cannot be read, or is of a format that this package does not know: others may read it.
    """
    try:
        return read_metadata(files, location)
    except MetadataError as error:
        if isinstance(error.__cause__, FileNotFoundError | json.JSONDecodeError | UnicodeDecodeError):
            return None
        raise


def read_references(files: FileReader, locations: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each metadata file that can be read, with the names of the statistics files that it refers to."""
    for location in locations:
        version = read_version(files, location)
        if version is not None:
            yield location, referred_names(version)
