"""A small Avro container file -> Python records: blocks inflated here, values decoded by fastavro.

For small files, and for manifest lists before the kernel is compiled: a first look at a table does not wait for that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from icestats.errors import MetadataError
from icestats.read.avro.avro_codecs import find_codec
from icestats.read.avro.avro_file import (
    FREE_SIZE,
    MAX_BLOCK_SIZE,
    MAX_RATIO,
    AvroHeader,
    parse_schema,
    read_header,
    scan_blocks,
)


def read_records(data: bytes, path: str) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Read a container file of records.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        Its location, for errors.

    Returns
    -------
    schema : mapping
        The writer's schema, as JSON.
    records : list of mapping
        The values by field name.

    Raises
    ------
    MetadataError
        The file is no Avro container of records, cut or damaged, or inflates beyond the limits of `avro_file`.
    """
    import fastavro

    header = read_header(data, path)
    document = parse_schema(header)
    if not _is_record(document):
        raise MetadataError("its Avro schema is not a record", path)
    try:
        schema = fastavro.parse_schema(document)
    except Exception as error:
        raise MetadataError(f"its Avro schema cannot be read: {_line(error)}", path) from error
    records: list[Mapping[str, Any]] = []
    for offset, count, block in _read_blocks(data, header):
        stream = io.BytesIO(block)
        if count > len(block):
            raise MetadataError(f"a block has {count:,} records, but only {len(block):,} bytes", path, offset)
        try:
            records.extend(fastavro.schemaless_reader(stream, schema) for _ in range(count))  # type: ignore[misc]
        except Exception as error:
            # fastavro raises whatever the damaged byte leads to: ValueError, IndexError, EOFError, MemoryError, ...
            raise MetadataError(f"a record cannot be read: {_line(error)}", path, offset) from error
    return document, records


def _is_record(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("type") != "record":
        return False
    fields = document.get("fields")
    return isinstance(fields, list) and all(isinstance(f, dict) and isinstance(f.get("name"), str) for f in fields)


def _read_blocks(data: bytes, header: AvroHeader) -> Iterator[tuple[int, int, bytes]]:
    """Yield the inflated blocks: where each begins in the file, its number of records, its bytes."""
    try:
        inflate = find_codec(header.codec)
    except ValueError as error:
        raise MetadataError(str(error), header.path, 0) from error
    view = memoryview(data)
    room = max(FREE_SIZE, MAX_RATIO * len(data))
    for offset, start, end, count in scan_blocks(data, header):
        try:
            block = bytes(inflate(view[start:end], min(MAX_BLOCK_SIZE, room)))
        except ValueError as error:
            raise MetadataError(str(error), header.path, offset) from error
        room -= len(block)
        yield offset, count, block


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
