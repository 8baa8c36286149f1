"""The payload of an `icestats-partition-sketches-v1` blob: the sketches of one column, by partition.

    byte 0-3    magic: IPS1
    byte 4-7    length of the index in bytes, as stored
    byte 8-     the index: a zstd frame of JSON
    then        the sketches: for each partition that has any, the zstd frame of its Theta sketch, directly followed by
                the zstd frame of its KLL sketch

    {"field-id": 3, "type": "double", "item-type": "double", "k": 200, "lg-k": 12, "partitions": [
        {"spec-id": 0, "partition": {"1000": "<hex>", "1001": null}, "value-count": 10, "null-value-count": 1,
         "nan-value-count": 0, "lower-bound": "<hex>", "upper-bound": "<hex>", "max-length": 9, "total-length": 80,
         "offset": 0, "theta-length": 812, "kll-length": 640}, ...]}

`partition` has the values by partition field id, single-value serialised (Iceberg spec, Appendix D) in the current type
of the transform's result. A null value is null; a field that is not in the partition's spec is left out. Bounds are the
smallest and the largest value of the live rows. `offset` is counted from the end of the index. A column without KLL
sketches has no `item-type` and no `kll-length`. All integers outside the frames are little endian; each frame has a
checksum.

The blob as a whole is not compressed, so that a reader can read the index and then the sketches of a few partitions,
however many others there are. Source: "Extending standardized statistics in Iceberg", part 4, "Partition-level NDV
sketches".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import zstandard

from icestats.answers.text import one_line
from icestats.stats.column_statistics import ColumnStatistics
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch

MAGIC: Final = b"IPS1"
HEAD_SIZE_BYTES: Final = 8
_MAX_INDEX_SIZE_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, order=True)
class PartitionKey:
    """A partition of one spec."""

    spec_id: int
    values: tuple[tuple[int, bytes | None], ...]
    """The id and value of each partition field of the spec: single-value bytes (spec, Appendix D), None for null."""


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """The entry of a partition in the index. Counts and bounds are exact, over live rows."""

    key: PartitionKey
    value_count: int
    null_value_count: int
    nan_value_count: int
    min_value: bytes | None
    max_value: bytes | None
    total_length: int | None
    """Bytes of all non-null values together; None for all types but string and binary."""
    max_length: int | None
    offset: int
    """Where its sketches begin, in bytes from the end of the index."""
    theta_length: int
    """Stored bytes, like `kll_length`."""
    kll_length: int

    @property
    def end(self) -> int:
        """Where its sketches end, in bytes from the end of the index."""
        return self.offset + self.theta_length + self.kll_length


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
        The statistics of the column in each partition; at least one.
    k, lg_k : int
        The sizes of the KLL and Theta sketches.
    """
    column = next(iter(partitions.values()))
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    body = bytearray()
    documents = []
    for key, found in partitions.items():
        theta = compressor.compress(found.theta)
        kll = b"" if found.kll is None else compressor.compress(found.kll)
        documents.append(_document(key, found, len(body), len(theta), len(kll)))
        body += theta + kll
    index = {
        "field-id": column.field_id,
        "type": column.type,
        "item-type": column.item_type,
        "k": k,
        "lg-k": lg_k,
        "partitions": documents,
    }
    stored = compressor.compress(json.dumps(_present(index), separators=(",", ":")).encode())
    return MAGIC + len(stored).to_bytes(4, "little") + stored + bytes(body)


def parse_index_size(head: bytes) -> int:
    """Return the stored length of the index, from the first `HEAD_SIZE_BYTES` of a payload.

    Raises
    ------
    ValueError
        The bytes are not the beginning of partition sketches.
    """
    if len(head) < HEAD_SIZE_BYTES or head[:4] != MAGIC:
        raise ValueError(f"it begins with {head[:4]!r}, expected {MAGIC!r}: not partition sketches")
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
        document = json.loads(_decompress(stored, _MAX_INDEX_SIZE_BYTES))
        entries = tuple(_entry(entry) for entry in document["partitions"])
        item_type = document.get("item-type")
        index = PartitionIndex(
            int(document["field-id"]),
            str(document["type"]),
            None if item_type is None else str(item_type),
            int(document["k"]),
            int(document["lg-k"]),
            entries,
        )
        # These reject sizes and item types that no sketch has.
        ThetaSketch(index.lg_k)
        if index.item_type is not None:
            KllSketch(index.item_type, index.k)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the index of partition sketches is damaged: {one_line(error)}") from error
    for entry in entries:
        if min(entry.offset, entry.theta_length, entry.kll_length) < 0 or entry.end > body_size:
            raise ValueError(f"the sketches of a partition end at {entry.end}, those of the blob at {body_size}")
    return index


def split_sketches(entry: PartitionEntry, stored: bytes) -> tuple[bytes, bytes | None]:
    """Return the bytes of a partition's Theta sketch and KLL sketch, from the stored bytes that its entry points to.

    Raises
    ------
    ValueError
        A frame is damaged.
    """
    theta, kll = stored[: entry.theta_length], stored[entry.theta_length :]
    return _decompress(theta, 1 << 30), _decompress(kll, 1 << 30) if entry.kll_length else None


def _decompress(frame: bytes, limit: int) -> bytes:
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= limit:
            raise ValueError(f"a frame of {size} bytes, expected {limit} at most")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ValueError(f"a zstd frame is damaged: {error}") from error


def _document(key: PartitionKey, found: ColumnStatistics, offset: int, theta: int, kll: int) -> dict[str, Any]:
    filled = found.value_count - found.null_value_count
    document = {
        "spec-id": key.spec_id,
        "value-count": found.value_count,
        "null-value-count": found.null_value_count,
        "nan-value-count": found.nan_value_count,
        "lower-bound": _hex(found.min_value),
        "upper-bound": _hex(found.max_value),
        "total-length": None if found.avg_length is None else round(found.avg_length * filled),
        "max-length": found.max_length,
        "offset": offset,
        "theta-length": theta,
        "kll-length": kll or None,
    }
    return {"partition": {str(field_id): _hex(value) for field_id, value in key.values}} | _present(document)


def _present(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def _entry(document: Mapping[str, Any]) -> PartitionEntry:
    values = ((int(field_id), _bytes(value)) for field_id, value in document["partition"].items())
    total, longest = document.get("total-length"), document.get("max-length")
    return PartitionEntry(
        key=PartitionKey(int(document["spec-id"]), tuple(values)),
        value_count=int(document["value-count"]),
        null_value_count=int(document["null-value-count"]),
        nan_value_count=int(document["nan-value-count"]),
        min_value=_bytes(document.get("lower-bound")),
        max_value=_bytes(document.get("upper-bound")),
        total_length=None if total is None else int(total),
        max_length=None if longest is None else int(longest),
        offset=int(document["offset"]),
        theta_length=int(document["theta-length"]),
        kll_length=int(document.get("kll-length", 0)),
    )


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


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
