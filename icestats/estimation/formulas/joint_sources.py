"""Estimates of predicates on columns that go together: by common pairs, and by how far one column decides the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from icestats.estimation.formulas.common_keys import count_key
from icestats.estimation.formulas.frequent_sources import FrequentColumn, find_interval, hash_items
from icestats.estimation.formulas.selectivity import LeafGroup, Selectivity, build_selectivity
from icestats.estimation.formulas.sketch_sources import SketchedRows
from icestats.iceberg.filters.value_sets import Leaf, ValueSet, build_item
from icestats.iceberg.types import decode_value
from icestats.iceberg.value_order import Floats
from icestats.stats.joint_statistics import JointItem, JointStatistics, hash_pairs, list_trees

_HALVINGS = 60
_MOST_PAIRS = 65_536


@dataclass(frozen=True)
class JointColumns:
    """Two columns together, as they are committed."""

    statistics: JointStatistics
    rows: SketchedRows
    """The live rows as they were counted, one group, and what has changed since."""
    size_bytes: int
    """Of the committed blob."""
    columns: tuple[FrequentColumn | None, FrequentColumn | None]
    """Their common values, and the sampled rows; None: none are committed."""

    @cached_property
    def items(self) -> list[tuple[tuple[Any, Any], JointItem]]:
        """The common pairs, with their values as `value_sets.build_item` has them; None: null."""
        types = self.statistics.types
        return [((_item(types[0], i.pair[0]), _item(types[1], i.pair[1])), i) for i in self.statistics.items]

    @cached_property
    def decider(self) -> tuple[int, float]:
        """Which of the columns decides the other, whichever does more, and how far."""
        side = max((0, 1), key=self.statistics.strength)
        return side, self.statistics.strength(side)

    def count_values(self, side: int, values: ValueSet) -> float:
        """Return how many values a predicate leaves of a column: an estimate."""
        column = self.columns[side]
        return _count_points(values) if column is None else count_key(column, values).distinct + values.has_null

    def rows_of(self, side: int, value: Any, least: int) -> float:
        """Return the rows of a value of a column, common pairs or not; `least`: where it is not a common value."""
        column = self.columns[side]
        if column is not None and value is None:
            return float(column.null_count)
        item = None if column is None else column.by_value.get(value)
        return float(least) if item is None else (item.lower + item.upper) / 2.0


def _item(type_text: str, value: bytes | None) -> Any:
    return None if value is None else build_item(type_text, decode_value(type_text, value))


def holds(values: ValueSet, value: Any) -> bool:
    """Return whether a value, or null (None), is in a set."""
    if value is None:
        return values.has_null
    if isinstance(value, float) and math.isnan(value):
        return values.has_nan
    return find_interval(values.intervals, value) is not None


def estimate_pair(found: JointColumns, leaves: tuple[Leaf, Leaf], shares: tuple[float, float]) -> Selectivity:
    """Estimate which share of the rows satisfies two predicates, by the rows of common pairs.

    Parameters
    ----------
    found : JointColumns
        The columns, in the order of the leaves.
    leaves : tuple of Leaf
        The predicates.
    shares : tuple of float
        The estimated share of the rows that satisfies each.

    Returns
    -------
    Selectivity
        One group. Bounds hold for certain, of the rows that were counted. A pair that is not among the common ones has
        those that its counters say. Where a range is asked for, or there are no counters, it has those that one column
        decides, else those of two independent values.
    """
    statistics, one, other = found.statistics, leaves[0].values, leaves[1].values
    lower = upper = tracked = matched_points = 0
    beside: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    of_one, of_other = (
        {value: holds(values, value) for value in {pair[side] for pair, _ in found.items}}
        for side, values in enumerate((one, other))
    )
    for (first, second), item in found.items:
        tracked += item.lower
        in_first, in_second = of_one[first], of_other[second]
        beside[0][first] += item.lower * in_first
        beside[1][second] += item.lower * in_second
        if in_first and in_second:
            lower, upper, matched_points = lower + item.lower, upper + item.upper, matched_points + 1
    total = max(statistics.row_count, 1)
    rest = max(total - tracked, 0)
    pairs = _count_points(one) * _count_points(other)
    most = min(float(rest), max(pairs - matched_points, 0) * float(statistics.others_at_most))
    rows = (lower + upper) / 2.0
    listed = list_values(one), list_values(other)
    uncommon = None if listed[0] is None or listed[1] is None else count_uncommon(found, listed[0], listed[1])
    if uncommon is not None:
        most = min(most, float(uncommon[1].sum()))
        # What is asked for is there, where it may be.
        rows += float(np.clip(uncommon[0].sum(), 0.0 if matched_points else min(most, 1.0), most))
    elif rest:
        left = [max(share * total - known.total(), 0.0) for share, known in zip(shares, beside, strict=True)]
        values = [found.count_values(side, leaf.values) for side, leaf in enumerate(leaves)]
        rows += min(_estimate_rest(found, rest, left, values, beside), most)
    bounds = np.asarray([lower / total]), np.asarray([min(upper + most, total) / total])
    return build_selectivity(np.asarray([rows / total]), *bounds)


def count_uncommon(found: JointColumns, one: Sequence[Any], other: Sequence[Any]) -> tuple[Floats, Floats] | None:
    """Return the rows of each value of one column with each of the other, in those pairs that are not common ones.

    Parameters
    ----------
    found : JointColumns
        The columns.
    one, other : sequence
        Their values, as `value_sets.build_item` has them; None: null.

    Returns
    -------
    tuple of numpy.ndarray, or None
        Estimated, and at most, a row for each value of the first column; None: they are not counted.
    """
    statistics, counters = found.statistics, found.statistics.others
    hashes = [hash_items(values, kind) for values, kind in zip((one, other), statistics.types, strict=True)]
    if counters is None or hashes[0] is None or hashes[1] is None or not len(one) * len(other) <= _MOST_PAIRS:
        return None
    pairs = hash_pairs(hashes[0][:, None], hashes[1][None, :])
    is_other = ~np.isin(pairs, statistics.hash_items())
    most = np.minimum(counters.at_most(pairs), statistics.others_at_most) * is_other
    estimate = counters.estimate(pairs.ravel(), statistics.ndv - len(statistics.items)).reshape(pairs.shape)
    return np.minimum(estimate * is_other, most), most.astype(np.float64)


def list_values(values: ValueSet) -> list[Any] | None:
    """Return the values of a set; None: there is a range, or NaN."""
    if values.ranges or values.has_nan:
        return None
    return [*(point.low[1] for point in values.points), *([None] if values.has_null else [])]


def _estimate_rest(
    found: JointColumns, rest: int, left: Sequence[float], values: Sequence[float], beside: Sequence[Counter[Any]]
) -> float:
    """Return the rows of two predicates that are of no common pair, of those that `left` has of each.

    Of a value that has its partner among the common pairs (`beside`), others are noise; of another, the one that is
    asked for may be it, as far as one column decides the other.
    """
    side, strength = found.decider
    other = left[1 - side]
    known = {value: rows for value, rows in beside[side].items() if rows}
    noise = sum(max(found.rows_of(side, value, rows) - rows, 0.0) for value, rows in known.items())
    noise = min(noise, left[side])
    open_rows, open_values = left[side] - noise, max(values[side] - len(known), 1.0)
    rows = noise * other / rest + max(open_rows * other / rest, strength * min(open_rows / open_values, other))
    return min(rows, left[side], other)


def _count_points(values: ValueSet) -> float:
    # Statistics of before NaN was one value may have several.
    return math.inf if values.ranges or values.has_nan else float(len(values.points) + values.has_null)


def group_leaves(
    leaves: Sequence[Leaf],
    joints: Mapping[tuple[int, int], JointColumns],
    estimate_leaf: Callable[[Leaf], Selectivity],
    to_today: Callable[[Selectivity, SketchedRows], Selectivity],
) -> list[LeafGroup]:
    """Estimate the predicates of an AND whose columns have statistics together.

    Parameters
    ----------
    leaves : sequence of Leaf
        The predicates of one AND, each on another column.
    joints : mapping
        Columns together, by their field ids.
    estimate_leaf : callable
        Gives the selectivity of a predicate over the table: one group.
    to_today : callable
        Brings shares of the rows that were counted to those of today.

    Returns
    -------
    list of LeafGroup
        No predicate is in two of them. Of more than two columns, those pairs are used that say most: a tree of pairs,
        whose columns are taken for independent where no pair joins them.
    """
    by_field = {leaf.field_id: leaf for leaf in leaves}
    single = {leaf: estimate_leaf(leaf) for leaf in leaves}
    edges = []
    for (one, other), found in joints.items():
        if one in by_field and other in by_field:
            pair = by_field[one], by_field[other]
            shares = (float(single[pair[0]].estimate[0]), float(single[pair[1]].estimate[0]))
            if not any(map(math.isnan, shares)):
                both = to_today(estimate_pair(found, pair, shares), found.rows)
                edges.append((_log_factor(both, shares), pair, both))
    by_pair = {edge[1]: edge for edge in edges}
    trees = list_trees({pair: abs(edge[0]) for pair, edge in by_pair.items()})
    return [_build_group(leaves, single, [by_pair[pair] for pair in tree]) for tree in trees]


def _log_factor(both: Selectivity, shares: tuple[float, float]) -> float:
    expected = shares[0] * shares[1]
    estimate = float(both.estimate[0])
    if not expected:
        return 0.0
    return math.log(max(estimate, 1e-12) / expected)


def _build_group(
    leaves: Sequence[Leaf],
    single: Mapping[Leaf, Selectivity],
    tree: Sequence[tuple[float, tuple[Leaf, Leaf], Selectivity]],
) -> LeafGroup:
    own = [leaf for leaf in leaves if any(leaf in edge[1] for edge in tree)]
    parts = [single[leaf] for leaf in own]
    # As logarithms: the product alone may be too large for a float.
    factor = sum(edge[0] for edge in tree) + sum(math.log(max(float(part.estimate[0]), 1e-300)) for part in parts)
    estimate = math.exp(min(factor, 0.0)) if all(float(part.estimate[0]) for part in parts) else 0.0
    lower = max(0.0, sum(float(part.lower[0]) for part in parts) - len(parts) + 1.0)
    if len(own) == 2:
        lower = max(lower, float(tree[0][2].lower[0]))
    upper = min(float(part.upper[0]) for part in (*parts, *(edge[2] for edge in tree)))
    return LeafGroup(tuple(own), build_selectivity(np.asarray([estimate]), np.asarray([lower]), np.asarray([upper])))


def scale_to(wanted: float, shares: Floats, row_counts: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return shares times a factor, within bounds, so that they make up a number of rows.

    Examples
    --------
    >>> rows, none, all = np.array([100.0, 100.0]), np.zeros(2), np.ones(2)
    >>> scale_to(60.0, np.array([0.2, 0.1]), rows, none, all).round(3).tolist()
    [0.4, 0.2]
    """
    known = np.where(np.isnan(shares), (lower + upper) / 2.0, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(known > 0.0, upper / known, 0.0).max(initial=1.0)
    low, high = 0.0, float(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        made = float((row_counts * np.clip(middle * known, lower, upper)).sum())
        low, high = (middle, high) if made < wanted else (low, middle)
    return np.clip(high * known, lower, upper)


def bound_all(parts: Sequence[Selectivity]) -> tuple[Floats, Floats, Floats]:
    """Return the product of estimates, and Fréchet's bounds of all parts together, in each group."""
    estimate = reduce(np.multiply, [part.estimate for part in parts])
    lower = np.maximum(reduce(np.add, [part.lower for part in parts]) - len(parts) + 1.0, 0.0)
    return estimate, lower, reduce(np.minimum, [part.upper for part in parts])
