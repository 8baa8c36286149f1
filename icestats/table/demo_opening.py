"""The embedded demo warehouse: two tables in one folder, one SQLite catalog, no server."""

from __future__ import annotations

from collections.abc import Callable

from icestats.errors import CallError
from icestats.iceberg.catalog import DEMO_NAMESPACE, demo_home
from icestats.table.opening import load
from icestats.table.table import Table

TABLES = ("events", "flights")


def demo(table: str = "events", *, progress: Callable[[str], None] | None = None) -> Table:
    """Return a table of the demo warehouse, which PySpark builds at the first call.

    Parameters
    ----------
    table : {"events", "flights"}
        `events`: 10 days of an event stream, `PARTITIONED BY (days(event_time), bucket(64, device_id))`; `flights`: the
        336,776 flights that left New York in 2013.
    progress : callable, optional
        Called with a line of text at each step of the build.

    Raises
    ------
    CallError
        There is no such demo table.
    SparkUnavailableError
        The warehouse is not built yet, and there is no Java 17 to build it with.

    Examples
    --------
    >>> import icestats
    >>> icestats.demo().name
    'demo.events'
    """
    if table not in TABLES:
        raise CallError(f"no demo table {table!r}: expected {' or '.join(TABLES)}")
    from icestats.spark.demo.demo_warehouse import build_demo

    build_demo(demo_home(), progress=progress)
    return load(f"{DEMO_NAMESPACE}.{table}")
