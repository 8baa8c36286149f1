"""PyIceberg's threads that write a file each: for a write those of its own, which are waited for where it fails.

PyIceberg 0.12 has one pool for all of a process. Where one file fails, it raises while others are still being written
(`_dataframe_to_data_files`, `_SnapshotProducer._manifests`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from pyiceberg.utils.concurrent import ExecutorFactory

_find_shared = ExecutorFactory.get_or_create
_own = threading.local()


@contextmanager
def own_workers() -> Iterator[None]:
    """Have what this thread asks of PyIceberg done by threads of its own; behind an error none of them is at work."""
    _own.pool = pool = ThreadPoolExecutor(ExecutorFactory.max_workers(), thread_name_prefix="icestats-write")
    try:
        yield
    except Exception:
        pool.shutdown(cancel_futures=True)
        raise
    finally:
        _own.pool = None
        # An interrupt waits for no file.
        pool.shutdown(wait=False, cancel_futures=True)


def _find_own() -> Executor:
    return getattr(_own, "pool", None) or _find_shared()


ExecutorFactory.get_or_create = staticmethod(_find_own)  # type: ignore[method-assign]  # what is mended
