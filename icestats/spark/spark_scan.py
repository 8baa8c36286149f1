"""Spark's own scan of a snapshot, for tables that PyIceberg cannot read: equality deletes, ORC, Avro."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.text import quote_name, quote_text
from icestats.errors import UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.storage import local_path
from icestats.iceberg.summary import parse_count
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import manifests_to_read, read_files
from icestats.scan.scan_job import FILE_COLUMN
from icestats.scan.scan_plan import ScanPlan
from icestats.spark.connect import is_connect, refuse_connect
from icestats.spark.jobs import explained_errors
from icestats.spark.jvm import interrupts_first, spark_errors, unless_ended
from icestats.spark.plain_sql import run_sql
from icestats.spark.session import add_catalogs, spark_catalog_properties
from icestats.spark.versions import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SERVED = ("rest", "hive", "glue")
_NAMESPACE = "registered"
_FILE_PROPERTIES = ("s3.", "client.", "http-client.", "gcs.", "adls.", "hadoop.")
"""How the names of the properties begin that say how files are opened."""

_SPLIT_SIZE = "read.split.target-size"
_SMALL_SPLIT, _MOST_SPLITS = 1 << 20, 100_000
"""Where a part has fewer bytes, there are no more parts of all files."""
_MOST = {
    "read.split.planning-lookback": 1_000,
    "read.parquet.vectorization.batch-size": 1 << 17,
    "read.orc.vectorization.batch-size": 1 << 17,
}
"""Iceberg's own are 10 and 5,000."""

_lock = threading.Lock()
_folders: dict[str, Path] = {}


@contextmanager
def open_in_spark(
    spark: SparkSession, source: Source, reason: str, version: Version
) -> Iterator[tuple[SparkSession, str]]:
    """Give a session that knows a table, and the table's name there, until the block ends.

    A table of a catalog that Spark knows too (of the same name in the session, and with this very snapshot of it; or
    REST, Hive, Glue) is read through it; where the version is a branch, only if the catalog has this very version of
    the metadata, as branches and the current schema change. Any other is registered, for the time of the block, by its
    metadata.json in a catalog of its own, in a temporary folder: nothing of the table or of its catalog is written.

    Parameters
    ----------
    spark : SparkSession
        The session to start from.
    source : Source
        The table.
    reason : str
        Why Spark has to read it, for messages.
    version : Version
        What of the table is to be read.

    Raises
    ------
    UnsupportedError
        Spark cannot read the table either, or the table's properties name code for it to run; or the session is one of
        Spark Connect, whose server does not have the table.
    MetadataError
        The table names files that are not where it is itself.
    """
    refuse_code(source)
    _check_files(source, version)
    known = _find_catalog(spark, source, version)
    if known is not None:
        session, name = known
        yield session, quote_name(name, *(source.identifier or ()))
        return
    refuse_connect(
        spark,
        f"registering {source.name} for Spark's own scan ({reason})",
        "give a classic session, or let the server know the table's catalog by its name here",
    )
    name, session = _registering_session(spark, source)
    table = f"t{uuid.uuid4().hex}"
    identifier = quote_name(name, _NAMESPACE, table)
    with _explained(session, source, reason):
        run_sql(session, f"create namespace if not exists {quote_name(name, _NAMESPACE)}")
        run_sql(
            session,
            f"call {quote_name(name)}.system.register_table(`table` => '{name}.{_NAMESPACE}.{table}', metadata_file => "
            f"{quote_text(source.metadata_location)})",
        ).collect()
    try:
        yield session, identifier
    finally:
        with interrupts_first(), unless_ended(session):
            run_sql(session, f"drop table if exists {identifier}")


def select_rows(session: SparkSession, relation: str, plan: ScanPlan) -> DataFrame:
    """Return the live rows of a snapshot: a column `c<field id>` a field, and `_file` for sketches by partition.

    Parameters
    ----------
    session : SparkSession
        A session that knows the table.
    relation : str
        The table's name there, quoted, and its version.
    plan : ScanPlan
        Columns.

    Raises
    ------
    UnsupportedError
        Spark cannot read the table, or a column of it has the name of Iceberg's `_file`.
    """
    hiding = next((one.name for one in plan.read_schema.top_level if one.name.lower() == FILE_COLUMN), None)
    if plan.partitions is not None and hiding is not None:
        raise UnsupportedError(
            f"the column {hiding!r} of {plan.source.name} hides the one by which Spark says the file of a row: leave "
            "out by"
        )
    selected = [f"{quote_name(field.name)} as c{field.field_id}" for field in plan.fields]
    if plan.partitions is not None:
        selected.append(FILE_COLUMN)
    query = f"select {', '.join(selected)} from {relation}"  # noqa: S608 - names are quoted
    with _explained(session, plan.source, plan.fallback or ""):
        return run_sql(session, query)


def refuse_code(source: Source) -> None:
    """Raise UnsupportedError where Iceberg's Java library would make an object of a class that the table names."""
    name = "write.location-provider.impl"
    if name in source.metadata.properties:
        raise UnsupportedError(
            f"{source.name} names code to run in its property {name}: it is not opened in Spark; remove the property "
            "if you may"
        )


