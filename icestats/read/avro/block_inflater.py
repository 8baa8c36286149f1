"""Deflated blocks into one place in memory, by libdeflate's own functions.

The package deflate has them, and takes new memory for each block.

Source: libdeflate 1.x, `libdeflate.h`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from ctypes import CDLL, byref, c_char_p, c_int, c_size_t, c_void_p, cast
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from icestats.answers.arrays import map_zeros

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]
Block = tuple[int, int, int, int]
"""Where a block begins in the file, where its data begin and end, and its number of entries."""

_ROOM_SIZE = 4 << 20
"""What blocks are inflated into, in bytes; address space, of which most files take a part."""


class BlockInflater:
    """Inflates blocks into memory of its own, for one thread at a time.

    Parameters
    ----------
    room_size : int, optional
        The length of that memory in bytes.
    """

    def __init__(self, room_size: int = _ROOM_SIZE) -> None:
        self._room: Bytes = map_zeros(room_size, np.uint8)
        self._library = _find_library()
        if self._library is not None:
            self._decompressor = self._library.libdeflate_alloc_decompressor()
            weakref.finalize(self, self._library.libdeflate_free_decompressor, self._decompressor)

    def inflate(self, data: bytes, blocks: Sequence[Block], least: int) -> tuple[Bytes, Words]:
        """Inflate the first blocks of a file.

        Parameters
        ----------
        data : bytes
            The file.
        blocks : sequence of Block
            The file's blocks.
        least : int
            How many bytes are inflated, if there are so many: blocks until they have as many together.

        Returns
        -------
        inflated : numpy.ndarray of uint8
            The blocks, one behind the other; overwritten by the next call.
        ends : numpy.ndarray of int64
            For each where it begins and ends in `inflated`, and its number of entries. Fewer blocks, or none, where one
            is damaged, is larger than the memory that is left, or has more entries than bytes, and where this machine's
            package deflate does not export libdeflate.
        """
        used, ends = 0, []
        if self._library is not None:
            decompress, decompressor = self._library.libdeflate_deflate_decompress, self._decompressor
            file, room, room_size = cast(c_char_p(data), c_void_p).value or 0, self._room.ctypes.data, len(self._room)
            produced = c_size_t()
            size = byref(produced)
            for _, start, end, count in blocks:
                if used >= least:
                    break
                failure = decompress(decompressor, file + start, end - start, room + used, room_size - used, size)
                if failure or count > produced.value:
                    break
                ends.append((used, used + produced.value, count))
                used += produced.value
        return self._room[:used], np.array(ends, np.int64).reshape(-1, 3)


@cache
def _find_library() -> Any:
    """Return libdeflate, None where the package does not export it."""
    try:
        from deflate import _deflate

        library = CDLL(_deflate.__file__)
        library.libdeflate_alloc_decompressor.restype = c_void_p
        library.libdeflate_free_decompressor.argtypes = [c_void_p]
        library.libdeflate_deflate_decompress.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]
        library.libdeflate_deflate_decompress.restype = c_int
    except (ImportError, OSError, AttributeError):
        return None
    return library
