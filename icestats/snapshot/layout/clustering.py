"""How well files and manifests are clustered by partition fields and columns, how files are spread, what came late."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from icestats.answers.arrays import to_numpy
from icestats.iceberg.metadata import Schema
from icestats.iceberg.value_order import Longs
from icestats.read.manifests.manifest_pool import default_threads
from icestats.snapshot.evaluation.column_metrics import ColumnMetrics
from icestats.snapshot.layout.file_set import FileSet, build_ranks


@dataclass(frozen=True, slots=True)
class Depth:
    """How many ranges a key lies in, over the keys of a table's rows."""

    range_count: int
    unknown_count: int
    """Ranges without bounds: a lookup of any key opens them. They are counted in what is below."""
    mean: float
    max: int
    histogram: tuple[tuple[int, int, float], ...]
    """Share of the keys by depth: least and greatest depth of a bin, which are powers of two, and the share."""

    @property
    def share_opened(self) -> float:
        """The share of all ranges that the lookup of one key opens on average."""
        return self.mean / self.range_count if self.range_count else 0.0


def build_depth(
    lower: Longs,
    upper: Longs,
    weights: npt.NDArray[np.float64],
    *,
    unknown_count: int = 0,
    valueless_count: int = 0,
) -> Depth:
    """Count for each of some keys the ranges that it lies in, both ends included.

    Parameters
    ----------
    lower, upper : numpy.ndarray of int64
        The ranges, as places among the keys in ascending order: the first key and the last one in the range.
    weights : numpy.ndarray of float64
        How much each key counts: the rows that it stands for.
    unknown_count : int, optional
        Further ranges, without bounds: each key may lie in them.
    valueless_count : int, optional
        Further ranges that hold no key at all.

    Examples
    --------
    Of the keys 1, 6 and 9 the second lies in two of the ranges 1 to 6, 5 to 8 and 9 to 9:

    >>> build_depth(np.array([0, 1, 2]), np.array([1, 1, 2]), np.ones(3)).mean
    1.3333333333333333
    """
    range_count = len(lower) + unknown_count + valueless_count
    if not len(weights):
        return Depth(range_count, unknown_count, float(unknown_count), unknown_count, ())
    size = len(weights) + 1
    # Bounds that are the wrong way round hold no key.
    ends = np.maximum(upper + 1, lower)
    found = np.cumsum(np.bincount(lower, minlength=size) - np.bincount(ends, minlength=size))[:-1] + unknown_count
    by_depth = _sum_weights(found, weights)
    total = float(by_depth.sum()) or 1.0
    return Depth(
        range_count=range_count,
        unknown_count=unknown_count,
        mean=float((np.arange(len(by_depth)) * by_depth).sum() / total),
        max=int(found.max()),
        histogram=_histogram(by_depth, total),
    )


def _histogram(by_depth: npt.NDArray[np.float64], total: float) -> tuple[tuple[int, int, float], ...]:
    # frexp(1) is bin 0 (depth 1), depths 2 to 3 are bin 1, 4 to 7 bin 2.
    bins = np.frexp(np.maximum(np.arange(len(by_depth)), 1).astype(np.float64))[1] - 1
    shares = _sum_weights(bins.astype(np.int64), by_depth) / total
    return tuple((1 << place, (2 << place) - 1, float(share)) for place, share in enumerate(shares) if share > 0)


_TIMES = ("day", "hour", "month", "year")


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How the ranges of one partition field or column overlap."""

    name: str
    kind: Literal["partition field", "column"]
    type: str
    transform: str
    """Of a partition field; `identity` for a column."""
    manifests: Depth
    files: Depth
    files_of_partition: Depth
    """In how many files of its own partition a key lies."""
    mixed_files_of_partition: Depth
    """The same of files with several values, which sorting can mend: one of a single value is as narrow as can be."""


@dataclass(frozen=True, slots=True)
class LateData:
    """Files of an older partition than one that was already there when they were committed."""

    field: str
    file_count: int
    record_count: int
    share: float
    """Of all data files."""
    mean_units: float
    """How much older, in units of the partition field: days, hours, ..."""
    max_units: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How files, manifests and partitions go together."""

    file_count: int
    record_count: int
    size_bytes: int
    manifest_count: int
    partition_count: int
    manifests_per_partition_mean: float
    manifests_per_partition_max: int
    partitions_per_manifest_mean: float
    partitions_per_manifest_max: int
    target_file_size_bytes: int
    small_file_count: int
    """Files below three quarters of the target size, as `rewrite_data_files` counts them."""
    small_file_bytes: int
    crowded_partition_count: int
    """Partitions with at least five small files: what `rewrite_data_files` would compact."""
    median_file_size_bytes: int


