"""What a snapshot offers to estimate from: its statistics as groups, its committed sketches, its row-level deletes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.findings import Finding
from icestats.answers.schemas import PLANNING_STATISTICS
from icestats.answers.text import counted
from icestats.errors import MetadataError, StatisticsMissingError
from icestats.estimation.changed_rows import ChangedRows, SketchAge, find_changed_rows
from icestats.estimation.formulas.frequent_sources import FrequentColumn, FrequentGroup, estimate_common
from icestats.estimation.formulas.grouped_sources import (
    GroupedEvidence,
    Question,
    keep_by_partition,
)
from icestats.estimation.formulas.joint_sources import JointColumns
from icestats.estimation.formulas.selectivity import (
    GroupEvidence,
    as_floats,
    build_column_evidence,
    build_groups,
    build_unknown,
    join_groups,
)
from icestats.estimation.formulas.sketch_sources import (
    DistinctValues,
    Distribution,
    Sketched,
    SketchedRows,
    estimate_kll,
)
from icestats.estimation.refuted_statistics import (
    NEVER_IN_PARTITION,
    NEVER_IN_TABLE,
    check_rows,
    check_values,
)
from icestats.estimation.row_level_deletes import (
    FileDeletes,
    TableDeletes,
    build_table_deletes,
    read_file_deletes,
    sum_column,
)
from icestats.iceberg.filters.value_sets import Leaf, build_item
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import decode_value
from icestats.iceberg.value_order import Longs, Mask
from icestats.read.manifests.manifests import find_repeated_files
from icestats.read.puffin.committed_partitions import (
    CommittedPartitions,
    read_items_by_partition,
    read_kll_by_partition,
    read_partition_index,
)
from icestats.read.puffin.committed_sketches import (
    CommittedJoint,
    find_joint,
    find_nearest,
    find_stated_type,
    read_frequent_items,
    read_joint,
    read_kll,
)
from icestats.read.puffin.puffin import damage_at
from icestats.read.puffin.statistics_age import MERGED
from icestats.read.puffin.statistics_files import (
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    MANIFEST_STATISTICS,
    PARTITION_SKETCHES,
    THETA,
    CommittedBlob,
)
from icestats.snapshot.evaluation.column_metrics import build_metrics
from icestats.snapshot.evaluation.partition_groups import (
    SpecGroups,
    build_partition_keys,
    group_manifests,
    group_values,
    key_entries,
)
from icestats.snapshot.evaluation.partition_projection import may_mislead
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.kll import KllSketch
from icestats.stats.kll_layout import TEXT_LENGTH
from icestats.stats.partition_sketches import PartitionEntry
from icestats.stats.table_statistics import PartitionKey
from icestats.stats.theta import ThetaSketch

_Read = TypeVar("_Read")
_MOST_LOOKUPS = 100_000
"""Of the parts of a filter in the sketches of partitions: some two seconds."""
_MOST_FILES = 500_000
"""About 250 MB; of the last question they are kept, be they ever so many."""
_NARROWER = {"long": "int", "double": "float"}
"""What a column may have been at a snapshot whose schema is not known any more."""
_LIVE = ("record_count", "file_size_in_bytes", "live_file_count")


@dataclass(frozen=True, slots=True)
class _SketchedColumn:
    """A column's committed sketches by partition: their index, and those that have been read."""

    committed: CommittedPartitions
    entries: Mapping[PartitionKey, PartitionEntry]
    distributions: dict[PartitionKey, Distribution | None]
    common: dict[PartitionKey, FrequentGroup]


