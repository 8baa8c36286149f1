"""What a scan of a snapshot will read, and by which way: planned on the driver, and done here where it is small."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks
from icestats.answers.findings import Finding
from icestats.answers.redaction import explained
from icestats.answers.text import one_line
from icestats.errors import (
    CallError,
    IcestatsError,
    MetadataError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.confined_io import UNREAD_SCHEMA, allow_null_structs
from icestats.iceberg.metadata import Field, Schema, Snapshot, TableMetadata, match_names
from icestats.iceberg.partition_columns import (
    VOID,
    PartitionColumn,
    encode_values,
    find_partition_columns,
    find_retyped_fields,
)
from icestats.iceberg.types import to_arrow_type
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import find_repeated_files, manifests_to_read, read_files
from icestats.scan.scan_job import (
    Accumulators,
    FileReading,
    ScanJob,
    Sizes,
    column_accumulators,
    pair_accumulators,
    read_here,
)
from icestats.scan.scan_progress import describe_reading
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.table_statistics import (
    ColumnStatistics,
    PartitionKey,
    ScannedPartitions,
    TableStatistics,
    count_distinct,
    sort_partitions,
)

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestEntry, ManifestFile
    from pyiceberg.table import DataScan, FileScanTask
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

_METRICS = range(6, 12)
"""Where a data file of PyIceberg's has the metrics of columns: from column_sizes to upper_bounds."""
_REFERRING = ("file_path", "referenced_data_file")
_READABLE = {"data": frozenset({"PARQUET"}), "delete": frozenset({"PARQUET", "PUFFIN"})}

SMALL_SCAN_BYTES = 128 << 20
"""Files of so many bytes together are one task of Spark's."""


@dataclass(frozen=True)
class ScanPlan:
    """A scan that can start."""

    source: Source
    snapshot: Snapshot
    read_schema: Schema
    """The schema that the snapshot is read with."""
    fields: tuple[Field, ...]
    """The columns that get statistics."""
    skipped: Mapping[str, str]
    """Columns that do not, and why."""
    file_count: int
    tasks: tuple[FileScanTask, ...]
    """What PyIceberg reads; nothing where Spark itself has to."""
    fallback: str | None
    """Why Spark itself has to read the table; None: PyIceberg can."""
    reading: FileReading
    """What PyIceberg reads them with: of the schema only the columns that get statistics."""
    partitions: Mapping[str, PartitionKey] | None
    """The partition of each data file by its path; None where statistics by partition are not asked for."""
    partition_row_counts: Mapping[PartitionKey, int]
    """Rows of the data files of each partition, row-level deletes not deducted."""
    table_size_bytes: int | None
    """Bytes of all data files of the snapshot; None where some of them are to be read."""
    findings: tuple[Finding, ...] = ()
    """Data files that are in the table twice."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Columns that get statistics together, by their places in `fields`."""

    def describe(self) -> str:
        """Return in a line what the scan reads."""
        size = sum(task.file.file_size_in_bytes for task in self.tasks)
        size = size if self.table_size_bytes is None else self.table_size_bytes
        of_columns = len(self.read_schema.top_level)
        return describe_reading(self.source.name, len(self.fields), of_columns, self.file_count, size)


def select_columns(fields: Sequence[Field], columns: Sequence[str] | None) -> tuple[tuple[Field, ...], dict[str, str]]:
    """Return the columns that get statistics, and those that do not with the reason.

    Parameters
    ----------
    fields : sequence of Field
        The table's top-level fields.
    columns : sequence of str or None
        Names or patterns that are asked for, as `match_names` has them; None for all.

    Raises
    ------
    ColumnNotFoundError
        A name is not among the fields, or a pattern matches none of them.
    """
    names = None if columns is None else match_names(columns, [field.name for field in fields])
    asked = [field for field in fields if names is None or field.name in names]
    skipped = {field.name: reason for field in asked if (reason := can_sketch(field)) is not None}
    return tuple(field for field in asked if field.name not in skipped), skipped


