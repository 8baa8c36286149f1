"""DuckDB over a table's metadata: views that are read when a query needs them, and no more of them than it needs."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from icestats.answers.redaction import safe_cause
from icestats.answers.schemas import COLUMNS, MANIFESTS, REFS, SNAPSHOTS, files_schema, partitions_schema
from icestats.answers.text import one_line
from icestats.errors import CallError
from icestats.iceberg.metadata import PartitionSpec, TableMetadata
from icestats.iceberg.partition_columns import PartitionColumn, struct_type
from icestats.iceberg.types import decode_value, to_arrow_type
from icestats.snapshot.interrupts import CallingThread
from icestats.snapshot.snapshot_reader import SnapshotReader

_METRICS = frozenset(
    {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
)
_UNSAFE_TYPES = frozenset({"uuid"})
"""Java ordered UUIDs as two signed numbers: its summaries bound other sets of values than their bytes do."""
_READING_WORDS = ("from", "pivot", "select", "with")
_EXPLAIN = re.compile(r"^\s*explain\b(\s*analyze\b)?(\s*\(\s*(analyze|format)\b[^()]*\))?", re.IGNORECASE)
_SETTINGS = {
    "timezone": "UTC",
    # DuckDB keeps the folder that it spills to open for queries: by default ./.tmp.
    "temp_directory": "",
    "enable_progress_bar": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}
"""What a query reads are the views: no files, no network, no extensions, no variables of Python. In their order."""

_UNITS = {unit: 1 << 10 * power for power, unit in enumerate(("bytes", "KiB", "MiB", "GiB", "TiB"))}
_BATCH_ROWS = 1 << 14

Reader = Callable[[list[str] | None, Any], pa.Table]
"""Reads a view's rows for some columns (None: all) and an Arrow expression (None: no filter)."""


class LazyView(ds.Dataset):
    """An Arrow dataset whose rows are read when it is scanned, by a reader that is told the filter.

    DuckDB scans Arrow datasets through `schema` and `scanner(columns=..., filter=...)`, and asks no more of them.
    """

    def __init__(self, schema: pa.Schema, read: Reader) -> None:
        self._view_schema = schema
        self._read = read
        self.calling: CallingThread | None = None
        """The thread that reads, while a query runs in another one."""
        self.failure: BaseException | None = None
        """What reading failed with: DuckDB passes on no more than its text."""

    @property
    def schema(self) -> pa.Schema:
        """The view's schema."""
        return self._view_schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> ds.Scanner:  # noqa: A002 - Arrow's name
        """Read what a scan asks for."""
        try:
            read = functools.partial(self._read, columns, filter)
            rows = read() if self.calling is None else self.calling.ask(read)
        except BaseException as error:
            self.failure = error
            raise
        return ds.Scanner.from_batches(rows.to_batches(), schema=rows.schema, columns=columns, filter=filter)


def run_query(query: str, views: Mapping[str, LazyView]) -> pa.Table:
    """Run a DuckDB query over some views.

    Parameters
    ----------
    query : str
        One SELECT statement of DuckDB's dialect, or EXPLAIN of one.
    views : mapping of str to LazyView
        The views by name.

    Raises
    ------
    CallError
        The query is wrong, is not one statement that reads, or wants something beside the views: a file, the network,
        an extension, a setting; or its answer takes more than a quarter of the memory that DuckDB may use.
    IcestatsError
        What reading a view failed with.
    KeyboardInterrupt
        The calling thread was interrupted; the query has ended.
    """
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise CallError(f"the query {query!r:.80} has a character that no encoding has: expected a SELECT")
    calling = CallingThread()
    connection = calling.wait_for(_connect, lambda: None)
    try:
        found = calling.wait_for(lambda: _ask(connection, query, views, calling), connection.interrupt)
    except Exception as error:
        import duckdb

        failure = next((view.failure for view in views.values() if view.failure is not None), None)
        if failure is not None:
            raise failure from safe_cause(error)
        # What fails after the first rows comes as an error of Arrow's stream.
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError):
            said = one_line(str(error).partition("LINE 1:")[0])
            raise CallError(f"the query failed: {said}; the views are {', '.join(views)}") from safe_cause(error)
        raise
    finally:
        connection.close()
    return _with_unique_names(found)


