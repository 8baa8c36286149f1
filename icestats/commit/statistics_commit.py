"""Committing a table statistics file through PyIceberg, so that nothing of anybody else's is lost.

Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) swap one metadata file for another. There the commit is
exact: the swap fails where the snapshot, its statistics or the schema changed since they were read, and the plan is
made anew from what is there. A REST catalog's server decides alone, and the last writer wins: there the
commit looks, in the metadata log, what has passed it. Where something has, a second commit registers what the changes
of all of them give one after the other (`replayed_statistics`). In between, readers see the statistics as the last one
has left them. Other writers need not do the same: one that replaces the entry blindly, as PyIceberg's own
`update_statistics` does, still loses it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from icestats.answers.text import counted
from icestats.commit.earlier_blobs import CARRIES_EARLIER, leave_earlier, read_earlier
from icestats.commit.entries import checks_requirements, unset_entry
from icestats.commit.partition_statistics_commit import PartitionPlan
from icestats.commit.puffin_writer import CarriedBlob, NewBlob
from icestats.commit.registration import (
    MOST_ATTEMPTS,
    Step,
    commit_entries,
    count_attempts,
    describe_left,
    explain_exhausted,
    naming_left,
    reload_with_snapshot,
    write_and_register,
)
from icestats.commit.replayed_statistics import Course, advance, as_file, is_same_as, read_content
from icestats.commit.statistics_plan import CommitPlan, CommitRequest, build_commit_plan, warn_of_age
from icestats.commit.table_state import (
    ExistingFile,
    blob_key,
    check_snapshot,
    current_columns,
    find_statistics,
    list_since,
    list_statistics,
    read_all_existing,
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
from icestats.iceberg.confined_io import metadata_folder
from icestats.iceberg.metadata import StatisticsFile
from icestats.read.puffin.statistics_age import THETA

if TYPE_CHECKING:
    from pyiceberg.table import Table


def prepare_commit(
    table: Table,
    blobs: Sequence[NewBlob],
    *,
    snapshot_id: int | None = None,
    list_ndv: Collection[str | int] | None = None,
    as_listed: bool = False,
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
    as_listed : bool
        Whether `list_ndv` is for columns only that the snapshot's file does not have when it is committed: what it
        lists of others then stays listed, and no more of them.
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
    listed = None if list_ndv is None else _field_ids(table, list_ndv, blobs)
    if not blobs:
        raise CallError("no blobs to commit: compute at least one")
    for blob in blobs:
        if blob.snapshot_id != snapshot_id:
            raise CallError(f"a {blob.type} blob is for snapshot {blob.snapshot_id}, expected {snapshot_id}")
    return _prepare(table, CommitRequest(snapshot_id, tuple(blobs), listed, keep_earlier, as_listed))


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
        What was committed. With `is_new` False: the snapshot has exactly this already, nothing was written, and the
        warnings are of what was left by an attempt before.

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
    return _commit(plan, None, on_step or _ignore, max_attempts)


def commit_due(table: Table, entry: StatisticsFile, course: Course) -> None:
    """Commit what is due for a snapshot, unless it stands there already.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table.
    entry : StatisticsFile
        One of the snapshot's.
    course : Course
        What is due.

    Raises
    ------
    CommitError, UnsupportedError, MetadataError
        As `commit_statistics`.
    """
    plan = _plan_due(table, CommitRequest(entry.snapshot_id, (), None), course, entry)
    _commit(plan, course, _ignore, MOST_ATTEMPTS)


def _ignore(_: str) -> None:
    return


def _commit(plan: CommitPlan, course: Course | None, step: Step, max_attempts: int) -> CommitPlan:
    partitions: PartitionPlan | None = None
    done: CommitPlan | None = None
    with naming_left() as left:
        try:
            for attempt in count_attempts(plan.table, max_attempts):
                if course is None:
                    plan = _renew(plan, first=attempt == 1)
                    # A REST catalog's may be taken out again by the commit that passed another one.
                    if not plan.is_new and checks_requirements(plan.table):
                        return replace(plan, warnings=(describe_left(left),) if left else ())
                else:
                    fresh = reload_with_snapshot(plan.table, plan.snapshot_id)
                    course = advance(course, fresh, plan.snapshot_id)
                    plan = _plan_due(fresh, plan.request, course, plan.after)
                warnings: tuple[str, ...] = ()
                if course is None or not _stands(plan):
                    step("prepared")
                    since = plan.table.metadata_location
                    table = _write(plan, step, left)
                    if table is None:
                        continue
                    told = () if done is None else done.warnings
                    said = dict.fromkeys((*told, *plan.warnings, *warn_of_age(table, plan.snapshot_id)))
                    plan = done = replace(plan, table=table, attempts=attempt, warnings=tuple(said))
                    partitions = partitions or plan.partitions
                    step("committed")
                    passed, warnings = _look_back(plan, course, since)
                    if passed is not None:
                        course = passed
                        continue
                done = done or plan
                warnings += () if course is None else course.unknown
                warnings += (describe_left(left),) if left else ()
                return replace(done, warnings=(*done.warnings, *warnings), partitions=partitions)
            raise explain_exhausted(plan.table, max_attempts)
        except IcestatsError as error:
            if done is None:
                raise
            raise _explain_half(error) from error


def _write(plan: CommitPlan, step: Step, left: list[str]) -> Table | None:
    if plan.puffin.blobs:
        return write_and_register(plan.table, plan.files, step, left, plan.current_schema_id)
    return commit_entries(plan.table, [unset_entry(plan.before or plan.after)], left)


def _stands(plan: CommitPlan) -> bool:
    """Whether what is due stands there."""
    present = list(list_statistics(plan.table, plan.snapshot_id))
    file = read_existing(plan.table, present[0]) if len(present) == 1 else None
    return len(present) < 2 and is_same_as(plan.puffin, plan.after, file)


def _plan_due(table: Table, request: CommitRequest, course: Course, entry: StatisticsFile) -> CommitPlan:
    """Plan the commit of what is due, with blobs of ancestors unless a removal is taken back.

    The blobs that were asked for are of it, as far as nobody has replaced them.
    """
    present = read_all_existing(table, request.snapshot_id)
    properties = dict(present[0].properties) if present else {}
    properties.pop(CARRIES_EARLIER, None)
    due = as_file(course.due, entry, properties)
    asked_none = replace(request, blobs=())
    if course.due and not course.is_taken_back:
        plan = _build(table, asked_none, [due], present)
    else:
        plan = build_commit_plan(table, asked_none, find_statistics(table, request.snapshot_id), [due], base=present)
    asked = {blob_key(blob) for blob in request.blobs}
    blobs = tuple(replace(planned, kept=blob_key(planned.blob) not in asked) for planned in plan.blobs)
    return replace(plan, request=request, blobs=blobs)


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


def _prepare(table: Table, request: CommitRequest) -> CommitPlan:
    check_snapshot(table, request.snapshot_id)
    existing = read_all_existing(table, request.snapshot_id)
    return _build(table, request, existing, existing)


def _build(
    table: Table, request: CommitRequest, existing: Sequence[ExistingFile], base: Sequence[ExistingFile]
) -> CommitPlan:
    before = find_statistics(table, request.snapshot_id)
    asked = {blob_key(blob) for blob in request.blobs}
    if not request.keep_earlier:
        own_alone = [leave_earlier(file, request.snapshot_id, asked) for file in existing]
        made = build_commit_plan(table, request, before, own_alone, base=base)
        left = sum(len(file.blobs) - len(alone.blobs) for file, alone in zip(existing, own_alone, strict=True))
        if not left:
            return made
        said = (
            f"{counted(left, 'blob')} of the present file, made for earlier snapshots, left out as keep_earlier=False"
        )
        return replace(made, is_new=True, warnings=(*made.warnings, said))
    own, earlier, unread, carries = read_earlier(table, request.snapshot_id, existing, asked)
    return build_commit_plan(table, request, before, own, earlier, unread, carries, base=base)


def _renew(plan: CommitPlan, *, first: bool) -> CommitPlan:
    table = reload_with_snapshot(plan.table, plan.snapshot_id)
    # Another folder where the table was registered anew elsewhere.
    first = first and metadata_folder(table.metadata) == metadata_folder(plan.table.metadata)
    same = find_statistics(table, plan.snapshot_id) == plan.before
    partitions = plan.partitions and plan.partitions.renew(table, first=first)
    partitions = partitions if partitions is not None and partitions.is_new else None
    if first and same and table.metadata.current_schema_id == plan.current_schema_id:
        return replace(plan, table=table, partitions=partitions)
    return replace(_prepare(table, plan.request), partitions=partitions)


def _look_back(plan: CommitPlan, course: Course | None, since: str) -> tuple[Course | None, tuple[str, ...]]:
    """Return what is due where a commit passed another one, else None; and what could not be checked.

    `since` is where the version of the metadata is that the commit was built on.
    """
    if checks_requirements(plan.table):
        return None, ()
    unknown = "whether others committed statistics in between could not be checked"
    if not plan.table.metadata.metadata_log:
        return None, (f"{unknown}: the catalog logs no versions",)
    try:
        found = list_since(plan.table, plan.snapshot_id, since)
    except MetadataError as error:
        return None, (f"{unknown}: {error}",)
    before = None if plan.before is None else plan.before.statistics_path
    own = plan.after.statistics_path if plan.puffin.blobs else None
    paths = [None if entry is None else entry.statistics_path for entry in found]
    if set(paths) <= {before, own}:
        return None, ()
    if course is not None:
        return advance(course, plan.table, plan.snapshot_id, own=(own,)), ()
    asked = {blob_key(blob) for blob in plan.request.blobs}
    data = plan.puffin.data
    blobs = tuple(
        CarriedBlob(blob, data[blob.offset : blob.offset + blob.length])
        for blob in plan.puffin.blobs
        if blob_key(blob) not in asked
    )
    listed = tuple(entry for entry in plan.after.blobs if blob_key(entry) not in asked)
    carried = ExistingFile(replace(plan.after, blobs=listed), blobs, {})
    return advance(Course(read_content([carried]), since, before), plan.table, plan.snapshot_id), ()


def _explain_half(error: IcestatsError) -> CommitError:
    return CommitError(
        f"committed, but not together with what others committed, or took out, meanwhile ({error}): "
        "remove_statistics(restore=True), then commit again"
    )
