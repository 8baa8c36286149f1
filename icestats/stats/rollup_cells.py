"""Roll-up cells as answers: the maps of manifests and partitions, the table of columns, and the cells that are stored.

The roll-up rule: a statistic that one or more live files lack is unknown, because a sum over only some of the files
means nothing. The number of files that lack it is kept next to it. A file whose column is all null or all NaN needs no
bounds. Source: "Extending standardized statistics in Iceberg", part 2, "Missing fields".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.schemas import BOUNDS, COLUMNS, COUNTS, ROLLUP_CELLS, STATISTICS, SUMMED_STATISTICS
from icestats.answers.text import counted
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import has_lengths
from icestats.stats.theta import LEAVES_OUT_EMPTY

_Counts = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def has_column_statistic(column: Field, statistic: str) -> bool:
    """Return whether a column can have a statistic: only float and double count NaN."""
    return statistic != "nan_value_count" or column.has_nan


def known_values(cells: pa.Table, statistic: str, live_file_counts: _Counts) -> tuple[pa.Array, _Counts]:
    """Return a statistic of each cell, null if unknown, and how many files lack it.

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
    values = combine_chunks(cells[statistic])
    return pc.if_else(pa.array(missing == 0), values, pa.scalar(None, values.type)), missing


def build_column_maps(
    cells: pa.Table, columns: Sequence[Field], live_file_counts: _Counts, has_maps: _Flags | None = None
) -> dict[str, pa.Array]:
    """Build two map columns for each statistic: its values, and how many files lack it.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS`: for each group in turn, every column of `columns` in that order.
    columns : sequence of Field
        The columns of the cells.
    live_file_counts : numpy.ndarray of int64
        Live data files of each group.
    has_maps : numpy.ndarray of bool, optional
        Which groups have maps; the maps of the others are null. By default all groups have maps.

    Returns
    -------
    dict of str to pyarrow.Array
        `schemas.COLUMN_MAPS`, one element per group. A null value is unknown, or a bound of a column without values.
        `nan_value_counts` has only the columns that can hold NaN.
    """
    mapped = np.ones(len(live_file_counts), np.bool_) if has_maps is None else has_maps
    mask = pa.array(~mapped)
    out: dict[str, pa.Array] = {}
    for statistic in STATISTICS:
        values, missing = known_values(cells, statistic, np.repeat(live_file_counts, len(columns)))
        kept = [i for i, field in enumerate(columns) if has_column_statistic(field, statistic)]
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


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and where it comes from."""

    value: Any
    provenance: str
    is_current: bool = True
    """Whether it is of the snapshot that is shown. If not, a roll-up stays, and the provenance is added to its own."""


CommittedFigures = Mapping[int, Mapping[str, Figure]]
"""Field id to figures of committed statistics: `ndv`, lengths, `common_values`, and `schemas.STATISTICS`."""
NO_LENGTH = "not applicable: only strings and binaries have lengths"


_MOVED = "unknown: the name mapping gives an earlier name of the column to another one, so files may be read otherwise"


_MILLISECONDS = "unknown: may be in milliseconds, as add_files leaves bounds of timestamps, before 1970-02-20 otherwise"
_FIRST_DAYS = 1 << 42
IN_MICROSECONDS = ("timestamp", "timestamptz")


def may_be_milliseconds(lower: Any) -> Any:
    """Say of lower bounds of timestamps whether they, and upper bounds beside them, may be in milliseconds.

    Iceberg's `add_files`, `migrate` and `snapshot` copy them so from files whose timestamps are: what is then read as
    before 1970-02-20 may be any time before 2109.
    """
    return lower < _FIRST_DAYS


def build_columns(
    cells: pa.Table,
    columns: Sequence[Field],
    live_file_count: int,
    record_count: int,
    *,
    has_deletes: bool,
    committed: CommittedFigures,
    moved: Collection[int] = (),
    imported: bool = False,
) -> pa.Table:
    """Build the table of columns from their roll-up.

    Parameters
    ----------
    cells : pyarrow.Table
        `schemas.ROLLUP_CELLS` of the table as one group: one row for each of `columns`.
    columns : sequence of Field
        The columns, in the order of `cells`.
    live_file_count : int
        Live data files.
    record_count : int
        Their rows.
    has_deletes : bool
        Whether there are live delete files: the sums and bounds of data files do not reflect them.
    committed : mapping
        Figures from committed statistics, by field id.
    moved : collection of int
        Columns of which data files say nothing that holds: `TableMetadata.find_moved`.
    imported : bool
        Whether files may have been taken in whose bounds `may_be_milliseconds`.

    Returns
    -------
    pyarrow.Table
        `schemas.COLUMNS`: one row per column.
    """
    live = np.full(len(columns), live_file_count, np.int64)
    known = {statistic: known_values(cells, statistic, live) for statistic in STATISTICS}
    rows = []
    for i, field in enumerate(columns):
        row = start_row(field, live_file_count)
        provenance: dict[str, str] = {}
        missing: dict[str, int] = {}
        figures = committed.get(field.field_id, {})
        for statistic, (values, lacking) in known.items():
            if not has_column_statistic(field, statistic):
                provenance[statistic] = "not applicable: the type has no NaN"
                continue
            figure = figures.get(statistic)
            if figure is not None and figure.is_current:
                row[statistic], provenance[statistic] = figure.value, figure.provenance
                continue
            lower = known["lower_bound"][0][i].as_py() if imported and statistic.endswith("_bound") else None
            if field.field_id in moved or (lower is not None and _is_early(field, lower)):
                provenance[statistic] = _MOVED if field.field_id in moved else _MILLISECONDS
                continue
            row[statistic] = values[i].as_py()
            if lacking[i]:
                missing[statistic] = int(lacking[i])
            provenance[statistic] = describe_rollup(
                statistic, field, row[statistic], int(lacking[i]), live_file_count, has_deletes=has_deletes
            )
            if figure is not None:
                provenance[statistic] += f"; {figure.provenance}"
        _count_null_structs(row, field, record_count, provenance)
        for name in ("ndv", "avg_length", "max_length", "common_values"):
            figure = figures.get(name)
            row[name] = None if figure is None else figure.value
            has_none = name.endswith("_length") and not has_lengths(field.type)
            unknown = NO_LENGTH if has_none else "unknown: no committed statistics"
            provenance[name] = unknown if figure is None else figure.provenance
        if row["ndv"] is not None:
            row["ndv"], provenance["ndv"] = limit_ndv(row, None if field.repeated else record_count, provenance["ndv"])
        rows.append({**row, "missing_files": list(missing.items()), "provenance": list(provenance.items())})
    return pa.Table.from_pylist(rows, COLUMNS)


def _is_early(field: Field, lower: bytes) -> bool:
    return field.type in IN_MICROSECONDS and may_be_milliseconds(int.from_bytes(lower, "little", signed=True))


def _count_null_structs(row: dict[str, Any], field: Field, record_count: int, provenance: dict[str, str]) -> None:
    """Add to the values and nulls of a struct's field the rows whose struct is null: counts of ORC files lack them."""
    if field.top_level or field.repeated or row["value_count"] is None:
        return
    uncounted = max(record_count - row["value_count"], 0)
    for statistic in ("value_count", "null_value_count") if uncounted else ():
        if row[statistic] is not None:
            row[statistic] += uncounted
            provenance[statistic] += f", and {counted(uncounted, 'row')} whose struct is null"


