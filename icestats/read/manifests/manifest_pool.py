"""Reading many manifests at once: threads that read, fewer that decode, progress, and stopping at the first error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

from icestats.errors import MetadataError
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, FileReader, local_path

Progress = Callable[[int, int], None]
"""Called with the number of manifests that are done, and of all."""
_Result = TypeVar("_Result")
_REMOTE_READERS = 8
"""How many manifests on remote storage are read at one time, at least."""


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
