"""What filters of other columns leave of a join's keys: by the common pairs of both columns, and by sampled rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icestats.estimation.formulas.common_keys import KeyCounts
from icestats.estimation.formulas.joint_sources import JointColumns, holds
from icestats.estimation.formulas.sampled_rows import shrink
from icestats.iceberg.filters.value_sets import Leaf

_MOST_NOISE = 0.25
"""A relative variance beyond which sampled pairs tell nothing."""


def thin_keys(counts: KeyCounts, found: JointColumns, key_side: int, leaf: Leaf, share: float) -> KeyCounts:
    """Return the rows of keys that a predicate on another column leaves.

    Parameters
    ----------
    counts : KeyCounts
        The keys.
    found : JointColumns
        Key and column together.
    key_side : int
        Which of both is the key, 0 or 1.
    leaf : Leaf
        The predicate on the other.
    share : float
        Of the rows that satisfies it.

    Notes
    -----
    Of the rows of pairs that are not common, each key keeps the same share.
    """
    every: Counter[Any] = Counter()
    kept: Counter[Any] = Counter()
    for pair, item in found.items:
        every[pair[key_side]] += item.lower
        if holds(leaf.values, pair[1 - key_side]):
            kept[pair[key_side]] += item.lower
    total = found.statistics.row_count
    rest = max((share * total - kept.total()) / max(total - every.total(), 1), 0.0)
    counted = {}
    for value, rows in counts.counted.items():
        of_column = counts.rows_of(value)
        left = kept[value] + min(rest, 1.0) * max(of_column - every[value], 0.0)
        counted[value] = rows * min(left / max(of_column, 1.0), 1.0)
    return replace(counts, counted=counted, rest=counts.rest * min(rest, 1.0))


@dataclass(frozen=True, slots=True)
class SampledKeys:
    """The keys of sampled rows, and which of them the filter of a join's side leaves."""

    keys: Sequence[Any]
    """Of all sampled rows; None: null."""
    kept: Sequence[int]
    """Places of those that the filter leaves, and whose key is not null."""
    sample: tuple[int, int]
    """Which sample they are from: its seed, and of how many rows it is."""

    def count(self) -> Counter[Any]:
        """Return how often each key is left."""
        return Counter(self.keys[place] for place in self.kept)

    def find_noise(self, other: Counter[Any]) -> float:
        """Return the relative variance of the partners of as many rows as are left, drawn by chance from the sample."""
        partners = np.array([other[key] for key in self.keys if key is not None], np.float64)
        mean = float(partners.mean()) if len(partners) else 0.0
        return float((partners**2).mean()) / mean**2 / len(self.kept) if mean else math.inf


def correct_join(rows: float, row_counts: tuple[float, float], sides: tuple[SampledKeys, SampledKeys]) -> float:
    """Return the rows of a join, as the pairs of sampled rows correct what is expected.

    Parameters
    ----------
    rows : float
        Expected.
    row_counts : tuple of float
        What the filters leave of each side.
    sides : tuple of SampledKeys
        The sampled rows of each.

    Notes
    -----
    What may be chance, if a filter were independent of the keys, corrects nothing.
    """
    one, other = sides
    if not (one.kept and other.kept and rows):
        return rows
    of_one, of_other = one.count(), other.count()
    # Where a table is joined with itself, a row meets itself in each sample: that is no chance.
    same = len(set(one.kept) & set(other.kept)) if one.sample == other.sample else 0
    found = sum(count * of_other[key] for key, count in of_one.items()) - same
    weight = math.prod(count / len(side.kept) for count, side in zip(row_counts, sides, strict=True))
    alone = same * one.sample[1] / len(one.keys)
    expected = (rows - alone) / weight
    if expected <= 0.0:
        return rows
    noise = one.find_noise(of_other) + other.find_noise(of_one) + 1.0 / max(found, expected)
    if noise > _MOST_NOISE:
        return rows
    return (rows - alone) * shrink(max(found, 0.5) / expected, noise) + alone
