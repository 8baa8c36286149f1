"""Taking a snapshot's statistics out of metadata.json again: what that would change, and doing it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException

from icestats.answers.text import counted, printable_lines
from icestats.commit.entries import set_entry, unset_entry
from icestats.commit.registration import count_attempts
from icestats.commit.statistics_plan import entry_text
from icestats.commit.table_state import (
    TableFiles,
    current_columns,
    find_predecessor,
    find_statistics,
    reload_table,
    table_name,
)
from icestats.errors import CommitError, MetadataError, StatisticsMissingError
from icestats.iceberg.metadata import StatisticsFile
from icestats.read.puffin.puffin import read_puffin_footer

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What removing a snapshot's statistics would change. `print(plan.describe())` shows it."""

    before: StatisticsFile
    """The entry of metadata.json as it is; its file stays on storage."""
    after: StatisticsFile | None
    """The entry that would be put back; None for none."""
    blob_count: int | None
    """Blobs in the file that would no longer be found; None where it cannot be read."""
    notes: tuple[str, ...]
    table: Table = field(repr=False, compare=False)

    @property
    def snapshot_id(self) -> int:
        """The snapshot whose statistics are removed."""
        return self.before.snapshot_id

    def describe(self, *, done: bool = False) -> str:
        """Return as plain text what would change, or what has been."""
        take, write, stay = ("took", "wrote", "stays") if done else ("would take", "would write", "would stay")
        size = f"{self.before.file_size_in_bytes:,} bytes"
        blobs = "a file that cannot be read" if self.blob_count is None else counted(self.blob_count, "blob")
        lines = [
            f"table {table_name(self.table)}, snapshot {self.snapshot_id}",
            f"{take} {self.before.statistics_path} out of the table: {size}, {blobs}",
            f"{write} a new metadata.json; changed in it: the statistics of this snapshot",
            f"  before: {entry_text(self.before)}",
            f"  after:  {entry_text(self.after)}",
            f"  {self.before.statistics_path} {stay} on storage as an orphan",
        ]
        return printable_lines([*lines, *self.notes])


def prepare_removal(table: Table, snapshot_id: int, *, restore: bool = False) -> RemovalPlan:
    """Plan the removal of a snapshot's statistics. Nothing is written.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog.
    snapshot_id : int
        Whose statistics to remove.
    restore : bool
        Whether to put back the entry that the last commit has replaced, where the metadata log has it and its file
        still exists; without columns that have been dropped since.

    Returns
    -------
    RemovalPlan
        The entry before and after.

    Raises
    ------
    StatisticsMissingError
        The snapshot has no statistics.
    CommitError, UnsupportedError
        As `commit_removal`.
    """
    fresh = reload_table(table)
    entry = find_statistics(fresh, snapshot_id)
    if entry is None:
        raise StatisticsMissingError(f"{table_name(fresh)} has no statistics for snapshot {snapshot_id}")
    files = TableFiles(fresh.io)
    try:
        blob_count: int | None = len(read_puffin_footer(files, entry.statistics_path).blobs)
    except MetadataError:
        blob_count = None
    after, notes = _find_restorable(fresh, files, entry) if restore else (None, [])
    return RemovalPlan(
        before=entry,
        after=after,
        blob_count=blob_count,
        notes=(*notes, *_effects(fresh, entry, after)),
        table=fresh,
    )


def _find_restorable(table: Table, files: TableFiles, entry: StatisticsFile) -> tuple[StatisticsFile | None, list[str]]:
    try:
        found = find_predecessor(table, entry)
        if found is None:
            return None, ["note: these statistics have replaced none that the metadata log knows"]
        files.size(found.statistics_path)
    except MetadataError as error:
        return None, [f"note: what these statistics have replaced cannot be put back: {error}"]
    known = current_columns(table)
    blobs = tuple(blob for blob in found.blobs if blob.field_ids and set(blob.field_ids) <= known.keys())
    dropped = len(found.blobs) - len(blobs)
    if not dropped:
        return replace(found, blobs=blobs), []
    note = f"note: left out, as Spark would fail: {counted(dropped, 'entry', 'entries')} of columns dropped since"
    return replace(found, blobs=blobs), [note]


def _effects(table: Table, before: StatisticsFile, after: StatisticsFile | None) -> list[str]:
    kept = {blob.field_ids for blob in after.blobs} if after is not None else set()
    columns = current_columns(table)
    lost = [blob.field_ids for blob in before.blobs if blob.field_ids not in kept]
    if not lost:
        return ["effect: no engine loses an NDV"]
    names = ", ".join(columns[ids[0]].name if ids and ids[0] in columns else f"fields {list(ids)}" for ids in lost)
    return [
        f"effect: Spark plans this snapshot without the NDV of {names}",
        "effect: Trino plans it with the nearest ancestor's statistics, if one has any",
    ]


def commit_removal(plan: RemovalPlan) -> None:
    """Carry a removal out, as long as the entry is the one that was planned with.

    Raises
    ------
    CommitError
        The table is read-only or dropped, or others changed these statistics meanwhile: nothing was removed.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    """
    for _ in count_attempts(plan.table):
        fresh = reload_table(plan.table)
        same_schema = fresh.metadata.current_schema_id == plan.table.metadata.current_schema_id
        if find_statistics(fresh, plan.snapshot_id) != plan.before or not (plan.after is None or same_schema):
            raise CommitError(
                f"others changed the statistics of snapshot {plan.snapshot_id}, or the schema, meanwhile: nothing was "
                "removed, try again"
            )
        try:
            if plan.after is None:
                unset_entry(fresh, plan.before)
            else:
                set_entry(fresh, plan.after, plan.before.statistics_path, plan.table.metadata.current_schema_id)
        except CommitFailedException:
            continue
        return
    raise CommitError(f"others kept committing to {table_name(plan.table)}: nothing was removed, try again")
