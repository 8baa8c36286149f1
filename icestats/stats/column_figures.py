"""The roll-up of each column over the whole table, each figure with what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.schemas import COLUMNS, STATISTICS, SUMMED_STATISTICS
from icestats.answers.text import counted
from icestats.iceberg.metadata import Field
from icestats.stats.column_maps import known_values


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and where it is from."""

    value: Any
    provenance: str


CommittedFigures = Mapping[int, Mapping[str, Figure]]
"""Field id to figures of committed statistics: `ndv`, `avg_length`, `max_length`."""


def build_columns(
    cells: pa.Table, columns: Sequence[Field], live_file_count: int, *, has_deletes: bool, committed: CommittedFigures
) -> pa.Table:
    """Build the table of columns.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS` of one group, the table: one row for each of `columns`.
    columns : sequence of Field
        The columns, in that order.
    live_file_count : int
        Live data files.
    has_deletes : bool
        Whether live delete files exist, which the sums and bounds of data files know nothing of.
    committed : mapping
        Figures of committed statistics by field id.

    Returns
    -------
    pyarrow.Table
        `schemas.COLUMNS`: one row a column.
    """
    live = np.full(len(columns), live_file_count, np.int64)
    known = {statistic: known_values(cells, statistic, live) for statistic in STATISTICS}
    rows = []
    for i, field in enumerate(columns):
        row = start_row(field, live_file_count)
        provenance: dict[str, str] = {}
        missing: dict[str, int] = {}
        for statistic, (values, lacking) in known.items():
            if statistic == "nan_value_count" and not field.has_nan:
                provenance[statistic] = "not applicable: the type has no NaN"
                continue
            row[statistic] = values[i].as_py()
            if lacking[i]:
                missing[statistic] = int(lacking[i])
            provenance[statistic] = _rollup_provenance(
                statistic, row[statistic], int(lacking[i]), live_file_count, has_deletes=has_deletes
            )
        for name in ("ndv", "avg_length", "max_length"):
            figure = committed.get(field.field_id, {}).get(name)
            row[name] = None if figure is None else figure.value
            provenance[name] = "unknown: no committed statistics" if figure is None else figure.provenance
        rows.append({**row, "missing_files": list(missing.items()), "provenance": list(provenance.items())})
    return pa.Table.from_pylist(rows, COLUMNS)


def start_row(field: Field, live_file_count: int) -> dict[str, Any]:
    """Return what a row of `schemas.COLUMNS` says of the column itself."""
    return {
        "field_id": field.field_id,
        "name": field.name,
        "type": field.type,
        "required": field.required,
        "live_file_count": live_file_count,
    }


def _rollup_provenance(statistic: str, value: Any, missing: int, files: int, *, has_deletes: bool) -> str:
    if missing:
        return f"unknown: {missing:,} of {counted(files, 'data file')} {'lacks' if missing == 1 else 'lack'} it"
    deletes = ", deletes not applied" if has_deletes else ""
    if statistic in SUMMED_STATISTICS:
        what = "on-disk bytes" if statistic == "column_size" else "values"
        return f"exact: sum over {counted(files, 'data file')} ({what}{deletes if statistic != 'column_size' else ''})"
    if value is None:
        return f"none: no value to bound in {counted(files, 'data file')}"
    side = "at most the smallest" if statistic == "lower_bound" else "at least the largest"
    return f"bound: {side} value, over {counted(files, 'data file')}{deletes}"
