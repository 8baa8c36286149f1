"""The figures of manifests in the shape of the V4 draft's `content_stats`: typed, a struct a column.

Not adopted: field 146, a struct with one struct a column, whose ids begin at 10,000 + 200 x field id; offsets 1
lower_bound, 2 upper_bound, 3 tight_bounds, 4 value_count, 5 null_value_count, 6 nan_value_count,
7 avg_value_size_in_bytes. Written as Parquet, from which a reader takes the columns that it needs.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icestats.iceberg.metadata import Field
from icestats.iceberg.types import decode_value, to_arrow_type
from icestats.stats.rollup_cells import KnownCells

CONTENT_STATS = 146


def content_stats_ids(field_id: int) -> int:
    """Return the id of a column's struct; its fields follow.

    Examples
    --------
    >>> content_stats_ids(3)
    10600
    """
    return 10_000 + 200 * field_id


def write_content_stats(manifests: pa.Table, known: KnownCells, columns: Sequence[Field]) -> bytes:
    """Return the Parquet file of the data manifests' figures.

    Parameters
    ----------
    manifests : pyarrow.Table
        `schemas.MANIFEST_GROUPS` of data manifests.
    known : KnownCells
        What is known of their cells.
    columns : sequence of Field
        The columns of the cells.
    """
    import pyarrow.parquet as pq

    shape = (len(manifests), len(columns))
    structs = [_column_struct(known, column, place, shape) for place, column in enumerate(columns)]
    fields = [_field(c.name, s.type, content_stats_ids(c.field_id)) for c, s in zip(columns, structs, strict=True)]
    stats = pa.StructArray.from_arrays(structs, fields=fields)
    schema = pa.schema(
        [
            _field("manifest_path", pa.string(), 500),
            _field("record_count", pa.int64(), 103),
            _field("file_size_in_bytes", pa.int64(), 104),
            _field("content_stats", stats.type, CONTENT_STATS),
        ]
    )
    names = ("manifest_path", "record_count", "file_size_in_bytes")
    table = pa.table([*(manifests[name] for name in names), stats], schema=schema)
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", store_schema=False)
    return file.getvalue()


def _field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(field_id).encode()})


def _column_struct(known: KnownCells, column: Field, place: int, shape: tuple[int, int]) -> pa.StructArray:
    count, width = shape
    rows = pa.array(np.arange(count) * width + place)
    values = {name: array.take(rows) for name, array in known.values.items()}
    kind = to_arrow_type(column.type)
    arrays = [_typed(values[name], column, kind) for name in ("lower_bound", "upper_bound")]
    # Bounds of strings may be cut, and rows may have been deleted.
    arrays.append(pa.array([False] * count))
    arrays += [values[name] for name in ("value_count", "null_value_count", "nan_value_count")]
    names = ("lower_bound", "upper_bound", "tight_bounds", "value_count", "null_value_count", "nan_value_count")
    first = content_stats_ids(column.field_id)
    fields = [_field(n, a.type, first + offset) for offset, (n, a) in enumerate(zip(names, arrays, strict=True), 1)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _typed(bounds: pa.Array, column: Field, kind: pa.DataType) -> pa.Array:
    values = []
    for bound in bounds.to_pylist():
        try:
            values.append(None if bound is None else decode_value(column.type, bound))
        except ValueError:
            values.append(None)
    if column.type == "uuid":
        values = [None if value is None else value.bytes for value in values]
    return pa.array(values, kind)
