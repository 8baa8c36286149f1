"""What files another partition spec would bring, from the bounds of those that there are.

Source: Iceberg spec, "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField

from icestats.answers.arrays import to_numpy
from icestats.answers.text import counted
from icestats.errors import CallError
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.iceberg.metadata import PartitionField, Schema, split_transform
from icestats.iceberg.partition_columns import partition_field_type
from icestats.iceberg.types import UNITS_A_DAY, decode_value, parse_type
from icestats.iceberg.value_order import Keys, Longs
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.snapshot.layout.file_set import FileSet, build_ranks
from icestats.snapshot.layout.row_points import (
    KNOWN,
    NULL,
    UNKNOWN,
    ColumnPoints,
    RowPoints,
    draw_points,
    place_keys,
    split_evenly,
)

_MOST_PARTITIONS = 500_000
_SPEC_ID = -1
"""No spec of a table has it."""


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The files as they would be."""

    files: FileSet
    partition_count: int
    caveats: tuple[str, ...]
    """Where less is known of the values than the bounds of whole numbers say."""


def change_partitions(
    files: FileSet, fields: Sequence[PartitionField], schema: Schema, field_ids: Collection[int]
) -> PartitionChange:
    """Return the files as if all rows were written anew with another partition spec.

    Parameters
    ----------
    files : FileSet
        As they are, with the bounds of the source columns and of `field_ids`.
    fields : sequence of PartitionField
        The new spec.
    schema : Schema
        The columns.
    field_ids : collection of int
        The columns whose bounds the new files are to have.

    Raises
    ------
    CallError
        It would make more than 500,000 partitions.

    Notes
    -----
    An estimate: rows are spread evenly between their file's bounds, each column by itself, and evenly over buckets
    unless all values of the file are one. Nulls are as many as are counted. Rows of which nothing is known are in a
    partition of their own, which no filter rules out. Between two bounds of text or of floating-point numbers nothing
    is known of the values, so that what lies there counts as one partition with both as its bounds.
    """
    files = _select(files, np.flatnonzero(files.record_counts > 0))
    if not len(files):
        return PartitionChange(files, 0, ())
    points = draw_points(files.record_counts)
    columns = {
        source_id: ColumnPoints(files.column_metrics[source_id], points, dimension)
        for dimension, source_id in enumerate(dict.fromkeys(field.source_id for field in fields))
    }
    cells = [
        _build_cells(files, points, field, columns[field.source_id], len(columns) + number)
        for number, field in enumerate(fields)
    ]
    partitions, heads = _number(cells, len(points.owner))
    count = len(heads)
    if count > _MOST_PARTITIONS:
        raise CallError(
            f"partition_by would make more than {_MOST_PARTITIONS:,} partitions: give coarser fields, such as month "
            "in place of day, or fewer buckets"
        )
    rows, sizes = (_sum(points.share(of), partitions, count) for of in (files.record_counts, files.sizes))
    mean = int(files.sizes.sum()) / len(files)
    members = np.clip(np.rint(sizes / max(mean, 1.0)).astype(np.int64), 1, np.maximum(rows, 1))
    of_file = np.repeat(np.arange(count), members)
    found = [(field, one.at(heads)) for field, one in zip(fields, cells, strict=True)]
    pairs = build_ranks(points.owner * count + partitions)[1]
    bounds = _bound_columns(files, pairs // count, pairs % count, found, field_ids)
    changed = FileSet(
        manifests=_one_manifest(files, len(of_file)),
        manifest_index=np.zeros(len(of_file), np.int64),
        spec_ids=np.full(len(of_file), _SPEC_ID),
        record_counts=split_evenly(rows, members),
        sizes=split_evenly(sizes, members),
        sequence_numbers=np.zeros(len(of_file), np.int64),
        partition_fields=tuple(fields),
        partition_metrics={f.field_id: _build_metrics(cell, f, schema).take(of_file) for f, cell in found},
        column_metrics={field_id: metrics.take(of_file) for field_id, metrics in bounds.items()},
    )
    return PartitionChange(changed, count, tuple(_find_caveats(points, fields, cells, schema)))


def _bound_columns(
    files: FileSet,
    owner: Longs,
    partitions: Longs,
    found: Sequence[tuple[PartitionField, _Cells]],
    field_ids: Collection[int],
) -> dict[int, ColumnMetrics]:
    """Return the metrics of columns, a row a partition: those of the files whose rows it has, as far as it reaches."""
    bounds = {}
    for field_id in field_ids:
        if field_id in files.column_metrics:
            metrics = files.column_metrics[field_id].take(owner).roll_up(partitions, int(partitions.max()) + 1)
            for field, cell in found:
                metrics = _narrow(metrics, field, cell) if field.source_id == field_id else metrics
            bounds[field_id] = metrics
    return bounds


def _find_caveats(
    points: RowPoints, fields: Sequence[PartitionField], cells: Sequence[_Cells], schema: Schema
) -> Iterator[str]:
    for field, cell in zip(fields, cells, strict=True):
        column = schema.get(field.source_id)
        name = field.name if column is None else column.name
        unbounded = len(np.unique(points.owner[cell.state == UNKNOWN]))
        if unbounded:
            yield f"every filter reads the rows of {counted(unbounded, 'file')} without bounds of {name}"
        if not cell.is_exact:
            yield (
                f"what lies between two neighbouring bounds of {name} counts as one partition: there may be many more "
                "partitions and files, and more may be gained"
            )


def project_to(filters: Sequence[RowFilter], fields: Sequence[PartitionField]) -> list[RowFilter]:
    """Return filters that are projected to the new spec as well as to those that the table has."""
    parts = [IcebergField(f.source_id, f.field_id, parse_transform(f.transform), f.name) for f in fields]
    spec = IcebergSpec(*parts, spec_id=_SPEC_ID)
    return [
        replace(one, bound_to=replace(one.bound_to, specs={**one.bound_to.specs, _SPEC_ID: spec})) for one in filters
    ]


def _select(files: FileSet, rows: Longs) -> FileSet:
    return replace(
        files,
        manifest_index=files.manifest_index[rows],
        spec_ids=files.spec_ids[rows],
        record_counts=files.record_counts[rows],
        sizes=files.sizes[rows],
        sequence_numbers=files.sequence_numbers[rows],
        partition_metrics={field_id: found.take(rows) for field_id, found in files.partition_metrics.items()},
        column_metrics={field_id: found.take(rows) for field_id, found in files.column_metrics.items()},
    )


def _sum(parts: Longs, groups: Longs, count: int) -> Longs:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, parts)
    return sums