def prepare_scan(
    source: Source,
    snapshot: Snapshot,
    schema: Schema,
    columns: Sequence[str] | None = None,
    *,
    by_partition: bool = False,
    tasks: Sequence[FileScanTask] | None = None,
) -> ScanPlan:
    """Plan the scan of a snapshot.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot whose live rows are read.
    schema : Schema
        The schema to read it with.
    columns : sequence of str, optional
        Top-level columns, by names or patterns; by default all.
    by_partition : bool
        Whether statistics of each partition are wanted.
    tasks : sequence of pyiceberg.table.FileScanTask, optional
        Read these files only.

    Raises
    ------
    ColumnNotFoundError
        The table has no such column.
    CallError
        Statistics by partition are asked for, and the table is not partitioned.
    SnapshotNotFoundError
        The table no longer has the snapshot.
    UnsupportedError
        `tasks` has a file that PyIceberg cannot read: Spark reads whole snapshots only.
    """
    fields, skipped = select_columns(schema.top_level, columns)
    if by_partition and not source.metadata.has_partition_fields:
        raise CallError(f'{source.name} is not partitioned: by="partition" needs partitions, leave it out')
    every = _read_all_files(source, snapshot) if tasks is None else None
    files = None if every is None else every.filter(pc.equal(every["content"], "data"))
    scan = _open(source, snapshot, schema, every, keeps_metrics=False)
    fallback = None
    if files is not None:
        tasks, fallback = _plan_tasks(source, scan, files.num_rows)
    elif (reason := find_unread(source) or find_unreadable(tasks or ())) is not None:
        raise UnsupportedError(f"some files of {source.name} cannot be read alone: {reason}; scan the whole snapshot")
    partitions = find_partitions(files, source.metadata) if files is not None and by_partition else None
    counts: Counter[PartitionKey] = Counter()
    if files is not None and partitions is not None:
        for path, row_count in zip(files["file_path"].to_pylist(), files["record_count"].to_pylist(), strict=True):
            counts[partitions[path]] += row_count
    try:
        projection = scan.projection().select(*(field.name for field in fields))
    except ValueError as error:
        raise MetadataError(
            f"PyIceberg reads its schema otherwise: {one_line(error)}", source.metadata_location
        ) from error
    return ScanPlan(
        source=source,
        snapshot=snapshot,
        read_schema=schema,
        fields=fields,
        skipped=skipped,
        file_count=len(tasks or ()) if files is None else files.num_rows,
        tasks=tuple(tasks or ()),
        fallback=fallback,
        reading=FileReading(scan.table_metadata, scan.io, projection),
        partitions=partitions,
        partition_row_counts=counts,
        findings=() if files is None else find_repeated_files(files),
        table_size_bytes=None if files is None else int(pc.sum(files["file_size_in_bytes"]).as_py() or 0),
    )


def open_scan(source: Source, snapshot: Snapshot, schema: Schema) -> DataScan:
    """Open PyIceberg's scan of a snapshot's live rows with a schema: PyIceberg itself takes the snapshot's own.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot.
    schema : Schema
        The schema to read it with: see `TableMetadata.find_schema`.

    Raises
    ------
    UnsupportedError
        PyIceberg reads no data file of the table.
    SnapshotNotFoundError
        The table no longer has the snapshot or the schema.
    MetadataError
        A manifest cannot be read, or is beyond the limits.

    Notes
    -----
    The scan is of a copy of the metadata whose current snapshot and schema are these, so that filters are projected to
    partitions with the same schema, which PyIceberg takes the current one for. A manifest that the list names twice is
    read once. PyIceberg reads manifests without limits, so that they are read here first.
    """
    if (reason := find_unread(source)) is not None:
        raise UnsupportedError(f"the rows of {source.name} cannot be read without Spark: {reason}")
    return _open(source, snapshot, schema, _read_all_files(source, snapshot), keeps_metrics=True)


def _open(
    source: Source, snapshot: Snapshot, schema: Schema, files: pa.Table | None, *, keeps_metrics: bool
) -> DataScan:
    """Open a scan that plans these files, of any content; without metrics of columns it is of all data files."""
    table = load_iceberg_table(source)
    metadata = table.metadata
    known = metadata.snapshot_by_id(snapshot.snapshot_id)
    if known is None:
        raise _gone(source, f"snapshot {snapshot.snapshot_id}")
    if all(one.schema_id != schema.schema_id for one in metadata.schemas):
        raise _gone(source, f"schema {schema.schema_id}")
    pinned = {
        "schemas": [allow_null_structs(one) for one in metadata.schemas],
        "snapshots": [_distinct_snapshot(keeps_metrics).model_validate(known, from_attributes=True)],
        "current_snapshot_id": snapshot.snapshot_id,
        "current_schema_id": schema.schema_id,
    }
    # PyIceberg leaves out files without rows, as migrated tables have, and these are counted too.
    options = {"include_empty_files": "true"}
    return _referring_scan(files)(metadata.model_copy(update=pinned), table.io, options=options)