def limit_ndv(row: Mapping[str, Any], record_count: int | None, provenance: str) -> tuple[int, str]:
    """Return an NDV, no more than there are values that are not null, and what it leaves out.

    Where data files do not count values, it is no more than there are rows; None: a row may have many values.
    """
    ndv: int = row["ndv"]
    if row["type"] in LEAVES_OUT_EMPTY and not row["lower_bound"]:
        provenance += "; the empty value, if there is one, is not counted"
    if row["type"] in ("float", "double"):
        provenance += "; 0.0 and -0.0, and NaN of other bits, count as different values"
    if None not in (row["value_count"], row["null_value_count"]):
        most, what = row["value_count"] - row["null_value_count"], "values that are not null"
    else:
        most, what = record_count, "rows"
    if most is not None and ndv > most:
        return most, f"{provenance}; cut from {ndv:,} to the number of {what}"
    return ndv, provenance


def start_row(field: Field, live_file_count: int) -> dict[str, Any]:
    """Return the part of a row of `schemas.COLUMNS` that describes the column itself."""
    return {
        "field_id": field.field_id,
        "name": field.name,
        "type": field.type,
        "required": field.required,
        "live_file_count": live_file_count,
    }


@dataclass(frozen=True, slots=True)
class KnownCells:
    """The part of roll-up cells that is stored: for each group in turn, every column."""

    values: Mapping[str, pa.Array]
    """For each statistic its value in each cell; null if it is unknown, or if there is no value to bound."""
    missing: Mapping[str, _Counts]
    """For each statistic how many live data files of the group lack it."""


