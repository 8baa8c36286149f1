"""How many groups some rows have, from how the rows of a table are spread over its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icestats.iceberg.value_order import Floats

_MOST_KINDS = 512
MOST_GROUPS = 1e100
"""Of a kind: with so many, each row is in a group of its own, and floats multiply."""


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The groups of a table by some columns, as kinds of groups that have the same share of the rows."""

    shares: Floats
    """Of the rows, of each group of a kind."""
    counts: Floats
    """Groups of each kind."""

    @property
    def group_count(self) -> float:
        """All groups."""
        return float(self.counts.sum())

    def spread_over(self, other: GroupShares) -> GroupShares:
        """Return the groups by the columns of both, which are taken for independent."""
        counts = np.minimum(np.outer(self.counts, other.counts).ravel(), MOST_GROUPS)
        return _merge_alike(np.outer(self.shares * self.counts, other.shares * other.counts).ravel() / counts, counts)

    def count_met(self, row_count: float) -> float:
        """Return how many groups so many rows are expected to meet, drawn at random.

        Examples
        --------
        >>> round(build_shares([50.0, 50.0], 0.0, 0.0).count_met(1.0), 2)
        1.0
        """
        # Of no rows and a share of 1, the power is 0 times infinity.
        with np.errstate(divide="ignore", invalid="ignore"):
            # 1 - (1 - share)^rows, which is not 0 where a share is too small to be told from 0 beside 1.
            met = np.where(self.shares >= 1.0, 1.0, -np.expm1(row_count * np.log1p(-np.minimum(self.shares, 1.0))))
        return min(float((self.counts * met).sum()), row_count)


def build_shares(rows: Sequence[float], rest_rows: float, rest_groups: float) -> GroupShares:
    """Build the groups of a table.

    Parameters
    ----------
    rows : sequence of float
        Of each group that is counted by itself.
    rest_rows, rest_groups : float
        Of the others, which have as many rows as one another.
    """
    others = max(rest_groups, 1.0) if rest_rows > 0.0 and rest_groups > 0.0 else 0.0
    sizes = np.array([*rows, rest_rows / others] if others else [*rows], np.float64)
    counts = np.ones(len(sizes))
    if others:
        counts[-1] = others
    total = float((sizes * counts).sum())
    return _merge_alike(sizes / total if total else sizes, counts)


def _merge_alike(shares: Floats, counts: Floats) -> GroupShares:
    if len(shares) <= _MOST_KINDS:
        return GroupShares(shares, counts)
    order = np.argsort(shares)
    edges = np.linspace(0, len(shares), _MOST_KINDS + 1).astype(np.int64)[:-1]
    of_kind = np.add.reduceat(counts[order], edges)
    rows = np.add.reduceat((shares * counts)[order], edges)
    return GroupShares(rows / np.maximum(of_kind, 1e-300), of_kind)
