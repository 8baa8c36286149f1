"""What DuckDB's optimizer expects of a filter, over the files that a scan must open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from icestats.answers.text import one_line
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.sql_text import build_sql
from icestats.iceberg.storage import local_path


def explain_with_duckdb(question: Question, file_paths: Sequence[str]) -> SourceEstimate:
    """Ask DuckDB's EXPLAIN for the cardinality that it expects.

    Parameters
    ----------
    question : Question
        The filter.
    file_paths : sequence of str
        The data files that a scan must open.

    Returns
    -------
    SourceEstimate
        `source` is `duckdb`; unknown where DuckDB cannot read the files by name.
    """
    import duckdb

    if not file_paths:
        return SourceEstimate("duckdb", rows=0.0, assumes="no file is left to be opened")
    paths = [str(local_path(path) or path) for path in file_paths]
    condition = build_sql(question.predicate, "duckdb")
    query = f"explain (format json) select * from read_parquet($paths, union_by_name = true) where {condition}"  # noqa: S608 - names and literals are quoted
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            connection.execute("set enable_progress_bar = false")
            found = connection.execute(query, {"paths": paths}).fetchall()
        except duckdb.Error as error:
            return _unknown(f"DuckDB cannot plan it: {one_line(error)}")
    rows = _root_cardinality(json.loads(found[0][1]))
    if rows is None:
        return _unknown("DuckDB's EXPLAIN states no cardinality")
    return SourceEstimate(
        "duckdb",
        rows=rows,
        assumes=f"DuckDB {duckdb.__version__}'s EXPLAIN over the {len(paths):,} files that a scan must open; "
        "it knows of no deletes",
    )


def _root_cardinality(plan: Any) -> float | None:
    root = plan[0] if isinstance(plan, list) else plan
    text = str(root.get("extra_info", {}).get("Estimated Cardinality", ""))
    return float(text) if text.isdecimal() else None


def _unknown(reason: str) -> SourceEstimate:
    return SourceEstimate("duckdb", reason=reason)
