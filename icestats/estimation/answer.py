"""Estimates of all sources side by side, as a person, Arrow and JSON have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import ESTIMATES
from icestats.answers.text import align, counted, render_bytes, render_count
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

    def __iter__(self) -> Iterator[SourceEstimate]:
        return iter(self.estimates)

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
        return pa.Table.from_pylist([asdict(one) for one in self.estimates], ESTIMATES)

    def to_json(self) -> list[dict[str, Any]]:
        """Return an object a source, as the command line prints it."""
        return [asdict(one) for one in self.estimates]

    def __repr__(self) -> str:
        lines = align([_HEADS, *map(_cells, self.estimates)], left=(0, len(_HEADS) - 1))
        title = f"{self.table_name}  where {self.row_filter}  ({self._subtitle()})"
        found = (f"  ! {finding}" for finding in self.findings)
        return "\n".join([title, *(f"  {line}" for line in lines), *found])

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
        "" if one.q_error is None else f"{one.q_error:,.3g}" if one.q_error < 1000 else f"{one.q_error:,.0f}",
        render_count(one.values_read),
        f"{one.duration_ms:.2g}" if one.duration_ms < 10 else f"{one.duration_ms:,.0f}",
        f"unknown: {one.reason}" if one.rows is None else one.assumes,
    )


def _rows(rows: float | None) -> str:
    if rows is None:
        return "unknown"
    return f"{rows:,.2g}" if 0 < rows < 1 else f"{rows:,.0f}"
