"""What a scan of a snapshot will read, and by which way: planned on the driver, and done here where it is small."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.findings import Finding
from icestats.answers.text import one_line
from icestats.errors import (
    CallError,
    ColumnNotFoundError,
    IcestatsError,
    MetadataError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.catalog import Source, load_iceberg_table
from icestats.iceberg.metadata import Field, Schema, Snapshot, TableMetadata
from icestats.iceberg.types import encode_value
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import ManifestToRead, find_repeated_files, manifests_to_read, read_files
from icestats.scan.scan_job import FileReading, ScanJob, Sizes, read_accumulators
from icestats.stats.column_accumulator import ColumnAccumulator, can_sketch
from icestats.stats.table_statistics import PartitionKey, TableStatistics

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import DataScan, FileScanTask
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

_READABLE = frozenset({"PARQUET"})

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


def select_columns(fields: Sequence[Field], columns: Sequence[str] | None) -> tuple[tuple[Field, ...], dict[str, str]]:
    """Return the columns that get statistics, and those that do not with the reason.

    Parameters
    ----------
    fields : sequence of Field
        The table's top-level fields.
    columns : sequence of str or None
        Names that are asked for; None for all.

    Raises
    ------
    ColumnNotFoundError
        A name is not among the fields.
    """
    names = tuple(field.name for field in fields)
    for column in columns or ():
        if column not in names:
            raise ColumnNotFoundError(column, names)
    asked = [field for field in fields if columns is None or field.name in columns]
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
        Top-level columns; by default all.
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
    if by_partition and not any(spec.fields for spec in source.metadata.specs.values()):
        raise CallError(f'{source.name} is not partitioned: by="partition" needs partitions, leave it out')
    files = _read_data_files(source, snapshot) if tasks is None else None
    scan = open_scan(source, snapshot, schema, reads_rows=False)
    fallback = None
    if files is not None:
        tasks, fallback = _plan_tasks(source, scan, files.num_rows)
    elif (reason := find_unread(source) or _find_unreadable(tasks or ())) is not None:
        raise UnsupportedError(f"some files of {source.name} cannot be read alone: {reason}; scan the whole snapshot")
    partitions = _find_partitions(files, source.metadata) if files is not None and by_partition else None
    counts: Counter[PartitionKey] = Counter()
    if files is not None and partitions is not None:
        for path, row_count in zip(files["file_path"].to_pylist(), files["record_count"].to_pylist(), strict=True):
            counts[partitions[path]] += row_count
    return ScanPlan(
        source=source,
        snapshot=snapshot,
        read_schema=schema,
        fields=fields,
        skipped=skipped,
        file_count=len(tasks or ()) if files is None else files.num_rows,
        tasks=tuple(tasks or ()),
        fallback=fallback,
        reading=FileReading(scan.table_metadata, scan.io, scan.projection().select(*(field.name for field in fields))),
        partitions=partitions,
        partition_row_counts=counts,
        findings=() if files is None else find_repeated_files(files),
        table_size_bytes=None if files is None else int(pc.sum(files["file_size_in_bytes"]).as_py() or 0),
    )


def open_scan(source: Source, snapshot: Snapshot, schema: Schema, *, reads_rows: bool = True) -> DataScan:
    """Open PyIceberg's scan of a snapshot's live rows with a schema: PyIceberg itself takes the snapshot's own.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot.
    schema : Schema
        The schema to read it with: see `TableMetadata.find_schema`.
    reads_rows : bool
        Whether PyIceberg will plan the scan and read files: it reads manifests without limits, so that they are read
        here first.

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
    read once.
    """
    from pyiceberg.table import DataScan

    if reads_rows:
        if (reason := find_unread(source)) is not None:
            raise UnsupportedError(f"the rows of {source.name} cannot be read without Spark: {reason}")
        _read_data_files(source, snapshot)
    table = load_iceberg_table(source)
    metadata = table.metadata
    known = metadata.snapshot_by_id(snapshot.snapshot_id)
    if known is None:
        raise _gone(source, f"snapshot {snapshot.snapshot_id}")
    if all(one.schema_id != schema.schema_id for one in metadata.schemas):
        raise _gone(source, f"schema {schema.schema_id}")
    pinned = {
        "snapshots": [_distinct_snapshot().model_validate(known, from_attributes=True)],
        "current_snapshot_id": snapshot.snapshot_id,
        "current_schema_id": schema.schema_id,
    }
    return DataScan(metadata.model_copy(update=pinned), table.io)


def check_manifests(source: Source, manifests: Sequence[ManifestToRead]) -> None:
    """Raise MetadataError where PyIceberg, which inflates without limits, is not to read one of these manifests."""
    read_files(manifests, source.metadata, source.storage)


@cache
def _distinct_snapshot() -> type[IcebergSnapshot]:
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    class DistinctSnapshot(IcebergSnapshot):
        """A snapshot that gives a manifest once, however often its list names it.

        So does Iceberg's Java library (`ManifestGroup`); PyIceberg 0.12 reads the files' rows as often.
        """

        def manifests(self, io: FileIO) -> list[ManifestFile]:
            """Return the manifests, each where its list has it first."""
            found: dict[str, ManifestFile] = {}
            for manifest in super().manifests(io):
                found.setdefault(manifest.manifest_path, manifest)
            return list(found.values())

    return DistinctSnapshot


def _gone(source: Source, what: str) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(f"{source.name} has no {what} any more: load the table anew, or refresh() it")


def _plan_tasks(source: Source, scan: DataScan, file_count: int) -> tuple[Sequence[FileScanTask], str | None]:
    if (reason := find_unread(source)) is not None:
        return (), reason
    try:
        tasks: list[FileScanTask] = list(scan.plan_files())
    except (NotImplementedError, ValueError) as error:
        if "equality deletes" in str(error):
            return (), "the table has equality deletes, which PyIceberg cannot apply"
        return (), f"PyIceberg cannot plan the scan: {one_line(error)}"
    except OSError as error:
        raise MetadataError(f"its manifests cannot be read: {one_line(error)}", source.metadata_location) from error
    if len(tasks) != file_count:
        # PyIceberg 0.12 takes the place where a manifest is cut for its end.
        raise MetadataError(
            f"its manifests have {file_count:,} data files, of which {len(tasks):,} were found: one of them was cut "
            "while it was read, try again",
            source.metadata_location,
        )
    reason = _find_unreadable(tasks)
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


def _find_unreadable(tasks: Sequence[FileScanTask]) -> str | None:
    formats = sorted({str(task.file.file_format).rpartition(".")[2].upper() for task in tasks} - _READABLE)
    return f"it has data files in {' and '.join(formats)}, which PyIceberg cannot read safely" if formats else None


def _read_data_files(source: Source, snapshot: Snapshot) -> pa.Table:
    """Read all manifests, so that those of deletes are within the limits too, and return the data files."""
    manifests = manifests_to_read(read_manifest_list(source.storage, snapshot))
    files = read_files(manifests, source.metadata, source.storage)
    return files.filter(pc.equal(files["content"], "data"))


def _find_partitions(files: pa.Table, metadata: TableMetadata) -> dict[str, PartitionKey]:
    paths, spec_ids = files["file_path"].to_pylist(), files["spec_id"].to_pylist()
    structs = files["partition"].combine_chunks()
    by_field = encode_fields(structs, metadata)
    keys: dict[PartitionKey, PartitionKey] = {}
    found = {}
    for row, (path, spec_id) in enumerate(zip(paths, spec_ids, strict=True)):
        ids = [field.field_id for field in metadata.specs[spec_id].fields]
        key = PartitionKey(spec_id, tuple((i, by_field[i][row]) for i in ids if i in by_field))
        found[path] = keys.setdefault(key, key)
    return found


def encode_fields(structs: pa.StructArray, metadata: TableMetadata) -> dict[int, list[bytes | None]]:
    """Return the values of partition fields as single-value bytes, by field id: one a partition."""
    from icestats.iceberg.partition_columns import find_partition_columns

    schemas = [metadata.schema, *reversed(list(metadata.schemas.values()))]
    columns = enumerate(find_partition_columns(metadata.specs, schemas))
    return {one.field_id: _single_values(structs.field(i), one.type) for i, one in columns if one.type is not None}


def _single_values(array: pa.Array, type_text: str) -> list[bytes | None]:
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    distinct = array.dictionary_encode()
    values = [None if v is None else encode_value(type_text, v) for v in distinct.dictionary.to_pylist()]
    return [None if place is None else values[place] for place in distinct.indices.to_pylist()]


def build_statistics(plan: ScanPlan, accumulators: Sequence[ColumnAccumulator], started: float) -> TableStatistics:
    """Build what a scan has found; it started at this reading of `time.perf_counter`."""
    results = {field.name: a.result() for field, a in zip(plan.fields, accumulators, strict=True)}
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
    )


def is_small(plan: ScanPlan) -> bool:
    """Whether a planned scan is one task, and PyIceberg can do it."""
    size = sum(task.file.file_size_in_bytes for task in plan.tasks)
    return plan.fallback is None and plan.partitions is None and size <= SMALL_SCAN_BYTES


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
    IcestatsError
        A data file cannot be read.
    """
    started = time.perf_counter()
    job = ScanJob(plan.fields, sizes, None)
    try:
        found = read_accumulators(job, plan.reading, plan.tasks)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise IcestatsError(f"a data file of {plan.source.name} cannot be read: {one_line(error)}") from error
    return build_statistics(plan, found, started)
