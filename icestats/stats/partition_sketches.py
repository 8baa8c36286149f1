"""The payload of an `icestats-partition-sketches-v1` blob: the sketches of one column, by partition.

    byte 0-3    magic: IPS1
    byte 4-7    length of the index in bytes, as stored
    byte 8-     the index: a zstd frame of JSON
    then        the sketches: for each partition that has any, the zstd frame of its Theta sketch, directly followed by
                the zstd frame of its KLL sketch, and that of its common values (`frequent_items`)

    {"field-id": 3, "type": "double", "item-type": "double", "k": 200, "lg-k": 12, "partitions": [
        {"spec-id": 0, "partition": {"1000": "<hex>", "1001": null}, "value-count": 10, "null-value-count": 1,
         "nan-value-count": 0, "lower-bound": "<hex>", "upper-bound": "<hex>", "max-length": 9, "total-length": 80,
         "ndv": 7000, "ndv-error": 0.0319, "offset": 0, "theta-length": 812, "kll-length": 640,
         "items-length": 310}, ...]}

`partition` has the values by partition field id, single-value serialised (Iceberg spec, Appendix D) in the current type
of the transform's result. A null value is null; a field that is not in the partition's spec is left out. Bounds are the
smallest and the largest value of the live rows. `ndv` is the estimate of the Theta sketch, and counts an empty string
too; `ndv-error` is its relative error at 95 % confidence, left out where it is 0. `offset` is counted from the end of
the index. A column without KLL sketches has no `item-type` and no `kll-length`. Common values may be left out to save
space: then there is no `items-length`. A partition whose sketches are left out has its counts only. All integers
outside the frames are little endian; each frame has a checksum.

The blob as a whole is not compressed, so that a reader can read the index and then the sketches of a few partitions,
however many others there are. Source: "Extending standardized statistics in Iceberg", part 4, "Partition-level NDV
sketches".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import zstandard

from icestats.answers.text import counted, one_line, render_bytes
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, expanded_limit
from icestats.iceberg.types import find_width, has_lengths, parse_type
from icestats.stats.frequent_items import (
    FrequentValues,
    estimate_stored_size,
    find_size_limit,
    parse_payload,
    read_frequent_values,
)
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of
from icestats.stats.kll_layout import total_capacity
from icestats.stats.table_statistics import ColumnStatistics, PartitionKey, figures_document
from icestats.stats.theta import ThetaSketch

_MOST_MEMBERS = 1 << 24
"""Of an index; a partition has 20."""
_MOST_SKETCH_BYTES = 1 << 30

MAGIC: Final = b"IPS1"
HEAD_SIZE_BYTES: Final = 8
MAX_SIZE_BYTES: Final = "max-size-bytes"
"""Property of a blob: the limit that was asked for, of all sketches that were made with these. Without it, none was."""


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """The entry of a partition in the index."""

    key: PartitionKey
    figures: ColumnStatistics
    """Counts, bounds and lengths, without sketches: exact, over live rows."""
    offset: int
    """Where its sketches begin, in bytes from the end of the index."""
    theta_length: int
    """Stored bytes, like `kll_length`."""
    kll_length: int
    ndv: int | None = None
    """The number of distinct values; None where the partition has no sketches."""
    ndv_relative_error: float = 0.0
    """At 95 % confidence, as a share; 0: exact but for hash collisions."""
    items_length: int = 0
    """Stored bytes of its common values; 0: they have not been kept."""

    @property
    def has_sketches(self) -> bool:
        """Whether its sketches have been kept."""
        return self.theta_length > 0

    @property
    def end(self) -> int:
        """Where its sketches end, in bytes from the end of the index."""
        return self.offset + self.theta_length + self.kll_length + self.items_length


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The index of a blob."""

    field_id: int
    type: str
    """The Iceberg type of the column."""
    item_type: str | None
    """How the KLL sketches store their items; None if the column has no KLL sketches."""
    k: int
    lg_k: int
    partitions: tuple[PartitionEntry, ...]


