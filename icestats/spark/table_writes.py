"""What Spark commits to a table: rows of a DataFrame, by its own writer; manifests, by Iceberg's own procedure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from icestats.answers.text import printable, quote_name
from icestats.errors import (
    CallError,
    CommitError,
    IcestatsError,
    SparkUnavailableError,
    UnsupportedError,
    said_if_cut,
)
from icestats.iceberg.catalog import Source, load_writable_table
from icestats.iceberg.confined_io import find_long_wait, find_unsafe_deletes
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.reach import PLACES_OF_DATA, check_writes, is_same
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.spark.jobs import explain_failure, explained_errors, watch_jobs
from icestats.spark.plain_sql import run_sql
from icestats.spark.session import get_session, spark_catalog_properties
from icestats.spark.session_catalog import find_session
from icestats.spark.spark_scan import refuse_code

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

_REWRITING = "the Spark job that rewrites manifests"
_OF_HADOOP = (
    *("fs.", "dfs.", "hadoop.", "rpc.", "ipc.", "net.", "topology."),
    *("google.cloud.", "juicefs.", "alluxio.", "ozone.", "hdds."),
)
"""How settings of Hadoop begin that say which class opens files, and at which endpoint: `rpc.engine.` names a class for
HDFS. The last ones are those that clients of one storage take by its own name, as Google's does:
`google.cloud.auth.access.token.provider.impl`."""
_BLANKS = "".join(map(chr, range(33)))
"""What Hadoop takes away in front of a name."""
_UNKNOWN = re.compile(
    "CommitStateUnknownException|RESTException|ServiceFailureException|UncheckedSQLException|"
    "no answer from the server of Spark Connect"
)
"""What Iceberg raises where the catalog has given no answer, or none that can be read; a broken connection is a
RESTException. A server of Spark Connect goes on without its client."""

Mode = Literal["append", "overwrite partitions"]


class Look(Protocol):
    """A look at a table that Spark has failed to write to."""

    def __call__(self, said: str, *, is_refused: bool) -> str | None:
        """Say what is known of the write, for what Spark says of it; None: it was not taken."""


def write_dataframe(
    frame: DataFrame, source: Source, mode: Mode, snapshot_properties: Mapping[str, str], look: Look
) -> None:
    """Write a DataFrame to a table: one commit of data.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its session has the table's catalog, under the same name.
    source : Source
        The table.
    mode : {"append", "overwrite partitions"}
        Whether to add rows, or to replace the partitions that the rows are of.
    snapshot_properties : mapping of str to str
        For the snapshot's summary. Where there is nothing to replace, no snapshot is made.
    look : Look
        Asked where Spark fails at the write itself, and not before it.

    Raises
    ------
    CallError
        It is no DataFrame of Spark's, or its session writes elsewhere than to `main`.
    UnsupportedError
        The session does not know the table's catalog, or has another table of this name; or the table has settings of
        Hadoop's among its properties.
    CommitError
        Spark could not write; or there was no answer, and it is unknown: the message says which.
    MetadataError
        The table names manifests, or a place for data, where it has no business.
    SparkUnavailableError
        The session's JVM has ended: the message says where the rows were committed all the same.
    KeyboardInterrupt
        As an interrupt raises it; the jobs are cancelled.
    """
    if not hasattr(frame, "sparkSession"):
        raise CallError(f"frame is of type {type(frame).__name__}: expected a DataFrame of Spark's")
    name = source.catalog_name
    if source.identifier is None or name is None:
        raise UnsupportedError(f"{source.name} is a metadata file: open the table through its catalog to write")
    target = _refuse_unsafe(source)
    _refuse_settings(source, target)
    identifier = quote_name(name, *source.identifier)
    doing = f"the write to {source.name} (its snapshots say whether the rows were committed)"
    explain = partial(_explain_writing, source)
    known = source.catalog_properties
    with explained_errors(frame.sparkSession, doing, explain, known):
        if frame.sparkSession.conf.get(f"spark.sql.catalog.{name}", None) is None:
            raise UnsupportedError(
                f"the DataFrame's session does not know the catalog {name!r}: get the session by "
                "icestats.spark.session.get_session with it, or set spark.sql.catalog." + name
            )
        _refuse_staging(frame.sparkSession, source, target.metadata.properties)
        with watch_jobs(frame.sparkSession, f"icestats: rows for {source.name}"):
            _refuse_other_table(frame.sparkSession, source, target)
            writer = frame.writeTo(identifier)
            for key, value in snapshot_properties.items():
                writer = writer.option(f"snapshot-property.{key}", value)
            note = f"interrupted while writing to {source.name}: its rows may still arrive, look before writing again"
            explained = explained_errors(frame.sparkSession, doing, partial(explain, look=look), known)
            with said_if_cut(note), _looking_behind_the_end(look), explained:
                writer.append() if mode == "append" else writer.overwritePartitions()


def has_rows(frame: DataFrame) -> bool:
    """Whether a DataFrame that was written has rows: asked where no snapshot was made of it."""
    with explained_errors(frame.sparkSession, "looking for rows to write"):
        return not frame.isEmpty()


@contextmanager
def _looking_behind_the_end(look: Look) -> Iterator[None]:
    """Say of a write whose JVM has ended that its rows are there, where they are: run again, it would double them."""
    try:
        yield
    except SparkUnavailableError as error:
        end = str(error).partition(" failed: ")[2].partition("; ")[0]
        if (found := look(end, is_refused=True)) is None:
            raise
        raise SparkUnavailableError(found) from None


def _explain_writing(source: Source, said: str, look: Look | None = None) -> CommitError:
    found = None if look is None else look(said, is_refused=_UNKNOWN.search(said) is None)
    return CommitError(found or f"Spark could not write to {source.name}: {said}")


def _refuse_settings(source: Source, target: Table) -> None:
    """Refuse a table that would have rows written to another host, or by a class of its choice.

    Java's writers of Parquet and ORC put a table's properties into Hadoop's settings.
    """
    properties = target.metadata.properties
    for place in (properties[name] for name in PLACES_OF_DATA if name in properties):
        check_writes(place, target.metadata_location, source.storage.properties)
    named = next((name for name in properties if name.lstrip(_BLANKS).startswith(_OF_HADOOP)), None)
    if named is not None:
        raise UnsupportedError(
            f"{source.name} has the property {named:.80}, by which Spark would open the files of these rows as the "
            "table says: they are not written; remove the property if you may"
        )


def _refuse_staging(session: SparkSession, source: Source, properties: Mapping[str, str]) -> None:
    """Refuse a session whose writes to a table are staged: no statistics would be registered, nor the rows seen."""
    is_staged = properties.get("write.wap.enabled", "").lower() == "true"
    for name in ("spark.wap.id", "spark.wap.branch") if is_staged else ():
        if session.conf.get(name, None) is not None:
            raise CallError(
                f"rows are written to main: {source.name} has write.wap.enabled, and the session {name}, unset it"
            )


def _refuse_other_table(session: SparkSession, source: Source, target: Table) -> None:
    """Refuse a session whose catalog of the table's catalog's name has another table under the table's own name."""
    table = quote_name(source.catalog_name or "", *(source.identifier or ()))
    run_sql(session, f"refresh table {table}")
    files = run_sql(session, f"select file from {table}.metadata_log_entries").collect()  # noqa: S608 - names are quoted
    # Others may have committed since.
    if not any(is_same(str(row[0]), target.metadata_location) for row in files):
        found = printable(str(files[-1][0])) if files else "no metadata"
        raise UnsupportedError(
            f"the session's catalog {source.catalog_name!r} has another table {'.'.join(source.identifier or ())}: "
            f"{found}, and {source.name} is {target.metadata_location}; use a session whose catalog has this one"
        )


