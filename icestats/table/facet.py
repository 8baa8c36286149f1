"""What the facets of a table share: the opened source, its snapshot, and what has been read of it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

    from icestats.plan.filters.row_filter import FilterSchema, RowFilter


class Facet:
    """One snapshot of an Iceberg table, read once; made as `Table` says."""

    def __init__(self, source: Source, snapshot_id: int | None = None, ref: str | None = None) -> None:
        self._source = source
        self._pin = (snapshot_id, ref)
        self.snapshot: Snapshot | None = source.metadata.find_snapshot(snapshot_id, ref)
        """The snapshot that everything is about; None for a table that has none yet."""
        self.schema: Schema = source.metadata.find_schema(snapshot_id, ref)
        """The schema that the snapshot is read with: a branch's is the current one, a tag's and an id's its own."""
        self._reader = SnapshotReader(source, self.snapshot, self.schema)

    @cached_property
    def _filter_schema(self) -> FilterSchema:
        from icestats.plan.filters.row_filter import read_filter_schema

        return read_filter_schema(self._source, self.schema.schema_id)

    def _bind(self, row_filter: str | BooleanExpression) -> RowFilter:
        from icestats.plan.filters.row_filter import bind_row_filter

        return bind_row_filter(row_filter, self._filter_schema)

    @property
    def name(self) -> str:
        """The name or location that the table was loaded by."""
        return self._source.name

    @property
    def pin(self) -> dict[str, int | str]:
        """What the table was loaded with beside its name: `snapshot`, `ref`, or neither."""
        snapshot_id, ref = self._pin
        return {name: value for name, value in (("snapshot", snapshot_id), ("ref", ref)) if value is not None}

    @property
    def metadata(self) -> TableMetadata:
        """The version of the metadata that was loaded."""
        return self._source.metadata
