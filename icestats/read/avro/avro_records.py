"""A small Avro container file -> Python records: blocks inflated here, values decoded by fastavro.

For small files, and for manifest lists before the kernel is compiled: a first look at a table does not wait for that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from icestats.errors import MetadataError
from icestats.iceberg.storage import expanded_limit
from icestats.read.avro.avro_codecs import find_codec
from icestats.read.avro.avro_file import (
    MAX_BLOCK_SIZE,
    AvroHeader,
    parse_schema,
    read_header,
    scan_blocks,
)

MAX_RECORDS = 1_000_000
"""Most records of a file that is read."""


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
        The file is no Avro container of records, cut or damaged, has more than `MAX_RECORDS` or lists whose items take
        no bytes, or inflates beyond the limits of `avro_file`.
    """
    import fastavro

    header = read_header(data, path)
    document = parse_schema(header)
    if not _is_record(document):
        raise MetadataError("its Avro schema is not a record", path)
    try:
        schema = fastavro.parse_schema(document)
        endless = _has_endless_list(document, {})
    except Exception as error:
        raise MetadataError(f"its Avro schema cannot be read: {_line(error)}", path) from error
    if endless:
        raise MetadataError("its Avro schema has a list of items that take no bytes", path)
    records: list[Mapping[str, Any]] = []
    for offset, count, block in _read_blocks(data, header):
        stream = io.BytesIO(block)
        if len(records) + count > MAX_RECORDS:
            raise MetadataError(f"it has more than {MAX_RECORDS:,} records", path, offset)
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


def _has_endless_list(kind: Any, named: dict[str, Any]) -> bool:
    """Return whether a schema has an array whose items take no bytes: it may have any number of them."""
    if isinstance(kind, list):
        return any(_has_endless_list(one, named) for one in kind)
    if not isinstance(kind, dict):
        return False
    if "name" in kind:
        named[kind["name"]] = kind
    inside = [kind.get("items"), kind.get("values"), *(field["type"] for field in kind.get("fields", ()))]
    inside += [kind["type"]] if isinstance(kind["type"], dict | list) else []
    is_endless = kind["type"] == "array" and _is_empty(kind["items"], named)
    return is_endless or any(_has_endless_list(one, named) for one in inside)


def _is_empty(kind: Any, named: Mapping[str, Any]) -> bool:
    if isinstance(kind, str):
        return kind == "null" or (kind in named and _is_empty(named[kind], named))
    if isinstance(kind, list):
        return False
    if kind["type"] == "record":
        return all(_is_empty(field["type"], named) for field in kind["fields"])
    return kind["size"] == 0 if kind["type"] == "fixed" else _is_empty(kind["type"], named)


def _read_blocks(data: bytes, header: AvroHeader) -> Iterator[tuple[int, int, bytes]]:
    """Yield the inflated blocks: where each begins in the file, its number of records, its bytes."""
    try:
        inflate = find_codec(header.codec)
    except ValueError as error:
        raise MetadataError(str(error), header.path, 0) from error
    view = memoryview(data)
    room = expanded_limit(len(data))
    for offset, start, end, count in scan_blocks(data, header):
        try:
            block = bytes(inflate(view[start:end], min(MAX_BLOCK_SIZE, room)))
        except ValueError as error:
            raise MetadataError(str(error), header.path, offset) from error
        room -= len(block)
        yield offset, count, block


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