def write_partition_sketches(partitions: Mapping[PartitionKey, ColumnStatistics], *, k: int, lg_k: int) -> bytes:
    """Return the payload for one column.

    Parameters
    ----------
    partitions : mapping of PartitionKey to ColumnStatistics
        The statistics of the column in each partition; at least one. Without Theta bytes its sketches are left out.
    k, lg_k : int
        The sizes of the KLL and Theta sketches.
    """
    column = next(iter(partitions.values()))
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    body = bytearray()
    documents = []
    for key, found in partitions.items():
        if not found.theta:
            counts = replace(found, min_value=None, max_value=None)
            documents.append(_key_document(key) | figures_document(counts, {}))
            continue
        theta = compressor.compress(found.theta)
        kll = b"" if found.kll is None else compressor.compress(found.kll)
        items = compressor.compress(found.frequent_items) if found.frequent_items else b""
        sizes = {"offset": len(body), "theta-length": len(theta)} | ({"kll-length": len(kll)} if kll else {})
        documents.append(_document(key, found) | sizes | ({"items-length": len(items)} if items else {}))
        body += theta + kll + items
    index: dict[str, Any] = {"field-id": column.field_id, "type": column.type}
    index |= {} if column.item_type is None else {"item-type": column.item_type}
    index |= {"k": k, "lg-k": lg_k, "partitions": documents}
    stored = compressor.compress(json.dumps(index, separators=(",", ":")).encode())
    return MAGIC + len(stored).to_bytes(4, "little") + stored + bytes(body)


def parse_index_size(head: bytes) -> int:
    """Return the stored length of the index, from the first `HEAD_SIZE_BYTES` of a payload.

    Raises
    ------
    ValueError
        The bytes are not the beginning of partition sketches.
    """
    if len(head) < HEAD_SIZE_BYTES or head[:4] != MAGIC:
        raise ValueError(f"other first bytes, expected {MAGIC!r}: not partition sketches")
    return int.from_bytes(head[4:HEAD_SIZE_BYTES], "little")


def parse_index(stored: bytes, body_size: int) -> PartitionIndex:
    """Return the index of a payload.

    Parameters
    ----------
    stored : bytes
        The stored bytes of the index.
    body_size : int
        The bytes of the blob after the index: all sketches must lie within them.

    Raises
    ------
    ValueError
        The index is damaged.
    """
    try:
        document = parse_payload(_decompress(stored, MAX_FILE_SIZE_BYTES), _MOST_MEMBERS)
        field_id, type_text, item_type = int(document["field-id"]), str(document["type"]), document.get("item-type")
        item_type = None if item_type is None else str(item_type)
        entries = tuple(_entry(field_id, type_text, item_type, one) for one in document["partitions"])
        index = PartitionIndex(field_id, type_text, item_type, int(document["k"]), int(document["lg-k"]), entries)
        # These reject sizes and item types that no sketch has.
        ThetaSketch(index.lg_k)
        if index.item_type is not None:
            KllSketch(index.item_type, index.k)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"the index of partition sketches is damaged: {one_line(error)}") from error
    for entry in entries:
        if min(entry.offset, entry.theta_length, entry.kll_length, entry.items_length) < 0 or entry.end > body_size:
            raise ValueError(f"the sketches of a partition end at {entry.end}, those of the blob at {body_size}")
        found = entry.figures
        counts = (found.value_count, found.null_value_count, found.nan_value_count, entry.ndv)
        if not all(0 <= (count or 0) < 1 << 63 for count in (*counts, found.avg_length, found.max_length)):
            raise ValueError(f"a count or a length of a partition is impossible: {counts}")
        if not 0.0 <= entry.ndv_relative_error < math.inf:
            raise ValueError(f"the error of an NDV is {entry.ndv_relative_error}")
    if (size := sum(entry.end - entry.offset for entry in entries)) > body_size:
        # Each is read on its own: a few bytes would be read as often as partitions name them.
        raise ValueError(f"the sketches of partitions have {size:,} bytes, more than the {body_size:,} of the blob")
    return index


def split_sketches(entry: PartitionEntry, stored: bytes) -> tuple[bytes, bytes | None]:
    """Return the bytes of a partition's Theta sketch and KLL sketch, from the stored bytes that its entry points to.

    Raises
    ------
    ValueError
        A frame is damaged.
    """
    theta, kll = stored[: entry.theta_length], stored[entry.theta_length :][: entry.kll_length]
    return _decompress(theta), _decompress(kll) if entry.kll_length else None


def split_items(
    index: PartitionIndex, entry: PartitionEntry, stored: bytes
) -> tuple[bytes, FrequentValues] | tuple[bytes, None]:
    """Return a partition's common values, from the stored bytes that its entry points to.

    Returns
    -------
    tuple of bytes and FrequentValues
        The payload, and what it holds; nothing and None where they have not been kept.

    Raises
    ------
    ValueError
        They are damaged, or of other rows or another type than the entry says.
    """
    if not entry.items_length:
        return b"", None
    payload = _decompress(stored[entry.theta_length + entry.kll_length :], MAX_FILE_SIZE_BYTES)
    found = read_frequent_values(payload)
    figures = entry.figures
    expected = figures.filled_count
    if (found.type, found.value_count) != (index.type, expected):
        raise ValueError(f"common values of {found.value_count} {found.type}, expected {expected} {index.type}")
    return payload, found


