"""Reading tells how far it is, and stops where it is told to, with nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import icestats
from icestats.iceberg.storage import Storage
from icestats.read.manifests.manifest_pool import default_threads
from icestats.read.manifests.manifests import manifests_to_read, read_files, read_rollups

COUNT = 40


class GatedStorage(Storage):
    """Lets one manifest through; the others wait for the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.locations: list[str] = []
        self.counting = threading.Lock()
        self.gate = threading.Event()

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        with self.counting:
            self.locations.append(location)
            number = len(self.locations)
        if number > 1:
            assert self.gate.wait(60)
        return super().read(location, offset, length)


@pytest.fixture
def many(small_table, catalog_properties) -> list[Any]:
    """What reads a table of many manifests: they are the same two, over and over."""
    table = icestats.load("db.small", catalog=catalog_properties)
    manifests = manifests_to_read(table.manifest_files())
    return [manifests * (COUNT // len(manifests)), table.metadata]


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("icestats-manifests")]


@pytest.mark.parametrize("function", [read_rollups, read_files])
def test_progress_is_told_of_every_manifest_in_the_callers_thread(many, function):
    seen: list[tuple[int, int]] = []
    callers = set()

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        callers.add(threading.current_thread())

    function(*many, Storage(), progress=progress)
    assert seen == sorted(seen)
    assert seen[-1] == (COUNT, COUNT)
    assert callers == {threading.current_thread()}
    if function is read_rollups:
        assert seen == [(done, COUNT) for done in range(1, COUNT + 1)]


class StopReadingError(Exception):
    """What a caller's own progress raises."""


@pytest.mark.parametrize("error", [StopReadingError, KeyboardInterrupt])
def test_what_progress_raises_stops_the_reading(many, error):
    """Only what was being read at that moment is read to its end, and no thread goes on."""
    storage = GatedStorage()
    opening = threading.Timer(1, storage.gate.set)

    def stop(done: int, total: int) -> None:
        opening.start()
        raise error

    with pytest.raises(error):
        read_rollups(*many, storage, progress=stop)
    opening.join()
    assert len(storage.locations) <= 1 + default_threads()
    assert reading_threads() == []


def test_what_progress_raises_ends_the_listing_of_files(many):
    def stop(done: int, total: int) -> None:
        raise StopReadingError

    with pytest.raises(StopReadingError):
        read_files(*many, Storage(), progress=stop)
    assert reading_threads() == []


def test_the_first_damaged_manifest_stops_the_reading(many, tmp_path):
    manifests, metadata = many
    broken = tmp_path / "broken.avro"
    broken.write_bytes(bytes(100))
    manifests[0] = type(manifests[0])(str(broken), 100, manifests[0].spec_id, "data")
    told: list[int] = []
    with pytest.raises(icestats.MetadataError, match=r"broken\.avro at byte 0: not an Avro file"):
        read_rollups(manifests, metadata, Storage(), progress=lambda done, total: told.append(done))
    assert COUNT not in told
    assert reading_threads() == []


INTERRUPTED = """
import signal, sys, threading
import icestats
from icestats.read.manifests.manifests import manifests_to_read
from icestats.read.rollups.rollup_cache import read_cached_rollups

table = icestats.load(sys.argv[1])
work = manifests_to_read(table.manifest_files()), table.metadata, table._source.storage, table.schema

# A pause would last for ever if the signal came just before it.
def wait_for_the_signal(done, total):
    print("reading", flush=True)
    while True:
        pass

try:
    read_cached_rollups(*work, progress=wait_for_the_signal)
except KeyboardInterrupt:
    print("stopped", [t.name for t in threading.enumerate() if t is not threading.main_thread()])
"""


def test_ctrl_c_stops_the_reading_and_leaves_nothing(small_table, tmp_path, monkeypatch):
    """A process that is interrupted while it reads ends its threads and writes nothing into the cache."""
    monkeypatch.setenv("ICESTATS_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-c", INTERRUPTED, small_table.metadata_location]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n", process.communicate()[1]
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate(timeout=600)
    assert (said, complaint, process.returncode) == ("stopped []\n", "", 0)
    assert not [path for path in Path(tmp_path / "cache").rglob("*") if path.is_file()]
