"""Two columns together: how many pairs of values there are, the most common ones, and how far one decides the other.

The payload of an `icestats-joint-stats-v1` blob, of two fields:

    {"types": ["string", "string"], "row-count": 10, "others-at-most": 2, "ndvs": [7, 3], "theta": "<base64>",
     "items": [["<hex>", "<hex>", 5, 0], [null, "<hex>", 3, 1], ...], "others": {...}}

`row-count` counts all rows, and a null is a value like others. `theta` is a Theta sketch of the pairs, `ndvs` are the
numbers of distinct values of each column then, nulls left out. An item is a pair of values, single-value serialised
(Iceberg spec, Appendix D), the rows that it has at least, and how many more it may have; most common first. Values that
are longer than `frequent_items.VALUE_LENGTH` are left out of the items. `others` has the rows of all pairs without
those that items have at least, by the hashes of `hash_pairs`, as `count_min` has it.

Source: Ilyas et al., "CORDS: automatic discovery of correlations and soft functional dependencies", SIGMOD 2004.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.text import one_line
from icestats.iceberg.metadata import Field
from icestats.stats.batch_counts import count_words
from icestats.stats.column_values import dense_values, encode_dense, unify
from icestats.stats.count_min import CountMin, HashCounter
from icestats.stats.frequent_items import (
    CAPACITY,
    MOST_PAYLOAD_BYTES,
    VALUE_LENGTH,
    FrequentItems,
    check_value,
    hash_stored,
    parse_payload,
)
from icestats.stats.hashing import NULL_HASH, Hashes, hash_all
from icestats.stats.theta import ThetaSketch

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_ITEM_BYTES = 60

_Node = TypeVar("_Node")
Pair = tuple[bytes | None, bytes | None]
"""Two values, single-value serialised; None: null."""


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """The rows of a batch as places of distinct values."""

    codes: npt.NDArray[np.int64]
    """Of each row."""
    values: pa.Array
    """The distinct values, without null."""
    hashes: Hashes
    """Of the distinct values, in their order; that of null, if it is there, is the last."""


def encode_column(array: pa.Array, type_text: str) -> EncodedColumn:
    """Return the rows of a batch as places of distinct values.

    Parameters
    ----------
    array : pyarrow.Array
        In any form that `column_values.dense_values` takes.
    type_text : str
        The Iceberg type.
    """
    encoded = unify(array, decodes=False).dictionary_encode()
    # The dictionary of an array of type null holds a null.
    values = dense_values(encoded.dictionary, type_text)
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_floating(values.type):
        # As a filter has it, -0.0 equals 0.0, and NaN is one value whatever its bits.
        numbers = np.array(values.to_numpy(zero_copy_only=False))
        # First, as NumPy warns of arithmetic with a signalling one.
        numbers[np.isnan(numbers)] = np.nan
        values = pa.array(numbers + 0, values.type)
    return EncodedColumn(codes, values, np.append(hash_all(values, type_text), NULL_HASH))


def hash_pairs(first: Hashes, second: Hashes) -> Hashes:
    """Return the 63-bit hash of each pair: the sum of the first, times an odd number, and the second, mixed.

    Examples
    --------
    >>> hash_pairs(np.array([5], np.uint64), np.array([7], np.uint64)).tolist()
    [8739759477070815340]
    """
    mixed = first * _ODD + second
    for factor in _FACTORS:
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(33))) >> np.uint64(1)


class PairAccumulator:
    """The statistics of two columns together, which grow with each batch.

    Parameters
    ----------
    first, second : Field
        The columns.
    lg_k : int
        The size of the Theta sketch of pairs.

    Notes
    -----
    Pairs are told apart by hashes of 63 bits.
    """

    def __init__(self, first: Field, second: Field, lg_k: int = 12) -> None:
        self.fields = first, second
        self._theta = ThetaSketch(lg_k)
        self._items = FrequentItems()
        self._pairs: dict[int, Pair] = {}

    def update(self, first: EncodedColumn, second: EncodedColumn) -> None:
        """Add the rows of a batch."""
        if not len(first.codes):
            return
        width = len(second.hashes)
        distinct, counts = np.unique(first.codes * width + second.codes, return_counts=True)
        left, right = np.divmod(distinct, width)
        hashes = hash_pairs(first.hashes[left], second.hashes[right])
        self._theta.update(hashes)
        # Values that differ in their bits alone, such as -0.0 and 0.0, have one hash.
        words, places, ranks = np.unique(hashes.view(np.int64), return_index=True, return_inverse=True)
        rows = np.bincount(ranks, counts).astype(np.int64)
        self._items.update(count_words(words, rows, self._items.values, CAPACITY), words.view(np.uint64), rows)
        new = np.array([word for word in self._kept() if word not in self._pairs], np.int64)
        chosen = places[np.searchsorted(words, new)]
        one = single_values(first, left[chosen], self.fields[0].type)
        other = single_values(second, right[chosen], self.fields[1].type)
        self._name(dict(zip(new.tolist(), zip(one, other, strict=True), strict=True)))

    def _name(self, found: dict[int, Pair]) -> None:
        known = self._pairs | found
        self._pairs = {word: known[word] for word in self._kept()}

    def _kept(self) -> list[int]:
        return [] if self._items.values is None else self._items.values.to_pylist()

    def merge(self, other: PairAccumulator) -> None:
        """Add what another accumulator of the same columns has gathered. The other does not change."""
        self._theta.merge(other._theta)
        self._items.merge(other._items)
        self._name(other._pairs)

    def result(self, ndvs: tuple[int, int]) -> JointStatistics:
        """Return the statistics of all rows added so far; `ndvs`: the numbers of distinct values of each column."""
        counted = zip(self._kept(), self._items.counts.tolist(), self._items.slacks.tolist(), strict=True)
        items = [JointItem(self._pairs[word], lower, lower + slack) for word, lower, slack in counted]
        one, other = self.fields
        found = _fit(
            JointStatistics(
                (one.field_id, other.field_id),
                (one.type, other.type),
                self._items.value_count,
                self._items.others_at_most,
                ndvs,
                self._theta.to_bytes(),
                tuple(sorted(items, key=_rank)),
            )
        )
        counter = self._items.counter
        if counter is None or not found.others_at_most:
            return found
        rows = np.array([item.lower for item in found.items], np.int64)
        return replace(found, others=counter.count_others(found.hash_items(), rows, found.ndv - len(rows)))

    @classmethod
    def from_statistics(cls, found: JointStatistics, fields: tuple[Field, Field], lg_k: int = 12) -> PairAccumulator:
        """Return the accumulator that statistics were made by, as far as they keep it."""
        made = cls(*fields, lg_k=lg_k)
        made._theta.merge(ThetaSketch.from_bytes(found.theta, lg_k))
        hashes, rows = found.hash_items(), np.array([item.lower for item in found.items], np.int64)
        words = hashes.view(np.int64)
        is_known = found.others is not None or found.others_at_most == 0
        made._items = FrequentItems.restore(
            pa.array(words),
            rows,
            np.array([item.upper for item in found.items], np.int64) - rows,
            found.row_count,
            found.others_at_most,
            HashCounter.restore(found.others, hashes, rows) if is_known else None,
        )
        made._pairs = {word: item.pair for word, item in zip(words.tolist(), found.items, strict=True)}
        return made


@dataclass(frozen=True, slots=True)
class JointItem:
    """A common pair of values."""

    pair: Pair
    lower: int
    """It has at least as many rows."""
    upper: int
    """It has at most as many rows."""


@dataclass(frozen=True, slots=True)
class JointStatistics:
    """Two columns together, as they are committed."""

    field_ids: tuple[int, int]
    types: tuple[str, str]
    """The Iceberg types."""
    row_count: int
    others_at_most: int
    """No other pair has more rows."""
    ndvs: tuple[int, int]
    """The number of distinct values of each column, without null."""
    theta: bytes
    """Theta sketch of the pairs."""
    items: tuple[JointItem, ...]
    """Most common first."""
    others: CountMin | None = field(default=None, compare=False)
    """Rows of all pairs but those that items have at least, by hash; None: unknown, or there are none."""

    @property
    def ndv(self) -> int:
        """The number of distinct pairs, an estimate within Theta's error; no more than there are rows."""
        return min(ThetaSketch.from_bytes(self.theta).ndv, self.row_count)

    def hash_items(self) -> Hashes:
        """Return the hashes of the items."""
        return hash_pairs(*(hash_stored([item.pair[side] for item in self.items], self.types[side]) for side in (0, 1)))

    def strength(self, side: int) -> float:
        """Return how far one column decides the other: the share of rows that have the most common partner.

        Parameters
        ----------
        side : int
            0: how far the first decides the second; 1: the reverse.

        Returns
        -------
        float
            Between 0 and 1. Of the rows of common pairs where these are most of the rows; else, as CORDS has it, the
            number of distinct values of the one by the number of pairs.
        """
        most: defaultdict[bytes | None, int] = defaultdict(int)
        rows = 0
        for item in self.items:
            rows += item.lower
            most[item.pair[side]] = max(most[item.pair[side]], item.lower)
        if 2 * rows >= self.row_count > 0:
            return sum(most.values()) / rows
        return min(1.0, self.ndvs[side] / max(self.ndv, 1))


