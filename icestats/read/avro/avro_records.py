"""A small Avro container file -> Python records: blocks inflated here, values decoded by fastavro.

For small files, and for manifest lists before the kernel is compiled: a first look at a table does not wait for that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from icestats.errors import MetadataError
from icestats.iceberg.types import MAX_DECIMAL_SIZE
from icestats.read.avro.avro_file import AvroHeader, parse_schema, read_batches, read_header
from icestats.read.avro.type_names import resolve_names

Wanted: TypeAlias = "Mapping[int, Wanted | None]"
"""The wanted fields of a record by id: of a record or a list of records, the wanted fields inside; None of a value."""

MAX_RECORDS = 1_000_000
"""Most records of a file that is read."""
BATCH_RECORDS, BATCH_SIZE = 4096, 1 << 18
"""Records are handed on together until they are so many, or have so many bytes."""
MAX_RECORD_SIZE = 3 << 19
"""Most bytes of a record: as Python's objects it may take two hundred times as many."""
MAX_RATIO = 64
"""Blocks may inflate to this many times the file's length: each of their bytes takes a microsecond, ..."""
FREE_SIZE_BYTES = 8 << 20
"""... or to this many bytes, whichever is more."""
_MAX_FREE, _MAX_FREE_OF_ITEM = 20, 2
_MAX_LEVELS = 64
"""fastavro reads a value inside of another one by a recursion without an end: some thousands end the process."""
_OF_BYTES = (0, False)


def read_records(
    data: bytes, path: str, wanted: Wanted | None = None
) -> tuple[Mapping[str, Any], Iterator[list[Mapping[str, Any]]]]:
    """Read a container file of records, some at a time: as Python's objects they take a hundred times their bytes.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        Its location, for errors.
    wanted : mapping, optional
        The fields that become Python's objects; the others are passed over. By default all.

    Returns
    -------
    schema : mapping
        The writer's schema, as JSON, without what is not wanted.
    batches : iterator of list of mapping
        The values by field name. It raises what is wrong with a record when it comes to it.

    Raises
    ------
    MetadataError
        The file is no Avro container of records, cut or damaged, has more than `MAX_RECORDS` or one of more than
        `MAX_RECORD_SIZE`, a type inside of itself, nested deep or of a long name, lists whose items take no bytes,
        records of many such values or decimals of any length, a wanted field of another shape, or inflates beyond
        `MAX_RATIO`.
    """
    import fastavro

    header = read_header(data, path)
    document = parse_schema(header)
    if not _is_record(document):
        raise MetadataError("its Avro schema is not a record", path)
    try:
        resolve_names(document)  # Refuses long ones: fastavro writes a namespace before the name of each type in it.
        schema: Any = fastavro.parse_schema(document)
        _check_levels(schema, {})
        _count_free(schema, {})
        read = schema if wanted is None else _leave(schema, wanted, schema["__named_schemas"])
    except Exception as error:
        raise MetadataError(f"its Avro schema cannot be read: {_line(error)}", path) from error
    return (document if wanted is None else read), _decode(data, header, schema, read)


def _leave(kind: Any, wanted: Wanted | None, named: Mapping[str, Any]) -> Any:
    """Return a type with what is wanted of it; ValueError if it is of another shape."""
    if isinstance(kind, str) and wanted is not None:
        kind = named.get(kind, kind)
    if isinstance(kind, list):
        return [one if one == "null" else _leave(one, wanted, named) for one in kind]
    name: Any = kind if isinstance(kind, str) else kind["type"]
    if not isinstance(name, str):
        return {**kind, "type": _leave(name, wanted, named)}
    if wanted is None:
        if name in ("record", "error", "array", "map") or "fields" in named.get(name, ()):
            raise ValueError(f"{name[:40]} where a value belongs")
        return kind
    if name == "array":
        return {**kind, "items": _leave(kind["items"], wanted, named)}
    if name != "record":
        raise ValueError(f"{name[:40]} where a record or a list of records belongs")
    fields = [field for field in kind["fields"] if field.get("field-id") in wanted]
    if wanted and kind["fields"] and not fields:
        raise ValueError("a record has none of the fields that belong there: they are known by their ids")
    return {**kind, "fields": [{**f, "type": _leave(f["type"], wanted[f["field-id"]], named)} for f in fields]}


