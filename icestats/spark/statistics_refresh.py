"""Statistics of a snapshot from those of an earlier one: only the files added since are read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from icestats.answers.text import counted, render_bytes
from icestats.errors import IcestatsError, MetadataError, PuffinFormatError, StatisticsMissingError, UnsupportedError
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.read.manifests.manifest_list import count_listed_rows, read_manifest_list
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.puffin.committed_columns import CommittedColumn, find_committed_sizes, read_committed_column
from icestats.read.puffin.committed_partitions import (
    CommittedPartitions,
    read_partition_index,
    read_partitioned_column,
)
from icestats.read.puffin.committed_sketches import CommittedJoint, find_joint, read_joint
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES, CommittedBlobs
from icestats.scan.appended_files import AppendedFiles, find_appended_files, read_changed_files
from icestats.scan.pair_sample import MOST_PAIRS
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import (
    ScanPlan,
    find_key_types,
    find_partitions,
    find_unread,
    is_small,
    prepare_scan,
    scan_here,
)
from icestats.spark.session_catalog import find_session
from icestats.spark.statistics_scan import PYICEBERG_SCAN, run_scan
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.joint_statistics import JointStatistics, merge_joint_statistics
from icestats.stats.partition_sketches import MOST_GATHERED_BYTES, estimate_size
from icestats.stats.table_statistics import (
    ColumnStatistics,
    PartitionKey,
    Refute,
    ScannedPartitions,
    TableStatistics,
    count_distinct,
    find_kll_k,
    find_refuted_values,
    merge_column_statistics,
    merge_partitions,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import FileScanTask
    from pyspark.sql import SparkSession


class AddedPartitions(NamedTuple):
    """What was added to a column's committed sketches by partition."""

    snapshot_id: int
    """The snapshot that these are of."""
    touched_count: int
    """Partitions that have got rows since."""
    partition_count: int
    """All partitions that it has now."""


class _Reading(NamedTuple):
    """What is read by one scan."""

    base_id: int
    """The snapshot since which the files have come."""
    sizes: Sizes
    by_partition: bool


