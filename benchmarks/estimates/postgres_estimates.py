"""PostgreSQL's estimates, with samples of two sizes, with and without extended statistics."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.estimates.data_sets import DataSet, Pairs
from benchmarks.estimates.duckdb_estimates import DuckDb
from benchmarks.estimates.estimator import Cost
from benchmarks.estimates.postgres_server import PostgresServer
from benchmarks.estimates.questions import Question

TARGETS = (100, 1000)
_NEXT = "-- next"
_BYTES = """
select (select coalesce(sum(pg_column_size(s.*)), 0) from pg_statistic s join pg_class c on c.oid = s.starelid
        where c.relnamespace = '{schema}'::regnamespace)
     + (select coalesce(sum(pg_column_size(d.*)), 0) from pg_statistic_ext_data d
        join pg_statistic_ext e on e.oid = d.stxoid where e.stxnamespace = '{schema}'::regnamespace);
"""


class Postgres:
    """PostgreSQL after ANALYZE with one statistics target; a sample has 300 rows for each of it.

    Parameters
    ----------
    server : PostgresServer
        It runs, and `load_tables` has loaded the set.
    target : int
        `default_statistics_target`.
    pairs : mapping of str to tuple, optional
        For each table the columns of extended statistics of all three kinds; by default there are none.
    """

    def __init__(self, server: PostgresServer, target: int, pairs: Mapping[str, Pairs] | None = None) -> None:
        self.name = f"PostgreSQL, {target:,}{', extended' if pairs else ''}"
        self._server, self._target, self._pairs, self._schema = server, target, pairs or {}, ""

    def prepare(self, data: DataSet) -> Cost:
        """Drop earlier extended statistics, create these, and analyze the tables."""
        self._schema = data.name
        self._run(
            "do $$ declare s record; begin for s in select stxname from pg_statistic_ext where "  # noqa: S608
            f"stxnamespace = '{data.name}'::regnamespace loop execute format('drop statistics %I', s.stxname); "
            "end loop; end $$;"
        )
        made = [
            f"create statistics {table}_{place} (ndistinct, dependencies, mcv) on {', '.join(pair)} from {table};"
            for table, pairs in self._pairs.items()
            for place, pair in enumerate(pairs)
        ]
        begin = time.perf_counter()
        self._run("\n".join([*made, *(f"analyze {name};" for name in data.tables)]))
        seconds = time.perf_counter() - begin
        return Cost(int(self._run(_BYTES.format(schema=data.name)).strip()), seconds)

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        """Return the rows that EXPLAIN states."""
        explained = [f"explain (format json) {one.write('postgres')};\n\\echo '{_NEXT}'" for one in questions]
        said = self._run("\n".join(explained)).split(_NEXT)
        return [float(json.loads(one)[0]["Plan"]["Plan Rows"]) for one in said if one.strip()]

    def _run(self, script: str) -> str:
        settings = f"set search_path = {self._schema}; set default_statistics_target = {self._target};"
        return self._server.run_sql(f"{settings} set max_parallel_workers_per_gather = 0;\n{script}")


def load_tables(server: PostgresServer, data: DataSet, duckdb: DuckDb) -> None:
    """Copy a set's tables into a schema of its name, texts in the order of their bytes."""
    server.run_sql(f"drop schema if exists {data.name} cascade; create schema {data.name};")
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as folder:
        for name, rows in data.tables.items():
            file = Path(folder) / f"{name}.csv"
            duckdb.write_csv(name, file)
            columns = ", ".join(f"{field.name} {_type(field.type)}" for field in rows.schema)
            copy = f"\\copy {data.name}.{name} from '{file}' with (format csv, null '\\N')"
            server.run_sql(f"create unlogged table {data.name}.{name} ({columns});\n{copy}\n")
            file.unlink()


def _type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    names = {pa.string(): 'text collate "C"', pa.int64(): "bigint", pa.int32(): "integer", pa.date32(): "date"}
    names |= {pa.float64(): "double precision", pa.timestamp("us"): "timestamp"}
    return names[kind]