def find_known_cells(cells: pa.Table, live_file_counts: _Counts, column_count: int) -> KnownCells:
    """Return the values of `schemas.ROLLUP_CELLS` that are known, and how many files lack the others.

    Parameters
    ----------
    cells : pyarrow.Table
        For each group in turn, every column.
    live_file_counts : numpy.ndarray of int64
        Live data files of each group.
    column_count : int
        The number of columns of each group.
    """
    live = np.repeat(live_file_counts, column_count)
    values, missing = zip(*(known_values(cells, statistic, live) for statistic in STATISTICS), strict=True)
    return KnownCells(dict(zip(STATISTICS, values, strict=True)), dict(zip(STATISTICS, missing, strict=True)))


def build_known_cells(known: KnownCells, columns: Sequence[Field], live_file_counts: _Counts) -> pa.Table:
    """Build `schemas.ROLLUP_CELLS` that give the same answers as the cells that `known` was found in.

    What `known` says of a statistic that does not apply to a column does not matter.

    Raises
    ------
    ValueError
        More files lack a statistic than there are files, a number is negative, or a sum that no file lacks is missing.
    """
    live = np.repeat(live_file_counts, len(columns))
    field_ids = np.array([column.field_id for column in columns], np.int32)
    arrays: dict[str, pa.Array] = {"field_id": pa.array(np.tile(field_ids, len(live_file_counts)))}
    for statistic in STATISTICS:
        missing, values = known.missing[statistic], known.values[statistic]
        applies = np.array([has_column_statistic(column, statistic) for column in columns], np.bool_)
        if not applies.all():
            missing = np.where(np.tile(applies, len(live_file_counts)), missing, live)
        if (missing < 0).any() or (missing > live).any():
            raise ValueError(f"{statistic}: the number of files that lack it is negative, or above the number of files")
        if statistic in SUMMED_STATISTICS:
            if values.null_count and ((missing == 0) & (live > 0) & to_numpy(values.is_null())).any():
                raise ValueError(f"{statistic} of a column is neither there nor missing")
            values = pc.fill_null(values, 0)
            if (to_numpy(values) < 0).any():
                raise ValueError(f"{statistic} is negative")
        arrays[statistic] = values
        arrays[f"{statistic}_file_count"] = pa.array(live - missing)
    # Files without a value to bound are counted like files that have the bound: neither lacks anything.
    arrays["valueless_file_count"] = pa.array(np.zeros(len(live), np.int64))
    return pa.table(arrays, schema=ROLLUP_CELLS)


def describe_rollup(
    statistic: str, field: Field, value: Any, missing: int, files: int, *, has_deletes: bool, of: str = ""
) -> str:
    """Return how far a statistic over data files can be trusted, and why.

    Parameters
    ----------
    statistic : str
        One of `schemas.STATISTICS`.
    field : Field
        The column.
    value : object
        The sum or the bound; None: unknown, or there is no value to bound.
    missing : int
        How many of the files lack it.
    files : int
        Live data files.
    has_deletes : bool
        Whether there are live delete files.
    of : str
        What the files are of, where they are not all of the table's.
    """
    over = f"{counted(files, 'data file')}{of}"
    if missing:
        return f"unknown: {missing:,} of {over} {'lacks' if missing == 1 else 'lack'} it"
    deletes = ", deletes not applied" if has_deletes else ""
    if statistic == "column_size":
        return f"exact: sum over {over} (on-disk bytes)"
    if statistic in ("value_count", "null_value_count") and field.repeated:
        # Parquet has an entry for a list without elements, and writers count it.
        return f"estimate: sum over {over} (values{deletes}); a null or an empty list or map may count as one null"
    if statistic in SUMMED_STATISTICS:
        return f"exact: sum over {over} (values{deletes})"
    if value is None:
        return f"none: no value to bound in {over}"
    if field.type == "uuid":
        # Java has ordered them by signed halves (apache/iceberg#14216).
        return f"estimate: of the bounds of {over}, whose writers may order uuids in two ways"
    side = "at most the smallest" if statistic == "lower_bound" else "at least the largest"
    return f"bound: {side} value, over {over}{deletes}"
