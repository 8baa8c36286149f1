"""The views of `Table.sql`: each is read when a query scans it, `files` from no more manifests than the query needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.metadata import Schema, TableMetadata
from icestats.read.manifest_ranges import select_manifests
from icestats.read.partition_columns import partition_type
from icestats.schemas import COLUMNS, MANIFESTS, REFS, SNAPSHOTS, files_schema, partitions_schema
from icestats.sql import LazyView

FilesReader = Callable[[pa.Table, Sequence[int]], pa.Table]
"""Reads `Table.files` of some manifests (`schemas.MANIFEST_FILES`) with the statistics of some field ids."""

_METRICS = frozenset(
    {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
)


@dataclass(frozen=True, slots=True)
class TableReaders:
    """How the views are read."""

    manifest_files: Callable[[], pa.Table]
    manifests: Callable[[], pa.Table]
    partitions: Callable[[], pa.Table]
    columns: Callable[[], pa.Table]
    files: FilesReader


def build_views(metadata: TableMetadata, schema: Schema, readers: TableReaders) -> dict[str, LazyView]:
    """Build all views of a table.

    Parameters
    ----------
    metadata : TableMetadata
        Partition specs, snapshots and refs.
    schema : Schema
        The columns whose statistics the view `files` has.
    readers : TableReaders
        How the views are read.
    """
    partition = partition_type(metadata.specs, metadata.schemas.values())
    return {
        "manifests": _whole_view(MANIFESTS, readers.manifests),
        "files": _files_view(files_schema(partition), metadata, schema, readers),
        "partitions": _whole_view(partitions_schema(partition), readers.partitions),
        "columns": _whole_view(COLUMNS, readers.columns),
        "snapshots": _whole_view(SNAPSHOTS, lambda: _snapshots(metadata)),
        "refs": _whole_view(REFS, lambda: _refs(metadata)),
    }


def _whole_view(schema: pa.Schema, read: Callable[[], pa.Table]) -> LazyView:
    return LazyView(schema, lambda *_: read())


def _files_view(view_schema: pa.Schema, metadata: TableMetadata, schema: Schema, readers: TableReaders) -> LazyView:
    def read(columns: list[str] | None, row_filter: Any) -> pa.Table:
        manifests = select_manifests(readers.manifest_files(), row_filter, view_schema, metadata.specs, schema)
        # A filter may need statistics that the query does not return; Arrow does not say which columns it names.
        needs_metrics = columns is None or row_filter is not None or not _METRICS.isdisjoint(columns)
        return readers.files(manifests, [field.field_id for field in schema.columns] if needs_metrics else [])

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
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS)


def _refs(metadata: TableMetadata) -> pa.Table:
    rows = [{"name": name, "type": ref.type, "snapshot_id": ref.snapshot_id} for name, ref in metadata.refs.items()]
    return pa.Table.from_pylist(rows, schema=REFS)