def merge_joint_statistics(
    base: JointStatistics, added: JointStatistics, fields: tuple[Field, Field], ndvs: tuple[int, int], *, lg_k: int
) -> JointStatistics:
    """Merge the statistics of two sets of rows, of which no row is in both.

    Parameters
    ----------
    base, added : JointStatistics
        Of the same columns.
    fields : tuple of Field
        The columns.
    ndvs : tuple of int
        The numbers of distinct values of each column in both sets together.
    lg_k : int
        The size of the merged Theta sketch.
    """
    merged = PairAccumulator.from_statistics(base, fields, lg_k)
    merged.merge(PairAccumulator.from_statistics(added, fields, lg_k))
    return merged.result(ndvs)


def write_joint_statistics(found: JointStatistics) -> bytes:
    """Return the payload of a blob."""
    items = [[*(_hex(value) for value in item.pair), item.lower, item.upper - item.lower] for item in found.items]
    document = {
        "types": found.types,
        "row-count": found.row_count,
        "others-at-most": found.others_at_most,
        "ndvs": found.ndvs,
        "theta": base64.b64encode(found.theta).decode(),
        "items": items,
    } | ({} if found.others is None else {"others": found.others.to_document()})
    return json.dumps(document, separators=(",", ":")).encode()


def read_joint_statistics(payload: bytes, field_ids: tuple[int, int]) -> JointStatistics:
    """Return what a payload holds.

    Parameters
    ----------
    payload : bytes
        Of a blob.
    field_ids : tuple of int
        The blob's fields.

    Raises
    ------
    ValueError
        The payload is not one that `write_joint_statistics` makes.
    """
    try:
        document = parse_payload(payload)
        types = (str(document["types"][0]), str(document["types"][1]))
        items = tuple(
            JointItem((_bytes(one), _bytes(other)), int(lower), int(lower) + int(more))
            for one, other, lower, more in document["items"]
        )
        for item in items:
            for type_text, value in zip(types, item.pair, strict=True):
                if value is not None:
                    check_value(type_text, value)
        found = JointStatistics(
            field_ids,
            types,
            int(document["row-count"]),
            int(document["others-at-most"]),
            (int(document["ndvs"][0]), int(document["ndvs"][1])),
            base64.b64decode(document["theta"], validate=True),
            items,
            CountMin.from_document(document["others"], int(document["row-count"]) - sum(item.lower for item in items))
            if "others" in document
            else None,
        )
        ThetaSketch.from_bytes(found.theta)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError(f"not joint statistics: {one_line(error)}") from error
    _check(found)
    return found


