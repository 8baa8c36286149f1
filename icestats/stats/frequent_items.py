"""Frequent items: the most common values of a column, each with a lower and an upper bound of its rows.

A sketch keeps up to `capacity` values. Of a value it has the rows that were counted while the value was kept, and how
many rows may have gone uncounted before. Of all values that are not kept, it knows how many rows one may have at most.
The payload of an `icestats-frequent-items-v1` blob:

    {"type": "string", "value-count": 10, "others-at-most": 2, "items": [["<hex>", 5, 0], ["<hex>", 3, 1], ...],
     "sample": {...}, "others": {...}}

`value-count` is the number of values that are neither null nor NaN. An item is a value, single-value serialised
(Iceberg spec, Appendix D), the rows that it has at least, and how many more it may have; most common first. -0.0 is
counted as 0.0. Strings and binaries that are longer than `VALUE_LENGTH` are cut to that; `"is-cut": true` says that
there are some, and then the rows of a value of that length are those of all values that begin so. `sample` is of the
column's rows, as `row_sample` has it. `others` has the rows of all values without those that items have at least, by
Theta's hashes, as `count_min` has it: -0.0 is hashed as 0.0, a cut value as what is left of it, the empty one as 2.

Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (Space
Saving); Cafaro, Pulimeno, Tempesta, "A parallel space saving algorithm", 2016, for merging.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.text import one_line
from icestats.iceberg.storage import check_value_count
from icestats.iceberg.types import (
    MAX_LONG_PRECISION,
    PrimitiveType,
    decode_json,
    decode_value,
    encode_unscaled,
    parse_type,
)
from icestats.stats.count_min import CountMin, HashCounter
from icestats.stats.hashing import NULL_HASH, Hashes, hash_keys
from icestats.stats.row_sample import RowSample

CAPACITY: Final = 1_024
"""How many values a sketch keeps."""
VALUE_LENGTH: Final = 256
"""Longer strings, in characters, and binaries, in bytes, are cut to this."""
MOST_PAYLOAD_BYTES: Final = 128 << 10
"""What the items of a sketch take in a file, before they are compressed."""
MOST_VALUE_BYTES: Final = 4 * VALUE_LENGTH
"""A value takes no more: UTF-8 has up to 4 bytes a character."""

_Counts = npt.NDArray[np.int64]
_BYTES_A_VALUE = 64
_WORD_BYTES = {"boolean": 1, "int": 4, "date": 4, "float": 4}
_WORDS = 1 << 63
_HEAD_BYTES = 200
_ITEM_BYTES = 45
"""More than an item takes in JSON beside its value's digits."""
_STORED_BYTES = 12
"""More than an item takes beside its value, once compressed."""
_MOST_MEMBERS = 64 * CAPACITY
"""Of a payload; an item of a pair has 6."""


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Some distinct values of a batch or of a column, and what is known of the others."""

    values: pa.Array
    """`int64` words (integers as Iceberg stores them, unscaled decimals, the bits of floating point numbers), or
    `large_binary` single-value bytes: `is_counted_by_word`."""
    counts: _Counts
    """Rows of each."""
    value_count: int
    """Values in all."""
    others_at_most: int = 0
    """No value that is not here has more rows."""
    is_cut: bool = False
    """Whether longer values have been cut to `VALUE_LENGTH`."""


@dataclass(frozen=True, slots=True)
class FrequentItem:
    """A common value."""

    value: bytes
    """Single-value bytes (spec, Appendix D)."""
    lower: int
    """It has at least as many rows."""
    upper: int
    """It has at most as many rows."""


class FrequentItems:
    """The most common values of the rows that were added.

    Parameters
    ----------
    capacity : int
        How many values are kept.

    Notes
    -----
    Of n values, one that is not kept has no more than n / capacity rows; where few values are common the bound is far
    lower. While there are no more distinct values than `capacity`, every one is kept, with its rows. Merging keeps both
    promises, in whatever order.

    Examples
    --------
    >>> items = FrequentItems()
    >>> found = CountedValues(pa.array([b"FR", b"DE"], pa.large_binary()), np.array([5, 2]), 7)
    >>> items.update(found, hash_stored([b"FR", b"DE"], "string"), found.counts)
    >>> items.others_at_most, len(items)
    (0, 2)
    """

    __slots__ = ("capacity", "counter", "counts", "is_cut", "others_at_most", "slacks", "value_count", "values")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.value_count = self.others_at_most = 0
        self.is_cut = False
        self.values: pa.Array | None = None
        """The values that are kept; None: no batch has been added."""
        self.counts: _Counts = np.zeros(0, np.int64)
        """The rows that each of the values has at least."""
        self.slacks: _Counts = np.zeros(0, np.int64)
        """How many more rows than were counted each of the values may have."""
        self.counter: HashCounter | None = HashCounter()
        """The rows of all values, by hash; None: they are not known."""

    def __len__(self) -> int:
        return len(self.counts)

    def update(self, counted: CountedValues, hashes: Hashes, rows: _Counts | None = None) -> None:
        """Add the values of a batch; all of them by `hashes` too, with the rows of each: one without `rows`."""
        if self.counter is not None:
            self.counter.update(hashes, rows)
        self.value_count += counted.value_count
        self.is_cut |= counted.is_cut
        self._add(counted.values, counted.counts, np.zeros(len(counted.counts), np.int64), counted.others_at_most)

    def merge(self, other: FrequentItems) -> None:
        """Add the values of another sketch of the same column, which does not change."""
        self.value_count += other.value_count
        self.is_cut |= other.is_cut
        if self.counter is not None and other.counter is not None:
            self.counter.merge(other.counter)
        else:
            self.counter = None
        if other.values is not None:
            self._add(other.values, other.counts, other.slacks, other.others_at_most)

    def _add(self, values: pa.Array, counts: _Counts, slacks: _Counts, others_at_most: int) -> None:
        mine = len(self.counts)
        joined = values if self.values is None else pa.concat_arrays([self.values, values])
        encoded = joined.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        # A value that one side does not keep may have as many rows there as any of its others.
        totals, added = np.zeros(len(encoded.dictionary), np.int64), self.others_at_most + others_at_most
        uncounted = np.full(len(totals), added)
        for places, own, slack, others in (
            (codes[:mine], self.counts, self.slacks, self.others_at_most),
            (codes[mine:], counts, slacks, others_at_most),
        ):
            totals[places] += own
            uncounted[places] += slack - others
        self.others_at_most = added
        self._keep(encoded.dictionary, totals, uncounted, self.capacity)

    def _keep(self, values: pa.Array, counts: _Counts, slacks: _Counts, count: int) -> None:
        most = counts + slacks
        if len(counts) > count:
            order = np.argsort(-most, kind="stable")
            self.others_at_most = max(self.others_at_most, int(most[order[count]]))
            kept = np.sort(order[:count])
            values, counts, slacks = values.take(pa.array(kept)), counts[kept], slacks[kept]
        self.values, self.counts, self.slacks = values, counts, slacks

    def to_bytes(
        self,
        type_text: str,
        size_bytes: int = MOST_PAYLOAD_BYTES,
        *,
        sample: RowSample | None = None,
        ndv: float = 0.0,
    ) -> bytes:
        """Return the payload of a blob.

        Parameters
        ----------
        type_text : str
            The Iceberg type of the column.
        size_bytes : int
            Less common values are left out until the items take no more, uncompressed; and all where none has for
            certain as many rows as another one may have, or more of them where some were left out.
        sample : RowSample, optional
            Of the column's rows. Without, the rows of other values are left out too.
        ndv : float
            How many distinct values there are, for these.
        """
        values = [] if self.values is None else self.values.to_pylist()
        most, others, left = (self.counts + self.slacks).tolist(), self.others_at_most, size_bytes - _HEAD_BYTES
        items: list[tuple[bytes, int, int]] = []
        is_even = int(self.counts.max(initial=0)) < others
        counted = zip(values, self.counts.tolist(), self.slacks.tolist(), most, strict=True)
        found = [(from_key(type_text, value), count, slack, rows) for value, count, slack, rows in counted]
        for value, count, slack, rows in sorted(found, key=lambda item: (-item[1], item[0])):
            left -= 2 * len(value) + _ITEM_BYTES
            if left < 0 or is_even:
                others = max(others, rows)
            else:
                items.append((value, count, slack))
        if left < 0 and items and items[0][1] <= others:
            others, items = max(others, *most), []
        document = {"type": type_text, "value-count": self.value_count, "others-at-most": others}
        document |= {"is-cut": True} if self.is_cut else {}
        document |= {"items": [(value.hex(), count, slack) for value, count, slack in items]}
        document |= {} if sample is None else {"sample": sample.to_document()}
        if sample is not None and self.counter is not None and others:
            hashes = hash_stored([value for value, _, _ in items], type_text)
            rows = np.array([count for _, count, _ in items], np.int64)
            left_over = self.counter.count_others(hashes, rows, ndv - len(items))
            document |= {} if left_over is None else {"others": left_over.to_document()}
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def restore(
        cls,
        values: pa.Array,
        counts: _Counts,
        slacks: _Counts,
        value_count: int,
        others_at_most: int,
        counter: HashCounter | None = None,
    ) -> FrequentItems:
        """Return a sketch of what one has kept: its values, their rows at least, and how many more they may have."""
        items = cls()
        items.counter = counter
        items.value_count, items.others_at_most = value_count, others_at_most
        items.values, items.counts, items.slacks = values, counts, slacks
        return items

    @classmethod
    def from_values(cls, found: FrequentValues) -> FrequentItems:
        """Return the sketch that a payload was made from, as far as it is kept there."""
        kind = pa.int64() if is_counted_by_word(parse_type(found.type)) else pa.large_binary()
        values, rows = [item.value for item in found.items], np.array([item.lower for item in found.items], np.int64)
        counter = None
        if found.sample is not None and (found.others is not None or found.is_complete):
            counter = HashCounter.restore(found.others, hash_stored(values, found.type), rows)
        items = cls.restore(
            pa.array([to_key(found.type, value) for value in values], kind),
            rows,
            np.array([item.upper for item in found.items], np.int64) - rows,
            found.value_count,
            found.others_at_most,
            counter,
        )
        items.is_cut = found.is_cut
        return items


@dataclass(frozen=True, slots=True)
class FrequentValues:
    """The most common values of a column, as they are committed."""

    type: str
    """The Iceberg type."""
    value_count: int
    """Values in all, nulls and NaN left out."""
    others_at_most: int
    """No other value has more rows."""
    items: tuple[FrequentItem, ...]
    """Most common first."""
    is_cut: bool = False
    """Whether an item of `VALUE_LENGTH` may stand for longer values that begin so."""
    sample: RowSample | None = field(default=None, compare=False)
    """Of the column's rows; None: none is kept, as of a partition."""
    others: CountMin | None = field(default=None, compare=False)
    """Rows of all values but those that items have at least, by hash; None: unknown, or there are none."""

    @property
    def is_complete(self) -> bool:
        """Whether every value of the column is an item."""
        return self.others_at_most == 0

    def may_be_longer(self, item: FrequentItem) -> bool:
        """Return whether an item may stand for longer values that begin so."""
        return self.is_cut and len(item.value.decode() if self.type == "string" else item.value) >= VALUE_LENGTH


