"""Taking statistics out of metadata.json again, a snapshot's or those of expired ones: what changes, and doing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icestats.answers.text import counted, printable_lines
from icestats.commit.entries import (
    Entry,
    EntryChange,
    checks_requirements,
    find_listed,
    find_path,
    set_entry,
    unset_entry,
)
from icestats.commit.registration import (
    commit_entries,
    count_attempts,
    explain_exhausted,
    naming_left,
    reload_with_snapshot,
    write_files,
)
from icestats.commit.replayed_statistics import Content, Course, advance, read_content
from icestats.commit.statistics_commit import commit_due
from icestats.commit.statistics_plan import entry_text, explain_trap
from icestats.commit.table_state import (
    COPY_OF,
    MOST_CARRIED_BYTES,
    TableFiles,
    blob_key,
    current_columns,
    find_between,
    find_partition_statistics,
    find_predecessor,
    find_statistics,
    list_further_paths,
    list_partition_statistics,
    list_statistics,
    name_original,
    new_metadata_path,
    read_existing,
    refuse_storage_failure,
    reload_table,
    table_name,
)
from icestats.errors import CommitError, IcestatsError, MetadataError, StatisticsMissingError, UnsupportedError
from icestats.iceberg.confined_io import is_beside
from icestats.iceberg.metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icestats.iceberg.storage import ENCRYPTED, FileReader
from icestats.read.puffin.puffin import PuffinBlob, read_puffin_footer
from icestats.read.puffin.statistics_age import THETA

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MAGICS = {".avro": b"Obj\1", ".orc": b"ORC", ".parquet": b"PAR1"}
"""How files of partition statistics begin."""
_UNREAD = "nothing was removed, as what was there before cannot be read: try again, or remove without restore"


@dataclass(frozen=True, slots=True)
class EntryRemoval:
    """An entry that is taken out, or replaced by the one that was there before."""

    before: Entry | None
    """The entry of metadata.json as it is; its file stays on storage. None where only an older one is put back."""
    after: Entry | None
    """The entry that would be put back, with its file as it is; once it is done, that of its copy. None for none."""
    copied_from: str | None = None
    """The file that has been put back as a copy."""


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What removing statistics would change. `print(plan.describe())` shows it."""

    snapshot_id: int | None
    """The snapshot whose statistics are removed; None for all that have expired."""
    removals: tuple[EntryRemoval, ...]
    notes: tuple[str, ...]
    """What is not put back, and why."""
    effects: tuple[str, ...]
    """What engines will do differently."""
    table: Table = field(repr=False, compare=False)

    def describe(self, *, done: bool = False) -> str:
        """Return as plain text what would change, or what has been."""
        take, write, stay = ("took", "wrote", "stays") if done else ("would take", "would write", "would stay")
        whose = "expired snapshots" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        gone = [removal.before for removal in self.removals if removal.before is not None]
        lines = [f"table {table_name(self.table)}, {whose}"]
        for entry in gone:
            size = f"{entry.file_size_in_bytes:,} bytes"
            lines.append(f"{take} {entry.statistics_path} out of the table: {size}, {self._explain_content(entry)}")
        lines.append(f"{write} a new metadata.json; changed in it: the statistics of {whose}")
        for removal in self.removals:
            if removal.after is not None:
                source = removal.copied_from or removal.after.statistics_path
                lines.append(f"{write} a copy of {source}: that file may be removed as an orphan at any time")
            lines += [f"  before: {entry_text(removal.before)}", f"  after:  {entry_text(removal.after)}"]
        lines += [f"  {entry.statistics_path} {stay} on storage as an orphan" for entry in gone]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"effect: {effect}" for effect in self.effects]
        return printable_lines(lines)

    def find_blobs(self, entry: StatisticsFile) -> list[tuple[str, tuple[str, ...]]] | None:
        """Return the type and the columns of each blob of a file, hidden ones too; None: the file cannot be read.

        Of expired snapshots, which may be any number, the listed ones: no file is opened.
        """
        name = self.table.schema().find_column_name
        blobs: Sequence[BlobMetadata | PuffinBlob] = entry.blobs
        if self.snapshot_id is not None:
            try:
                blobs = read_puffin_footer(TableFiles(self.table.io), entry.statistics_path).blobs
            except MetadataError:
                return None
        return [(blob.type, tuple(filter(None, map(name, blob.field_ids)))) for blob in blobs]

    def _explain_content(self, entry: Entry) -> str:
        if not isinstance(entry, StatisticsFile):
            return "statistics of partitions"
        blobs = self.find_blobs(entry)
        kind = "listed blob" if self.snapshot_id is None else "blob"
        return "a file that cannot be read" if blobs is None else counted(len(blobs), kind)


