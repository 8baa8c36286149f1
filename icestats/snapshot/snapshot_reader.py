"""One snapshot as it is read: manifest list, roll-ups and their tables, committed statistics, each once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.findings import Finding
from icestats.answers.schemas import MANIFESTS, partitions_schema
from icestats.answers.text import counted
from icestats.errors import CallError, FilterError, IcestatsError, MetadataError, StatisticsMissingError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Field, PartitionStatisticsFile, Schema, Snapshot
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.manifests.manifests import (
    ManifestToRead,
    RollUps,
    find_partition_types,
    manifests_to_read,
    read_files,
    read_rollups,
)
from icestats.read.partitions.partition_history import check_counts, read_committed_partitions
from icestats.read.partitions.partition_statistics import ADDED, PartitionStatistics, read_partition_statistics
from icestats.read.puffin.committed_columns import find_committed_sizes
from icestats.read.puffin.committed_figures import find_figures, read_committed_figures
from icestats.read.puffin.committed_partitions import (
    CommittedPartitions,
    MergedSketches,
    partitions_kll,
    read_merged_items,
    read_merged_sketches,
    read_partition_index,
)
from icestats.read.puffin.committed_sketches import CommittedFrequentValues, read_kll
from icestats.read.puffin.statistics_files import CommittedBlob, CommittedBlobs, read_committed_blobs
from icestats.read.rollups.committed_rollups import CommittedRollups
from icestats.read.rollups.rollup_cache import Reader, read_cached_rollups
from icestats.snapshot.evaluation.partition_groups import build_partition_keys
from icestats.snapshot.partition_figures import Lengths, align_lengths, build_partition_figures, count_most_values
from icestats.snapshot.planned_files import PlannedFiles
from icestats.snapshot.refuted_figures import find_refuted
from icestats.stats.column_accumulator import can_distribute
from icestats.stats.histogram import Histogram, Kind, build_histogram
from icestats.stats.partition_sketches import PartitionEntry
from icestats.stats.rollup_cells import CommittedFigures, Figure, build_column_maps, build_columns
from icestats.stats.table_statistics import PartitionKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icestats.iceberg.filters.predicates import Condition
    from icestats.iceberg.filters.row_filter import RowFilter

_LOG = logging.getLogger("icestats")
Partial = Literal["refuse", "include", "leave out"]
"""What to do with partitions of which a filter may select some rows only."""
_MOST_FINDINGS = 10
"""Of statistics files that cannot be used: a table may name any number of them."""
_MOST_MERGED = 63
"""Merged sketches that are kept beside the newest."""


class SnapshotReader:
    """Reads a snapshot, and keeps what it has read.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot or None
        None for a table that has none: everything is empty.
    schema : Schema
        The schema that the snapshot is read with.
    """

    def __init__(self, source: Source, snapshot: Snapshot | None, schema: Schema) -> None:
        self.source = source
        self.snapshot = snapshot
        self.schema = schema
        self._rollups: RollUps | None = None
        self._by_manifest: dict[tuple[Field, ...], RollUps] = {}
        self._by_partition: RollUps | None = None
        self._unused: dict[str, Finding] = {}
        self._lost: MetadataError | None = None
        self._merged: dict[tuple[int, Condition, str], MergedSketches] = {}
        self.planned_files = PlannedFiles(source)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The committed statistics that could not be used so far, and why."""
        return tuple(self._unused.values())

    def _leave_out(self, what: str, error: IcestatsError) -> None:
        # One line a file, whatever the number of its blobs.
        place = error.path if isinstance(error, MetadataError) else str(error)
        if place not in self._unused and len(self._unused) < _MOST_FINDINGS:
            self._unused[place] = Finding("warning", f"{what} are not used", str(error))
            _LOG.warning("%s are not used: %s", what, error)

    @cached_property
    def manifest_files(self) -> pa.Table:
        """The manifest list, `schemas.MANIFEST_FILES`."""
        return read_manifest_list(self.source.storage, self.snapshot)

    @cached_property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        """The partition fields of all specs; manifests are read for those only that no schema tells the type of."""
        return find_partition_types(self._list_manifests(), self.source.metadata, self.source.storage)

    def _list_manifests(self) -> Iterator[ManifestToRead]:
        yield from manifests_to_read(self.manifest_files)

    @cached_property
    def manifest_list_bytes(self) -> int:
        """The length of the manifest list; 0 for a snapshot that has none."""
        path = None if self.snapshot is None else self.snapshot.manifest_list
        return 0 if path is None else self.source.storage.size(path)

    def require_snapshot(self) -> Snapshot:
        """Return the snapshot; raise StatisticsMissingError where there is none."""
        if self.snapshot is None:
            name = self.source.name
            raise StatisticsMissingError(f"{name} has no snapshot yet: write to it, and compute statistics then")
        return self.snapshot

    @property
    def rollups(self) -> RollUps:
        """The roll-ups of the live files, from the local cache as far as it knows them."""
        if self._rollups is None:
            self._rollups = self._read_rollups(None, None)
        return self._rollups

    def known_rollups(self) -> RollUps | None:
        """Return the roll-ups of the live files if they have been read from manifests or the local cache."""
        return self._rollups

    @property
    def manifest_rollups(self) -> RollUps:
        """The roll-up by manifest and over the table, from committed manifest statistics where there are some."""
        if self._rollups is not None:
            return self._rollups
        return self._read_committed(self.schema.columns, None) or self.rollups

    def read_manifest_rollups(self, field_ids: Collection[int]) -> tuple[RollUps, Sequence[Field]]:
        """Return the roll-up by manifest and over the table with some columns at least, and the columns that it has.

        Of committed manifest statistics no more columns are decoded than these, unless all have been already.
        """
        if self._rollups is not None:
            return self._rollups, self.schema.columns
        return self.read_committed_rollups(field_ids) or (self.rollups, self.schema.columns)

    def read_committed_rollups(self, field_ids: Collection[int]) -> tuple[RollUps, Sequence[Field]] | None:
        """Return the same from committed manifest statistics; None where the snapshot has none that can be used."""
        wanted = tuple(column for column in self.schema.columns if column.field_id in field_ids)
        columns = next((known for known in self._by_manifest if set(wanted) <= set(known)), wanted)
        found = self._read_committed(columns, None)
        return None if found is None else (found, columns)

    def _read_committed(self, columns: tuple[Field, ...], progress: Progress | None) -> RollUps | None:
        metadata, storage, schema = self.source.metadata, self.source.storage, self.schema
        if columns in self._by_manifest:
            return self._by_manifest[columns]
        if not metadata.statistics or not schema.columns:
            return None

        def read(wanted: Sequence[ManifestToRead]) -> RollUps:
            return read_rollups(wanted, metadata, storage, schema, by=("manifest",), progress=progress)

        found = self._committed.read(self.nearest_blobs(), columns, read)
        if found is not None:
            self._by_manifest[columns] = found
        return found

    @cached_property
    def _committed(self) -> CommittedRollups:
        leave_out = partial(self._leave_out, "committed manifest statistics")
        return CommittedRollups(self.source.storage, self.manifest_files, self.schema.columns, leave_out)

    def nearest_blobs(self) -> Iterator[CommittedBlob]:
        """Yield blobs, the nearest first, reading no more footers than are asked for; damaged files are left out."""
        if "usable_blobs" in vars(self):
            yield from self.usable_blobs
            return
        yield from read_committed_blobs(
            self.source.storage, self.source.metadata, self.snapshot, self._lose, self.schema
        )

    def _lose(self, error: MetadataError) -> None:
        self._lost = self._lost or error
        self._leave_out("committed statistics", error)

    @property
    def partition_rollups(self) -> RollUps:
        """The roll-up by partition, from the snapshot's partition statistics file where that holds it."""
        if self._rollups is not None:
            return self._rollups
        return self._read_committed_partitions() or self.rollups

    def _read_committed_partitions(self) -> RollUps | None:
        metadata, storage = self.source.metadata, self.source.storage
        if self._by_partition is not None or self.snapshot is None or not metadata.partition_statistics:
            return self._by_partition
        columns, leave_out = self.schema.columns, partial(self._leave_out, "committed partition statistics")
        found = read_committed_partitions(metadata, storage, self.snapshot, self.partition_columns, columns, leave_out)
        nothing = pa.schema([]).empty_table()
        self._by_partition = None if found is None else RollUps(nothing, nothing, *found, nothing)
        return self._by_partition

    def fill_rollups(self, progress: Progress | None, spark: SparkSession | None = None) -> None:
        """Read the roll-ups now unless that has been done, on Spark's executors where a session is given."""
        if self._rollups is not None:
            return
        by_partition = self._read_committed_partitions()
        if by_partition is None or self._read_committed(self.schema.columns, progress) is None:
            self._rollups = self._read_rollups(progress, spark)

    def _read_rollups(self, progress: Progress | None, spark: SparkSession | None) -> RollUps:
        metadata, storage, schema = self.source.metadata, self.source.storage, self.schema

        manifests = manifests_to_read(self.manifest_files)
        reader: Reader | None = None
        if spark is not None:
            from icestats.spark.manifest_rollups import spark_reader

            reader = spark_reader(spark, metadata, storage, schema)
        return read_cached_rollups(manifests, metadata, storage, schema, progress=progress, reader=reader)

    @cached_property
    def usable_blobs(self) -> CommittedBlobs:
        """The blobs of the registered statistics files, the nearest first; without files that cannot be used."""
        return CommittedBlobs(self.nearest_blobs())

    @property
    def blobs(self) -> CommittedBlobs:
        """The usable blobs, for who asks for nothing else.

        Raises
        ------
        MetadataError
            No file can be used.
        """
        found = self.usable_blobs
        if self._lost is not None and not found:
            raise self._lost
        return found

    def find_committed_sizes(self, fields: Sequence[Field]) -> tuple[int, int]:
        """Return the k and lg_k of the largest committed sketches of some columns, at least the default ones."""
        return find_committed_sizes(self.source.storage, self.usable_blobs, fields)

    def read_manifests(self) -> pa.Table:
        """Return `schemas.MANIFESTS`."""
        return build_manifests(self.manifest_files, self.manifest_rollups, self.schema)

    def read_partitions(self) -> pa.Table:
        """Return `schemas.partitions_schema`."""
        rollups, indexes = self.partition_rollups, self.partition_indexes
        lengths = self.read_stored_lengths(rollups.partitions)
        figures: dict[str, pa.Array] = {}
        if indexes or lengths:
            keys, field_ids = self._build_keys(rollups.partitions), {one.index.field_id for one in indexes}
            values = count_most_values(rollups.partitions, rollups.partition_cells, self.schema.columns, field_ids)
            figures = build_partition_figures(indexes, keys, values, self.source.metadata, self.schema, lengths)
        return build_partitions(rollups, self.schema, figures)

    def read_stored_lengths(self, groups: pa.Table) -> dict[str, list[Lengths | None]]:
        """Return the lengths of values that the partition statistics file of this very snapshot has, by partition."""
        stored = self._read_stored_partitions()
        if stored is None or not stored.lengths:
            return {}
        return align_lengths(stored, self._build_keys(stored.groups), self._build_keys(groups))

    def _build_keys(self, groups: pa.Table) -> list[PartitionKey | None]:
        return build_partition_keys(groups, self.source.metadata, self.schema)

    def _read_stored_partitions(self) -> PartitionStatistics | None:
        """Return the partition statistics file of this very snapshot, without columns; None where there is none."""
        if self.snapshot is None:
            return None
        file = self.source.metadata.first_partition_statistics().get(self.snapshot.snapshot_id)
        return None if file is None else self.find_partition_file(file, ())

    def read_partition_file(self, file: PartitionStatisticsFile, columns: Sequence[Field]) -> PartitionStatistics:
        """Read the partition statistics file of this snapshot or of an ancestor.

        Raises
        ------
        MetadataError
            It is missing, cut or damaged, or its counts are not those of its snapshot.
        """
        metadata, storage, path = self.source.metadata, self.source.storage, file.statistics_path
        found = read_partition_statistics(storage.read(path), path, self.partition_columns, columns, metadata.specs)
        of = metadata.snapshots[file.snapshot_id]
        check_counts(found, path, self.manifest_files if of == self.snapshot else read_manifest_list(storage, of))
        return found

    def find_partition_file(
        self, file: PartitionStatisticsFile, columns: Sequence[Field]
    ) -> PartitionStatistics | None:
        """Read a partition statistics file; one that cannot be used is left out."""
        try:
            return self.read_partition_file(file, columns)
        except IcestatsError as error:
            self._leave_out("committed partition statistics", error)
            return None

    @cached_property
    def partition_indexes(self) -> tuple[CommittedPartitions, ...]:
        """The indexes of the nearest sketches by partition of each column that has some."""
        found = []
        for field in self.schema.top_level:
            try:
                found.append(read_partition_index(self.source.storage, self.usable_blobs, field))
            except StatisticsMissingError:
                continue
            except MetadataError as error:
                self._leave_out("committed sketches by partition", error)
        return tuple(found)

    def read_columns(self) -> pa.Table:
        """Return `schemas.COLUMNS`."""
        # First, so that roll-ups by manifest find the footers read.
        figures = self._read_figures()
        return build_column_table(
            self.manifest_files, self.manifest_rollups, self.schema, figures, self.moved, self.imported
        )

    @cached_property
    def moved(self) -> frozenset[int]:
        """The columns of which data files' statistics prove nothing: `TableMetadata.find_moved`."""
        return self.source.metadata.find_moved()

    @property
    def imported(self) -> bool:
        """Whether files of elsewhere may have been taken in, as by `add_files`, which leaves a name mapping."""
        return self.source.metadata.name_mapping is not None

    def _read_figures(self) -> CommittedFigures:
        """Return the figures of committed statistics: of each kind and column from the nearest blob that can be used.

        So many as `_MOST_FINDINGS` are tried: a table may name one file any number of times.
        """
        figures: dict[int, dict[str, Figure]] = {}
        done: set[tuple[str, int]] = set()
        failed: Counter[tuple[str, int]] = Counter()
        for blob, field in find_figures(self.usable_blobs, self.schema):
            key = blob.blob.type, field.field_id
            if key in done or failed[key] == _MOST_FINDINGS:
                continue
            try:
                found = read_committed_figures(self.source.storage, blob, field)
                stated = {name: figure.value for name, figure in found.items()}
                if not blob.commits_behind and (refuted := self.find_refuted(field.field_id, stated)):
                    raise blob.refuse(refuted)
            except MetadataError as error:
                self._leave_out("committed statistics", error)
                found = {}
            if found:
                done.add(key)
                figures[field.field_id] = found | figures.get(field.field_id, {})
            else:
                failed[key] += 1
        return figures

    def find_refuted(self, field_id: int, figures: Mapping[str, Any]) -> str:
        """Return what data files refute of a column's figures of this snapshot, as `refuted_figures.find_refuted`."""
        files = self._figures_of_files.get(field_id)
        return "" if files is None else find_refuted(figures, files, has_deletes=self.has_deletes)

    @cached_property
    def _figures_of_files(self) -> Mapping[int, Mapping[str, Any]]:
        """What data files say of each column, by field id: rows of `schemas.COLUMNS` with their `row_count`."""
        rollups = self.manifest_rollups
        is_data = pc.equal(self.manifest_files["content"], "data")
        row_count = pc.sum(rollups.manifests["record_count"].filter(is_data)).as_py() or 0
        rows = build_column_table(self.manifest_files, rollups, self.schema, {}).to_pylist()
        top_level = {field.field_id for field in self.schema.top_level}
        return {
            i: row | {"row_count": row_count if i in top_level else None} for row in rows for i in [row["field_id"]]
        }

    @cached_property
    def has_deletes(self) -> bool:
        """Whether the snapshot has a live delete file."""
        return _has_deletes(self.manifest_files, self.manifest_rollups)

    def read_files(self, field_ids: Sequence[int], manifest_files: pa.Table | None = None) -> pa.Table:
        """Return `schemas.files_schema` with the statistics of some columns, of all manifests or of some."""
        manifests = manifests_to_read(self.manifest_files if manifest_files is None else manifest_files)
        return read_files(manifests, self.source.metadata, self.source.storage, field_ids)

    def read_histogram(
        self,
        field: Field,
        *,
        bins: int,
        kind: Kind,
        where: RowFilter | None = None,
        partial: Partial = "refuse",
        lower: Any = None,
        upper: Any = None,
    ) -> Histogram:
        """Return a column's histogram from its nearest committed KLL sketch, or from those of some partitions."""
        if (reason := can_distribute(field)) is not None:
            expected = "expected a top-level column of numbers, dates, times, booleans or strings"
            raise CallError(f"column {field.name!r} has no histogram: {reason}; {expected}")
        self.require_snapshot()
        found = (
            read_kll(self.source.storage, self.blobs, field)
            if where is None
            else partitions_kll(field, self.read_partition_sketches(field, where, partial=partial))
        )
        made = build_histogram(
            found.sketch, column=field.name, type_text=field.type, bins=bins, kind=kind, lower=lower, upper=upper
        )
        return replace(
            made,
            snapshot_id=found.snapshot_id,
            commits_behind=found.commits_behind,
            null_count=found.null_count,
            nan_count=found.nan_count,
        )

    def read_partition_sketches(
        self, field: Field, row_filter: RowFilter, *, partial: Partial = "refuse"
    ) -> MergedSketches:
        """Return the committed sketches of the partitions that a filter selects, merged; no data file is touched.

        Parameters
        ----------
        field : Field
            A top-level column.
        row_filter : RowFilter
            The filter.
        partial : {"refuse", "include", "leave out"}
            What to do with partitions of which the filter may select some rows only: raise FilterError; count them
            whole, which makes every figure one of more rows than the filter selects; or leave them out, of fewer.
            Either way `partial_partition_count` says how many there are.

        Returns
        -------
        MergedSketches
            Theta, KLL and exact counts of the live rows of these partitions, at the snapshot that it names: the nearest
            one that has sketches by partition.

        Raises
        ------
        FilterError
            The filter selects parts of partitions.
        StatisticsMissingError
            No sketches by partition of the column have been committed for this snapshot or an ancestor of it, or those
            of a selected partition were left out.
        PuffinFormatError
            The blob is damaged.

        Notes
        -----
        Theta depends on the values alone, so it is what a scan of these rows would make; KLL's ranks are within
        `kll.rank_error` at 99 %. Rows that have been written since that snapshot are in neither.
        """
        asked = (field.field_id, row_filter.condition, partial)
        if asked not in self._merged:
            # Merged KLL sketches differ from time to time: the same question gets the same answer.
            found = self._merge_partition_sketches(field, row_filter, partial)
            self._merged = {**dict(list(self._merged.items())[-_MOST_MERGED:]), asked: found}
        return self._merged[asked]

    def _merge_partition_sketches(self, field: Field, row_filter: RowFilter, partial: Partial) -> MergedSketches:
        committed, entries, partial_count = self._select_partitions(field, row_filter, partial)
        if lacking := sum(not entry.has_sketches for entry in entries):
            raise _left_out("sketches", field, row_filter, lacking, len(entries))
        return read_merged_sketches(self.source.storage, committed, entries, partial_count)

    def read_partition_items(
        self, field: Field, row_filter: RowFilter, *, partial: Partial = "refuse"
    ) -> CommittedFrequentValues:
        """Return the committed common values of the partitions that a filter selects, merged.

        Parameters, errors and what they are of: as for `read_partition_sketches`.
        """
        committed, entries, _ = self._select_partitions(field, row_filter, partial)
        if lacking := sum(not entry.items_length for entry in entries):
            raise _left_out("common values", field, row_filter, lacking, len(entries))
        return read_merged_items(self.source.storage, committed, entries)

    def _select_partitions(
        self, field: Field, row_filter: RowFilter, partial: Partial
    ) -> tuple[CommittedPartitions, Sequence[PartitionEntry], int]:
        """Return the index of a column, the partitions in it that are asked for, and how many are selected in part."""
        from icestats.snapshot.evaluation.partition_projection import describe_partition_fields, select_partitions

        self.require_snapshot()
        if not self.source.metadata.has_partition_fields:
            raise StatisticsMissingError(f"{self.source.name} is not partitioned, so it has no sketches by partition")
        committed = read_partition_index(self.source.storage, self.blobs, field)
        specs = self.source.metadata.specs
        selection = select_partitions(row_filter, specs, self.schema, committed.index.partitions)
        if selection.partial and partial == "refuse":
            known = describe_partition_fields(specs, self.schema)
            raise FilterError(
                f"the filter {row_filter.text!r} selects parts of {len(selection.partial):,} partitions, whose "
                f"sketches tell of whole ones only: choose by {known}",
                row_filter.text,
            )
        entries = selection.whole + (selection.partial if partial == "include" else ())
        return committed, entries, len(selection.partial)


