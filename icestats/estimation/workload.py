"""Many filters at once: how far off each source of statistics is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.markup import build_answer, build_table
from icestats.answers.schemas import WORKLOAD, WORKLOAD_SUMMARY
from icestats.answers.text import align, counted
from icestats.estimation.answer import Estimates
from icestats.estimation.formulas.source_estimates import SourceEstimate


@dataclass(frozen=True)
class Workload:
    """Estimates and truth of some filters."""

    table_name: str
    seed: int | None
    """What the filters were generated from; None: they were given."""
    answers: tuple[Estimates, ...]
    """One a filter, each with its `actual`."""

    def to_arrow(self) -> pa.Table:
        """Return every estimate.

        Returns
        -------
        pyarrow.Table
            `schemas.WORKLOAD`: one row a filter and source.
        """
        return pa.Table.from_pylist([_row(answer, one) for answer, one in self._pairs()], WORKLOAD)

    def summary(self) -> pa.Table:
        """Return the distribution of each source's q-errors.

        Returns
        -------
        pyarrow.Table
            `schemas.WORKLOAD_SUMMARY`: one row a source.
        """
        by_source: dict[str, list[tuple[Estimates, SourceEstimate]]] = {}
        for answer, one in self._pairs():
            by_source.setdefault(one.source, []).append((answer, one))
        rows = [_summarize(source, pairs) for source, pairs in by_source.items()]
        return pa.Table.from_pylist(rows, WORKLOAD_SUMMARY)

    def _pairs(self) -> Iterator[tuple[Estimates, SourceEstimate]]:
        return ((answer, one) for answer in self.answers for one in answer)

    def __repr__(self) -> str:
        lines = align([_HEADS, *map(_cells, self.summary().to_pylist())])
        return "\n".join([self._title(), *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        return build_answer(self._title(), build_table(_HEADS, map(_cells, self.summary().to_pylist())))

    def _title(self) -> str:
        origin = "" if self.seed is None else f" (generated, seed {self.seed})"
        return f"{self.table_name}: q-errors over {counted(len(self.answers), 'filter')}{origin}"


_HEADS = ("source", "answered", "unknown", "median", "90 %", "worst", "within bounds")


def _row(answer: Estimates, one: SourceEstimate) -> dict[str, Any]:
    return {
        "row_filter": answer.row_filter,
        "actual": answer.actual,
        "source": one.source,
        "rows": one.rows,
        "rows_lower": one.rows_lower,
        "rows_upper": one.rows_upper,
        "q_error": one.q_error,
        "reason": one.reason,
    }


def _summarize(source: str, pairs: Sequence[tuple[Estimates, SourceEstimate]]) -> dict[str, Any]:
    errors = [one.q_error for _, one in pairs if one.q_error is not None]
    bounded = [is_within for answer, one in pairs if (is_within := _is_within(answer, one)) is not None]
    middle, high = (float(q) for q in np.quantile(errors, (0.5, 0.9))) if errors else (None, None)
    return {
        "source": source,
        "answered_count": len(errors),
        "unknown_count": len(pairs) - len(errors),
        "q_error_median": middle,
        "q_error_p90": high,
        "q_error_max": max(errors, default=None),
        "bounded_count": len(bounded),
        "within_bounds_count": sum(bounded),
    }


def _is_within(answer: Estimates, one: SourceEstimate) -> bool | None:
    if answer.actual is None or one.rows_lower is None or one.rows_upper is None:
        return None
    return one.rows_lower <= answer.actual <= one.rows_upper


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    errors = (row["q_error_median"], row["q_error_p90"], row["q_error_max"])
    return (
        row["source"],
        f"{row['answered_count']:,}",
        f"{row['unknown_count']:,}",
        *("" if e is None else f"{e:,.3g}" if e < 1000 else f"{e:,.0f}" for e in errors),
        f"{row['within_bounds_count']:,} of {row['bounded_count']:,}",
    )