def prepare_removal(table: Table, snapshot_id: int, *, restore: bool = False, partitions: bool = True) -> RemovalPlan:
    """Plan the removal of a snapshot's statistics: of its Puffin file and its partition statistics file.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog. Nothing is written.
    snapshot_id : int
        Whose statistics to remove; it may have expired.
    restore : bool
        Whether to go back to what stood there before the last commit, where the metadata log has it and its files still
        exist; without columns that have been dropped since. What that commit did not touch stays. The files are put
        back as new ones: others may remove an earlier one as an orphan at any time.
    partitions : bool
        Whether the partition statistics file goes too.

    Returns
    -------
    RemovalPlan
        The entries before and after.

    Raises
    ------
    StatisticsMissingError
        The snapshot has no statistics.
    CommitError, UnsupportedError
        As `commit_removal`.
    """
    fresh = reload_table(table)
    present = _find_entries(fresh, snapshot_id, partitions=partitions)
    if not any(present):
        raise StatisticsMissingError(f"{table_name(fresh)} has no statistics for snapshot {snapshot_id}")
    if restore:
        removals, notes = _restore(fresh, snapshot_id, present)
    else:
        removals, notes = [EntryRemoval(entry, None) for entry in present if entry is not None], []
    further = list_further_paths(fresh, snapshot_id)
    notes += [f"{path} is of this snapshot too, and goes with the rest" for path in further]
    return RemovalPlan(snapshot_id, tuple(removals), tuple(notes), _effects(fresh, removals), fresh)


def prepare_expired_removal(table: Table, *, partitions: bool = True) -> RemovalPlan:
    """Plan the removal of the entries whose snapshots have expired: engines look at none of them.

    Partition statistics stay unless `partitions`.

    Raises
    ------
    StatisticsMissingError
        There are none.
    CommitError, UnsupportedError
        As `commit_removal`.
    """
    fresh = reload_table(table)
    known = {snapshot.snapshot_id for snapshot in fresh.metadata.snapshots}
    kinds = (StatisticsFile, PartitionStatisticsFile) if partitions else (StatisticsFile,)
    expired = [entry for entry in _index_entries(fresh).values() if entry.snapshot_id not in known]
    removals = tuple(EntryRemoval(entry, None) for entry in expired if isinstance(entry, kinds))
    if not removals:
        raise StatisticsMissingError(f"{table_name(fresh)} has no statistics of expired snapshots")
    return RemovalPlan(None, removals, (), (), fresh)


def _index_entries(table: Table) -> dict[tuple[type[Entry], int], Entry]:
    """Return the entries by their kind and snapshot, the first of each."""
    found: dict[tuple[type[Entry], int], Entry] = {}
    entries: list[Entry] = [*list_statistics(table), *list_partition_statistics(table)]
    for entry in entries:
        found.setdefault((type(entry), entry.snapshot_id), entry)
    return found


def _find_entries(table: Table, snapshot_id: int, *, partitions: bool) -> tuple[Entry | None, ...]:
    """Return the entries that a removal is about: the Puffin file's, and the partition statistics' unless they stay."""
    finders = (find_statistics, find_partition_statistics) if partitions else (find_statistics,)
    return tuple(find(table, snapshot_id) for find in finders)