def _left_out(what: str, field: Field, row_filter: RowFilter, lacking: int, count: int) -> StatisticsMissingError:
    return StatisticsMissingError(
        f"the {what} of {field.name!r} in {lacking:,} of the {counted(count, 'partition')} that {row_filter.text!r} "
        "selects were left out to save space: compute them again with a larger max_size_bytes"
    )


def build_manifests(manifest_files: pa.Table, rollups: RollUps, schema: Schema) -> pa.Table:
    """Build `schemas.MANIFESTS` from the manifest list and its roll-up."""
    groups = rollups.manifests
    is_data = to_numpy(pc.equal(manifest_files["content"], "data"))
    maps = build_column_maps(rollups.manifest_cells, schema.columns, to_numpy(groups["live_file_count"]), is_data)
    columns = {name: manifest_files[name] for name in manifest_files.column_names}
    columns |= {name: groups[name] for name in groups.column_names if name in MANIFESTS.names}
    columns["total_record_count"] = groups["record_count"]
    columns["total_file_size_in_bytes"] = groups["file_size_in_bytes"]
    return pa.table(columns | maps, schema=MANIFESTS)


def build_partitions(rollups: RollUps, schema: Schema, figures: Mapping[str, pa.Array]) -> pa.Table:
    """Build `schemas.partitions_schema` from the roll-up and those `schemas.PARTITION_MAPS` that are known."""
    groups = rollups.partitions
    columns = {name: groups[name] for name in groups.column_names} | dict(figures)
    columns |= build_column_maps(rollups.partition_cells, schema.columns, to_numpy(groups["data_file_count"]))
    return _fill_partitions(columns, groups)