def _referring_scan(files: pa.Table | None) -> type[DataScan]:
    """Return the class of a scan in which a delete file is about no data file but the one that its manifest names.

    PyIceberg 0.12 reads of no manifest which data file a deletion vector is about. Its Puffin file may still have a
    vector for another one, from which the table has taken it away.
    """
    from pyiceberg.table import DataScan

    if files is None:
        return DataScan
    named: defaultdict[str, set[str | None]] = defaultdict(set)
    deletes = files.filter(pc.not_equal(files["content"], "data"))
    for path, data_file in zip(*(deletes[name].to_pylist() for name in _REFERRING), strict=True):
        named[path].add(data_file)

    class ReferringScan(DataScan):
        def plan_files(self) -> list[FileScanTask]:
            tasks = list(super().plan_files())
            for task in tasks:
                own = {task.file.file_path, None}
                task.delete_files = {one for one in task.delete_files if named[one.file_path] & own}
            return tasks

    return ReferringScan


@cache
def _distinct_snapshot(keeps_metrics: bool) -> type[IcebergSnapshot]:
    from pyiceberg.manifest import ManifestContent, ManifestFile
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    class LeanManifest(ManifestFile):
        """A manifest of data files without the metrics of columns: nine tenths of what its entries take."""

        def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
            """Return the entries."""
            entries = super().fetch_manifest_entry(io, discard_deleted)
            for entry in entries:
                for place in _METRICS:
                    entry.data_file[place] = None
            return entries

    class DistinctSnapshot(IcebergSnapshot):
        """A snapshot that gives a manifest once, however often its list names it.

        So does Iceberg's Java library (`ManifestGroup`); PyIceberg 0.12 reads the files' rows as often.
        """

        def manifests(self, io: FileIO) -> list[ManifestFile]:
            """Return the manifests, each where its list has it first."""
            found: dict[str, ManifestFile] = {}
            for manifest in super().manifests(io):
                if not keeps_metrics and manifest.content == ManifestContent.DATA:
                    manifest = LeanManifest(*(manifest[place] for place in range(len(manifest))))
                found.setdefault(manifest.manifest_path, manifest)
            return list(found.values())

    return DistinctSnapshot


def _gone(source: Source, what: str) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(f"{source.name} has no {what} any more: load the table anew, or refresh() it")


def _plan_tasks(source: Source, scan: DataScan, file_count: int) -> tuple[Sequence[FileScanTask], str | None]:
    from pyiceberg.exceptions import ResolveError

    if (reason := find_unread(source)) is not None:
        return (), reason
    location = source.metadata_location
    known = source.storage.properties
    with explained(lambda said: MetadataError(f"its manifests cannot be read: {said}", location), known):
        try:
            tasks: list[FileScanTask] = list(scan.plan_files())
        except (*UNREAD_SCHEMA, LookupError, ResolveError) as error:
            if "equality deletes" in str(error):
                return (), "the table has equality deletes, which PyIceberg cannot apply"
            return (), f"PyIceberg cannot plan the scan: {one_line(error)}"
    if len(tasks) != file_count:
        # PyIceberg 0.12 takes the place where a manifest is cut for its end.
        raise MetadataError(
            f"its manifests have {file_count:,} data files, of which {len(tasks):,} were found: one of them was cut "
            "while it was read, try again",
            source.metadata_location,
        )
    reason = find_unreadable(tasks)
    return (tasks, None) if reason is None else ((), reason)


def find_unread(source: Source) -> str | None:
    """Return why PyIceberg reads no data file of a table, on no machine; None: it reads those whose format it knows.

    Notes
    -----
    The parts of a variant in a Parquet file have no field ids, which PyIceberg 0.12 wants of all that is in a file.
    """
    if source.storage.file_io is not None:
        return "its files are opened by Spark's own catalog, which PyIceberg does not know"
    fields = (field for schema in source.metadata.schemas.values() for field in schema.fields)
    found = next((field for field in fields if field.type == "variant"), None)
    return None if found is None else f"its column {found.name} is of type variant, which PyIceberg cannot read"


def find_unreadable(tasks: Sequence[FileScanTask]) -> str | None:
    """Return why PyIceberg cannot read files and their deletes safely; None where it can."""
    files = {"data": [task.file for task in tasks], "delete": [file for task in tasks for file in task.delete_files]}
    for what, readable in _READABLE.items():
        if formats := sorted({str(file.file_format).rpartition(".")[2].upper() for file in files[what]} - readable):
            return f"it has {what} files in {' and '.join(formats)}, which PyIceberg cannot read safely"
    return None


def _read_all_files(source: Source, snapshot: Snapshot) -> pa.Table:
    """Read all manifests, so that those of deletes are within the limits too."""
    manifests = manifests_to_read(read_manifest_list(source.storage, snapshot))
    return read_files(manifests, source.metadata, source.storage)


def find_partitions(files: pa.Table, metadata: TableMetadata) -> dict[str, PartitionKey]:
    """Return the partition of each file by its path, of files as `read_files` gives them."""
    return dict(zip(files["file_path"].to_pylist(), build_scanned_keys(files, metadata), strict=True))