def _decode(data: bytes, header: AvroHeader, schema: Any, read: Any) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    size = 0
    for record, length in _decode_each(data, header, schema, read):
        batch.append(record)
        size += length
        if len(batch) >= BATCH_RECORDS or size >= BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _decode_each(data: bytes, header: AvroHeader, schema: Any, read: Any) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each record, and how many bytes it has."""
    import fastavro

    total = 0
    for offset, count, block in _read_blocks(data, header):
        total += count
        if total > MAX_RECORDS:
            raise MetadataError(f"it has more than {MAX_RECORDS:,} records", header.path, offset)
        step = MAX_RECORD_SIZE // 8
        begin, window = 0, io.BytesIO(block[: step + MAX_RECORD_SIZE])
        for _ in range(count):
            if window.tell() > step:
                begin += window.tell()
                window = io.BytesIO(block[begin : begin + step + MAX_RECORD_SIZE])
            start = window.tell()
            try:
                record = fastavro.schemaless_reader(window, schema, read)
            except Exception as error:
                # fastavro raises whatever the damaged byte leads to: ValueError, IndexError, EOFError, MemoryError, ...
                is_cut = begin + step + MAX_RECORD_SIZE < len(block) and not window.read(1)
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
    """Return how many of a value's own parts take no bytes, those in its lists left out; whether all do."""
    if isinstance(kind, str):
        return (1, True) if kind == "null" else named.get(kind, _OF_BYTES)
    if isinstance(kind, list):
        return max((_count_free(one, named)[0] for one in kind if one != "null"), default=0), False
    if "fields" in kind:
        return _count_free_of_record(kind, named)
    name = kind["type"]
    if kind.get("logicalType") == "decimal" and not (name == "fixed" and kind["size"] <= MAX_DECIMAL_SIZE):
        raise ValueError(f"it has a decimal that is no fixed of {MAX_DECIMAL_SIZE} bytes at most")
    if name in ("array", "map"):
        count, is_empty = _count_free(kind["items" if name == "array" else "values"], named)
        if is_empty and name == "array":
            raise ValueError("it has a list of items that take no bytes")
        if count > _MAX_FREE_OF_ITEM:
            raise ValueError(f"it has a list of items of more than {_MAX_FREE_OF_ITEM} values that take no bytes")
    if name == "fixed":
        named[kind["name"]] = (1, True) if kind["size"] == 0 else _OF_BYTES
        return named[kind["name"]]
    return _OF_BYTES if name in ("array", "map", "enum") else _count_free(name, named)


def _count_free_of_record(kind: Any, named: dict[str, tuple[int, bool]]) -> tuple[int, bool]:
    # Where it is inside of itself, it is so behind a byte.
    named[kind["name"]] = _OF_BYTES
    inside = [_count_free(field["type"], named) for field in kind["fields"]]
    is_empty = all(empty for _, empty in inside)
    free = sum(count for count, _ in inside) + 1
    if free > _MAX_FREE:
        raise ValueError(f"it has a record of more than {_MAX_FREE} values that take no bytes")
    named[kind["name"]] = free, is_empty
    return free, is_empty


def _read_blocks(data: bytes, header: AvroHeader) -> Iterator[tuple[int, int, bytes]]:
    """Yield the inflated blocks: where each begins in the file, its number of records, its bytes."""
    for batch in read_batches(data, header, limit=max(FREE_SIZE_BYTES, MAX_RATIO * len(data))):
        for offset, (start, end, count) in zip(batch.offsets.tolist(), batch.blocks.tolist(), strict=True):
            yield offset, count, batch.data[start:end].tobytes()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
