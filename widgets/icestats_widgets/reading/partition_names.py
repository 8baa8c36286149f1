"""Partitions as readable text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icestats.iceberg.metadata import PartitionField, PartitionSpec, Schema, TableMetadata
from icestats.iceberg.partition_columns import VOID, display_partition_value, name_specs, partition_field_type


def find_typed_fields(spec: PartitionSpec, schema: Schema) -> list[tuple[PartitionField, str]]:
    """Return the fields of a partition spec that have values, each with the Iceberg type of these."""
    typed = ((field, partition_field_type(field, schema)) for field in spec.fields if field.transform != VOID)
    return [(field, kind) for field, kind in typed if kind is not None]


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
        specs = name_specs(metadata.specs)
        self._fields = {spec_id: find_typed_fields(spec, schema) for spec_id, spec in specs.items()}

    def text(self, partition: Mapping[str, Any], spec_id: int) -> str:
        """Return the values of a partition of a spec; empty if it has none."""
        return " · ".join(
            display_partition_value(field.transform, kind, partition[field.name])
            for field, kind in self._fields.get(spec_id, ())
            if field.name in partition
        )
