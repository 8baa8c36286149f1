"""Roll-ups of manifests by Spark, for tables whose metadata is too large for one machine.

Each task reads some manifests with the same function as one machine does, and gives their roll-up back as Arrow IPC
streams; the driver merges them.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.errors import IcestatsError, UnsupportedError
from icestats.iceberg.metadata import Schema, TableMetadata
from icestats.iceberg.storage import Storage
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.manifests.manifests import ManifestToRead, RollUps, read_rollups
from icestats.read.rollups.rollup_cache import Reader, write_stream
from icestats.read.rollups.rollup_merge import merge_rollups
from icestats.spark.jobs import cut_evenly, explained_errors, find_parallelism, spread, watch_jobs
from icestats.spark.python_workers import map_in_workers
from icestats.spark.shipping import ship_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUNDLE_BYTES = 32 << 20
"""Length of the manifests that one task reads, at most where there are several."""
_TABLES = tuple(field.name for field in fields(RollUps))
_ANSWER = pa.schema([(name, pa.binary()) for name in (*_TABLES, "error")])


@dataclass(frozen=True)
class _Job:
    """What an executor needs in order to read manifests."""

    metadata: TableMetadata
    properties: Mapping[str, str] = field(repr=False)
    home: str | None
    schema: Schema


def job_group(metadata: TableMetadata) -> str:
    """Return the id of the job group that reads a table's manifests, as `cancel_jobs` takes it."""
    return f"icestats: metadata of {metadata.location}"


def read_rollups_with_spark(
    spark: SparkSession,
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: Storage,
    schema: Schema,
    *,
    progress: Progress | None = None,
) -> RollUps:
    """Roll up the statistics of all live files by manifest, by partition and over the table, on Spark's executors.

    Parameters
    ----------
    spark : SparkSession
        Where the manifests are read. Executors without icestats are sent it (`ship_package`); it needs no Iceberg.
    manifests : sequence of ManifestToRead
        Manifests of data and of deletes.
    metadata : TableMetadata
        Partition specs, schemas and the times of snapshots.
    storage : Storage
        Its properties, credentials among them, are what the executors read with.
    schema : Schema
        Its columns are rolled up.
    progress : callable, optional
        Called from another thread with finished and total tasks; an exception from it cancels the job and is raised.

    Returns
    -------
    RollUps
        Those of `read_rollups`, row for row.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged: the first of these in the order of the manifests' tasks.
    UnsupportedError
        Two specs use one partition field id for different things; only Spark's own catalog opens the files.
    SparkUnavailableError
        The executors' Python lacks what icestats depends on.
    IcestatsError
        The job was cancelled, or failed.
    """
    if not manifests:
        return read_rollups(manifests, metadata, storage, schema)
    if storage.file_io is not None:
        raise UnsupportedError(
            f"the manifests of {metadata.location} are opened by Spark's own catalog, in this process only: read() "
            "reads them here"
        )
    job = _Job(metadata, storage.properties, storage.home, schema)
    columns = ", ".join(f"{name} binary" for name in _ANSWER.names)
    with explained_errors(spark, "the Spark job that reads the manifests", properties=storage.properties):
        ship_package(spark)
        bundles = bundle_manifests(manifests, 2 * find_parallelism(spark))
        work = spread(spark, [pickle.dumps(bundle) for bundle in bundles])
        answers = map_in_workers(work, functools.partial(_read_bundles, job), columns)
        with watch_jobs(spark, job_group(metadata), progress):
            found = answers.collect()
    parts = [_unpack(row) for row in found]
    return merge_rollups(parts, schema.columns, [manifest.path for manifest in manifests])


def spark_reader(spark: SparkSession, metadata: TableMetadata, storage: Storage, schema: Schema) -> Reader:
    """Return what reads the manifests that the local cache does not know, as `read_cached_rollups` takes it."""

    def read(manifests: Sequence[ManifestToRead], progress: Progress | None) -> RollUps:
        return read_rollups_with_spark(spark, manifests, metadata, storage, schema, progress=progress)

    return read


def bundle_manifests(manifests: Sequence[ManifestToRead], least_count: int) -> list[list[ManifestToRead]]:
    """Cut manifests into bundles of about the same length, in their order: neighbours share partitions.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        What is to be read.
    least_count : int
        How many bundles there are at least, as far as there are manifests.

    Examples
    --------
    >>> paths = [ManifestToRead(str(i), length, 0, "data") for i, length in enumerate([10, 10, 90, 5, 5])]
    >>> [[manifest.path for manifest in bundle] for bundle in bundle_manifests(paths, 2)]
    [['0', '1'], ['2', '3', '4']]
    """
    lengths = [max(manifest.length, 1) for manifest in manifests]
    return cut_evenly(manifests, lengths, min(len(manifests), max(least_count, -(-sum(lengths) // BUNDLE_BYTES))))


def _read_bundles(job: _Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)
    storage = Storage(job.properties, job.home)
    for batch in batches:
        for value in batch.column(0):
            manifests: list[ManifestToRead] = pickle.loads(value.as_py())  # noqa: S301 - written by this job's own driver
            yield _answer(manifests, job, storage)


def _answer(manifests: Sequence[ManifestToRead], job: _Job, storage: Storage) -> pa.RecordBatch:
    row: dict[str, bytes | None] = dict.fromkeys(_ANSWER.names)
    try:
        rollups = read_rollups(manifests, job.metadata, storage, job.schema, threads=1)
    except IcestatsError as error:
        row["error"] = pickle.dumps(error)
    else:
        row |= {name: write_stream(getattr(rollups, name)).to_pybytes() for name in _TABLES}
    return pa.RecordBatch.from_pylist([row], _ANSWER)


def _unpack(row: Any) -> RollUps:
    if row.error is not None:
        error: IcestatsError = pickle.loads(row.error)  # noqa: S301 - written by this job's own executors
        raise error
    return RollUps(**{name: pa.ipc.open_stream(pa.py_buffer(row[name])).read_all() for name in _TABLES})
