"""Writing data so that the statistics of manifests never go stale: a commit of data, then one of its new manifests.

Source: the manifest-level statistics proposal, "During Commits". Figures of older manifests come
from the committed statistics, so that only the new manifests are read.

Nothing here deletes by a filter: PyIceberg 0.12 takes rows with NaN that do not match, and leaves others that do.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from icestats.answers.text import one_line, printable
from icestats.errors import (
    CallError,
    CommitError,
    IcestatsError,
    SparkUnavailableError,
    UnsupportedError,
    said_if_cut,
)
from icestats.iceberg.catalog import explain_catalog_error, load_iceberg_table, load_writable_table
from icestats.table.statistics import CommitReport
from icestats.table.table import Table, check_table

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table import Transaction
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot
    from pyspark.sql import DataFrame

    from icestats.iceberg.metadata import Snapshot

__all__ = ["Written", "append", "append_dataframe", "overwrite", "overwrite_partitions"]

_LOG = logging.getLogger("icestats")
_WRITE_ID = "icestats.write-id"
"""In the summaries of a write's snapshots: others may commit before and after it."""
_LEAST = {
    "write.parquet.page-row-limit": 1,
    "write.parquet.row-group-limit": 100,
    "write.target-file-size-bytes": 1 << 16,
}
"""Of properties by which PyIceberg cuts rows into parts: pages of fewer rows end the process or have no end, and
smaller row groups or files take hours and gigabytes."""


@dataclass(frozen=True)
class Written:
    """What a write has done."""

    table: Table
    """The table as it is now, or as it was before where it could not be read then."""
    snapshot_id: int | None
    """The snapshot that the write has made; None where it changed nothing."""
    statistics: CommitReport | None
    """What has been registered; None where that failed, or where there was nothing to register."""
    message: str
    """Why the statistics were not registered, and how to catch up, or why `table` is older; else empty."""


def append(table: Table, rows: pa.Table, *, snapshot_properties: Mapping[str, str] | None = None) -> Written:
    """Append rows through PyIceberg, and register the statistics of the manifests.

    As by each of these writers, the snapshot's summary gets a property `icestats.write-id`, by which it is told from
    the snapshots of others.

    Parameters
    ----------
    table : Table
        Opened through its catalog, as it is now: rows are written to its branch `main`.
    rows : pyarrow.Table
        With the table's columns.
    snapshot_properties : mapping of str to str, optional
        For the snapshot's summary.

    Returns
    -------
    Written
        Where only what comes after the rows failed, they are there, and `message` says how to catch up; it is logged
        too, as a warning of the logger `icestats`.

    Raises
    ------
    CallError
        The table is opened at another branch, at a tag, a snapshot or a time; the properties are no texts.
    UnsupportedError
        The table has format version 3.
    CommitError
        The rows were not written; or there was no answer, and it is unknown: the message says which.
    """
    given = _check_properties(snapshot_properties)
    named = _drop_ids(rows)
    return _write(table, lambda transaction, own: transaction.append(named, snapshot_properties=given | own))


def overwrite(table: Table, rows: pa.Table) -> Written:
    """Replace all rows by others, through PyIceberg; the statistics as `append`.

    Parameters
    ----------
    table : Table
        Opened through its catalog.
    rows : pyarrow.Table
        With the table's columns.

    Raises
    ------
    CallError, UnsupportedError
        As for `append`.
    CommitError
        Nothing was written; or that is unknown, as for `append`.
    """
    named = _drop_ids(rows)
    return _write(table, lambda transaction, own: transaction.overwrite(named, snapshot_properties=own))


def append_dataframe(table: Table, frame: DataFrame) -> Written:
    """Append a Spark DataFrame through Spark's own writer; the statistics as `append`.

    Raises
    ------
    CallError
        As for `append`.
    CommitError, UnsupportedError
        Spark could not write, or got no answer: the message says which; the DataFrame's session does not know the
        table's catalog.
    """
    return _write_frame(table, frame, "append")


def overwrite_partitions(table: Table, frame: DataFrame) -> Written:
    """Replace the partitions that a Spark DataFrame has rows of, by Spark's own writer; the statistics as `append`.

    Raises
    ------
    CallError
        As for `append`.
    CommitError, UnsupportedError
        Spark could not write, or got no answer: the message says which; the DataFrame's session does not know the
        table's catalog.
    """
    return _write_frame(table, frame, "overwrite partitions")


def _write(table: Table, change: Callable[[Transaction, dict[str, str]], object]) -> Written:
    # What these mend: nulls, and bounds in manifests.
    import icestats.scan.arrow_files
    import icestats.scan.whole_bounds  # noqa: F401
    from icestats.commit.registration import CONFLICTS, REFUSED_ROWS, look_behind_answers
    from icestats.commit.table_state import find_refusal, known_properties
    from icestats.iceberg.confined_io import find_long_wait
    from icestats.scan.write_workers import own_workers

    _refuse_pin(table)
    target = load_writable_table(table._source)
    version = target.metadata.format_version
    if version > 2:
        raise UnsupportedError(
            f"{table.name} has format version {version}: PyIceberg 0.12 writes rows of versions 1 and 2 only, "
            "append_dataframe writes them by Spark"
        )
    if (refusal := find_refusal(target) or find_long_wait(target)) is not None:
        raise refusal
    _refuse_small_parts(target)
    write_id, io = str(uuid.uuid4()), target.io
    look_behind_answers(target, lambda: _find_written(target.metadata.snapshots, write_id) is not None)
    transaction, is_sent = target.transaction(), False
    note = f"interrupted while writing to {table.name}: its rows may be there, look before writing again"
    try:
        with own_workers():
            change(transaction, {_WRITE_ID: write_id})
            is_sent = True
            with said_if_cut(note):
                transaction.commit_transaction()
    except SparkUnavailableError as error:
        # A session's catalog: its JVM has ended, before or behind the commit.
        end = str(error).partition("; ")[0]
        unsure = _explain_failure(table, write_id, end, is_refused=False) if is_sent else None
        raise (CommitError(unsure) if unsure else error) from error.__cause__
    except IcestatsError:
        raise
    except Exception as error:  # noqa: BLE001 - each catalog has its own errors
        said, cause = explain_catalog_error(error, known_properties(target))
        is_refused = isinstance(error, REFUSED_ROWS)
        why = _explain_failure(table, write_id, said, is_refused=is_refused) if is_sent else None
        # What PyIceberg itself takes for a conflict: it has removed the manifests then.
        is_useless = not is_sent or isinstance(error, CONFLICTS)
        left = _discard(target, io) if why is None and is_useless else ""
        raise CommitError(why or f"{table.name} took no rows: {said}{left}") from cause
    return _register(table, _find_written(target.metadata.snapshots, write_id))


