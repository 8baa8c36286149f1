"""The versions of a table's metadata: the live one, those that it has replaced, and files that are neither.

A metadata.json that lies beside a table's own and is no earlier version of it was left by a commit that was killed, or
belongs to another catalog in which the same table is registered: its content does not tell which.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from urllib.parse import unquote

from icestats.errors import MetadataError
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.metadata_json import GZIP_MAGIC, read_metadata
from icestats.iceberg.storage import FileReader

SUFFIXES = (".metadata.json", ".metadata.json.gz")


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
MOST_GONE = 1_000
"""How many versions that are not there are asked for: a log may name any number, each a request to the storage."""


@dataclass
class ListedFolder:
    """The table's metadata folder, whose files are known: of a version in it that is gone, no storage is asked."""

    location: str
    names: frozenset[str]
    _gone_count: int = 0

    def lacks(self, location: str) -> bool:
        """Whether a file would be in this folder, and is not."""
        folder, _, name = location.rpartition("/")
        # Others are read by another name where `%20`, `#` or `?` is in them.
        return folder == self.location and _PLAIN_NAME.fullmatch(name) is not None and name not in self.names

    def count_gone(self, location: str) -> None:
        """Count a version that was asked for and is not there; raise MetadataError at more than `MOST_GONE`."""
        self._gone_count += 1
        if self._gone_count > MOST_GONE:
            raise MetadataError(
                f"no such file, like {MOST_GONE:,} other versions that the metadata log names outside of "
                f"{self.location}: what they refer to is unknown",
                location,
            )


@dataclass(frozen=True)
class OtherVersion:
    """A metadata file beside the live one, which is read when it is asked about, and once."""

    files: FileReader
    location: str
    folder: ListedFolder

    @property
    def name(self) -> str:
        """Of the file, without its folder."""
        return posixpath.basename(self.location)

    @cached_property
    def metadata(self) -> TableMetadata | None:
        """None: it is gone, or it is cut on the storage, so that nobody can read it.

        Raises MetadataError where it is there and cannot be read, or is of a format that this package does not know:
        others may read it.
        """
        if self.folder.lacks(self.location):
            return None
        try:
            return read_metadata(self.files, self.location)
        except MetadataError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                self.folder.count_gone(self.location)
                return None
            if not self._is_cut():
                raise
            return None

    def _is_cut(self) -> bool:
        """Whether the bytes, all that the storage has, are no JSON: an answer may be cut where the file is not."""
        data = self.files.read(self.location)
        if len(data) < self.files.size(self.location):
            return False
        try:
            json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return not data.startswith(GZIP_MAGIC)
        except RecursionError:
            return False
        return False

    @property
    def referred_names(self) -> set[str]:
        """As `referred_names`, empty where nobody can read it."""
        return set() if self.metadata is None else referred_names(self.metadata)

    def follows(self, name: str) -> bool:
        """Whether its log has a version of this name."""
        log = () if self.metadata is None else self.metadata.metadata_log
        return name in {posixpath.basename(location) for _, location in log}


def referred_names(metadata: TableMetadata) -> set[str]:
    """Return the names of the statistics files that a version refers to.

    Names go without their folders: they hold a UUID, and writers spell one location in several ways. Readers find
    `a.stats` by `a.stats/.` too, and PyIceberg ends a path at `#` and `?`.
    """
    paths = [file.statistics_path for file in metadata.statistics]
    paths += [file.statistics_path for file in metadata.partition_statistics]
    paths += [re.split("[#?]", path)[0] for path in paths]
    found = {posixpath.basename(posixpath.normpath(path)) for path in paths}
    return found | {unquote(name) for name in found}


def list_replaced_versions(
    files: FileReader, metadata: TableMetadata, folder: ListedFolder
) -> Iterator[tuple[OtherVersion, datetime]]:
    """Yield the earlier versions of a table's metadata and when each was replaced, the newest first.

    The metadata log has the last few only; the log of the oldest of these reaches further back, and so on, as long as
    the files are there. A file is read when the versions before it are asked for.
    """
    known: set[str] = set()
    version: TableMetadata | None = metadata
    while version is not None:
        times = [written_ms for written_ms, _ in version.metadata_log] + [version.last_updated_ms]
        log: dict[str, tuple[OtherVersion, datetime]] = {}
        for i, (_, location) in enumerate(version.metadata_log):
            name = _cut_name(location)
            if name not in known:
                # A log may name a file any number of times, but the last of them is when it was replaced.
                log.pop(name, None)
                log[name] = OtherVersion(files, location, folder), datetime.fromtimestamp(times[i + 1] / 1000, UTC)
        known.update(log)
        replaced = list(log.values())
        oldest = replaced[0][0] if replaced else None
        while replaced:
            yield replaced.pop()
        version = None if oldest is None else oldest.metadata


def _cut_name(location: str) -> str:
    """Return the name of a file, up to where PyIceberg ends a path."""
    return posixpath.basename(re.split("[#?]", location, maxsplit=1)[0])