def read_frequent_values(payload: bytes) -> FrequentValues:
    """Return what a payload holds.

    Raises
    ------
    ValueError
        The payload is not one that `FrequentItems.to_bytes` makes.
    """
    try:
        document = parse_payload(payload)
        type_text = str(document["type"])
        parse_type(type_text)
        items = tuple(
            FrequentItem(bytes.fromhex(value), int(lower), int(lower) + int(more))
            for value, lower, more in document["items"]
        )
        value_count = int(document["value-count"])
        rest = value_count - sum(item.lower for item in items)
        found = FrequentValues(
            type_text,
            value_count,
            int(document["others-at-most"]),
            items,
            bool(document.get("is-cut", False)),
            RowSample.from_document(document["sample"]) if "sample" in document else None,
            CountMin.from_document(document["others"], rest) if "others" in document else None,
        )
        sampled = () if found.sample is None else found.sample.values
        for value in (*(item.value for item in items), *sampled):
            if value is not None:
                check_value(type_text, value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not frequent items: {one_line(error)}") from error
    if not 0 <= found.others_at_most <= found.value_count < 1 << 63:
        raise ValueError(f"{found.others_at_most} rows of another value at most, of {found.value_count} values")
    if any(not 0 <= item.lower <= item.upper <= found.value_count for item in items):
        raise ValueError("a value with fewer than no rows, or with more than there are")
    if len({item.value for item in items}) < len(items) or sum(item.lower for item in items) > found.value_count:
        raise ValueError("a value that is there twice, or more rows than there are values")
    if not found.others_at_most and sum(item.upper for item in items) < found.value_count:
        raise ValueError(f"fewer rows than {found.value_count} values have, and no other value")
    return found


def drop_sample(payload: bytes) -> bytes:
    """Return a payload of `FrequentItems.to_bytes` without its sample of rows and the counters of others."""
    document = json.loads(payload)
    document.pop("sample", None)
    document.pop("others", None)
    return json.dumps(document, separators=(",", ":")).encode()


def parse_payload(payload: bytes, most: int = _MOST_MEMBERS) -> Any:
    """Return the JSON document of a payload.

    Raises
    ------
    ValueError
        It is none, or has more members, by default than a sketch of `CAPACITY` values: each takes many times its bytes
        in memory.
    """
    check_value_count(payload, most)
    return json.loads(payload)


def check_value(type_text: str, value: bytes) -> None:
    """Raise ValueError where bytes are no value of a type, or not in the one form that a sketch gives it."""
    if len(value) > MOST_VALUE_BYTES:
        raise ValueError(f"a value of {len(value):,} bytes, expected {MOST_VALUE_BYTES:,} at most")
    decode_value(type_text, value)
    if is_counted_by_word(parse_type(type_text)):
        key = to_key(type_text, value)
        if isinstance(key, int) and (not -_WORDS <= key < _WORDS or from_key(type_text, key) != value):
            raise ValueError(f"{value.hex()} is not how a value of type {type_text} is kept")


def describe_values(found: FrequentValues, row_count: int, count: int | None = None) -> list[dict[str, Any]]:
    """Return common values as rows, the most common first.

    Parameters
    ----------
    found : FrequentValues
        The values.
    row_count : int
        All rows, nulls and NaN too.
    count : int, optional
        How many values, at most.

    Returns
    -------
    list of dict
        `value` as text, with `…` behind one that may stand for longer values, `rows_at_least`, `rows_at_most`, and
        `share`, the middle of both by all rows.

    Examples
    --------
    >>> describe_values(FrequentValues("string", 8, 2, (FrequentItem(b"FR", 5, 6),)), 10)
    [{'value': 'FR', 'rows_at_least': 5, 'rows_at_most': 6, 'share': 0.55}]
    """
    return [
        {
            "value": to_text(found.type, item.value) + ("…" if found.may_be_longer(item) else ""),
            "rows_at_least": item.lower,
            "rows_at_most": item.upper,
            "share": (item.lower + item.upper) / 2 / max(row_count, 1),
        }
        for item in found.items[:count]
    ]


def to_text(type_text: str, value: bytes) -> str:
    """Return a value as a person reads it, from its single-value bytes."""
    found = decode_json(type_text, value)
    return str(found).lower() if isinstance(found, bool) else str(found)


def find_size_limit(count: int) -> int:
    """Return the bytes of a payload, before it is compressed, that has room for about as many values."""
    return min(_HEAD_BYTES + count * _BYTES_A_VALUE, MOST_PAYLOAD_BYTES)


def estimate_stored_size(count: int, value_bytes: int, size_bytes: int) -> int:
    """Return what a payload takes once it is compressed: an upper bound.

    Parameters
    ----------
    count : int
        Distinct values, at most.
    value_bytes : int
        What a value takes.
    size_bytes : int
        The limit that the payload is made with.
    """
    kept = min(count, size_bytes // (_ITEM_BYTES + 2 * value_bytes))
    return _HEAD_BYTES + kept * (value_bytes + _STORED_BYTES)


def merge_frequent_items(
    first: bytes, second: bytes, size_bytes: int = MOST_PAYLOAD_BYTES, *, ndv: float = 0.0
) -> bytes:
    """Merge two payloads of the same column, of which no row is in both, into one of no more than `size_bytes`.

    `ndv` is the number of distinct values in both together.

    Raises
    ------
    ValueError
        A payload is damaged, or they are of different types.
    """
    one, other = read_frequent_values(first), read_frequent_values(second)
    if one.type != other.type:
        raise ValueError(f"frequent items of type {other.type} cannot be merged into those of type {one.type}")
    merged = FrequentItems.from_values(one)
    merged.merge(FrequentItems.from_values(other))
    sample = None if other.sample is None else one.sample
    if sample is not None and other.sample is not None:
        sample.merge(other.sample)
    return merged.to_bytes(one.type, size_bytes, sample=sample, ndv=ndv)


def hash_stored(values: Sequence[bytes | None], type_text: str) -> Hashes:
    """Return the hashes of single-value bytes; None: null."""
    is_value = np.array([value is not None for value in values], np.bool_)
    kind = pa.int64() if is_counted_by_word(parse_type(type_text)) else pa.large_binary()
    hashes = np.full(len(values), NULL_HASH)
    keys = pa.array([to_key(type_text, value) for value in values if value is not None], kind)
    hashes[is_value] = hash_keys(keys, type_text)
    return hashes


def is_counted_by_word(kind: PrimitiveType) -> bool:
    """Whether values of a type are counted as 64-bit words; the others as their bytes."""
    if kind.name == "decimal":
        return kind.precision <= MAX_LONG_PRECISION
    return kind.name not in ("string", "binary", "fixed", "uuid")


def from_key(type_text: str, key: int | bytes) -> bytes:
    """Return the single-value bytes of a value as a sketch keeps it: the inverse of `to_key`."""
    if isinstance(key, bytes):
        return key
    kind = parse_type(type_text)
    if kind.name == "decimal":
        return encode_unscaled(key)
    return key.to_bytes(_WORD_BYTES.get(kind.name, 8), "little", signed=True)


def to_key(type_text: str, value: bytes) -> int | bytes:
    """Return single-value bytes as a sketch keeps them: a word where a value has no more than 8 bytes."""
    kind = parse_type(type_text)
    if not is_counted_by_word(kind):
        return value
    return int.from_bytes(value, "big" if kind.name == "decimal" else "little", signed=True)
