"""A warehouse that a catalog of PyIceberg and an engine share: each is told what the other has committed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import icestats
from icestats.iceberg.catalog import open_source
from tests.interop.engine_server import CATALOG, TRINO, Server


class Figures(NamedTuple):
    """What an engine's optimizer knows of a column: a row of SHOW STATS."""

    size_bytes: float | None
    ndv: float | None
    nulls_fraction: float | None
    low: str | None
    high: str | None


@dataclass(frozen=True)
class Lake:
    """A schema of the engine and the namespace of the same name in PyIceberg's catalog, for tables in one folder."""

    server: Server
    catalog: SqlCatalog
    schema: str
    folder: Path

    @property
    def _properties(self) -> dict[str, str]:
        return {**self.catalog.properties, "name": self.catalog.name}

    def name(self, table: str, catalog: str = CATALOG) -> str:
        """The table's name in the engine's SQL."""
        return f"{catalog}.{self.schema}.{table}"

    def location(self, table: str) -> str:
        """Where the engine is asked to put a table that it makes."""
        return f"file://{self.folder}/{self.schema}/{table}"

    def open(self, table: str) -> icestats.Table:
        """The table as the kit sees it, through PyIceberg's catalog."""
        return icestats.load(f"{self.schema}.{table}", catalog=self._properties)

    def create(self, table: str, rows: pa.Table, **options: Any) -> Table:
        """Make a table with PyIceberg, and tell the engine."""
        created = self.catalog.create_table((self.schema, table), rows.schema, **options)
        created.append(rows)
        self.tell_engine(table)
        return created

    def tell_engine(self, table: str) -> None:
        """Have the engine go on from the metadata that PyIceberg's catalog has."""
        source = open_source(f"{self.schema}.{table}", self._properties)
        place, _, file = source.metadata_location.rpartition("/")
        if self.server.engine is TRINO:
            place = source.metadata.location
        if [table] in map(list, self.server.query(f"show tables from {CATALOG}.{self.schema}")):
            self.server.query(f"call {CATALOG}.system.unregister_table('{self.schema}', '{table}')")
        self.server.query(f"call {CATALOG}.system.register_table('{self.schema}', '{table}', '{place}', '{file}')")

    def tell_catalog(self, table: str, folder: Path | None = None) -> icestats.Table:
        """Have PyIceberg's catalog go on from the newest metadata in the table's folder, and open it with the kit."""
        found = Path(folder or self.location(table).removeprefix("file://"), "metadata").glob("*.metadata.json")
        newest = max(found, key=lambda path: int(re.findall(r"\d+", path.name)[0]))
        if self.catalog.table_exists((self.schema, table)):
            self.catalog.drop_table((self.schema, table))
        self.catalog.register_table((self.schema, table), f"file://{newest}")
        return self.open(table)

    def show_stats(self, table: str, catalog: str = CATALOG) -> tuple[float | None, dict[str, Figures]]:
        """The engine's row count, and what it knows of each column."""
        rows = self.server.query(f"show stats for {self.name(table, catalog)}")
        row_count: float | None = rows[-1][4]
        return row_count, {row[0]: Figures(*row[1:4], *row[5:7]) for row in rows[:-1]}

    def estimate(self, query: str) -> float | None:
        """How many rows the engine expects of a query; None where it does not know."""
        (plan,) = self.server.query(f"explain (type logical, format json) {query}")[0]
        rows = json.loads(plan)["estimates"][0]["outputRowCount"]
        return None if rows == "NaN" else float(rows)

    def count(self, query: str) -> int:
        """How many rows a query gives."""
        ((rows,),) = self.server.query(f"select count(*) from ({query}) as asked")
        return int(rows)
