"""A small Avro container file -> Python records: blocks inflated here, values decoded by fastavro.

For small files, and for manifest lists before the kernel is compiled: a first look at a table does not wait for that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from icestats.errors import MetadataError
from icestats.read.avro.avro_file import AvroHeader, parse_schema, read_batches, read_header

MAX_RECORDS = 1_000_000
"""Most records of a file that is read."""
BATCH_RECORDS, BATCH_SIZE = 4096, 1 << 20
"""Records are handed on together until they are so many, or have so many bytes."""
MAX_RECORD_SIZE = 4 << 20
"""Most bytes of a record: as Python's objects it may take a hundred times as many."""
_MAX_FREE = 100
_MAX_LEVELS = 64
"""fastavro reads a value inside of another one by a recursion without an end: some thousands end the process."""
_MAX_DECIMAL_SIZE = 16
"""To turn longer bytes into a decimal takes the square of their number."""
_OF_BYTES = (0, False)


def read_records(data: bytes, path: str) -> tuple[Mapping[str, Any], Iterator[list[Mapping[str, Any]]]]:
    """Read a container file of records, some at a time: as Python's objects they take a hundred times their bytes.

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
    batches : iterator of list of mapping
        The values by field name. It raises what is wrong with a record when it comes to it.

    Raises
    ------
    MetadataError
        The file is no Avro container of records, cut or damaged, has more than `MAX_RECORDS` or one of more than
        `MAX_RECORD_SIZE`, a type inside of itself or nested deep, lists whose items take no bytes, records of many such
        values or decimals of any length, or inflates beyond the limits of `avro_file`.
    """
    import fastavro

    header = read_header(data, path)
    document = parse_schema(header)
    if not _is_record(document):
        raise MetadataError("its Avro schema is not a record", path)
    try:
        schema = fastavro.parse_schema(document)
        _check_levels(schema, {})
        _count_free(schema, {})
    except Exception as error:
        raise MetadataError(f"its Avro schema cannot be read: {_line(error)}", path) from error
    return document, _decode(data, header, schema)


def _decode(data: bytes, header: AvroHeader, schema: Any) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    size = 0
    for record, length in _decode_each(data, header, schema):
        batch.append(record)
        size += length
        if len(batch) >= BATCH_RECORDS or size >= BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _decode_each(data: bytes, header: AvroHeader, schema: Any) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each record, and how many bytes it has."""
    import fastavro

    total = 0
    for offset, count, block in _read_blocks(data, header):
        total += count
        if total > MAX_RECORDS:
            raise MetadataError(f"it has more than {MAX_RECORDS:,} records", header.path, offset)
        begin, window = 0, io.BytesIO(block[: 2 * MAX_RECORD_SIZE])
        for _ in range(count):
            if window.tell() > MAX_RECORD_SIZE:
                begin += window.tell()
                window = io.BytesIO(block[begin : begin + 2 * MAX_RECORD_SIZE])
            start = window.tell()
            try:
                record = fastavro.schemaless_reader(window, schema)
            except Exception as error:
                # fastavro raises whatever the damaged byte leads to: ValueError, IndexError, EOFError, MemoryError, ...
                is_cut = begin + 2 * MAX_RECORD_SIZE < len(block) and not window.read(1)
                what = f"it has more than {MAX_RECORD_SIZE:,} bytes" if is_cut else _line(error)
                raise MetadataError(f"a record cannot be read: {what}", header.path, offset) from error
            yield record, window.tell() - start  # type: ignore[misc]
            del record


def _is_record(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("type") != "record":
        return False
    fields = document.get("fields")
    return isinstance(fields, list) and all(isinstance(f, dict) and isinstance(f.get("name"), str) for f in fields)


def _check_levels(kind: Any, named: dict[str, int]) -> int:
    """Return how many types a type has inside of each other; raise ValueError where there are too many."""
    if isinstance(kind, str):
        return named.get(kind, 0)
    parts, name = (kind, None) if isinstance(kind, list) else (_types_inside(kind), kind.get("name"))
    if name is not None:
        # Until its levels are known, it has too many for a place inside of itself.
        named[name] = _MAX_LEVELS
    levels = 1 + max((_check_levels(part, named) for part in parts), default=0)
    if levels > _MAX_LEVELS:
        raise ValueError(f"it nests more than {_MAX_LEVELS} types, or one inside of itself")
    if name is not None:
        named[name] = levels
    return levels


def _types_inside(kind: Mapping[str, Any]) -> list[Any]:
    inside = [field["type"] for field in kind["fields"]] if "fields" in kind else []
    return inside + [kind[key] for key in ("type", "items", "values") if key in kind]


def _count_free(kind: Any, named: dict[str, tuple[int, bool]]) -> tuple[int, bool]:
    """Return how many of a value's own parts take no bytes, those in its lists and unions left out; whether all do."""
    if isinstance(kind, str):
        return (1, True) if kind == "null" else named.get(kind, _OF_BYTES)
    if isinstance(kind, list):
        for one in kind:
            _count_free(one, named)
        return _OF_BYTES
    if "fields" in kind:
        return _count_free_of_record(kind, named)
    name = kind["type"]
    if kind.get("logicalType") == "decimal" and not (name == "fixed" and kind["size"] <= _MAX_DECIMAL_SIZE):
        raise ValueError(f"it has a decimal that is no fixed of {_MAX_DECIMAL_SIZE} bytes at most")
    if name == "array" and _count_free(kind["items"], named)[1]:
        raise ValueError("it has a list of items that take no bytes")
    if name == "map":
        _count_free(kind["values"], named)
    if name == "fixed":
        named[kind["name"]] = (1, True) if kind["size"] == 0 else _OF_BYTES
        return named[kind["name"]]
    return _OF_BYTES if name in ("array", "map", "enum") else _count_free(name, named)


def _count_free_of_record(kind: Any, named: dict[str, tuple[int, bool]]) -> tuple[int, bool]:
    # Where it is inside of itself, it is so behind a byte.
    named[kind["name"]] = _OF_BYTES
    inside = [_count_free(field["type"], named) for field in kind["fields"]]
    is_empty = all(empty for _, empty in inside)
    free = sum(count for count, _ in inside) + is_empty
    if free > _MAX_FREE:
        raise ValueError(f"it has a record of more than {_MAX_FREE} values that take no bytes")
    named[kind["name"]] = free, is_empty
    return free, is_empty


def _read_blocks(data: bytes, header: AvroHeader) -> Iterator[tuple[int, int, bytes]]:
    """Yield the inflated blocks: where each begins in the file, its number of records, its bytes."""
    for batch in read_batches(data, header):
        for offset, (start, end, count) in zip(batch.offsets.tolist(), batch.blocks.tolist(), strict=True):
            yield offset, count, batch.data[start:end].tobytes()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