@dataclass(frozen=True, slots=True)
class _Cells:
    """The value of a partition field, a row a point or a partition."""

    codes: Longs
    state: Longs
    bounds: Keys | None
    """What codes are places of, two a bound as in `ColumnPoints`; None where they are the values themselves."""

    @property
    def is_exact(self) -> bool:
        """Whether each is one value."""
        return self.bounds is None or not bool((self.codes[self.state == KNOWN] % 2).any())

    def at(self, rows: Longs) -> _Cells:
        return replace(self, codes=self.codes[rows], state=self.state[rows])


def _build_cells(
    files: FileSet, points: RowPoints, field: PartitionField, column: ColumnPoints, dimension: int
) -> _Cells:
    word, number = split_transform(field.transform)
    state, bounds = column.state, None
    if word == "bucket":
        codes = np.floor(points.spread(dimension) * number).astype(np.int64)
        hashed = _hash_single_values(column, field)
        codes = np.where(hashed[points.owner] < 0, codes, hashed[points.owner])
    elif column.is_whole:
        codes = _transform_whole(column.values, column.metrics.type, word, number)
    else:
        codes, bounds = column.values, column.bounds
        if word == "truncate" and bounds is not None:
            codes, bounds = _truncate_bounds(codes, bounds, column.metrics.type, number)
    for now in files.partition_fields if bounds is None else ():
        if now.source_id == field.source_id and _says(now.transform, field.transform):
            there = files.partition_metrics[now.field_id].lower
            known, values = there.known[points.owner], there.values[points.owner]
            codes = np.where(known, values % number if word == "bucket" else values, codes)
            state = np.where(known, KNOWN, state)
    return _Cells(codes, state, bounds)


def _says(now: str, then: str) -> bool:
    """Return whether the value of one transform gives that of another: the same, or a bucket of a multiple of buckets.

    Examples
    --------
    >>> _says("bucket[64]", "bucket[16]"), _says("bucket[16]", "bucket[64]"), _says("day", "day")
    (True, False, True)
    """
    (word, count), (then_word, then_count) = split_transform(now), split_transform(then)
    return now == then or (word == then_word == "bucket" and count > 0 and count % then_count == 0)


def _hash_single_values(column: ColumnPoints, field: PartitionField) -> Longs:
    """Return the bucket of each file whose values are all one, -1 for others."""
    metrics, rows = column.metrics, np.flatnonzero(column.is_single)
    kind = NestedField(1, "column", field_type=metrics.type).field_type
    find = parse_transform(field.transform).transform(kind)
    values = metrics.lower_bytes.take(pa.array(rows)).dictionary_encode()
    buckets = np.array([_hash(find, metrics.type, value) for value in values.dictionary.to_pylist()], np.int64)
    found = np.full(len(column.is_single), -1)
    found[rows] = buckets[to_numpy(values.indices)]
    return found


def _hash(find: Callable[[Any], Any], type_text: str, value: bytes) -> int:
    try:
        return int(find(decode_value(type_text, value)))
    except ValueError:
        return -1


