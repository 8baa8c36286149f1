"""Roll-up cells <-> what is known of them: a figure that no file lacks, or how many files lack it.

Sums over only a part of a group's files say nothing, so what is stored leaves them out. Cells made from what was stored
give the same answers, and merge with others by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import ROLLUP_CELLS, STATISTICS, SUMMED_STATISTICS
from icestats.iceberg.metadata import Field
from icestats.stats.column_maps import known_values

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KnownCells:
    """The cells of groups: every column, for each group in turn."""

    values: Mapping[str, pa.Array]
    """For each statistic its value in each cell, null where it is unknown or there is no value to bound."""
    missing: Mapping[str, Words]
    """For each statistic how many of the group's live data files lack it."""


def find_known_cells(cells: pa.Table, live_file_counts: Words, column_count: int) -> KnownCells:
    """Return what is known of `schemas.ROLLUP_CELLS`.

    Parameters
    ----------
    cells : pyarrow.Table
        Every column, for each group in turn.
    live_file_counts : numpy.ndarray of int64
        Live data files of each group.
    column_count : int
        How many columns each group has.
    """
    live = np.repeat(live_file_counts, column_count)
    found = {statistic: known_values(cells, statistic, live) for statistic in STATISTICS}
    return KnownCells(
        {name: one for name, (one, _) in found.items()}, {name: many for name, (_, many) in found.items()}
    )


def build_known_cells(known: KnownCells, columns: Sequence[Field], live_file_counts: Words) -> pa.Table:
    """Build `schemas.ROLLUP_CELLS` that give the same answers as those that `known` is from.

    Raises
    ------
    ValueError
        More files lack a statistic than there are, or a number is negative.
    """
    live = np.repeat(live_file_counts, len(columns))
    field_ids = np.array([column.field_id for column in columns], np.int32)
    arrays: dict[str, pa.Array] = {"field_id": pa.array(np.tile(field_ids, len(live_file_counts)))}
    for statistic in STATISTICS:
        missing = known.missing[statistic]
        values = known.values[statistic]
        if (missing < 0).any() or (missing > live).any():
            raise ValueError(f"{statistic}: the number of files that lack it is not one of 0 to all files")
        if statistic in SUMMED_STATISTICS:
            values = pc.fill_null(values, 0)
            if (to_numpy(values) < 0).any():
                raise ValueError(f"{statistic} is negative")
        arrays[statistic] = values
        arrays[f"{statistic}_file_count"] = pa.array(live - missing)
    # Files without a value to bound count as files that have the bound: neither lacks anything.
    arrays["valueless_file_count"] = pa.array(np.zeros(len(live), np.int64))
    return pa.table(arrays, schema=ROLLUP_CELLS)


def has_column_statistic(column: Field, statistic: str) -> bool:
    """Whether a statistic applies to a column at all."""
    return statistic != "nan_value_count" or column.has_nan
