"""The statistics of a table as one scan finds them, how those of two sets of rows merge, and the JSON that is stored.

The payload of an `icestats-column-stats-v1` blob:

    {"columns": [{"field-id": 3, "type": "long", "value-count": 10, "null-value-count": 1, "nan-value-count": 0,
                  "lower-bound": "<hex>", "upper-bound": "<hex>", "avg-length": 5.5, "max-length": 9}, ...]}

Bounds are the smallest and the largest value of the live rows, single-value serialised (Iceberg spec, Appendix D). A
figure that does not apply is left out. Source: "Extending standardized statistics in Iceberg", part 5, "Table-level
column stats".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.text import one_line
from icestats.errors import ColumnNotFoundError
from icestats.iceberg.types import WIDTHS, decode_value, encode_value
from icestats.iceberg.value_order import find_extreme
from icestats.stats.frequent_items import MOST_PAYLOAD_BYTES, find_size_limit, merge_frequent_items, parse_payload
from icestats.stats.joint_statistics import JointStatistics
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch

_Found = TypeVar("_Found")
_MOST_MEMBERS = 1 << 22
"""Of a payload; a column has 10."""

DEFAULT_K = 200
DEFAULT_LG_K = 12
"""The sizes of KLL and Theta sketches."""
_MOST_LG_K = 26
_MOST_STATED_LG_K = 16
"""A sketch that takes half a megabyte. A few bytes are not to ask for more."""


@dataclass(frozen=True, slots=True, order=True)
class PartitionKey:
    """A partition of one spec."""

    spec_id: int
    values: tuple[tuple[int, bytes | None], ...]
    """The id and value of each partition field of the spec: single-value bytes (spec, Appendix D), None for null."""

    def widen(self, types: Mapping[int, str]) -> PartitionKey:
        """Return the key with values as wide as partition fields have them today, whose types are given by id."""

        def widen(field_id: int, value: bytes | None) -> bytes | None:
            type_text = types.get(field_id, "")
            _, *narrower = WIDTHS.get(type_text, (0,))
            if value is None or len(value) not in narrower:
                return value
            return encode_value(type_text, decode_value(type_text, value))

        return replace(self, values=tuple((field_id, widen(field_id, value)) for field_id, value in self.values))


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What a scan found in one column. All figures are exact, except those of the sketches."""

    field_id: int
    type: str
    """The Iceberg type."""
    value_count: int
    """All rows: values, nulls and NaN, as Iceberg counts them."""
    null_value_count: int
    nan_value_count: int
    """0 for types without NaN."""
    min_value: bytes | None
    """Single-value bytes (spec, Appendix D), never truncated. NaN is left out, -0.0 is below 0.0. None: no value."""
    max_value: bytes | None
    avg_length: float | None
    """Mean bytes (UTF-8 for strings) of non-null values; None without values, and for all types but string and
    binary."""
    max_length: int | None
    """Bytes of the longest value; None when `avg_length` is."""
    theta: bytes = b""
    """Theta sketch of the non-null values, for `ThetaSketch.from_bytes`; nothing where sketches are left out."""
    kll: bytes | None = None
    """KLL sketch of the values that are neither null nor NaN, for `KllSketch.from_bytes`. None for types whose order
    has no meaning (uuid, fixed, binary)."""
    item_type: str | None = None
    """How the KLL sketch stores its items: `kll_items.item_type_of`."""
    frequent_items: bytes = b""
    """The most common values, for `frequent_items.read_frequent_values`; nothing where sketches are left out."""
    lg_k: int | None = None
    """The size that the Theta sketch was made with, which its bytes do not tell. None: not known, or there is none."""

    @property
    def filled_count(self) -> int:
        """The number of values that are neither null nor NaN."""
        return self.value_count - self.null_value_count - self.nan_value_count

    def without_sketches(self) -> ColumnStatistics:
        """Return the counts and extremes alone."""
        return replace(self, theta=b"", kll=None, frequent_items=b"", lg_k=None)

    def count_distinct(self, theta: ThetaSketch) -> int:
        """Return the number of distinct values that the Theta sketch, parsed, estimates: no more than are not null."""
        return min(theta.ndv, self.value_count - self.null_value_count)