def _restore(table: Table, snapshot_id: int, present: Sequence[Entry | None]) -> tuple[list[EntryRemoval], list[str]]:
    """Return what brings back the entries that stood there before the last commit, and what cannot be brought back."""
    notes: list[str] = []
    if table.metadata.snapshot_by_id(snapshot_id) is None:
        gone = "what these statistics have replaced is not put back: the snapshot has expired"
        return [EntryRemoval(entry, None) for entry in present if entry is not None], [gone]
    try:
        version = find_predecessor(table, [entry for entry in present if entry is not None])
    except MetadataError as error:
        refuse_storage_failure(error, _UNREAD)
        version, notes = None, [f"what these statistics have replaced cannot be put back: {error}"]
    removals = []
    for entry, old in zip(present, _entries_of(version, snapshot_id), strict=False):
        if entry is None or old is None or name_original(entry.statistics_path) != name_original(old.statistics_path):
            after = None if old is None else _check_restorable(table, old, notes)
            if entry is not None or after is not None:
                removals.append(EntryRemoval(entry, after))
    if not notes and not any(removal.after for removal in removals):
        notes.append("these statistics have replaced none that the metadata log knows")
    return removals, notes


def _entries_of(version: TableMetadata | None, snapshot_id: int) -> Iterator[Entry | None]:
    for entries in ((), ()) if version is None else (version.statistics, version.partition_statistics):
        yield next((entry for entry in entries if entry.snapshot_id == snapshot_id), None)


def _check_restorable(table: Table, old: Entry, notes: list[str]) -> Entry | None:
    try:
        if not is_beside(old.statistics_path, table.metadata_location):
            raise MetadataError("it is not beside the table's metadata.json", old.statistics_path)
        size_bytes = TableFiles(table.io).size(old.statistics_path)
        if size_bytes != old.file_size_in_bytes:
            what = f"{size_bytes:,} bytes, expected {old.file_size_in_bytes:,} by the metadata"
            raise MetadataError(what, old.statistics_path)
        if size_bytes > MOST_CARRIED_BYTES:
            what = f"{size_bytes:,} bytes, expected {MOST_CARRIED_BYTES:,} at most"
            raise MetadataError(what, old.statistics_path)
        _check_kind(TableFiles(table.io), old)
    except MetadataError as error:
        refuse_storage_failure(error, _UNREAD)
        notes.append(f"what these statistics have replaced cannot be put back: {error}")
        return None
    if not isinstance(old, StatisticsFile):
        return old
    known = current_columns(table)
    blobs = tuple(blob for blob in old.blobs if blob.field_ids and set(blob.field_ids) <= known.keys())
    if len(blobs) < len(old.blobs):
        dropped = counted(len(old.blobs) - len(blobs), "entry", "entries")
        notes.append(f"left out, as Spark would fail: {dropped} of columns dropped since")
    return replace(old, blobs=blobs)


def _copy(table: Table, old: Entry | None) -> tuple[Entry, bytes] | None:
    """Return a new file with the bytes of an earlier one, and its entry."""
    if old is None:
        return None
    is_puffin = isinstance(old, StatisticsFile)
    prefix, suffix = ("", ".stats") if is_puffin else ("partition-stats-", _format_suffix(old.statistics_path))
    try:
        data = TableFiles(table.io).read(old.statistics_path, 0, old.file_size_in_bytes)
        if len(data) != old.file_size_in_bytes:
            what = f"{len(data):,} bytes were read, expected {old.file_size_in_bytes:,}"
            raise MetadataError(what, old.statistics_path)
        _check_kind(data, old)
    except MetadataError as error:
        raise CommitError(f"nothing was removed, as what was there before cannot be put back: {error}") from error
    suffix = f"{COPY_OF}{name_original(old.statistics_path)}{suffix}"
    path = new_metadata_path(table, f"{prefix}{old.snapshot_id}-", suffix)
    return replace(old, statistics_path=path), data


def _format_suffix(path: str) -> str:
    return next((suffix for suffix in _MAGICS if path.endswith(suffix)), ".parquet")


def _check_kind(data: bytes | FileReader, old: Entry) -> None:
    """Raise MetadataError where a file is none of statistics: a metadata log may name any that can be read."""
    path = old.statistics_path
    first = data[:4] if isinstance(data, bytes) else data.read(path, 0, 4)
    if isinstance(old, StatisticsFile):
        if old.key_metadata is None or first != ENCRYPTED:
            read_puffin_footer(data, path)
    elif not first.startswith(_MAGICS[_format_suffix(path)]):
        raise MetadataError("not partition statistics", path, 0)


