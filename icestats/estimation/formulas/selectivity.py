"""Selectivities: which share of some groups' rows satisfies a predicate, estimated and bounded, and their combination.

Estimates of AND and OR take their parts for independent; bounds do not: they are Fréchet's inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from icestats.plan.filters.value_sets import All, Leaf, Tree

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Selectivity:
    """Shares of the rows of each group, between 0 and 1."""

    estimate: Floats
    """NaN: unknown."""
    lower: Floats
    upper: Floats
    reasons: tuple[str, ...] = ()
    """Why an estimate is unknown."""


def build_selectivity(estimate: Floats, lower: Floats, upper: Floats, reasons: tuple[str, ...] = ()) -> Selectivity:
    """Build a selectivity: bounds clipped to shares, the estimate to the bounds, and known where the bounds meet."""
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    # Sums of shares that were rounded may cross by as much.
    lower = np.minimum(lower, upper)
    settled = np.where(np.isnan(estimate) & (upper - lower < 1e-12), lower, estimate)
    clipped = np.clip(settled, lower, upper)
    return Selectivity(clipped, lower, upper, reasons if np.isnan(clipped).any() else ())


def build_constant(share: float, groups: int) -> Selectivity:
    """Build the selectivity of a predicate that is certain to hold for that share of each group's rows."""
    shares = np.full(groups, share)
    return Selectivity(shares, shares, shares)


def combine_leaves(predicate: Tree, groups: int, estimate_leaf: Callable[[Leaf], Selectivity]) -> Selectivity:
    """Combine the selectivities of a tree's leaves.

    Parameters
    ----------
    predicate : Leaf, All or Some
        The tree.
    groups : int
        How many groups of rows there are.
    estimate_leaf : callable
        Gives the selectivity of a leaf in each group.

    Returns
    -------
    Selectivity
        Independence for the estimate: a product for AND, one minus the product of the rest for OR. Fréchet's
        inequalities for the bounds: AND holds for at most the least of its parts, and at least for what they cannot
        all miss; OR for at least the largest part and at most their sum.

    Examples
    --------
    >>> half = build_constant(0.5, 1)
    >>> both = combine_all([half, half], 1)
    >>> float(both.estimate[0]), float(both.lower[0]), float(both.upper[0])
    (0.25, 0.0, 0.5)
    """
    if isinstance(predicate, Leaf):
        return estimate_leaf(predicate)
    parts = [combine_leaves(part, groups, estimate_leaf) for part in predicate.parts]
    return combine_all(parts, groups) if isinstance(predicate, All) else combine_some(parts, groups)


def combine_all(parts: Sequence[Selectivity], groups: int) -> Selectivity:
    """Combine the selectivities of the parts of an AND."""
    return reduce(_both, parts, build_constant(1.0, groups))


def combine_some(parts: Sequence[Selectivity], groups: int) -> Selectivity:
    """Combine the selectivities of the parts of an OR."""
    return reduce(_either, parts, build_constant(0.0, groups))


def _both(a: Selectivity, b: Selectivity) -> Selectivity:
    lower, upper = a.lower + b.lower - 1.0, np.minimum(a.upper, b.upper)
    return build_selectivity(a.estimate * b.estimate, lower, upper, _reasons(a, b))


def _either(a: Selectivity, b: Selectivity) -> Selectivity:
    estimate = 1.0 - (1.0 - a.estimate) * (1.0 - b.estimate)
    return build_selectivity(estimate, np.maximum(a.lower, b.lower), a.upper + b.upper, _reasons(a, b))


def _reasons(a: Selectivity, b: Selectivity) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a.reasons, *b.reasons)))
