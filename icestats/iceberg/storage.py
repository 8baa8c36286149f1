"""Bytes of metadata files, wherever they are: local files directly, everything else through PyIceberg's FileIO."""

from __future__ import annotations

import datetime as dt
import functools
import os
import re
import stat
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol
from urllib.parse import unquote

from icestats.answers.redaction import safe_cause, safe_line
from icestats.errors import CallError, IcestatsError, MetadataError
from icestats.iceberg.reach import check_reach, store_of

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO, InputFile, InputStream

_opening = threading.Lock()
_KINDS = ((stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
GCS_RETRY_LIMIT_S = 15
"""How long to retry a request to Google Cloud Storage. Arrow's own limit is 15 minutes, and PyIceberg has no property
for it."""
_GCS_SCHEMES = ("gs", "gcs")
MAX_FILE_SIZE_BYTES = 256 << 20
"""Largest file that is read whole."""
MAX_RATIO = 256
"""Compressed bytes may expand to this many times their length, ..."""
FREE_SIZE_BYTES = 64 << 20
"""... or to this many bytes, whichever is more."""
ENCRYPTED = b"AGS1"
"""How a file begins that Iceberg has encrypted. Source: Iceberg spec, "AES GCM Stream"."""
_CUTTING = ("s3", "gs")
"""Storages whose clients end a location at `?` and `#`."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_MAX_READ_SIZE_BYTES = (1 << 31) - 1
"""Most bytes that are read of a file at once."""


class FileReader(Protocol):
    """What readers of metadata files need from a storage."""

    def size(self, location: str) -> int:
        """Return the length of a file in bytes."""

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes from `offset`: all of them, or at most `length`."""


class Storage:
    """Read-only access to files by location.

    Parameters
    ----------
    properties : mapping of str to str
        PyIceberg FileIO properties (`s3.endpoint`, `gcs.project-id`, ...) of the catalog; never a table's own.
    home : str, optional
        Where the metadata.json is whose files these are: others than it may name are not opened.
    file_io : pyiceberg.io.FileIO, optional
        What opens files that are not local, in this process only; by default what PyIceberg makes of the properties.
    opened_by : str
        The catalog that gave `file_io`, whose endpoints are in no properties here.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        home: str | None = None,
        file_io: FileIO | None = None,
        opened_by: str = "",
    ) -> None:
        self.opened_by = opened_by
        self.properties = dict(properties or {})
        self.home = home
        self.file_io = file_io
        self._file_ios: dict[str, FileIO] = {}

    def size(self, location: str) -> int:
        """Return the length of a file in bytes.

        Raises
        ------
        MetadataError
            The file does not exist or cannot be read.
        """
        path = self._find_path(location)
        with reading(location, self.properties):
            if path is not None:
                return check_regular(path.stat(), location).st_size
            return size_of(open_input(self._file_io(location), location), location)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes from `offset`: all of them, or at most `length`.

        Raises
        ------
        MetadataError
            The file does not exist, is no regular file, cannot be read, or is larger than `MAX_FILE_SIZE_BYTES` where
            all of it is asked for.
        """
        path = self._find_path(location)
        with reading(location, self.properties):
            if path is not None:
                with open_regular(path, location) as file:
                    return read_range(file, location, offset, length)
            with open_input(self._file_io(location), location).open() as stream:
                return read_range(stream, location, offset, length)

    def check(self, location: str) -> None:
        """Raise MetadataError where others must not open a location: the table may not name it, or it is no file."""
        self._find_path(location)
        check_local(location)

    def _find_path(self, location: str) -> Path | None:
        if self.home is not None:
            check_reach(location, self.home, self.properties)
        return local_path(location)

    def _file_io(self, location: str) -> FileIO:
        if self.file_io is not None:
            return self.file_io
        scheme = location.partition(":")[0].lower()
        # Filters of warnings are the process's: threads that change them at one time may leave them changed.
        with _opening:
            if scheme not in self._file_ios:
                from pyiceberg.io import load_file_io

                with warnings.catch_warnings():
                    # That a scheme is unknown is said by the error that follows.
                    warnings.simplefilter("ignore")
                    self._file_ios[scheme] = limit_retries(load_file_io(self.properties, location))
        return self._file_ios[scheme]


def check_regular(found: os.stat_result, location: str) -> os.stat_result:
    """Return what is known of a local file; raise MetadataError if it is a folder, a pipe, a socket or a device."""
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "device")
        raise MetadataError(f"a {kind}, expected a regular file", location)
    return found


def check_local(location: str) -> None:
    """Raise MetadataError if there is something at a local location that is no regular file."""
    path = local_path(location)
    if path is not None:
        try:
            found = path.stat()
        except (OSError, ValueError):
            return
        check_regular(found, location)


def check_distinct(locations: Iterable[str]) -> None:
    """Raise MetadataError where two locations are of one file, for those who open them: each would be read."""
    seen: dict[object, str] = {}
    for location in locations:
        first = seen.setdefault(file_of(location), location)
        if first != location:
            raise MetadataError(f"it is the same file as {first}", location)


def file_of(location: str) -> object:
    """Return what locations of one file have in common: a local file's number, or what its storage's client opens."""
    path = local_path(location)
    if path is not None:
        with suppress(OSError, ValueError):
            found = path.stat()
            # Some file systems number no files.
            return (found.st_dev, found.st_ino) if found.st_ino else location
    if store_of(location) in _CUTTING:
        return re.split("[?#]", location.partition(":")[2])[0]
    return location


def open_input(file_io: FileIO, location: str) -> InputFile:
    """Give a file to read; raise MetadataError where Arrow lacks a host of HDFS, or an account of Azure."""
    try:
        return file_io.new_input(location)
    except TypeError as error:
        raise MetadataError(
            "names no host: expected one in it, or in the catalog's properties (hdfs.host, adls.account-name)", location
        ) from error


def size_of(file: InputFile, location: str) -> int:
    """Return the length of a file in bytes; raise MetadataError where Arrow knows none, as of a folder."""
    try:
        return len(file)
    except TypeError as error:
        raise MetadataError("a folder, expected a regular file", location) from error


def open_regular(path: Path, location: str) -> BinaryIO:
    """Open a regular file; raise MetadataError where it is anything else."""
    # To open a device may do something; and what is opened may be another file than the one that was looked at.
    check_regular(path.stat(), location)
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    try:
        check_regular(os.fstat(file.fileno()), location)
    except BaseException:
        file.close()
        raise
    return file


def read_range(stream: InputStream | BinaryIO, location: str, offset: int, length: int | None) -> bytes:
    """Return an open file's bytes from `offset`: all of them, or at most `length`.

    Raises
    ------
    MetadataError
        All of the file is asked for, and it is larger than `MAX_FILE_SIZE_BYTES`; or `length` is too large.
    """
    stream.seek(0, os.SEEK_END)
    left = max(stream.tell() - offset, 0)
    wanted, limit = (left, MAX_FILE_SIZE_BYTES) if length is None else (min(left, length), _MAX_READ_SIZE_BYTES)
    if wanted > limit:
        raise MetadataError(f"{wanted:,} bytes to read, expected {limit:,} at most", location, offset)
    stream.seek(offset)
    return bytes(stream.read(wanted))


def expanded_limit(size_bytes: int, free_bytes: int = FREE_SIZE_BYTES) -> int:
    """Return how many bytes so many compressed ones may expand to, a few of them to `free_bytes`; more is refused.

    Examples
    --------
    >>> expanded_limit(1_000), expanded_limit(1_000_000)
    (67108864, 256000000)
    """
    return max(free_bytes, MAX_RATIO * size_bytes)


def check_value_count(data: bytes, most: int) -> None:
    """Raise ValueError where JSON has more values than these: one of two bytes takes up to a hundred in memory.

    Examples
    --------
    >>> check_value_count(b'{"a": [1, 2]}', 3)
    """
    count = sum(map(data.count, (b"{", b"[", b",")))
    if count > most:
        raise ValueError(f"some {count:,} values of JSON, expected {most:,} at most")


def limit_retries(file_io: FileIO) -> FileIO:
    """Limit how long Arrow retries Google Cloud Storage; a FileIO named by `py-io-impl` stays as it is."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(file_io, PyArrowFileIO):
        return file_io
    find = file_io.fs_by_scheme

    @functools.lru_cache
    def find_limited(scheme: str, netloc: str | None) -> FileSystem:
        found = find(scheme, netloc)
        if scheme not in _GCS_SCHEMES:
            return found
        # How a file system is pickled says what it was made of.
        arguments = found.__reduce__()[1][0]
        from pyarrow.fs import GcsFileSystem

        return GcsFileSystem(**(arguments | {"retry_time_limit": dt.timedelta(seconds=GCS_RETRY_LIMIT_S)}))

    file_io.fs_by_scheme = find_limited
    return file_io


def local_path(location: str) -> Path | None:
    """Return the path of a local location (`/a/b`, `file:/a/b`, `file:///a/b`), None for any other.

    Examples
    --------
    >>> local_path("file:///data/v1.metadata.json").as_posix()
    '/data/v1.metadata.json'
    >>> local_path("s3://bucket/key") is None
    True
    """
    if ":" not in location:
        return Path(location)
    scheme, _, text = location.partition(":")
    if scheme.lower() == "file":
        # Java writes blanks, `#`, `?` and the like as they are, other writers percent-encode them.
        text = "/" + text[2:].partition("/")[2] if text.startswith("//") else text
        path = Path(text)
        # Path.exists() raises where a name is too long, or a folder closed.
        return path if "%" not in text or os.path.exists(path) else Path(unquote(text))  # noqa: PTH110
    return None if "://" in location and _SCHEME.fullmatch(scheme) else Path(location)


def expand_home(path: str | Path, what: str) -> Path:
    """Return a path with `~` as a user's home folder; raise CallError where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        user = Path(path).parts[0]
        raise CallError(f"{what} is '{path}': {user} is no home folder, give an absolute path") from error


def find_own_folder(find: Callable[..., Path]) -> Path | None:
    """Return icestats' folder as a function of platformdirs finds it; None where the user has no home folder."""
    # It raises then, or its older versions name a folder `~` in the current one.
    with suppress(RuntimeError):
        folder = find("icestats", appauthor=False)
        return folder if folder.is_absolute() else None
    return None


@contextmanager
def reading(location: str, properties: Mapping[str, str]) -> Iterator[None]:
    """Raise MetadataError, of an OSError, where a storage fails with an error of its client's own.

    Examples
    --------
    >>> with reading("gs://b/t", {}):
    ...     raise LookupError("503, try again")
    Traceback (most recent call last):
    icestats.errors.MetadataError: gs://b/t: cannot be read: 503, try again
    """
    try:
        yield
    except IcestatsError:
        raise
    except (OSError, ImportError) as error:
        raise unreadable(location, error, properties) from safe_cause(error, properties)
    except Exception as error:  # noqa: BLE001 - each FileIO has its own errors
        raise unreadable(location, error, properties) from OSError(safe_line(error, properties))


def unreadable(location: str, error: Exception, properties: Mapping[str, str] | None = None) -> MetadataError:
    """Return the error for an unreadable file, without the secrets of what it is opened with."""
    if isinstance(error, FileNotFoundError):
        return MetadataError("no such file", location)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return MetadataError(
            f"this kind of location needs the package {error.name}: pip install {error.name}", location
        )
    text = safe_line(error, properties)
    if "OAuth2 access token" in text:
        return MetadataError(
            "Google Cloud gives no access token: set gcs.oauth2.token and "
            "gcs.oauth2.token-expires-at, or GOOGLE_APPLICATION_CREDENTIALS, and check the network",
            location,
        )
    if "Retry policy exhausted" in text:
        # What it was is said first, then several times as much in brackets.
        reason = text.partition("last message of ")[2].partition(" error_info=")[0] or text
        return MetadataError(
            f"Google Cloud Storage was not reached, tried for {GCS_RETRY_LIMIT_S} s: {reason[:200]}", location
        )
    return MetadataError(f"cannot be read: {text[:300]}", location)