def build_views(reader: SnapshotReader) -> dict[str, LazyView]:
    """Build the views of a snapshot.

    Parameters
    ----------
    reader : SnapshotReader
        Reads what the views show.
    """
    metadata = reader.source.metadata
    partition = struct_type(reader.partition_columns)
    return {
        "manifests": LazyView(MANIFESTS, lambda *_: reader.read_manifests()),
        "files": _files_view(files_schema(partition), reader),
        "partitions": LazyView(partitions_schema(partition), lambda *_: reader.read_partitions()),
        "columns": LazyView(COLUMNS, lambda *_: reader.read_columns()),
        "snapshots": LazyView(SNAPSHOTS, lambda *_: _snapshots(metadata)),
        "refs": LazyView(REFS, lambda *_: _refs(metadata)),
    }


def _files_view(view_schema: pa.Schema, reader: SnapshotReader) -> LazyView:
    specs, schema = reader.source.metadata.specs, reader.schema

    def read(columns: list[str] | None, row_filter: Any) -> pa.Table:
        partition = reader.partition_columns
        manifests = _select_manifests(reader.manifest_files, row_filter, view_schema, specs, partition)
        # A filter may need statistics that the query does not return; Arrow does not say which columns it names.
        needs_metrics = columns is None or row_filter is not None or not _METRICS.isdisjoint(columns)
        found = reader.read_files([field.field_id for field in schema.columns] if needs_metrics else [], manifests)
        # These manifests alone may not tell the type of a partition field that no schema has any more.
        return found.cast(view_schema)

    return LazyView(view_schema, read)


def _select_manifests(
    manifest_files: pa.Table,
    row_filter: pc.Expression | None,
    files_schema: pa.Schema,
    specs: Mapping[int, PartitionSpec],
    partition: Sequence[PartitionColumn],
) -> pa.Table:
    """Return the manifests that may hold files which match, by the manifest list alone.

    Each manifest's partition summaries become a guarantee about its files, which Arrow simplifies the expression with:
    where nothing is left of it, the manifest need not be read. Source: Iceberg spec, "Manifest Lists", `field_summary`.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    row_filter : pyarrow.compute.Expression or None
        About columns of `files_schema`; None selects all.
    files_schema : pyarrow.Schema
        The schema of `Table.files`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    partition : sequence of PartitionColumn
        The fields of `partition` in `files_schema`: a spec may call one otherwise, or another one so.

    Returns
    -------
    pyarrow.Table
        Rows of `manifest_files`, in their order: none that could match is missing.
    """
    if row_filter is None or not manifest_files.num_rows:
        return manifest_files
    columns = {column.field_id: column for column in partition}
    parquet, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    rows = manifest_files.to_pylist()
    # Fragments of files that are never opened: they carry the guarantees.
    fragments = [
        parquet.make_fragment(str(i), local, partition_expression=_guarantee(row, specs, columns))
        for i, row in enumerate(rows)
    ]
    kept = ds.FileSystemDataset(fragments, files_schema, parquet, local).get_fragments(filter=row_filter)
    return manifest_files.take(pa.array(sorted(int(fragment.path) for fragment in kept), pa.int64()))


def _guarantee(
    row: Mapping[str, Any], specs: Mapping[int, PartitionSpec], columns: Mapping[int, PartitionColumn]
) -> pc.Expression:
    known = pc.field("spec_id") == pa.scalar(row["partition_spec_id"], pa.int32())
    known &= pc.field("manifest_path") == row["manifest_path"]
    if row["content"] == "data":
        known &= pc.field("content") == "data"
    spec = specs.get(row["partition_spec_id"])
    for field, summary in zip(spec.fields if spec else (), row["partitions"] or (), strict=False):
        column = columns[field.field_id]
        # A writer may have left out what the spec asks for: then a value may be null.
        if column.type is None or column.type in _UNSAFE_TYPES or summary["contains_null"] is not False:
            continue
        if summary["contains_nan"] is not False and column.type in ("float", "double"):
            continue
        for side, bound in (("lower", summary["lower_bound"]), ("upper", summary["upper_bound"])):
            value = _scalar(column.type, bound)
            if value is not None:
                reference = pc.field("partition", column.name)
                known &= reference >= value if side == "lower" else reference <= value
    return known


