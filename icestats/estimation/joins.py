"""Estimates of a join of two tables, with the truth beside them."""

from __future__ import annotations

import time

from icestats.errors import StatisticsMissingError
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.join_formulas import JoinSide, estimate_join_by_ndv, estimate_join_by_theta
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.sources import ask_sources
from icestats.iceberg.metadata import Field
from icestats.scan.actual_rows import count_join_rows


def build_side(evidence: Evidence, question: Question, key: Field, name: str) -> JoinSide:
    """Build a side of a join: rows as `combined` estimates them, less the key's nulls; the key's Theta sketch."""
    combined = ask_sources(evidence, question, ["combined"], double_filtering=False)[0]
    table = evidence.read_table([key.field_id])
    nulls = float(table.groups.columns[key.field_id].null_share[0]) if key.field_id in table.groups.columns else 0.0
    rows = None if combined.rows is None else combined.rows * (1.0 - (nulls if nulls == nulls else 0.0))
    try:
        theta = evidence.read_theta(key)
    except StatisticsMissingError:
        theta = None
    distinct = evidence.read_distinct(key)
    return JoinSide(f"{name}.{key.name}", key.type, rows, theta, distinct.size_bytes if distinct else 0)


def estimate_both(left: JoinSide, right: JoinSide) -> list[SourceEstimate]:
    """Estimate by number of distinct values, and by intersection."""
    return [estimate_join_by_ndv(left, right), estimate_join_by_theta(left, right)]


def count_join(
    left: Evidence, right: Evidence, questions: tuple[Question, Question], keys: tuple[Field, Field]
) -> tuple[int, SourceEstimate]:
    """Count a join's rows from how often each key is on each side."""
    begin = time.perf_counter()
    rows = count_join_rows(
        *(
            (e.reader.source, e.reader.snapshot, e.reader.schema, q.row_filter, k.name)
            for e, q, k in zip((left, right), questions, keys, strict=True)
        )
    )
    found = SourceEstimate(
        "actual",
        rows=float(rows),
        rows_lower=float(rows),
        rows_upper=float(rows),
        bound="counted",
        assumes="how often each key is on each side, counted by PyIceberg; deletes applied",
        duration_ms=(time.perf_counter() - begin) * 1000.0,
    )
    return rows, found
