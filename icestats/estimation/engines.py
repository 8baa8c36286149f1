"""What engines' optimizers expect of a filter, and the traps that they run into."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icestats.answers.findings import Finding
from icestats.answers.text import one_line, quote_name
from icestats.errors import CallError, IcestatsError, SparkUnavailableError, UnsupportedError, check_names
from icestats.estimation.formulas.grouped_sources import Question
from icestats.estimation.formulas.source_estimates import SourceEstimate, time_estimates
from icestats.iceberg.filters.value_sets import All, Leaf, list_leaves
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_users import (
    find_listed_blobs,
    find_listed_traps,
    find_partition_values,
    is_zeroed_by_spark,
)
from icestats.snapshot.filter_sql import build_sql
from icestats.snapshot.pruning.plan_reader import read_plan
from icestats.snapshot.pruning.row_groups import check_footers
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("duckdb", "spark")
"""The engines whose optimizers can be asked."""
_CBO_NDV = "spark-cbo-ndv"
_SPARK = {
    "spark-cbo-off": "cost-based optimizer off",
    _CBO_NDV: "cost-based optimizer on, with the NDV that metadata.json lists",
}


def choose_engines(engines: bool | Sequence[str]) -> tuple[str, ...]:
    """Return the engines that a call means.

    Raises
    ------
    CallError
        There is no such engine.
    """
    if not isinstance(engines, bool):
        check_names("engines", engines)
    chosen = ENGINES if engines is True else () if engines is False else tuple(engines)
    if unknown := [name for name in chosen if name not in ENGINES]:
        raise CallError(f"no engine {unknown[0]!r}: expected some of {', '.join(ENGINES)}")
    return chosen


def ask_engines(
    reader: SnapshotReader, question: Question, engines: Sequence[str], spark: SparkSession | None
) -> list[SourceEstimate]:
    """Ask the engines; one that fails, or is not there, is unknown and says why."""
    found: list[SourceEstimate] = []
    if "duckdb" in engines:
        found += time_estimates(lambda: [_ask_duckdb(reader, question)])
    if "spark" in engines:
        found += time_estimates(partial(_ask_spark, reader, question, spark))
    return found


def _ask_duckdb(reader: SnapshotReader, question: Question) -> SourceEstimate:
    """Ask DuckDB's EXPLAIN over the files that a scan must open."""
    import duckdb

    try:
        paths = read_plan(reader, question.row_filter).kept_file_paths()
        for path in paths:
            reader.source.storage.check(path)
        # DuckDB makes room for as many row groups as a footer of a hundred bytes says that it has.
        check_footers(reader.source.storage, paths)
    except IcestatsError as error:
        return SourceEstimate("duckdb", reason=str(error))
    if not paths:
        return SourceEstimate("duckdb", rows=0.0, assumes="no file is left to be opened")
    condition = build_sql(question.predicate, reader.schema, "duckdb")
    query = f"explain (format json) select * from read_parquet($paths, union_by_name = true) where {condition}"  # noqa: S608 - names and literals are quoted
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            connection.execute("set enable_progress_bar = false")
            # A pattern would have DuckDB look through folders.
            files = [glob.escape(str(local_path(path) or path)) for path in paths]
            found = connection.execute(query, {"paths": files}).fetchall()
        except (duckdb.Error, UnicodeDecodeError) as error:
            # What it says of a damaged file may have bytes of it that are no text.
            return SourceEstimate("duckdb", reason=f"DuckDB cannot plan it: {one_line(error)}")
    plan = json.loads(found[0][1])
    root = plan[0] if isinstance(plan, list) else plan
    rows = str(root.get("extra_info", {}).get("Estimated Cardinality", ""))
    if not rows.isdecimal():
        return SourceEstimate("duckdb", reason="DuckDB's EXPLAIN states no cardinality")
    return SourceEstimate(
        "duckdb",
        rows=float(rows),
        assumes=f"DuckDB {duckdb.__version__}'s EXPLAIN over the {len(paths):,} files that a scan must open; "
        "it knows of no deletes",
    )


def _ask_spark(reader: SnapshotReader, question: Question, spark: SparkSession | None) -> list[SourceEstimate]:
    from icestats.spark.optimizer import explain_with_spark
    from icestats.spark.session_catalog import find_session

    if reader.snapshot is None:
        return [SourceEstimate(name, reason="the table has no snapshot") for name in _SPARK]
    columns = None if question.columns is None else [quote_name(name) for name in _top_level(reader, question)]
    condition = build_sql(question.predicate, reader.schema, "spark")
    try:
        session = find_session(reader.source, spark)
        statistics = explain_with_spark(session, reader.source, reader.snapshot, reader.schema, condition, columns)
    except (UnsupportedError, SparkUnavailableError) as error:
        return [SourceEstimate(name, reason=str(error)) for name in _SPARK]
    return [
        SourceEstimate(
            name,
            rows=None if one.row_count is None else float(one.row_count),
            reason=one.error or ("" if one.row_count is not None else "Spark states no row count"),
            assumes=f"Spark {one.version}'s EXPLAIN COST: {what}"
            + (", every row of the scan passes the filter" if one.is_of_scan else ""),
        )
        for (name, what), one in zip(_SPARK.items(), statistics, strict=True)
    ]


def _top_level(reader: SnapshotReader, question: Question) -> list[str]:
    fields = [field for field_id in question.columns or () if (field := reader.schema.get(field_id)) is not None]
    return list(dict.fromkeys(field.path[0] for field in fields))


def find_traps(reader: SnapshotReader, question: Question, found: Sequence[SourceEstimate]) -> Iterator[Finding]:
    """Find the known traps of engines that a filter runs into: statistics that make estimates worse than none.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    question : Question
        The filter.
    found : sequence of SourceEstimate
        Engines' answers, where they were asked: evidence.
    """
    metadata, snapshot = reader.source.metadata, reader.snapshot
    yield from find_listed_traps(metadata, snapshot, reader.schema)
    listed = {field_id for blob in find_listed_blobs(metadata, snapshot, reader.schema) for field_id in blob.field_ids}
    of_partitions = find_partition_values(metadata.specs.values())
    parts = question.predicate.parts if isinstance(question.predicate, All) else (question.predicate,)
    asked = (leaves for leaves in map(list_leaves, parts) if not of_partitions.issuperset(f.field_id for f in leaves))
    hit = [leaf for leaves in asked for leaf in leaves if leaf.field_id in listed and _is_zeroed(leaf)]
    if hit:
        said = next((one for one in found if one.source == _CBO_NDV), None)
        evidence = f"{hit[0].column} is {hit[0].type} and has a listed NDV, but engines are given no bounds"
        if said is not None and said.rows is not None:
            evidence += f"; Spark estimates {said.rows:,.0f} rows here"
        yield Finding(
            "warning",
            f"Spark before 4.2 with spark.sql.cbo.enabled estimates 0 rows for {hit[0].text} (SPARK-52868; mended by "
            "SPARK-56485)",
            evidence,
            "SET `spark.sql.iceberg.report-column-stats`=false",
        )


def _is_zeroed(leaf: Leaf) -> bool:
    points = leaf.values.points
    is_equality = bool(points) and not leaf.values.ranges and not leaf.values.has_null
    return is_equality and is_zeroed_by_spark(leaf.type, len(points))
