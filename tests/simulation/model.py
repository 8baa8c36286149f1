"""What the table must hold: the rows of every snapshot as its writers meant them, and all versions of the metadata."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.table.update import AddSnapshotUpdate

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

Row = tuple[int, str, float | None]
"""`id`, `part`, `v`."""
Rows = tuple[Row, ...]


@dataclass(frozen=True)
class Change:
    """What an operation means to do to the rows."""

    added: Rows = ()
    removes: Callable[[Row], bool] = lambda row: False

    def apply(self, rows: Rows, operation: str) -> Rows:
        """Return the rows of a snapshot of this change: PyIceberg makes some that remove and one that adds."""
        if operation == "append":
            return tuple(sorted((*rows, *self.added), key=str))
        return tuple(row for row in rows if not self.removes(row))


@dataclass(frozen=True)
class Version:
    """A version of the metadata, and since when it is the table's."""

    location: str
    metadata: TableMetadata
    since_ms: int

    def referred(self) -> set[str]:
        """Return the names of the statistics files that it refers to."""
        entries = (*self.metadata.statistics, *self.metadata.partition_statistics)
        return {posixpath.basename(entry.statistics_path) for entry in entries}


@dataclass
class Model:
    """The truth, as the calls that arrived at the catalog made it."""

    versions: list[Version] = field(default_factory=list)
    rows: dict[int, Rows] = field(default_factory=dict)
    sequence_numbers: dict[int, int] = field(default_factory=dict)

    @property
    def current(self) -> Version:
        """The table as it is."""
        return self.versions[-1]

    def add(self, version: Version, updates: Iterable[Any], change: Change, read: Callable[[int], Rows]) -> list[int]:
        """Take in a commit; return its snapshots.

        PyIceberg first drops whole files, then writes others anew without some of their rows. Which rows the snapshot
        in between has only its files say (`read`).
        """
        made = [update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate)]
        operations = [snapshot.summary.operation.value for snapshot in made]
        for snapshot, operation, following in zip(made, operations, [*operations[1:], "append"], strict=False):
            before = self.rows[snapshot.parent_snapshot_id] if snapshot.parent_snapshot_id is not None else ()
            after = change.apply(before, operation)
            if following != "append":
                after = tuple(row for row in before if row in after or row in read(snapshot.snapshot_id))
            self.rows[snapshot.snapshot_id] = after
            self.sequence_numbers[snapshot.snapshot_id] = snapshot.sequence_number
        self.versions.append(version)
        return [snapshot.snapshot_id for snapshot in made]

    def distinct(self, snapshot_id: int, field_id: int) -> int:
        """Return how many distinct values a column has."""
        return len({row[field_id - 1] for row in self.rows[snapshot_id]} - {None})