def _transform_whole(values: Longs, type_text: str, word: str, width: int) -> Longs:
    if word == "identity":
        return values
    if word == "truncate":
        return values - np.mod(values, width)
    a_day = UNITS_A_DAY[type_text]
    if word in ("day", "hour"):
        return values // (a_day if word == "day" else a_day // 24)
    return (values // a_day).astype("M8[D]").astype("M8[M]" if word == "month" else "M8[Y]").astype(np.int64)


def _find_limits(codes: Longs, type_text: str, word: str, width: int) -> tuple[Longs, Longs]:
    """Return the first and the last value that `_transform_whole` gives each code for."""
    if word in ("identity", "truncate"):
        last = codes + max(width - 1, 0)
        return codes, np.where(last < codes, np.iinfo(np.int64).max, last)
    a_day = UNITS_A_DAY[type_text]
    unit = a_day // 24 if word == "hour" else a_day
    ends: tuple[Longs, ...] = (codes, codes + 1)
    if word in ("month", "year"):
        ends = tuple(end.astype(f"M8[{word[0].upper()}]").astype("M8[D]").astype(np.int64) for end in ends)
    most = np.iinfo(np.int64).max // unit
    first, after = (np.clip(end, -most, most) * unit for end in ends)
    return first, after - 1


def _truncate_bounds(codes: Longs, bounds: Keys, type_text: str, width: int) -> tuple[Longs, Keys]:
    """Return codes of truncated text, bytes or long decimals, and what they are places of."""
    cut = _CUTS.get(parse_type(type_text).name, _cut_bytes)
    numbers, short = place_keys(
        replace(bounds, values=pa.array([cut(b or b"", width) for b in bounds.values.to_pylist()]))
    )
    # Neighbours are cut to the same, or to neighbours.
    return numbers[codes // 2] + numbers[(codes + 1) // 2], short


def _cut_bytes(value: bytes, width: int) -> bytes:
    return value[:width]


def _cut_text(value: bytes, width: int) -> bytes:
    return value.decode("utf-8", "surrogateescape")[:width].encode("utf-8", "surrogateescape")


def _cut_decimal(key: bytes, width: int) -> bytes:
    # Keys of long decimals are 16 bytes, the sign's bit turned over.
    number = int.from_bytes(key or bytes(16), "big") - (1 << 127)
    return bytes(max(number - number % width + (1 << 127), 0).to_bytes(16, "big"))


_CUTS = {"string": _cut_text, "decimal": _cut_decimal}


def _number(cells: Sequence[_Cells], count: int) -> tuple[Longs, Longs]:
    """Return the number of each point's partition, and of each partition a point."""
    numbers = np.zeros(count, np.int64)
    for one in cells:
        known = one.state == KNOWN
        places, distinct = build_ranks(one.codes[known])
        states = one.state.copy()
        states[known] = places + 3
        numbers = build_ranks(numbers * (len(distinct) + 3) + states)[0]
    heads = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    heads[numbers] = np.arange(count)
    return numbers, heads


def _build_metrics(cell: _Cells, field: PartitionField, schema: Schema) -> ColumnMetrics:
    """Return the metrics of a partition field, a row a partition."""
    type_text = partition_field_type(field, schema) or "unknown"
    known, is_null = cell.state == KNOWN, cell.state == NULL
    lower = upper = Keys(cell.codes, known)
    if cell.bounds is not None:
        lower, upper = (
            Keys(cell.bounds.take(places).values, known) for places in (cell.codes // 2, (cell.codes + 1) // 2)
        )
    count, nothing = len(known), pa.nulls(len(known), pa.binary())
    return ColumnMetrics(
        type=type_text,
        value_counts=np.ones(count, np.int64),
        null_counts=np.where(is_null, 1, np.where(known, 0, MISSING)),
        nan_counts=np.full(count, MISSING if type_text in ("float", "double") else 0),
        lower=lower,
        upper=upper,
        lower_bytes=nothing,
        upper_bytes=nothing,
        valueless=is_null,
        is_exact=cell.is_exact,
    )


def _narrow(metrics: ColumnMetrics, field: PartitionField, cell: _Cells) -> ColumnMetrics:
    """Return the metrics of a source column, a row a partition, with what the partition field says of it."""
    known, is_null = cell.state == KNOWN, cell.state == NULL
    word, number = split_transform(field.transform)
    lower, upper = metrics.lower, metrics.upper
    if cell.bounds is None and word != "bucket":
        first, last = _find_limits(cell.codes, metrics.type, word, number)
        lower = Keys(np.where(known, np.maximum(lower.values, first), lower.values), lower.known)
        upper = Keys(np.where(known, np.minimum(upper.values, last), upper.values), upper.known)
    return replace(
        metrics,
        value_counts=np.where(is_null, 1, metrics.value_counts),
        null_counts=np.where(is_null, 1, np.where(known, 0, metrics.null_counts)),
        nan_counts=np.where(is_null, 0, metrics.nan_counts),
        lower=lower,
        upper=upper,
        valueless=metrics.valueless | is_null,
    )


def _one_manifest(files: FileSet, count: int) -> pa.Table:
    length = int(to_numpy(files.manifests["manifest_length"]).sum()) * count // len(files)
    return pa.table({"manifest_length": pa.array([length]), "partition_spec_id": pa.array([_SPEC_ID], pa.int32())})
