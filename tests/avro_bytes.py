"""Avro's bytes as writers make them: numbers, and the blocks of each codec."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable

import pyarrow as pa
import zstandard


def varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush()


def zstandard_stream(data: bytes) -> bytes:
    """A frame that does not say how much it holds."""
    engine = zstandard.ZstdCompressor().compressobj()
    return engine.compress(data) + engine.flush()


def snappy(data: bytes) -> bytes:
    return pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflate,
    "zstandard": zstandard_stream,
    "snappy": snappy,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