def build_field_layouts(files: FileSet, schema: Schema) -> tuple[FieldLayout, ...]:
    """Measure the overlap by each partition field and each column that was read.

    Keys are drawn as rows are: each bound of a file stands for half of its rows.
    """
    asked: list[tuple[ColumnMetrics, str, Literal["partition field", "column"], str]] = [
        (files.partition_metrics[field.field_id], field.name, "partition field", field.transform)
        for field in files.partition_fields
    ]
    for field_id, metrics in files.column_metrics.items():
        column = schema.get(field_id)
        asked.append((metrics, column.name if column else f"#{field_id}", "column", "identity"))
    _ = files.partitions
    with ThreadPoolExecutor(default_threads(), thread_name_prefix="icestats-layout") as pool:
        return tuple(pool.map(lambda one: _measure(files, *one), asked))


def _measure(
    files: FileSet, metrics: ColumnMetrics, name: str, kind: Literal["partition field", "column"], transform: str
) -> FieldLayout:
    above = metrics.roll_up(files.manifest_index, files.manifests.num_rows)
    lower, upper, low_group, high_group = metrics.lower.ranks(metrics.upper, above.lower, above.upper)
    known = metrics.lower.known & metrics.upper.known
    count = int(known.sum())
    # Distinct bounds are numbered in ascending order; the first half of the numbers are of lower bounds.
    numbers, keys = build_ranks(np.concatenate([lower[known], upper[known]]))
    half_of_rows = np.tile(files.record_counts[known] / 2.0, 2)
    weights = _sum_weights(numbers, half_of_rows, len(keys))
    have_bounds = above.lower.known & above.upper.known
    valueless = int((above.valueless & ~above.lower.known).sum())
    manifests = build_depth(
        np.searchsorted(keys, low_group[have_bounds], side="left"),
        np.searchsorted(keys, high_group[have_bounds], side="right") - 1,
        weights,
        unknown_count=len(have_bounds) - int(have_bounds.sum()) - valueless,
        valueless_count=valueless,
    )
    valueless = int((metrics.valueless & ~known).sum())
    within, within_mixed = _within_partitions(files.partitions[known], numbers, len(keys), half_of_rows)
    return FieldLayout(
        name=name,
        kind=kind,
        type=metrics.type,
        transform=transform,
        manifests=manifests,
        files=build_depth(
            numbers[:count],
            numbers[count:],
            weights,
            unknown_count=len(known) - count - valueless,
            valueless_count=valueless,
        ),
        files_of_partition=within,
        mixed_files_of_partition=within_mixed,
    )


def _within_partitions(
    partitions: Longs, numbers: Longs, key_count: int, weights: npt.NDArray[np.float64]
) -> tuple[Depth, Depth]:
    """Look keys up among the files of their own partition, and among those of several values; all have bounds."""
    # Partition first, then the key's number: ranges of different partitions do not meet.
    places, keys = build_ranks(np.tile(partitions, 2) * key_count + numbers)
    shares = _sum_weights(places, weights, len(keys))
    lower, upper = places[: len(partitions)], places[len(partitions) :]
    is_mixed = lower < upper
    return build_depth(lower, upper, shares), build_depth(lower[is_mixed], upper[is_mixed], shares)