def _effects(table: Table, removals: Sequence[EntryRemoval]) -> tuple[str, ...]:
    columns = current_columns(table)
    before = [removal.before for removal in removals if isinstance(removal.before, StatisticsFile)]
    after = [removal.after for removal in removals if isinstance(removal.after, StatisticsFile)]
    gone, come = (
        [blob for blob in _list_new(*pair) if blob.type == THETA] for pair in ((before, after), (after, before))
    )
    trap = explain_trap(come, table)
    told = (trap,) if trap else ()
    lost = [blob.field_ids for blob in gone]
    if not lost:
        return ("no engine loses an NDV", *told)
    names = ", ".join(columns[ids[0]].name if ids and ids[0] in columns else f"fields {list(ids)}" for ids in lost)
    return (
        f"Spark plans this snapshot without the NDV of {names}",
        "Trino plans it with the nearest ancestor's statistics, Presto and Impala with another snapshot's, if one has "
        "any",
        *told,
    )


def _list_new(ours: Sequence[StatisticsFile], others: Sequence[StatisticsFile]) -> list[BlobMetadata]:
    """Return what entries list that others do not."""
    known = {blob_key(blob) for entry in others for blob in entry.blobs}
    return [blob for entry in ours for blob in entry.blobs if blob_key(blob) not in known]


def commit_removal(plan: RemovalPlan) -> RemovalPlan:
    """Carry a removal out in one commit, as long as the entries are those that were planned with.

    Returns
    -------
    RemovalPlan
        What was done, with the copies of what is put back.

    Raises
    ------
    CommitError
        The table is read-only or dropped, the catalog refused or gave no answer, or others changed these statistics
        meanwhile: nothing was removed, unless the message says that this is unknown.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    """
    restored_id = plan.snapshot_id if any(removal.after for removal in plan.removals) else None
    schema_id = None if restored_id is None else plan.table.metadata.current_schema_id
    with naming_left() as left:
        for _ in count_attempts(plan.table):
            fresh = reload_table(plan.table) if restored_id is None else reload_with_snapshot(plan.table, restored_id)
            same_schema = schema_id is None or fresh.metadata.current_schema_id == schema_id
            known = _index_entries(fresh)
            if not same_schema or not all(_is_present(known, removal) for removal in plan.removals):
                raise CommitError(
                    "others changed these statistics, or the schema, meanwhile: nothing was removed, try again"
                )
            copies = [_copy(fresh, removal.after) for removal in plan.removals]
            files = [made for made in copies if made is not None]
            changes = [
                *(set_entry(fresh.metadata, entry) for entry, _ in files),
                *(unset_entry(removal.before) for removal in plan.removals if removal.before and not removal.after),
            ]
            if not changes:
                return plan
            before = copy(fresh)
            if not write_files(fresh, files, lambda _: None, left):
                continue
            paths = [entry.statistics_path for entry, _ in files]
            committed = commit_entries(fresh, changes, left, paths, schema_id)
            if committed is not None:
                notes = (*plan.notes, *_put_back(committed, changes, before))
                return replace(plan, removals=tuple(map(_with_copy, plan.removals, copies)), notes=notes)
        raise CommitError(f"others kept committing to {table_name(plan.table)}: nothing was removed, try again")


def _with_copy(removal: EntryRemoval, made: tuple[Entry, bytes] | None) -> EntryRemoval:
    if made is None or removal.after is None:
        return removal
    return EntryRemoval(removal.before, made[0], removal.after.statistics_path)


