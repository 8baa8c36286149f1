"""Partition statistics of a table: made, where they are stored, and what makes their snapshots go."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import RemoveSnapshotsUpdate

import icestats
from icestats.iceberg.storage import local_path


def make(table: icestats.Table, **options) -> icestats.Statistics:
    return table.compute(partitions=True, **{"with_column_stats": True, **options})


def stored_path(table: icestats.Table) -> Path:
    snapshot_id = table.snapshot.snapshot_id
    file = next(f for f in table.metadata.partition_statistics if f.snapshot_id == snapshot_id)
    path = local_path(file.statistics_path)
    assert path is not None
    return path


def expire_all_but_current(table: IcebergTable) -> None:
    current = table.current_snapshot()
    others = [s.snapshot_id for s in table.snapshots() if current is None or s.snapshot_id != current.snapshot_id]
    if others:
        with table.transaction() as change:
            change._apply((RemoveSnapshotsUpdate(snapshot_ids=others),))
