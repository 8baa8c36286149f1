"""Row-level deletes, as the share of rows that they take away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.plan.group_evidence import as_floats
from icestats.plan.source_estimates import DeleteShares
from icestats.snapshot_reader import SnapshotReader

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TableDeletes:
    """The row-level deletes of a snapshot."""

    position_record_count: int
    """Records of position deletes and deletion vectors."""
    equality_record_count: int
    record_count: int
    """Records of live data files."""
    equality_row_count: float
    """Rows that the equality deletes are estimated to take away."""
    equality_assumes: str
    equality_is_by_partition: bool
    """Whether each partition's equality deletes are its own; else some are for all partitions."""

    def over(self, row_counts: Floats) -> DeleteShares:
        """Spread all deletes evenly over groups."""
        rows = max(self.record_count, 1)
        positions = np.full(len(row_counts), min(1.0, self.position_record_count / rows))
        equality = np.full(len(row_counts), min(1.0, self.equality_row_count / rows))
        return DeleteShares(positions, equality, self.equality_assumes, float(self.position_record_count))

    def of_partitions(self, partitions: pa.Table) -> DeleteShares:
        """Give each partition (`schemas.partition_groups_schema`) the share that its own deletes take away."""
        rows = np.maximum(as_floats(partitions["data_record_count"]), 1.0)
        positions = np.minimum(as_floats(partitions["position_delete_record_count"]) / rows, 1.0)
        per_record = self.equality_row_count / max(self.equality_record_count, 1)
        equality = as_floats(partitions["equality_delete_record_count"]) * per_record / rows
        if not self.equality_is_by_partition:
            equality = np.full(len(rows), self.equality_row_count / max(self.record_count, 1))
        return DeleteShares(
            positions, np.minimum(equality, 1.0), self.equality_assumes, float(self.position_record_count)
        )

    def of_files(self, files: pa.Table) -> DeleteShares:
        """Spread all deletes evenly over data files (`schemas.files_schema`)."""
        return self.over(as_floats(files["record_count"]))


def build_table_deletes(reader: SnapshotReader, read_ndv: Callable[[int], float | None]) -> TableDeletes:
    """Build a snapshot's deletes from its roll-ups; manifests of deletes are read for equality deletes only."""
    partitions = reader.rollups.partitions
    counts = {
        name: int(pc.sum(partitions[f"{name}_record_count"]).as_py() or 0)
        for name in ("data", "position_delete", "equality_delete")
    }
    removed, assumes, by_partition = 0.0, "", True
    if counts["equality_delete"]:
        removed, assumes, by_partition = _estimate_equality(reader, read_ndv, counts["data"])
    return TableDeletes(
        position_record_count=counts["position_delete"],
        equality_record_count=counts["equality_delete"],
        record_count=counts["data"],
        equality_row_count=removed,
        equality_assumes=assumes,
        equality_is_by_partition=by_partition,
    )


def _estimate_equality(
    reader: SnapshotReader, read_ndv: Callable[[int], float | None], record_count: int
) -> tuple[float, str, bool]:
    """Each record of an equality delete is a filter `key = value`: rows a key, as the NDV has it, else one row."""
    manifests = reader.manifest_files
    files = reader.read_files((), manifests.filter(pc.equal(manifests["content"], "deletes")))
    files = files.filter(pc.equal(files["content"], "equality_deletes"))
    removed, unknown = 0.0, False
    for row in files.select(["record_count", "equality_ids"]).to_pylist():
        ndvs = [read_ndv(field_id) for field_id in row["equality_ids"] or ()]
        known = [ndv for ndv in ndvs if ndv is not None]
        unknown = unknown or len(known) < len(ndvs) or not ndvs
        # Keys of several columns are at least as many as the values of each.
        rows_a_key = record_count / max(*known, 1.0) if known and len(known) == len(ndvs) else 1.0
        removed += row["record_count"] * max(rows_a_key, 1.0)
    specs = reader.source.metadata.specs
    everywhere = any(not specs[spec_id].fields for spec_id in pc.unique(files["spec_id"]).to_pylist())
    assumes = "equality deletes are filters, each key with as many rows as another"
    if unknown:
        assumes = "each record of an equality delete removes one row (no NDV of its key is committed)"
    return min(removed, float(record_count)), assumes, not everywhere