def build_scanned_keys(groups: pa.Table, metadata: TableMetadata) -> list[PartitionKey]:
    """Return the partition of each row of a table that has `partition` and `spec_id`."""
    structs, columns = combine_chunks(groups["partition"]), enumerate(_partition_columns(metadata))
    retyped = find_retyped_fields(metadata.specs, metadata.schemas_by_age)
    by_field = {
        one.field_id: encode_values(values, _type_of(values, (one.type, *retyped.get(one.field_id, ()))))
        for one, values in ((one, structs.field(i)) for i, one in columns)
        if one.type is not None
    }
    keys: dict[PartitionKey, PartitionKey] = {}
    found = []
    for row, spec_id in enumerate(groups["spec_id"].to_pylist()):
        fields = [one for one in metadata.specs[spec_id].fields if one.transform == VOID or one.field_id in by_field]
        # A void value is null, also where the type of its column is not known any more.
        values = ((one.field_id, None if one.transform == VOID else by_field[one.field_id][row]) for one in fields)
        key = PartitionKey(spec_id, tuple(values))
        found.append(keys.setdefault(key, key))
    return found


def find_key_types(metadata: TableMetadata) -> dict[int, str]:
    """Return the types of the values in the keys of `find_partitions`, by partition field id."""
    return {one.field_id: one.type for one in _partition_columns(metadata) if one.type is not None}


def _type_of(values: pa.Array, types: Sequence[str]) -> str:
    """Return the first of the types that values may be of; where none fits, the first."""
    return next((one for one in types if to_arrow_type(one) == values.type), types[0])


def _partition_columns(metadata: TableMetadata) -> tuple[PartitionColumn, ...]:
    return find_partition_columns(metadata.specs, metadata.schemas_by_age)


def build_statistics(
    plan: ScanPlan,
    sizes: Sizes,
    accumulators: Accumulators,
    partitions: Mapping[PartitionKey, Sequence[ColumnStatistics]],
    started: float,
) -> TableStatistics:
    """Build what a scan has found; it started at this reading of `time.perf_counter`."""
    results = {field.name: a.result() for field, a in zip(plan.fields, column_accumulators(accumulators), strict=True)}
    ndvs = [count_distinct(results[field.name]) for field in plan.fields] if plan.pairs else []
    pairs = zip(plan.pairs, pair_accumulators(accumulators), strict=True)
    return TableStatistics(
        snapshot_id=plan.snapshot.snapshot_id,
        sequence_number=plan.snapshot.sequence_number,
        row_count=next((r.value_count for r in results.values()), None),
        file_count=plan.file_count,
        duration_ms=round((time.perf_counter() - started) * 1000),
        columns=results,
        skipped=plan.skipped,
        table_size_bytes=plan.table_size_bytes,
        findings=plan.findings,
        by_partition=None if plan.partitions is None else _build_partitions(plan, sizes, partitions),
        together=tuple(found.result((ndvs[one], ndvs[other])) for (one, other), found in pairs),
    )


def _build_partitions(
    plan: ScanPlan, sizes: Sizes, found: Mapping[PartitionKey, Sequence[ColumnStatistics]]
) -> ScannedPartitions:
    names, ordered = [field.name for field in plan.fields], sort_partitions(found)
    columns = {name: {key: results[i] for key, results in ordered.items()} for i, name in enumerate(names)}
    return ScannedPartitions(columns, dict.fromkeys(names, (sizes.partition_k, sizes.partition_lg_k)))


def is_small(plan: ScanPlan) -> bool:
    """Whether a planned scan is one task, and PyIceberg can do it."""
    size = sum(task.file.file_size_in_bytes for task in plan.tasks)
    return plan.fallback is None and size <= SMALL_SCAN_BYTES


def scan_here(plan: ScanPlan, sizes: Sizes) -> TableStatistics:
    """Carry out a planned scan in this process, without a JVM and in no more time than one task of Spark takes.

    Parameters
    ----------
    plan : ScanPlan
        What is read; `is_small` should hold.
    sizes : Sizes
        Sizes of the sketches.

    Raises
    ------
    UnsupportedError
        PyIceberg does not know the type of a column in a file.
    IcestatsError
        A data file cannot be read.
    """
    from icestats.scan.arrow_files import UnreadFileError

    started = time.perf_counter()
    job = ScanJob(plan.fields, sizes, plan.partitions, pairs=plan.pairs)
    known = plan.source.storage.properties
    with explained(lambda said: IcestatsError(f"a data file of {plan.source.name} cannot be read: {said}"), known):
        try:
            found, partitions = read_here(job, plan.reading, plan.tasks)
        except UnreadFileError as error:
            raise UnsupportedError(f"PyIceberg cannot read a data file of {plan.source.name}: {error}") from error
    return build_statistics(plan, sizes, found, partitions, started)