def expanded_size(entry: PartitionEntry, stored: bytes) -> int:
    """Return how many bytes a partition's sketches and common values say that they expand to; 0 of what is damaged."""
    size = start = 0
    for length in (entry.theta_length, entry.kll_length, entry.items_length):
        with suppress(zstandard.ZstdError):
            size += max(0, zstandard.frame_content_size(stored[start : start + length])) if length else 0
        start += length
    return size


def _decompress(frame: bytes, most: int = _MOST_SKETCH_BYTES) -> bytes:
    limit = min(expanded_limit(len(frame)), most)
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= limit:
            raise ValueError(f"a frame of {size} bytes, expected {limit} at most")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ValueError(f"a zstd frame is damaged: {error}") from error


def _key_document(key: PartitionKey) -> dict[str, Any]:
    values = {str(field_id): None if value is None else value.hex() for field_id, value in key.values}
    return {"partition": values, "spec-id": key.spec_id}


def _document(key: PartitionKey, found: ColumnStatistics) -> dict[str, Any]:
    filled = found.value_count - found.null_value_count
    total = None if found.avg_length is None else round(found.avg_length * filled)
    # Iceberg's Theta leaves out the empty string, which is the smallest value where there is one.
    theta = ThetaSketch.from_bytes(found.theta)
    ndv = min(int(theta.estimate()) + (found.min_value == b""), filled)
    error = round(theta.relative_error + 0.00005, 4) if theta.relative_error else None
    lengths = {"total-length": total, "max-length": found.max_length}
    return _key_document(key) | figures_document(found, {**lengths, "ndv": ndv, "ndv-error": error})


