"""Equi-joins by the common values of their keys: key by key where rows are counted, by distinct keys for the rest."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.estimation.formulas.frequent_sources import FrequentColumn, count_values_in, find_interval
from icestats.iceberg.filters.value_sets import ValueSet, encode_item
from icestats.iceberg.types import decode_value, parse_type
from icestats.stats.frequent_items import is_counted_by_word, to_key
from icestats.stats.hashing import Hashes, hash_keys
from icestats.stats.theta import ThetaSketch


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """The values of a key that a filter leaves, with their rows."""

    column: FrequentColumn
    counted: Mapping[Any, float]
    """Common ones, with the rows of each."""
    rest: float
    """Rows of the others, and of those that are too long to be counted one by one."""
    rest_distinct: float
    """How many others there are."""

    @property
    def distinct(self) -> float:
        """How many values are left."""
        return len(self.counted) + self.rest_distinct

    @property
    def share_of_rest(self) -> float:
        """The share of the column's values beside the common ones that is left."""
        return self.rest_distinct / max(self.column.unnamed_distinct, self.rest_distinct, 1.0)

    @property
    def rows_of_another(self) -> float:
        """Rows of a value that is not among the common ones."""
        return self.rest / self.rest_distinct if self.rest_distinct >= 1.0 else 0.0

    def rows_of(self, value: Any) -> float:
        """Return the rows of a common value before any filter."""
        item = self.column.by_value[value]
        return (item.lower + item.upper) / 2.0

    def scale_to(self, row_count: float) -> KeyCounts:
        """Return the same with so many rows in all: of each value the same share is left."""
        total = sum(self.counted.values()) + self.rest
        factor = row_count / total if total else 0.0
        counted = {value: rows * factor for value, rows in self.counted.items()}
        return replace(self, counted=counted, rest=max(row_count - sum(counted.values()), 0.0))

    def count_present(self, values: list[Any], other: KeyCounts, theta: ThetaSketch, likely: float) -> float:
        """Return how many of another key's values are among this one's others.

        Parameters
        ----------
        values : list
            Common values of the other key.
        other : KeyCounts
            That key.
        theta : ThetaSketch
            Of this key: it tells for certain of those values that it would have sampled.
        likely : float
            The chance of one of which it does not tell.
        """
        hashes = _hash(other.column, values, self.column.values.type)
        is_told = np.full(len(hashes), True) if theta.is_exact else hashes < np.uint64(theta.theta * 2.0**63)
        present = int(np.isin(hashes[is_told], theta.hashes).sum())
        # An empty text has no hash; a number that this type does not have is not there.
        possible = len(values) if self.column.values.type == other.column.values.type else len(hashes)
        return present + likely * (possible - int(is_told.sum()))


def count_key(column: FrequentColumn, values: ValueSet | None) -> KeyCounts:
    """Return the rows of a column's values that a filter leaves of them; None: all."""
    items = column.by_value.items()
    every = {value: (item.lower + item.upper) / 2.0 for value, item in items}
    rest, distinct = column.unnamed, column.unnamed_distinct
    if values is None:
        return KeyCounts(column, every, rest, distinct)
    kept = {value: rows for value, rows in every.items() if find_interval(values.intervals, value) is not None}
    if not values.ranges:
        left = [value for point in values.points if (value := point.low[1]) not in kept]
        others = min(float(len(left)), distinct)
        mean = sum(column.rows_of_long if column.is_cut(one) else column.rows_of_another for one in left)
        return KeyCounts(column, kept, mean / max(len(left), 1) * others, others)
    rows = count_values_in(values, column)[0] - sum(kept.values())
    share = min(max(rows / rest, 0.0), 1.0) if rest else 0.0
    if math.isnan(share):
        share = len(kept) / len(every) if every else 1.0
    return KeyCounts(column, kept, rest * share, distinct * share)


def _hash(column: FrequentColumn, values: list[Any], type_text: str) -> Hashes:
    """Return the hashes of a column's values as those of another type, without those that it does not have."""
    kind = pa.int64() if is_counted_by_word(parse_type(type_text)) else pa.large_binary()
    items = (column.by_value[value].value for value in values)
    found = items if column.values.type == type_text else filter(None, (_convert(one, type_text) for one in values))
    keys = [to_key(type_text, item) for item in found]
    return hash_keys(pa.array([key for key in keys if key != b""], kind), type_text)


def _convert(value: Any, type_text: str) -> bytes | None:
    """Return a value, as `value_sets.build_item` has it, as bytes of a type; None: the type does not have it."""
    kind = parse_type(type_text)
    if kind.name == "decimal":
        return encode_item(type_text, value) if abs(value) < 10**kind.precision else None
    try:
        found = encode_item(type_text, value)
        return found if decode_value(type_text, found) == value else None
    except (OverflowError, ValueError, struct.error):
        return None


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The key of one side of a join: what its filter leaves."""

    counts: KeyCounts
    theta: ThetaSketch
    """Of all of its values."""


def estimate_join_rows(left: JoinKey, right: JoinKey, common_keys: float) -> float:
    """Estimate the rows of an equi-join.

    Parameters
    ----------
    left, right : JoinKey
        The sides.
    common_keys : float
        How many keys both tables have.

    Notes
    -----
    A common key of both sides joins its rows with its rows. One of one side alone joins those of the mean key of the
    rest of the other, where its sketch has it. The rest of both join by their distinct keys. What the filter of a side
    leaves of its rows is taken to be the same share of each key, but for what it says of the key itself.
    """
    one, other = left.counts, right.counts
    both = one.counted.keys() & other.counted.keys()
    rows = sum(one.counted[value] * other.counted[value] for value in both)
    among_rest = common_keys - len(one.column.by_value.keys() & other.column.by_value.keys())
    for mine, theirs in ((left, right), (right, left)):
        known, likely = theirs.counts.column.by_value, min(common_keys / max(mine.theta.estimate(), 1.0), 1.0)
        alone = [value for value in mine.counts.column.by_value if value not in known]
        if alone:
            found = theirs.counts.count_present(alone, mine.counts, theirs.theta, likely)
            left_of_mine = sum(mine.counts.counted.get(value, 0.0) for value in alone)
            rows += found / len(alone) * left_of_mine * theirs.counts.rows_of_another
            among_rest -= found
    # What is said of a key holds on both sides: as great a share is left of what they have in common.
    keys = max(among_rest, 0.0) * max(one.share_of_rest, other.share_of_rest)
    return rows + min(keys, one.rest_distinct, other.rest_distinct) * one.rows_of_another * other.rows_of_another