def predict_manifest_depth(files: FileSet, field_id: int, manifest_size_bytes: int) -> tuple[float, int]:
    """Predict in how many manifests a key of a partition field lies once they are clustered by it.

    Parameters
    ----------
    files : FileSet
        The files.
    field_id : int
        The partition field.
    manifest_size_bytes : int
        The size that manifests are to have.

    Returns
    -------
    mean : float
        Manifests that hold a key, over the keys of the table's rows.
    manifest_count : int
        All manifests.
    """
    metrics = files.partition_metrics[field_id]
    known = metrics.lower.known
    lengths = int(to_numpy(files.manifests["manifest_length"]).sum())
    entry_bytes = lengths / max(len(files), 1)
    place = build_ranks(metrics.lower.ranks()[0][known])[0]
    manifests = np.ceil(np.bincount(place) * entry_bytes / manifest_size_bytes)
    weights = np.bincount(place, weights=files.record_counts[known])
    mean = float((manifests * weights).sum() / weights.sum()) if weights.sum() else 1.0
    return max(mean, 1.0), max(-(-lengths // manifest_size_bytes), 1)


def build_spread(files: FileSet, target_file_size_bytes: int) -> Spread:
    """Count how files, manifests and partitions go together."""
    partitions, manifests = files.partitions, files.manifest_index
    count = max(files.manifests.num_rows, 1)
    pairs = build_ranks(partitions * count + manifests)[1]
    per_partition, per_manifest = _count_members(pairs // count), _count_members(pairs % count)
    small = files.sizes < 0.75 * target_file_size_bytes
    crowded = _count_members(partitions[small]) >= 5
    return Spread(
        file_count=len(files),
        record_count=int(files.record_counts.sum()),
        size_bytes=int(files.sizes.sum()),
        manifest_count=files.manifests.num_rows,
        partition_count=len(per_partition),
        manifests_per_partition_mean=_mean(per_partition),
        manifests_per_partition_max=int(per_partition.max(initial=0)),
        partitions_per_manifest_mean=_mean(per_manifest),
        partitions_per_manifest_max=int(per_manifest.max(initial=0)),
        target_file_size_bytes=target_file_size_bytes,
        small_file_count=int(small.sum()),
        small_file_bytes=int(files.sizes[small].sum()),
        crowded_partition_count=int(crowded.sum()),
        median_file_size_bytes=int(np.median(files.sizes)) if len(files) else 0,
    )


def find_late_data(files: FileSet) -> LateData | None:
    """Find files that came after files of a later partition; None where no partition field is of time."""
    field = next((f for f in files.partition_fields if f.transform in _TIMES), None)
    if field is None or not len(files):
        return None
    metrics = files.partition_metrics[field.field_id]
    known = metrics.lower.known
    values, numbers = metrics.lower.values[known], files.sequence_numbers[known]
    if not len(values):
        return None
    place, sequence = build_ranks(numbers)
    newest = np.full(len(sequence), np.iinfo(np.int64).min)
    np.maximum.at(newest, place, values)
    before = np.maximum.accumulate(newest)
    # What the commits before each one had; the first has nothing before it.
    earlier = np.concatenate([[np.iinfo(np.int64).min], before[:-1]])[place]
    late = values < earlier
    units = (earlier - values)[late]
    return LateData(
        field=field.name,
        file_count=int(late.sum()),
        record_count=int(files.record_counts[known][late].sum()),
        share=float(late.sum() / len(files)),
        mean_units=float(units.mean()) if units.size else 0.0,
        max_units=int(units.max(initial=0)),
    )


def _count_members(numbers: Longs) -> Longs:
    """Return how often each number occurs of those that do, in their order; numbers are small and not negative.

    Examples
    --------
    >>> _count_members(np.array([3, 0, 3])).tolist()
    [1, 2]
    """
    counts = np.bincount(numbers)
    return counts[counts > 0]


def _sum_weights(numbers: Longs, weights: npt.NDArray[np.float64], count: int = 0) -> npt.NDArray[np.float64]:
    """Return for each number from 0 on, up to `count` or to the greatest one, the sum of the weights that it has.

    Examples
    --------
    >>> _sum_weights(np.array([2, 0, 2]), np.array([1.5, 1.0, 2.5])).tolist()
    [1.0, 0.0, 4.0]
    """
    return np.bincount(numbers, weights=weights, minlength=count).astype(np.float64)


def _mean(counts: Longs) -> float:
    return float(counts.mean()) if counts.size else 0.0
