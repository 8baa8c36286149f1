"""Row groups of Parquet files, by their footers.

Source: Parquet format, "File format" and "Statistics"; Iceberg spec, "Parquet" (columns go by field id).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icestats.answers.schemas import row_group_metrics_schema
from icestats.answers.text import one_line
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader
from icestats.iceberg.types import encode_value, parse_type

_TAIL = 64 << 10
_READERS = 8
_FIELD_ID = b"PARQUET:field_id"
_VALUE_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("binary", "fixed", "uuid"), bytes),
    **dict.fromkeys(("timestamp", "timestamptz"), dt.datetime),
    "boolean": bool,
    "date": dt.date,
    "time": dt.time,
    "decimal": Decimal,
    "string": str,
}


def read_row_groups(storage: FileReader, files: pa.Table, columns: Sequence[Field]) -> tuple[pa.Table, int]:
    """Read the footers of data files.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    files : pyarrow.Table
        `file_metrics_schema` with paths.
    columns : sequence of Field
        The columns whose statistics are wanted.

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
        A file is missing, or its footer is damaged.
    """
    names = ("file_path", "file_format", "record_count", "file_size_in_bytes")
    rows = files.select(names).to_pylist()
    with ThreadPoolExecutor(_READERS, thread_name_prefix="icestats-footers") as pool:
        footers = list(pool.map(lambda row: _read_footer(storage, row), rows))
    out: list[dict[str, Any]] = []
    for place, (row, footer) in enumerate(zip(rows, footers, strict=True)):
        if footer is None:
            whole = {"row_count": row["record_count"], "size_bytes": row["file_size_in_bytes"]}
            out.append({"file_index": place, "row_group": 0, **whole})
        else:
            out.extend({"file_index": place, **found} for found in _row_groups(footer[0], columns))
    table = pa.Table.from_pylist(out, row_group_metrics_schema([column.field_id for column in columns]))
    return table, sum(footer[1] for footer in footers if footer is not None)


def _read_footer(storage: FileReader, row: Mapping[str, Any]) -> tuple[pq.FileMetaData, int] | None:
    if str(row["file_format"]).upper() != "PARQUET":
        return None
    path, size = row["file_path"], row["file_size_in_bytes"]
    tail = storage.read(path, max(size - _TAIL, 0))
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise MetadataError("not a Parquet file: it does not end with PAR1", path, size)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = storage.read(path, max(size - length, 0))
    try:
        return pq.read_metadata(pa.BufferReader(tail)), len(tail)
    except (pa.ArrowException, OSError) as error:
        raise MetadataError(f"the Parquet footer cannot be read: {one_line(error)}", path) from error


def _row_groups(metadata: pq.FileMetaData, columns: Sequence[Field]) -> Iterator[dict[str, Any]]:
    leaves = dict(_leaves(metadata.schema.to_arrow_schema()))
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
        found: dict[str, Any] = {"row_group": number, "row_count": group.num_rows, "size_bytes": size}
        for column in columns:
            if column.field_id in leaves:
                found |= _statistics(group.column(leaves[column.field_id]), column)
        yield found


def _leaves(schema: pa.Schema) -> Iterator[tuple[int, int]]:
    """Yield field id and number of the Parquet column of each field that holds values, lists and maps left out."""
    number = 0

    def walk(field: pa.Field, repeated: bool) -> Iterator[tuple[int, int]]:
        nonlocal number
        if not pa.types.is_nested(field.type):
            field_id = (field.metadata or {}).get(_FIELD_ID)
            if field_id is not None and not repeated:
                yield int(field_id), number
            number += 1
            return
        inside = not pa.types.is_struct(field.type)
        for child in range(field.type.num_fields):
            yield from walk(field.type.field(child), repeated or inside)

    for field in schema:
        yield from walk(field, False)


def _statistics(chunk: Any, column: Field) -> dict[str, Any]:
    name = column.field_id
    found: dict[str, Any] = {f"value_count_{name}": chunk.num_values}
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return found
    if statistics.has_null_count:
        found[f"null_value_count_{name}"] = statistics.null_count
    if statistics.has_min_max:
        found[f"lower_bound_{name}"] = _encode(column.type, statistics.min)
        found[f"upper_bound_{name}"] = _encode(column.type, statistics.max)
    return found


def _encode(type_text: str, value: Any) -> bytes | None:
    """Return a bound as single-value bytes; None where the file has it in a type that the column no longer has."""
    expected = _VALUE_TYPES.get(parse_type(type_text).name)
    if expected is None or not isinstance(value, expected):
        return None
    if isinstance(value, bool) != (expected is bool) or isinstance(value, dt.datetime) != (expected is dt.datetime):
        return None
    return encode_value(type_text, value)
