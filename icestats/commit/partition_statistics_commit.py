"""Committing a partition statistics file through PyIceberg.

Nothing of others is in such a file, so nothing is carried over: the snapshot's present file, if any, is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icestats.commit.entries import find_path
from icestats.commit.registration import (
    Step,
    count_attempts,
    explain_exhausted,
    reload_with_snapshot,
    write_and_register,
)
from icestats.commit.table_state import new_metadata_path
from icestats.iceberg.metadata import PartitionStatisticsFile

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """What a commit of partition statistics has done, or would do."""

    file: PartitionStatisticsFile
    replaced: str | None
    """The file that the snapshot had; it is still on storage, as an orphan."""


def prepare_partition_commit(table: Table, snapshot_id: int, data: bytes, file_format: str) -> PartitionCommit:
    """Return what the commit of a snapshot's partition statistics file would do; nothing is written."""
    path = new_metadata_path(table, f"partition-stats-{snapshot_id}-", f".{file_format}")
    file = PartitionStatisticsFile(snapshot_id, path, len(data))
    return PartitionCommit(file, find_path(table.metadata, file))


def commit_partition_statistics(
    table: Table, file: PartitionStatisticsFile, data: bytes, *, on_step: Step | None = None
) -> PartitionCommit:
    """Write a partition statistics file and register it for its snapshot.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog; loaded afresh here.
    file : PartitionStatisticsFile
        Of `prepare_partition_commit`.
    data : bytes
        The file.
    on_step : callable, optional
        Called with `writing`, `written`, `committing` and `committed`; again from `writing` on where others commit in
        between.

    Raises
    ------
    CommitError
        The table is read-only, dropped, or the snapshot was expired meanwhile; the catalog refused; or others kept
        committing. What was written has been removed, unless the catalog gave no answer: then the message says so.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.

    Notes
    -----
    PyIceberg and Java accept a snapshot id that does not exist: it is looked for in what is committed against.
    """
    step = on_step or (lambda _: None)
    for _ in count_attempts(table):
        fresh = reload_with_snapshot(table, file.snapshot_id)
        before = find_path(fresh.metadata, file)
        if write_and_register(fresh, file, data, step) is not None:
            step("committed")
            return PartitionCommit(file, before)
    raise explain_exhausted(table)