def _discard(target: IcebergTable, io: FileIO) -> str:
    """Remove the files of rows that are not in the table, which PyIceberg leaves; return what to say of them."""
    from icestats.commit.registration import describe_left
    from icestats.commit.table_state import remove_file

    # Another one where the table has been loaded again.
    target.io = io
    kept = [path for path in getattr(io, "written", {}) if not remove_file(target, path)]
    return f"; {describe_left(kept)}" if kept else ""


def _find_written(snapshots: Iterable[Snapshot | IcebergSnapshot], write_id: str) -> int | None:
    """Return the last snapshot of a write: an overwrite makes two."""
    own = [one.snapshot_id for one in snapshots if one.summary and one.summary.get(_WRITE_ID) == write_id]
    return own[-1] if own else None


def _check_properties(properties: object) -> dict[str, str]:
    given = {} if properties is None else properties
    if isinstance(given, Mapping) and all(isinstance(text, str) for pair in given.items() for text in pair):
        return dict(given)
    raise CallError(f"snapshot_properties is {properties!r:.80}: expected texts by their names")


def _drop_ids(rows: pa.Table) -> pa.Table:
    """Return rows whose columns go by name: those of another table's file have its ids, by which PyIceberg goes."""
    if not isinstance(rows, (pa.Table, pa.RecordBatchReader)):
        return rows
    schema = pa.schema([field.remove_metadata() for field in rows.schema])
    if isinstance(rows, pa.Table):
        return pa.Table.from_arrays(rows.columns, schema=schema)
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _refuse_small_parts(target: IcebergTable) -> None:
    for name, least in _LEAST.items():
        given = target.metadata.properties.get(name, str(least))
        with suppress(ValueError):
            if int(given) >= least:
                continue
        raise CommitError(
            f"{'.'.join(target.name())} has {given!r:.80} for {name}: rows are written where that is {least:,} or more"
        )


def _refuse_pin(table: Table) -> None:
    check_table(table)
    if table.pin not in ({}, {"ref": "main"}):
        given = ", ".join(f"{name}={value!r}" for name, value in table.pin.items())
        raise CallError(f"{table.name} was loaded with {given}, and rows are written to main: load it without")


def _explain_failure(table: Table, write_id: str, said: str, *, is_refused: bool) -> str | None:
    """Say what is known of a commit that failed: its answer may be lost, or come before it; None: it was not taken."""
    failed = f"no answer to the write to {table.name}: {said}"
    try:
        made = _find_written(load_iceberg_table(table._source).metadata.snapshots, write_id)
    except IcestatsError as unseen:
        # Without the advice to run it again, where the session's JVM has ended.
        why = one_line(unseen).partition("; ")[0]
        return f"{failed}; whether its rows were written is unknown ({why}), look before you write again"
    if made is not None:
        return f"{failed}; its rows are in snapshot {made}: do not write them again"
    if is_refused:
        return None
    return f"{failed}; its rows are not seen in the table, but may still arrive: look before you write again"


def _write_frame(table: Table, frame: DataFrame, mode: Literal["append", "overwrite partitions"]) -> Written:
    from icestats.commit.registration import WITHOUT_COMMIT
    from icestats.spark.table_writes import has_rows, write_dataframe

    _refuse_pin(table)
    write_id = str(uuid.uuid4())
    write_dataframe(frame, table._source, mode, {_WRITE_ID: write_id}, partial(_explain_failure, table, write_id))
    written = f"the rows are written to {table.name}"
    try:
        with said_if_cut(f"{written}: do not write them again"):
            fresh = table.refresh()
    except IcestatsError as error:
        raise CommitError(f"{written}, which cannot be read now: {error}") from error
    made = _find_written(fresh.metadata.snapshots.values(), write_id)
    if made is None and has_rows(frame):
        raise CommitError(str(_explain_failure(table, write_id, WITHOUT_COMMIT, is_refused=False)))
    return _register(fresh, made)


def _register(table: Table, snapshot_id: int | None) -> Written:
    if snapshot_id is None:
        return Written(table.refresh(), None, None, "")
    report, lacks = None, "its manifests' statistics are not"
    try:
        with said_if_cut(f"the rows are in snapshot {snapshot_id} of {table.name}: do not write them again"):
            table = table.refresh()
            report = table.compute(manifests=True).commit()
            lacks = "and its manifests' statistics too, but `table` is as it was before these"
            table = table.refresh()
    except IcestatsError as error:
        message = f"the rows are in snapshot {snapshot_id} of {table.name}, {lacks}: {error}"
        if report is None:
            message += "; catch up by table.compute(manifests=True).commit()"
        _LOG.warning(printable(message))
        return Written(table, snapshot_id, report, message)
    return Written(table, snapshot_id, report, "")
