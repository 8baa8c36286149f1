"""PyIceberg's scan of a snapshot with a given schema: PyIceberg itself reads every snapshot with the snapshot's own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from icestats.errors import SnapshotNotFoundError
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.metadata import Schema, Snapshot

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import DataScan
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot


def open_scan(source: Source, snapshot: Snapshot, schema: Schema) -> DataScan:
    """Open PyIceberg's scan of a snapshot's live rows.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot.
    schema : Schema
        The schema to read it with: see `TableMetadata.find_schema`.

    Raises
    ------
    SnapshotNotFoundError
        The table no longer has the snapshot or the schema.

    Notes
    -----
    The scan is of a copy of the metadata whose current snapshot and schema are these, so that filters are projected to
    partitions with the same schema, which PyIceberg takes the current one for. A manifest that the list names twice is
    read once.
    """
    from pyiceberg.table import DataScan

    table = load_iceberg_table(source)
    metadata = table.metadata
    known = metadata.snapshot_by_id(snapshot.snapshot_id)
    if known is None:
        raise _gone(source, f"snapshot {snapshot.snapshot_id}")
    if all(one.schema_id != schema.schema_id for one in metadata.schemas):
        raise _gone(source, f"schema {schema.schema_id}")
    pinned = {
        "snapshots": [_distinct_snapshot().model_validate(known, from_attributes=True)],
        "current_snapshot_id": snapshot.snapshot_id,
        "current_schema_id": schema.schema_id,
    }
    return DataScan(metadata.model_copy(update=pinned), table.io)


@cache
def _distinct_snapshot() -> type[IcebergSnapshot]:
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    class DistinctSnapshot(IcebergSnapshot):
        """A snapshot that gives a manifest once, however often its list names it.

        So does Iceberg's Java library (`ManifestGroup`); PyIceberg 0.12 reads the files' rows as often.
        """

        def manifests(self, io: FileIO) -> list[ManifestFile]:
            """Return the manifests, each where its list has it first."""
            found: dict[str, ManifestFile] = {}
            for manifest in super().manifests(io):
                found.setdefault(manifest.manifest_path, manifest)
            return list(found.values())

    return DistinctSnapshot


def _gone(source: Source, what: str) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(f"{source.name} has no {what} any more: load the table anew, or refresh() it")