@dataclass(frozen=True)
class ScannedPartitions:
    """The statistics of each partition, and the sizes of their sketches."""

    columns: Mapping[str, Mapping[PartitionKey, ColumnStatistics]]
    """By column name, then by partition: ordered by spec, then by value, nulls first. What was left out to save space
    has no sketches."""
    sizes: Mapping[str, tuple[int, int]]
    """By column name: k of its KLL sketches, lg_k of its Theta sketches."""
    left_out: str = ""
    """In words which sketches have been left out, and what they need; nothing if none."""
    max_size_bytes: Mapping[str, int] = field(default_factory=dict)
    """By column name: the `max_size_bytes` that was asked for; without those of which none was."""

    @property
    def k(self) -> int | None:
        """The smallest k of a column that has KLL sketches; None where none has."""
        ranked = (name for name, found in self.columns.items() if any(one.kll for one in found.values()))
        return min((self.sizes[name][0] for name in ranked), default=None)

    @property
    def lg_k(self) -> int:
        """The smallest lg_k of a column."""
        return min((lg_k for _, lg_k in self.sizes.values()), default=DEFAULT_LG_K)


@dataclass(frozen=True)
class TableStatistics:
    """What one scan of a snapshot found, over live rows: deletes are applied."""

    snapshot_id: int
    sequence_number: int
    row_count: int | None
    """Live rows that were read; None if no column was read."""
    file_count: int
    """Data files that were read."""
    duration_ms: int
    columns: Mapping[str, ColumnStatistics]
    """By column name."""
    skipped: Mapping[str, str]
    """Columns without sketches, and the reason for each."""
    table_size_bytes: int | None = None
    """Bytes of the snapshot's data files; None where they are not known."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the table for the figures."""
    scanned_by: str = "PyIceberg"
    """What read the rows on the executors: PyIceberg, or Spark itself."""
    scan_reason: str | None = None
    """Why PyIceberg, which is faster, did not read them; None if it did."""
    by_partition: ScannedPartitions | None = None
    """None if statistics by partition were not asked for."""
    together: tuple[JointStatistics, ...] = ()
    """Of the pairs of columns that were asked for."""

    def find(self, column: str) -> ColumnStatistics:
        """Return the statistics of one column.

        Raises
        ------
        ColumnNotFoundError
            The scan did not read that column.
        """
        if not isinstance(column, str) or column not in self.columns:
            raise ColumnNotFoundError(column, tuple(self.columns))
        return self.columns[column]


def merge_column_statistics(
    base: ColumnStatistics, added: ColumnStatistics, *, lg_k: int, items_size_bytes: int = MOST_PAYLOAD_BYTES
) -> ColumnStatistics:
    """Merge the statistics of two sets of rows. No row may be in both.

    Parameters
    ----------
    base : ColumnStatistics
        The statistics of the earlier rows.
    added : ColumnStatistics
        The statistics of the rows added since, for the same field and type, with the same k.
    lg_k : int
        The size of the merged Theta sketch: it keeps 2^lg_k hashes.
    items_size_bytes : int
        What the merged common values may take, before they are compressed.

    Returns
    -------
    ColumnStatistics
        Counts, the smallest, largest and longest value are exact. The average length is exact if all lengths together
        are below 2^53 bytes. The sketches are within their own error. Where the sketches of either were left out, with
        counts only.

    Raises
    ------
    ValueError
        The two cannot be merged.
    """
    if not (base.theta and added.theta):
        base, added = _without_values(base), _without_values(added)
    if (base.field_id, base.type, base.item_type) != (added.field_id, added.type, added.item_type):
        raise ValueError(f"statistics of field {added.field_id} ({added.type}) and of {base.field_id} ({base.type})")
    theta = _merge_theta(base.theta, added.theta, lg_k)
    return ColumnStatistics(
        field_id=base.field_id,
        type=base.type,
        value_count=base.value_count + added.value_count,
        null_value_count=base.null_value_count + added.null_value_count,
        nan_value_count=base.nan_value_count + added.nan_value_count,
        min_value=_extreme(base.type, base.min_value, added.min_value, highest=False),
        max_value=_extreme(base.type, base.max_value, added.max_value, highest=True),
        avg_length=_average_length(base, added),
        max_length=max((n for n in (base.max_length, added.max_length) if n is not None), default=None),
        theta=theta,
        kll=_merge_kll(base, added),
        item_type=base.item_type,
        frequent_items=_merge_items(base.frequent_items, added.frequent_items, items_size_bytes, theta),
        lg_k=lg_k if theta else None,
    )


