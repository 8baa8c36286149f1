"""What a partition statistics file holds: Iceberg's own columns, then the kit's optional ones.

Source: Iceberg spec, "Partition Statistics File"; "Extending standardized statistics in Iceberg", part 2. Iceberg's
columns come first, in its order. A column map has the columns whose figure is known and no others; beside it stands how
many files lack it, where any does. Without these, a reader could not tell *no value to bound* from *unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icestats.answers.schemas import STATISTICS
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.types import to_arrow_type

COLUMNS_KEY = "icestats.columns"
"""The file's key-value metadata: [[field id, type], ...], the columns that the maps are of."""
OWN_FIELDS = 1_500_000_000
"""The kit's field ids begin here: below are partition fields and the columns of later drafts of the spec."""

LENGTH_MAPS = ("avg_lengths", "max_lengths")
"""Bytes of a column's values, rounded, where a scan has made them."""
MISSING_MAPS = tuple(f"{statistic}s_missing_files" for statistic in STATISTICS)
MAPS = (*(f"{statistic}s" for statistic in STATISTICS), *LENGTH_MAPS, *MISSING_MAPS)
ADDED = ("last_added_at", "last_added_snapshot_id")
"""The kit's own: when the latest known snapshot added a live file, in ms, and which; Iceberg's `last_updated` counts
removals too."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of whole numbers."""

    field_id: int
    name: str
    type: str
    """`int` or `long`."""
    required: bool


def iceberg_columns(format_version: int) -> tuple[FileColumn, ...]:
    """Return Iceberg's columns 2 to 13; format versions 1 and 2 have no `dv_count`.

    Examples
    --------
    >>> [column.field_id for column in iceberg_columns(2)]
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    """
    deletes = format_version >= 3
    columns = (
        FileColumn(2, "spec_id", "int", True),
        FileColumn(3, "data_record_count", "long", True),
        FileColumn(4, "data_file_count", "int", True),
        FileColumn(5, "total_data_file_size_in_bytes", "long", True),
        FileColumn(6, "position_delete_record_count", "long", deletes),
        FileColumn(7, "position_delete_file_count", "int", deletes),
        FileColumn(8, "equality_delete_record_count", "long", deletes),
        FileColumn(9, "equality_delete_file_count", "int", deletes),
        FileColumn(10, "total_record_count", "long", False),
        FileColumn(11, "last_updated_at", "long", False),
        FileColumn(12, "last_updated_snapshot_id", "long", False),
    )
    return (*columns, FileColumn(13, "dv_count", "int", True)) if deletes else columns


ADDED_COLUMNS = tuple(FileColumn(OWN_FIELDS + i, name, "long", False) for i, name in enumerate(ADDED))


def map_ids(name: str) -> tuple[int, int, int]:
    """Return the field ids of a map, of its keys and of its values."""
    first = OWN_FIELDS + 100 + 3 * MAPS.index(name)
    return first, first + 1, first + 2


def map_value_type(name: str) -> str:
    """Return the type of a map's values: `long` or `binary`."""
    return "binary" if name in ("lower_bounds", "upper_bounds") else "long"


def arrow_schema(format_version: int, partition: Sequence[PartitionColumn], maps: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of a file, with field ids, in Parquet's terms."""
    fields = [
        pa.field(column.name, _parquet_type(column.type or "unknown"), metadata=_id(column.field_id))
        for column in partition
    ]
    columns = [pa.field("partition", pa.struct(fields), nullable=False, metadata=_id(1))]
    own = ADDED_COLUMNS if maps else ()
    for column in (*iceberg_columns(format_version), *own):
        kind = pa.int32() if column.type == "int" else pa.int64()
        columns.append(pa.field(column.name, kind, nullable=not column.required, metadata=_id(column.field_id)))
    for name in maps:
        field_id, key_id, value_id = map_ids(name)
        key = pa.field("key", pa.int32(), nullable=False, metadata=_id(key_id))
        kind = pa.binary() if map_value_type(name) == "binary" else pa.int64()
        value = pa.field("value", kind, nullable=False, metadata=_id(value_id))
        columns.append(pa.field(name, pa.map_(key, value), metadata=_id(field_id)))
    return pa.schema(columns)


def stored_maps(*, with_lengths: bool) -> tuple[str, ...]:
    """Return the maps of a file with column statistics."""
    return tuple(name for name in MAPS if with_lengths or name not in LENGTH_MAPS)


def _parquet_type(type_text: str) -> pa.DataType:
    # Java reads a fixed of 16 bytes as a UUID only where Parquet says that it is one.
    return pa.uuid() if type_text == "uuid" else to_arrow_type(type_text)


def _id(field_id: int) -> dict[bytes, bytes]:
    return {b"PARQUET:field_id": str(field_id).encode()}
