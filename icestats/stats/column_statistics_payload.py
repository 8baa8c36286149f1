"""The payload of an `icestats-column-stats-v1` blob: table-level column statistics as JSON.

    {"columns": [{"field-id": 3, "type": "long", "value-count": 10, "null-value-count": 1, "nan-value-count": 0,
                  "lower-bound": "<hex>", "upper-bound": "<hex>", "avg-length": 5.5, "max-length": 9}, ...]}

Bounds are the smallest and the largest value of the live rows, single-value serialised (Iceberg spec, Appendix D);
what does not apply is absent. Source: "Extending standardized statistics in Iceberg", part 5, "Table-level column
stats".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from icestats.stats.column_accumulator import ColumnStatistics


def write_column_statistics(columns: Iterable[ColumnStatistics]) -> bytes:
    """Return the payload for some columns."""
    documents = [_document(column) for column in columns]
    return json.dumps({"columns": documents}, separators=(",", ":")).encode()


def read_column_statistics(payload: bytes) -> dict[int, Mapping[str, Any]]:
    """Return the columns of a payload by field id.

    Raises
    ------
    ValueError
        The payload is not what `write_column_statistics` makes.
    """
    try:
        return {int(document["field-id"]): document for document in json.loads(payload)["columns"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"not column statistics: {error}") from error


def _document(column: ColumnStatistics) -> dict[str, Any]:
    document = {
        "field-id": column.field_id,
        "type": column.type,
        "value-count": column.value_count,
        "null-value-count": column.null_value_count,
        "nan-value-count": column.nan_value_count,
        "lower-bound": None if column.min_value is None else column.min_value.hex(),
        "upper-bound": None if column.max_value is None else column.max_value.hex(),
        "avg-length": column.avg_length,
        "max-length": column.max_length,
    }
    return {name: value for name, value in document.items() if value is not None}
