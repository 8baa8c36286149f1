"""DuckDB: the truth, and the estimates of its optimizer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.estimates.data_sets import DataSet
from benchmarks.estimates.estimator import Cost
from benchmarks.estimates.questions import Question


class DuckDb:
    """A database of a set's tables, analyzed.

    Parameters
    ----------
    file : pathlib.Path
        A new file.
    data : DataSet
        Its tables are loaded.
    """

    name = "DuckDB"

    def __init__(self, file: Path, data: DataSet) -> None:
        file.unlink(missing_ok=True)
        self.connection = duckdb.connect(str(file), config={"autoinstall_known_extensions": "false"})
        self.connection.execute("set enable_progress_bar = false")
        for name, rows in data.tables.items():
            self.connection.register("loaded", rows)
            self.connection.execute(f"create table {name} as select * from loaded")  # noqa: S608
            self.connection.unregister("loaded")

    def count(self, question: Question) -> int:
        """Count the rows of a question's answer."""
        found = self.connection.execute(_write_count(question)).fetchone()
        return int((found or (0,))[0] or 0)

    def prepare(self, data: DataSet) -> Cost:
        """Analyze the tables."""
        begin = time.perf_counter()
        for name in data.tables:
            self.connection.execute(f"analyze {name}")
        return Cost(None, time.perf_counter() - begin)

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        """Return the cardinalities that EXPLAIN states."""
        return [self._explain(question.write("duckdb")) for question in questions]

    def _explain(self, query: str) -> float | None:
        found = self.connection.execute(f"explain (format json) {query}").fetchall()
        plan = json.loads(found[0][1])
        return _find_rows(plan[0] if isinstance(plan, list) else plan)

    def write_csv(self, table: str, file: Path) -> None:
        """Write a table so that null and the empty text differ."""
        self.connection.execute(f"copy {table} to '{file}' (format csv, header false, force_quote *, nullstr '\\N')")


def _find_rows(plan: Mapping[str, Any]) -> float | None:
    rows = str(plan.get("extra_info", {}).get("Estimated Cardinality", ""))
    if rows.isdecimal():
        return float(rows)
    return next((_find_rows(child) for child in plan.get("children", ())), None)


def _write_count(question: Question) -> str:
    if question.keys is None:
        return f"select count(*) from ({question.write('duckdb')})"  # noqa: S608 - of the benchmark's own tables
    counts = [
        f"(select {key} as k, count(*) as n from {side.table} where {side.write_filter('duckdb')} group by 1)"  # noqa: S608
        for side, key in zip(question.sides, question.keys, strict=True)
    ]
    return f"select sum(a.n::hugeint * b.n) from {counts[0]} a join {counts[1]} b on a.k = b.k"  # noqa: S608