def _entry(field_id: int, type_text: str, item_type: str | None, document: Mapping[str, Any]) -> PartitionEntry:
    values = ((int(field_id), _bytes(value)) for field_id, value in document["partition"].items())
    total, longest, ndv = (document.get(name) for name in ("total-length", "max-length", "ndv"))
    value_count, null_count = int(document["value-count"]), int(document["null-value-count"])
    return PartitionEntry(
        key=PartitionKey(int(document["spec-id"]), tuple(values)),
        figures=ColumnStatistics(
            field_id=field_id,
            type=type_text,
            value_count=value_count,
            null_value_count=null_count,
            nan_value_count=int(document["nan-value-count"]),
            min_value=_bytes(document.get("lower-bound")),
            max_value=_bytes(document.get("upper-bound")),
            avg_length=int(total) / (value_count - null_count)
            if total is not None and value_count > null_count
            else None,
            max_length=None if longest is None else int(longest),
            item_type=item_type,
        ),
        ndv=None if ndv is None else int(ndv),
        ndv_relative_error=float(document.get("ndv-error", 0.0)),
        offset=int(document.get("offset", 0)),
        theta_length=int(document.get("theta-length", 0)),
        kll_length=int(document.get("kll-length", 0)),
        items_length=int(document.get("items-length", 0)),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def find_spans(entries: Sequence[PartitionEntry], gap: int) -> Iterable[tuple[int, int, list[PartitionEntry]]]:
    """Yield the byte ranges to read for some partitions: where each begins and ends, and the partitions in it.

    Parameters
    ----------
    entries : sequence of PartitionEntry
        Partitions of one index.
    gap : int
        Up to this many unneeded bytes are read instead of starting a new range.
    """
    span: list[PartitionEntry] = []
    end = 0
    for entry in sorted(entries, key=lambda e: e.offset):
        if span and entry.offset > end + gap:
            yield span[0].offset, end, span
            span = []
        span.append(entry)
        end = max(end, entry.end)
    if span:
        yield span[0].offset, end, span


_SMALLER_SIZES = ((200, 12), (200, 10), (100, 9), (64, 8), (32, 6))
"""The sizes (k of KLL, lg_k of Theta) to take where larger sketches do not fit."""

_LEAST_LIMIT_BYTES = 256 << 10
MOST_GATHERED_BYTES = 256 << 20
"""The driver of a scan holds the sketches of all partitions: by default no more than this."""

_TEXT_BYTES = 32
_DECIMAL_BYTES = 20
_ENTRY_BYTES = 120
_THETA_HEAD_BYTES = 28
_KLL_HEAD_BYTES = 64
"""Bytes of a stored sketch, including a checksum of 4 bytes."""


@dataclass(frozen=True, slots=True)
class SketchSize:
    """The size of the sketches of some columns by partition."""

    partition_count: int
    column_count: int
    size_bytes: int
    """An upper bound, but for texts and binary values, which count as 32 bytes each."""
    k: int
    lg_k: int
    is_bound: bool
    """Whether no value of the columns can be longer than 32 bytes."""

    @property
    def said(self) -> str:
        """The bytes in words: at most, or about so many."""
        size = render_bytes(self.size_bytes)
        return f"up to {size}" if self.is_bound else f"about {size}, a text taken as {_TEXT_BYTES} bytes"

    def __str__(self) -> str:
        return (
            f"sketches of {counted(self.partition_count, 'partition')} x {counted(self.column_count, 'column')} "
            f"(lg_k {self.lg_k}, k {self.k}) will take {self.said}"
        )


def estimate_size(fields: Sequence[Field], row_counts: Iterable[int], *, k: int, lg_k: int) -> SketchSize:
    """Return the size of the sketches of some columns by partition.

    Parameters
    ----------
    fields : sequence of Field
        The columns.
    row_counts : iterable of int
        The rows of each partition, from its data files. A sketch cannot hold more values.
    k, lg_k : int
        The sizes of KLL and Theta sketches.

    Examples
    --------
    >>> field = Field(1, "id", "long", required=False, top_level=True)
    >>> estimate_size([field], [1_000_000] * 100, k=200, lg_k=12).size_bytes // 100
    42444
    """
    counts = list(row_counts)
    types, sizes = Counter(field.type for field in fields), Counter(counts)
    size = sum(
        columns * partitions * _column_bytes(type_text, rows, k, lg_k)
        for type_text, columns in types.items()
        for rows, partitions in sizes.items()
    )
    is_bound = all(map(_has_bound, types))
    return SketchSize(len(counts), len(fields), size, k, lg_k, is_bound)


def choose_size(
    fields: Sequence[Field], row_counts: Sequence[int], limit_bytes: int, *, k: int, lg_k: int
) -> SketchSize:
    """Return the largest sizes of sketches, up to k and lg_k, that fit in a limit; the smallest if none do.

    Parameters
    ----------
    fields, row_counts
        As for `estimate_size`.
    limit_bytes : int
        What they may take.
    k, lg_k : int
        The largest sizes of KLL and Theta sketches to choose.

    Examples
    --------
    >>> field = Field(1, "id", "long", required=False, top_level=True)
    >>> str(choose_size([field], [1_000_000] * 100, 1_000_000, k=1_000, lg_k=12))
    'sketches of 100 partitions x 1 column (lg_k 9, k 100) will take up to 945 kB'
    """
    pairs = [(k, lg_k), *(pair for pair in _SMALLER_SIZES if pair[0] <= k and pair[1] <= lg_k)]
    sizes = [estimate_size(fields, row_counts, k=k, lg_k=lg_k) for k, lg_k in pairs]
    return next((size for size in sizes if size.size_bytes <= limit_bytes), sizes[-1])


def find_default_limit(table_size_bytes: int) -> int:
    """Return how many bytes the sketches of a table and its partitions may take together unless told otherwise.

    That is 1 % of the table's bytes, at least 256 KiB, which any table can spare, and at most 256 MiB.
    """
    return min(max(table_size_bytes // 100, _LEAST_LIMIT_BYTES), MOST_GATHERED_BYTES)


def _has_bound(type_text: str) -> bool:
    return not has_lengths(type_text) and (find_width(type_text) or 0) <= _TEXT_BYTES


def _column_bytes(type_text: str, row_count: int, k: int, lg_k: int) -> int:
    most = 2 if parse_type(type_text).name == "boolean" else row_count
    theta = _THETA_HEAD_BYTES + 8 * min(most, 1 << lg_k)
    item_type = item_type_of(type_text)
    value_bytes = {"string": _TEXT_BYTES, "decimal": _DECIMAL_BYTES}.get(item_type or "string", 8)
    common = estimate_stored_size(most, value_bytes, find_size_limit(k))
    if item_type is None:
        return _ENTRY_BYTES + theta + common
    levels = max(1, (row_count // k).bit_length())
    items = min(row_count, total_capacity(k, levels)) + 2
    item_bytes = value_bytes + 4 * (item_type == "string")
    return _ENTRY_BYTES + theta + _KLL_HEAD_BYTES + 4 * levels + items * item_bytes + common
