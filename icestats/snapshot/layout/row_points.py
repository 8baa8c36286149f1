"""Where rows are taken to lie: at points that are spread evenly between the bounds of their files.

The numbers are of sequences of low discrepancy, not of chance: the same table always gives the same points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icestats.iceberg.value_order import Floats, Keys, Longs
from icestats.snapshot.evaluation.column_metrics import ColumnMetrics
from icestats.snapshot.layout.file_set import build_ranks

KNOWN, NULL, UNKNOWN = 0, 1, 2
"""What is known of a value."""
_MOST_POINTS = 1 << 21
"""Of all files together; a file has no more of them than rows."""
_STEPS = np.sqrt([2.0, 3, 5, 7, 11, 13, 17, 19, 23, 29])
"""A dimension each: multiples of such numbers, without their whole parts, spread evenly and independently."""


@dataclass(frozen=True, slots=True)
class RowPoints:
    """Where rows are taken to lie: a row a point in every array, those of a file one behind the other."""

    owner: Longs
    """The file."""
    place: Longs
    """Its number among those of the file, from 0 on."""
    counts: Longs
    """How many each file has."""

    def spread(self, dimension: int) -> Floats:
        """Return numbers from 0 to below 1, even over each file, and independent of those of other dimensions."""
        step = _STEPS[dimension]
        if dimension:
            return np.asarray(np.mod(np.arange(1, len(self.owner) + 1) * step, 1.0))
        # One of as many equal parts each, at a place in it that differs from file to file.
        first = np.mod(np.arange(1, len(self.counts) + 1) * step, 1.0)
        parts = (self.place + first[self.owner]) / self.counts[self.owner]
        return np.asarray(np.minimum(parts, np.nextafter(1.0, 0.0)))

    def share(self, totals: Longs) -> Longs:
        """Return what each point has of a total of its file; the shares add up to it."""
        return split_evenly(totals, self.counts)


def draw_points(record_counts: Longs) -> RowPoints:
    """Draw the points of files by their rows: a bounded number of all, of a file no more than it has rows."""
    counts = np.minimum(record_counts, max(_MOST_POINTS // max(len(record_counts), 1), 1))
    return RowPoints(*_number_parts(counts), counts)


def split_evenly(totals: Longs, counts: Longs) -> Longs:
    """Return each total in as many even parts.

    Examples
    --------
    >>> split_evenly(np.array([7, 2]), np.array([3, 1])).tolist()
    [3, 2, 2, 2]
    """
    owner, place = _number_parts(counts)
    return np.asarray((totals // counts)[owner] + (place < (totals % counts)[owner]))


def _number_parts(counts: Longs) -> tuple[Longs, Longs]:
    """Return for each of some parts which one it is of, and its number among those."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]


class ColumnPoints:
    """The values of a source column at the points.

    Whole numbers, dates and times are themselves. Others are places among all bounds: twice the place of a bound, and
    one more for what lies between it and the next.
    """

    def __init__(self, metrics: ColumnMetrics, points: RowPoints, dimension: int) -> None:
        self.metrics = metrics
        self.is_whole = isinstance(metrics.lower.values, np.ndarray) and metrics.type not in ("float", "double")
        lower, upper, self.bounds = self._find_bounds()
        counted = (metrics.null_counts > 0) & (metrics.value_counts > 0)
        nulls = np.where(counted, np.minimum(metrics.null_counts / np.maximum(metrics.value_counts, 1), 1.0), 0.0)
        unbounded = ~metrics.has_bounds & (nulls < 1.0)
        self.is_single = metrics.has_bounds & (lower == upper)
        spread, share = points.spread(dimension), nulls[points.owner]
        is_null = spread < share
        if not is_null.any():
            # Rows that are null are a partition, be they ever so few.
            may_be_null = metrics.may_be_null[points.owner]
            is_null[np.argmin(np.where(may_be_null, spread, 2.0))] = bool(may_be_null.any())
        self.state = np.where(is_null, NULL, np.where(unbounded[points.owner], UNKNOWN, KNOWN))
        rest = np.clip((spread - share) / np.maximum(1.0 - share, 1e-300), 0.0, np.nextafter(1.0, 0.0))
        self.values = self._lie(lower[points.owner], upper[points.owner], rest)

    def _find_bounds(self) -> tuple[Longs, Longs, Keys | None]:
        """Return the bounds of each file as numbers, the lower one first, and what the numbers are places of."""
        metrics, known = self.metrics, self.metrics.has_bounds
        if self.is_whole:
            low, high, bounds = metrics.lower.values, metrics.upper.values, None
        else:
            numbers, bounds = place_keys(metrics.lower.join(metrics.upper))
            low, high = np.split(numbers, 2)
        # Those of uuids may be the wrong way round.
        return np.where(known, np.minimum(low, high), 0), np.where(known, np.maximum(low, high), 0), bounds

    def _lie(self, lower: Longs, upper: Longs, spread: Floats) -> Longs:
        if self.is_whole:
            return _between(lower, upper, spread)
        return np.where(lower == upper, 2 * lower, 2 * _between(lower, np.maximum(upper - 1, lower), spread) + 1)


def _between(lower: Longs, upper: Longs, spread: Floats) -> Longs:
    """Return whole numbers from the lower to the upper one, both included.

    Examples
    --------
    >>> _between(np.array([5, 5]), np.array([6, 6]), np.array([0.4, 0.6])).tolist()
    [5, 6]
    """
    # Two numbers of 64 bits are further apart than 63 bits can say.
    span = upper.view(np.uint64) - lower.view(np.uint64)
    offset = np.minimum((spread * (span.astype(np.float64) + 1.0)).astype(np.uint64), span)
    return (lower.view(np.uint64) + offset).view(np.int64)


def place_keys(keys: Keys) -> tuple[Longs, Keys]:
    """Return the place of each key among the distinct ones in ascending order, and these."""
    numbers, distinct = build_ranks(keys.ranks()[0])
    heads = np.zeros(len(distinct), np.int64)
    heads[numbers] = np.arange(len(numbers))
    return numbers, keys.take(heads)
