"""The embedded demo warehouse: a SQLite catalog and two tables, built by PySpark once and then left alone."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestats.errors import CallError, CatalogError, CommitError
from icestats.iceberg.catalog import DEMO_CATALOG, DEMO_NAMESPACE, demo_catalog_properties
from icestats.iceberg.storage import local_path
from icestats.spark.demo.demo_events import EVENTS
from icestats.spark.demo.demo_flights import FLIGHTS
from icestats.spark.demo.demo_recipe import DemoRecipe
from icestats.spark.jobs import explained_errors
from icestats.spark.jvm import interrupts_first, unless_ended
from icestats.spark.session import active, find_running_session, get_session, spark_catalog_properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str], object]

RECIPES = {recipe.name: recipe for recipe in (FLIGHTS, EVENTS)}
WORKING_CATALOG = "icestats_in_the_making"
LOCK_TIMEOUT_S = 900.0

# A build is over before Java's second compiler pays off: without it the build takes a third less CPU.
_SHORT_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
# More tasks than this gain nothing on small commits; the number is fixed so that the files are the same everywhere.
_TASK_COUNT = 4


def build_demo(home: Path, *, progress: Progress | None = None, table: str | None = None) -> tuple[str, ...]:
    """Build the demo warehouse, or what of it is missing.

    A table is written in a working catalog and handed to the demo catalog at the end, so it is seen complete or not
    at all; what a build that was killed has left is removed by the next. Processes that build at the same time wait for
    each other. Rows, files and commits are the same in every build; ids and times of commits differ.

    Parameters
    ----------
    home : pathlib.Path
        The folder of the warehouse, as `icestats.iceberg.catalog.demo_home` gives it; made if need be.
    progress : callable, optional
        Called with a line of text as the build goes on; not at all when nothing is missing.
    table : str, optional
        Only this table, ``flights`` or ``events``; by default both.

    Returns
    -------
    tuple of str
        The tables that this call has built; empty when all were there.

    Raises
    ------
    CallError
        There is no demo table of that name.
    SparkUnavailableError
        A table is missing and Spark cannot be started.
    CatalogError
        The folder cannot be written.
    CommitError
        Spark failed while it wrote.
    """
    if table is not None and table not in RECIPES:
        raise CallError(f"no demo table {table!r}: there are {' and '.join(RECIPES)}")
    home = home.expanduser().absolute()
    recipes = [RECIPES[table]] if table else list(RECIPES.values())
    if all(is_finished(home, recipe) for recipe in recipes):
        return ()
    say = progress or (lambda _line: None)
    with _lock(home, say):
        return _build_missing(home, recipes, say)


def is_finished(home: Path, recipe: DemoRecipe) -> bool:
    """Whether a table was built to the end by this version of its recipe and is still in the catalog; without Spark."""
    try:
        built = json.loads(_marker(home, recipe.name).read_text(encoding="utf-8"))["recipe_version"]
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return bool(built == recipe.version) and _in_catalog(home, recipe.name)


def _build_missing(home: Path, recipes: Sequence[DemoRecipe], say: Progress) -> tuple[str, ...]:
    missing = [recipe for recipe in recipes if not is_finished(home, recipe)]
    if not missing:
        return ()
    for recipe in missing:
        _check_remains(home, recipe.name)
    say("starting Spark")
    properties = spark_catalog_properties(demo_catalog_properties(home)) or {}
    conf = _SHORT_LIVED if find_running_session() is None else None
    spark = get_session({DEMO_CATALOG: properties, WORKING_CATALOG: properties}, conf=conf)
    with active(spark), _no_checksum_files(spark):
        for recipe in missing:
            _build_table(spark, home, recipe, say)
    return tuple(recipe.name for recipe in missing)


@contextmanager
def _no_checksum_files(spark: SparkSession) -> Iterator[None]:
    """Let Hadoop write no file of checksums beside each local file: it runs `chmod` for each, a fifth of the CPU."""
    context: Any = spark.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)
    try:
        yield
    finally:
        with interrupts_first(), unless_ended(spark):
            files.setWriteChecksum(True)


def _build_table(spark: SparkSession, home: Path, recipe: DemoRecipe, say: Progress) -> None:
    what = f"{DEMO_NAMESPACE}.{recipe.name} in {home}"
    failed = f"Spark could not build {what}"
    with explained_errors(spark, f"building {what}", lambda said: CommitError(f"{failed}: {said}")):
        for catalog in (DEMO_CATALOG, WORKING_CATALOG):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.{DEMO_NAMESPACE}")
        _remove_remains(home, recipe.name)
        _write_table(spark, recipe, say)
    _publish(home, recipe.name)
    marker = _marker(home, recipe.name)
    unfinished = marker.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"recipe_version": recipe.version}), encoding="utf-8")
    unfinished.replace(marker)


def _write_table(spark: SparkSession, recipe: DemoRecipe, say: Progress) -> None:
    from pyspark.sql.functions import expr

    table = f"{WORKING_CATALOG}.{DEMO_NAMESPACE}.{recipe.name}"
    cluster_by = expr(recipe.cluster_by.format(catalog=WORKING_CATALOG))
    for statement in (recipe.ddl, *recipe.statements.get(0, ())):
        spark.sql(statement.format(table=table))
    for nth, rows in enumerate(recipe.appends(), 1):
        say(f"{recipe.name}: commit {nth} of {recipe.append_count}, {rows.num_rows:,} rows")
        frame = _to_frame(spark, rows).repartition(_TASK_COUNT, cluster_by)
        frame.writeTo(table).option("distribution-mode", "none").append()
        for statement in recipe.statements.get(nth, ()):
            say(f"{recipe.name}: {' '.join(statement.split()[:2]).lower()}")
            spark.sql(statement.format(table=table))


def _to_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    # PySpark 3.5 makes no DataFrame of Arrow's tables.
    from pyspark.sql.pandas.types import from_arrow_schema

    batches = rows.to_batches()
    return spark.range(0, 1, 1, 1).mapInArrow(lambda _: iter(batches), from_arrow_schema(rows.schema))


def _check_remains(home: Path, name: str) -> None:
    """Refuse a folder with something of the user's own where the remains of an earlier build would be removed."""
    marker, folder = _marker(home, name), home / "warehouse" / DEMO_NAMESPACE / name
    content = marker.read_bytes() if marker.exists() else b""
    theirs = [marker] if content and b"recipe_version" not in content else []
    if folder.is_dir():
        theirs += [path for path in folder.iterdir() if path.name not in ("data", "metadata")]
    if theirs:
        raise CatalogError(f"{theirs[0]} is none of the demo warehouse's: set ICESTATS_HOME to a folder of its own")


