"""What Spark reads of committed statistics, and where that makes it fail.

Spark takes the NDV of the blobs that metadata.json lists for exactly the snapshot that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from icestats.answers.findings import Finding
from icestats.iceberg.metadata import BlobMetadata, Snapshot, TableMetadata

LISTED_TYPE = "apache-datasketches-theta-v1"


def find_listed_blobs(metadata: TableMetadata, snapshot: Snapshot | None) -> list[BlobMetadata]:
    """Return the blobs that Spark's cost-based optimizer reads for a snapshot."""
    if snapshot is None:
        return []
    files = [file for file in metadata.statistics if file.snapshot_id == snapshot.snapshot_id]
    return [blob for file in files for blob in file.blobs if blob.type == LISTED_TYPE]


def find_listed_traps(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Finding]:
    """Find listed statistics that make queries fail in Spark.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot that is read.
    """
    broken = [blob for blob in find_listed_blobs(metadata, snapshot) if _is_broken(blob, metadata)]
    if broken:
        ids = ", ".join(str(field_id) for blob in broken for field_id in blob.field_ids) or "none"
        yield Finding(
            "error",
            "with spark.sql.cbo.enabled, joins of this table fail in Spark with an internal error: for this snapshot "
            "statistics of columns are listed that the schema does not have",
            f"{len(broken):,} listed blobs, of field ids {ids}",
            "set spark.sql.iceberg.report-column-stats=false",
        )


def _is_broken(blob: BlobMetadata, metadata: TableMetadata) -> bool:
    return not blob.field_ids or any(metadata.schema.get(field_id) is None for field_id in blob.field_ids)
