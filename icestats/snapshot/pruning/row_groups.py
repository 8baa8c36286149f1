"""Row groups of Parquet files, by their footers.

Source: Parquet format, "File format" and "Statistics"; Iceberg spec, "Parquet" (columns go by field id) and "Column
Projection" (where a file has none, by the table's name mapping).
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.schemas import row_group_metrics_schema
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field, parse_name_mapping
from icestats.iceberg.storage import FileReader, file_of
from icestats.iceberg.types import WIDTHS, PrimitiveType, parse_type
from icestats.read.parquet.parquet_footer import (
    ColumnChunk,
    ParquetColumn,
    ParquetFooter,
    find_footer_size,
    parse_footer,
)

FILE_COLUMNS = ("file_path", "file_format", "record_count", "file_size_in_bytes")
"""What has to be known of a file."""
_TAIL = 64 << 10
_READERS = 8
MOST_FOOTER_BYTES = 4 << 30
MOST_ROW_GROUPS = 1 << 24
"""Of all files together."""
_KINDS = {
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("binary", "fixed", "uuid"), "bytes"),
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
    **{name: name for name in ("boolean", "date", "time", "float", "double", "decimal", "string")},
}
"""What values of a type are in Parquet; types that are not here have no bounds."""


def read_row_groups(
    storage: FileReader, files: pa.Table, columns: Sequence[Field], name_mapping: str | None = None
) -> tuple[pa.Table, int]:
    """Read the footers of data files.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    files : pyarrow.Table
        `file_metrics_schema` with paths.
    columns : sequence of Field
        The columns whose statistics are wanted.
    name_mapping : str, optional
        `TableMetadata.name_mapping`.

    Returns
    -------
    row_groups : pyarrow.Table
        `row_group_metrics_schema`: one row a row group, in the order of the files. A file that is not Parquet is one
        row group without statistics.
    bytes_read : int
        How much of footers was read.

    Raises
    ------
    MetadataError
        A file is missing, or its footer is damaged; or all have more than `MOST_FOOTER_BYTES` or `MOST_ROW_GROUPS`.
    """
    rows = files.select(FILE_COLUMNS).to_pylist()
    schema = row_group_metrics_schema([column.field_id for column in columns])
    place = schema.get_field_index("file_index")
    left, groups_left, lock = MOST_FOOTER_BYTES, MOST_ROW_GROUPS, threading.Lock()
    # A name with a full stop could be that of a field in a struct.
    ids = {name: one for name, (one, _) in parse_name_mapping(name_mapping).items() if "." not in name}
    parsed: dict[object, pa.Table] = {}

    def read(row: Mapping[str, Any]) -> tuple[pa.Table, int]:
        nonlocal left, groups_left
        if str(row["file_format"]).upper() != "PARQUET":
            whole = {"row_count": row["record_count"], "size_bytes": row["file_size_in_bytes"]}
            return pa.Table.from_pylist([{"file_index": 0, "row_group": 0, **whole}], schema), 0
        tail, length = _read_tail(storage, row)
        # One at a time: a footer takes twenty times its length as Python's objects.
        with lock:
            left -= length
            if left < 0:
                raise _too_many(f"the footers of the files have more than {MOST_FOOTER_BYTES:,} bytes", row)
            # Manifests may name a file any number of times.
            file = file_of(row["file_path"])
            if file not in parsed:
                groups = [{"file_index": 0, **one} for one in _row_groups(_parse(tail, row), columns, ids)]
                parsed[file] = pa.Table.from_pylist(groups, schema)
            groups_left -= len(parsed[file])
            if groups_left < 0:
                raise _too_many(f"the files have more than {MOST_ROW_GROUPS:,} row groups", row)
            return parsed[file], len(tail)

    with ThreadPoolExecutor(_READERS, thread_name_prefix="icestats-footers") as pool:
        found = list(pool.map(read, rows))
    index = np.repeat(np.arange(len(found)), [table.num_rows for table, _ in found])
    groups = pa.concat_tables([schema.empty_table(), *(table for table, _ in found)])
    return groups.set_column(place, schema.field(place), pa.array(index)), sum(length for _, length in found)


def check_footers(storage: FileReader, paths: Iterable[str]) -> None:
    """Read the footers of Parquet files, for those who would make room for as many parts as a footer says.

    Raises
    ------
    MetadataError
        A file is missing, or its footer is damaged.
    """
    lock = threading.Lock()

    def check(path: str) -> None:
        row = {"file_path": path, "file_size_in_bytes": storage.size(path)}
        tail, _ = _read_tail(storage, row)
        with lock:
            _parse(tail, row)

    with ThreadPoolExecutor(_READERS, thread_name_prefix="icestats-footers") as pool:
        list(pool.map(check, {file_of(path): path for path in paths}.values()))


def _read_tail(storage: FileReader, row: Mapping[str, Any]) -> tuple[bytes, int]:
    """Read the end of a file; return it, and the length of the footer in it."""
    path, size = row["file_path"], row["file_size_in_bytes"]
    tail = storage.read(path, max(size - _TAIL, 0), _TAIL)
    try:
        length = find_footer_size(tail, size)
    except ValueError as error:
        raise _damaged(row, error) from error
    if length > len(tail):
        tail = storage.read(path, size - length, length)
    return tail, length


def _too_many(what: str, row: Mapping[str, Any]) -> MetadataError:
    return MetadataError(f"{what} together: plan with a filter that leaves fewer files", row["file_path"])


def _parse(tail: bytes, row: Mapping[str, Any]) -> ParquetFooter:
    try:
        return parse_footer(tail)
    except ValueError as error:
        raise _damaged(row, error) from error


def _damaged(row: Mapping[str, Any], error: ValueError) -> MetadataError:
    return MetadataError(f"the Parquet footer cannot be read: {error}", row["file_path"], row["file_size_in_bytes"])


def _row_groups(
    footer: ParquetFooter, columns: Sequence[Field], ids: Mapping[str, int | None]
) -> Iterator[dict[str, Any]]:
    has_ids = any(column.field_id is not None for column in footer.columns)
    places = {
        column.field_id if has_ids else ids.get(column.path): i
        for i, column in enumerate(footer.columns)
        if not column.is_repeated
    }
    wanted = [(column, places[column.field_id]) for column in columns if column.field_id in places]
    for number, group in enumerate(footer.row_groups):
        size = sum(chunk.compressed_size for chunk in group.chunks)
        found: dict[str, Any] = {"row_group": number, "row_count": group.row_count, "size_bytes": size}
        for column, place in wanted:
            found |= _statistics(group.chunks[place], footer.columns[place], column)
        yield found


def _statistics(chunk: ColumnChunk, stored: ParquetColumn, column: Field) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"value_count_{column.field_id}": chunk.value_count,
        f"null_value_count_{column.field_id}": chunk.null_count,
    }
    # One bound alone is no range of values.
    if chunk.lower is not None and chunk.upper is not None:
        kind = parse_type(column.type)
        found[f"lower_bound_{column.field_id}"] = _encode(chunk.lower, stored, kind)
        found[f"upper_bound_{column.field_id}"] = _encode(chunk.upper, stored, kind)
    return found


def _encode(bound: bytes, stored: ParquetColumn, kind: PrimitiveType) -> bytes | None:
    """Return a bound as single-value bytes; None where the file has it in a type that the column no longer has."""
    if stored.kind != _KINDS.get(kind.name) and (stored.kind, kind.name) != ("float", "double"):
        return None
    if kind.name in ("float", "double"):
        return _encode_float(bound, stored, kind.name)
    if kind.name == "string":
        return bound if _is_utf8(bound) else None
    if kind.name in ("boolean", "uuid", "fixed"):
        return bound if len(bound) == (kind.length or WIDTHS[kind.name][0]) else None
    if kind.name == "binary":
        return bound
    return _encode_number(bound, stored, kind)


def _encode_float(bound: bytes, stored: ParquetColumn, name: str) -> bytes | None:
    codes = {"float": "<f", "double": "<d"}
    code = codes[stored.kind or name]
    if len(bound) != struct.calcsize(code):
        return None
    (value,) = struct.unpack(code, bound)
    return None if math.isnan(value) else struct.pack(codes[name], value)


def _encode_number(bound: bytes, stored: ParquetColumn, kind: PrimitiveType) -> bytes | None:
    """Return whole numbers, unscaled ones, days and microseconds."""
    width = stored.width
    if not bound or (width is not None and len(bound) != width):
        return None
    value = int.from_bytes(bound, "little" if stored.is_number else "big", signed=True)
    if kind.name == "decimal":
        if stored.scale != kind.scale:
            return None
        return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
    if kind.name in ("time", "timestamp", "timestamptz"):
        if stored.micros is None:
            return None
        value *= stored.micros
    try:
        return value.to_bytes(WIDTHS[kind.name][0], "little", signed=True)
    except OverflowError:
        return None


def _is_utf8(bound: bytes) -> bool:
    try:
        bound.decode()
    except UnicodeDecodeError:
        return False
    return True
