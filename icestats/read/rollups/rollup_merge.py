"""Roll-ups of parts of a table -> the roll-up of the whole: sums add up, the extremes of bounds are kept.

Every figure of a roll-up is a sum, a count or an extreme, so parts may be merged in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.schemas import ROLLUP_CELLS
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.value_order import build_keys, rank_values
from icestats.read.manifests.manifests import RollUps

_Places = npt.NDArray[np.int64]

_SUMMED_CELLS = tuple(name for name in ROLLUP_CELLS.names if name not in ("field_id", "lower_bound", "upper_bound"))
_MOST_SLICES = 256
"""Runs of groups in a row, beyond which cells are copied."""
LATEST = ("last_updated_at", "last_updated_snapshot_id")


def merge_rollups(parts: Sequence[RollUps], columns: Sequence[Field], manifest_paths: Sequence[str]) -> RollUps:
    """Merge the roll-ups of distinct manifests.

    Parameters
    ----------
    parts : sequence of RollUps
        Each with the cells of `columns`; no manifest is in two of them.
    columns : sequence of Field
        The columns of the cells, in their order.
    manifest_paths : sequence of str
        All manifests of all parts, in the order that the result has them in.

    Raises
    ------
    UnsupportedError
        A sum exceeds 64 bits.
    """
    manifests, manifest_cells = merge_manifests(parts, manifest_paths, len(columns))
    if len(parts) == 1:
        return replace(parts[0], manifests=manifests, manifest_cells=manifest_cells)
    # The type of a field whose source column is gone is known only to parts that have a manifest of its spec.
    groups = pa.concat_tables([part.partitions for part in parts], promote_options="permissive")
    partitions, places = merge_partition_groups(groups.combine_chunks(), (LATEST,))
    whole = np.zeros(len(parts), np.int64)
    return RollUps(
        manifests=manifests,
        manifest_cells=manifest_cells,
        partitions=partitions,
        partition_cells=merge_cells([part.partition_cells for part in parts], places, len(partitions), columns),
        table_cells=merge_cells([part.table_cells for part in parts], whole, 1, columns),
    )


def merge_manifests(parts: Sequence[RollUps], manifest_paths: Sequence[str], width: int) -> tuple[pa.Table, pa.Table]:
    """Put manifests of all parts and their cells, of `width` columns each, in the order of some paths."""
    manifests = pa.concat_tables([part.manifests for part in parts]).combine_chunks()
    cells = pa.concat_tables([part.manifest_cells for part in parts])
    position = {path: i for i, path in enumerate(manifests["manifest_path"].to_pylist())}
    order = np.array([position[path] for path in manifest_paths], np.int64)
    return manifests.take(pa.array(order)), _take_groups(cells, order, width)


def _take_groups(cells: pa.Table, chosen: _Places, width: int) -> pa.Table:
    """Return the cells of groups in another order: slices that copy nothing, unless they are many."""
    starts = np.flatnonzero(np.diff(chosen, prepend=-2) != 1)
    if len(starts) > _MOST_SLICES:
        return cells.take(pa.array((chosen[:, None] * width + np.arange(width)).ravel()))
    ends = np.append(starts[1:], len(chosen))[: len(starts)]
    slices = [cells.slice(chosen[i] * width, (end - i) * width) for i, end in zip(starts, ends, strict=True)]
    return pa.concat_tables(slices or [cells.slice(0, 0)])


def take_columns(cells: pa.Table, columns: Sequence[Field], wanted: Sequence[Field]) -> pa.Table:
    """Return the cells of some of the columns, for each group in turn."""
    if tuple(wanted) == tuple(columns):
        return cells
    places = np.array([columns.index(column) for column in wanted], np.int64)
    groups = np.arange(len(cells) // max(len(columns), 1)) * len(columns)
    return cells.take(pa.array((groups[:, None] + places).ravel()))


def merge_partition_groups(groups: pa.Table, latest: Sequence[tuple[str, str]]) -> tuple[pa.Table, _Places]:
    """Merge rows of the same partition; also return each row's place in the result.

    Parameters
    ----------
    groups : pyarrow.Table
        `schemas.partition_groups_schema`, and perhaps more columns.
    latest : sequence of (str, str)
        Columns of a time and of a snapshot id, of which the latest is kept.
    """
    key, count = _row_keys(groups)
    merged = groups.take(pa.array(_first_rows(key, count)))
    for name in groups.column_names:
        if name.endswith(("_count", "_in_bytes")) and name != "total_record_count":
            merged = _replace(merged, name, pa.array(_sums(to_numpy(groups[name]), key, count)))
    for names in latest:
        rows = _latest_rows(groups, key, count, *names)
        for name in names:
            merged = _replace(merged, name, combine_chunks(groups[name].take(pa.array(rows))))
    return merged, key


def _row_keys(groups: pa.Table) -> tuple[_Places, int]:
    """Number the partitions in their order: by the partition's fields, nulls first, then by spec."""
    partition = combine_chunks(groups["partition"])
    ranks = [rank_values(partition.field(i)) for i in range(partition.type.num_fields)]
    _, key = np.unique(np.stack([*ranks, to_numpy(groups["spec_id"])], axis=1), axis=0, return_inverse=True)
    key = key.reshape(-1).astype(np.int64)
    return key, int(key.max(initial=-1)) + 1