def merge_partitions(
    base: Mapping[PartitionKey, ColumnStatistics], added: Mapping[PartitionKey, ColumnStatistics], *, k: int, lg_k: int
) -> dict[PartitionKey, ColumnStatistics]:
    """Merge the statistics of a column in each partition, as `merge_column_statistics` does, and sort them."""
    merged, items = dict(base), find_size_limit(k)
    for key, new in added.items():
        old = merged.get(key)
        merged[key] = new if old is None else merge_column_statistics(old, new, lg_k=lg_k, items_size_bytes=items)
    return sort_partitions(merged)


def sort_partitions(found: Mapping[PartitionKey, _Found]) -> dict[PartitionKey, _Found]:
    """Return partitions by spec and values, nulls first, in whatever order they were found."""

    def rank(item: tuple[PartitionKey, _Found]) -> tuple[int, list[tuple[bool, bytes]]]:
        return item[0].spec_id, [(value is not None, value or b"") for _, value in item[0].values]

    return dict(sorted(found.items(), key=rank))


def count_distinct(column: ColumnStatistics) -> int:
    """Return the number of distinct values of a column, by its Theta sketch."""
    return column.count_distinct(ThetaSketch.from_bytes(column.theta))


def find_kll_k(column: ColumnStatistics) -> int | None:
    """Return the k of a column's KLL sketch; None if it has no KLL sketch."""
    if column.kll is None or column.item_type is None:
        return None
    return KllSketch.from_bytes(column.item_type, column.kll).k


def find_theta_lg_k(theta: bytes, stated: int | None = None) -> int:
    """Return the lg_k that a Theta sketch of more rows needs to be as good as this one: 12 to 26.

    A compact Theta sketch does not store its lg_k. If it is not exact, it holds about 2^lg_k hashes. If it is, up to 16
    are believed of what is stated beside it.
    """
    sketch = ThetaSketch.from_bytes(theta)
    size = math.log2(max(1, len(sketch.hashes)))
    needed = max(math.ceil(size), min(stated or 0, _MOST_STATED_LG_K)) if sketch.is_exact else round(size)
    return min(max(DEFAULT_LG_K, needed), _MOST_LG_K)


def write_column_statistics(columns: Iterable[ColumnStatistics]) -> bytes:
    """Return the payload of an `icestats-column-stats-v1` blob."""
    documents = [
        {"field-id": column.field_id, "type": column.type}
        | figures_document(column, {"avg-length": column.avg_length, "max-length": column.max_length})
        for column in columns
    ]
    return json.dumps({"columns": documents}, separators=(",", ":")).encode()


def read_column_statistics(payload: bytes) -> dict[int, ColumnStatistics]:
    """Return the columns of a payload by field id, without sketches.

    Raises
    ------
    ValueError
        The payload is not one that `write_column_statistics` makes.
    """
    try:
        documents = parse_payload(payload, _MOST_MEMBERS)["columns"]
        return {int(document["field-id"]): _parse_figures(document) for document in documents}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not column statistics: {one_line(error)}") from error


