"""Estimates over Iceberg tables: the kit's, and those of Spark's cost-based optimizer with and without the kit."""

from __future__ import annotations

import inspect
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.sql import SqlCatalog

import icestats
from benchmarks.estimates.data_sets import DataSet, Pairs
from benchmarks.estimates.estimator import Cost
from benchmarks.estimates.questions import Question, Side
from benchmarks.tpch_warehouse import CATALOG, catalog_properties
from icestats.estimation.optimizer_statistics import build_reported_statistics
from icestats.spark.optimizer_feed.optimizer_feed import read_fed
from icestats.spark.session import active, add_catalogs, get_session, spark_catalog_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_NAMES = {
    "Spark, NDV": None,
    "Spark, icestats' views without common values": False,
    "Spark, icestats' views": True,
}
"""Of each way whether views say common values; None: there are no views."""
_SETTINGS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled", "spark.sql.statistics.histogram.enabled")


def write_tables(home: Path, data: DataSet) -> None:
    """Make a set's Iceberg tables, without statistics, in as many appends as the set says."""
    home.mkdir(parents=True, exist_ok=True)
    with SqlCatalog(**catalog_properties(home)) as catalog:
        catalog.create_namespace(data.name)
        for name, rows in data.tables.items():
            table = catalog.create_table(f"{data.name}.{name}", rows.schema)
            step = -(-len(rows) // (data.commits if len(rows) > 1000 else 1))
            for start in range(0, len(rows), step):
                table.append(rows.slice(start, step))


def start_spark(home: Path) -> SparkSession:
    """Start Spark, or take the session that runs, with a set's catalog."""
    return get_session({CATALOG: _catalog(home)}, master="local[2]", driver_memory="3g")


def _catalog(home: Path) -> dict[str, str]:
    return spark_catalog_properties(catalog_properties(home)) or {}


def joint_options(table: icestats.Table) -> dict[str, Any]:
    """Return the options of `compute` for statistics beyond a column's sketches, as far as this kit has them."""
    known = inspect.signature(table.compute).parameters
    return {name: value for name, value in (("common", True), ("together", "auto")) if name in known}


class Kit:
    """icestats: `combined` for filters, the best known of `estimate_join`, and `estimate_groups`.

    Parameters
    ----------
    home : pathlib.Path
        Where `write_tables` has made the set's tables.
    spark : pyspark.sql.SparkSession, optional
        What computes their statistics; without it there are those of manifests only.
    """

    name = "icestats"

    def __init__(self, home: Path, spark: SparkSession | None) -> None:
        self._home, self._spark = home, spark
        self.tables: dict[str, icestats.Table] = {}

    def prepare(self, data: DataSet) -> Cost:
        """Compute and commit the statistics of the tables."""
        begin = time.perf_counter()
        for name in data.tables:
            if self._spark is not None:
                table = self._load(data, name)
                table.compute(spark=self._spark, **joint_options(table)).commit()
            self.tables[name] = self._load(data, name)
        seconds = time.perf_counter() - begin
        files = [file for file in self._home.rglob("*.stats") if data.name in file.relative_to(self._home).parts]
        return Cost(sum(file.stat().st_size for file in files), seconds)

    def _load(self, data: DataSet, name: str) -> icestats.Table:
        return icestats.load(f"{data.name}.{name}", catalog=catalog_properties(self._home))

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        """Return what `estimate`, `estimate_join` and `estimate_groups` say."""
        return [self._estimate(question) for question in questions]

    def _estimate(self, question: Question) -> float | None:
        side = question.sides[0]
        table = self.tables[side.table]
        if question.groups:
            return _estimate_groups(table, question.groups)
        if question.keys is None:
            found = table.estimate(side.write_filter("kit"), sources=["data-files", "combined"])
            rows: float | None = found["combined"].rows
            return rows
        other: Side = question.sides[1]
        ours, theirs = side.write_filter("kit"), other.write_filter("kit")
        found = table.estimate_join(self.tables[other.table], question.keys, row_filter=ours, other_filter=theirs)
        # They go from the plainest source to the best.
        known = [one.rows for one in found if one.rows is not None]
        return known[-1] if known else None

    def find_pairs(self) -> dict[str, Pairs] | None:
        """Return the columns that the kit has found to depend on each other; None: this kit does not look for them."""
        if not hasattr(icestats.Table, "columns_together"):
            return None
        found, tables = {}, dict[str, Any](self.tables)
        for name, table in tables.items():
            columns = [field.name for field in table.schema.columns]
            found[name] = _read_pairs(table.columns_together(), columns)
        return {name: pairs for name, pairs in found.items() if pairs}


def _estimate_groups(table: icestats.Table, columns: tuple[str, ...]) -> float | None:
    if not hasattr(table, "estimate_groups"):
        return None
    found: Any = table.estimate_groups(list(columns))
    found = found if hasattr(found, "rows") else list(found)[-1]
    return float(found.rows) if found.rows is not None else None


def _read_pairs(found: Any, columns: Collection[str]) -> Pairs:
    """Return the columns that each row of an answer names, two by two."""
    pairs: list[tuple[str, str]] = []
    for row in found.to_pylist() if hasattr(found, "to_pylist") else found:
        cells = row.values() if isinstance(row, Mapping) else asdict(row).values() if is_dataclass(row) else [row]  # type: ignore[arg-type]
        texts = (text for cell in cells for text in (cell if isinstance(cell, list | tuple) else [cell]))
        pairs += combinations(dict.fromkeys(str(text) for text in texts if text in columns), 2)
    return tuple(dict.fromkeys(pairs))


class SparkCbo:
    """Spark's optimizer with its cost-based part on, over Iceberg's own statistics or the kit's views.

    Parameters
    ----------
    home : pathlib.Path
        Where the set's tables are, with the statistics that `Kit.prepare` has committed.
    spark : pyspark.sql.SparkSession
        What a session is made from.
    name : str
        One of `SPARK_NAMES`.
    """

    def __init__(self, home: Path, spark: SparkSession, name: str) -> None:
        self.name, self._home = name, home
        self._session = add_catalogs(spark.newSession(), {CATALOG: _catalog(home)})

    def prepare(self, data: DataSet) -> Cost:
        """Open the tables in a session of their own."""
        for name in _SETTINGS:
            self._session.conf.set(name, "true")
        self._session.conf.set("spark.sql.iceberg.report-column-stats", "true")
        self._session.sql(f"use {CATALOG}.{data.name}")
        begin = time.perf_counter()
        with_common = SPARK_NAMES[self.name]
        if with_common is None:
            return Cost(None, time.perf_counter() - begin)
        for name in data.tables:
            table = icestats.load(f"{data.name}.{name}", catalog=catalog_properties(self._home))
            if table.snapshot is not None:
                reported = build_reported_statistics(table._evidence, with_common=with_common)
                read_fed(self._session, table._source, table.snapshot, table.schema, reported, name)
        return Cost(None, time.perf_counter() - begin)

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        """Return the rows of the optimized plans' statistics."""
        with active(self._session):
            return [self._explain(question.write("spark")) for question in questions]

    def _explain(self, query: str) -> float | None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            rows = self._session.sql(query)._jdf.queryExecution().optimizedPlan().stats().rowCount()
        except (Py4JError, PySparkException):
            return None
        return float(str(rows.get())) if rows.isDefined() else None
