"""What is known of a column in each of many groups of rows: manifests, files, or single partition values.

Missing counts are -1 here, in NumPy arrays that never leave `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.types import parse_type
from icestats.plan.pruning.keys import Keys, Longs, Mask, build_keys, build_value_keys
from icestats.read.manifests.manifests import RollUps
from icestats.stats.rollup_cells import known_values

MISSING = -1


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """Statistics of one column, a row a group."""

    type: str
    value_counts: Longs
    null_counts: Longs
    nan_counts: Longs
    lower: Keys
    upper: Keys
    lower_bytes: pa.Array
    """The bounds as single values (or the values themselves): the evidence."""
    upper_bytes: pa.Array
    valueless: Mask
    """No value that compares: all are null, or all are NaN."""
    is_exact: bool = False
    """Each group is one value, and both bounds are that value."""

    def take(self, rows: Longs) -> ColumnFigures:
        """Return some groups."""
        places = pa.array(rows)
        return replace(
            self,
            value_counts=self.value_counts[rows],
            null_counts=self.null_counts[rows],
            nan_counts=self.nan_counts[rows],
            lower=self.lower.take(rows),
            upper=self.upper.take(rows),
            lower_bytes=self.lower_bytes.take(places),
            upper_bytes=self.upper_bytes.take(places),
            valueless=self.valueless[rows],
        )

    @property
    def all_null(self) -> Mask:
        """Whether every value is known to be null."""
        return np.asarray((self.value_counts > 0) & (self.null_counts == self.value_counts))

    @property
    def all_nan(self) -> Mask:
        """Whether every value is known to be NaN."""
        return np.asarray((self.value_counts > 0) & (self.nan_counts == self.value_counts))


def file_figures(files: pa.Table, field_id: int, type_text: str) -> ColumnFigures:
    """Return the figures of a column from `file_figures_schema`."""
    counts = [_counts(files[f"{name}_{field_id}"]) for name in ("value_count", "null_value_count", "nan_value_count")]
    bounds = [combine_chunks(files[f"{side}_bound_{field_id}"]) for side in ("lower", "upper")]
    return _build(type_text, counts, bounds)


def _build(type_text: str, counts: list[Longs], bounds: list[pa.Array]) -> ColumnFigures:
    lower, upper = bounds
    value_counts, null_counts, nan_counts = counts
    found = ColumnFigures(
        type=type_text,
        value_counts=value_counts,
        null_counts=null_counts,
        nan_counts=nan_counts,
        lower=build_keys(type_text, lower),
        upper=build_keys(type_text, upper),
        lower_bytes=lower,
        upper_bytes=upper,
        valueless=np.zeros(len(lower), np.bool_),
    )
    return replace(found, valueless=found.all_null | found.all_nan)


def rollup_figures(rollups: RollUps, position: int, column_count: int, type_text: str) -> ColumnFigures:
    """Return the figures of a column in each manifest of a roll-up: unknown wherever a live file lacks them.

    Parameters
    ----------
    rollups : RollUps
        Of `read_rollups`.
    position : int
        The column's place among the columns that were rolled up.
    column_count : int
        How many there are.
    type_text : str
        The column's type.
    """
    live = to_numpy(rollups.manifests["live_file_count"])
    cells = rollups.manifest_cells.take(pa.array(np.arange(len(live)) * column_count + position))
    counts = [
        _counts(known_values(cells, name, live)[0]) for name in ("value_count", "null_value_count", "nan_value_count")
    ]
    bounds, lacking = [], []
    for name in ("lower_bound", "upper_bound"):
        values, missing = known_values(cells, name, live)
        bounds.append(values)
        lacking.append(missing)
    if parse_type(type_text).name == "uuid":
        # Java has ordered uuids by signed halves (apache/iceberg#14216): extremes of such bounds mean nothing.
        bounds = [pa.nulls(len(live), pa.binary())] * 2
    found = _build(type_text, counts, bounds)
    empty = (lacking[0] == 0) & (lacking[1] == 0) & (to_numpy(cells["valueless_file_count"]) == live) & (live > 0)
    return replace(found, valueless=found.valueless | empty)


def summary_figures(summaries: pa.Array, type_text: str) -> ColumnFigures:
    """Return the figures of a partition field in each manifest.

    Parameters
    ----------
    summaries : pyarrow.StructArray
        `schemas.FIELD_SUMMARY`; a null one says nothing.
    type_text : str
        The type of the partition field's values.
    """
    count = len(summaries)
    there = ~to_numpy(pc.is_null(summaries))
    null, nan = (_flags(summaries, name) for name in ("contains_null", "contains_nan"))
    bounds = [summaries.field(name) for name in ("lower_bound", "upper_bound")]
    no_bounds = there & to_numpy(pc.is_null(bounds[0]))
    if parse_type(type_text).name not in ("float", "double"):
        nan = np.zeros(count, np.int8)
    # No bounds mean that no value is there that compares, unless the summary denies that there is anything else.
    valueless = no_bounds & ((null != 0) | (nan != 0))
    all_null, all_nan = valueless & (nan == 0), valueless & (null == 0)
    value_counts = np.where(all_null | all_nan, 1, MISSING)
    null_counts = np.where(all_null, 1, np.where(there & (null == 0), 0, MISSING))
    nan_counts = np.where(all_nan, 1, np.where(there & (nan == 0), 0, MISSING))
    found = _build(type_text, [value_counts, null_counts, nan_counts], bounds)
    return replace(found, valueless=valueless)


def _flags(summaries: pa.Array, name: str) -> Any:
    """Return 0 for False, 1 for True, -1 for unknown."""
    return to_numpy(summaries.field(name).cast(pa.int8()), null=MISSING)


def value_figures(values: pa.Array, type_text: str) -> ColumnFigures:
    """Return the figures of partition values: each group is one value."""
    keys, is_null, is_nan = build_value_keys(type_text, values)
    one = np.ones(len(values), np.int64)
    return ColumnFigures(
        type=type_text,
        value_counts=one,
        null_counts=is_null.astype(np.int64),
        nan_counts=is_nan.astype(np.int64),
        lower=keys,
        upper=keys,
        lower_bytes=values,
        upper_bytes=values,
        valueless=is_null | is_nan,
        is_exact=True,
    )


def _counts(column: pa.ChunkedArray | pa.Array) -> Longs:
    array = combine_chunks(column)
    counts: Longs = to_numpy(array, null=MISSING)
    # A negative count is none: old writers left such behind.
    return np.maximum(counts, MISSING)
