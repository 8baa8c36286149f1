"""The views of `Table.sql`: each is read when a query scans it, `files` from no more manifests than the query needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icestats.metadata import Schema, TableMetadata
from icestats.read.manifest_ranges import select_manifests
from icestats.schemas import REFS, SNAPSHOTS
from icestats.sql import LazyView

FilesReader = Callable[[pa.Table, Sequence[int]], pa.Table]
"""Reads `Table.files` of some manifests (`schemas.MANIFEST_FILES`) with the statistics of some field ids."""

_METRICS = frozenset(
    {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
)


def build_whole_view(schema: pa.Schema, read: Callable[[], pa.Table]) -> LazyView:
    """Build a view that is read as a whole."""
    return LazyView(schema, lambda *_: read())


def build_files_view(
    files_schema: pa.Schema,
    manifest_files: Callable[[], pa.Table],
    metadata: TableMetadata,
    schema: Schema,
    read: FilesReader,
) -> LazyView:
    """Build the view `files`.

    Parameters
    ----------
    files_schema : pyarrow.Schema
        Of the view.
    manifest_files : callable
        Gives `schemas.MANIFEST_FILES`.
    metadata : TableMetadata
        Partition specs.
    schema : Schema
        The columns whose statistics the view has.
    read : callable
        Reads the files of some manifests.
    """

    def read_view(columns: list[str] | None, row_filter: Any) -> pa.Table:
        manifests = select_manifests(manifest_files(), row_filter, files_schema, metadata.specs, schema)
        # A filter may need statistics that the query does not return; Arrow does not say which columns it names.
        needs_metrics = columns is None or row_filter is not None or not _METRICS.isdisjoint(columns)
        return read(manifests, [field.field_id for field in schema.columns] if needs_metrics else [])

    return LazyView(files_schema, read_view)


def build_metadata_views(metadata: TableMetadata) -> Mapping[str, LazyView]:
    """Build the views `snapshots` and `refs`."""
    return {
        "snapshots": build_whole_view(SNAPSHOTS, lambda: _snapshots(metadata)),
        "refs": build_whole_view(REFS, lambda: _refs(metadata)),
    }


def _snapshots(metadata: TableMetadata) -> pa.Table:
    rows = [
        {
            "snapshot_id": snapshot.snapshot_id,
            "parent_snapshot_id": snapshot.parent_snapshot_id,
            "sequence_number": snapshot.sequence_number,
            "committed_at": dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC),
            "operation": snapshot.operation,
            "schema_id": snapshot.schema_id,
            "manifest_list": snapshot.manifest_list,
            "summary": list(snapshot.summary.items()),
        }
        for snapshot in metadata.snapshots.values()
    ]
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS)


def _refs(metadata: TableMetadata) -> pa.Table:
    rows = [{"name": name, "type": ref.type, "snapshot_id": ref.snapshot_id} for name, ref in metadata.refs.items()]
    return pa.Table.from_pylist(rows, schema=REFS)
