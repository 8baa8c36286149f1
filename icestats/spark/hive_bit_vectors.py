"""Bit vectors of Hive's, which only the values themselves can make: one scan by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from icestats.answers.text import quote_name
from icestats.errors import UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.spark.jobs import explained_errors
from icestats.spark.plain_sql import run_sql
from icestats.spark.python_workers import map_in_workers
from icestats.spark.shipping import ship_package
from icestats.spark.spark_scan import open_in_spark
from icestats.spark.versions import find_version
from icestats.stats.hive_sketches import REGISTER_COUNT, Registers, update_registers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def scan_bit_vectors(
    spark: SparkSession, source: Source, snapshot: Snapshot, schema: Schema, fields: Sequence[Field]
) -> Mapping[str, Registers]:
    """Return the registers of Hive's HyperLogLog of some columns, by name, over the live rows of a snapshot.

    Parameters
    ----------
    spark : SparkSession
        Where the scan runs.
    source : Source
        The table.
    snapshot : Snapshot
        What is read of it.
    schema : Schema
        The schema that it is read with.
    fields : sequence of Field
        Top-level columns, of types that `hive_sketches.has_bit_vector`.

    Raises
    ------
    UnsupportedError
        Spark cannot read the table.
    SparkUnavailableError
        The session's JVM has ended, or the executors lack Python or a module.
    """
    found = {field.name: np.zeros(REGISTER_COUNT, np.uint8) for field in fields}
    if not fields:
        return found
    version = find_version(source.metadata, snapshot, schema)
    failed = f"Spark cannot read {source.name} for Hive's bit vectors"
    with (
        explained_errors(spark, f"the scan of {source.name}", lambda said: UnsupportedError(f"{failed}: {said}")),
        open_in_spark(spark, source, "for Hive's bit vectors", version) as (session, name),
    ):
        ship_package(session)
        selected = ", ".join(f"{quote_name(field.name)} as c{i}" for i, field in enumerate(fields))
        rows = run_sql(session, f"select {selected} from {name} {version.clause}")  # noqa: S608 - names are quoted
        types = [field.type for field in fields]
        hashed = map_in_workers(rows, _hash_batches(types), "place int, registers binary")
        for place, registers in hashed.collect():
            merged = found[fields[place].name]
            np.maximum(merged, np.frombuffer(registers, np.uint8), out=merged)
    return found


def _hash_batches(types: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        registers = np.zeros((len(types), REGISTER_COUNT), np.uint8)
        for batch in batches:
            for own, array, type_text in zip(registers, batch.columns, types, strict=True):
                update_registers(own, array, type_text)
        places = pa.array(range(len(types)), pa.int32())
        data = pa.array([own.tobytes() for own in registers], pa.binary())
        yield pa.record_batch([places, data], names=["place", "registers"])

    return run
