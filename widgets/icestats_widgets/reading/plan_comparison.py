"""Two plans side by side: of two filters, snapshots, branches or tables, or before and after maintenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.errors import CallError, CatalogError, TableNotFoundError
from icestats.snapshot.layout.what_if import Count
from icestats.snapshot.pruning.funnel import PlanStep
from icestats.snapshot.pruning.plan import Plan
from icestats.table.table import Table, load

BY_PARTITION = "partition"
FIGURES = ("total", "kept", "kept_bytes", "kept_rows", "duration_ms")
"""What is compared of a step; a prediction has no duration."""
Step = PlanStep | Count | None
"""A step of one side; None where it has no such step."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two reads."""

    title: str
    steps: Mapping[str, PlanStep | Count]


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Two sides, step by step."""

    sides: tuple[Side, Side]
    line: str
    """The Python that gives both."""
    assumes: str = ""
    """What a prediction rests on."""
    statement: str = ""
    """The statement that does what is predicted."""

    def steps(self) -> Iterator[tuple[str, Step, Step]]:
        """Yield each step with what it keeps on both sides."""
        one, other = (side.steps for side in self.sides)
        for step in one if len(one) >= len(other) else other:
            yield step, one.get(step), other.get(step)

    def to_arrow(self) -> pa.Table:
        """Return the steps: `step`, then each figure of the first (`_1`) and of the second (`_2`)."""
        rows = [
            {"step": step}
            | {f"{name}_{i}": getattr(side, name, None) for i, side in enumerate(both, 1) for name in FIGURES}
            for step, *both in self.steps()
        ]
        names = [f"{name}_{i}" for i in (1, 2) for name in FIGURES]
        fields = [pa.field(name, pa.float64() if "duration" in name else pa.int64()) for name in names]
        return pa.Table.from_pylist(rows, pa.schema([pa.field("step", pa.string(), nullable=False), *fields]))

    def describe(self) -> str:
        """Return the difference in words."""
        one, other = (list(side.steps.values())[-1] for side in self.sides)
        if (one.kept, one.kept_bytes, one.kept_rows) == (other.kept, other.kept_bytes, other.kept_rows):
            return f"Both leave the same to read: {', '.join(_told(one))}."
        return f"The second leaves {', '.join(_told(other))} to read, in place of {', '.join(_told(one))}."


def _told(kept: PlanStep | Count) -> list[str]:
    return [counted(kept.kept, "file"), render_bytes(kept.kept_bytes), counted(kept.kept_rows, "record")]


def compare_plans(table: Table, row_filter: str, kind: str, choice: str) -> PlanComparison:
    """Plan a filter, and plan it again with one thing changed.

    Parameters
    ----------
    table : Table
        The table.
    row_filter : str
        The filter.
    kind : str
        What is changed: the `filter`; the `snapshot`; the `ref` (a branch or a tag); the `table`; or what maintenance
        would make of the table: `regroup` its manifests, `sort_by` a column, `partition_by` other fields.
    choice : str
        What it is changed to: text, a snapshot's id, a name, a location; for `regroup` "partition", or a partition
        field; for `partition_by` fields as Spark's DDL has them.

    Raises
    ------
    IcestatsError
        What is compared with does not exist, cannot be read, or does not fit the filter.
    """
    if kind in ("regroup", "sort_by", "partition_by"):
        return _predict(table, row_filter, kind, choice)
    other, title, line = _open_other(table, kind, choice)
    asked = choice if kind == "filter" else row_filter
    sides = (
        _side(table.plan(row_filter), row_filter if kind == "filter" else _name(table)),
        _side(other.plan(asked), title),
    )
    return PlanComparison(sides, f"(table.plan({row_filter!r}), {line}.plan({asked!r}))")


def _predict(table: Table, row_filter: str, kind: str, choice: str) -> PlanComparison:
    asked: dict[str, Any] = {kind: choice}
    found = table.layout().what_if([row_filter], **asked)
    (comparison,) = found.comparisons
    line = f"table.layout().what_if([{row_filter!r}], {kind}={choice!r})"
    titles = ("now", f"if {found.change}")
    one, other = (
        Side(title, {count.step: count for count in counts})
        for title, counts in zip(titles, (comparison.now, comparison.then), strict=True)
    )
    return PlanComparison((one, other), line, found.assumes, found.statement)


def _open_other(table: Table, kind: str, choice: str) -> tuple[Table, str, str]:
    """Return the other table, what it is called, and the Python that opens it."""
    if kind == "filter":
        return table, choice, "table"
    if kind == "snapshot":
        if not choice.isdecimal():
            raise CallError(f"{choice!r:.80} is no snapshot's id: expected a whole number")
        other, title = Table(table._source, int(choice)), f"snapshot {choice}"
    elif kind == "ref":
        other, title = Table(table._source, None, choice), choice
    else:
        other, title = _open_table(table, choice), choice
    return other, title, other.code()


def _open_table(table: Table, name: str) -> Table:
    source = table._source
    if source.identifier is not None and source.catalog is None and "/" not in name:
        # A name is looked up where the table itself comes from, then as anybody would.
        try:
            return load(name, catalog={**source.catalog_properties, "name": str(source.catalog_name)})
        except (CatalogError, TableNotFoundError):
            pass
    return load(name, catalog=dict(source.catalog_properties) or None if "/" in name else None)


def _name(table: Table) -> str:
    pins = [str(value) for value in table.pin.values()]
    return " ".join([table.name, *pins])


def _side(plan: Plan, title: str) -> Side:
    return Side(title, {step.step: step for step in plan.steps if step.unit in ("manifest", "file")})
