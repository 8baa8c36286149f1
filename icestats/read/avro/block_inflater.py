"""Deflated blocks into one place in memory, by libdeflate's own functions.

The package deflate has them, and takes new memory for each block, and the interpreter's lock between them.

Source: libdeflate 1.x, `libdeflate.h`.
"""

from __future__ import annotations

import weakref
from ctypes import CDLL, c_char_p, c_int, c_void_p, cast
from functools import cache
from typing import Any

import numpy as np

from icestats.read.kernel.kernel_inflate import INFLATE, PRODUCED, inflate_blocks
from icestats.read.kernel.kernel_layout import Bytes, Words

ROOM_SIZE = 4 << 20
"""What blocks are inflated into, in bytes; address space, of which most files take a part."""


class BlockInflater:
    """Inflates blocks into memory of its own, for one thread at a time.

    Parameters
    ----------
    room_size : int, optional
        The length of that memory in bytes.
    """

    def __init__(self, room_size: int = ROOM_SIZE) -> None:
        self._room: Bytes = np.empty(room_size, np.uint8)
        self._library: Words = np.zeros(6, np.int64)
        found = _find_library()
        if found is None:
            return
        decompressor = found.libdeflate_alloc_decompressor()
        weakref.finalize(self, found.libdeflate_free_decompressor, decompressor)
        inflate = cast(found.libdeflate_deflate_decompress, c_void_p).value or 0
        last = self._library.ctypes.data + 8 * PRODUCED
        self._library[:PRODUCED] = inflate, decompressor, self._room.ctypes.data, room_size, last

    def inflate(self, data: bytes, places: Words, least: int) -> tuple[Bytes, Words]:
        """Inflate the first blocks of a file.

        Parameters
        ----------
        data : bytes
            The file.
        places : numpy.ndarray of int64
            For each block where it begins in the file, where its deflated bytes begin and end, and its number of
            entries.
        least : int
            How many bytes are inflated, if there are so many: blocks until they have as many together.

        Returns
        -------
        inflated : numpy.ndarray of uint8
            The blocks, one behind the other; overwritten by the next call.
        blocks : numpy.ndarray of int64
            For each where it begins and ends in `inflated`, and its number of entries. Fewer blocks, or none, where one
            is damaged, is larger than the memory that is left, or has more entries than bytes, and where this machine's
            package deflate does not export libdeflate.
        """
        blocks: Words = np.empty((len(places), 3), np.int64)
        count = 0
        if self._library[INFLATE]:
            address = cast(c_char_p(data), c_void_p).value
            count = inflate_blocks(address, places, least, self._library, blocks)
        size = int(blocks[count - 1, 1]) if count else 0
        return self._room[:size], blocks[:count]


@cache
def _find_library() -> Any:
    """Return libdeflate, None where the package does not export it."""
    try:
        from deflate import _deflate

        library = CDLL(_deflate.__file__)
        library.libdeflate_alloc_decompressor.restype = c_void_p
        library.libdeflate_free_decompressor.argtypes = [c_void_p]
        library.libdeflate_deflate_decompress.restype = c_int
    except (ImportError, OSError, AttributeError):
        return None
    return library
