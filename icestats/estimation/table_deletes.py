"""Row-level deletes, as the share of rows that they take away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.estimation.file_deletes import FileDeletes
from icestats.estimation.formulas.group_evidence import as_floats
from icestats.estimation.formulas.source_estimates import DeleteShares
from icestats.snapshot.snapshot_reader import SnapshotReader

Floats = npt.NDArray[np.float64]
ReadNdv = Callable[[int], float | None]
"""Gives the number of distinct values of a column, by field id; None: unknown."""
_PROPORTION = "position deletes and deletion vectors deducted in proportion to the rows"
_PROPORTION_OF_PARTITIONS = f"{_PROPORTION} of each partition"


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
        return DeleteShares(positions, equality, self.equality_assumes, _PROPORTION, float(self.position_record_count))

    def of_partitions(self, partitions: pa.Table) -> DeleteShares:
        """Give each partition (`schemas.partition_groups_schema`) the share that its own deletes take away."""
        rows = np.maximum(as_floats(partitions["data_record_count"]), 1.0)
        positions = np.minimum(as_floats(partitions["position_delete_record_count"]) / rows, 1.0)
        per_record = self.equality_row_count / max(self.equality_record_count, 1)
        equality = as_floats(partitions["equality_delete_record_count"]) * per_record / rows
        if not self.equality_is_by_partition:
            equality = np.full(len(rows), self.equality_row_count / max(self.record_count, 1))
        most = float(self.position_record_count)
        return DeleteShares(
            positions, np.minimum(equality, 1.0), self.equality_assumes, _PROPORTION_OF_PARTITIONS, most
        )

    def of_files(self, files: pa.Table, deletes: FileDeletes | None) -> DeleteShares:
        """Deduct from each data file what names it, and spread the rest evenly.

        Parameters
        ----------
        files : pyarrow.Table
            One row a data file: `file_path`, `sequence_number`, `record_count`; the last alone without `deletes`.
        deletes : FileDeletes or None
            The position deletes and deletion vectors; None: there are none.
        """
        counts = as_floats(files["record_count"])
        evenly = self.over(counts)
        if deletes is None:
            return evenly
        own, rows = deletes.count_rows(files), np.maximum(counts, 1.0)
        rest = min(1.0, deletes.unnamed_record_count / max(self.record_count, 1))
        return replace(
            evenly,
            positions=1.0 - (1.0 - own.most / rows) * (1.0 - rest),
            positions_assumes=deletes.assumes,
            most_positions=float(deletes.unnamed_record_count),
            most_own=own.most,
            least_own=own.least,
        )


def build_table_deletes(reader: SnapshotReader, read_ndv: ReadNdv) -> TableDeletes:
    """Build a snapshot's deletes from its roll-up by manifest; only manifests with equality deletes are read."""
    groups = reader.read_manifest_rollups(())[0].manifests
    is_data = pc.equal(reader.manifest_files["content"], "data")
    data, deletes = groups.filter(is_data), groups.filter(pc.invert(is_data))
    records, removed, assumes, by_partition = _total(data, "record_count"), 0.0, "", True
    positions, equality = _total(deletes, "record_count"), 0
    has_equality = pc.greater(groups["equality_delete_file_count"], 0)
    if pc.any(has_equality).as_py():
        files = reader.read_files((), reader.manifest_files.filter(has_equality))
        by_equality = files.filter(pc.equal(files["content"], "equality_deletes"))
        equality = _total(by_equality, "record_count")
        positions -= equality
        removed, assumes = _estimate_equality(by_equality, read_ndv, records)
        specs = reader.source.metadata.specs
        by_partition = all(specs[spec_id].fields for spec_id in pc.unique(by_equality["spec_id"]).to_pylist())
    return TableDeletes(
        position_record_count=positions,
        equality_record_count=equality,
        record_count=records,
        equality_row_count=removed,
        equality_assumes=assumes,
        equality_is_by_partition=by_partition,
    )


def _total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def _estimate_equality(files: pa.Table, read_ndv: ReadNdv, record_count: int) -> tuple[float, str]:
    """Each record of an equality delete is a filter `key = value`: rows a key, as the NDV has it, else one row."""
    removed, unknown = 0.0, False
    for row in files.select(["record_count", "equality_ids"]).to_pylist():
        ndvs = [read_ndv(field_id) for field_id in row["equality_ids"] or ()]
        known = [ndv for ndv in ndvs if ndv is not None]
        is_known = bool(known) and len(known) == len(ndvs)
        unknown = unknown or not is_known
        # Keys of several columns are at least as many as the values of each.
        rows_a_key = record_count / max(*known, 1.0) if is_known else 1.0
        removed += row["record_count"] * max(rows_a_key, 1.0)
    assumes = "equality deletes are filters, each key with as many rows as another"
    if unknown:
        assumes = "each record of an equality delete removes one row (no NDV of its key is committed)"
    return min(removed, float(record_count)), assumes
