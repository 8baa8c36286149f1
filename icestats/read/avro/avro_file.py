"""Avro object container files: header, blocks, codecs.

Source: Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from icestats.errors import MetadataError
from icestats.iceberg.avro_codecs import Inflate, find_codec, read_varint
from icestats.iceberg.storage import ENCRYPTED, expanded_limit
from icestats.read.avro.block_inflater import Block, BlockInflater, Bytes, Words

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
MAX_BLOCK_SIZE = 512 << 20
"""What one block may inflate to, in bytes."""
MAX_SCHEMA_SIZE = 4 << 20
"""Most bytes of a header's schema: as Python's objects they may take forty times as many."""
BATCH_SIZE = 1 << 20
"""Blocks are handed on together until they have this many inflated bytes."""


CUT = "a value runs past the end of the block"
NEGATIVE = "a length is negative"
LONG_VARINT = "a variable-length number is longer than 64 bits"
_NO_SYNC = "the sync marker behind a block is not the header's"


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
    if data.startswith(ENCRYPTED):
        raise MetadataError(
            "it is encrypted, and encrypted metadata is not read: ask an engine that has the keys", path, 0
        )
    if data[:4] != MAGIC:
        raise MetadataError(f"not an Avro file: its {len(data):,} bytes do not begin with {MAGIC!r}", path, 0)
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
    return AvroHeader(path, metadata["avro.schema"], metadata, codec, sync, size_bytes=position + SYNC_SIZE)


def parse_schema(header: AvroHeader) -> Any:
    """Return the writer's schema as JSON."""
    if len(header.schema_text) > MAX_SCHEMA_SIZE:
        size = len(header.schema_text)
        raise MetadataError(f"avro.schema has {size:,} bytes, expected at most {MAX_SCHEMA_SIZE:,}", header.path)
    try:
        return json.loads(header.schema_text)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"avro.schema is not JSON: {str(error)[:200]}", header.path) from error


def read_batches(
    data: bytes, header: AvroHeader, inflater: BlockInflater | None = None, *, limit: int | None = None
) -> Iterator[Batch]:
    """Inflate the blocks of a container file, a batch at a time.

    Parameters
    ----------
    data : bytes
        The file.
    header : AvroHeader
        Its header.
    inflater : BlockInflater, optional
        What deflated blocks are inflated by as far as it can: a batch then holds until the next one is asked for.
    limit : int, optional
        What the file may inflate to, in bytes; its `expanded_limit` by default.

    Raises
    ------
    MetadataError
        Unknown codec; a block is cut or damaged, has more entries than bytes, inflates to more than `MAX_BLOCK_SIZE`,
        or the file to more than the limit.
    """
    try:
        inflate = find_codec(header.codec)
    except ValueError as error:
        raise MetadataError(str(error), header.path, 0) from error
    blocks = scan_blocks(data, header)
    if header.codec == "null":
        _check_counts((end - start for _, start, end, _ in blocks), blocks, header.path)
        places: Words = np.array(blocks, np.int64).reshape(-1, 4)
        yield Batch(np.frombuffer(bytearray(data), np.uint8), np.ascontiguousarray(places[:, 1:]), places[:, 0])
        return
    room = expanded_limit(len(data)) if limit is None else limit
    while header.codec == "deflate" and inflater is not None and blocks:
        inflated, ends = inflater.inflate(data, blocks, BATCH_SIZE)
        if not len(ends) or len(inflated) > room:
            break
        done, blocks = blocks[: len(ends)], blocks[len(ends) :]
        yield Batch(inflated, ends, np.array([block[0] for block in done], np.int64))
        room -= len(inflated)
    first, size, parts = 0, 0, []
    view = memoryview(data)
    for number, (offset, start, end, _) in enumerate(blocks):
        parts.append(_inflate(inflate, view[start:end], min(MAX_BLOCK_SIZE, room), header.path, offset))
        size += len(parts[-1])
        room -= len(parts[-1])
        if size >= BATCH_SIZE or number + 1 == len(blocks):
            yield _batch(parts, blocks[first : number + 1], header.path)
            first, size, parts = number + 1, 0, []


def scan_blocks(data: bytes, header: AvroHeader) -> list[Block]:
    """Find the blocks of a container file.

    Raises
    ------
    MetadataError
        A block is cut, or does not end in the file's sync marker.
    """
    blocks: list[Block] = []
    position, end, sync = header.size_bytes, len(data), header.sync
    while position < end:
        offset = position
        count, position = _block_number(data, position, header.path)
        if count < 0:
            raise MetadataError(NEGATIVE, header.path, offset)
        place = position
        length, position = _block_number(data, position, header.path)
        if length < 0:
            raise MetadataError(NEGATIVE, header.path, place)
        start, position = position, position + length
        if length > end - start:
            raise MetadataError(CUT, header.path, place)
        if position + SYNC_SIZE > end:
            raise MetadataError(CUT, header.path, position)
        if data[position : position + SYNC_SIZE] != sync:
            raise MetadataError(_NO_SYNC, header.path, position)
        blocks.append((offset, start, position, count))
        position += SYNC_SIZE
    return blocks


def _block_number(data: bytes, position: int, path: str) -> tuple[int, int]:
    try:
        return read_long(data, position)
    except EOFError:
        is_cut = all(byte >= 0x80 for byte in data[position : position + 10]) and len(data) - position < 10
        raise MetadataError(CUT if is_cut else LONG_VARINT, path, position) from None


def _inflate(inflate: Inflate, data: memoryview, limit: int, path: str, offset: int) -> bytes | bytearray | memoryview:
    try:
        return inflate(data, limit)
    except ValueError as error:
        raise MetadataError(str(error), path, offset) from error


def _batch(parts: list[Any], blocks: Sequence[Block], path: str) -> Batch:
    lengths = [len(part) for part in parts]
    _check_counts(lengths, blocks, path)
    # Compiled functions take arrays that can be written, and only those.
    whole = parts[0] if len(parts) == 1 and isinstance(parts[0], bytearray) else bytearray().join(parts)
    ends = list(accumulate(lengths))
    places = [(end - length, end, block[3]) for end, length, block in zip(ends, lengths, blocks, strict=True)]
    return Batch(
        np.frombuffer(whole, np.uint8),
        np.array(places, np.int64).reshape(-1, 3),
        np.array([block[0] for block in blocks], np.int64),
    )


def _check_counts(lengths: Iterable[int], blocks: Sequence[Block], path: str) -> None:
    for length, (offset, _, _, count) in zip(lengths, blocks, strict=True):
        if count > length:
            raise MetadataError(f"a block has {count:,} entries, but only {length:,} bytes", path, offset)


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Return the variable-length integer at a position, and where it ends; EOFError where it does not."""
    value, position = read_varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def _take(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_long(data, position)
    if length < 0 or length > len(data) - position:
        raise EOFError
    return data[position : position + length], position + length
