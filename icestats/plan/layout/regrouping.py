"""A snapshot's files as they would be after maintenance, from metadata alone: regrouped in manifests, or sorted.

Source: Iceberg's Spark actions `rewrite_manifests` (range partitioning by partition values, then manifests of a target
size) and `rewrite_data_files` with a sort order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.errors import CallError
from icestats.iceberg.value_order import Keys, Longs
from icestats.plan.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.plan.layout.file_set import FileSet
from icestats.plan.layout.ranks import order_within

_POINTS = 8
"""The rows of a file are taken to lie at this many places, evenly from its lower to its upper bound."""


def regroup(files: FileSet, manifest_size_bytes: int, by: str | None = None) -> FileSet:
    """Return the files as `rewrite_manifests` would group them.

    Parameters
    ----------
    files : FileSet
        As they are.
    manifest_size_bytes : int
        The size that manifests are to have.
    by : str, optional
        A partition field to cluster by; by default all of them, in the spec's order.

    Notes
    -----
    Each spec is rewritten by itself. Files of equal keys stay together, as in Spark's range partitioning, whose
    boundaries are sampled: the number of manifests and what each holds may differ a little.
    """
    keys = files.partitions if by is None else _partition_keys(files, by)
    count, groups = 0, np.zeros(len(files), np.int64)
    bytes_by_spec = _manifest_bytes(files)
    for spec_id in np.unique(files.spec_ids).tolist():
        rows = np.flatnonzero(files.spec_ids == spec_id)
        wanted = max(1, -(-bytes_by_spec[spec_id] // manifest_size_bytes))
        order = rows[np.argsort(keys[rows], kind="stable")]
        first = np.searchsorted(keys[order], keys[order], side="left")
        found = np.unique(first * wanted // len(rows), return_inverse=True)[1]
        groups[order] = count + found
        count += int(found.max(initial=-1)) + 1
    return _with_groups(files, groups, count)


def _partition_keys(files: FileSet, name: str) -> Longs:
    field = next((field for field in files.partition_fields if field.name == name), None)
    if field is None:
        known = ", ".join(field.name for field in files.partition_fields) or "none"
        raise CallError(f"no partition field {name!r}: the table has {known}")
    metrics = files.partition_metrics[field.field_id]
    ranks = metrics.lower.ranks()[0]
    return np.where(metrics.lower.known, ranks, ranks.min(initial=0) - 1)


def _manifest_bytes(files: FileSet) -> dict[int, int]:
    lengths = to_numpy(files.manifests["manifest_length"])
    spec_ids = to_numpy(files.manifests["partition_spec_id"])
    return {int(spec_id): int(lengths[spec_ids == spec_id].sum()) for spec_id in np.unique(spec_ids)}


def _with_groups(files: FileSet, groups: Longs, count: int) -> FileSet:
    """Return the files in other manifests, each as long as its share of the entries."""
    total = sum(_manifest_bytes(files).values())
    members = np.bincount(groups, minlength=count)
    spec_ids = np.zeros(count, np.int32)
    spec_ids[groups] = files.spec_ids
    manifests = pa.table(
        {
            "manifest_length": pa.array(members * total // max(len(files), 1)),
            "partition_spec_id": pa.array(spec_ids, pa.int32()),
        }
    )
    return replace(files, manifests=manifests, manifest_index=groups)


def sort_files(files: FileSet, field_id: int, manifest_size_bytes: int) -> FileSet:
    """Return the files as if each partition were sorted by a column, then cut into as many files as it has.

    Parameters
    ----------
    files : FileSet
        As they are.
    field_id : int
        The column.
    manifest_size_bytes : int
        The size that manifests are to have.

    Notes
    -----
    An estimate: the rows of a file are taken to spread evenly between its bounds, and the new files to have the same
    number of rows. Of other columns the new files are taken to have the bounds of their whole partition, which is the
    least favourable case. Files without bounds of the column stay as they are.
    """
    metrics = files.column_metrics[field_id]
    usable = np.flatnonzero(metrics.lower.known & metrics.upper.known & (files.record_counts > 0))
    if not usable.size:
        return regroup(files, manifest_size_bytes)
    # A partition's files are numbered as they are; its sorted rows are dealt out to those numbers in order.
    partitions = np.unique(files.partitions[usable], return_inverse=True)[1]
    lower, upper, members, values = _deal(files, metrics, usable, partitions)
    sorted_metrics = _replace_bounds(metrics, members, _keys_at(values, lower), _keys_at(values, upper))
    partition_of = np.zeros(len(files), np.int64)
    partition_of[usable] = partitions
    count = int(partitions.max()) + 1
    others = {}
    for other_id, other in files.column_metrics.items():
        whole = other.take(usable).roll_up(partitions, count)
        others[other_id] = _replace_bounds(other, usable, whole.lower.take(partitions), whole.upper.take(partitions))
    new = replace(
        files, column_metrics={**others, field_id: sorted_metrics}, record_counts=_even(files, usable, partitions)
    )
    return regroup(new, manifest_size_bytes)


def _even(files: FileSet, usable: Longs, partitions: Longs) -> Longs:
    counts = files.record_counts.copy()
    sums = np.bincount(partitions, weights=files.record_counts[usable])
    counts[usable] = np.rint(sums / np.bincount(partitions))[partitions].astype(np.int64)
    return counts


def _deal(
    files: FileSet, metrics: ColumnMetrics, usable: Longs, partitions: Longs
) -> tuple[np.ndarray, np.ndarray, Longs, Keys]:
    """Return the lower and upper positions of each new file, which old file it takes the place of, and the values."""
    together = Keys(
        _concatenated(metrics.lower.take(usable), metrics.upper.take(usable)), np.ones(2 * len(usable), np.bool_)
    )
    ranks = together.ranks()[0].astype(np.float64)
    low, high = ranks[: len(usable)], ranks[len(usable) :]
    steps = np.linspace(0.0, 1.0, _POINTS)
    points = (low[:, None] + (high - low)[:, None] * steps).ravel()
    weights = np.repeat(files.record_counts[usable] / _POINTS, _POINTS)
    owner = np.repeat(partitions, _POINTS)
    order = order_within(owner, points)
    points, weights, owner = points[order], weights[order], owner[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    totals = np.add.reduceat(weights, starts)
    before = np.cumsum(weights) - weights
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(owner))))
    file_counts = np.bincount(partitions)
    number = np.minimum((before / totals[owner] * file_counts[owner]).astype(np.int64), file_counts[owner] - 1)
    first_file = np.cumsum(file_counts) - file_counts
    new = first_file[owner] + number
    heads = np.flatnonzero(np.diff(new, prepend=-1))
    lower, upper = points[heads], np.maximum.reduceat(points, heads)
    members = usable[np.argsort(partitions, kind="stable")][new[heads]]
    return lower, upper, members, together


def _concatenated(first: Keys, second: Keys) -> np.ndarray | pa.Array:
    if isinstance(first.values, np.ndarray):
        return np.concatenate([first.values, second.values])
    return pa.concat_arrays([first.values.cast(pa.binary()), second.values.cast(pa.binary())])


def _keys_at(values: Keys, positions: np.ndarray) -> Keys:
    """Return the keys at some positions: numbers themselves, or the bytes of the nearest rank."""
    known = np.ones(len(positions), np.bool_)
    if isinstance(values.values, np.ndarray):
        return Keys(np.rint(positions).astype(np.int64), known)
    order = values.values.take(pc.array_sort_indices(values.values)).unique()
    ranks = np.clip(np.rint(positions).astype(np.int64) - 1, 0, len(order) - 1)
    return Keys(order.take(pa.array(ranks)), known)


def _replace_bounds(metrics: ColumnMetrics, rows: Longs, lower: Keys, upper: Keys) -> ColumnMetrics:
    """Return the metrics with other bounds in some rows, where counts of nulls and NaN are no longer known."""
    unknown = np.full(len(metrics.valueless), MISSING)
    kept = np.ones(len(unknown), np.bool_)
    kept[rows] = False
    return replace(
        metrics,
        value_counts=np.where(kept, metrics.value_counts, unknown),
        null_counts=np.where(kept, metrics.null_counts, unknown),
        nan_counts=np.where(kept, metrics.nan_counts, unknown),
        lower=_put(metrics.lower, rows, lower),
        upper=_put(metrics.upper, rows, upper),
        valueless=metrics.valueless & kept,
    )


def _put(keys: Keys, rows: Longs, new: Keys) -> Keys:
    known = keys.known.copy()
    known[rows] = new.known
    if isinstance(keys.values, np.ndarray):
        values = keys.values.copy()
        values[rows] = new.values
        return Keys(values, known)
    places = np.arange(len(known))
    places[rows] = len(known) + np.arange(len(rows))
    together = pa.concat_arrays([keys.values.cast(pa.binary()), new.values.cast(pa.binary())])
    return Keys(together.take(pa.array(places)), known)
