"""Which engines plan with a table's statistics, and where these make Spark fail.

Source: what `estimation/engine_statistics.toml` says of engines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from icestats.answers.findings import Finding
from icestats.answers.text import counted
from icestats.iceberg.metadata import BlobMetadata, PartitionSpec, Schema, Snapshot, StatisticsFile, TableMetadata
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_age import THETA, StatisticsAge

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec as IcebergSpec

ENGINES = ("Spark", "Trino", "Presto", "Impala")
"""The engines that plan with blobs of others. Hive reads none but those that it wrote itself."""
_PRESTO_FORMAT_VERSION = 2
_PRESTO_REFUSES = re.compile(r"uuid|timestamptz|timestamp(tz)?_ns")
# Spark before 4.2 asks whether a literal lies between a column's min and max, except for strings, to which it counts
# UUIDs, and binaries; without min and max the answer is no.
_ZEROED_TYPES = re.compile(r"int|long|float|double|decimal.*|date|timestamp.*")
# Iceberg gives Spark each column's name in the form that SQL wants, and Spark compares it with the name as it is.
_FOUND_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def list_ndv_fields(entries: Iterable[BlobMetadata]) -> list[int]:
    """Return the field ids of the NDVs among what metadata.json lists, of several fields the first."""
    return [entry.field_ids[0] for entry in entries if entry.type == THETA and entry.field_ids]


def find_statistics_users(
    metadata: TableMetadata, ages: Mapping[int, StatisticsAge], schema: Schema | None = None
) -> Callable[[StatisticsFile, BlobMetadata], tuple[str, ...]]:
    """Return what finds the engines that plan with a listed NDV when they read the snapshot that ages are counted to.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    ages : mapping of int to StatisticsAge
        From `count_ages`.
    schema : Schema, optional
        What the snapshot is read with; by default the table's current one.

    Returns
    -------
    callable
        Takes a statistics file and an entry of it in metadata.json; returns names of `ENGINES`, without Presto, which
        reads files' footers.
    """
    registered = [(ages[f.snapshot_id].commits, f) for f in metadata.statistics if f.snapshot_id in ages]
    nearest = min((commits for commits, _ in registered), default=0)
    for_trino = {
        commits
        for commits, file in registered
        if commits == nearest and all(_is_integer(b) for b in file.blobs if "ndv" in b.properties)
    }
    newest: dict[tuple[int, ...], int] = {}
    for commits, file in registered:
        for blob in file.blobs:
            if _has_ndv(blob):
                newest[blob.field_ids] = min(commits, newest.get(blob.field_ids, commits))

    def find(file: StatisticsFile, entry: BlobMetadata) -> tuple[str, ...]:
        age = ages.get(file.snapshot_id)
        if age is None or not _has_ndv(entry):
            return ()
        field = metadata.schema.get(entry.field_ids[0])
        uses = {
            "Spark": age.commits == 0 and _is_looked_up(entry, metadata, schema),
            "Trino": age.commits in for_trino,
            "Impala": field is not None and field.type != "boolean" and newest.get(entry.field_ids) == age.commits,
        }
        return tuple(engine for engine, is_used in uses.items() if is_used)

    return find


def find_presto_file(metadata: TableMetadata, snapshot: Snapshot | None) -> StatisticsFile | None:
    """Return the file that Presto takes: that of the snapshot nearest in time, whatever branch it is of."""
    if snapshot is None:
        return None
    known = [file for file in metadata.statistics if file.snapshot_id in metadata.snapshots]
    return min(
        known,
        key=lambda file: abs(snapshot.timestamp_ms - metadata.snapshots[file.snapshot_id].timestamp_ms),
        default=next(iter(metadata.statistics), None),
    )


def find_presto_refusal(metadata: TableMetadata, schema: Schema, blobs: Sequence[PuffinBlob]) -> str:
    """Return why Presto has no statistics of a table, given the blobs of the file that it takes; nothing: it has."""
    types = ((field.name, field.type) for field in schema.fields)
    if refusal := find_presto_table_refusal(metadata.format_version, types):
        return refusal
    odd = next((blob for blob in blobs if not blob.is_hidden and len(blob.field_ids) != 1), None)
    if odd is not None:
        return (
            f"Presto sees no statistics of the table at all: the blob {odd.type[:80]!r} has "
            f"{counted(len(odd.field_ids), 'field')}, expected exactly one"
        )
    return ""


def find_presto_table_refusal(format_version: int, columns: Iterable[tuple[str, str]]) -> str:
    """Return why Presto reads nothing of a table, given names and types of its columns; nothing: it does."""
    if format_version > _PRESTO_FORMAT_VERSION:
        return f"Presto 0.287 cannot read format version {format_version}"
    refused = next(((name, type_) for name, type_ in columns if _PRESTO_REFUSES.fullmatch(type_)), None)
    return "" if refused is None else f"Presto 0.287 refuses the table: column {refused[0]!r} is {refused[1]}"


def _has_ndv(entry: BlobMetadata) -> bool:
    return entry.type == THETA and len(entry.field_ids) == 1 and _is_integer(entry)


def _is_integer(entry: BlobMetadata) -> bool:
    return parse_count(entry.properties.get("ndv")) is not None


def find_listed_blobs(
    metadata: TableMetadata, snapshot: Snapshot | None, schema: Schema | None = None
) -> list[BlobMetadata]:
    """Return the blobs that Spark's optimizer reads for a snapshot, given what it is read with, by default as today."""
    if snapshot is None:
        return []
    listed = (blob for blob in _find_listed(metadata, snapshot) if blob.type == THETA)
    return [blob for blob in listed if not blob.field_ids or _is_looked_up(blob, metadata, schema)]