def _check_files(source: Source, version: Version) -> None:
    """Refuse files that Spark, which opens whatever a manifest names, would read in another place than the table's."""
    snapshot = source.metadata.snapshots[version.snapshot_id]
    manifests = manifests_to_read(read_manifest_list(source.storage, snapshot))
    files = read_files(manifests, source.metadata, source.storage)
    for path in files["file_path"].to_pylist():
        source.storage.check(path)
    _refuse_nested_keys(source, files)
    _check_work(source, pc.sum(files["file_size_in_bytes"]).as_py() or 0)


def _refuse_nested_keys(source: Source, files: pa.Table) -> None:
    """Refuse equality deletes by a column inside another one, which Iceberg 1.12 applies to other rows than theirs.

    Its reader adds a key that a query leaves out as a top-level column, which no file has:
    https://github.com/apache/iceberg/issues/15826.
    """
    schemas = source.metadata.schemas_by_age
    keys = set(pc.list_flatten(files["equality_ids"]).to_pylist()) - {f.field_id for s in schemas for f in s.top_level}
    nested = next((field for schema in schemas for key in sorted(keys) if (field := schema.get(key)) is not None), None)
    if nested is not None:
        raise UnsupportedError(
            f"{source.name} has equality deletes by the nested column {nested.name!r}, which Spark's scan applies to "
            "other rows too, or to none: it is not opened in Spark; compact its data files in another engine"
        )


def _check_work(source: Source, size_bytes: int) -> None:
    """Refuse properties of a table that have Spark cut its files into millions of parts, or take all memory at once."""
    least = min(-(-size_bytes // _MOST_SPLITS), _SMALL_SPLIT)
    for name, low, high in ((_SPLIT_SIZE, least, 1 << 62), *((name, 0, most) for name, most in _MOST.items())):
        said = source.metadata.properties.get(name)
        count = parse_count(said)
        # Java reads numbers with a sign, and in other digits, too.
        if said is not None and (count is None or not low <= count <= high):
            raise UnsupportedError(
                f"{source.name} has {said!r:.40} for {name}, which would take Spark any time or memory: it is not "
                "opened in Spark; remove the property if you may"
            )


def _find_catalog(spark: SparkSession, source: Source, version: Version) -> tuple[SparkSession, str] | None:
    name = source.catalog_name
    if source.identifier is None or name is None:
        return None
    if spark.conf.get(f"spark.sql.catalog.{name}", None) is not None and _knows(spark, source, name, version):
        return spark, name
    properties = None if is_connect(spark) else spark_catalog_properties(source.catalog_properties)
    if properties is None or properties["type"] not in _SERVED:
        return None
    session = add_catalogs(spark, {name: properties})
    # A snapshot is the same wherever it is found.
    return (session, name) if version.is_snapshot or _knows(session, source, name, version) else None


def _knows(spark: SparkSession, source: Source, catalog: str, version: Version) -> bool:
    """Say whether a catalog of the session has this table: another of the same name may have one of the same name."""
    snapshot = source.metadata.find_snapshot()
    if snapshot is None or snapshot.manifest_list is None:
        return False
    table = quote_name(catalog, *(source.identifier or ()))
    wanted = snapshot.manifest_list
    query = f"select manifest_list from {table}.snapshots where snapshot_id = {snapshot.snapshot_id}"  # noqa: S608 - names are quoted
    try:
        run_sql(spark, f"refresh table {table}")
        if not version.is_snapshot:
            return is_unchanged(spark, source, table)
        found = [str(row[0]) for row in run_sql(spark, query).collect()]
    except spark_errors():
        return False
    return [path.rpartition("/")[2] for path in found[-1:]] == [wanted.rpartition("/")[2]]


def is_unchanged(spark: SparkSession, source: Source, table: str) -> bool:
    """Say whether the metadata of a table, by its quoted name in a session, is the version that is known here."""
    query = f"select file from {table}.metadata_log_entries"  # noqa: S608 - names are quoted
    # Of the metadata's versions the last one is the catalog's own.
    found = [str(row[0]) for row in run_sql(spark, query).collect()][-1:]
    return [path.rpartition("/")[2] for path in found] == [source.metadata_location.rpartition("/")[2]]


def _registering_session(spark: SparkSession, source: Source) -> tuple[str, SparkSession]:
    properties = _file_properties(source)
    name = f"icestats_{hashlib.sha256(repr(sorted(properties.items())).encode()).hexdigest()[:12]}"
    with _lock:
        if name not in _folders:
            _folders[name] = Path(tempfile.mkdtemp(prefix="icestats-catalog-"))
            atexit.register(shutil.rmtree, _folders[name], ignore_errors=True)
        folder = _folders[name]
    catalog = {
        **properties,
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        "warehouse": folder.as_uri(),
    }
    return name, add_catalogs(spark, {name: catalog})


def _file_properties(source: Source) -> Mapping[str, str]:
    if local_path(source.metadata_location) is not None:
        return {}
    translated = spark_catalog_properties({**source.storage.properties, "type": "rest"}) or {}
    kept = {key: value for key, value in translated.items() if key.startswith(_FILE_PROPERTIES)}
    # Which class opens files is the user's choice, not that of a REST catalog's server.
    return {"io-impl": source.catalog_properties.get("io-impl", "org.apache.iceberg.io.ResolvingFileIO")} | kept


def _explained(session: SparkSession, source: Source, reason: str) -> AbstractContextManager[None]:
    failed = f"{source.name} cannot be scanned: {reason}, and Spark cannot read it either"
    doing = f"reading {source.name} in Spark"
    return explained_errors(
        session, doing, lambda said: UnsupportedError(f"{failed}: {said}"), source.catalog_properties
    )
