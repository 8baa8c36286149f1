"""What a commit of statistics, or its removal, has changed or would change: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icestats.iceberg.metadata import StatisticsFile, TableMetadata
from icestats.table.metadata_statistics import PartitionFile

if TYPE_CHECKING:
    from icestats.commit.partition_statistics_commit import PartitionCommit
    from icestats.commit.statistics_plan import CommitPlan
    from icestats.read.puffin.puffin import PuffinBlob


@dataclass(frozen=True)
class CommitReport:
    """What a commit has changed, or would change."""

    committed: bool
    files: tuple[dict[str, Any], ...]
    """Each file with its path, its length in bytes and its blobs."""
    kept_blobs: tuple[dict[str, Any], ...]
    """Blobs of the earlier file that are carried over."""
    replaced: tuple[dict[str, Any], ...]
    """Blobs and partition statistics files that new ones replace."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Return the report as the command line prints it."""
        return {
            "files": list(self.files),
            "committed": self.committed,
            "kept_blobs": list(self.kept_blobs),
            "replaced": list(self.replaced),
        }


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """What `Table.remove_statistics` has done, or would do."""

    removed: bool
    """False for a dry run."""
    snapshot_id: int
    statistics_path: str
    """The file that the table no longer refers to; it stays on storage."""
    restored_path: str | None
    """The file of the entry that was put back; None for none."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Return the report as the command line prints it."""
        return {
            "removed": self.removed,
            "snapshot_id": str(self.snapshot_id),
            "path": self.statistics_path,
            "restored_path": self.restored_path,
        }


def find_hidden_ndv(metadata: TableMetadata, after: StatisticsFile) -> str | None:
    """Say which NDVs a file that lists none hides from engines that look at the nearest file only; None for none.

    Trino and StarRocks take all NDVs from the first file that they find, from the snapshot back over its ancestors.
    """
    snapshot = metadata.snapshots.get(after.snapshot_id)
    if after.blobs or snapshot is None:
        return None
    listed = {file.snapshot_id for file in metadata.statistics if file.blobs}
    older = next((a.snapshot_id for a in metadata.ancestors(snapshot) if a.snapshot_id in listed), None)
    if older is None or older == after.snapshot_id:
        return None
    return (
        f"warning: Trino reads the nearest statistics file only: this one, which lists no NDV, hides those of snapshot "
        f"{older}; refresh the sketches too where Trino needs them"
    )


def build_report(plan: CommitPlan, warning: str | None = None) -> CommitReport:
    """Build the report of a Puffin file: of a plan, or of what has been committed."""
    blobs = plan.blobs
    file = {
        "path": plan.statistics_path,
        "bytes": len(plan.puffin.data),
        "blobs": [_blob_document(b.blob, b.columns, listed=b.listed) for b in blobs],
    }
    return CommitReport(
        committed=plan.attempts > 0,
        files=(file,),
        kept_blobs=tuple(_blob_document(b.blob, b.columns, listed=b.listed) for b in blobs if b.kept),
        replaced=tuple(_blob_document(blob) for blob in plan.replaced),
        text=plan.describe() if warning is None else f"{plan.describe()}\n{warning}",
    )


def build_partition_report(file: PartitionFile, commit: PartitionCommit, *, committed: bool) -> CommitReport:
    """Build the report of a partition statistics file: of what would be committed, or has been."""
    path, before = commit.file.statistics_path, commit.replaced
    lines = [f"{'committed' if committed else 'would write'} {path}: {file.describe()}"]
    if not committed:
        lines.append("metadata.json, partition-statistics of this snapshot")
        lines += [f"  before: {before or 'none'}", f"  after:  {path}, {len(file.data):,} bytes"]
    if before is not None:
        lines.append(f"  {before} {'stays' if committed else 'would stay'} on storage as an orphan")
    document = {
        "path": path,
        "bytes": len(file.data),
        "blobs": [],
        "type": "partition-statistics",
        "snapshot_id": str(file.snapshot_id),
        "partition_count": file.row_count,
        "columns": list(file.columns),
    }
    replaced = () if before is None else ({"type": "partition-statistics", "path": before},)
    return CommitReport(committed, (document,), (), replaced, "\n".join(lines))


def join_reports(reports: Sequence[CommitReport]) -> CommitReport:
    """Join the reports of all files of a commit."""
    return CommitReport(
        committed=all(report.committed for report in reports),
        files=tuple(file for report in reports for file in report.files),
        kept_blobs=tuple(blob for report in reports for blob in report.kept_blobs),
        replaced=tuple(blob for report in reports for blob in report.replaced),
        text="\n".join(report.text for report in reports),
    )


def _blob_document(
    blob: PuffinBlob, columns: Sequence[str] | None = None, *, listed: bool | None = None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": blob.type,
        "field_ids": list(blob.field_ids),
        "snapshot_id": str(blob.snapshot_id),
        "length": blob.length,
        "properties": dict(blob.properties),
    }
    if columns is not None:
        document["columns"] = list(columns)
    if listed is not None:
        document["listed"] = listed
    return document
