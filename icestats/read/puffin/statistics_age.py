"""How old a table's statistics are, who made them, and what Trino may have made of them.

Source: Iceberg spec, "Snapshots" (optional summary fields).
"""

from __future__ import annotations

from dataclasses import dataclass

from icestats.iceberg.metadata import Snapshot, TableMetadata
from icestats.iceberg.summary import parse_count

THETA = "apache-datasketches-theta-v1"
"""The only type of blob that every reader of metadata.json accepts there."""

MERGED = (
    "Trino has, or may have, merged with an earlier one: values that others have added in between may be missing, "
    "those of rows that were removed still count, and uuids, values of a column that was widened and those that Presto "
    "has hashed may count twice"
)
"""What `may_be_merged` says of a sketch."""
CREATED_BY = "icestats.created-by"
"""Property of a sketch that a commit has carried over from a file of Trino's or Presto's: its name."""
PRESTO = ("presto-", "Presto")
"""How what Presto writes of itself begins, and that mark."""
TRINO = "Trino"
"""The same of Trino's."""
HASHED_ALIKE = frozenset({"long", "double", "string"})
"""Types whose values Presto hashes in the form of Iceberg's specification: seen with 0.287."""


@dataclass(frozen=True, slots=True)
class StatisticsAge:
    """What was committed after the snapshot that statistics were made for, up to the loaded snapshot."""

    commits: int
    files: int | None
    """Data files that commits other than `replace` have added; None where a summary does not say."""
    rows: int | None
    """Records in these files; None likewise."""
    appends_only: bool
    """Whether all of these commits are `append`, or `replace` of manifests: then a refresh needs no full scan."""


def count_ages(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, StatisticsAge]:
    """Count what was committed after each ancestor of a snapshot.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot that ages are counted from.

    Returns
    -------
    dict of int to StatisticsAge
        By snapshot id, from `snapshot` backwards to the oldest ancestor that has not been expired.

    Notes
    -----
    A `replace` rewrites files without changing rows, so the files it adds are not counted. Rows are those of added
    files, including rows that were deleted later.

    Examples
    --------
    >>> import icestats
    >>> table = icestats.load("demo.events")
    >>> count_ages(table.metadata, table.snapshot)[table.snapshot.snapshot_id]
    StatisticsAge(commits=0, files=0, rows=0, appends_only=True)
    """
    if snapshot is None:
        return {}
    ages: dict[int, StatisticsAge] = {}
    files: int | None = 0
    rows: int | None = 0
    appends_only = True
    for commits, ancestor in enumerate(metadata.ancestors(snapshot)):
        ages[ancestor.snapshot_id] = StatisticsAge(commits, files, rows, appends_only)
        if ancestor.operation != "replace":
            files = _sum(files, _added(ancestor, "data-files"))
            rows = _sum(rows, _added(ancestor, "records"))
            appends_only = appends_only and ancestor.operation == "append"
        elif parse_count(ancestor.summary.get("deleted-data-files")):
            appends_only = False
    return ages


def may_be_merged(made_by: str, snapshot: Snapshot | None) -> bool:
    """Whether Trino has, or may have, merged a sketch with an earlier one.

    Parameters
    ----------
    made_by : str
        What the sketch's file, or the one that it was carried over from, says of its writer.
    snapshot : Snapshot or None
        The snapshot that the sketch was made for; None: it has expired.

    Notes
    -----
    An INSERT merges with what the nearest ancestor has then, whatever has happened since: what others have written in
    between is not in the sketch, what has been removed is. Of a uuid Trino hashes the 16 bytes, Iceberg's Spark
    procedure the text; of a long 8 bytes, where it has hashed 4 as long as the column was int. ANALYZE reads all rows,
    but copies the sketches of columns that it was not asked for, of the same snapshot too, and nothing tells which
    these are. Nor is it known which rows are a table's first: PyIceberg's expiry leaves a snapshot as if it had no
    parent. Source: Trino 476 `TableStatisticsWriter`, `mergeStatisticsIfNecessary` and `copyRetainedStatistics`.
    """
    if not made_by.startswith(TRINO):
        return False
    return snapshot is None or ("trino_query_id" in snapshot.summary and snapshot.operation == "append")


def _added(snapshot: Snapshot, what: str) -> int | None:
    # Writers leave out counts that are 0; a summary without a total says nothing.
    return parse_count(snapshot.summary.get(f"added-{what}", "0" if f"total-{what}" in snapshot.summary else None))


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