@dataclass
class Refresh:
    """Makes the statistics of a snapshot from committed ones of an ancestor, where only files were added since.

    Parameters
    ----------
    spark : SparkSession or None
        The session that reads. None: added files of up to 128 MiB are read in this process, for anything else the
        running session is used, or one is started.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot that the statistics are to be of.
    schema : Schema
        The schema to read it with.
    progress : callable or None
        Called with finished and total tasks of each scan.
    refute : callable
        Takes a column's id and figures, and says what data files refute of them; nothing: they are possible.
    """

    spark: SparkSession | None
    source: Source
    snapshot: Snapshot
    schema: Schema
    progress: Progress | None
    refute: Refute
    added_to: dict[str, int] = field(default_factory=dict)
    """Columns whose committed statistics were added to, by name: the snapshot of these."""
    scanned: dict[str, str] = field(default_factory=dict)
    """Columns that were read in all live files, by name: why."""
    added_partitions: dict[str, AddedPartitions] = field(default_factory=dict)
    """Columns whose committed sketches by partition were added to, by name."""
    left: dict[str, str] = field(default_factory=dict)
    """Columns whose committed sketches by partition are left as they are, by name: why."""
    added_together: dict[str, int] = field(default_factory=dict)
    """Pairs of columns that were added to apart from these, by names: the snapshot that they were of."""
    left_together: dict[str, str] = field(default_factory=dict)
    """Pairs of columns whose committed statistics together are left as they are, by names: why."""
    _listed_rows: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    """Live rows of snapshots, at least and at most; None: their manifest lists do not say."""
    _added: dict[str, int] = field(default_factory=dict)
    """Rows of the data files added since, by path."""
    _bases: dict[str, CommittedColumn] = field(default_factory=dict)
    _own: dict[str, _Reading] = field(default_factory=dict)
    """What is read for a column's own statistics, apart from those of its partitions where sizes differ."""
    _parts: dict[str, CommittedPartitions] = field(default_factory=dict)
    _unfit: dict[str, str] = field(default_factory=dict)
    """Columns whose committed sketches by partition cannot be added to, by name: why."""
    _columns: dict[str, ColumnStatistics] = field(default_factory=dict)
    _partitions: dict[str, Mapping[PartitionKey, ColumnStatistics]] = field(default_factory=dict)
    _joints: dict[tuple[int, int], CommittedJoint] = field(default_factory=dict)
    _together: dict[tuple[int, int], JointStatistics] = field(default_factory=dict)
    _scan: TableStatistics | None = None
    """Of the columns that were read in full."""

    @property
    def added_file_count(self) -> int:
        """Data files added since, which were read."""
        return len(self._added)

    @property
    def added_row_count(self) -> int:
        """Rows of these."""
        return sum(self._added.values())

    def run(self, blobs: CommittedBlobs, fields: Sequence[Field]) -> TableStatistics:
        """Make the statistics of some columns, by partition too where they are committed by partition.

        Parameters
        ----------
        blobs : CommittedBlobs
            The table's committed blobs, seen from that snapshot.
        fields : sequence of Field
            The columns.

        Returns
        -------
        TableStatistics
            As a full scan would find them: counts, extremes and lengths exactly, sketches within their error.

        Raises
        ------
        PuffinFormatError
            A committed blob of the table is damaged.
        SparkUnavailableError, UnsupportedError, IcestatsError
            As `run_scan`.
        """
        started = time.perf_counter()
        skipped = {f.name: reason for f in fields if (reason := can_sketch(f)) is not None}
        wanted = [f for f in fields if f.name not in skipped]
        self._read_bases(blobs, wanted)
        self._read_parts(blobs, wanted)
        self._read_joints(blobs, wanted)
        k, lg_k = find_committed_sizes(self.source.storage, blobs, wanted)
        for reading, names in self._plan_readings(k, lg_k).items():
            self._add(reading, [name for name in names if name not in self.scanned])
        self.scanned = {**self._unfit, **self.scanned}
        in_full: defaultdict[tuple[Sizes, bool], list[str]] = defaultdict(list)
        for name in (f.name for f in wanted if f.name in self.scanned):
            in_full[_choose(k, lg_k, self._parts.get(name)), name in self._parts].append(name)
        for (sizes, by_partition), names in in_full.items():
            self._scan_in_full(names, sizes, by_partition=by_partition)
        self._add_late_pairs(Sizes(k, lg_k, k, lg_k))
        found = {f.name: self._columns[f.name] for f in wanted}
        return TableStatistics(
            snapshot_id=self.snapshot.snapshot_id,
            sequence_number=self.snapshot.sequence_number,
            row_count=next((column.value_count for column in found.values()), None),
            file_count=self.added_file_count + (0 if self._scan is None else self._scan.file_count),
            duration_ms=round((time.perf_counter() - started) * 1000),
            columns=found,
            skipped=skipped,
            scanned_by=PYICEBERG_SCAN if self._scan is None else self._scan.scanned_by,
            scan_reason=None if self._scan is None else self._scan.scan_reason,
            by_partition=self._build_partitions(),
            together=tuple(self._together.values()),
        )

    def _plan_readings(self, k: int, lg_k: int) -> Mapping[_Reading, Sequence[str]]:
        """Return the columns of each scan: those whose statistics are of one snapshot and size."""
        readings: defaultdict[_Reading, list[str]] = defaultdict(list)
        for name, base in self._bases.items():
            part, own = self._parts.get(name), find_kll_k(base.statistics) or k
            if name in self._unfit:
                # What is up to date stays as it is: a refresh for sketches by partition that fit in no file has an end.
                if base.snapshot_id == self.snapshot.snapshot_id:
                    self._own[name] = _Reading(base.snapshot_id, _choose(own, lg_k, None), False)
                    readings[self._own[name]].append(name)
                continue
            is_one = part is not None and part.snapshot_id == base.snapshot_id
            # Sketches of one size alone are added to one another, and those of partitions are made of the table's.
            is_one = is_one and part is not None and part.index.k <= own and part.index.lg_k <= lg_k
            self._own[name] = _Reading(base.snapshot_id, _choose(own, lg_k, part if is_one else None), is_one)
            readings[self._own[name]].append(name)
            if part is not None and not is_one:
                alone = _choose(part.index.k, part.index.lg_k, part)
                readings[_Reading(part.snapshot_id, alone, True)].append(name)
        return readings

    def _read_bases(self, blobs: CommittedBlobs, fields: Sequence[Field]) -> None:
        for one in fields:
            found = read_committed_column(self.source.storage, blobs, one)
            if isinstance(found, str):
                self.scanned[one.name] = found
            elif refuted := self._find_refuted(found.snapshot_id, found.statistics.value_count):
                self.scanned[one.name] = f"its committed statistics are {refuted}"
            else:
                self._bases[one.name] = found

    def _find_refuted(self, snapshot_id: int, row_count: int) -> str:
        """Return why statistics cannot be of a snapshot's rows; nothing: its manifest list leaves it possible."""
        if snapshot_id not in self._listed_rows:
            try:
                listed = read_manifest_list(self.source.storage, self.source.metadata.snapshots[snapshot_id])
            except MetadataError as error:
                return f"not added to: {error}"
            self._listed_rows[snapshot_id] = count_listed_rows(listed)
        least, most = self._listed_rows[snapshot_id] or (row_count, row_count)
        if least <= row_count <= most:
            return ""
        return f"of {counted(row_count, 'row')}, and snapshot {snapshot_id} has {most:,}"

    def _read_joints(self, blobs: CommittedBlobs, fields: Sequence[Field]) -> None:
        """Read statistics of columns together; those of other fields, or up to date, stay as they are."""
        asked = {one.field_id for one in fields}
        for pair, blob in find_joint(blobs).items():
            if not asked.issuperset(pair) or blob.blob.snapshot_id == self.snapshot.snapshot_id:
                continue
            names = _join_names(self._find_fields(pair))
            if len(self._joints) == MOST_PAIRS:
                self.left_together[names] = (
                    f"a refresh adds to {MOST_PAIRS} pairs at most, and the next one to further ones"
                )
                continue
            try:
                found = read_joint(self.source.storage, blob, self.schema)
            except PuffinFormatError as error:
                self.left_together[names] = str(error)
                continue
            if found is None:
                self.left_together[names] = "they are of when these had other types"
            else:
                self._joints[pair] = found

    def _find_pairs(self, plan: ScanPlan, base_id: int | None = None) -> ScanPlan:
        """Return the plan with the pairs of its columns that are committed, of one snapshot if it is named."""
        places = {one.field_id: place for place, one in enumerate(plan.fields)}
        wanted = [pair for pair, one in self._joints.items() if base_id in (None, one.snapshot_id)]
        pairs = tuple((places[a], places[b]) for a, b in wanted if a in places and b in places)
        return replace(plan, pairs=pairs)

    def _merge_joints(self, found: TableStatistics | None, base_id: int, lg_k: int) -> None:
        """Add the new files to the pairs of columns that were added to."""
        counted_pairs = None if found is None else {one.field_ids for one in found.together}
        for pair in self._list_pairs(base_id):
            is_counted = counted_pairs is None or pair in counted_pairs
            if is_counted and all(self.added_to.get(one.name) == base_id for one in self._find_fields(pair)):
                self._merge_joint(pair, found, lg_k)

    def _list_pairs(self, base_id: int) -> list[tuple[int, int]]:
        """Return the pairs committed for a snapshot that are still to be made for the present one."""
        known = [
            pair for pair, one in self._joints.items() if one.snapshot_id == base_id and pair not in self._together
        ]
        return [pair for pair in known if _join_names(self._find_fields(pair)) not in self.left_together]

    def _find_fields(self, pair: tuple[int, int]) -> tuple[Field, Field]:
        fields = {one.field_id: one for one in self.schema.top_level}
        return fields[pair[0]], fields[pair[1]]

    def _merge_joint(self, pair: tuple[int, int], found: TableStatistics | None, lg_k: int) -> None:
        """Add the new files to a pair, unless it contradicts the columns' own statistics."""
        one, other = self._find_fields(pair)
        base, added = self._joints[pair].statistics, [] if found is None else found.together
        new = next((joint for joint in added if joint.field_ids == pair), None)
        row_count = base.row_count + (0 if found is None else found.row_count or 0)
        if row_count != self._columns[one.name].value_count:
            self.left_together[_join_names((one, other))] = f"with the new files they are of {row_count:,} rows"
            return
        ndvs = (count_distinct(self._columns[one.name]), count_distinct(self._columns[other.name]))
        merged = base if new is None else merge_joint_statistics(base, new, (one, other), ndvs, lg_k=lg_k)
        self._together[pair] = merged

    def _add_late_pairs(self, sizes: Sizes) -> None:
        """Add the new files to pairs that were committed for another snapshot than their columns."""
        for base_id in dict.fromkeys(one.snapshot_id for one in self._joints.values()):
            late = {pair: self._find_fields(pair) for pair in self._list_pairs(base_id)}
            if not late:
                continue
            _, appended = self._find_added(base_id)
            reason, found = appended.reason, None
            if reason is None:
                names = list(dict.fromkeys(one.name for both in late.values() for one in both))
                try:
                    found = self._read_added(names, _Reading(base_id, sizes, False), appended, None)
                except IcestatsError as error:
                    reason = str(error)
            for pair, both in late.items():
                if reason is not None:
                    self.left_together[_join_names(both)] = reason
                    continue
                self._merge_joint(pair, found, sizes.lg_k)
                if pair in self._together:
                    self.added_together[_join_names(both)] = base_id

    def _read_parts(self, blobs: CommittedBlobs, fields: Sequence[Field]) -> None:
        """Read the indexes of sketches by partition; those of this very snapshot are up to date."""
        own = [b.blob for b in blobs if b.blob.type == PARTITION_SKETCHES and b.commits_behind is not None]
        committed = {blob.field_ids for blob in own}
        for one in fields:
            if (one.field_id,) not in committed:
                continue
            try:
                found = read_partition_index(self.source.storage, blobs, one)
            except (StatisticsMissingError, PuffinFormatError) as error:
                self.left[one.name] = str(error)
                continue
            if found.snapshot_id == self.snapshot.snapshot_id:
                continue
            self._parts[one.name] = found
            if found.index.type != one.type:
                reason = f"its sketches by partition are of when its type was {found.index.type}"
                self._unfit[one.name] = reason
            row_count = sum(entry.figures.value_count for entry in found.index.partitions)
            if refuted := self._find_refuted(found.snapshot_id, row_count):
                self._unfit.setdefault(one.name, f"its sketches by partition are {refuted}")

    def _add(self, reading: _Reading, names: Sequence[str]) -> None:
        """Add the new files to the statistics of some columns; or leave these to a full scan, and say why."""
        if not names:
            return
        base_id, sizes = reading.base_id, reading.sizes
        files, appended = self._find_added(base_id)
        if appended.reason is not None:
            self.scanned.update(dict.fromkeys(names, appended.reason))
            return
        committed = self._read_sketches(names) if reading.by_partition else {}
        keys = find_partitions(files, self.source.metadata) if committed and files is not None else None
        try:
            found = self._read_added(names, reading, appended, keys)
        except UnsupportedError as error:
            self.scanned.update(dict.fromkeys(names, str(error)))
            return
        for name in names:
            if refuted := self._merge(name, reading, found, committed.get(name)):
                self.scanned[name] = f"data files refute its committed statistics: {refuted}"
        self._merge_joints(found, base_id, sizes.lg_k)

    def _find_added(self, base_id: int) -> tuple[pa.Table | None, AppendedFiles]:
        """Return which files have come or gone since a snapshot, and what is to be read of them."""
        try:
            files = read_changed_files(self.source.storage, self.source.metadata, base_id, self.snapshot)
            if (unread := find_unread(self.source)) is not None:
                return files, AppendedFiles(reason=unread)
            table = load_iceberg_table(self.source)
            return files, find_appended_files(table, self.source.metadata, base_id, self.snapshot, files)
        except MetadataError as error:
            # A full scan needs nothing of what only the earlier snapshot has.
            return None, AppendedFiles(reason=f"what has changed since cannot be read: {error}")

    def _read_added(
        self,
        names: Sequence[str],
        reading: _Reading,
        appended: AppendedFiles,
        keys: Mapping[str, PartitionKey] | None,
    ) -> TableStatistics | None:
        """Read the new files, where there are any."""
        found = self._read(names, reading, appended.tasks, keys) if appended.tasks else None
        if found is not None and found.row_count != appended.row_count:
            raise MetadataError(
                f"the files added since snapshot {reading.base_id} hold {found.row_count} rows, their manifests say "
                f"{appended.row_count}: compute the statistics anew",
                self.source.metadata_location,
            )
        self._added |= {task.file.file_path: task.file.record_count for task in appended.tasks}
        return found

    def _merge(
        self,
        name: str,
        reading: _Reading,
        found: TableStatistics | None,
        parts: Mapping[PartitionKey, ColumnStatistics] | None,
    ) -> str:
        """Add the new files to a column's statistics; return what data files refute of these, which are not kept."""
        base, (base_id, sizes, _) = self._bases[name], reading
        field_id = next(one.field_id for one in self.schema.top_level if one.name == name)
        if reading == self._own[name]:
            column = base.statistics
            if found is not None:
                column = merge_column_statistics(column, found.columns[name], lg_k=sizes.lg_k)
            if refuted := find_refuted_values(self.refute, field_id, [column]):
                return refuted
            self._columns[name] = column
            self.added_to[name] = base_id
        if parts is not None:
            new = {} if found is None or found.by_partition is None else found.by_partition.columns[name]
            merged = merge_partitions(parts, new, k=sizes.partition_k, lg_k=sizes.partition_lg_k)
            if refuted := find_refuted_values(self.refute, field_id, merged.values()):
                return f"by partition: {refuted}"
            self._partitions[name] = merged
            self.added_partitions[name] = AddedPartitions(base_id, len(new), len(merged))
        return ""

    def _read_sketches(self, names: Sequence[str]) -> dict[str, dict[PartitionKey, ColumnStatistics]]:
        """Read the committed sketches by partition of some columns; those that are damaged are left as they are."""
        found, types = {}, find_key_types(self.source.metadata)
        for name in names:
            try:
                columns = read_partitioned_column(self.source.storage, self._parts[name])
            except PuffinFormatError as error:
                self.left[name] = str(error)
                continue
            found[name] = {key.widen(types): column for key, column in columns.items()}
        return found

    def _scan_in_full(self, names: Sequence[str], sizes: Sizes, *, by_partition: bool) -> None:
        stay = {name for name in names if self.added_to.get(name) == self.snapshot.snapshot_id}
        for name in names:
            if name not in stay:
                self.added_to.pop(name, None)
            self.added_partitions.pop(name, None)
        plan = prepare_scan(self.source, self.snapshot, self.schema, names, by_partition=by_partition)
        if by_partition:
            k, lg_k = sizes.partition_k, sizes.partition_lg_k
            size = estimate_size(plan.fields, plan.partition_row_counts.values(), k=k, lg_k=lg_k)
            most = max(MOST_GATHERED_BYTES, *(self._parts[name].max_size_bytes or 0 for name in names))
            for name in names:
                self.left.pop(name, None)
                if size.size_bytes > most:
                    self.left[name] = f"{size}, more than the {render_bytes(most)} that are gathered here"
            plan = plan if size.size_bytes <= most else replace(plan, partitions=None)
        plan = self._find_pairs(plan)
        self._scan = run_scan(find_session(self.source, self.spark), plan, sizes, progress=self.progress)
        self._together.update({one.field_ids: one for one in self._scan.together})
        self._columns.update({name: column for name, column in self._scan.columns.items() if name not in stay})
        self._partitions.update({} if self._scan.by_partition is None else self._scan.by_partition.columns)

    def _read(
        self,
        names: Sequence[str],
        reading: _Reading,
        tasks: Sequence[FileScanTask],
        keys: Mapping[str, PartitionKey] | None,
    ) -> TableStatistics:
        """Read the new files: on Spark's executors, or a few here where no session is given."""
        plan = prepare_scan(self.source, self.snapshot, self.schema, names, tasks=tasks)
        plan, sizes = self._find_pairs(plan, reading.base_id), reading.sizes
        if keys is not None:
            plan = replace(plan, partitions={task.file.file_path: keys[task.file.file_path] for task in tasks})
        if self.spark is None and is_small(plan):
            return scan_here(plan, sizes)
        return run_scan(find_session(self.source, self.spark), plan, sizes, progress=self.progress)

    def _build_partitions(self) -> ScannedPartitions | None:
        if not self._partitions:
            return None
        parts = {name: self._parts[name] for name in self._partitions}
        lacking = {
            name: sum(not column.theta for column in self._partitions[name].values()) for name in self.added_partitions
        }
        texts = [
            f"{count:,} of the {counted(len(self._partitions[name]), 'partition')} of {name}"
            for name, count in lacking.items()
            if count
        ]
        return ScannedPartitions(
            columns=self._partitions,
            sizes={name: (part.index.k, part.index.lg_k) for name, part in parts.items()},
            left_out=f"{', '.join(texts)} had no sketches, and get none from new files alone" if texts else "",
            max_size_bytes={n: part.max_size_bytes for n, part in parts.items() if part.max_size_bytes is not None},
        )


def _join_names(fields: Sequence[Field]) -> str:
    return ", ".join(one.name for one in fields)


def _choose(k: int, lg_k: int, part: CommittedPartitions | None) -> Sizes:
    """Return the sizes of a scan: sketches of partitions are made of some as large as the table's."""
    if part is None:
        return Sizes(k, lg_k, k, lg_k)
    return Sizes(max(k, part.index.k), max(lg_k, part.index.lg_k), part.index.k, part.index.lg_k)
