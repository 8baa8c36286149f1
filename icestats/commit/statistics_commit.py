"""Committing a table statistics file through PyIceberg, so that nothing of anybody else's is lost.

Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) swap one metadata file for another. There the commit is
exact: the swap fails where the snapshot, its statistics or the schema changed since they were read, and the plan is
made anew from what is there. A REST catalog's server decides alone, and the last writer wins: there the commit reads,
in the metadata log, what its own entry has replaced; where that is not what it carried over, a second commit puts back
the blobs lost, and takes out those that others had taken out. In between, readers see the statistics as the first one
has left them. Other writers need not do the same: one that replaces the entry blindly, as PyIceberg's own
`update_statistics` does, still loses it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from icestats.answers.text import counted
from icestats.commit.earlier_blobs import CARRIES_EARLIER, leave_earlier, read_earlier
from icestats.commit.entries import checks_requirements
from icestats.commit.partition_statistics_commit import PartitionPlan
from icestats.commit.puffin_writer import CarriedBlob, NewBlob
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
    check_snapshot,
    current_columns,
    find_between,
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
    UnsupportedError,
)
from icestats.iceberg.metadata import StatisticsFile, TableMetadata
from icestats.read.puffin.statistics_age import THETA

if TYPE_CHECKING:
    from pyiceberg.table import Table


class _Lost(NamedTuple):
    """What others have committed, and a commit has replaced without carrying it over."""

    entry: StatisticsFile
    base: ExistingFile | None
    """What stood there before: theirs may carry it, which makes it no newer."""


class _Course(NamedTuple):
    """How far a commit has got, where a server decides alone."""

    lost: tuple[_Lost, ...] = ()
    own: ExistingFile | None = None
    """What it has committed itself."""
    undone: StatisticsFile | None = None
    """What it had carried over, and others had taken out in that moment."""


_START = _Course()


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
    return _commit(plan, _START, on_step or (lambda _: None), max_attempts)


def commit_together(
    table: Table, theirs: StatisticsFile, base: Sequence[StatisticsFile], own: Sequence[StatisticsFile]
) -> CommitPlan:
    """Commit what others have committed and a change has replaced, together with what stands there now.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table.
    theirs : StatisticsFile
        The entry that was replaced.
    base : sequence of StatisticsFile
        What it may carry, which makes it no newer.
    own : sequence of StatisticsFile
        What that which stands there now may carry.

    Raises
    ------
    CommitError, UnsupportedError, MetadataError
        As `commit_statistics`.
    """
    fresh = reload_with_snapshot(table, theirs.snapshot_id)
    course = _Course((_Lost(theirs, _read_known(fresh, base)),), _read_known(fresh, own))
    plan = _prepare(fresh, CommitRequest(theirs.snapshot_id, (), None), course)
    return _commit(plan, course, lambda _: None, MOST_ATTEMPTS)


def _read_known(table: Table, entries: Sequence[StatisticsFile]) -> ExistingFile | None:
    """Read files as one; of those that are damaged nobody carries anything."""
    files: list[ExistingFile] = []
    for entry in entries:
        with suppress(MetadataError, UnsupportedError):
            files.append(read_existing(table, entry))
    if not files:
        return None
    listed = tuple(blob for file in files for blob in file.entry.blobs)
    return ExistingFile(replace(files[0].entry, blobs=listed), tuple(b for file in files for b in file.blobs), {})


def _commit(plan: CommitPlan, course: _Course, step: Step, max_attempts: int) -> CommitPlan:
    partitions: PartitionPlan | None = None
    start = course
    with naming_left() as left:
        try:
            for attempt in count_attempts(plan.table, max_attempts):
                plan = _renew(plan, course, first=attempt == 1)
                step("prepared")
                since = plan.table.metadata_location
                table = write_and_register(plan.table, plan.files, step, left, plan.current_schema_id)
                if table is None:
                    continue
                plan = replace(plan, table=table, attempts=attempt)
                partitions = partitions or plan.partitions
                step("committed")
                found, warnings = _look_back(plan, course, since)
                if found is None:
                    warnings += (describe_left(left),) if left else ()
                    return replace(plan, warnings=(*plan.warnings, *warnings), partitions=partitions)
                course = found
            raise explain_exhausted(plan.table, max_attempts)
        except IcestatsError as error:
            if course is start:
                raise
            raise _explain_half(course, error) from error


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


def _prepare(table: Table, request: CommitRequest, course: _Course = _START) -> CommitPlan:
    check_snapshot(table, request.snapshot_id)
    before = find_statistics(table, request.snapshot_id)
    existing = _read_all(table, before, course)
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


def _read_all(table: Table, before: StatisticsFile | None, course: _Course) -> list[ExistingFile]:
    """Return what is to be carried over, the newest first.

    What this commit has overridden is newer than what it carried over itself, and older than what was committed since.
    """
    overridden = [_added_since(read_existing(table, one.entry), one.base) for one in reversed(course.lost)]
    if before is None:
        return overridden
    present, *others = (read_existing(table, entry) for entry in list_statistics(table, before.snapshot_id))
    if course.own is None:
        return [present, *others, *overridden]
    newer = [_added_since(present, course.own), *overridden]
    return newer if course.undone else [*newer, present]


def _added_since(file: ExistingFile, base: ExistingFile | None) -> ExistingFile:
    if base is None:
        return file
    stored = {(c.blob.type, c.blob.field_ids, c.stored) for c in base.blobs}
    blobs = tuple(c for c in file.blobs if (c.blob.type, c.blob.field_ids, c.stored) not in stored)
    entries = tuple(entry for entry in file.entry.blobs if entry not in base.entry.blobs)
    # Of what it carries from ancestors, some may just have been left out.
    properties = {key: value for key, value in file.properties.items() if key != CARRIES_EARLIER}
    return ExistingFile(replace(file.entry, blobs=entries), blobs, properties)


def _renew(plan: CommitPlan, course: _Course, *, first: bool) -> CommitPlan:
    table = reload_with_snapshot(plan.table, plan.snapshot_id)
    same = find_statistics(table, plan.snapshot_id) == plan.before
    partitions = None if course.own else plan.partitions
    partitions = partitions and partitions.renew(table, first=first)
    if first and same and table.metadata.current_schema_id == plan.current_schema_id:
        return replace(plan, table=table, partitions=partitions)
    return replace(_prepare(table, plan.request, course), partitions=partitions)


def _look_back(plan: CommitPlan, course: _Course, since: str) -> tuple[_Course | None, tuple[str, ...]]:
    """Return how to go on where a commit replaced what it did not know, else None; and what could not be checked.

    `since` is where the version of the metadata is that the commit was built on.
    """
    if checks_requirements(plan.table):
        return None, ()
    unknown = "whether others committed statistics in between could not be checked"
    if not plan.table.metadata.metadata_log:
        return None, (f"{unknown}: the catalog logs no versions",)
    try:
        found = [_entry_of(version, plan.snapshot_id) for version in find_between(plan.table, [plan.after], since)]
        undone = plan.before if _is_undone(plan, found) else None
    except MetadataError as error:
        return None, (f"{unknown}: {error}",)
    theirs, lost = (found[0] if found else plan.before), course.lost
    known = {entry.statistics_path for entry in (plan.before, *(one.entry for one in lost)) if entry is not None}
    if theirs is not None and (undone or theirs.statistics_path not in known):
        lost = (*lost, _Lost(theirs, None if undone else course.own))
    if lost is course.lost and undone is None:
        return None, ()
    data = plan.puffin.data
    blobs = tuple(CarriedBlob(blob, data[blob.offset : blob.offset + blob.length]) for blob in plan.puffin.blobs)
    return _Course(lost, ExistingFile(plan.after, blobs, {}), undone), ()


def _is_undone(plan: CommitPlan, found: Sequence[StatisticsFile | None]) -> bool:
    """Whether others had taken out what a commit carried over: there was no entry, or again the one before it."""
    paths = [None if entry is None else entry.statistics_path for entry in found]
    if plan.before is None or not paths or paths[0] == plan.before.statistics_path:
        return False
    if None in paths:
        return True
    version = find_predecessor(plan.table, [plan.before])
    older = None if version is None else _entry_of(version, plan.snapshot_id)
    return older is not None and older.statistics_path in paths


def _entry_of(version: TableMetadata, snapshot_id: int) -> StatisticsFile | None:
    return next((entry for entry in version.statistics if entry.snapshot_id == snapshot_id), None)


def _explain_half(course: _Course, error: IcestatsError) -> CommitError:
    if course.undone:
        what = f"with blobs of {course.undone.statistics_path}, which others took out meanwhile"
    else:
        lost = course.lost[-1].entry.statistics_path
        what = f"not together with the blobs of {lost}, which others committed meanwhile"
    return CommitError(f"committed, but {what} ({error}): remove_statistics(restore=True), then commit again")
