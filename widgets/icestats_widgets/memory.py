"""Giving memory back: a kernel lives for days, and reading a large table's metadata takes much of it for a second."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pyarrow as pa

# From malloc.h of the GNU C library.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_MAPPED_BYTES = 500_000
_ARENAS = 2


@cache
def _find_c_library() -> Any:
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt, library.malloc_trim  # noqa: B018 - other C libraries lack them
    except (OSError, AttributeError):
        return None
    return library


def return_large_arrays() -> None:
    """Let the allocator map arrays of half a megabyte on their own, so that freeing one gives it back at once.

    The GNU C library raises that threshold by itself to 32 MB, and keeps an arena a thread: a few hundred megabytes
    stay with the process after roll-ups have been read in threads. Elsewhere this does nothing.
    """
    library = _find_c_library()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def release_memory() -> None:
    """Give back what Arrow and the C library keep for later."""
    pa.default_memory_pool().release_unused()
    library = _find_c_library()
    if library is not None:
        library.malloc_trim(0)
