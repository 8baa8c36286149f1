"""Parquet footers: the columns, the row groups, and what they say of each column.

Source: Parquet format, "File format", `parquet.thrift` and "LogicalTypes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icestats.read.parquet.compact_thrift import ThriftReader, Wanted

MAGIC = b"PAR1"
MAX_FOOTER_SIZE_BYTES = 32 << 20
"""Largest footer that is read."""
TRAILER_SIZE_BYTES = 8
"""The length of the footer and the magic: the end of a file."""
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
"""Physical types."""

_WIDTHS = {BOOLEAN: 1, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
_COLUMN_SIZE_BYTES, _FREE_SIZE_BYTES = 32, 1 << 20
"""A row group has so many bytes at least of each column, beside its path; a file without one may have so many columns
that they come to this."""
_REPEATED = 2
_MOST_LEVELS = 200
_UNIT: Wanted = {2: {1: {}, 2: {}, 3: {}}}
_LOGICAL: Wanted = {
    1: {}, 6: {}, 14: {}, 5: {1: int}, 7: _UNIT, 8: _UNIT, 10: {2: bool}
}  # fmt: skip
_ELEMENT: Wanted = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 9), int), 4: bytes, 10: _LOGICAL}
_STATISTICS: Wanted = {**dict.fromkeys((1, 2, 5, 6), bytes), 3: int}
_COLUMN: Wanted = {**dict.fromkeys((1, 4, 5, 6, 7, 9, 11), int), 12: _STATISTICS}
_GROUP: Wanted = {1: ({3: _COLUMN, 8: {}},), 2: int, 3: int}
_FILE: Wanted = {2: (_ELEMENT,), 3: int, 4: (_GROUP,), 7: ({1: {}},)}
_UNIT_MICROS = {1: 1_000, 2: 1}
"""Microseconds of a unit of time; nanoseconds have none."""
_CONVERTED = {0: "string", 5: "decimal", 6: "date", 7: "time", 8: "time", 9: "timestamp", 10: "timestamp"}
_PLAIN = {
    BOOLEAN: "boolean", INT32: "integer", INT64: "integer", FLOAT: "float", DOUBLE: "double",
    BYTE_ARRAY: "bytes", FIXED: "bytes",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A column of values: a leaf of the schema."""

    path: str
    """The names from the top, with points between them."""
    field_id: int | None
    is_repeated: bool
    """Whether a row may have several values: inside of a list or a map."""
    physical_type: int
    length: int
    """Bytes of a value of FIXED."""
    kind: str | None
    """boolean, integer, float, double, string, bytes, decimal, date, time, timestamp; None for others."""
    scale: int
    """Of a decimal."""
    micros: int | None
    """Of a unit of a time or timestamp; None for nanoseconds."""
    has_order: bool
    """Whether the file says that its type's own order is that of `lower` and `upper`."""

    @property
    def is_number(self) -> bool:
        """Whether values are numbers, little-endian; decimals may be bytes, big-endian."""
        return self.physical_type in (INT32, INT64)

    @property
    def width(self) -> int | None:
        """Bytes of a value; None where they vary."""
        return self.length if self.physical_type == FIXED else _WIDTHS.get(self.physical_type)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """What a row group says of a column. None is unknown."""

    value_count: int
    null_count: int | None
    lower: bytes | None
    upper: bytes | None
    codec: int
    compressed_size: int
    offset: int
    """Where its first page begins, a page of a dictionary included."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: a chunk for each column, in their order."""

    row_count: int
    size_bytes: int
    """Uncompressed."""
    chunks: tuple[ColumnChunk, ...]


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What a Parquet file says of itself."""

    columns: tuple[ParquetColumn, ...]
    row_groups: tuple[RowGroup, ...]


def find_footer_size(tail: bytes, file_size: int) -> int:
    """Return the length of a footer with its trailer, from the end of a file.

    Raises
    ------
    ValueError
        The file does not end as a Parquet file does, or the footer is longer than the file or `MAX_FOOTER_SIZE_BYTES`.
    """
    if len(tail) < TRAILER_SIZE_BYTES or tail[-4:] != MAGIC:
        said = "its footer is encrypted" if tail[-4:] == b"PARE" else f"it does not end with {MAGIC.decode()}"
        raise ValueError(said)
    length = int.from_bytes(tail[-8:-4], "little")
    limit = min(MAX_FOOTER_SIZE_BYTES, file_size - TRAILER_SIZE_BYTES)
    if length > limit:
        raise ValueError(f"its footer says {length:,} bytes, expected {limit:,} at most")
    return length + TRAILER_SIZE_BYTES


def parse_footer(tail: bytes) -> ParquetFooter:
    """Read a footer.

    Parameters
    ----------
    tail : bytes
        The end of the file, at least as long as `find_footer_size` says.

    Raises
    ------
    ValueError
        It is cut or damaged: a row group has another number of columns than the schema, or of other types, a count or a
        size is negative, or the columns' paths are longer than the footer.
    """
    size = find_footer_size(tail, len(tail))
    document = ThriftReader(memoryview(tail)[-size:-TRAILER_SIZE_BYTES]).read_struct(_FILE)
    orders = [1 in order for order in document.get(7, ())]
    columns = tuple(_read_columns(document.get(2, ()), orders, max(size, _FREE_SIZE_BYTES)))
    groups = tuple(_build_group(group, columns) for group in document.get(4, ()))
    if sum(group.row_count for group in groups) != document.get(3):
        raise ValueError("its row groups have other numbers of rows than the file")
    return ParquetFooter(columns, groups)


def check_places(footer: ParquetFooter, file_size: int) -> None:
    """Raise ValueError where the pages of the columns have more bytes than the file: some would be read again."""
    size = sum(chunk.compressed_size for group in footer.row_groups for chunk in group.chunks)
    if size > file_size:
        raise ValueError(f"the pages of its columns have {size:,} bytes, the file has {file_size:,}")


def _read_columns(elements: Sequence[Mapping[int, Any]], orders: Sequence[bool], limit: int) -> Iterator[ParquetColumn]:
    """Yield the leaves of a schema, which is a list of its fields, each followed by those inside.

    Row groups repeat the path of each leaf: all together are no longer than the footer.
    """
    if not elements:
        raise ValueError("it has no schema")
    left = [elements[0].get(5) or 0]
    names: list[tuple[str, bool]] = []
    count = 0
    for element in elements[1:]:
        while left and not left[-1]:
            left.pop()
            del names[len(left) - 1 :]
        if not left or len(left) > _MOST_LEVELS:
            raise ValueError("its schema has more fields, or more levels, than it says")
        left[-1] -= 1
        names.append((element.get(4, b"").decode("utf-8", "replace"), element.get(3) == _REPEATED))
        if element.get(1) is None:
            left.append(element.get(5) or 0)
        else:
            path, is_repeated = ".".join(name for name, _ in names), any(repeated for _, repeated in names)
            limit -= len(path) + _COLUMN_SIZE_BYTES
            if limit < 0:
                raise ValueError("its schema has more columns, or longer names, than a footer of its length")
            yield _build_column(element, path, is_repeated, count < len(orders) and orders[count])
            names.pop()
            count += 1
    if any(left):
        raise ValueError("its schema has fewer fields than it says")


def _build_column(element: Mapping[int, Any], path: str, is_repeated: bool, has_order: bool) -> ParquetColumn:
    physical, length = element[1], element.get(2) or 0
    if physical not in range(8) or length < 0:
        raise ValueError(f"a column has the physical type {physical} and the length {length}")
    kind, scale, micros = _find_kind(element, physical)
    return ParquetColumn(path, element.get(9), is_repeated, physical, length, kind, scale, micros, has_order)


def _find_kind(element: Mapping[int, Any], physical: int) -> tuple[str | None, int, int | None]:
    logical, converted = element.get(10), element.get(6)
    plain = _PLAIN.get(physical)
    for field_id, value in (logical or {}).items():
        if field_id in (7, 8):
            unit = next(iter(value.get(2) or {}), None)
            return "time" if field_id == 7 else "timestamp", 0, _UNIT_MICROS.get(unit or 0)
        if field_id == 10:
            return plain if value.get(2) else None, 0, None
        return {1: "string", 5: "decimal", 6: "date", 14: "bytes"}.get(field_id), value.get(1) or 0, None
    if logical is not None or converted is None:
        return plain, 0, None
    # Whole numbers with a sign.
    kind = plain if 15 <= converted <= 18 else _CONVERTED.get(converted)
    return kind, element.get(7) or 0, 1_000 if converted in (7, 9) else 1


def _build_group(document: Mapping[int, Any], columns: Sequence[ParquetColumn]) -> RowGroup:
    chunks = document.get(1, ())
    if len(chunks) != len(columns):
        raise ValueError(f"a row group has {len(chunks):,} columns, the schema has {len(columns):,}")
    rows, size = document.get(3), document.get(2)
    if rows is None or size is None or rows < 0 or size < 0:
        raise ValueError("a row group has no number of rows or bytes, or a negative one")
    built = tuple(_build_chunk(chunk, column) for chunk, column in zip(chunks, columns, strict=True))
    return RowGroup(rows, size, built)


def _build_chunk(chunk: Mapping[int, Any], column: ParquetColumn) -> ColumnChunk:
    document = chunk.get(3)
    if document is None or 8 in chunk:
        raise ValueError("a column is encrypted, or its metadata are not in the footer")
    if document.get(1) != column.physical_type:
        raise ValueError(f"a column has the physical type {document.get(1)}, the schema says {column.physical_type}")
    figures = [document.get(field_id, -1) for field_id in (5, 7, 6, 9, 4)]
    if min(figures) < 0:
        raise ValueError("a count, size or place of a column is missing or negative")
    count, compressed, _, offset, codec = figures
    dictionary = document.get(11) or 0
    statistics = document.get(12) or {}
    # Before min_value and max_value, bounds were in the order of signed bytes, whatever the type.
    is_old = not column.has_order and column.physical_type in (BOOLEAN, INT32, INT64, FLOAT, DOUBLE)
    upper, lower = (1, 2) if is_old else (5, 6)
    has_bounds = is_old or column.has_order
    return ColumnChunk(
        value_count=count,
        null_count=statistics.get(3),
        lower=statistics.get(lower) if has_bounds else None,
        upper=statistics.get(upper) if has_bounds else None,
        codec=codec,
        compressed_size=compressed,
        offset=dictionary if 0 < dictionary < offset else offset,
    )
