"""Committing a partition statistics file through PyIceberg, alone or together with a Puffin file.

Nothing of others is in such a file, so nothing is carried over: the snapshot's present file, if any, is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icestats.commit.entries import find_path
from icestats.commit.registration import (
    Step,
    count_attempts,
    describe_left,
    explain_exhausted,
    naming_left,
    reload_with_snapshot,
    write_and_register,
)
from icestats.commit.table_state import TableFiles, check_snapshot, new_metadata_path, warn_of_refusal
from icestats.errors import MetadataError
from icestats.iceberg.metadata import PartitionStatisticsFile

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What a commit of partition statistics would do, or has done."""

    file: PartitionStatisticsFile
    data: bytes = field(repr=False)
    replaced: str | None
    """The file that the snapshot has, or had; it stays on storage, as an orphan."""
    is_new: bool = True
    """Whether the file would differ from the one that the snapshot has."""
    warnings: tuple[str, ...] = ()

    def renew(self, table: Table, *, first: bool) -> PartitionPlan:
        """Return the plan for the table as it is now; with a new name once others have committed."""
        if first and find_path(table.metadata, self.file) == self.replaced:
            return self
        return prepare_partition_commit(
            table, self.file.snapshot_id, self.data, self.file.statistics_path.rpartition(".")[2]
        )


def prepare_partition_commit(table: Table, snapshot_id: int, data: bytes, file_format: str) -> PartitionPlan:
    """Return what the commit of a snapshot's partition statistics file would do; nothing is written."""
    check_snapshot(table, snapshot_id)
    path = new_metadata_path(table, f"partition-stats-{snapshot_id}-", f".{file_format}")
    file = PartitionStatisticsFile(snapshot_id, path, len(data))
    replaced = find_path(table.metadata, file)
    is_new = replaced is None or not _holds(table, replaced, data)
    return PartitionPlan(file, data, replaced, is_new, warn_of_refusal(table))


def _holds(table: Table, path: str, data: bytes) -> bool:
    try:
        return TableFiles(table.io).read(path, 0, len(data) + 1) == data
    except MetadataError:
        return False


def commit_partition_statistics(table: Table, plan: PartitionPlan, *, on_step: Step | None = None) -> PartitionPlan:
    """Write a partition statistics file and register it for its snapshot, unless that has exactly this one meanwhile.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog; loaded afresh here.
    plan : PartitionPlan
        Of `prepare_partition_commit`.
    on_step : callable, optional
        Called with `writing`, `written`, `committing` and `committed`; again from `writing` on where others commit in
        between.

    Returns
    -------
    PartitionPlan
        What was committed. With `is_new` False: the snapshot has exactly this already.

    Raises
    ------
    CommitError
        As `commit_statistics`.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.

    Notes
    -----
    PyIceberg and Java accept a snapshot id that does not exist: it is looked for in what is committed against.
    """
    step = on_step or (lambda _: None)
    with naming_left() as left:
        for attempt in count_attempts(table):
            fresh = reload_with_snapshot(table, plan.file.snapshot_id)
            plan = plan.renew(fresh, first=attempt == 1)
            if not plan.is_new:
                return replace(plan, warnings=(describe_left(left),) if left else ())
            if write_and_register(fresh, [(plan.file, plan.data)], step, left) is not None:
                step("committed")
                return replace(plan, warnings=(describe_left(left),) if left else ())
        raise explain_exhausted(table)