def _remove_remains(home: Path, name: str) -> None:
    _marker(home, name).unlink(missing_ok=True)
    with closing(sqlite3.connect(home / "catalog.db", timeout=30)) as connection, connection:
        connection.execute(
            "DELETE FROM iceberg_tables WHERE catalog_name IN (?, ?) AND table_namespace = ? AND table_name = ?",
            (DEMO_CATALOG, WORKING_CATALOG, DEMO_NAMESPACE, name),
        )
    shutil.rmtree(home / "warehouse" / DEMO_NAMESPACE / name, ignore_errors=True)


def _publish(home: Path, name: str) -> None:
    """Hand the table over from the working catalog: one statement, so it is seen complete or not at all."""
    with closing(sqlite3.connect(home / "catalog.db", timeout=30)) as connection, connection:
        connection.execute(
            "UPDATE iceberg_tables SET catalog_name = ?"
            " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
            (DEMO_CATALOG, WORKING_CATALOG, DEMO_NAMESPACE, name),
        )


def _in_catalog(home: Path, name: str) -> bool:
    database = home / "catalog.db"
    if not database.is_file():
        return False
    query = """SELECT metadata_location FROM iceberg_tables
               WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"""
    try:
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            row = connection.execute(query, (DEMO_CATALOG, DEMO_NAMESPACE, name)).fetchone()
    except sqlite3.DatabaseError as error:
        raise CatalogError(f"{database} is no usable catalog: {error}; remove it to have it built anew") from error
    metadata = local_path(row[0]) if row else None
    return metadata is not None and metadata.is_file()


@contextmanager
def _lock(home: Path, say: Progress) -> Iterator[None]:
    """Hold the warehouse for this process: SQLite's own lock, which ends with the process however it ends."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(home / "build.lock", timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                say("waiting for another process that builds the demo warehouse")
                connection.execute(f"PRAGMA busy_timeout = {round(LOCK_TIMEOUT_S * 1000)}")
                connection.execute("BEGIN EXCLUSIVE")
            yield
    except (OSError, sqlite3.DatabaseError) as error:
        raise CatalogError(f"the demo warehouse cannot be written in {home}: {error}; set ICESTATS_HOME") from error


def _marker(home: Path, name: str) -> Path:
    return home / f"{name}.json"
