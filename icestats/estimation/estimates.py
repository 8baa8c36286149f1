"""Estimates of all sources side by side, of one filter and of many, as a person, Arrow and JSON have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import ESTIMATES, WORKLOAD, WORKLOAD_SUMMARY
from icestats.answers.text import align, counted, printable_lines, render_bytes, render_count
from icestats.estimation.formulas.source_estimates import SourceEstimate


@dataclass(frozen=True)
class Estimates(Sequence[SourceEstimate]):
    """What each source estimates for a row filter."""

    table_name: str
    row_filter: str
    columns: tuple[str, ...] | None
    """The projected columns that bytes are about; None: all, and files' whole sizes."""
    deletes: str
    """How row-level deletes count in `rows`."""
    estimates: tuple[SourceEstimate, ...]
    actual: int | None = None
    """Live rows that satisfy the filter, counted; None: not asked for."""
    findings: tuple[Finding, ...] = ()
    """Traps of engines that this table and this filter run into."""

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, key: Any) -> Any:
        """Return a source's estimate by its name, or by its place."""
        if not isinstance(key, str):
            return self.estimates[key]
        found = next((one for one in self.estimates if one.source == key), None)
        if found is None:
            raise KeyError(f"no source {key!r}: there are {', '.join(one.source for one in self.estimates)}")
        return found

    def with_actual(self, actual: int) -> Estimates:
        """Return them beside the counted rows, each with its q-error."""
        return replace(self, actual=actual, estimates=tuple(one.with_actual(actual) for one in self.estimates))

    def to_arrow(self) -> pa.Table:
        """Return the estimates as a table.

        Returns
        -------
        pyarrow.Table
            `schemas.ESTIMATES`: one row a source.
        """
        return pa.Table.from_pylist(self.to_json(), ESTIMATES)

    def to_json(self) -> list[dict[str, Any]]:
        """Return an object a source, as the command line prints it."""
        return [asdict(one) for one in self.estimates]

    def __repr__(self) -> str:
        lines = align([_HEADS, *map(_cells, self.estimates)], left=(0, len(_HEADS) - 1))
        title = f"{self.table_name}  where {self.row_filter}  ({self._subtitle()})"
        found = [f"  {line}" for finding in self.findings for line in f"! {finding}".split("\n")]
        return printable_lines([title, *(f"  {line}" for line in lines), *found])

    def _subtitle(self) -> str:
        said = {
            "deduct": "deletes deducted",
            "positions": "position deletes deducted, equality deletes ignored",
            "ignore": "deletes ignored",
        }[self.deletes]
        bytes_of = "all columns" if self.columns is None else ", ".join(self.columns)
        actual = "" if self.actual is None else f"{counted(self.actual, 'row')} counted; "
        return f"{actual}{said}; bytes of {bytes_of}"

    def _repr_html_(self) -> str:
        table = build_table(_HEADS, map(_cells, self.estimates), class_="words")
        findings = (element("p", str(finding)) for finding in self.findings)
        about = f"{self.table_name} · {self._subtitle()}"
        return build_answer(self.row_filter, table, *findings, about=[about])


_HEADS = ("source", "rows", "at least", "at most", "bytes", "q-error", "values read", "ms", "rests on")


def _cells(one: SourceEstimate) -> tuple[str, ...]:
    return (
        one.source,
        _rows(one.rows),
        "" if one.rows_lower is None else _rows(one.rows_lower),
        "" if one.rows_upper is None else _rows(one.rows_upper),
        render_bytes(None if one.bytes is None else round(one.bytes)),
        _render_q_error(one.q_error),
        render_count(one.values_read),
        f"{one.duration_ms:.2g}" if one.duration_ms < 10 else f"{one.duration_ms:,.0f}",
        f"unknown: {one.reason}" if one.rows is None else one.assumes,
    )


def _render_q_error(q_error: float | None) -> str:
    return "" if q_error is None else f"{q_error:,.3g}" if q_error < 1000 else f"{q_error:,.0f}"


def _rows(rows: float | None) -> str:
    if rows is None:
        return "unknown"
    return f"{rows:,.2g}" if 0 < rows < 1 else f"{rows:,.0f}"


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
        return pa.Table.from_pylist(self._list_rows(), WORKLOAD)

    def _list_rows(self) -> list[dict[str, Any]]:
        return [
            {**asdict(one), "row_filter": answer.row_filter, "actual": answer.actual}
            for answer in self.answers
            for one in answer
        ]

    def summary(self) -> pa.Table:
        """Return the distribution of each source's q-errors.

        Returns
        -------
        pyarrow.Table
            `schemas.WORKLOAD_SUMMARY`: one row a source.
        """
        by_source: dict[str, list[dict[str, Any]]] = {}
        for row in self._list_rows():
            by_source.setdefault(row["source"], []).append(row)
        summaries = [_summarize(source, rows) for source, rows in by_source.items()]
        return pa.Table.from_pylist(summaries, WORKLOAD_SUMMARY)

    def __repr__(self) -> str:
        lines = align([_WORKLOAD_HEADS, *self._list_cells()])
        return printable_lines([self._title(), *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        return build_answer(self._title(), build_table(_WORKLOAD_HEADS, self._list_cells()))

    def _list_cells(self) -> list[tuple[str, ...]]:
        return [_workload_cells(row) for row in self.summary().to_pylist()]

    def _title(self) -> str:
        origin = "" if self.seed is None else f" (generated, seed {self.seed})"
        return f"{self.table_name}: q-errors over {counted(len(self.answers), 'filter')}{origin}"


_WORKLOAD_HEADS = ("source", "answered", "unknown", "median", "90%", "worst", "within bounds")


def _summarize(source: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    errors = [row["q_error"] for row in rows if row["q_error"] is not None]
    bounded = [row for row in rows if None not in (row["actual"], row["rows_lower"], row["rows_upper"])]
    middle, high = (float(q) for q in np.quantile(errors, (0.5, 0.9))) if errors else (None, None)
    return {
        "source": source,
        "answered_count": len(errors),
        "unknown_count": len(rows) - len(errors),
        "q_error_median": middle,
        "q_error_p90": high,
        "q_error_max": max(errors, default=None),
        "bounded_count": len(bounded),
        "within_bounds_count": sum(row["rows_lower"] <= row["actual"] <= row["rows_upper"] for row in bounded),
    }


def _workload_cells(row: dict[str, Any]) -> tuple[str, ...]:
    errors = (row["q_error_median"], row["q_error_p90"], row["q_error_max"])
    return (
        row["source"],
        f"{row['answered_count']:,}",
        f"{row['unknown_count']:,}",
        *map(_render_q_error, errors),
        f"{row['within_bounds_count']:,} of {row['bounded_count']:,}",
    )
