"""What one source of statistics estimates for a row filter, and what it took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

DELETES = ("deduct", "positions", "ignore")
"""How row-level deletes count: all deducted, only position deletes and deletion vectors, none."""


@dataclass(frozen=True, slots=True)
class SourceEstimate:
    """One source's estimate. None is unknown, never 0; `reason` says why."""

    source: str
    rows: float | None = None
    """Rows that satisfy the filter, row-level deletes treated as the call says."""
    rows_lower: float | None = None
    """The truth is no less, as far as `bound` promises; None: no promise."""
    rows_upper: float | None = None
    bound: str = ""
    """What `rows_lower` and `rows_upper` rest on."""
    bytes: float | None = None
    """On-disk bytes of those rows in the projected columns: what a broadcast would carry."""
    scan_bytes: float | None = None
    """On-disk bytes, in the projected columns, of the files, manifests' files or partitions that cannot be skipped."""
    rows_deletes_ignored: float | None = None
    rows_positions_deducted: float | None = None
    """Position deletes and deletion vectors deducted, equality deletes ignored."""
    rows_deletes_deducted: float | None = None
    """Equality deletes taken for filters, too."""
    q_error: float | None = None
    assumes: str = ""
    reason: str = ""
    values_read: int = 0
    """Statistics that went into it."""
    bytes_read: int = 0
    """Metadata bytes that hold them."""
    duration_ms: float = 0.0
    """What it took; reading data files' statistics, or a sketch, is in it the first time, reading roll-ups is not."""

    def find_common(self, lower: float, upper: float) -> tuple[float, float]:
        """Return what its bounds leave of an interval; the first end is the larger where that is nothing."""
        low = lower if self.rows_lower is None else max(lower, self.rows_lower)
        return low, upper if self.rows_upper is None else min(upper, self.rows_upper)

    def with_actual(self, actual: int) -> SourceEstimate:
        """Return it with its q-error."""
        return replace(self, q_error=q_error(self.rows, actual))


def keep_within(found: SourceEstimate, proven: Iterable[SourceEstimate]) -> SourceEstimate:
    """Return an estimate within all bounds that some sources prove of the same question.

    Those that contradict what the sources before them prove are left out.
    """
    lower, upper = 0.0, math.inf
    for one in proven:
        low, high = one.find_common(lower, upper)
        if low <= high:
            lower, upper = low, high
    rows = None if found.rows is None else min(max(found.rows, lower), upper)
    if found.rows is None and lower == upper:
        return replace(found, rows=lower, rows_lower=lower, rows_upper=upper, reason="")
    return replace(found, rows=rows, rows_lower=lower, rows_upper=upper)


def q_error(estimate: float | None, actual: float) -> float | None:
    """Return how many times an estimate is off, in whichever direction; 1.0 is perfect.

    Both are taken for at least one row, as optimizers do, so that an estimate or a truth of 0 has a finite q-error: 0
    for 0 is perfect, 50 rows for none is 50. None: there is no estimate.

    Examples
    --------
    >>> q_error(50, 100), q_error(0, 0), q_error(0, 50), q_error(None, 1)
    (2.0, 1.0, 50.0, None)
    """
    if estimate is None or math.isnan(estimate):
        return None
    above, under = max(estimate, 1.0), max(actual, 1.0)
    return float(max(above / under, under / above))


def time_estimates(ask: Callable[[], list[SourceEstimate]]) -> list[SourceEstimate]:
    """Ask, and return each estimate with its part of the time that they took together."""
    begin = time.perf_counter()
    found = ask()
    duration_ms = (time.perf_counter() - begin) * 1000.0 / max(len(found), 1)
    return [replace(one, duration_ms=duration_ms) for one in found]


def build_counted(row_count: int, assumes: str, begin: float) -> SourceEstimate:
    """Build the truth beside the estimates: rows that were counted, since `time.perf_counter()` was `begin`."""
    rows = float(row_count)
    duration_ms = (time.perf_counter() - begin) * 1000.0
    return SourceEstimate("actual", rows, rows, rows, bound="counted", assumes=assumes, duration_ms=duration_ms)
