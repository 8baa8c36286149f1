"""What one source of statistics estimates for a row filter, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.selectivity import Floats


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

    def with_actual(self, actual: int) -> SourceEstimate:
        """Return it with its q-error."""
        return replace(self, q_error=q_error(self.rows, actual))


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


DELETES = ("deduct", "positions", "ignore")
"""How row-level deletes count: all deducted, only position deletes and deletion vectors, none."""


@dataclass(frozen=True, slots=True)
class DeleteShares:
    """Which share of each group's records row-level deletes remove."""

    positions: Floats
    """Position deletes and deletion vectors, counted in their files."""
    equality: Floats
    """Equality deletes, estimated as filters."""
    equality_assumes: str = ""
    positions_assumes: str = ""
    """How position deletes and deletion vectors are deducted."""
    most_positions: float = 0.0
    """Records of the position deletes and deletion vectors that may be about any of the groups: no more rows of these
    are deleted by them."""
    most_own: Floats | None = None
    """Of each group the rows that what names it deletes, at most; None: nothing names one."""
    least_own: Floats | None = None
    """The same at least: of deletion vectors."""

    def take(self, groups: np.ndarray[tuple[int], np.dtype[np.int64]]) -> DeleteShares:
        """Return those of some groups."""
        most, least = (None if own is None else own[groups] for own in (self.most_own, self.least_own))
        return replace(
            self, positions=self.positions[groups], equality=self.equality[groups], most_own=most, least_own=least
        )
