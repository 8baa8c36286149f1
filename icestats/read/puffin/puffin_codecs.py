"""Decompressing a Puffin file's blobs and footer, in bounded memory.

Source: Puffin spec, "Compression codecs": a single zstd or LZ4 frame with its content size present.
"""

from __future__ import annotations

import lz4.frame
import zstandard

from icestats.answers.text import one_line
from icestats.errors import PuffinFormatError

# A zstd block takes at least 3 bytes and holds at most 128 KiB; an LZ4 token byte stands for at most 255 bytes.
_ZSTD_MOST_PER_BYTE = 128 * 2**10 // 3
_LZ4_MOST_PER_BYTE = 255


def decompress_zstd(stored: bytes, path: str, offset: int, max_size_bytes: int) -> bytes:
    """Return what one zstd frame at `offset` of the file holds."""
    try:
        content_size = zstandard.frame_content_size(stored)
        _check_content_size(content_size, len(stored), _ZSTD_MOST_PER_BYTE, max_size_bytes, path, offset)
        content = zstandard.ZstdDecompressor().decompress(stored, allow_extra_data=False)
        # Where the frame says 0 bytes, decompress() returns them without a look at the rest.
        if content_size == 0 and zstandard.ZstdDecompressor().stream_reader(stored).read(1):
            raise zstandard.ZstdError("a frame that says it is empty has content")
    except (zstandard.ZstdError, MemoryError, ValueError) as error:
        raise PuffinFormatError(f"not one whole zstd frame: {one_line(error)}", path, offset) from error
    return content


def decompress_lz4(stored: bytes, path: str, offset: int, max_size_bytes: int) -> bytes:
    """Return what one LZ4 frame at `offset` of the file holds."""
    try:
        content_size: int = lz4.frame.get_frame_info(stored)["content_size"]
        _check_content_size(content_size, len(stored), _LZ4_MOST_PER_BYTE, max_size_bytes, path, offset)
        decompressor = lz4.frame.LZ4FrameDecompressor()
        content: bytes = decompressor.decompress(stored, max_length=content_size + 1)
    except (RuntimeError, MemoryError, ValueError, EOFError) as error:
        raise PuffinFormatError(f"not one whole LZ4 frame: {one_line(error)}", path, offset) from error
    if len(content) != content_size or not decompressor.eof or decompressor.unused_data:
        raise PuffinFormatError(
            f"not one whole LZ4 frame with its content size: it says {content_size} bytes and holds {len(content)}",
            path,
            offset,
        )
    return content


def _check_content_size(
    content_size: int, stored_size: int, most_per_byte: int, max_size_bytes: int, path: str, offset: int
) -> None:
    if content_size < 0:
        raise PuffinFormatError("the compressed frame does not say its content size, as the spec asks", path, offset)
    limit = min(max_size_bytes, stored_size * most_per_byte)
    if content_size > limit:
        raise PuffinFormatError(
            f"the compressed frame says {content_size} bytes of content, expected {limit} at most", path, offset
        )
