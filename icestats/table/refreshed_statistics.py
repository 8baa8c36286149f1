"""Statistics that were made from committed ones and the files that came since, with what was read for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icestats.answers.text import counted
from icestats.errors import StatisticsMissingError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Schema, Snapshot
from icestats.read.puffin.committed_columns import find_sketched_fields
from icestats.read.puffin.statistics_age import THETA
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.stats.table_statistics import TableStatistics
from icestats.table.commit_report import CommitReport
from icestats.table.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RefreshedStatistics(Statistics):
    """Theta, KLL and column statistics of one snapshot, as `Statistics`; and how they came about."""

    def __init__(
        self,
        source: Source,
        found: TableStatistics,
        *,
        added_to: Mapping[str, int],
        scanned: Mapping[str, str],
        added_file_count: int,
        added_row_count: int,
        unlisted: Collection[str] = (),
    ) -> None:
        super().__init__(source, found)
        self.unlisted = tuple(unlisted)
        """Columns of `added_to` whose NDV metadata.json did not list: `commit` leaves them out, unless told."""
        self.added_to = dict(added_to)
        """Columns whose committed statistics were added to, by name: the snapshot that these are of."""
        self.scanned = dict(scanned)
        """Columns that were read in all live files, by name: why."""
        self.added_file_count = added_file_count
        """Data files that came since, which were read for `added_to`."""
        self.added_row_count = added_row_count

    def commit(
        self,
        *,
        dry_run: bool = False,
        list_ndv: Collection[str] | None = None,
        on_step: Callable[[str], None] | None = None,
    ) -> CommitReport:
        """Write the statistics and register them, as `Statistics.commit`; by default the same columns stay listed."""
        if list_ndv is None and self.unlisted:
            list_ndv = [name for name in self.found.columns if name not in self.unlisted]
        return super().commit(dry_run=dry_run, list_ndv=list_ndv, on_step=on_step)

    def to_json(self) -> dict[str, Any]:
        """Return what was read, as the command line prints it."""
        return {
            "snapshot_id": str(self.found.snapshot_id),
            "added_to": {name: str(snapshot_id) for name, snapshot_id in self.added_to.items()},
            "scanned": self.scanned,
            "added_file_count": self.added_file_count,
            "added_row_count": self.added_row_count,
        }

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        by_snapshot: defaultdict[int, list[str]] = defaultdict(list)
        for name, snapshot_id in self.added_to.items():
            by_snapshot[snapshot_id].append(name)
        for snapshot_id, names in by_snapshot.items():
            lines.append(f"  added to the statistics of snapshot {snapshot_id}: {', '.join(names)}")
        if self.added_to:
            lines.append(
                f"  {counted(self.added_file_count, 'file')} with {counted(self.added_row_count, 'row')} "
                "came since and were read"
            )
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self.scanned.items():
            by_reason[reason].append(name)
        lines += [f"  scanned in full, as {reason}: {', '.join(names)}" for reason, names in by_reason.items()]
        return "\n".join(lines)


def refresh_statistics(
    source: Source,
    snapshot: Snapshot | None,
    schema: Schema,
    blobs: Sequence[CommittedBlob],
    *,
    columns: Sequence[str] | None,
    spark: SparkSession | None,
    progress: Callable[[int, int], None] | None,
) -> RefreshedStatistics:
    """Bring statistics up to a snapshot; see `Table.refresh_statistics`."""
    if snapshot is None:
        raise StatisticsMissingError(f"{source.name} has no snapshot yet: write to it before computing statistics")
    from icestats.scan.scan_plan import select_columns
    from icestats.spark.statistics_refresh import refresh_table_statistics

    fields = schema.top_level
    select_columns(fields, columns)
    asked = find_sketched_fields(blobs, fields) if columns is None else [f for f in fields if f.name in columns]
    if not asked:
        raise StatisticsMissingError(
            f"{source.name} has no committed statistics for snapshot {snapshot.snapshot_id} or an ancestor of it: "
            "run table.compute().commit(), or `icestats compute --commit`, once"
        )
    found, refreshed = refresh_table_statistics(spark, source, snapshot, schema, blobs, asked, progress=progress)
    return RefreshedStatistics(
        source,
        found,
        added_to=refreshed.added_to,
        scanned=refreshed.scanned,
        added_file_count=refreshed.added_file_count,
        added_row_count=refreshed.added_row_count,
        unlisted=_find_unlisted(found, refreshed.added_to, blobs),
    )


def _find_unlisted(found: TableStatistics, added_to: Mapping[str, int], blobs: Sequence[CommittedBlob]) -> list[str]:
    listed = {(b.blob.field_ids, b.blob.snapshot_id) for b in blobs if b.listed and b.blob.type == THETA}
    return [name for name, base_id in added_to.items() if ((found.columns[name].field_id,), base_id) not in listed]
