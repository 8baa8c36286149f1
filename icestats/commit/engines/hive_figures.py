"""A column's figures as Hive keeps them: which ones its type has, in which unit, and which have to be there.

Source: Hive's `hive_metastore.thrift`, the structs of `ColumnStatisticsData`, the same in Hive 2.3 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from icestats.commit.engines.exported_table import ExportedColumn
from icestats.iceberg.types import to_integer
from icestats.stats.rollup_cells import Figure

_NUMBERS = {"numDVs": "ndv", "numNulls": "null_value_count"}
_LENGTHS = {"maxColLen": "max_length", "avgColLen": "avg_length"}
_REQUIRED: Final[Mapping[str, Mapping[str, str]]] = {
    "boolean": {"numTrues": "true_count", "numFalses": "false_count", "numNulls": "null_value_count"},
    "string": _NUMBERS | _LENGTHS,
    "binary": {"numNulls": "null_value_count"} | _LENGTHS,
}
"""What the struct of a kind cannot do without; all others need `_NUMBERS`."""
_KINDS = {
    "boolean": "boolean", "int": "long", "long": "long", "float": "double", "double": "double", "decimal": "decimal",
    "date": "date", "timestamp": "timestamp", "timestamptz": "timestamp", "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp", "string": "string", "uuid": "string", "binary": "binary", "fixed": "binary",
}  # fmt: skip
_UNITS = {"timestamp": 1_000_000, "timestamptz": 1_000_000, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}
_SECONDS = "cut to seconds, as Hive keeps them"


@dataclass(frozen=True, slots=True)
class HiveFigures:
    """What Hive can be told of a column."""

    kind: str
    """Which of `ColumnStatisticsData`'s structs: `boolean`, `long`, `double`, `decimal`, `date`, `timestamp`,
    `string`, `binary`; nothing where Hive has none for the type."""
    values: Mapping[str, Figure]
    """By Hive's names. Days since 1970 for a date, seconds for a timestamp."""
    left_out: str
    """In words what is not in `values`, and why."""
    is_refused: bool
    """Whether Hive cannot take the column: something that its struct requires is unknown."""


def find_hive_figures(column: ExportedColumn) -> HiveFigures:
    """Return what Hive can be told of a column."""
    kind = _KINDS.get(column.type.partition("(")[0].partition("[")[0], "")
    if not kind:
        return HiveFigures("", {}, f"Hive has no statistics of type {column.type}", True)
    required = _REQUIRED.get(kind, _NUMBERS)
    found = {
        name: column.exact(own) if name == "numNulls" else column.figures.get(own) for name, own in required.items()
    }
    values = {name: figure for name, figure in found.items() if figure is not None}
    if lacking := [name for name in required if name not in values]:
        unknown = ", ".join(f"{name} is {'not exact' if name == 'numNulls' else 'unknown'}" for name in lacking)
        return HiveFigures(kind, {}, f"{unknown}, and Hive takes {', '.join(required)} together", True)
    if kind in ("boolean", "string", "binary"):
        return HiveFigures(kind, values, "", False)
    bounds, left_out = _find_bounds(column, kind)
    return HiveFigures(kind, {**values, **bounds}, left_out, False)


def _find_bounds(column: ExportedColumn, kind: str) -> tuple[Mapping[str, Figure], str]:
    low, high = column.exact("lower_bound"), column.exact("upper_bound")
    if low is None or high is None:
        known = "lower_bound" in column.figures
        why = "are bounds, and Hive may answer min() and max() from them" if known else "are unknown, or of no value"
        return {}, f"lowValue and highValue {why}"
    nans = column.figures.get("nan_value_count")
    if kind == "double" and (nans is None or nans.value):
        return {}, "lowValue and highValue have no place for NaN"
    values = [_to_hive(column.type, kind, bound.value) for bound in (low, high)]
    if not all(math.isfinite(value) for value in values):
        return {}, "lowValue and highValue have no place for infinity"
    note = f", {_SECONDS}" if kind == "timestamp" else ", in days since 1970" if kind == "date" else ""
    bounds = zip(("lowValue", "highValue"), values, (low, high), strict=True)
    return {name: Figure(value, figure.provenance + note) for name, value, figure in bounds}, ""


def _to_hive(type_text: str, kind: str, value: Any) -> Any:
    if kind == "timestamp":
        return to_integer(value) // _UNITS[type_text]
    return to_integer(value) if kind == "date" else _plain(value) if isinstance(value, Decimal) else value


def _plain(value: Decimal) -> Decimal:
    # As text without an exponent: 1E+2 is 100.
    return Decimal(format(value, "f"))
