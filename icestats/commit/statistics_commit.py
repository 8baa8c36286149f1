"""Committing a table statistics file through PyIceberg, so that nothing of anybody else's is lost.

Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) swap one metadata file for another. There the commit is
exact: the swap fails where the snapshot, its statistics or the schema changed since they were read, and the plan is
made anew from what is there. A REST catalog's server decides alone, and the last writer wins: there the commit reads,
in the metadata log, what its own entry has replaced; where that is not what it carried over, the blobs lost are put
back by a second commit. In between, readers see the statistics without them. Other writers need not
do the same: one that replaces the entry blindly, as PyIceberg's own `update_statistics` does, still loses it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from icestats.answers.text import counted
from icestats.commit.earlier_blobs import leave_earlier, read_earlier
from icestats.commit.entries import checks_requirements
from icestats.commit.partition_statistics_commit import PartitionPlan
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.registration import (
    MOST_ATTEMPTS,
    Step,
    count_attempts,
    describe_left,
    explain_exhausted,
    naming_left,
    reload_with_snapshot,
    write_and_register,
)
from icestats.commit.statistics_plan import CommitPlan, CommitRequest, build_commit_plan
from icestats.commit.table_state import (
    ExistingFile,
    blob_key,
    current_columns,
    find_predecessor,
    find_statistics,
    list_statistics,
    read_existing,
    table_name,
)
from icestats.errors import (
    CallError,
    ColumnNotFoundError,
    CommitError,
    IcestatsError,
    MetadataError,
    SnapshotNotFoundError,
)
from icestats.iceberg.metadata import StatisticsFile
from icestats.read.puffin.statistics_age import THETA

if TYPE_CHECKING:
    from pyiceberg.table import Table


class _Lost(NamedTuple):
    """What others have committed, and a commit has replaced without carrying it over."""

    entry: StatisticsFile
    own: CommitPlan | None
    """What this commit had committed before: theirs may carry it, which makes it no newer."""


def prepare_commit(
    table: Table,
    blobs: Sequence[NewBlob],
    *,
    snapshot_id: int | None = None,
    list_ndv: Collection[str | int] | None = None,
    keep_earlier: bool = True,
) -> CommitPlan:
    """Plan the commit of blobs to a snapshot's statistics file. Nothing is written.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog.
    blobs : sequence of NewBlob
        Made for that snapshot. One replaces those of the same type and fields in the snapshot's present file, whose
        other blobs are carried over, byte for byte.
    snapshot_id : int, optional
        By default the current snapshot.
    list_ndv : collection of str or int, optional
        The columns whose NDV metadata.json lists, so that engines see it, by name in the current schema or by field id;
        by default all that have a Theta sketch here. Columns listed by others stay listed.
    keep_earlier : bool
        Whether the file also gets the nearest blob of each other kind and field that ancestors of the snapshot have,
        byte for byte, with the snapshot that it was made for, and stays listed where it was. Engines look into one file
        only: Spark into that of the snapshot, Trino into the nearest.

    Returns
    -------
    CommitPlan
        The file's path and bytes, its blobs, the entry of metadata.json before and after, effects and warnings.

    Raises
    ------
    CallError
        There are no blobs, one is for another snapshot, or a Theta blob has no integer `ndv`.
    ColumnNotFoundError
        `list_ndv` names a column that the table does not have.
    SnapshotNotFoundError
        The table has no such snapshot.
    MetadataError
        The snapshot's present statistics file cannot be read, so its blobs cannot be carried over.
    UnsupportedError
        The present statistics file is encrypted.

    Notes
    -----
    Only `apache-datasketches-theta-v1` is listed: PyIceberg 0.12 refuses to load a table that lists a type it does not
    know. Fields that are not in the current schema are never listed, since Spark's planner fails on them.
    Source: Iceberg spec, "Table Statistics".
    """
    if snapshot_id is None:
        current = table.metadata.current_snapshot_id
        if current is None:
            raise SnapshotNotFoundError(f"{table_name(table)} has no snapshot yet: there is nothing to describe")
        snapshot_id = current
    if not blobs:
        raise CallError("no blobs to commit: compute at least one")
    for blob in blobs:
        if blob.snapshot_id != snapshot_id:
            raise CallError(f"a {blob.type} blob is for snapshot {blob.snapshot_id}, expected {snapshot_id}")
    listed = None if list_ndv is None else _field_ids(table, list_ndv, blobs)
    return _prepare(table, CommitRequest(snapshot_id, tuple(blobs), listed, keep_earlier))


def commit_statistics(
    plan: CommitPlan, *, on_step: Step | None = None, max_attempts: int = MOST_ATTEMPTS
) -> CommitPlan:
    """Write a plan's files and register them for the snapshot, in one commit.

    The table is loaded afresh. Where it is as it was, exactly the plan is carried out; where its statistics or its
    schema have changed since, or change during the commit, the plan is made anew, with what others have committed.

    Parameters
    ----------
    plan : CommitPlan
        From `prepare_commit`.
    on_step : callable, optional
        Called with the name of each step as it begins or is done: `prepared`, `writing`, `written`, `committing`,
        `committed`; again from `prepared` on where the commit is tried again. `writing` and `written` come once a file.
    max_attempts : int
        How often to try while others commit in between. Waits as the table's `commit.retry.min-wait-ms` says, longer
        each time.

    Returns
    -------
    CommitPlan
        What was committed.

    Raises
    ------
    CommitError
        The table is read-only, dropped, or its snapshot was expired meanwhile; the catalog refused, or the storage
        failed; or others kept committing. What was written has been removed. What could not be removed, or may still be
        registered since the catalog gave no answer, the message names.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    MetadataError
        What others committed meanwhile cannot be read, so it cannot be carried over.

    Notes
    -----
    Killed at any point, the table has its statistics as before or as after; at most a file is left that nothing refers
    to, which `find_orphans` finds.
    """
    step = on_step or (lambda _: None)
    lost: tuple[_Lost, ...] = ()
    own: CommitPlan | None = None
    partitions: PartitionPlan | None = None
    with naming_left() as left:
        try:
            for attempt in count_attempts(plan.table, max_attempts):
                plan = _renew(plan, lost, own, first=attempt == 1)
                step("prepared")
                table = write_and_register(plan.table, plan.files, step, left, plan.current_schema_id)
                if table is None:
                    continue
                plan = replace(plan, table=table, attempts=attempt)
                partitions = partitions or plan.partitions
                step("committed")
                overridden, warnings = _find_overridden(plan, lost)
                if overridden is None:
                    warnings += (describe_left(left),) if left else ()
                    return replace(plan, warnings=(*plan.warnings, *warnings), partitions=partitions)
                lost, own = (*lost, _Lost(overridden, own)), plan
            raise explain_exhausted(plan.table, max_attempts)
        except IcestatsError as error:
            if not lost:
                raise
            raise CommitError(
                f"committed, but not together with the blobs of {lost[-1].entry.statistics_path}, which others "
                f"committed meanwhile ({error}): commit again"
            ) from error


def _field_ids(table: Table, names: Collection[str | int], blobs: Sequence[NewBlob]) -> frozenset[int]:
    columns: dict[str | int, int] = {column.name: field_id for field_id, column in current_columns(table).items()}
    sketched = {field_id for blob in blobs if blob.type == THETA for field_id in blob.field_ids}
    for name in names:
        if isinstance(name, str) and name not in columns:
            raise ColumnNotFoundError(name, tuple(str(column) for column in columns))
        if columns.get(name, name) not in sketched:
            raise CallError(
                f"list_ndv names {name!r}, of which there is no Theta sketch here: compute it, or leave it out"
            )
    return frozenset(columns[name] if isinstance(name, str) else name for name in names)


def _prepare(
    table: Table, request: CommitRequest, lost: Sequence[_Lost] = (), own: CommitPlan | None = None
) -> CommitPlan:
    if table.metadata.snapshot_by_id(request.snapshot_id) is None:
        raise SnapshotNotFoundError(f"{table_name(table)} has no snapshot {request.snapshot_id}: it may have expired")
    before = find_statistics(table, request.snapshot_id)
    existing = _read_all(table, before, lost, own)
    if not request.keep_earlier:
        own_alone = [leave_earlier(file, request.snapshot_id) for file in existing]
        made = build_commit_plan(table, request, before, own_alone)
        left = sum(len(file.blobs) - len(alone.blobs) for file, alone in zip(existing, own_alone, strict=True))
        if not left:
            return made
        said = (
            f"{counted(left, 'blob')} of the present file, made for earlier snapshots, left out as keep_earlier=False"
        )
        return replace(made, is_new=True, warnings=(*made.warnings, said))
    known = {blob_key(blob) for blob in request.blobs}
    known |= {blob_key(carried.blob) for file in existing for carried in file.blobs}
    known |= {blob_key(entry) for file in existing for entry in file.entry.blobs}
    return build_commit_plan(
        table, request, before, existing, *read_earlier(table, request.snapshot_id, existing, known)
    )


def _read_all(
    table: Table, before: StatisticsFile | None, lost: Sequence[_Lost], own: CommitPlan | None
) -> list[ExistingFile]:
    """Return what is to be carried over, the newest first.

    What this commit has overridden is newer than what it carried over itself, and older than what was committed since.
    """
    overridden = [_added_since(read_existing(table, one.entry), one.own) for one in reversed(lost)]
    if before is None:
        return overridden
    present, *others = (read_existing(table, entry) for entry in list_statistics(table, before.snapshot_id))
    if own is None:
        return [present, *others]
    return [_added_since(present, own), *overridden, present]


def _added_since(file: ExistingFile, own: CommitPlan | None) -> ExistingFile:
    if own is None:
        return file
    stored = {(b.type, b.field_ids, own.puffin.data[b.offset : b.offset + b.length]) for b in own.puffin.blobs}
    blobs = tuple(c for c in file.blobs if (c.blob.type, c.blob.field_ids, c.stored) not in stored)
    entries = tuple(entry for entry in file.entry.blobs if entry not in own.after.blobs)
    return ExistingFile(replace(file.entry, blobs=entries), blobs, file.properties)


def _renew(plan: CommitPlan, lost: Sequence[_Lost], own: CommitPlan | None, *, first: bool) -> CommitPlan:
    table = reload_with_snapshot(plan.table, plan.snapshot_id)
    same = find_statistics(table, plan.snapshot_id) == plan.before
    partitions = None if own is not None or plan.partitions is None else plan.partitions.renew(table, first=first)
    if first and same and table.metadata.current_schema_id == plan.current_schema_id:
        return replace(plan, table=table, partitions=partitions)
    return replace(_prepare(table, plan.request, lost, own), partitions=partitions)


def _find_overridden(plan: CommitPlan, lost: Sequence[_Lost]) -> tuple[StatisticsFile | None, tuple[str, ...]]:
    """Return the entry of others that this commit replaced without carrying it over, and what could not be checked."""
    if checks_requirements(plan.table):
        return None, ()
    try:
        version = find_predecessor(plan.table, [plan.after])
    except MetadataError as error:
        return None, (f"whether others committed statistics in between could not be checked: {error}",)
    entries = () if version is None else version.statistics
    predecessor = next((entry for entry in entries if entry.snapshot_id == plan.snapshot_id), None)
    known = {entry.statistics_path for entry in (plan.before, *(one.entry for one in lost)) if entry is not None}
    if predecessor is None or predecessor.statistics_path in known:
        return None, ()
    return predecessor, ()
