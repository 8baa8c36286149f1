"""Committing a partition statistics file through PyIceberg.

Nothing of others is in such a file, so nothing is carried over: the snapshot's present file, if any, is replaced.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.locations import load_location_provider

from icestats.answers.text import one_line
from icestats.commit.registration import REFUSED, Step, discard, wait_before_retry
from icestats.commit.statistics_update import (
    find_partition_statistics_path,
    set_partition_statistics,
    unset_partition_statistics,
)
from icestats.commit.table_state import reload_table, table_name, write_file
from icestats.errors import CommitError
from icestats.iceberg.metadata import PartitionStatisticsFile

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """What a commit of partition statistics has done."""

    file: PartitionStatisticsFile
    replaced: str | None
    """The file that the snapshot had; it is still on storage, as an orphan."""
    attempts: int


def new_partition_statistics_path(table: Table, snapshot_id: int, file_format: str) -> str:
    """Return a name that no file has, where the table keeps its metadata, as Iceberg names these files."""
    provider = load_location_provider(table.location(), table.properties)
    return provider.new_metadata_location(f"partition-stats-{snapshot_id}-{uuid.uuid4()}.{file_format}")


def find_partition_statistics(table: Table, snapshot_id: int) -> str | None:
    """Return where a snapshot's partition statistics are, as the loaded metadata says."""
    return find_partition_statistics_path(table.metadata, snapshot_id)


def commit_partition_statistics(
    table: Table, snapshot_id: int, path: str, data: bytes, *, on_step: Step | None = None, max_attempts: int = 20
) -> PartitionCommit:
    """Write a partition statistics file and register it for its snapshot.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog; loaded afresh here.
    snapshot_id : int
        The snapshot that the statistics are of.
    path : str
        Of `new_partition_statistics_path`.
    data : bytes
        The file.
    on_step : callable, optional
        Called with `writing`, `written`, `committing` and `committed`; with `committing` at each attempt.
    max_attempts : int
        How often to try while others commit in between.

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
    step = on_step or _ignore_step
    fresh = reload_table(table)
    _check_snapshot(fresh, snapshot_id)
    try:
        write_file(fresh, path, data, lambda: step("writing"))
        step("written")
    except OSError as error:
        raise CommitError(f"{path} cannot be written: {one_line(error)}; {discard(fresh, path)}") from error
    except BaseException:
        discard(fresh, path)
        raise
    file = PartitionStatisticsFile(snapshot_id, path, len(data))
    for attempt in range(1, max_attempts + 1):
        step("committing")
        before = find_partition_statistics(fresh, snapshot_id)
        if _register(fresh, file, before):
            _check_committed(fresh, file)
            step("committed")
            return PartitionCommit(file, before, attempt)
        wait_before_retry(fresh, attempt)
        fresh = _reload(fresh, file)
    discard(fresh, path)
    raise CommitError(
        f"others changed {table_name(table)} in each of {max_attempts} attempts: nothing was committed, try again"
    )


def _register(table: Table, file: PartitionStatisticsFile, before: str | None) -> bool:
    """Commit the entry; False where others were faster and nothing changed."""
    path = file.statistics_path
    try:
        set_partition_statistics(table, file, before)
    except CommitFailedException:
        return False
    except REFUSED as error:
        raise CommitError(f"{table_name(table)} took no commit: {one_line(error)}; {discard(table, path)}") from error
    except Exception as error:
        if not _has_arrived(table, file):
            raise CommitError(
                f"no answer to the commit of {table_name(table)}: {one_line(error)}; it is not seen in the metadata, "
                f"and {path} is left on storage in case it still arrives"
            ) from error
    return True


def _has_arrived(table: Table, file: PartitionStatisticsFile) -> bool:
    try:
        return find_partition_statistics(reload_table(table), file.snapshot_id) == file.statistics_path
    except Exception:  # noqa: BLE001 - the catalog, or its storage, cannot be reached: nothing is known
        return False


def _reload(table: Table, file: PartitionStatisticsFile) -> Table:
    try:
        fresh = reload_table(table)
        _check_snapshot(fresh, file.snapshot_id)
    except BaseException:
        discard(table, file.statistics_path)
        raise
    return fresh


def _check_snapshot(table: Table, snapshot_id: int) -> None:
    if table.metadata.snapshot_by_id(snapshot_id) is None:
        raise CommitError(f"snapshot {snapshot_id} of {table_name(table)} was expired meanwhile: nothing is committed")


def _check_committed(table: Table, file: PartitionStatisticsFile) -> None:
    """Take back what a server took for a snapshot that was expired just before."""
    if table.metadata.snapshot_by_id(file.snapshot_id) is not None:
        return
    unset_partition_statistics(table, file.snapshot_id, file.statistics_path)
    text = discard(table, file.statistics_path)
    raise CommitError(f"snapshot {file.snapshot_id} of {table_name(table)} was expired meanwhile: {text}")


def _ignore_step(name: str) -> None:  # noqa: ARG001 - nobody listens
    return