def _parse_figures(document: Mapping[str, Any]) -> ColumnStatistics:
    type_text = str(document["type"])
    low, high = (document.get(f"{side}-bound") for side in ("lower", "upper"))
    average, longest = document.get("avg-length"), document.get("max-length")
    found = ColumnStatistics(
        field_id=int(document["field-id"]),
        type=type_text,
        value_count=int(document["value-count"]),
        null_value_count=int(document["null-value-count"]),
        nan_value_count=int(document["nan-value-count"]),
        min_value=None if low is None else bytes.fromhex(low),
        max_value=None if high is None else bytes.fromhex(high),
        avg_length=None if average is None else float(average),
        max_length=None if longest is None else int(longest),
    )
    if min(found.null_value_count, found.nan_value_count) < 0 or not (
        found.null_value_count + found.nan_value_count <= found.value_count < 1 << 63
    ):
        raise ValueError(f"{found.null_value_count} nulls, {found.nan_value_count} NaN of {found.value_count} values")
    if not (0 <= (found.avg_length or 0) < 1 << 63 and 0 <= (found.max_length or 0) < 1 << 63):
        raise ValueError(f"lengths of {found.avg_length} and {found.max_length} bytes")
    for bound in (found.min_value, found.max_value):
        if bound is not None:
            decode_value(type_text, bound)
    return found


def _without_values(column: ColumnStatistics) -> ColumnStatistics:
    bare = column.without_sketches()
    return replace(bare, min_value=None, max_value=None, avg_length=None, max_length=None)


def _merge_theta(base: bytes, added: bytes, lg_k: int) -> bytes:
    if not base:
        return b""
    merged = ThetaSketch(lg_k)
    for data in (base, added):
        merged.merge(ThetaSketch.from_bytes(data))
    return merged.to_bytes()


def _merge_items(base: bytes, added: bytes, size_bytes: int, theta: bytes) -> bytes:
    if not base or not added:
        return b""
    return merge_frequent_items(base, added, size_bytes, ndv=ThetaSketch.from_bytes(theta).ndv if theta else 0.0)


def _merge_kll(base: ColumnStatistics, added: ColumnStatistics) -> bytes | None:
    if base.kll is None or added.kll is None or base.item_type is None:
        return None
    merged, addition = (KllSketch.from_bytes(base.item_type, kll) for kll in (base.kll, added.kll))
    if merged.k != addition.k:
        raise ValueError(f"KLL sketches of field {base.field_id} of k {merged.k} and {addition.k}")
    merged.merge(addition)
    return merged.to_bytes()


def _average_length(base: ColumnStatistics, added: ColumnStatistics) -> float | None:
    total = filled = 0
    for column in (base, added):
        if column.avg_length is not None:
            values = column.value_count - column.null_value_count
            total += round(column.avg_length * values)
            filled += values
    return total / filled if filled else None


def _extreme(type_text: str, first: bytes | None, second: bytes | None, *, highest: bool) -> bytes | None:
    return find_extreme(pa.array([first, second], pa.binary()), type_text, highest=highest)


def figures_document(column: ColumnStatistics, lengths: Mapping[str, int | float | None]) -> dict[str, Any]:
    """Return the counts, bounds and lengths of a column as a JSON object, without those that do not apply."""
    document = {
        "value-count": column.value_count,
        "null-value-count": column.null_value_count,
        "nan-value-count": column.nan_value_count,
        "lower-bound": None if column.min_value is None else column.min_value.hex(),
        "upper-bound": None if column.max_value is None else column.max_value.hex(),
        **lengths,
    }
    return {name: value for name, value in document.items() if value is not None}


Refute = Callable[[int, Mapping[str, Any]], str]
"""Takes a column's id and figures, and says what data files refute of them; nothing: they are possible."""


def find_refuted_values(refute: Refute, field_id: int, columns: Collection[ColumnStatistics]) -> str:
    """Return what data files refute of a column's statistics, of all live rows or of each partition."""
    counts = ("value_count", "null_value_count", "nan_value_count")
    figures = [{count: sum(getattr(one, count) for one in columns) for count in counts}]
    figures += [{"lower_bound": one.min_value, "upper_bound": one.max_value} for one in columns if one.theta]
    return next((refuted for one in figures if (refuted := refute(field_id, one))), "")
