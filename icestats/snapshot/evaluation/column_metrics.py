"""What is known of a column in each of many groups of rows: manifests, files, row groups, or single partition values.

Missing counts are -1 here, in NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.iceberg.value_order import Keys, Longs, Mask, build_keys, build_value_keys
from icestats.stats.rollup_cells import IN_MICROSECONDS, known_values, may_be_milliseconds

MISSING = -1
_COUNTS = ("value_count", "null_value_count", "nan_value_count")
_BOUNDS = ("lower_bound", "upper_bound")


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """Metrics of one column, a row a group."""

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
    """No value that compares: all are null, or all are NaN, or there are no rows."""
    is_exact: bool = False
    """Each group is one value, and both bounds are that value."""
    partly_known: Mask | None = None
    """Some files of the group have counts or bounds, and others lack them; None: no group is of several files."""

    def take(self, rows: Longs) -> ColumnMetrics:
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
            partly_known=None if self.partly_known is None else self.partly_known[rows],
        )

    def without_milliseconds(self) -> ColumnMetrics:
        """Return the same without bounds that may be of timestamps in milliseconds: `may_be_milliseconds`."""
        if self.type not in IN_MICROSECONDS:
            return self
        known = self.lower.known & ~np.asarray(may_be_milliseconds(self.lower.values))
        lower, upper = Keys(self.lower.values, known), Keys(self.upper.values, self.upper.known & known)
        return replace(self, lower=lower, upper=upper)

    @property
    def has_bounds(self) -> Mask:
        """Whether both bounds are known."""
        return np.asarray(self.lower.known & self.upper.known)

    @property
    def all_null(self) -> Mask:
        """Whether every value is known to be null."""
        return np.asarray((self.value_counts > 0) & (self.null_counts == self.value_counts))

    @property
    def all_nan(self) -> Mask:
        """Whether every value is known to be NaN."""
        return np.asarray((self.value_counts > 0) & (self.nan_counts == self.value_counts))

    @property
    def may_be_null(self) -> Mask:
        """Whether a row may be null."""
        return np.asarray((self.null_counts != 0) & ~self.all_nan)

    @property
    def may_be_nan(self) -> Mask:
        """Whether a row may be NaN."""
        if self.type not in ("float", "double"):
            return np.zeros(len(self.valueless), np.bool_)
        return np.asarray((self.nan_counts != 0) & ~self.all_null)

    @property
    def is_single(self) -> Mask:
        """Whether all rows are known to have one value, which is neither null nor NaN."""
        if self.is_exact:
            return self.lower.known
        is_one = self.has_bounds & self.lower.is_at_most(self.upper) & self.upper.is_at_most(self.lower)
        return np.asarray(is_one & (self.null_counts == 0) & ~self.may_be_nan)

    def roll_up(self, groups: Longs, count: int) -> ColumnMetrics:
        """Roll the metrics up to `count` groups: what one member of a group lacks is unknown for the group."""
        lower, upper = (self._extremes(groups, count, highest=highest) for highest in (False, True))
        value_counts, null_counts, nan_counts = (
            _sums(counts, groups, count) for counts in (self.value_counts, self.null_counts, self.nan_counts)
        )
        nothing = pa.nulls(count, pa.binary())
        valueless = np.bincount(groups[self.valueless], minlength=count) == np.bincount(groups, minlength=count)
        return ColumnMetrics(
            self.type, value_counts, null_counts, nan_counts, lower, upper, nothing, nothing, valueless
        )

    def _extremes(self, groups: Longs, count: int, *, highest: bool) -> Keys:
        keys = self.upper if highest else self.lower
        lacking = np.bincount(groups[~keys.known & ~self.valueless], minlength=count) > 0
        rows = keys.find_extremes(groups, count, highest=highest)
        if not len(keys.known):
            is_whole = isinstance(keys.values, np.ndarray)
            nothing = np.zeros(count, np.int64) if is_whole else pa.nulls(count, pa.binary())
            return Keys(nothing, np.zeros(count, np.bool_))
        found = keys.take(np.maximum(rows, 0))
        return Keys(found.values, (rows >= 0) & ~lacking)


def _sums(counts: Longs, groups: Longs, count: int) -> Longs:
    lacking = np.bincount(groups[counts == MISSING], minlength=count) > 0
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, np.maximum(counts, 0))
    return np.where(lacking, MISSING, sums)


def table_metrics(table: pa.Table, columns: Sequence[Field]) -> dict[int, ColumnMetrics]:
    """Return the metrics of primitive columns from a table of files or row groups that has them flat, by field id."""
    rows = to_numpy(table["record_count" if "record_count" in table.column_names else "row_count"], null=MISSING)
    return {
        field.field_id: build_metrics(
            field, rows, {name: combine_chunks(table[f"{name}_{field.field_id}"]) for name in (*_COUNTS, *_BOUNDS)}
        )
        for field in columns
    }


def cell_metrics(cells: pa.Table, field: Field, file_counts: Longs, row_counts: Longs) -> ColumnMetrics:
    """Return the metrics of a column in each group of a roll-up: unknown wherever a live file lacks them.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: this column's, one a group.
    field : Field
        The column.
    file_counts, row_counts : numpy.ndarray of int64
        Live data files of each group, and their records.
    """
    found = {name: known_values(cells, name, file_counts) for name in (*_COUNTS, *_BOUNDS)}
    values = {name: array for name, (array, _) in found.items()}
    if parse_type(field.type).name == "uuid":
        # Java has ordered uuids by signed halves (apache/iceberg#14216): extremes of such bounds mean nothing.
        values |= dict.fromkeys(_BOUNDS, pa.nulls(len(file_counts), pa.binary()))
    metrics = build_metrics(field, row_counts, values)
    empty = (to_numpy(cells["valueless_file_count"]) == file_counts) & (file_counts > 0)
    for name in _BOUNDS:
        empty &= found[name][1] == 0
    partly = np.logical_or.reduce(
        [(to_numpy(cells[f"{name}_file_count"]) > 0) & (found[name][1] > 0) for name in ("null_value_count", *_BOUNDS)]
    )
    return replace(metrics, valueless=metrics.valueless | empty, partly_known=partly)


def build_metrics(field: Field, row_counts: Longs, arrays: Mapping[str, pa.Array]) -> ColumnMetrics:
    """Build the metrics of a column from its counts and its bounds as single values; null is unknown.

    Notes
    -----
    The counts of a field of a struct may leave out rows whose struct is null, as those of ORC files do: these rows are
    null too. Where values are not counted, nothing is known of them; but where there are no rows, there are none.
    """
    # A negative count is none: old writers left such behind. Nor are counts that contradict each other.
    counts = [arrays[name].fill_null(MISSING).to_numpy(zero_copy_only=False) for name in _COUNTS]
    least = np.where(row_counts == 0, 0, MISSING)
    values, nulls, nans = (np.maximum(found, least) for found in counts)
    most = np.where(values == MISSING, row_counts, values)
    is_possible = (nulls <= most) & (nans <= most - np.maximum(nulls, 0))
    values, nulls, nans = (np.where(is_possible, found, MISSING) for found in (values, nulls, nans))
    if not field.top_level and not field.repeated:
        uncounted = np.where(values == MISSING, 0, np.maximum(row_counts - values, 0))
        nulls = np.where((nulls == MISSING) | (values == MISSING), MISSING, nulls + uncounted)
        values = np.where(values == MISSING, MISSING, values + uncounted)
    found = _build(field.type, (values, nulls, nans), *(arrays[name] for name in _BOUNDS))
    return replace(found, valueless=found.valueless | (row_counts == 0))


def _build(type_text: str, counts: tuple[Longs, Longs, Longs], lower: pa.Array, upper: pa.Array) -> ColumnMetrics:
    keys = build_keys(type_text, lower), build_keys(type_text, upper)
    found = ColumnMetrics(type_text, *counts, *keys, lower, upper, np.zeros(len(lower), np.bool_))
    return replace(found, valueless=found.all_null | found.all_nan)


def summary_metrics(summaries: pa.Array, type_text: str) -> ColumnMetrics:
    """Return the metrics of a partition field in each manifest.

    Parameters
    ----------
    summaries : pyarrow.StructArray
        `schemas.FIELD_SUMMARY`; a null one says nothing.
    type_text : str
        The type of the partition field's values.
    """
    count = len(summaries)
    there = ~to_numpy(pc.is_null(summaries))
    flags = (summaries.field(name).cast(pa.int8()) for name in ("contains_null", "contains_nan"))
    null, nan = (to_numpy(flag, null=MISSING) for flag in flags)
    lower, upper = (summaries.field(name) for name in _BOUNDS)
    no_bounds = there & (null != MISSING) & to_numpy(pc.is_null(lower))
    if parse_type(type_text).name not in ("float", "double"):
        nan = np.zeros(count, np.int8)
    # No bounds mean that no value is there that compares, unless the summary denies that there is anything else.
    valueless = no_bounds & ((null != 0) | (nan != 0))
    all_null, all_nan = valueless & (nan == 0), valueless & (null == 0)
    value_counts = np.where(all_null | all_nan, 1, MISSING)
    null_counts = np.where(all_null, 1, np.where(there & (null == 0), 0, MISSING))
    nan_counts = np.where(all_nan, 1, np.where(there & (nan == 0), 0, MISSING))
    return replace(_build(type_text, (value_counts, null_counts, nan_counts), lower, upper), valueless=valueless)


def value_metrics(values: pa.Array, type_text: str) -> ColumnMetrics:
    """Return the metrics of partition values: each group is one value."""
    return _of_values(type_text, values, *build_value_keys(values, type_text))


def single_value_metrics(values: pa.Array, type_text: str) -> ColumnMetrics:
    """Return the same of partition values as single-value bytes; null is null."""
    keys = build_keys(type_text, values)
    is_null = to_numpy(pc.is_null(values))
    is_nan = ~keys.known & ~is_null & (type_text in ("float", "double"))
    return _of_values(type_text, values, keys, is_null, is_nan)


def _of_values(type_text: str, values: pa.Array, keys: Keys, is_null: Mask, is_nan: Mask) -> ColumnMetrics:
    return ColumnMetrics(
        type=type_text,
        value_counts=np.broadcast_to(np.int64(1), len(values)),
        null_counts=_as_counts(is_null),
        nan_counts=_as_counts(is_nan),
        lower=keys,
        upper=keys,
        lower_bytes=values,
        upper_bytes=values,
        valueless=is_null | is_nan,
        is_exact=True,
    )


def _as_counts(mask: Mask) -> Longs:
    """Return 1 for True and 0 for False; in no memory where there is no True, as in most tables."""
    return mask.astype(np.int64) if mask.any() else np.broadcast_to(np.int64(0), len(mask))
