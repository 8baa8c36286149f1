"""How far predicates go together, seen in the sampled rows of their columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from icestats.estimation.formulas.frequent_sources import FrequentColumn
from icestats.estimation.formulas.joint_sources import holds
from icestats.iceberg.filters.value_sets import Leaf
from icestats.iceberg.value_order import Mask
from icestats.stats.joint_statistics import list_trees

_NOISE = 4.0
"""Corrections within so many times the variance of chance are left out: twice its standard deviation."""


@dataclass(frozen=True, slots=True)
class SampledLeaf:
    """A predicate in the sampled rows."""

    share: float
    """Of the table's rows that satisfy it, by the best that is known."""
    meets: Mask
    """Which sampled rows do."""


def read_sampled(columns: Mapping[Leaf, FrequentColumn | None]) -> dict[Leaf, Mask]:
    """Return which sampled rows satisfy predicates, of those whose columns were sampled with the first one's.

    Parameters
    ----------
    columns : mapping of Leaf to FrequentColumn or None
        The column of each predicate; None: nothing is committed of it.
    """
    known = {leaf: column for leaf, column in columns.items() if column is not None and column.sampled}
    keys = [column.sample_key for column in known.values()]
    alike = [leaf for leaf, key in zip(known, keys, strict=True) if key == keys[0]]
    count = min((len(known[leaf].sampled) for leaf in alike), default=0)
    return {leaf: _find_met(leaf, known[leaf].sampled[:count]) for leaf in alike}


def _find_met(leaf: Leaf, sampled: Sequence[Any]) -> Mask:
    met = {value: holds(leaf.values, value) for value in set(sampled)}
    return np.array([met[value] for value in sampled])


def correct_all(leaves: Sequence[SampledLeaf], share: float, expect: Callable[[int, int], float]) -> float:
    """Return the share of the rows that satisfies all predicates, as the sample corrects what is expected.

    Parameters
    ----------
    leaves : sequence of SampledLeaf
        Two predicates or more.
    share : float
        Of the rows that satisfies all of them, as it is expected.
    expect : callable
        Gives that of two of them, by their places.

    Notes
    -----
    First each two predicates by themselves, then all at once. Of more than two those pairs correct that say most.
    """
    if len(leaves) > 2:
        factors = {
            (one, other): _find_factor((leaves[one], leaves[other]), expect(one, other))
            for one, other in combinations(range(len(leaves)), 2)
        }
        trees = list_trees({pair: abs(math.log(factor)) for pair, factor in factors.items()})
        share *= math.prod(factors[pair] for tree in trees for pair in tree)
    return share * _find_factor(leaves, share)


def _find_factor(leaves: Sequence[SampledLeaf], share: float) -> float:
    """Return what an expected share is to be multiplied by, seeing how many sampled rows satisfy the predicates.

    The rows that satisfy the rarest are known by other means: what the sample tells is how many of these satisfy the
    others.
    """
    rarest = min(leaves, key=lambda leaf: leaf.share)
    found = float(np.logical_and.reduce([leaf.meets for leaf in leaves]).sum())
    expected = share / max(rarest.share, 1e-300) * float(rarest.meets.sum())
    if not 0.0 < expected <= len(rarest.meets):
        return 1.0
    return shrink(max(found, 0.5) / expected, 1.0 / max(found, expected))


def shrink(factor: float, noise: float) -> float:
    """Return a factor without what may be chance; `noise` is the variance of its logarithm (Breiman's garrote).

    Examples
    --------
    >>> round(shrink(4.0, 0.001), 2), shrink(1.2, 0.1)
    (3.99, 1.0)
    """
    off = math.log(factor)
    return math.exp(off * max(0.0, 1.0 - _NOISE * noise / (off * off))) if off else 1.0