def _scalar(type_text: str, bound: bytes | None) -> pa.Scalar | None:
    if bound is None:
        return None
    try:
        return pa.scalar(decode_value(type_text, bound), to_arrow_type(type_text))
    except (ValueError, TypeError, pa.ArrowException):
        return None


def _snapshots(metadata: TableMetadata) -> pa.Table:
    rows = [
        {
            "snapshot_id": snapshot.snapshot_id,
            "parent_snapshot_id": snapshot.parent_snapshot_id,
            "sequence_number": snapshot.sequence_number,
            "committed_at": dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC),
            "operation": snapshot.operation,
            "schema_id": snapshot.schema_id,
            "manifest_list": snapshot.manifest_list,
            "summary": list(snapshot.summary.items()),
        }
        for snapshot in metadata.snapshots.values()
    ]
    return pa.Table.from_pylist(rows, SNAPSHOTS)


def _refs(metadata: TableMetadata) -> pa.Table:
    rows = [{"name": name, "type": ref.type, "snapshot_id": ref.snapshot_id} for name, ref in metadata.refs.items()]
    return pa.Table.from_pylist(rows, REFS)


def _connect() -> Any:
    import duckdb

    connection = duckdb.connect()
    for name, value in _SETTINGS.items():
        connection.execute(f"set {name} = '{value}'")
    return connection


def _ask(connection: Any, query: str, views: Mapping[str, LazyView], calling: CallingThread) -> pa.Table:
    for name, view in views.items():
        view.calling = calling
        connection.register(name, view)
    _check_selects(query, connection.extract_statements)
    number, unit = connection.execute("select current_setting('memory_limit')").fetchall()[0][0].split()
    return _collect(connection.sql(query).to_arrow_reader(_BATCH_ROWS), int(float(number) * _UNITS[unit]) // 4)


def _collect(reader: pa.RecordBatchReader, limit: int) -> pa.Table:
    """Read an answer as far as a limit in bytes: DuckDB counts none of what it hands on."""
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > limit:
            # What an error is raised from stays as long as the error.
            del batch, batches
            raise CallError(
                f"the answer has more than {limit:,} bytes, a quarter of what DuckDB may use here: select fewer "
                "columns, aggregate, join views on their columns, or end the query with a limit"
            )
    return pa.Table.from_batches(batches, reader.schema)


def _with_unique_names(rows: pa.Table) -> pa.Table:
    known, taken = set(rows.column_names), set[str]()
    names = []
    for name in rows.column_names:
        numbered = (f"{name}_{number}" for number in count(1))
        unique = name if name not in taken else next(other for other in numbered if other not in known)
        known.add(unique)
        taken.add(name)
        names.append(unique)
    return rows.rename_columns(names)


def _check_selects(query: str, parse: Callable[[str], Sequence[Any]]) -> None:
    """Refuse what is not one statement that reads, and say so; what is hidden in one finds no file to open."""
    statements = parse(query)
    if len(statements) != 1:
        raise CallError(f"the query {query!r:.80} has {len(statements)} statements: expected one SELECT")
    if not _reads(_EXPLAIN.sub("", statements[0].query, count=1), parse):
        raise CallError(f"the query {query!r:.80} does more than read: expected a SELECT")


def _reads(statement: str, parse: Callable[[str], Sequence[Any]]) -> bool:
    try:
        kinds = [one.type.name for one in parse(statement)]
    except ValueError:
        # DuckDB 2.0 knows more statements than its Python package has names for.
        return False
    # PIVOT is made of several statements inside; so is what writes its rows.
    return kinds == ["SELECT"] or (kinds == ["MULTI"] and statement.split(maxsplit=1)[0].lower() in _READING_WORDS)
