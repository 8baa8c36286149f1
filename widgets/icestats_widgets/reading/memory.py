"""Giving memory back: a kernel lives for days, and reading a large table's metadata takes much of it for a second."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pyarrow as pa


def release_memory() -> None:
    """Give back what Arrow and the GNU C library keep for later; other C libraries keep what they keep."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
