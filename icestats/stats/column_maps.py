"""Roll-up cells -> the map columns of a manifest or partition table, by the roll-up rule.

A statistic that one or more live files lack is not aggregated: it is unknown, and the number of files that lack it is
kept beside it. A file whose column is all null, or all NaN, needs no bounds. Source: "Extending standardized
statistics in Iceberg", part 2, "Missing fields".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine, to_numpy
from icestats.answers.schemas import BOUNDS, COUNTS, STATISTICS, SUMMED_STATISTICS
from icestats.iceberg.metadata import Field

_Counts = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def build_column_maps(
    cells: pa.Table, columns: Sequence[Field], live_file_counts: _Counts, has_maps: _Flags | None = None
) -> dict[str, pa.Array]:
    """Build one map column a statistic, and one that counts the files that lack it.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: every column of `columns`, in that order, for each group in turn.
    columns : sequence of Field
        The columns that the cells are about.
    live_file_counts : numpy.ndarray of int64
        Live data files of each group.
    has_maps : numpy.ndarray of bool, optional
        Which groups have maps at all, those of others are null; by default all.

    Returns
    -------
    dict of str to pyarrow.Array
        For each statistic S of `schemas.STATISTICS`: `S` plural, a map field id -> long or binary with null for unknown
        and for a column without any value to bound; `S` plural + `_missing_files`, a map field id -> long.
        `nan_value_counts` has the columns that know NaN only. One element a group.
    """
    mapped = np.ones(len(live_file_counts), np.bool_) if has_maps is None else has_maps
    mask = pa.array(~mapped)
    out: dict[str, pa.Array] = {}
    for statistic in STATISTICS:
        values, missing = known_values(cells, statistic, np.repeat(live_file_counts, len(columns)))
        kept = [i for i, field in enumerate(columns) if statistic != "nan_value_count" or field.has_nan]
        rows = (np.flatnonzero(mapped)[:, None] * len(columns) + np.asarray(kept, np.int64)[None, :]).ravel()
        if len(rows) < len(values):
            values, missing = values.take(pa.array(rows)), missing[rows]
        keys = pa.array(np.tile(np.asarray([columns[i].field_id for i in kept], np.int32), int(mapped.sum())))
        offsets = pa.array(np.concatenate([[0], np.cumsum(mapped) * len(kept)]).astype(np.int32))
        kind = COUNTS if statistic in SUMMED_STATISTICS else BOUNDS
        for name, items, type_ in (
            (f"{statistic}s", values, kind),
            (f"{statistic}s_missing_files", pa.array(missing), COUNTS),
        ):
            out[name] = pa.MapArray.from_arrays(offsets, keys, items, type=type_, mask=mask)
    return out


def known_values(cells: pa.Table, statistic: str, live_file_counts: _Counts) -> tuple[pa.Array, _Counts]:
    """Return a statistic of each cell, null where it is unknown, and how many files lack it.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`.
    statistic : str
        One of `schemas.STATISTICS`.
    live_file_counts : numpy.ndarray of int64
        Live data files of each cell's group.
    """
    missing = live_file_counts - to_numpy(cells[f"{statistic}_file_count"])
    if statistic not in SUMMED_STATISTICS:
        missing = missing - to_numpy(cells["valueless_file_count"])
    values = combine(cells[statistic])
    return pc.if_else(pa.array(missing == 0), values, pa.scalar(None, values.type)), missing
