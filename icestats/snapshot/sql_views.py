"""The views of `Table.sql`: each is read when a query scans it, `files` from no more manifests than the query needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from icestats.answers.schemas import COLUMNS, MANIFESTS, REFS, SNAPSHOTS, files_schema, partitions_schema
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.partition_columns import struct_type
from icestats.snapshot.manifest_ranges import select_manifests
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.snapshot.sql import LazyView

_METRICS = frozenset(
    {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
)


def build_views(reader: SnapshotReader) -> dict[str, LazyView]:
    """Build the views of a snapshot.

    Parameters
    ----------
    reader : SnapshotReader
        Reads what the views show.
    """
    metadata = reader.source.metadata
    partition = struct_type(reader.partition_columns)
    return {
        "manifests": _whole_view(MANIFESTS, reader.read_manifests),
        "files": _files_view(files_schema(partition), reader),
        "partitions": _whole_view(partitions_schema(partition), reader.read_partitions),
        "columns": _whole_view(COLUMNS, reader.read_columns),
        "snapshots": _whole_view(SNAPSHOTS, lambda: _snapshots(metadata)),
        "refs": _whole_view(REFS, lambda: _refs(metadata)),
    }


def _whole_view(schema: pa.Schema, read: Callable[[], pa.Table]) -> LazyView:
    return LazyView(schema, lambda *_: read())


def _files_view(view_schema: pa.Schema, reader: SnapshotReader) -> LazyView:
    specs, schema = reader.source.metadata.specs, reader.schema

    def read(columns: list[str] | None, row_filter: Any) -> pa.Table:
        partition = reader.partition_columns
        manifests = select_manifests(reader.manifest_files, row_filter, view_schema, specs, partition)
        # A filter may need statistics that the query does not return; Arrow does not say which columns it names.
        needs_metrics = columns is None or row_filter is not None or not _METRICS.isdisjoint(columns)
        found = reader.read_files([field.field_id for field in schema.columns] if needs_metrics else [], manifests)
        # These manifests alone may not tell the type of a partition field that no schema has any more.
        return found.cast(view_schema)

    return LazyView(view_schema, read)


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
    return pa.Table.from_pylist(rows, SNAPSHOTS)


def _refs(metadata: TableMetadata) -> pa.Table:
    rows = [{"name": name, "type": ref.type, "snapshot_id": ref.snapshot_id} for name, ref in metadata.refs.items()]
    return pa.Table.from_pylist(rows, REFS)
