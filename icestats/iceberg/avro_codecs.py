"""Avro's codecs, each with a bound on what a block may inflate to.

Source: Avro 1.12 specification, "Object Container Files", "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

Inflate: TypeAlias = Callable[[memoryview, int], bytes | bytearray | memoryview]
"""Compressed bytes and the most that they may inflate to, in bytes -> the inflated bytes; ValueError if damaged."""

_FIRST_GUESS = 1 << 17
# A byte of deflate holds at most 1,032 bytes.
_DEFLATE_RATIO = 1040


def find_codec(name: str) -> Inflate:
    r"""Return the function that inflates a block.

    Parameters
    ----------
    name : str
        `avro.codec` of the file: null, deflate, zstandard, snappy, bzip2 or xz.

    Raises
    ------
    ValueError
        There is no such codec.

    Examples
    --------
    >>> bytes(find_codec("deflate")(memoryview(b"KLJNI\x05\x00"), 100))
    b'abc...'
    """
    try:
        return _CODECS[name]()
    except KeyError:
        raise ValueError(f"unknown codec {name!r:.40}, expected one of {', '.join(sorted(_CODECS))}") from None


def _too_large(limit: int) -> ValueError:
    return ValueError(f"a block inflates to more than {limit:,} bytes")


def _null() -> Inflate:
    def inflate(data: memoryview, limit: int) -> memoryview:
        if len(data) > limit:
            raise _too_large(limit)
        return data

    return inflate


def _deflate() -> Inflate:
    from deflate import DeflateError, deflate_decompress

    guess = _FIRST_GUESS

    def inflate(data: memoryview, limit: int) -> bytes | bytearray:
        nonlocal guess
        # libdeflate wants the room beforehand (0 is no error), does not say whether it was too little or the data bad.
        for room in (guess, 8 * guess) if limit else ():
            try:
                out: bytearray = deflate_decompress(data, min(room, limit, _DEFLATE_RATIO * len(data)))
            except DeflateError:
                continue
            guess = max(_FIRST_GUESS, len(out) + len(out) // 4)
            return out
        return _bounded(zlib.decompressobj(-15), data, limit)

    return inflate


def _bounded(engine: Any, data: memoryview, limit: int) -> bytes:
    """Inflate by one of Python's own decompressors."""
    try:
        out: bytes = engine.decompress(data, limit + 1)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, MemoryError) as error:
        raise ValueError(f"a block cannot be inflated: {error}") from error
    if len(out) > limit:
        raise _too_large(limit)
    if not engine.eof:
        raise ValueError("a block cannot be inflated: it is cut")
    return out


def _bzip2() -> Inflate:
    return lambda data, limit: _bounded(bz2.BZ2Decompressor(), data, limit)


def _xz() -> Inflate:
    return lambda data, limit: _bounded(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 28), data, limit)


def _zstandard() -> Inflate:
    import zstandard

    engine = zstandard.ZstdDecompressor(max_window_size=1 << 27)

    def inflate(data: memoryview, limit: int) -> bytes:
        try:
            size = zstandard.frame_content_size(data)
            if size > limit:
                raise _too_large(limit)
            if size >= 0:
                out: bytes = engine.decompress(data)
                return out
            return _zstandard_stream(engine, data, limit)
        except zstandard.ZstdError as error:
            raise ValueError(f"a block cannot be inflated: {error}") from error

    return inflate


def _zstandard_stream(engine: Any, data: memoryview, limit: int) -> bytes:
    # A frame that does not say its size, as Java writes it.
    stream = engine.decompressobj()
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(data), 4096):
        parts.append(stream.decompress(data[start : start + 4096]))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if stream.eof:
            return b"".join(parts)
    raise ValueError("a block cannot be inflated: it is cut")


def _snappy() -> Inflate:
    import pyarrow as pa

    codec = pa.Codec("snappy")

    def inflate(data: memoryview, limit: int) -> bytes:
        # Avro appends the CRC-32 of the inflated bytes, big-endian.
        body = data[:-4]
        size = _snappy_size(body)
        if size > limit:
            raise _too_large(limit)
        try:
            out: bytes = codec.decompress(body, decompressed_size=size, asbytes=True)
        except OSError as error:
            raise ValueError(f"a block cannot be inflated: {error}") from error
        if zlib.crc32(out) != int.from_bytes(data[-4:], "big"):
            raise ValueError("a block's CRC-32 is wrong")
        return out

    return inflate


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return the unsigned variable-length number at a position, and where it ends; EOFError where it does not."""
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise EOFError
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _snappy_size(body: memoryview) -> int:
    # Snappy begins with the inflated size, in 5 bytes at most.
    try:
        return read_varint(body[:5], 0)[0]
    except EOFError:
        raise ValueError("a block cannot be inflated: it is cut") from None


_CODECS: dict[str, Callable[[], Inflate]] = {
    "null": _null,
    "deflate": _deflate,
    "zstandard": _zstandard,
    "snappy": _snappy,
    "bzip2": _bzip2,
    "xz": _xz,
}