def run_rewrite_manifests(
    source: Source, statements: Sequence[str], spark: SparkSession | None = None
) -> tuple[int, int]:
    """Run the statements that rewrite a table's manifests.

    Parameters
    ----------
    source : Source
        The table, in a catalog.
    statements : sequence of str
        Of `Maintenance.rewrite_manifests`: the last one is the call of the procedure.
    spark : pyspark.sql.SparkSession, optional
        A session that knows the catalog by its name; by default the running one, or a new local one.

    Returns
    -------
    tuple of int
        How many manifests were rewritten, and how many were made of them.

    Raises
    ------
    CommitError
        The table is a bare metadata.json, or the rewrite was not committed.
    UnsupportedError
        Spark has no catalog of this kind, or another table of this name; or its Iceberg does not sort manifests.
    SparkUnavailableError
        There is no Java 17, or Spark cannot start.
    """
    if source.identifier is None or source.catalog_name is None:
        raise CommitError(
            f"{source.metadata_location} is a metadata file: open the table through its catalog to rewrite"
        )
    target = _refuse_unsafe(source)
    session = spark
    if session is None and source.catalog is not None:
        session = find_session(source, None)
    if session is None:
        properties = spark_catalog_properties(source.catalog_properties)
        if properties is None:
            raise UnsupportedError(f"Spark has no catalog like {source.catalog_name!r}: give a session that knows it")
        session = get_session({source.catalog_name: properties}, location=source.metadata_location)
    counts = (0, 0)
    explained = explained_errors(session, _REWRITING, _explain_rewriting, source.catalog_properties)
    with explained, watch_jobs(session, f"icestats: {source.name}"):
        _refuse_other_table(session, source, target)
        for statement in statements:
            rows = run_sql(session, statement).collect()
            if statement.startswith("CALL"):
                counts = (int(rows[0][0]), int(rows[0][1]))
    return counts


def _explain_rewriting(said: str) -> IcestatsError:
    if "UNRECOGNIZED_PARAMETER_NAME" in said and "sort_by" in said:
        return UnsupportedError(
            "the session's Iceberg does not sort manifests, which 1.12 does (Spark 4.0 has 1.11 at most): leave "
            "sort_by out, or rewrite with Spark 3.5 or 4.1"
        )
    failure = explain_failure(_REWRITING, said)
    if _UNKNOWN.search(said):
        return CommitError(f"{failure}; it may be done all the same, and to do it again does no harm")
    return failure


def _refuse_unsafe(source: Source) -> Table:
    """Refuse a table whose own metadata would have Java run code, read, write or delete anywhere, or wait for days.

    Returns the table as its catalog has it now.
    """
    refuse_code(source)
    target = load_writable_table(source)
    refusal = find_unsafe_deletes(target) or find_long_wait(target)
    if refusal is not None:
        raise refusal
    metadata = read_metadata(source.storage, target.metadata_location)
    # Java opens them to merge them, to find what is replaced, and to rewrite them.
    for path in read_manifest_list(source.storage, metadata.find_snapshot())["manifest_path"].to_pylist():
        source.storage.check(path)
    return target
