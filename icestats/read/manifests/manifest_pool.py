"""Reading many manifests at once: threads that read, fewer that decode, progress, and stopping at the first error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, FileReader, expanded_limit, local_path
from icestats.read.avro.avro_file import Batch

Progress = Callable[[int, int], None]
"""Called with the number of manifests that are done, and of all."""
_Result = TypeVar("_Result")
_REMOTE_READERS = 8
"""How many manifests on remote storage are read at one time, at least."""
FREE_SIZE_BYTES, FREE_TEXT_BYTES = 512 << 20, 128 << 20
"""All manifests together may expand to this many bytes, or to more by their length (`expanded_limit`); ..."""
MAX_TEXT_RATIO = 64
"""... what is kept of them of paths, bounds and partitions to less, as it is copied several times."""
FREE_GROUPS_BYTES = 1 << 30
"""Their statistics by manifest, partition and column may take so much, or more by their length: `expanded_limit`."""
FREE_ENTRIES, ENTRY_SIZE_BYTES = 1 << 18, 4
"""They may have so many entries, or one in so many bytes of their length: each has a path of its own."""


@dataclass(frozen=True, slots=True)
class ManifestToRead:
    """What the manifest list says of a manifest, as far as its entries depend on it."""

    path: str
    length: int
    """In bytes; 0 where it is unknown."""
    spec_id: int
    content: str
    """`data` or `deletes`."""
    sequence_number: int = 0
    added_snapshot_id: int | None = None
    first_row_id: int | None = None


class ManifestRoom:
    """What manifests may expand to together: each may to a little, and thousands of them to all of the memory.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        All that are read.
    """

    def __init__(self, manifests: Sequence[ManifestToRead]) -> None:
        self._length = sum(max(manifest.length, 0) for manifest in manifests)
        self._most_bytes = expanded_limit(self._length, FREE_SIZE_BYTES)
        self._most_entries = max(FREE_ENTRIES, self._length // ENTRY_SIZE_BYTES)
        self.most_text_bytes = max(FREE_TEXT_BYTES, MAX_TEXT_RATIO * self._length)
        self.most_group_bytes = expanded_limit(self._length, FREE_GROUPS_BYTES)
        self._inflated = self._entries = self._text = self._kept = 0

    def take(self, batch: Batch, path: str) -> None:
        """Count inflated blocks; raise UnsupportedError where they have too many bytes or entries."""
        self._inflated += len(batch.data)
        self._entries += int(batch.blocks[:, 2].sum())
        if self._inflated > self._most_bytes:
            raise self.refusal(path, f"inflate to more than {self._most_bytes:,} bytes")
        if self._entries > self._most_entries:
            raise self.refusal(path, f"have more than {self._most_entries:,} entries")

    def keep(self, text_bytes: int, size_bytes: int, path: str) -> None:
        """Count what is made of entries, and its text; raise UnsupportedError where it has too many bytes."""
        self._text += text_bytes
        self._kept += size_bytes
        if self._text > self.most_text_bytes or self._kept > self._most_bytes:
            raise self.refusal(path, "have too long paths, bounds or partitions")

    def refusal(self, path: str, what: str) -> UnsupportedError:
        """Return the error for manifests that have too much of something."""
        return UnsupportedError(f"{path}: it and others, of {self._length:,} bytes together, {what}")


def default_threads() -> int:
    """Return how many threads may decode at one time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_manifest(storage: FileReader, manifest: ManifestToRead) -> bytes:
    """Return a manifest's bytes.

    Raises
    ------
    MetadataError
        The file is missing, not as long as the manifest list says, or longer than `MAX_FILE_SIZE_BYTES`.
    """
    is_known = 0 < manifest.length < MAX_FILE_SIZE_BYTES
    data = storage.read(manifest.path, 0, manifest.length + 1 if is_known else None)
    if manifest.length > 0 and len(data) != manifest.length:
        size = storage.size(manifest.path)
        raise MetadataError(
            f"{size:,} bytes long, the manifest list says {manifest.length:,}: the file is cut or was replaced",
            manifest.path,
            min(size, manifest.length),
        )
    return data


def run_tasks(
    tasks: Iterable[Sequence[int]],
    function: Callable[[Sequence[int]], _Result],
    manifests: Sequence[ManifestToRead],
    threads: int,
    progress: Progress | None,
) -> list[_Result]:
    """Call a function for each task, some of the manifests, in parallel; results in their order.

    The first exception, and one that `progress` raises, stops everything and is raised.
    """
    done, total = 0, len(manifests)
    # Threads that wait for the interpreter's lock slow the others down: more of them help only where reading is slow.
    are_local = all(local_path(manifest.path) for manifest in manifests)
    readers = threads if are_local else max(threads, _REMOTE_READERS)
    pool = ThreadPoolExecutor(readers, thread_name_prefix="icestats-manifests")
    try:
        futures = {pool.submit(function, task): len(task) for task in tasks}
        for future in as_completed(futures):
            future.result()
            done += futures[future]
            if progress is not None:
                progress(done, total)
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
