"""What one source of statistics estimates for a row filter, and what it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.formulas.group_evidence import Groups
from icestats.estimation.formulas.selectivity import Floats, Selectivity


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


def build_no_deletes(groups: int) -> DeleteShares:
    """Build the shares where nothing is deleted."""
    return DeleteShares(np.zeros(groups), np.zeros(groups))


def build_source_estimate(
    source: str,
    groups: Groups,
    selectivity: Selectivity,
    deletes: DeleteShares,
    *,
    how_deletes: str,
    columns: Sequence[int] | None,
    assumes: str,
    bound: str,
    values_read: int,
    bytes_read: int,
    of_live_rows: bool = False,
) -> SourceEstimate:
    """Add up a selectivity over its groups.

    Parameters
    ----------
    source : str
        The source's name.
    groups : Groups
        Groups that a scan cannot skip by partition, with the projected columns' sizes.
    selectivity : Selectivity
        Of the filter in each group.
    deletes : DeleteShares
        Of each group.
    how_deletes : {"deduct", "positions", "ignore"}
        Which result is `rows`.
    columns : sequence of int or None
        Field ids of the projected columns; None: all, sized as the files.
    assumes, bound : str
        What the estimate and its bounds rest on.
    values_read, bytes_read : int
        What it took.
    of_live_rows : bool
        Whether selectivities are shares of the rows that deletes leave, as those of sketches are.
    """
    kept, equal = 1.0 - deletes.positions, 1.0 - deletes.equality
    shares = {"ignore": np.ones(len(kept)), "positions": kept, "deduct": kept * equal}
    matching = groups.row_counts * selectivity.estimate
    totals = {how: _known_sum(matching * share) for how, share in shares.items()}
    sizes = groups.size_bytes if columns is None else _projected(groups, columns)
    if of_live_rows:
        live = groups.row_counts * shares[how_deletes]
        lower, upper = float((live * selectivity.lower).sum()), float((live * selectivity.upper).sum())
    else:
        lower, upper = _bounds(groups, selectivity, deletes, how_deletes)
    said = (
        (deletes.positions, "ignore", deletes.positions_assumes),
        (deletes.equality, "positions", deletes.equality_assumes),
    )
    for shares_of, without, text in said:
        if shares_of.any() and text and how_deletes not in ("ignore", without):
            assumes = f"{assumes}; {text}"
    unknown_sizes = columns is not None and totals[how_deletes] is not None and bool(np.isnan(sizes).any())
    reason = "; ".join(selectivity.reasons) or ("sizes of projected columns are unknown" if unknown_sizes else "")
    return SourceEstimate(
        source=source,
        rows=totals[how_deletes],
        rows_lower=round(lower, 6),
        rows_upper=round(upper, 6),
        bound=bound,
        bytes=_known_sum(sizes * selectivity.estimate * shares[how_deletes]),
        scan_bytes=_known_sum(np.where(selectivity.upper > 0.0, sizes, 0.0)),
        rows_deletes_ignored=totals["ignore"],
        rows_positions_deducted=totals["positions"],
        rows_deletes_deducted=totals["deduct"],
        assumes=assumes,
        reason=reason,
        values_read=values_read,
        bytes_read=bytes_read,
    )


def _projected(groups: Groups, columns: Sequence[int]) -> Floats:
    sizes = np.zeros(len(groups.row_counts))
    for field_id in columns:
        column = groups.columns.get(field_id)
        sizes = sizes + (np.nan if column is None else column.size_bytes)
    return sizes


def _bounds(groups: Groups, selectivity: Selectivity, deletes: DeleteShares, how: str) -> tuple[float, float]:
    rows = groups.row_counts
    lower, upper = float((rows * selectivity.lower).sum()), float((rows * selectivity.upper).sum())
    if how == "ignore":
        return lower, upper
    # Deleted rows may be matching ones, or none of them; a delete may also name a row that is gone already.
    if deletes.most_own is not None and deletes.least_own is not None:
        lower = float(np.maximum(rows * selectivity.lower - deletes.most_own, 0.0).sum())
        upper = float(np.minimum(rows * selectivity.upper, rows - deletes.least_own).sum())
    lower = max(0.0, lower - deletes.most_positions)
    return (0.0 if how == "deduct" and deletes.equality.any() else lower), upper


def _known_sum(values: Floats) -> float | None:
    total = float(values.sum())
    return None if math.isnan(total) else total
