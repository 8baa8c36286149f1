"""Estimated beside actual rows of the scans and joins of a query that has run, and the shape of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icestats.spark.session import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "numOutputRows"
_JOINS = {
    "BroadcastHashJoin": "B",
    "ShuffledHashJoin": "H",
    "SortMergeJoin": "S",
    "BroadcastNestedLoopJoin": "N",
    "CartesianProduct": "C",
}


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """One scan, with the filter above it, or one join."""

    kind: str
    """`scan` or `join`."""
    text: str
    """The tables and the condition."""
    estimated: int | None
    """Of the optimized plan's statistics; None: Spark states none."""
    actual: int
    """Of the executed plan's metrics."""
    filtered: bool = False
    """A scan below a filter that is more than `is not null`."""
    by_histogram: bool = False
    """Each condition of the filter compares one column that has a histogram with values."""

    @property
    def q_error(self) -> float | None:
        """The larger of estimated and actual rows divided by the smaller, none below 1."""
        if self.estimated is None:
            return None
        low, high = sorted((max(self.estimated, 1), max(self.actual, 1)))
        return high / low


def read_planned_rows(session: SparkSession, frame: DataFrame) -> list[PlannedRows]:
    """Return the rows of each scan and join of a data frame that was collected without adaptive execution.

    Without it, each part of the executed plan keeps a link to the part of the optimized plan that it carries out, so
    that one run gives both figures. An exchange or a subquery that is used twice counts once.
    """
    with active(session):
        return list(_find_rows(frame._jdf.queryExecution().executedPlan()))


def describe_joins(plan: Any) -> str:
    """Return a physical plan's tables in order, with the kind of each join: `B(S(lineitem, orders), nation)`."""
    kind = _JOINS.get(_name(plan))
    below = [text for child in _children(plan) if (text := describe_joins(child))]
    if kind:
        return f"{kind}({', '.join(below)})"
    table = _table_name(plan) if _name(plan) == "BatchScan" else ""
    return ", ".join(filter(None, [table, *below]))


def _find_rows(plan: Any) -> Iterator[PlannedRows]:
    name = _name(plan)
    if name in _JOINS:
        logical = plan.logicalLink().get()
        condition = logical.condition()
        text = f"{logical.joinType()} {describe_joins(plan)}"
        text += f" on {condition.get().sql()}" if condition.isDefined() else ""
        yield PlannedRows("join", text, _estimate(logical), _metric(plan))
    scan = _scan_below(plan)
    if scan is not None:
        yield _read_scan(plan, scan)
        below = []
    else:
        below = _children(plan)
    for child in [*below, *_items(plan.subqueries())]:
        yield from _find_rows(child)


def _scan_below(plan: Any) -> Any | None:
    """The scan that a filter, or nothing, stands above."""
    if _name(plan) == "BatchScan":
        return plan
    if _name(plan) != "Filter":
        return None
    while _name(plan) in ("Filter", "ColumnarToRow", "InputAdapter", "WholeStageCodegen"):
        plan = _children(plan)[0]
    return plan if _name(plan) == "BatchScan" else None


def _read_scan(plan: Any, scan: Any) -> PlannedRows:
    logical = plan.logicalLink().get()
    relation = logical.collectLeaves().head()
    table = _table_name(scan)
    if _name(plan) != "Filter":
        return PlannedRows("scan", table, _estimate(relation), _metric(plan))
    condition = plan.condition()
    conjuncts = [part for part in _split(condition) if part.getClass().getSimpleName() != "IsNotNull"]
    known = relation.stats().attributeStats()
    by_histogram = bool(conjuncts) and all(_has_histogram(part, known) for part in conjuncts)
    text = f"{table} where {condition.sql()}"
    return PlannedRows("scan", text, _estimate(logical), _metric(plan), bool(conjuncts), by_histogram)


def _split(condition: Any) -> list[Any]:
    if condition.getClass().getSimpleName() == "And":
        return [*_split(condition.left()), *_split(condition.right())]
    return [condition]


def _has_histogram(condition: Any, known: Any) -> bool:
    columns = _items(condition.references().toSeq())
    found = [known.get(column) for column in columns]
    return len(columns) == 1 and all(one.isDefined() and one.get().histogram().isDefined() for one in found)


def _estimate(logical: Any) -> int | None:
    rows = logical.stats().rowCount()
    return int(str(rows.get())) if rows.isDefined() else None


def _metric(plan: Any) -> int:
    return int(plan.metrics().apply(_ROWS).value())


def _table_name(scan: Any) -> str:
    return str(scan.table().name()).rpartition(".")[2]


def _name(plan: Any) -> str:
    return str(plan.getClass().getSimpleName()).removesuffix("Exec")


def _children(plan: Any) -> list[Any]:
    if _name(plan) == "AdaptiveSparkPlan":
        return [plan.executedPlan()]
    if _name(plan) in ("ShuffleQueryStage", "BroadcastQueryStage", "TableCacheQueryStage"):
        return [plan.plan()]
    if _name(plan) in ("ReusedExchange", "ReusedSubquery"):
        return []
    return _items(plan.children())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
