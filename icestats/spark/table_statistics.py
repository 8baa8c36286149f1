"""Theta, KLL and column statistics of a snapshot, in one distributed scan.

The driver plans PyIceberg scan tasks; Spark carries them to its executors, where PyIceberg reads the files (schema
evolution, position deletes and deletion vectors applied) one Arrow batch at a time into accumulators. These are merged
on the executors first, so that the driver holds one accumulator a column and a partition at most.
"""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.catalog import Source, load_iceberg_table
from icestats.errors import ColumnNotFoundError, UnsupportedError
from icestats.metadata import Field, Snapshot
from icestats.spark.job_errors import explained_errors
from icestats.spark.session import watch_jobs
from icestats.spark.shipping import ship_package
from icestats.stats.column_accumulator import ColumnAccumulator, can_sketch
from icestats.stats.table_statistics import TableStatistics

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Called with the number of finished tasks and of all tasks."""

TARGET_TASK_BYTES = 128 << 20
ROWS_GATHERED = 65_536
PARTITIONS_MERGED_BY_THE_DRIVER = 16
_PAYLOAD = "payload binary"


@dataclass(frozen=True)
class _Scan:
    """What an executor needs in order to read files."""

    metadata: IcebergMetadata
    io: FileIO
    schema: IcebergSchema
    fields: tuple[Field, ...]
    k: int
    lg_k: int

    def new_accumulators(self) -> list[ColumnAccumulator]:
        return [ColumnAccumulator(field, k=self.k, lg_k=self.lg_k) for field in self.fields]


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


def compute_table_statistics(
    spark: SparkSession,
    source: Source,
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    k: int = 200,
    lg_k: int = 12,
    progress: Progress | None = None,
    tasks: Sequence[FileScanTask] | None = None,
) -> TableStatistics:
    """Scan a snapshot once and sketch its columns.

    Parameters
    ----------
    spark : SparkSession
        Where the scan runs.
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot whose live rows are read.
    columns : sequence of str, optional
        Top-level columns; by default all.
    k : int
        Size parameter of the KLL sketches: 200 gives a rank error of 1.33 %.
    lg_k : int
        Base-2 logarithm of the Theta sketches' nominal entries: 12, as Iceberg has it, a standard error of 1.6 %.
    progress : callable, optional
        Called with finished and total tasks as Spark works.
    tasks : sequence of pyiceberg.table.FileScanTask, optional
        Read these files of the snapshot only, such as those that were added last; by default all that are live.

    Raises
    ------
    ColumnNotFoundError
        The table has no such column.
    UnsupportedError
        The table has equality deletes, which PyIceberg cannot apply.
    SparkUnavailableError
        The executors lack Python or a module.
    IcestatsError
        The job was cancelled, or a data file could not be read.
    """
    started = time.perf_counter()
    fields, skipped = select_columns(source.metadata.schema_of(snapshot).top_level, columns)
    table = load_iceberg_table(source)
    scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(field.name for field in fields))
    try:
        tasks = list(scan.plan_files()) if tasks is None else tasks
    except (NotImplementedError, ValueError) as error:
        raise UnsupportedError(f"{source.name} cannot be scanned: {error}") from error
    job = _Scan(table.metadata, table.io, scan.projection(), fields, k, lg_k)
    merged = job.new_accumulators()
    if fields and tasks:
        ship_package(spark)
        group = f"icestats: statistics of {source.name}"
        with explained_errors(f"the scan of {source.name}"), watch_jobs(spark, group, progress):
            for payload in _run(spark, job, tasks):
                _merge(merged, pickle.loads(payload))  # noqa: S301 - written by this job's own executors
    results = {field.name: accumulator.result() for field, accumulator in zip(fields, merged, strict=True)}
    return TableStatistics(
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        row_count=next((r.value_count for r in results.values()), None),
        file_count=len(tasks),
        duration_ms=round((time.perf_counter() - started) * 1000),
        columns=results,
        skipped=skipped,
    )


def _run(spark: SparkSession, job: _Scan, tasks: Sequence[FileScanTask]) -> Iterator[bytes]:
    bundles = _bundle(tasks, spark.sparkContext.defaultParallelism)
    rows = [(bytearray(pickle.dumps(bundle)),) for bundle in bundles]
    work = spark.sparkContext.parallelize(rows, len(rows)).toDF(_PAYLOAD)
    partials = work.mapInArrow(functools.partial(_scan_partition, job), _PAYLOAD)
    partition_count = len(rows)
    while partition_count > PARTITIONS_MERGED_BY_THE_DRIVER:
        partition_count //= PARTITIONS_MERGED_BY_THE_DRIVER
        partials = partials.repartition(partition_count).mapInArrow(_merge_partition, _PAYLOAD)
    for row in partials.collect():
        yield bytes(row[0])


def _bundle(tasks: Sequence[FileScanTask], parallelism: int) -> list[list[FileScanTask]]:
    # Largest first, each to the emptiest bundle: as many bundles as keep every core busy to the end.
    total = sum(task.file.file_size_in_bytes for task in tasks)
    count = min(len(tasks), max(2 * parallelism, -(-total // TARGET_TASK_BYTES)))
    bundles: list[list[FileScanTask]] = [[] for _ in range(count)]
    loads = [0] * count
    for task in sorted(tasks, key=lambda t: t.file.file_size_in_bytes, reverse=True):
        emptiest = loads.index(min(loads))
        bundles[emptiest].append(task)
        loads[emptiest] += task.file.file_size_in_bytes + 1
    return bundles


def _scan_partition(job: _Scan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)
    accumulators = job.new_accumulators()
    for payload in _payloads(batches):
        tasks: list[FileScanTask] = pickle.loads(payload)  # noqa: S301 - written by this job's own driver
        for rows in _gather(_read_batches(job, tasks)):
            for field, accumulator in zip(job.fields, accumulators, strict=True):
                accumulator.update(rows.column(field.name).combine_chunks())
    yield _packed(accumulators)


def _merge_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    merged: list[ColumnAccumulator] | None = None
    for payload in _payloads(batches):
        partial: list[ColumnAccumulator] = pickle.loads(payload)  # noqa: S301 - written by this job's own executors
        if merged is None:
            merged = partial
        else:
            _merge(merged, partial)
    if merged is not None:
        yield _packed(merged)


def _read_batches(job: _Scan, tasks: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files

    # ArrowScan.to_record_batches holds whole files in memory; its inner generator streams them.
    scan = ArrowScan(job.metadata, job.io, job.schema, AlwaysTrue())
    deletes = _read_all_delete_files(job.io, tasks)
    yield from scan._record_batches_from_scan_tasks_and_deletes(tasks, deletes)


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join the batches of small files: an update costs the same for 100 rows as for 10,000."""
    gathered: list[pa.Table] = []
    row_count = 0
    for batch in batches:
        gathered.append(pa.Table.from_batches([batch]))
        row_count += batch.num_rows
        if row_count >= ROWS_GATHERED:
            yield pa.concat_tables(gathered, promote_options="permissive")
            gathered, row_count = [], 0
    if gathered:
        yield pa.concat_tables(gathered, promote_options="permissive")


def _payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for value in batch.column(0):
            yield value.as_py()


def _packed(accumulators: list[ColumnAccumulator]) -> pa.RecordBatch:
    payload: Any = pa.array([pickle.dumps(accumulators)], pa.binary())
    return pa.RecordBatch.from_arrays([payload], ["payload"])


def _merge(into: list[ColumnAccumulator], other: list[ColumnAccumulator]) -> None:
    for accumulator, addition in zip(into, other, strict=True):
        accumulator.merge(addition)