def _latest_rows(groups: pa.Table, key: _Places, count: int, at: str, by: str) -> _Places:
    times = to_numpy(groups[at].cast(pa.int64()), null=-1)
    ids = to_numpy(groups[by], null=-1)
    order = np.lexsort((ids, times, key))
    latest = np.empty(count, np.int64)
    latest[key[order]] = order
    return latest


def _replace(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.column_names.index(name)
    return table.set_column(index, table.schema.field(index), values)


def _first_rows(key: _Places, count: int) -> _Places:
    first = np.empty(count, np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    return first


def _sums(values: npt.NDArray[np.int64], key: _Places, count: int) -> npt.NDArray[np.int64]:
    largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if len(values) * largest >= 2**62 and np.abs(values).sum(axis=0, dtype=np.float64).max() >= 2.0**62:
        raise UnsupportedError("a sum over the table's files exceeds 64 bits: its metadata cannot be right")
    sums = np.zeros((count, *values.shape[1:]), np.int64)
    np.add.at(sums, key, values)
    return sums


def merge_cells(parts: Sequence[pa.Table], key: _Places, count: int, columns: Sequence[Field]) -> pa.Table:
    """Merge cells of groups: `key` is the place of each part's groups, in turn, among `count` groups."""
    width = len(columns)
    cells = pa.concat_tables(parts)
    chosen = _first_rows(key, count)
    meeting = np.flatnonzero(np.bincount(key, minlength=count) > 1)
    rows = np.flatnonzero(np.isin(key, meeting))
    merged = _merge_groups(_take_groups(cells, rows, width), np.searchsorted(meeting, key[rows]), len(meeting), columns)
    chosen[meeting] = len(key) + np.arange(len(meeting))
    return _take_groups(pa.concat_tables([cells, merged]), chosen, width)


def _merge_groups(cells: pa.Table, key: _Places, count: int, columns: Sequence[Field]) -> pa.Table:
    shape = (len(key), len(columns))
    merged: dict[str, pa.Array] = {
        "field_id": pa.array(np.tile(np.array([c.field_id for c in columns], np.int32), count))
    }
    for name in _SUMMED_CELLS:
        merged[name] = pa.array(_sums(to_numpy(cells[name]).reshape(shape), key, count).ravel())
    for name in ("lower_bound", "upper_bound"):
        merged[name] = _merge_bounds(combine_chunks(cells[name]), key, count, columns, highest=name == "upper_bound")
    return pa.table(merged, schema=ROLLUP_CELLS)


def merge_groups_cells(cells: pa.Table, columns: Sequence[Field]) -> pa.Table:
    """Merge the cells of all groups into those of one.

    Raises
    ------
    UnsupportedError
        A sum exceeds 64 bits.
    """
    groups = len(cells) // max(len(columns), 1)
    return _merge_groups(cells, np.zeros(groups, np.int64), 1, columns)


def _merge_bounds(bounds: pa.Array, key: _Places, count: int, columns: Sequence[Field], *, highest: bool) -> pa.Array:
    width = len(columns)
    first = np.arange(len(key)) * width
    chosen = np.full((count, width), -1, np.int64)
    for type_text in dict.fromkeys(column.type for column in columns):
        # The columns of a type are compared at once, as so many more groups.
        places = np.array([place for place, column in enumerate(columns) if column.type == type_text])
        rows = (first[:, None] + places).ravel()
        groups = (key[:, None] * len(places) + np.arange(len(places))).ravel()
        found = build_keys(type_text, bounds.take(pa.array(rows)))
        best = found.find_extremes(groups, count * len(places), highest=highest).reshape(count, len(places))
        # Where none is known, the last.
        chosen[:, places] = np.append(rows, -1)[best]
    flat = chosen.ravel()
    return bounds.take(pa.array(flat, mask=flat < 0))
