"""Files as Iceberg's Java library opens them in Spark's JVM: with the credentials of Spark's catalog."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from icestats.answers.redaction import hide_secrets, safe_cause
from icestats.errors import UnsupportedError
from icestats.spark.jobs import explained_errors, first_line, list_settings

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from pyspark.sql import SparkSession

_BLOCK_BYTES = 4 << 20
"""How much goes between Python and the JVM at once."""
_LISTING = "org.apache.iceberg.io.SupportsPrefixOperations"
_ERRORS = {"NotFoundException": FileNotFoundError, "AlreadyExistsException": FileExistsError}


class JavaFileIO(FileIO):
    """PyIceberg's FileIO over one of Java's.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        A classic session.
    java : py4j.java_gateway.JavaObject
        `org.apache.iceberg.io.FileIO`.
    """

    def __init__(self, session: SparkSession, java: Any) -> None:
        super().__init__()
        self._session = session
        self._java = java

    def new_input(self, location: str) -> InputFile:
        """Give a file to read."""
        return _JavaFile(self._session, location, self._java)

    def new_output(self, location: str) -> OutputFile:
        """Give a file to write."""
        return _JavaFile(self._session, location, self._java)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        path = location if isinstance(location, str) else location.location
        with _asked(self._session, path):
            self._java.deleteFile(path)

    def list_files(self, folder: str) -> Iterator[tuple[str, int, datetime]]:
        """Yield the location, size in bytes and time of the files below a folder.

        Raises
        ------
        UnsupportedError
            This FileIO cannot list.
        """
        from py4j.java_gateway import is_instance_of

        with _asked(self._session, folder):
            if not is_instance_of(self._session.sparkContext._gateway, self._java, _LISTING):
                kind = self._java.getClass().getSimpleName()
                raise UnsupportedError(f"{folder} cannot be listed: {kind} of Spark's catalog lists no files")
            found = self._java.listPrefix(f"{folder}/").iterator()
            while found.hasNext():
                one = found.next()
                yield one.location(), one.size(), datetime.fromtimestamp(one.createdAtMillis() / 1000, UTC)


class _JavaFile(InputFile, OutputFile):
    def __init__(self, session: SparkSession, location: str, java: Any) -> None:
        super().__init__(location)
        self._session = session
        self._java = java

    def __len__(self) -> int:
        with self._read():
            return int(self._java.newInputFile(self.location).getLength())

    def exists(self) -> bool:
        with _asked(self._session, self.location):
            return bool(self._java.newInputFile(self.location).exists())

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 - PyIceberg's name for it
        with self._read():
            file = self._java.newInputFile(self.location)
            raw = _JavaReader(self._session, self.location, file.newStream(), file.getLength())
        return cast(InputStream, io.BufferedReader(raw, _BLOCK_BYTES))

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> OutputStream:
        with _asked(self._session, self.location):
            file = self._java.newOutputFile(self.location)
            stream = file.createOrOverwrite() if overwrite else file.create()
        return cast(OutputStream, _JavaWriter(self._session, self.location, stream))

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Raise as `_asked`, and FileNotFoundError where the file is gone: S3's and others say so in their own ways."""
        try:
            with _asked(self._session, self.location):
                yield
        except FileNotFoundError:
            raise
        except OSError as error:
            is_there = True
            with suppress(OSError):
                is_there = self.exists()
            if is_there:
                raise
            raise FileNotFoundError(str(error)) from error


class _JavaStream(io.RawIOBase):
    def __init__(self, session: SparkSession, location: str, stream: Any) -> None:
        self._session, self._location, self._stream = session, location, stream
        self._position = 0

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            with _asked(self._session, self._location):
                self._stream.close()
        super().close()


class _JavaReader(_JavaStream):
    def __init__(self, session: SparkSession, location: str, stream: Any, length: int) -> None:
        super().__init__(session, location, stream)
        self._length = length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), _BLOCK_BYTES, max(0, self._length - self._position))
        if not wanted:
            return 0
        with _asked(self._session, self._location):
            if self._stream.getPos() != self._position:
                self._stream.seek(self._position)
            data = self._stream.readNBytes(wanted)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        data = bytearray(max(0, self._length - self._position))
        filled = 0
        while filled < len(data) and (count := self.readinto(memoryview(data)[filled:])):
            filled += count
        return bytes(data[:filled])


class _JavaWriter(_JavaStream):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        whole = bytes(data)
        with _asked(self._session, self._location):
            for start in range(0, len(whole), _BLOCK_BYTES):
                self._stream.write(whole[start : start + _BLOCK_BYTES])
        self._position += len(whole)
        return len(whole)


@contextmanager
def _asked(session: SparkSession, location: str) -> Iterator[None]:
    """Raise what Python raises of files where Java's fail; SparkUnavailableError where the JVM has ended."""
    from py4j.protocol import Py4JJavaError

    with explained_errors(session, f"opening {location}"):
        try:
            yield
        except Py4JJavaError as error:
            kind = _ERRORS.get(error.java_exception.getClass().getSimpleName(), OSError)
            known = list_settings(session)
            raise kind(f"{location}: {hide_secrets(first_line(error), known)}") from safe_cause(error, known)