def _fill_partitions(columns: Mapping[str, pa.Array], groups: pa.Table) -> pa.Table:
    kind = partitions_schema(groups.schema.field("partition").type)
    return pa.table({f.name: columns.get(f.name, pa.nulls(len(groups), f.type)) for f in kind}, schema=kind)


def build_partition_file_rows(found: PartitionStatistics) -> pa.Table:
    """Build `schemas.partitions_schema` from a partition statistics file: its maps are null where it has none."""
    groups = found.groups.drop_columns(list(ADDED))
    columns = {name: groups[name] for name in groups.column_names} | dict(found.lengths or {})
    if found.columns:
        columns |= build_column_maps(found.cells, found.columns, to_numpy(groups["data_file_count"]))
    return _fill_partitions(columns, groups)


def build_column_table(
    manifest_files: pa.Table,
    rollups: RollUps,
    schema: Schema,
    committed: CommittedFigures,
    moved: Collection[int] = (),
    imported: bool = False,
) -> pa.Table:
    """Build `schemas.COLUMNS` from the roll-up over all manifests and the figures of committed statistics.

    Of columns that are `moved` data files are taken to say nothing; `imported` files may have bounds in milliseconds.
    """
    is_data = pc.equal(manifest_files["content"], "data")
    return build_columns(
        rollups.table_cells,
        schema.columns,
        pc.sum(rollups.manifests["live_file_count"].filter(is_data)).as_py() or 0,
        pc.sum(rollups.manifests["record_count"].filter(is_data)).as_py() or 0,
        has_deletes=_has_deletes(manifest_files, rollups),
        committed=committed,
        moved=moved,
        imported=imported,
    )


def _has_deletes(manifest_files: pa.Table, rollups: RollUps) -> bool:
    is_delete = pc.not_equal(manifest_files["content"], "data")
    return bool(pc.sum(rollups.manifests["live_file_count"].filter(is_delete)).as_py())
