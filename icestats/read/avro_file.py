"""Avro object container files: header, blocks, codecs.

Source: Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from icestats.errors import MetadataError
from icestats.read.avro_codecs import Inflate, find_codec
from icestats.read.kernel_layout import ERRORS, Bytes, Frame, Words

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
MAX_BLOCK_SIZE = 512 << 20
"""What one block may inflate to, in bytes."""
MAX_RATIO = 256
"""A file may inflate to this many times its length, ..."""
FREE_SIZE = 64 << 20
"""... or to this many bytes, whichever is more."""
BATCH_SIZE = 1 << 20
"""Blocks are handed on together until they have this many inflated bytes."""


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """The header of a container file."""

    path: str
    schema_text: bytes
    metadata: Mapping[str, bytes]
    codec: str
    sync: bytes
    size_bytes: int
    """Length of the header: where the first block begins."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some inflated blocks, one behind the other."""

    data: Bytes
    blocks: Words
    """For each block: where it begins and ends in `data`, and its number of entries."""
    offsets: Words
    """For each block: where it begins in the file."""


def read_header(data: bytes, path: str) -> AvroHeader:
    """Read the header of a container file.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        Its location, for errors.

    Raises
    ------
    MetadataError
        This is not an Avro file, or its header is cut or damaged.
    """
    if data[:4] != MAGIC:
        raise MetadataError(f"not an Avro file: it begins with {data[:4]!r}, expected {MAGIC!r}", path, 0)
    metadata: dict[str, bytes] = {}
    position = 4
    try:
        while True:
            count, position = read_long(data, position)
            if count == 0:
                break
            if count < 0:
                _, position = read_long(data, position)
            for _ in range(abs(count)):
                key, position = _take(data, position)
                metadata[key.decode("utf-8", "replace")], position = _take(data, position)
        sync = data[position : position + SYNC_SIZE]
        if len(sync) < SYNC_SIZE:
            raise EOFError
    except EOFError:
        raise MetadataError("the Avro header is cut or damaged", path, position) from None
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if "avro.schema" not in metadata:
        raise MetadataError("the Avro header has no avro.schema", path, position)
    return AvroHeader(path, metadata["avro.schema"], metadata, codec, sync, position + SYNC_SIZE)


def parse_schema(header: AvroHeader) -> Any:
    """Return the writer's schema as JSON."""
    try:
        return json.loads(header.schema_text)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"avro.schema is not JSON: {str(error)[:200]}", header.path) from error


def read_batches(data: bytes, header: AvroHeader, frame: Frame) -> Iterator[Batch]:
    """Inflate the blocks of a container file, a batch at a time.

    Parameters
    ----------
    data : bytes
        The file.
    header : AvroHeader
        Its header.
    frame : Frame
        Takes the errors of the kernel.

    Raises
    ------
    MetadataError
        Unknown codec; a block is cut or damaged, has more entries than bytes, inflates to more than `MAX_BLOCK_SIZE`,
        or the file to more than `MAX_RATIO` times its length (and `FREE_SIZE`).
    """
    try:
        inflate = find_codec(header.codec)
    except ValueError as error:
        raise MetadataError(str(error), header.path, 0) from error
    blocks = _scan(data, header, frame)
    if header.codec == "null":
        _check_counts(blocks[:, 2] - blocks[:, 1], blocks, header.path)
        yield Batch(np.frombuffer(bytearray(data), np.uint8), np.ascontiguousarray(blocks[:, 1:]), blocks[:, 0])
        return
    room = max(FREE_SIZE, MAX_RATIO * len(data))
    first, size, parts = 0, 0, []
    view = memoryview(data)
    for number, (offset, start, end, _) in enumerate(blocks.tolist()):
        parts.append(_inflate(inflate, view[start:end], min(MAX_BLOCK_SIZE, room), header.path, offset))
        size += len(parts[-1])
        room -= len(parts[-1])
        if size >= BATCH_SIZE or number + 1 == len(blocks):
            yield _batch(parts, blocks[first : number + 1], header.path)
            first, size, parts = number + 1, 0, []


def _scan(data: bytes, header: AvroHeader, frame: Frame) -> Words:
    from icestats.read.kernel_blocks import scan_blocks

    room: Words = np.empty(((len(data) - header.size_bytes) // (SYNC_SIZE + 2) + 1, 4), np.int64)
    sync = np.frombuffer(header.sync, np.uint8)
    found = scan_blocks(np.frombuffer(data, np.uint8), header.size_bytes, sync, room, frame)
    if found < 0:
        raise kernel_error(frame, header.path)
    return room[:found]


def _inflate(inflate: Inflate, data: memoryview, limit: int, path: str, offset: int) -> bytes | bytearray | memoryview:
    try:
        return inflate(data, limit)
    except ValueError as error:
        raise MetadataError(str(error), path, offset) from error


def _batch(parts: list[Any], blocks: Words, path: str) -> Batch:
    lengths = np.fromiter((len(part) for part in parts), np.int64, len(parts))
    _check_counts(lengths, blocks, path)
    # Arrays that cannot be written are another type to numba: each function would be compiled twice.
    whole = parts[0] if len(parts) == 1 and isinstance(parts[0], bytearray) else bytearray().join(parts)
    places = np.empty((len(parts), 3), np.int64)
    places[:, 1] = np.cumsum(lengths)
    places[:, 0] = places[:, 1] - lengths
    places[:, 2] = blocks[:, 3]
    return Batch(np.frombuffer(whole, np.uint8), places, blocks[:, 0])


def _check_counts(lengths: Words, blocks: Words, path: str) -> None:
    wrong = np.flatnonzero(blocks[:, 3] > lengths)
    if wrong.size:
        offset, _, _, count = blocks[wrong[0]].tolist()
        raise MetadataError(f"a block has {count:,} entries, but only {lengths[wrong[0]]:,} bytes", path, offset)


def kernel_error(frame: Frame, path: str, batch: Batch | None = None) -> MetadataError:
    """Return the error that the kernel has noted, with its place in the file."""
    from icestats.read.kernel_layout import AT_BLOCK, AT_ENTRY, ERROR, ERROR_BYTE

    what = ERRORS[int(frame.state[ERROR])]
    if batch is None:
        return MetadataError(what, path, int(frame.state[ERROR_BYTE]))
    block = int(frame.state[AT_BLOCK])
    inside = int(frame.state[ERROR_BYTE] - batch.blocks[block, 0])
    entry = int(frame.state[AT_ENTRY])
    where = f"entry {entry:,} of the block, byte {inside:,} of its inflated data"
    return MetadataError(f"{what} ({where})", path, int(batch.offsets[block]))


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Return the variable-length integer at a position, and where it ends; EOFError where it does not."""
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise EOFError
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def _take(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_long(data, position)
    if length < 0 or length > len(data) - position:
        raise EOFError
    return data[position : position + length], position + length
