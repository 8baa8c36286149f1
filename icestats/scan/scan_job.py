"""What executors do in a scan: rows into accumulators, accumulators into fewer of them.

Every function here is given to Spark's `mapInArrow`. What goes from one to the next is a row a partition of the table,
with pickled accumulators or, once all of its rows are in, with finished statistics; or a row for the whole table, whose
`partition` is null.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icestats.errors import check_whole
from icestats.iceberg.metadata import Field
from icestats.scan.position_deletes import read_position_deletes
from icestats.stats.column_accumulator import ColumnAccumulator, number_rows
from icestats.stats.column_values import unify
from icestats.stats.frequent_items import find_size_limit
from icestats.stats.joint_statistics import PairAccumulator, encode_column
from icestats.stats.table_statistics import ColumnStatistics, PartitionKey

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

ROWS_GATHERED = 65_536
PARTIAL = "partition binary, finished boolean, payload binary"
"""Spark's schema of what the functions give."""
FILE_COLUMN = "_file"
_OPEN_ACCUMULATORS = 320
"""Of all columns of the partitions whose rows are being read: each takes up to 1.4 MB."""
_LARGE_BYTES = 4 << 20
"""Files that are smaller together are read as they are: to look into one first takes longer."""
_CODED_BYTES = 1.25
"""A value of a text column takes no more as the number of one of some 500; plain ones have their length before them."""
_NO_DICTIONARY = "DictAccumulator"
"""In what Arrow says where texts are stored as changes or lengths, which it can read as they are alone."""
_PARTIAL_SCHEMA = pa.schema([("partition", pa.binary()), ("finished", pa.bool_()), ("payload", pa.binary())])

Accumulators = list[ColumnAccumulator | PairAccumulator]
"""One a column, in the order of `ScanJob.fields`; then one a pair of columns, in that of `ScanJob.pairs`."""
ByPartition = dict[PartitionKey, list[ColumnStatistics]]
"""Finished statistics, one a column."""
Partial = tuple[PartitionKey | None, bool, Any]
"""What is found of a partition, or of the table: accumulators, or finished statistics, which the flag says."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the sketches."""

    k: int
    lg_k: int
    partition_k: int
    partition_lg_k: int

    def check(self) -> None:
        """Raise CallError where no sketch has such a size."""
        for k, lg_k in ((self.k, self.lg_k), (self.partition_k, self.partition_lg_k)):
            check_whole("k", k, 8, 65_535)
            check_whole("lg_k", lg_k, 4, 26)


@dataclass(frozen=True)
class ScanJob:
    """What an executor needs in order to sketch rows."""

    fields: tuple[Field, ...]
    sizes: Sizes
    partitions: Mapping[str, PartitionKey] | None
    """The partition of each data file; None: one set of accumulators for the whole table."""
    divided: frozenset[PartitionKey] | None = None
    """Partitions whose files are in more than one bundle; None: any may be."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Columns that get statistics together, by their places in `fields`."""

    def new_accumulators(self, whole: Accumulators | None = None) -> Accumulators:
        """Return empty accumulators; those of a part take no row into their samples that those of the whole do not."""
        limits = [one.sample.limit for one in column_accumulators(whole or [])] or [1.0] * len(self.fields)
        k, lg_k = self.sizes.k, self.sizes.lg_k
        columns = [ColumnAccumulator(field, k, lg_k, limit) for field, limit in zip(self.fields, limits, strict=True)]
        pairs = [PairAccumulator(self.fields[one], self.fields[other], self.sizes.lg_k) for one, other in self.pairs]
        return [*columns, *pairs]

    def update(self, accumulators: Accumulators, columns: Sequence[pa.Array]) -> None:
        """Add rows, a column a field."""
        numbers = number_rows(columns, [field.type for field in self.fields])
        for accumulator, column in zip(column_accumulators(accumulators), columns, strict=True):
            accumulator.update(column, numbers)
        used = {place for pair in self.pairs for place in pair}
        encoded = {place: encode_column(columns[place], self.fields[place].type) for place in used}
        for together, (one, other) in zip(pair_accumulators(accumulators), self.pairs, strict=True):
            together.update(encoded[one], encoded[other])


@dataclass(frozen=True)
class FileReading:
    """What an executor needs in order to read files with PyIceberg."""

    metadata: IcebergMetadata
    io: FileIO
    schema: IcebergSchema


