"""What groups of rows (files, manifests, partitions, the table) are known to hold, as arrays over the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.estimation.formulas.selectivity import Floats
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.plan.sets.items import Booleans, Items, build_items
from icestats.stats.rollup_cells import known_values


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """One column in each group."""

    type: str
    lower: Items
    """Items as `value_sets.build_item` has them, text as UTF-8 bytes; without meaning where `has_bounds` is false."""
    upper: Items
    has_bounds: Booleans
    is_valueless: Booleans
    """Known to hold nothing but null and NaN."""
    null_share: Floats
    """Share of the group's rows; NaN: unknown."""
    nan_share: Floats
    """0.0 where the type knows no NaN; NaN: unknown."""
    size_bytes: Floats
    """On disk; NaN: unknown."""

    def take(self, groups: npt.NDArray[np.int64]) -> ColumnEvidence:
        """Return the evidence of some of the groups."""
        return ColumnEvidence(
            self.type,
            self.lower[groups],
            self.upper[groups],
            self.has_bounds[groups],
            self.is_valueless[groups],
            self.null_share[groups],
            self.nan_share[groups],
            self.size_bytes[groups],
        )


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of rows that make up a table, or a part of it."""

    unit: str
    """`data file`, `manifest`, `partition` or `table`."""
    row_counts: Floats
    size_bytes: Floats
    columns: Mapping[int, ColumnEvidence]
    """By field id: the columns that were asked for."""

    def take(self, groups: npt.NDArray[np.int64]) -> Groups:
        """Return some of the groups."""
        columns = {field_id: column.take(groups) for field_id, column in self.columns.items()}
        return Groups(self.unit, self.row_counts[groups], self.size_bytes[groups], columns)


def build_groups(
    unit: str,
    row_counts: pa.Array,
    size_bytes: pa.Array,
    live_file_counts: pa.Array,
    cells: pa.Table,
    columns: Sequence[Field],
    field_ids: Sequence[int],
) -> Groups:
    """Build groups from a roll-up.

    Parameters
    ----------
    unit : str
        What a group is.
    row_counts, size_bytes, live_file_counts : pyarrow.Array
        Of each group's live data files.
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: every one of `columns` for each group in turn.
    columns : sequence of Field
        The columns of the cells.
    field_ids : sequence of int
        The columns that are wanted.
    """
    rows, files = as_floats(row_counts), to_numpy(live_file_counts)
    places = {field.field_id: (place, field) for place, field in enumerate(columns)}
    found: dict[int, ColumnEvidence] = {}
    for field_id in field_ids:
        if field_id not in places:
            continue
        place, field = places[field_id]
        column = cells.take(pa.array(np.arange(len(rows), dtype=np.int64) * len(columns) + place))
        known = {name: known_values(column, name, files)[0] for name in _CELL_STATISTICS}
        found[field_id] = build_column_evidence(field.type, rows, **known)
    return Groups(unit, rows, as_floats(size_bytes), found)


_CELL_STATISTICS = ("null_value_count", "nan_value_count", "lower_bound", "upper_bound", "column_size")


def build_column_evidence(
    type_text: str,
    row_counts: Floats,
    *,
    null_value_count: pa.Array,
    nan_value_count: pa.Array,
    lower_bound: pa.Array,
    upper_bound: pa.Array,
    column_size: pa.Array,
) -> ColumnEvidence:
    """Build the evidence of a column from its statistics in each group; null is unknown."""
    kind = parse_type(type_text)
    with np.errstate(divide="ignore", invalid="ignore"):
        null_share = np.where(row_counts > 0, as_floats(null_value_count) / row_counts, 0.0)
        nan_share = np.where(row_counts > 0, as_floats(nan_value_count) / row_counts, 0.0)
    if kind.name not in ("float", "double"):
        nan_share = np.zeros(len(row_counts))
    lower, has_lower = build_items(type_text, lower_bound)
    upper, has_upper = build_items(type_text, upper_bound)
    with np.errstate(invalid="ignore"):
        is_valueless = (row_counts == 0) | (null_share + np.nan_to_num(nan_share, nan=0.0) >= 1.0)
    has_bounds = has_lower & has_upper & ~is_valueless
    sizes = as_floats(column_size)
    return ColumnEvidence(type_text, lower, upper, has_bounds, is_valueless, null_share, nan_share, sizes)


def as_floats(array: pa.Array | pa.ChunkedArray) -> Floats:
    """Return numbers as floats; NaN for null."""
    return to_numpy(pc.cast(array, pa.float64()), null=np.nan)
