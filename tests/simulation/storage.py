"""PyIceberg's own FileIO and SQL catalog, with a fault at any call.

Files lie in a real folder; their locations begin with `sim:` so that the kit, too, reads them through the FileIO.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.fs import FileSelector
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO, PyArrowLocalFileSystem

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

RUNNING: list[Simulation] = []
"""The one simulation of this process: FileIO and catalogs are made by PyIceberg, from text."""


def running() -> Simulation:
    return RUNNING[-1]


def properties(folder: Path) -> dict[str, str]:
    """Return how a catalog below a folder is opened."""
    here = __name__
    return {
        "name": "sim",
        "py-catalog-impl": f"{here}.SimulatedCatalog",
        "py-io-impl": f"{here}.SimulatedFileIO",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": "sim://lake",
    }


def local_path(location: str) -> Path:
    return running().folder / location.removeprefix("sim://")


class SimulatedCatalog(SqlCatalog):
    def load_table(self, identifier):
        return running().turns.call(
            "load", str(identifier), lambda: super(SimulatedCatalog, self).load_table(identifier)
        )

    def commit_table(self, table, requirements, updates):
        running().turns.hold()
        return running().turns.call("commit", table.name()[-1], lambda: self._commit(table, requirements, updates))

    def _commit(self, table, requirements, updates):
        response = super().commit_table(table, requirements, updates)
        running().committed(response.metadata_location, response.metadata, updates, table.metadata)
        return response


class SimulatedFileIO(PyArrowFileIO):
    def __init__(self, properties: Mapping[str, str] = {}) -> None:
        super().__init__(properties)
        self.fs_by_scheme = lambda scheme, netloc=None: _Folder()

    @staticmethod
    def parse_location(location: str, properties: Mapping[str, str] = {}) -> tuple[str, str, str]:
        return "sim", "", str(local_path(location))

    def new_input(self, location: str) -> PyArrowFile:
        return _File(location, str(local_path(location)), _Folder())

    new_output = new_input

    def delete(self, location: Any) -> None:
        place = location if isinstance(location, str) else location.location
        running().turns.call("delete", place, lambda: self._delete(place))

    def _delete(self, place: str) -> None:
        running().deleting(place)
        super().delete(place)


class _Folder(PyArrowLocalFileSystem):
    def get_file_info(self, paths: Any) -> Any:
        if isinstance(paths, FileSelector):
            return running().turns.call("list", "metadata", lambda: self._list(paths))
        return super().get_file_info(paths)

    def _list(self, selector: FileSelector) -> list[Any]:
        return sorted(super().get_file_info(selector), key=lambda info: info.path)


class _File(PyArrowFile):
    def _file_info(self) -> Any:
        return running().turns.call("look at", self.location, super()._file_info)

    def open(self, seekable: bool = True) -> Any:
        cut = self._open_cut if running().may_read_cut() else None
        return running().turns.call("open", self.location, lambda: super(_File, self).open(seekable), cut)

    def _open_cut(self) -> Any:
        with super().open() as stream:
            data = stream.read()
        return pa.BufferReader(data[: running().turns.random.randint(0, len(data))])

    def create(self, overwrite: bool = False) -> _Output:
        return running().turns.call("create", self.location, lambda: self._create(overwrite))

    def _create(self, overwrite: bool) -> _Output:
        running().creating(self.location)
        stream = super().create(overwrite)
        _stamp(self.location)
        return _Output(self.location, stream)


class _Output:
    """A file that is being written."""

    mode = "wb"

    def __init__(self, location: str, stream: Any) -> None:
        self._location = location
        self._stream = stream
        self.closed = False

    def write(self, data: Any) -> int:
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell()

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        turns = running().turns
        try:
            turns.call("write", self._location, lambda: _stamp(self._location), self._cut, spoil=self._shorten)
        except BaseException:
            _stamp(self._location)
            raise

    def _shorten(self) -> None:
        path = local_path(self._location)
        if path.exists():
            os.truncate(path, running().turns.random.randint(0, path.stat().st_size))

    def _cut(self) -> None:
        self._shorten()
        raise OSError(f"simulated: no space left for {self._location}")

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _stamp(location: str) -> None:
    """Give a file the simulation's time."""
    path, seconds = local_path(location), running().turns.now_ms / 1000
    if path.exists():
        os.utime(path, (seconds, seconds))