def scan_files(job: ScanJob, reading: FileReading, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read bundles of PyIceberg's scan tasks."""
    pa.set_cpu_count(1)
    payloads = (value.as_py() for batch in batches for value in batch.column(0))
    bundles = (pickle.loads(payload) for payload in payloads)  # noqa: S301 - written by this job's own driver
    for key, finished, found in _scan(job, reading, bundles):
        yield _row(None if key is None else pickle.dumps(key), finished, pickle.dumps(found))


def _scan(job: ScanJob, reading: FileReading, bundles: Iterable[Sequence[FileScanTask]]) -> Iterator[Partial]:
    whole = job.new_accumulators()
    for tasks in bundles:
        if job.partitions is None:
            _update(job, whole, read_live_rows(reading, tasks))
            continue
        for key, group in groupby(tasks, key=lambda task, found=job.partitions: found[task.file.file_path]):  # type: ignore[misc]  # mypy takes the default for an argument
            accumulators = job.new_accumulators(whole)
            _update(job, accumulators, read_live_rows(reading, list(group)))
            if job.divided is None or key in job.divided:
                yield key, False, accumulators
            else:
                yield key, True, finish(job.sizes, accumulators)
                merge_into(whole, accumulators)
    yield None, False, whole


def read_here(job: ScanJob, reading: FileReading, tasks: Sequence[FileScanTask]) -> tuple[Accumulators, ByPartition]:
    """Read files in the process that this is called in: all into one set of accumulators, and by partition if asked."""
    bundle, partitions = tasks, job.partitions
    if partitions is not None:
        places = {key: place for place, key in enumerate(dict.fromkeys(partitions.values()))}
        bundle = sorted(tasks, key=lambda task: places[partitions[task.file.file_path]])
    return merge_rows(job, _scan(replace(job, divided=frozenset()), reading, [bundle]))


def merge_rows(
    job: ScanJob, rows: Iterable[Partial]
) -> tuple[Accumulators, dict[PartitionKey, list[ColumnStatistics]]]:
    """Merge what parts of a scan have found: accumulators of the whole table, and finished statistics by partition."""
    whole, partitions = job.new_accumulators(), ByPartition()
    parts: dict[PartitionKey, Accumulators] = {}
    for key, finished, found in rows:
        if key is None:
            merge_into(whole, found)
        elif finished:
            partitions[key] = found
        else:
            parts[key] = merge_into(parts.get(key), found)
    for key, accumulators in parts.items():
        partitions[key] = finish(job.sizes, accumulators)
        merge_into(whole, accumulators)
    return whole, partitions


def scan_rows(job: ScanJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take in rows that Spark has read: a column `c<field id>` a field, and `_file` for sketches by partition."""
    pa.set_cpu_count(1)
    found: dict[PartitionKey | None, Accumulators] = {}
    for rows in gather(batches):
        for key, part in _split_by_partition(job, rows):
            accumulators = found.setdefault(key, job.new_accumulators()) if key not in found else found[key]
            job.update(accumulators, [part.column(f"c{field.field_id}").combine_chunks() for field in job.fields])
        if len(found) > 1 and sum(map(len, found.values())) > _OPEN_ACCUMULATORS:
            yield from (pack(key, accumulators) for key, accumulators in found.items())
            found.clear()
    yield from (pack(key, accumulators) for key, accumulators in found.items())


def merge_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge all accumulators of a task into one set."""
    merged: Accumulators | None = None
    for _, _, payload in read_partials(batches):
        merged = merge_into(merged, pickle.loads(payload))  # noqa: S301 - written by this job's own executors
    if merged is not None:
        yield pack(None, merged)


def finish_partitions(sizes: Sizes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the accumulators of each partition, which come one behind the other, into its finished statistics.

    Finished ones pass through. At the end comes a row of accumulators of the whole table.
    """
    whole: Accumulators | None = None
    for key, group in groupby(read_partials(batches), key=lambda row: row[0]):
        merged: Accumulators | None = None
        for _, finished, payload in group:
            if finished:
                yield _row(key, True, payload)
            else:
                merged = merge_into(merged, pickle.loads(payload))  # noqa: S301 - written by this job's own executors
        if merged is not None:
            if key is not None:
                yield _row(key, True, pickle.dumps(finish(sizes, merged)))
            whole = merge_into(whole, merged)
    if whole is not None:
        yield pack(None, whole)


def read_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bool, bytes]]:
    """Yield the rows: a pickled key or None, whether it is finished, and a pickled payload."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["partition"], row["finished"], row["payload"]


def pack(key: PartitionKey | None, accumulators: Accumulators) -> pa.RecordBatch:
    """Return a row of accumulators."""
    return _row(None if key is None else pickle.dumps(key), False, pickle.dumps(accumulators))


def merge_into(into: Accumulators | None, other: Accumulators) -> Accumulators:
    """Merge accumulators, column by column, and return them; into None: the others."""
    if into is None:
        return other
    for accumulator, addition in zip(into, other, strict=True):
        accumulator.merge(addition)  # type: ignore[arg-type]  # both lists are of one job
    return into


def column_accumulators(accumulators: Accumulators) -> list[ColumnAccumulator]:
    """Return the accumulators of columns."""
    return [one for one in accumulators if isinstance(one, ColumnAccumulator)]


def pair_accumulators(accumulators: Accumulators) -> list[PairAccumulator]:
    """Return the accumulators of pairs of columns."""
    return [one for one in accumulators if isinstance(one, PairAccumulator)]


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join small batches: an update costs the same for 100 rows as for 10,000."""
    gathered: list[pa.Table] = []
    row_count = 0
    for batch in batches:
        # Of a column that has been renamed, later files alone are read as dictionaries.
        if gathered and batch.schema != gathered[-1].schema:
            yield pa.concat_tables(gathered, promote_options="permissive")
            gathered, row_count = [], 0
        gathered.append(pa.Table.from_batches([batch]))
        row_count += batch.num_rows
        if row_count >= ROWS_GATHERED:
            yield pa.concat_tables(gathered, promote_options="permissive")
            gathered, row_count = [], 0
    if gathered:
        yield pa.concat_tables(gathered, promote_options="permissive")


def _row(key: bytes | None, finished: bool, payload: bytes) -> pa.RecordBatch:
    row = {"partition": key, "finished": finished, "payload": payload}
    return pa.RecordBatch.from_pylist([row], _PARTIAL_SCHEMA)


def finish(sizes: Sizes, accumulators: Accumulators) -> list[ColumnStatistics]:
    """Return the statistics of a partition, one a column."""
    k, lg_k, items = sizes.partition_k, sizes.partition_lg_k, find_size_limit(sizes.partition_k)
    return [one.result(k=k, lg_k=lg_k, items_size_bytes=items) for one in column_accumulators(accumulators)]


def _update(job: ScanJob, accumulators: Accumulators, batches: Iterable[pa.RecordBatch]) -> None:
    for rows in gather(batches):
        job.update(accumulators, [unify(rows.column(field.name), decodes=False) for field in job.fields])


def read_live_rows(reading: FileReading, tasks: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of files, as PyIceberg reads them; texts that repeat as dictionaries."""
    from icestats.scan.arrow_files import read_live_batches

    repeated = _find_repeated(reading, tasks)
    deletes = read_position_deletes(reading.io, tasks)
    read = partial(read_live_batches, reading.metadata, reading.io, reading.schema, deletes=deletes)
    if not repeated:
        yield from read(tasks)
        return
    with _without_note_of_dictionaries():
        for task in tasks:
            yield from _read_as_dictionaries(read, task, repeated)


def _read_as_dictionaries(
    read: Callable[..., Iterator[pa.RecordBatch]], task: FileScanTask, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file: some texts as dictionaries, up to where they are stored as Arrow makes none of."""
    given = 0
    try:
        for batch in read([task], dictionary_columns=columns):
            given += batch.num_rows
            yield batch
        return
    except OSError as error:
        if _NO_DICTIONARY not in str(error):
            raise
    for batch in read([task]):
        rest = batch.slice(min(given, batch.num_rows))
        given -= batch.num_rows - rest.num_rows
        if rest.num_rows:
            yield rest


def _find_repeated(reading: FileReading, tasks: Sequence[FileScanTask]) -> tuple[str, ...]:
    """Return the texts and binaries of the first file that take so little room that they are stored as a dictionary."""
    if not tasks or sum(task.file.file_size_in_bytes for task in tasks) < _LARGE_BYTES:
        return ()
    with reading.io.new_input(tasks[0].file.file_path).open() as stream:
        footer = pq.read_metadata(stream)
    if not footer.num_row_groups:
        return ()
    group = footer.row_group(0)
    columns = (group.column(place) for place in range(group.num_columns))
    texts = (column for column in columns if column.physical_type == "BYTE_ARRAY" and "." not in column.path_in_schema)
    return tuple(one.path_in_schema for one in texts if one.total_uncompressed_size <= _CODED_BYTES * one.num_values)


@contextmanager
def _without_note_of_dictionaries() -> Iterator[None]:
    # PyIceberg says of each file that Iceberg has no dictionaries.
    logger = logging.getLogger("pyiceberg.io.pyarrow")
    logger.addFilter(_is_no_note_of_dictionaries)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_note_of_dictionaries)


def _is_no_note_of_dictionaries(record: logging.LogRecord) -> bool:
    return "dictionary type" not in str(record.msg)


def _split_by_partition(job: ScanJob, rows: pa.Table) -> Iterator[tuple[PartitionKey | None, pa.Table]]:
    if job.partitions is None:
        yield None, rows
        return
    files: Any = rows.column(FILE_COLUMN).combine_chunks().dictionary_encode()
    for place, path in enumerate(files.dictionary.to_pylist()):
        yield job.partitions[path], rows if len(files.dictionary) == 1 else rows.filter(pc.equal(files.indices, place))