class Evidence:
    """Reads what estimates rest on, each once.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self.reader = reader
        self._committed: dict[tuple[str | int, ...], Any] = {}
        self._joint: dict[tuple[int, int], CommittedBlob] | None = None
        self._files: dict[tuple[object, ...], tuple[GroupedEvidence, pa.Table]] = {}
        self._owners: dict[tuple[object, ...], Longs] = {}
        self._changed: dict[int, ChangedRows | None] = {}
        self._repeated: tuple[Finding, ...] = ()
        self._spared: dict[str, Finding] = {}
        self._rests_on_committed = False
        """Whether something that is kept here was read before the manifests were."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the data files whose paths have been read, and which damaged statistics are not used."""
        return tuple(dict.fromkeys((*self._repeated, *self._spared.values(), *self.reader.findings)))

    @property
    def has_committed_rollups(self) -> bool:
        """Whether roll-ups, and which manifests have deletes, are as committed statistics say, once they are read."""
        return self._rests_on_committed or self.reader.known_rollups() is None

    def fill(self, field_ids: Sequence[int], *, partitions: bool) -> None:
        """Read now what sources share: the roll-up by manifest, that by partition if asked for, deletes."""
        if partitions:
            self.reader.fill_rollups(None)
        self.reader.read_manifest_rollups(field_ids)
        self._deletes  # noqa: B018 - kept once it is read

    @cached_property
    def _deletes(self) -> TableDeletes:
        found = build_table_deletes(self.reader, self._read_ndv)
        self._rests_on_committed |= self.has_committed_rollups
        return found

    @cached_property
    def _file_deletes(self) -> FileDeletes | None:
        return read_file_deletes(self.reader) if self._deletes.position_record_count else None

    @cached_property
    def _holds_data(self) -> Mask:
        """Which manifests hold data files; the others hold delete files."""
        return to_numpy(pc.equal(self.reader.manifest_files["content"], "data"))

    @cached_property
    def _data_manifests(self) -> pa.Table:
        return self.reader.manifest_files.filter(pa.array(self._holds_data))

    @cached_property
    def _manifest_bytes(self) -> int:
        """Bytes that hold the roll-up by manifest: the committed blob's where it is read from there, or manifests'."""
        blobs = self.reader.usable_blobs if self.has_committed_rollups else ()
        committed = next((found.blob.length for found in blobs if found.blob.type == MANIFEST_STATISTICS), None)
        return committed or sum_column(self._data_manifests, "manifest_length")

    @cached_property
    def _partition_bytes(self) -> int:
        """Bytes that hold the roll-up by partition: the partition statistics file's, or manifests'."""
        reader = self.reader
        if self.has_committed_rollups and reader.snapshot is not None:
            for file in reader.source.metadata.partition_statistics:
                if file.snapshot_id == reader.snapshot.snapshot_id:
                    return file.file_size_in_bytes
        return sum_column(self._data_manifests, "manifest_length")

    @cached_property
    def _partitions(self) -> tuple[pa.Table, pa.Table]:
        """The partitions that hold data files, and their cells."""
        rollups = self.reader.partition_rollups
        self._rests_on_committed |= self.has_committed_rollups
        has_data = to_numpy(pc.greater(rollups.partitions["data_file_count"], 0))
        return _choose(rollups.partitions, rollups.partition_cells, has_data, len(self.reader.schema.columns))

    def _trust(self, field_ids: Sequence[int]) -> list[int]:
        """Return the columns of which data files' statistics say what readers find."""
        return [field_id for field_id in field_ids if field_id not in self.reader.moved]

    def _build_groups(
        self, unit: str, live: pa.Table, cells: pa.Table, columns: Sequence[Field], field_ids: Sequence[int]
    ) -> GroupEvidence:
        return build_groups(unit, live, cells, columns, self._trust(field_ids), imported=self.reader.imported)

    def read_manifests(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the data manifests with their roll-up."""
        reader = self.reader
        rollups, columns = reader.read_manifest_rollups(field_ids)
        live, cells = _choose(rollups.manifests, rollups.manifest_cells, self._holds_data, len(columns))
        built = self._build_groups("manifest", live, cells, columns, field_ids)
        specs, imported = reader.source.metadata.specs, reader.imported
        by_spec = group_manifests(self._data_manifests, specs, reader.schema, imported=imported)
        return GroupedEvidence(built, by_spec, self._deletes.over(built.row_counts), self._manifest_bytes)

    def read_partitions(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the partitions with their roll-up."""
        partitions, cells = self._partitions
        named = zip(_LIVE, ("data_record_count", "total_data_file_size_in_bytes", "data_file_count"), strict=True)
        live = pa.table({name: partitions[own] for name, own in named})
        built = self._build_groups("partition", live, cells, self.reader.schema.columns, field_ids)
        by_spec = self._group_values(partitions)
        return GroupedEvidence(built, by_spec, self._deletes.of_partitions(partitions), self._partition_bytes)

    def read_table(self, field_ids: Sequence[int]) -> GroupedEvidence:
        """Return the table as one group."""
        rollups, columns = self.reader.read_manifest_rollups(field_ids)
        manifests = rollups.manifests.filter(pa.array(self._holds_data))
        live = pa.table({name: [sum_column(manifests, name)] for name in _LIVE})
        built = self._build_groups("table", live, rollups.table_cells, columns, field_ids)
        return GroupedEvidence(
            built, self._find_misleading(field_ids), self._deletes.over(built.row_counts), self._manifest_bytes
        )

    def _find_misleading(self, field_ids: Sequence[int]) -> list[SpecGroups]:
        """Return the partition fields of some columns that may say of a manifest what is not so of its values."""
        if not self.reader.imported:
            return []
        specs = self.reader.source.metadata.specs.values()
        if not any(field.source_id in field_ids for spec in specs for field in spec.fields):
            return []
        partitions, found = self.read_partitions(field_ids), []
        values = {field_id: column.metrics for field_id, column in partitions.groups.columns.items()}
        for one in partitions.by_spec:
            fields = [field for field in one.spec.fields if field.source_id in field_ids]
            misleading = tuple(field for field in fields if may_mislead(one, field, values.get(field.source_id)).any())
            found.append(SpecGroups(replace(one.spec, fields=misleading), np.zeros(1, np.int64), {}, imported=True))
        return found

    def read_files(self, question: Question) -> GroupedEvidence:
        """Return the data files, with their statistics, of the manifests that partition summaries leave."""
        return self._fill_files(question)[1][0]

    def read_parts(self, question: Question) -> tuple[GroupedEvidence, Longs]:
        """Return the same, and which of `read_partitions` each data file is in."""
        key, (found, files) = self._fill_files(question)
        owners = self._owners.get(key)
        if owners is None:
            owners = self._owners[key] = _find_owners(files, self._partitions[0])
        return found, owners

    def _fill_files(self, question: Question) -> tuple[tuple[object, ...], tuple[GroupedEvidence, pa.Table]]:
        """Read the data files of a question unless that has been done, and return the key that they go by, and them."""
        kept = keep_by_partition(question, self.read_manifests(()))
        key = (tuple(kept.places.tolist()), tuple(sorted(question.field_ids)), question.columns is None)
        found = self._files.get(key)
        if found is None:
            manifests = self._data_manifests.take(pa.array(kept.places))
            found = self._read_files(manifests, question.field_ids, whole=question.columns is None)
            self._files[key] = found
            self._forget_files()
        return key, found

    def _forget_files(self) -> None:
        """Forget the data files of the first questions, so that those of many filters do not add up."""
        while len(self._files) > 1 and sum(len(files) for _, files in [*self._files.values()]) > _MOST_FILES:
            first = next(iter(self._files))
            self._files.pop(first, None)
            self._owners.pop(first, None)

    def _read_files(
        self, manifests: pa.Table, field_ids: Sequence[int], *, whole: bool
    ) -> tuple[GroupedEvidence, pa.Table]:
        reader, deletes = self.reader, self._file_deletes
        fields = reader.schema.select(self._trust(field_ids))
        if whole:
            # Faster, without the sizes of columns, and a plan may have read them.
            files = reader.planned_files.read(manifests, [field.field_id for field in fields])
        else:
            files = reader.read_files(field_ids, manifests)
        self._repeated = find_repeated_files(files) or self._repeated
        rows = as_floats(files["record_count"])
        columns = {}
        for field in fields:
            known = {name: _of_column(files, name, field.field_id) for name in (*PLANNING_STATISTICS, "column_size")}
            metrics = build_metrics(field, to_numpy(files["record_count"]), known)
            metrics = metrics.without_milliseconds() if reader.imported else metrics
            columns[field.field_id] = build_column_evidence(metrics, rows, known["column_size"])
        groups = GroupEvidence("data file", rows, as_floats(files["file_size_in_bytes"]), columns)
        read = sum_column(manifests, "manifest_length") + (0 if deletes is None else deletes.bytes_read)
        found = GroupedEvidence(groups, self._group_values(files), self._deletes.of_files(files, deletes), read)
        return found, files.select(["partition", "spec_id"])

    def _group_values(self, groups: pa.Table) -> list[SpecGroups]:
        reader = self.reader
        return group_values(groups, reader.source.metadata, reader.schema, imported=reader.imported)

    def read_distribution(self, field: Field) -> Distribution | None:
        """Return a column's nearest committed KLL sketch."""
        return self._read_once(KLL, field, self._read_distribution)

    def read_distinct(self, field: Field) -> DistinctValues | None:
        """Return a column's nearest committed Theta sketch."""
        return self._read_once(THETA, field, self._read_distinct)

    def read_frequent(self, field: Field) -> FrequentColumn | None:
        """Return a column's nearest committed common values."""
        return self._read_once(FREQUENT_ITEMS, field, self._read_frequent)

    def _read_frequent(self, field: Field) -> FrequentColumn:
        found = read_frequent_items(self.reader.source.storage, self.reader.usable_blobs, field)
        ends = None
        distinct, distribution = self.spare(self.read_distinct, field), self.spare(self.read_distribution, field)
        if distribution is not None and distribution.sketch.n == found.values.value_count > 0:
            nearest = find_nearest(self.reader.usable_blobs, KLL, field)
            if nearest.blob.snapshot_id == found.snapshot_id:
                ends = distribution.sketch.min_value, distribution.sketch.max_value
        count = found.values.value_count + found.null_count + found.nan_count
        rows = self._count_rows(count, found.snapshot_id, found.commits_behind, field.name)
        blob = find_nearest(self.reader.usable_blobs, FREQUENT_ITEMS, field)
        what, table = f"the frequent items of column {field.name!r}", self.read_table(())
        check_rows(blob, f"{what} are", rows, table, NEVER_IN_TABLE)
        column = FrequentColumn(
            values=found.values,
            null_count=found.null_count,
            nan_count=found.nan_count,
            ndv=math.nan if distinct is None else distinct.theta.estimate(),
            distribution=distribution,
            rows=rows,
            size_bytes=found.size_bytes,
            ends=ends,
        )
        items = [] if found.values.is_cut else [value for value, item in column.by_value.items() if item.lower]
        check_values(blob, f"{what} have", items, rows, field.field_id, self.read_table)
        return column

    def spare(self, read: Callable[..., _Read | None], *of: Any) -> _Read | None:
        """Read what an answer can do without: None where it is damaged, and a finding says so."""
        try:
            return read(*of)
        except MetadataError as error:
            self._spared[error.path] = Finding("warning", "committed statistics are not used", str(error))
            return None

    def read_together(
        self, field_ids: Collection[int], *, is_needed: bool = True
    ) -> dict[tuple[int, int], JointColumns]:
        """Return the nearest committed statistics of columns together, of those that have some.

        Where they are not needed, those that are damaged are left out.
        """
        if self._joint is None:
            self._joint = find_joint(self.reader.usable_blobs)
        wanted = [pair for pair in self._joint if set(pair) <= set(field_ids)]
        ask = self._read_joint if is_needed else partial(self.spare, self._read_joint)
        read = {pair: ask(pair, self._joint[pair]) for pair in wanted}
        return {pair: found for pair, found in read.items() if found is not None}

    def _read_joint(self, pair: tuple[int, int], blob: CommittedBlob) -> JointColumns | None:
        key = (JOINT_STATISTICS, *pair)
        if key not in self._committed:
            found = read_joint(self.reader.source.storage, blob, self.reader.schema)
            self._committed[key] = None if found is None else self._build_joint(pair, blob, found)
        joint: JointColumns | None = self._committed[key]
        return joint

    def _build_joint(self, pair: tuple[int, int], blob: CommittedBlob, found: CommittedJoint) -> JointColumns:
        fields = self.reader.schema.select(pair)
        names = " and ".join(field.name for field in fields)
        rows = self._count_rows(found.statistics.row_count, found.snapshot_id, found.commits_behind, names)
        what = f"the joint statistics of columns {names} are"
        check_rows(blob, what, rows, self.read_table(()), NEVER_IN_TABLE)
        one, other = (self.spare(self.read_frequent, field) for field in fields)
        return JointColumns(found.statistics, rows, found.size_bytes, (one, other))

    def _read_once(self, blob_type: str, field: Field, read: Callable[[Field], _Read]) -> _Read | None:
        """Read what has been committed of a column, unless that has been done; None: nothing has."""
        key = (blob_type, field.field_id)
        if key not in self._committed:
            try:
                self._committed[key] = read(field)
            except StatisticsMissingError:
                self._committed[key] = None
        found: _Read | None = self._committed[key]
        return found

    def _read_distribution(self, field: Field) -> Distribution:
        blob = find_nearest(self.reader.usable_blobs, KLL, field)
        size_bytes = blob.blob.length
        kll = read_kll(self.reader.source.storage, self.reader.usable_blobs, field)
        nulls, nans = kll.null_count, kll.nan_count if field.has_nan else 0
        if nulls is None or nans is None:
            rows = self._count_rows(math.nan, kll.snapshot_id, kll.commits_behind, field.name)
            return Distribution(kll.sketch, None, None, size_bytes, rows)
        count = kll.sketch.n + nulls + nans
        rows = self._count_rows(count, kll.snapshot_id, kll.commits_behind, field.name)
        what, sketch = f"the KLL sketch of column {field.name!r}", kll.sketch
        check_rows(blob, f"{what} is", rows, self.read_table(()), NEVER_IN_TABLE)
        ends = (
            [end for end in (sketch.min_value, sketch.max_value) if not isinstance(end, str) or len(end) < TEXT_LENGTH]
            if sketch.n
            else []
        )
        check_values(blob, f"{what} has", ends, rows, field.field_id, self.read_table)
        return Distribution(kll.sketch, nulls / max(count, 1), nans / max(count, 1), size_bytes, rows)

    def _count_rows(self, count: float, snapshot_id: int, commits_behind: int, names: str) -> SketchedRows:
        """Return the rows that a committed sketch of one or more columns has counted, and what has changed since."""
        age = self._find_age(snapshot_id, commits_behind)
        added, removed = np.array([age.added]), np.array([age.removed])
        return SketchedRows(np.array([float(count)]), added, removed, age.describe(names))

    def _find_age(self, snapshot_id: int, commits_behind: int) -> SketchAge:
        changed = self._find_changed(snapshot_id) if commits_behind else None
        added, removed = (0.0, 0.0) if not commits_behind else (np.inf, np.inf) if changed is None else changed.total
        return SketchAge(snapshot_id, commits_behind, added, removed)

    def _find_changed(self, snapshot_id: int) -> ChangedRows | None:
        """Return what has changed since an ancestor; None: its manifests are gone, so anything may have."""
        if snapshot_id not in self._changed:
            try:
                self._changed[snapshot_id] = find_changed_rows(self.reader, snapshot_id)
            except MetadataError:
                self._changed[snapshot_id] = None
        return self._changed[snapshot_id]

    def _read_distinct(self, field: Field) -> DistinctValues:
        found = find_nearest(self.reader.usable_blobs, THETA, field)
        what = f"the Theta sketch of column {field.name!r}"
        theta = found.read(self.reader.source.storage, what, ThetaSketch.from_bytes)
        notes = self._find_age(found.blob.snapshot_id, found.commits_behind or 0).describe(field.name)
        if found.is_merged:
            notes += (f"the sketch of {field.name} is one that {MERGED}",)
        earlier_type = self._find_earlier_type(field, found)
        hashing = found.find_hashing(field.type)
        return DistinctValues(theta, found.blob.length, notes, earlier_type, hashing, found.is_merged)

    def _find_earlier_type(self, field: Field, sketch: CommittedBlob) -> str:
        """Return another type that a column's sketch may be of; nothing where there is none."""
        source = self.reader.source
        stated = find_stated_type(source.storage, self.reader.usable_blobs, sketch)
        known = [schema.get(field.field_id) for schema in source.metadata.schemas.values()]
        types = {one.type for one in known if one is not None} if stated is None else {stated}
        schema_id = source.metadata.snapshots[sketch.blob.snapshot_id].schema_id
        if stated is None and schema_id not in source.metadata.schemas:
            types.add(_NARROWER.get(field.type, field.type))
        now = field.type.partition("(")[0]
        return min((one for one in types if one.partition("(")[0] != now), default="")

    def _read_ndv(self, field_id: int) -> float | None:
        """Return the number of distinct values of a column; None: unknown, or its statistics file is damaged."""
        field = self.reader.schema.get(field_id)
        try:
            found = None if field is None else self.read_distinct(field)
        except MetadataError:
            return None
        return None if found is None else found.theta.estimate()

    def estimate_in_partitions(self, leaf: Leaf, places: Longs) -> Sketched:
        """Estimate a predicate in some partitions by their sketches.

        Parameters
        ----------
        leaf : Leaf
            The predicate.
        places : numpy.ndarray of int64
            Which of `read_partitions` they are.
        """
        if (unknown := _refuse_long(leaf, len(places))) is not None:
            return unknown
        wanted = self.reader.schema.find(leaf.column)
        column = self._read_once(PARTITION_SKETCHES, wanted, self._read_index)
        if column is None:
            reason = f"{leaf.text}: no sketches of {leaf.column} by partition are committed"
            return Sketched(build_unknown(reason, len(places)))
        keys = [self._partition_keys[place] for place in places.tolist()]
        entries = [column.entries[key] for key in keys if key in column.entries]
        if missing := len(keys) - len(entries):
            reason = f"{leaf.text}: no sketch of {leaf.column} for {missing:,} of {counted(len(keys), 'partition')}"
            return Sketched(build_unknown(reason, len(keys)))
        self._read_distributions(column, entries)
        found = [column.distributions[entry.key] for entry in entries]
        # What is rare in each of many partitions may be frequent enough in all of them together.
        selectivity = estimate_kll(leaf, found, rare_is_unknown=False)
        read = [one for one in found if one is not None]
        return Sketched(selectivity, sum(o.sketch.retained_count for o in read), sum(o.size_bytes for o in read))

    def _read_distributions(self, column: _SketchedColumn, entries: Sequence[PartitionEntry]) -> None:
        lacking = [entry for entry in entries if entry.key not in column.distributions]
        sketches = read_kll_by_partition(self.reader.source.storage, column.committed, lacking)
        column.distributions.update((entry.key, _build_distribution(entry, sketches)) for entry in lacking)

    def count_common_in_partitions(self, leaf: Leaf, places: Longs) -> Sketched:
        """Estimate a predicate in some partitions by their common values; parameters as for `estimate_in_partitions`.

        A partition whose common values have not been kept is unknown.
        """
        if (refused := _refuse_long(leaf, len(places))) is not None:
            return refused
        column = self._read_once(PARTITION_SKETCHES, self.reader.schema.find(leaf.column), self._read_index)
        entries = {} if column is None else column.entries
        keys = [self._partition_keys[place] for place in places.tolist()]
        kept = [entries[key] for key in keys if key in entries and entries[key].items_length]
        reason = f"{leaf.text}: no common values of {leaf.column} for {len(keys) - len(kept):,} of "
        unknown = build_unknown(reason + counted(len(keys), "partition"))
        if column is None or not kept:
            return Sketched(join_groups([unknown] * len(keys)))
        self._read_common(column, kept)
        of_keys = [column.common.get(column.entries[key].key) if key in entries else None for key in keys]
        found = [unknown if one is None else estimate_common(leaf, one) for one in of_keys]
        read = [one for one in of_keys if one is not None]
        return Sketched(join_groups(found), sum(len(o.values.items) for o in read), sum(o.size_bytes for o in read))

    def _read_common(self, column: _SketchedColumn, entries: Sequence[PartitionEntry]) -> None:
        lacking = [entry for entry in entries if entry.key not in column.common]
        self._read_distributions(column, lacking)
        read = read_items_by_partition(self.reader.source.storage, column.committed, lacking)
        for entry in lacking:
            values, ends = read[entry.key], None
            figures = entry.figures
            if figures.min_value is not None and figures.max_value is not None:
                low, high = (decode_value(values.type, end) for end in (figures.min_value, figures.max_value))
                ends = build_item(values.type, low), build_item(values.type, high)
            column.common[entry.key] = FrequentGroup(
                values=values,
                null_count=figures.null_value_count,
                nan_count=figures.nan_value_count,
                ndv=math.nan if entry.ndv is None else float(entry.ndv),
                distribution=column.distributions[entry.key],
                size_bytes=entry.items_length,
                ends=ends,
            )

    def count_in_partitions(self, leaf: Leaf, places: Longs) -> SketchedRows:
        """Return the rows that the sketches of a predicate's column have counted in some of `read_partitions`.

        Unknown where they are damaged.
        """
        column = self.spare(self._read_once, PARTITION_SKETCHES, self.reader.schema.find(leaf.column), self._read_index)
        if column is None:
            nothing = np.zeros(len(places))
            return SketchedRows(np.full(len(places), np.nan), nothing, nothing)
        return self._count_sketched(column, places, leaf.column)

    def _count_sketched(self, column: _SketchedColumn, places: Longs, name: str) -> SketchedRows:
        keys = [self._partition_keys[place] for place in places.tolist()]
        entries = [None if key is None else column.entries.get(key) for key in keys]
        rows = np.array([np.nan if entry is None else entry.figures.value_count for entry in entries], np.float64)
        snapshot_id, commits = column.committed.snapshot_id, column.committed.commits_behind
        age, since = self._find_age(snapshot_id, commits), self._changed.get(snapshot_id)
        changed = [(age.added, age.removed) if since is None else since.of_partition(key) for key in keys]
        added, removed = np.array(changed, np.float64).reshape(-1, 2).T
        return SketchedRows(rows, added, removed, age.describe(name))

    def _read_index(self, field: Field) -> _SketchedColumn:
        reader = self.reader
        committed = read_partition_index(reader.source.storage, reader.usable_blobs, field)
        sketched = (entry for entry in committed.index.partitions if entry.has_sketches)
        entries = key_entries(sketched, reader.source.metadata, reader.schema)
        column = _SketchedColumn(committed, entries, {}, {})
        self._check_partitions(column, field)
        return column

    def _check_partitions(self, column: _SketchedColumn, field: Field) -> None:
        """Refuse sketches of another number of rows than the manifests leave possible in their partition."""
        partitions = self.read_partitions(())
        rows = self._count_sketched(column, np.arange(len(partitions.groups.row_counts)), field.name)
        found = find_nearest(self.reader.usable_blobs, PARTITION_SKETCHES, field)
        what = f"the sketches of column {field.name!r} by partition"
        check_rows(found, f"{what} are", rows, partitions, NEVER_IN_PARTITION)
        type_text, known = column.committed.index.type, (column.entries.get(key) for key in self._partition_keys if key)
        figures = [entry.figures for entry in known if entry]
        ends = {end for one in figures for end in (one.min_value, one.max_value) if end is not None}
        with damage_at(found.statistics_path, found.blob.offset, what):
            values = [build_item(type_text, decode_value(type_text, end)) for end in ends]
        check_values(found, f"{what} have", values, rows, field.field_id, self.read_table)

    @cached_property
    def _partition_keys(self) -> list[PartitionKey | None]:
        return build_partition_keys(self._partitions[0], self.reader.source.metadata, self.reader.schema)


def _find_owners(files: pa.Table, partitions: pa.Table) -> Longs:
    """Return which partition each data file is in; -1: none that is known."""
    both, count = (partitions, files), len(partitions)
    if partitions["partition"].type != files["partition"].type:
        return np.full(len(files), -1)
    values = pa.concat_arrays([combine_chunks(one["partition"]) for one in both])
    spec_ids = np.concatenate([to_numpy(one["spec_id"]) for one in both])
    places = [to_numpy(value.dictionary_encode().indices, null=-1) for value in values.flatten()]
    _, groups = np.unique(np.column_stack([spec_ids, *places]), axis=0, return_inverse=True)
    groups, owners = groups.reshape(-1), np.full(len(values), -1)
    owners[groups[:count]] = np.arange(count)
    found: Longs = owners[groups[count:]]
    return found


def _choose(groups: pa.Table, cells: pa.Table, chosen: Mask, width: int) -> tuple[pa.Table, pa.Table]:
    """Return some of the groups of a roll-up, and their cells, `width` a group."""
    if chosen.all():
        return groups, cells
    return groups.filter(pa.array(chosen)), cells.filter(pa.array(np.repeat(chosen, width)))


def _refuse_long(leaf: Leaf, partition_count: int) -> Sketched | None:
    count = len(leaf.values.intervals)
    if count * partition_count <= _MOST_LOOKUPS:
        return None
    reason = (
        f"{leaf.column}: {count:,} values or ranges are too many to look up in each of {partition_count:,} partitions"
    )
    return Sketched(build_unknown(reason, partition_count))


def _build_distribution(entry: PartitionEntry, sketches: Mapping[PartitionKey, KllSketch]) -> Distribution | None:
    if entry.key not in sketches:
        return None
    figures, rows = entry.figures, max(entry.figures.value_count, 1)
    nulls, nans = figures.null_value_count / rows, figures.nan_value_count / rows
    return Distribution(sketches[entry.key], nulls, nans, entry.kll_length)


def _of_column(files: pa.Table, statistic: str, field_id: int) -> pa.Array:
    flat = f"{statistic}_{field_id}"
    if flat in files.column_names:
        return combine_chunks(files[flat])
    if f"{statistic}s" not in files.column_names:
        return pa.nulls(files.num_rows, pa.int64())
    return pc.map_lookup(combine_chunks(files[f"{statistic}s"]), pa.scalar(field_id, pa.int32()), "last")
