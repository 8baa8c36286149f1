"""The truth beside estimates, and what engines' optimizers say."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from icestats.errors import CallError, IcestatsError, SparkUnavailableError, UnsupportedError
from icestats.estimation.duckdb_estimate import explain_with_duckdb
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.sql_text import build_sql, quote_name
from icestats.scan.actual_rows import count_rows
from icestats.snapshot.plan_reader import read_plan
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("duckdb", "spark")
"""The engines whose optimizers can be asked."""


def choose_engines(engines: bool | Sequence[str]) -> tuple[str, ...]:
    """Return the engines that a call means.

    Raises
    ------
    CallError
        There is no such engine.
    """
    chosen = ENGINES if engines is True else () if engines is False else tuple(engines)
    if unknown := [name for name in chosen if name not in ENGINES]:
        raise CallError(f"no engine {unknown[0]!r}: expected some of {', '.join(ENGINES)}")
    return chosen


def count_actual(reader: SnapshotReader, question: Question, spark: SparkSession | None) -> tuple[int, SourceEstimate]:
    """Count the rows: by PyIceberg, or by Spark where PyIceberg cannot read the table.

    Raises
    ------
    UnsupportedError
        Neither can.
    """
    begin = time.perf_counter()
    by = "PyIceberg, over the files that the filter leaves"
    try:
        rows = count_rows(reader.source, reader.snapshot, reader.schema, question.row_filter)
    except UnsupportedError:
        from icestats.spark.optimizer import count_with_spark
        from icestats.spark.session import get_session

        if reader.snapshot is None:
            raise
        condition = build_sql(question.predicate, "spark", exact=True)
        session = spark or get_session()
        rows = count_with_spark(session, reader.source, reader.snapshot, reader.schema, condition)
        by = "Spark, as PyIceberg cannot read the table"
    return rows, SourceEstimate(
        "actual",
        rows=float(rows),
        rows_lower=float(rows),
        rows_upper=float(rows),
        bound="counted",
        q_error=1.0,
        assumes=f"live rows counted by {by}; deletes applied",
        duration_ms=(time.perf_counter() - begin) * 1000.0,
    )


def ask_engines(
    reader: SnapshotReader,
    question: Question,
    engines: Sequence[str],
    spark: SparkSession | None,
) -> list[SourceEstimate]:
    """Ask the engines; one that fails, or is not there, is unknown and says why."""
    found: list[SourceEstimate] = []
    if "duckdb" in engines:
        found += _timed(lambda: [_ask_duckdb(reader, question)])
    if "spark" in engines:
        found += _timed(lambda: _ask_spark(reader, question, spark))
    return found


def _timed(ask: Callable[[], list[SourceEstimate]]) -> list[SourceEstimate]:
    begin = time.perf_counter()
    found = ask()
    duration_ms = (time.perf_counter() - begin) * 1000.0 / max(len(found), 1)
    return [replace(one, duration_ms=duration_ms) for one in found]


def _ask_duckdb(reader: SnapshotReader, question: Question) -> SourceEstimate:
    try:
        paths = read_plan(reader, question.row_filter).kept_file_paths()
    except IcestatsError as error:
        return SourceEstimate("duckdb", reason=str(error))
    return explain_with_duckdb(question, paths)


def _ask_spark(reader: SnapshotReader, question: Question, spark: SparkSession | None) -> list[SourceEstimate]:
    from icestats.spark.optimizer import explain_with_spark
    from icestats.spark.session import get_session

    names = ("spark-cbo-off", "spark-cbo-ndv")
    if reader.snapshot is None:
        return [SourceEstimate(name, reason="the table has no snapshot") for name in names]
    columns = None if question.columns is None else [quote_name(name, "spark") for name in _top_level(reader, question)]
    condition = build_sql(question.predicate, "spark")
    try:
        session = spark or get_session()
        statistics = explain_with_spark(session, reader.source, reader.snapshot, reader.schema, condition, columns)
    except (UnsupportedError, SparkUnavailableError) as error:
        return [SourceEstimate(name, reason=str(error)) for name in names]
    said = ("cost-based optimizer off", "cost-based optimizer on, with the NDV that metadata.json lists")
    return [
        SourceEstimate(
            name,
            rows=None if one.row_count is None else float(one.row_count),
            reason=one.error or ("" if one.row_count is not None else "Spark states no row count"),
            assumes=f"Spark {one.version}'s EXPLAIN COST: {what}"
            + (", every row of the scan passes the filter" if one.is_of_scan else ""),
        )
        for name, one, what in zip(names, statistics, said, strict=True)
    ]


def _top_level(reader: SnapshotReader, question: Question) -> list[str]:
    fields = [field for field_id in question.columns or () if (field := reader.schema.get(field_id)) is not None]
    return list(dict.fromkeys(field.name.split(".")[0] for field in fields))
