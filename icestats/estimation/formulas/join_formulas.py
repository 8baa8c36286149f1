"""Estimates of an equi-join's rows."""

from __future__ import annotations

from dataclasses import dataclass

from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.stats.theta import ThetaSketch, estimate_common_values


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of an equi-join."""

    name: str
    """Of the key column, for messages."""
    type: str
    """Iceberg's, of the key column."""
    row_count: float | None
    """Rows whose key is neither null nor filtered out; None: unknown."""
    theta: ThetaSketch | None
    """Of the key column; None: none is committed."""
    theta_size_bytes: int = 0


def estimate_join_by_ndv(left: JoinSide, right: JoinSide) -> SourceEstimate:
    """Estimate a join's rows by the classic formula: rows x rows / the greater number of distinct keys."""
    source, reason = "join-ndv", _why_unknown(left, right)
    if reason or left.theta is None or right.theta is None or left.row_count is None or right.row_count is None:
        return SourceEstimate(source, reason=reason)
    keys = max(left.theta.estimate(), right.theta.estimate())
    return SourceEstimate(
        source,
        rows=left.row_count * right.row_count / keys if keys else 0.0,
        assumes="every key of the side with fewer is on the other, each with as many rows as another",
        values_read=4,
        bytes_read=left.theta_size_bytes + right.theta_size_bytes,
    )


def estimate_join_by_theta(left: JoinSide, right: JoinSide) -> SourceEstimate:
    """Estimate a join's rows by the keys that both sides have, counted by intersecting their Theta sketches.

    The number of common keys is within its bounds at 95.4 % confidence. The number of rows has no bounds: it rests on
    each key having as many rows as another.
    """
    source, reason = "join-theta", _why_unknown(left, right)
    if not reason and left.type != right.type:
        reason = (
            f"{left.name} is {left.type} and {right.name} {right.type}: Theta hashes values of each type its own way"
        )
    if reason or left.theta is None or right.theta is None or left.row_count is None or right.row_count is None:
        return SourceEstimate(source, reason=reason)
    common = estimate_common_values(left.theta, right.theta)
    distinct = left.theta.estimate() * right.theta.estimate()
    rows_a_key = left.row_count * right.row_count / distinct if distinct else 0.0
    return SourceEstimate(
        source,
        rows=rows_a_key * common.estimate,
        assumes=f"{common.estimate:,.0f} keys ({common.lower:,.0f} to {common.upper:,.0f} at 95.4 % confidence) are on "
        "both sides, each with as many rows as another of its side",
        values_read=len(left.theta.hashes) + len(right.theta.hashes) + 2,
        bytes_read=left.theta_size_bytes + right.theta_size_bytes,
    )


def _why_unknown(left: JoinSide, right: JoinSide) -> str:
    for side in (left, right):
        if side.theta is None:
            return f"no Theta sketch of {side.name} is committed"
        if side.row_count is None:
            return f"how many rows of {side.name} are left by its filter is unknown"
    return ""
