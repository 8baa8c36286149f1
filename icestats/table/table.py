"""The table that a person works with, and opening one by name or location."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icestats.errors import CallError, UnsupportedError, read_snapshot_id
from icestats.iceberg.catalog import DEMO_NAMESPACE, Source, demo_home, open_source, reopen_source
from icestats.table.estimates_facet import Estimating
from icestats.table.overview import Overview, build_overview, render_html, render_text
from icestats.table.statistics_facet import StatisticsFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEMO_TABLES = ("events", "flights")


class Table(StatisticsFiles, Estimating):
    """One snapshot of an Iceberg table, read-only until a `compute(...).commit()`.

    What has been read is kept; `refresh()` gives the table as it is now.

    Parameters
    ----------
    source : Source
        An opened table.
    snapshot_id : int, optional
        By default the current snapshot.
    ref : str, optional
        A branch or a tag instead.
    """

    def refresh(self) -> Table:
        """Return the table as it is now; a pinned snapshot stays."""
        return Table(reopen_source(self._source), *self._pin)

    def explore(self, *, column: str | None = None) -> Any:
        """Return the widget: everything that the metadata knows, and the panel that generates what is missing.

        Parameters
        ----------
        column : str, optional
            The column to begin with; by default one whose distribution is worth seeing.

        Raises
        ------
        ColumnNotFoundError
            The table has no such column.
        UnsupportedError
            The explorer's packages are not installed.
        """
        # The notebook layer stands above the library: it is looked up when it is asked for.
        try:
            explorer = importlib.import_module("icestats_widgets").Explorer
        except ModuleNotFoundError as error:
            raise UnsupportedError(f"the explorer needs {error.name}: pip install 'icestats[explorer]'") from error
        return explorer(self, column=column)

    def overview(self) -> Overview:
        """Return the figures that the manifest list and metadata.json give: what a table draws of itself."""
        found = build_overview(self.name, self.metadata, self.snapshot, self.schema, self._reader.manifest_files)
        unused = (f"{finding.title}: {finding.evidence}" for finding in self._reader.findings)
        return replace(found, findings=(*found.findings, *unused))

    def __repr__(self) -> str:
        return render_text(self.overview())

    def _repr_html_(self) -> str:
        return render_html(self.overview())


def check_table(table: object) -> None:
    """Raise CallError where an argument is no table that is open."""
    if not isinstance(table, Table):
        raise CallError(f"table is {table!r:.80}: expected a table, such as icestats.load('demo.flights')")


def load(
    name_or_location: str,
    *,
    catalog: str | Mapping[str, Any] | None = None,
    snapshot: int | str | None = None,
    ref: str | None = None,
    as_of: str | dt.datetime | None = None,
    spark: SparkSession | None = None,
) -> Table:
    """Open an Iceberg table. Reads its metadata.json only; starts no JVM and changes nothing.

    Parameters
    ----------
    name_or_location : str
        `catalog.namespace.table`, `namespace.table` (the default catalog of PyIceberg's configuration), or the location
        of a metadata.json or of a table's folder. `demo.events` and `demo.flights` are the embedded demo warehouse's.
    catalog : str or mapping, optional
        A catalog's name in PyIceberg's configuration, or its properties; for a location FileIO's properties, such as
        `s3.endpoint`. SQL catalogs know their tables by the catalog's name, which the property `name` gives
        ("catalog" by default).
    snapshot : int or str, optional
        A snapshot's id; by default the current one.
    ref : str, optional
        A branch or a tag instead; `main` is a branch.
    as_of : str or datetime.datetime, optional
        A point in time instead, ISO 8601 where text, UTC where it names no zone: the snapshot that was current then.
    spark : pyspark.sql.SparkSession, optional
        A classic session with Iceberg, whose catalogs are asked in place of PyIceberg's: any that it knows (Hadoop,
        Glue, JDBC, Nessie, one of your own). The name is as in its SQL, with backticks around a part that has dots.
        Statistics are committed through the same catalog, and what Spark has to do for this table this session does.

    Raises
    ------
    CatalogError, TableNotFoundError, MetadataError, SnapshotNotFoundError, CallError, UnsupportedError
        What does not exist or cannot be read, in one line.

    Notes
    -----
    The schema follows Iceberg's rule (`SnapshotUtil.schemaFor`, `VERSION AS OF` in Spark). Without a pin and with a
    branch it is the table's current one: the rows of every branch are read with it, whatever they were written with.
    With a tag, a snapshot's id or a time it is the one that the snapshot was made with, even where the snapshot is the
    current one. PyIceberg 0.12 itself reads a branch with the schema of its last snapshot.

    Examples
    --------
    >>> import icestats
    >>> table = icestats.load("demo.events")
    >>> table.schema.find("price").type
    'double'
    """
    pins = {"snapshot": snapshot, "ref": ref, "as_of": as_of}
    given = [f"{name} {value!r}" for name, value in pins.items() if value is not None]
    if len(given) > 1:
        raise CallError(f"{' and '.join(given)} were given: give one of them")
    if ref is not None and not isinstance(ref, str):
        raise CallError(f"ref {ref!r:.80} is no name of a branch or tag: expected text")
    snapshot_id = None if snapshot is None else read_snapshot_id(snapshot)
    timestamp_ms = None if as_of is None else _milliseconds(as_of)
    source = _open(name_or_location, catalog, spark)
    if timestamp_ms is not None:
        snapshot_id = source.metadata.find_snapshot_as_of(timestamp_ms).snapshot_id
    return Table(source, snapshot_id, ref)


def _open(name: str, catalog: str | Mapping[str, Any] | None, spark: SparkSession | None) -> Source:
    if spark is None:
        return open_source(name, catalog)
    if catalog is not None:
        raise CallError("catalog and spark were given: a catalog of the session is a part of the table's name")
    from icestats.spark.session_catalog import open_in_session

    return open_in_session(spark, name)


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
    if table not in DEMO_TABLES:
        raise CallError(f"no demo table {table!r}: expected {' or '.join(DEMO_TABLES)}")
    from icestats.spark.demo.demo_warehouse import build_demo

    build_demo(demo_home(), progress=progress)
    return load(f"{DEMO_NAMESPACE}.{table}")


def _milliseconds(moment: str | dt.datetime) -> int:
    try:
        found = dt.datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        zoned = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
        return (zoned.astimezone(dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    except (ValueError, OverflowError, AttributeError) as error:
        expected = "expected a datetime, or ISO 8601, such as 2026-09-01T10:00"
        raise CallError(f"as_of {moment!r:.80} is no point in time: {expected}") from error
