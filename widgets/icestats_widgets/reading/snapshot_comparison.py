"""What changed between two snapshots of a table: rows, files, bytes, and the partitions touched, from manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icestats.answers.arrays import to_rows, without_times
from icestats.iceberg.metadata import Snapshot
from icestats.table.table import Table
from icestats_widgets.reading.partition_names import PartitionNames
from icestats_widgets.reading.selected_part import drop_statistics

COUNTS = {
    "rows": "data_record_count",
    "files": "data_file_count",
    "bytes": "total_data_file_size_in_bytes",
    "position deletes": "position_delete_record_count",
    "equality deletes": "equality_delete_record_count",
}
"""What is compared, and the column of `Table.partitions` that has it."""
_Counts = tuple[int, ...]
_NONE: _Counts = (0,) * len(COUNTS)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A partition that is not as it was."""

    partition: str
    before: _Counts
    """In the order of `COUNTS`; 0 where the partition was not there."""
    after: _Counts


@dataclass(frozen=True, slots=True)
class SnapshotComparison:
    """What changed from an earlier snapshot to a later one."""

    older: Snapshot
    newer: Snapshot
    commit_count: int | None
    """Commits from the one to the other; None where the one is no ancestor of the other, or commits have expired."""
    before: _Counts
    """Of the whole table, in the order of `COUNTS`."""
    after: _Counts
    partition_count: int
    """Partitions of either."""
    touched: tuple[PartitionChange, ...]
    """The largest change of rows, then of bytes, first. A partition whose files were rewritten without changing any
    count is one of them."""


def read_comparison(table: Table, older_id: int, newer_id: int) -> SnapshotComparison:
    """Compare two snapshots by the manifests of both.

    Parameters
    ----------
    table : Table
        The table.
    older_id, newer_id : int
        Two snapshots that have not expired.

    Examples
    --------
    >>> import icestats
    >>> table = icestats.load("demo.events")
    >>> found = read_comparison(table, table.snapshot.parent_snapshot_id, table.snapshot.snapshot_id)
    >>> found.newer.operation, found.commit_count, len(found.touched)
    ('delete', 1, 3)
    """
    metadata = table.metadata
    older, newer = metadata.snapshots[older_id], metadata.snapshots[newer_id]
    ancestors = [one.snapshot_id for one in metadata.ancestors(newer)]
    before, after = _read_partitions(table, older_id), _read_partitions(table, newer_id)
    pairs = [(before.get(key, _ABSENT), after.get(key, _ABSENT)) for key in {**before, **after}]
    touched = [
        PartitionChange(late[0] or early[0], early[1], late[1]) for early, late in pairs if early[1:] != late[1:]
    ]
    touched.sort(key=_rank)
    return SnapshotComparison(
        older,
        newer,
        ancestors.index(older_id) if older_id in ancestors else None,
        _sum(before),
        _sum(after),
        len({**before, **after}),
        tuple(touched),
    )


def _rank(change: PartitionChange) -> tuple[int, int, str]:
    rows, _, size, *_ = (after - before for before, after in zip(change.before, change.after, strict=True))
    return -abs(rows), -abs(size), change.partition


_State = tuple[str, _Counts, int | None]
"""A partition's text, its counts, and the snapshot that changed it last."""


def _read_partitions(table: Table, snapshot_id: int) -> dict[tuple[int, str], _State]:
    at = Table(table._source, snapshot_id)
    names = PartitionNames(table.metadata, at.schema)
    partitions = drop_statistics(at.partitions())
    values = partitions["partition"]
    # A time beyond Python's years, in one of the snapshots alone, must not make other values of all.
    keys = map(repr, values.cast(without_times(values.type)).to_pylist())
    found = {}
    for key, row in zip(keys, to_rows(partitions), strict=True):
        text = names.text(row["partition"], row["spec_id"]) or "the whole table"
        counts = tuple(row[name] for name in COUNTS.values())
        found[row["spec_id"], key] = (text, counts, row["last_updated_snapshot_id"])
    return found


_ABSENT: _State = ("", _NONE, None)


def _sum(partitions: Mapping[tuple[int, str], _State]) -> _Counts:
    return tuple(sum(counts) for counts in zip(*(state[1] for state in partitions.values()), strict=True)) or _NONE


def age_of(snapshot: Snapshot) -> tuple[int, int]:
    """Return what snapshots are sorted by, the oldest first."""
    return snapshot.sequence_number, snapshot.timestamp_ms


def open_snapshot(table: Table, snapshot_id: int) -> Table:
    """Return the table as of a snapshot; without a pin if it is the current one."""
    current = table.metadata.find_snapshot(None, None)
    is_current = current is not None and current.snapshot_id == snapshot_id
    return Table(table._source) if is_current else Table(table._source, snapshot_id)