def _is_looked_up(blob: BlobMetadata, metadata: TableMetadata, schema: Schema | None) -> bool:
    """Whether Spark, which is given a column's name of today, finds it among those that it reads the snapshot with."""
    field, own = (one.get(blob.field_ids[0]) for one in (metadata.schema, schema or metadata.schema))
    is_renamed = field is not None and own is not None and own.name != field.name
    return not is_renamed and (field is None or is_found_by_spark(field.name))


def _find_listed(metadata: TableMetadata, snapshot: Snapshot) -> list[BlobMetadata]:
    files = [file for file in metadata.statistics if file.snapshot_id == snapshot.snapshot_id]
    return [blob for file in files for blob in file.blobs]


ZONELESS_TIMES = ("timestamp", "timestamp_ns")
TIME_TRAP = (
    "with spark.sql.cbo.enabled, Spark 4.1 fails on joins with a range or an IN of a timestamp without a zone that has "
    "an NDV"
)
"""`evaluateBinary` and `evaluateInSet` of `FilterEstimation` have no case for `TimestampNTZType`: a MatchError."""


def is_found_by_spark(name: str) -> bool:
    """Whether Spark 4 finds the listed NDV of a column with this name; Spark 3.5 also finds one such as `1st`.

    Examples
    --------
    >>> [is_found_by_spark(name) for name in ("price", "unit price", "größe", "1st", "item.price")]
    [True, False, False, False, False]
    """
    return _FOUND_NAMES.fullmatch(name) is not None


def is_zeroed_by_spark(type_text: str, value_count: int = 1) -> bool:
    """Whether Spark before 4.2 estimates 0 rows for some values of a column that has an NDV and no bounds.

    A boolean's equality is rewritten before, so it takes IN with two values, or `<=>`.

    Examples
    --------
    >>> is_zeroed_by_spark("long"), is_zeroed_by_spark("boolean"), is_zeroed_by_spark("boolean", 2)
    (True, False, True)
    """
    return _ZEROED_TYPES.fullmatch(type_text) is not None or (type_text == "boolean" and value_count > 1)


def find_partition_values(specs: Iterable[PartitionSpec | IcebergSpec]) -> frozenset[int]:
    """Return the columns that each partition spec has as they are, and in no other way.

    Spark leaves filters on them alone to Iceberg, and counts the rows of the files that are left. Source: Iceberg 1.12
    `ExpressionUtil.selectsPartitions`, which is false where a second field of a spec is of the same column.
    """
    own = []
    for spec in specs:
        fields = [(field.source_id, str(field.transform)) for field in spec.fields if str(field.transform) != "void"]
        others = {source_id for source_id, transform in fields if transform != "identity"}
        own.append(frozenset(source_id for source_id, _ in fields) - others)
    return frozenset.intersection(*own) if own else frozenset()


def find_listed_traps(
    metadata: TableMetadata, snapshot: Snapshot | None, schema: Schema | None = None
) -> Iterator[Finding]:
    """Find listed statistics, of any type, that make queries fail in Spark.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot that is read.
    schema : Schema, optional
        What it is read with; by default the table's current one.
    """
    listed = [] if snapshot is None else _find_listed(metadata, snapshot)
    broken = [blob for blob in listed if _is_broken(blob, metadata)]
    if broken:
        named = [str(field_id) for blob in broken for field_id in blob.field_ids]
        ids = ", ".join(named[:10] + ["..."] * (len(named) > 10)) or "none"
        yield Finding(
            "error",
            "with spark.sql.cbo.enabled, joins of this table fail in Spark with an internal error: for this snapshot "
            "statistics of columns are listed that the schema does not have",
            f"{len(broken):,} listed blobs, of field ids {ids}",
            "SET `spark.sql.iceberg.report-column-stats`=false",
        )
    read = find_listed_blobs(metadata, snapshot, schema)
    columns = [metadata.schema.get(blob.field_ids[0]) for blob in read if blob.field_ids]
    times = [column.name for column in columns if column is not None and column.type in ZONELESS_TIMES]
    if times:
        yield Finding(
            "warning",
            TIME_TRAP,
            f"{counted(len(times), 'such NDV')} {'is' if len(times) == 1 else 'are'} listed, as of {times[0]}",
            "SET `spark.sql.iceberg.report-column-stats`=false, or commit with list_ndv= without these columns",
        )


def _is_broken(blob: BlobMetadata, metadata: TableMetadata) -> bool:
    return not blob.field_ids or any(metadata.schema.get(field_id) is None for field_id in blob.field_ids)
