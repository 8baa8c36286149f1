"""DuckDB over a table's metadata: views that are read when a query needs them, and no more of them than it needs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from icestats.answers.text import one_line
from icestats.errors import CallError
from icestats.snapshot.interrupts import CallingThread

_READING_WORDS = ("explain", "from", "pivot", "select", "with")

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
        The query is wrong, or is not one statement that reads.
    IcestatsError
        What reading a view failed with.
    KeyboardInterrupt
        The calling thread was interrupted; the query has ended.
    """
    calling = CallingThread()
    connection = calling.wait_for(_connect, lambda: None)
    try:
        found = calling.wait_for(lambda: _ask(connection, query, views, calling), connection.interrupt)
    except Exception as error:
        failure = next((view.failure for view in views.values() if view.failure is not None), None)
        if failure is not None:
            raise failure from error
        if _is_duckdbs(error):
            said = one_line(str(error).partition("LINE 1:")[0])
            raise CallError(f"the query failed: {said}; the views are {', '.join(views)}") from error
        raise
    finally:
        connection.close()
    return _with_unique_names(found)


def _connect() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set python_enable_replacements = false")
    connection.execute("set timezone = 'UTC'")
    return connection


def _ask(connection: Any, query: str, views: Mapping[str, LazyView], calling: CallingThread) -> pa.Table:
    for name, view in views.items():
        view.calling = calling
        connection.register(name, view)
    _check_selects(query, connection.extract_statements(query))
    return connection.sql(query).to_arrow_table()


def _is_duckdbs(error: Exception) -> bool:
    import duckdb

    return isinstance(error, duckdb.Error)


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


def _check_selects(query: str, statements: Sequence[Any]) -> None:
    """Refuse what is not one statement that reads: COPY writes files, ATTACH makes them."""
    if len(statements) != 1:
        raise CallError(f"the query {one_line(query)!r} has {len(statements)} statements: expected one SELECT")
    kind = statements[0].type.name
    # PIVOT is made of several statements inside; so is what writes its rows.
    is_pivot = kind == "MULTI" and query.split(maxsplit=1)[0].lower() in _READING_WORDS
    if kind not in ("SELECT", "EXPLAIN") and not is_pivot:
        raise CallError(f"the query {one_line(query)!r} does more than to read: expected a SELECT")