def _put_back(table: Table, changes: Sequence[EntryChange], known: Table) -> tuple[str, ...]:
    """Put back what others have committed between the last look and a removal, where a server decides alone.

    Returns what could not be checked.
    """
    if checks_requirements(table):
        return ()
    unknown = "whether this took out what others committed in between could not be checked"
    if not table.metadata.metadata_log:
        return (f"{unknown}: the catalog logs no versions",)
    try:
        version = next(iter(find_between(table, changes, known.metadata_location)), None)
    except MetadataError as error:
        return (f"{unknown}: {error}",)
    if version is None or all(_was_known(version, change) for change in changes):
        return ()
    theirs = [find_listed(version, change.snapshot_id, change.kind) for change in changes]
    try:
        unchecked = _commit_back(table, changes, theirs, known)
    except IcestatsError as error:
        paths = ", ".join(entry.statistics_path for entry in theirs if entry is not None)
        failed = f"{paths} could not be put back" if paths else "what was put back could not be taken out again"
        raise CommitError(
            f"others changed these statistics in the moment of the removal, and {failed}: {error}"
        ) from error
    copies = ", ".join(change.after.statistics_path for change in changes if change.after is not None)
    left = (*unchecked, f"{copies} is left on storage as an orphan") if copies else unchecked
    raise CommitError("; ".join(("others changed these statistics meanwhile: nothing was removed, try again", *left)))


def _commit_back(
    table: Table, changes: Sequence[EntryChange], theirs: Sequence[Entry | None], known: Table
) -> tuple[str, ...]:
    """Register what changes have replaced, together with what others commit before it is back, or as it comes back.

    Returns what could not be checked.
    """
    pairs = list(zip(changes, theirs, strict=True))
    removed, put = copy(table), dict[int, tuple[str | None]]()
    for _ in count_attempts(table):
        back = [
            # PyIceberg refuses to take out what is not there.
            replace(change, before_path=find_path(table.metadata, change), after=entry)
            for change, entry in pairs
            if (found := find_path(table.metadata, change)) in (None, _path(change.after)) and found != _path(entry)
        ]
        committed = commit_entries(table, back, []) if back else table
        if committed is not None:
            put |= {change.snapshot_id: (_path(change.after),) for change in back if change.kind == "statistics"}
            if overtaken := _find_overtaken(committed, [c for c in back if c.kind == "partition statistics"], table):
                pairs = [pair for pair in pairs if pair[0].kind == "statistics"] + overtaken
                table = committed
                continue
            unchecked: dict[str, None] = {}
            for change, entry in pairs:
                if isinstance(entry, StatisticsFile):
                    course = _look_at(known, removed, change)
                    course = advance(course, committed, entry.snapshot_id, own=put.get(entry.snapshot_id, ()))
                    unchecked |= dict.fromkeys(course.unknown)
                    commit_due(committed, entry, course)
            return tuple(unchecked)
        table = reload_table(table)
    raise explain_exhausted(table)


def _find_overtaken(
    table: Table, back: Sequence[EntryChange], looked_at: Table
) -> list[tuple[EntryChange, Entry | None]]:
    """Return what was put back in place of what others had committed since the last look, each with that."""
    version = next(iter(find_between(table, back, looked_at.metadata_location)), None) if back else None
    if version is None:
        return []
    newer = [(change, find_listed(version, change.snapshot_id, change.kind)) for change in back]
    return [(change, entry) for change, entry in newer if _path(entry) not in (change.before_path, _path(change.after))]


def _look_at(known: Table, table: Table, change: EntryChange) -> Course:
    """Return what is due for a snapshot without the removal, up to the present version."""
    entry = find_statistics(known, change.snapshot_id)
    base: Content = {}
    with suppress(MetadataError, UnsupportedError):
        base = read_content([read_existing(known, entry)]) if entry else {}
    course = Course(base, known.metadata_location, _path(entry))
    course = advance(course, table, change.snapshot_id, own=(_path(change.after),))
    return course._replace(is_taken_back=True)


def _path(entry: Entry | None) -> str | None:
    return None if entry is None else entry.statistics_path


def _was_known(version: TableMetadata, change: EntryChange) -> bool:
    """Whether what a change has replaced is what it was to replace, or is as the change leaves it."""
    path = find_path(version, change)
    return path in (change.before_path, _path(change.after))


def _is_present(known: Mapping[tuple[type[Entry], int], Entry], removal: EntryRemoval) -> bool:
    of = removal.before or removal.after
    return of is None or known.get((type(of), of.snapshot_id)) == removal.before
