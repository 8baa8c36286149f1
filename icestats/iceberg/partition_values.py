"""Partition values as Iceberg stores them, and as readable text.

Source: Iceberg spec, "Partition Transforms".
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from icestats.iceberg.metadata import PartitionField, Schema
from icestats.iceberg.types import json_value


def partition_field_type(field: PartitionField, schema: Schema) -> str | None:
    """Return the Iceberg type of a partition field's values; None if its source column is gone.

    Examples
    --------
    >>> from icestats.iceberg.metadata import Field
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True),))
    >>> partition_field_type(PartitionField(1000, 1, "at_day", "day"), schema)
    'date'
    """
    transform = field.transform
    if transform == "day":
        return "date"
    if transform in ("year", "month", "hour") or transform.startswith("bucket"):
        return "int"
    source = schema.get(field.source_id)
    return None if source is None else source.type


def display_partition_value(transform: str, type_text: str, value: Any) -> str:
    """Return a partition value as readable text: years, months and hours as dates, null as `null`.

    Examples
    --------
    >>> display_partition_value("month", "int", 516)
    '2013-01'
    >>> display_partition_value("hour", "int", 0)
    '1970-01-01T00'
    """
    if value is None:
        return "null"
    if transform == "year":
        return f"{1970 + value:04d}"
    if transform == "month":
        return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
    if transform == "hour":
        return (dt.datetime(1970, 1, 1) + dt.timedelta(hours=value)).strftime("%Y-%m-%dT%H")
    return str(json_value(type_text, value))
