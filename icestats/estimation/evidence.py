"""What a snapshot offers to estimate from: its statistics as groups, its committed sketches, its row-level deletes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.schemas import PLANNING_STATISTICS
from icestats.errors import MetadataError, PuffinFormatError, StatisticsMissingError
from icestats.estimation.file_deletes import FileDeletes, read_file_deletes
from icestats.estimation.formulas.group_evidence import GroupEvidence, as_floats, build_column_evidence, build_groups
from icestats.estimation.formulas.kept_groups import GroupedEvidence, keep_by_partition
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.sketch_sources import DistinctValues, Distribution
from icestats.estimation.partition_kll import PartitionDistributions
from icestats.estimation.table_deletes import TableDeletes, build_table_deletes
from icestats.iceberg.metadata import Field
from icestats.plan.evaluation.column_metrics import build_metrics
from icestats.plan.evaluation.partition_groups import group_manifests, group_values
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.read.puffin.puffin import read_blob
from icestats.read.puffin.statistics_files import KLL, THETA, NearestBlob, find_nearest, read_kll
from icestats.read.rollups.manifest_statistics_layout import MANIFEST_STATISTICS
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.theta import ThetaSketch


class Evidence:
    """Reads what estimates rest on, each once.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self.reader = reader
        self._distributions: dict[int, Distribution | None] = {}
        self._distinct: dict[int, DistinctValues | None] = {}
        self._thetas: dict[int, ThetaSketch | None] = {}
        self._files: dict[tuple[object, ...], GroupedEvidence] = {}

    def fill(self, field_ids: Sequence[int], *, partitions: bool) -> None:
        """Read now what sources share: the roll-up by manifest, that by partition if asked for, deletes."""
        if partitions:
            self.reader.fill_rollups(None)
        self.reader.read_manifest_rollups(field_ids)
        self.deletes  # noqa: B018 - kept once it is read

    @cached_property
    def deletes(self) -> TableDeletes:
        """The snapshot's row-level deletes."""
        return build_table_deletes(self.reader, self.read_ndv)

    @cached_property
    def _file_deletes(self) -> FileDeletes | None:
        return read_file_deletes(self.reader) if self.deletes.position_record_count else None

    @cached_property
    def partition_distributions(self) -> PartitionDistributions:
        """KLL sketches by partition."""
        return PartitionDistributions(self.reader)

    @cached_property
    def _data_manifests(self) -> pa.Table:
        files = self.reader.manifest_files
        return files.append_column("place", pa.array(np.arange(files.num_rows))).filter(
            pc.equal(files["content"], "data")
        )

    @cached_property
    def manifest_bytes(self) -> int:
        """Bytes that hold the roll-up by manifest: the committed blob's where it is read from there, or manifests'."""
        blobs = self.reader.blobs if self.reader.known_rollups() is None else ()
        committed = next((found.blob.length for found in blobs if found.blob.type == MANIFEST_STATISTICS), None)
        return committed or int(pc.sum(self._data_manifests["manifest_length"]).as_py() or 0)

    @cached_property
    def partition_bytes(self) -> int:
        """Bytes that hold the roll-up by partition: the partition statistics file's, or manifests'."""
        reader = self.reader
        if reader.known_rollups() is None and reader.snapshot is not None:
            for file in reader.source.metadata.partition_statistics:
                if file.snapshot_id == reader.snapshot.snapshot_id:
                    return file.file_size_in_bytes
        return int(pc.sum(self._data_manifests["manifest_length"]).as_py() or 0)

    def read_manifests(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the data manifests with their roll-up."""
        reader, metadata = self.reader, self.reader.source.metadata
        manifests = self._data_manifests
        rollups, columns = reader.read_manifest_rollups(field_ids)
        places = to_numpy(manifests["place"])
        groups = rollups.manifests.take(pa.array(places))
        rows = (places[:, None] * len(columns) + np.arange(len(columns))[None, :]).ravel()
        cells = rollups.manifest_cells
        if len(places) != rollups.manifests.num_rows:
            cells = cells.take(pa.array(rows))
        built = build_groups(
            "manifest",
            groups["record_count"],
            groups["file_size_in_bytes"],
            groups["live_file_count"],
            cells,
            columns,
            field_ids,
        )
        by_spec = group_manifests(manifests, metadata.specs, reader.schema)
        return GroupedEvidence(built, by_spec, self.deletes.over(built.row_counts), self.manifest_bytes)

    def read_partitions(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the partitions with their roll-up."""
        reader = self.reader
        partitions = reader.partition_rollups.partitions
        partitions = partitions.filter(pc.greater(partitions["data_file_count"], 0))
        built = build_groups(
            "partition",
            partitions["data_record_count"],
            partitions["total_data_file_size_in_bytes"],
            partitions["data_file_count"],
            self._partition_cells(),
            reader.schema.columns,
            field_ids,
        )
        by_spec = group_values(
            combine_chunks(partitions["partition"]),
            to_numpy(partitions["spec_id"]),
            reader.source.metadata,
            reader.schema,
        )
        return GroupedEvidence(built, by_spec, self.deletes.of_partitions(partitions), self.partition_bytes)

    def _partition_cells(self) -> pa.Table:
        rollups, width = self.reader.partition_rollups, len(self.reader.schema.columns)
        has_data = to_numpy(pc.greater(rollups.partitions["data_file_count"], 0))
        if has_data.all():
            return rollups.partition_cells
        return rollups.partition_cells.filter(pa.array(np.repeat(has_data, width)))

    def read_table(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the table as one group."""
        rollups, columns = self.reader.read_manifest_rollups(field_ids)
        manifests = rollups.manifests.take(self._data_manifests["place"])
        rows, sizes, files = (
            pa.array([pc.sum(manifests[name]).as_py() or 0], pa.int64())
            for name in ("record_count", "file_size_in_bytes", "live_file_count")
        )
        built = build_groups("table", rows, sizes, files, rollups.table_cells, columns, field_ids)
        return GroupedEvidence(built, [], self.deletes.over(built.row_counts), self.manifest_bytes)

    def read_files(self, question: Question) -> GroupedEvidence:
        """Return the data files, with their statistics, of the manifests that partition summaries leave."""
        kept = keep_by_partition(question, self.read_manifests(()))
        key = (tuple(kept.places.tolist()), tuple(sorted(question.field_ids)), question.columns is None)
        if key not in self._files:
            manifests = self._data_manifests.drop_columns("place").take(pa.array(kept.places))
            self._files[key] = self._read_files(manifests, question.field_ids, whole=question.columns is None)
        return self._files[key]

    def _read_files(self, manifests: pa.Table, field_ids: Sequence[int], *, whole: bool) -> GroupedEvidence:
        reader, metadata = self.reader, self.reader.source.metadata
        fields = [field for field_id in field_ids if (field := reader.schema.get(field_id)) and field.is_primitive]
        deletes = self._file_deletes
        if whole:
            # Faster, and without the sizes of columns.
            wanted = [field.field_id for field in fields]
            to_read = manifests_to_read(manifests)
            files = read_file_metrics(to_read, metadata, reader.source.storage, wanted, with_paths=deletes is not None)
        else:
            files = reader.read_files(field_ids, manifests)
        rows = as_floats(files["record_count"])
        columns = {}
        for field in fields:
            known = {name: _of_column(files, name, field.field_id) for name in (*PLANNING_STATISTICS, "column_size")}
            metrics = build_metrics(field, to_numpy(files["record_count"]), known)
            columns[field.field_id] = build_column_evidence(metrics, rows, known["column_size"])
        by_spec = group_values(combine_chunks(files["partition"]), to_numpy(files["spec_id"]), metadata, reader.schema)
        groups = GroupEvidence("data file", rows, as_floats(files["file_size_in_bytes"]), columns)
        read = int(pc.sum(manifests["manifest_length"]).as_py() or 0) + (0 if deletes is None else deletes.bytes_read)
        return GroupedEvidence(groups, by_spec, self.deletes.of_files(files, deletes), read)

    def read_distribution(self, field: Field) -> Distribution | None:
        """Return a column's nearest committed KLL sketch."""
        if field.field_id not in self._distributions:
            self._distributions[field.field_id] = self._read_distribution(field)
        return self._distributions[field.field_id]

    def _read_distribution(self, field: Field) -> Distribution | None:
        found = self._find_nearest(KLL, field)
        if found is None:
            return None
        kll = read_kll(self.reader.source.storage, self.reader.blobs, field)
        nulls, nans = kll.null_count, kll.nan_count if field.has_nan else 0
        if nulls is None or nans is None:
            return Distribution(kll.sketch, None, None, found.blob.length)
        rows = max(kll.sketch.n + nulls + nans, 1)
        return Distribution(kll.sketch, nulls / rows, nans / rows, found.blob.length)

    def _find_nearest(self, blob_type: str, field: Field) -> NearestBlob | None:
        try:
            return find_nearest(self.reader.blobs, blob_type, field)
        except StatisticsMissingError:
            return None

    def read_theta(self, field: Field) -> ThetaSketch | None:
        """Return a column's nearest committed Theta sketch."""
        if field.field_id not in self._thetas:
            self._thetas[field.field_id] = self._read_theta(field)
        return self._thetas[field.field_id]

    def _read_theta(self, field: Field) -> ThetaSketch | None:
        found = self._find_nearest(THETA, field)
        if found is None:
            return None
        try:
            return ThetaSketch.from_bytes(read_blob(self.reader.source.storage, found.blob, found.statistics_path))
        except ValueError as error:
            message = f"the Theta sketch of column {field.name!r}: {error}"
            raise PuffinFormatError(message, found.statistics_path, found.blob.offset) from error

    def read_distinct(self, field: Field) -> DistinctValues | None:
        """Return how many distinct values a column has, from its nearest committed Theta sketch."""
        if field.field_id not in self._distinct:
            found = self._find_nearest(THETA, field)
            theta = self.read_theta(field)
            self._distinct[field.field_id] = (
                None
                if theta is None or found is None
                else DistinctValues(theta.estimate(), *theta.bounds(2), found.blob.length)
            )
        return self._distinct[field.field_id]

    def read_ndv(self, field_id: int) -> float | None:
        """Return the number of distinct values of a column; None: unknown, or its statistics file is damaged."""
        field = self.reader.schema.get(field_id)
        try:
            found = None if field is None else self.read_distinct(field)
        except MetadataError:
            return None
        return None if found is None else found.ndv


def _of_column(files: pa.Table, statistic: str, field_id: int) -> pa.Array:
    flat = f"{statistic}_{field_id}"
    if flat in files.column_names:
        return combine_chunks(files[flat])
    if f"{statistic}s" not in files.column_names:
        return pa.nulls(files.num_rows, pa.int64())
    return pc.map_lookup(combine_chunks(files[f"{statistic}s"]), pa.scalar(field_id, pa.int32()), "last")