def _check(found: JointStatistics) -> None:
    if not 0 <= found.others_at_most <= found.row_count < 1 << 63 or not all(0 <= n < 1 << 63 for n in found.ndvs):
        raise ValueError(f"{found.others_at_most} rows of another pair at most, of {found.row_count} rows")
    if any(not 0 <= item.lower <= item.upper <= found.row_count for item in found.items):
        raise ValueError("a pair with fewer than no rows, or with more than there are")
    is_repeated = len({item.pair for item in found.items}) < len(found.items)
    if is_repeated or sum(item.lower for item in found.items) > found.row_count:
        raise ValueError("a pair that is there twice, or more rows of pairs than there are")


def _fit(found: JointStatistics) -> JointStatistics:
    """Leave out pairs of long values, and the least common ones until the payload fits."""
    short = [item for item in found.items if max(len(value or b"") for value in item.pair) <= VALUE_LENGTH]
    kept = {item.pair for item in short}
    others = max([found.others_at_most, *(item.upper for item in found.items if item.pair not in kept)])
    is_even, left = bool(short) and short[0].lower < others, MOST_PAYLOAD_BYTES - 2 * len(found.theta)
    items = []
    for item in short:
        left -= 2 * sum(len(value or b"") for value in item.pair) + _ITEM_BYTES
        if left < 0 or is_even:
            others = max(others, item.upper)
        else:
            items.append(item)
    return replace(found, items=tuple(items), others_at_most=others)


def _rank(item: JointItem) -> tuple[int, list[tuple[bool, bytes]]]:
    # The same items are the same bytes, in whatever order rows came.
    return -item.lower, [(value is not None, value or b"") for value in item.pair]


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def single_values(column: EncodedColumn, places: npt.NDArray[np.int64], type_text: str) -> list[bytes | None]:
    """Return the values at some of the places that a batch has as codes, single-value serialised; None: null."""
    is_null = places >= len(column.values)
    if is_null.all():
        return [None] * len(places)
    taken = encode_dense(column.values.take(pa.array(np.where(is_null, 0, places))), type_text).to_pylist()
    return [None if null else value for null, value in zip(is_null.tolist(), taken, strict=True)]


def list_trees(weights: Mapping[tuple[_Node, _Node], float]) -> list[list[tuple[_Node, _Node]]]:
    """Return which of some pairs are used: those of the trees of greatest weight (Kruskal), in no circle.

    So do Chow and Liu approximate a distribution.

    Examples
    --------
    >>> list_trees({("a", "b"): 2.0, ("b", "c"): 1.0, ("a", "c"): 0.5, ("d", "e"): 0.1})
    [[('a', 'b'), ('b', 'c')], [('d', 'e')]]
    """
    trees: dict[_Node, tuple[set[_Node], list[tuple[_Node, _Node]]]] = {}
    for pair in sorted(weights, key=lambda pair: -weights[pair]):
        one, other = (trees.setdefault(node, ({node}, [])) for node in pair)
        if one is not other:
            joined = one[0] | other[0], [*one[1], *other[1], pair]
            trees.update(dict.fromkeys(joined[0], joined))
    return [pairs for _, pairs in {id(tree): tree for tree in trees.values()}.values() if pairs]
