"""Partitions as readable text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icestats.iceberg.metadata import Schema, TableMetadata
from icestats.iceberg.partition_columns import VOID, display_partition_value, partition_field_type


class PartitionNames:
    """Names the partitions of a table.

    Parameters
    ----------
    metadata : TableMetadata
        The partition specs.
    schema : Schema
        Gives the types of partition fields.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self._fields: dict[int, list[tuple[str, str, str]]] = {
            spec_id: [
                (field.name, field.transform, kind)
                for field in spec.fields
                if field.transform != VOID and (kind := partition_field_type(field, schema)) is not None
            ]
            for spec_id, spec in metadata.specs.items()
        }

    def text(self, partition: Mapping[str, Any], spec_id: int) -> str:
        """Return the values of a partition of a spec; empty if it has none."""
        fields = self._fields.get(spec_id, ())
        return " · ".join(
            display_partition_value(transform, kind, partition[name])
            for name, transform, kind in fields
            if name in partition
        )
