"""Tables of statistics as Parquet files: fields go by their ids, and the file says which columns it is of.

The blob of manifest statistics and the partition statistics file are both such tables.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from icestats.answers.arrays import combine_chunks
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import expanded_limit
from icestats.iceberg.types import parse_type, to_arrow_type
from icestats.read.parquet.parquet_footer import ParquetFooter, check_places, parse_footer
from icestats.read.parquet.parquet_pages import measure_chunk

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAX_ROWS = 2_000_000
"""Most rows of a file that is read."""
OWN_FIELDS = 1_500_000_000
"""The kit's field ids begin here: all below and those from 2,147,483,447 up are the spec's, or a table's own."""
_COLUMNS_KEY = b"icestats.columns"
"""The file's key-value metadata: [[field id, type], ...], the columns that have statistics and the types of bounds."""
_FIELD_ID = b"PARQUET:field_id"


def stored_field(name: str, kind: pa.DataType, field_id: int, *, nullable: bool = True) -> pa.Field:
    """Return a field with its id."""
    return pa.field(name, kind, nullable, {_FIELD_ID: str(field_id).encode()})


def stored_type(type_text: str) -> pa.DataType | None:
    """Return the Arrow type that Parquet keeps values of an Iceberg type in, None where it has none.

    Examples
    --------
    >>> stored_type("date"), stored_type("variant")
    (DataType(date32[day]), None)
    """
    try:
        kind = parse_type(type_text)
        arrow = to_arrow_type(type_text)
    except ValueError:
        return None
    if not kind.is_orderable or type_text == "fixed[0]":
        return None
    # Java reads a fixed of 16 bytes as a UUID only where Parquet says that it is one.
    return pa.uuid() if type_text == "uuid" else arrow


def field_id_of(field: pa.Field) -> int | None:
    """Return the id of a field, None where it has none."""
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


def arrays_by_id(table: pa.Table | pa.StructArray) -> dict[int | None, pa.Array]:
    """Return the columns of a table, or of a struct, by their field ids."""
    if isinstance(table, pa.Table):
        return {field_id_of(field): combine_chunks(table[place]) for place, field in enumerate(table.schema)}
    return {field_id_of(field): table.field(place) for place, field in enumerate(table.type)}


def describe_columns(columns: Sequence[Field]) -> dict[bytes, bytes]:
    """Return the key-value metadata that says which columns have statistics."""
    return {_COLUMNS_KEY: json.dumps([[column.field_id, column.type] for column in columns]).encode()}


def read_column_types(metadata: Mapping[bytes, bytes]) -> dict[int, str] | None:
    """Return the types of the columns that have statistics, by field id; None where the file does not say.

    Raises
    ------
    ValueError, TypeError
        It does not say it in `describe_columns`' way.
    """
    text = metadata.get(_COLUMNS_KEY)
    return None if text is None else {int(field_id): str(kind) for field_id, kind in json.loads(text)}


def write_parquet(table: pa.Table, compression: Literal["zstd", "none"]) -> bytes:
    """Return a Parquet file of one row group, with the schema's metadata as its key-value metadata.

    There are no dictionaries and no column statistics: figures seldom repeat, and each is read in any case.
    """
    import pyarrow.parquet as pq

    file = io.BytesIO()
    options = {"compression": compression, "use_dictionary": False, "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(file, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(len(table), 1))
        writer.add_key_value_metadata(table.schema.metadata or {})
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class StoredParquet:
    """A Parquet file, whose footer is whole."""

    data: bytes
    footer: ParquetFooter
    file: ParquetFile
    """The same for pyarrow: its schema and key-value metadata."""


def open_parquet(data: bytes) -> StoredParquet:
    """Open a Parquet file, whoever wrote it.

    Raises
    ------
    ValueError, OSError, pyarrow.ArrowException
        It is cut or damaged, or has more than `MAX_ROWS` rows.
    """
    import pyarrow.parquet as pq

    footer = parse_footer(data)
    check_places(footer, len(data))
    rows = sum(group.row_count for group in footer.row_groups)
    if rows > MAX_ROWS:
        raise ValueError(f"it says that it has {rows:,} rows, expected {MAX_ROWS:,} at most")
    return StoredParquet(data, footer, pq.ParquetFile(pa.BufferReader(data)))


def read_parquet(stored: StoredParquet, names: Collection[str] | None = None) -> pa.Table:
    """Return a Parquet file's rows, of some columns (`a.b` is field b of struct a) or of all.

    Raises
    ------
    ValueError, OSError, pyarrow.ArrowException
        Its pages are cut or damaged, or their values would take more than the `expanded_limit` of the file.
    """
    limit = expanded_limit(len(stored.data))
    wanted = None if names is None else set(names)
    for place, column in enumerate(stored.footer.columns):
        if wanted is None or not wanted.isdisjoint(accumulate(column.path.split("."), "{}.{}".format)):
            for group in stored.footer.row_groups:
                limit -= measure_chunk(stored.data, group.chunks[place], column, limit)
    table: pa.Table = stored.file.read(None if names is None else list(names), use_threads=False)
    _check_values(table)
    return table


def _check_values(table: pa.Table) -> None:
    """Raise pyarrow.ArrowInvalid where text is no UTF-8: Arrow takes such bytes until somebody looks at them."""
    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()
    for column in table.columns:
        # A bound may be a time beyond the day, or have more digits than its type, which Arrow would refuse.
        if not (pa.types.is_time(column.type) or pa.types.is_decimal(column.type)):
            column.validate(full=True)


@contextmanager
def damage_in(path: str, what: str) -> Iterator[None]:
    """Raise what damaged bytes lead to as a MetadataError, which begins with `what`."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, OSError, pa.ArrowException) as error:
        text = f"no field {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise MetadataError(f"{what}: {text[:200] or type(error).__name__}", path) from error
