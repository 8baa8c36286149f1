"""How many distinct values two columns have in common, from their Theta sketches."""

from __future__ import annotations

from dataclasses import dataclass

import datasketches

from icestats.stats.theta import ThetaSketch


@dataclass(frozen=True, slots=True)
class CommonValues:
    """Distinct values that are in both."""

    estimate: float
    lower: float
    """At 95.4 % confidence, as the other bound; both the exact count while both sketches are exact."""
    upper: float


def estimate_common_values(one: ThetaSketch, other: ThetaSketch) -> CommonValues:
    """Estimate how many distinct values two sketches have in common.

    Parameters
    ----------
    one, other : ThetaSketch
        Of columns of the same type: an int and a long are hashed differently.

    Notes
    -----
    The relative error grows as the part in common becomes smaller: of few values in common, few hashes are kept.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from icestats.stats.hashing import hash_values
    >>> one, other = ThetaSketch(), ThetaSketch()
    >>> one.update(hash_values(pa.array([1, 2, 3]), "long"))
    >>> other.update(hash_values(pa.array([2, 3, 4]), "long"))
    >>> estimate_common_values(one, other)
    CommonValues(estimate=2.0, lower=2.0, upper=2.0)
    """
    intersection = datasketches.theta_intersection()
    for sketch in (one, other):
        intersection.update(datasketches.compact_theta_sketch.deserialize(sketch.to_bytes()))
    common = intersection.get_result()
    return CommonValues(
        float(common.get_estimate()), float(common.get_lower_bound(2)), float(common.get_upper_bound(2))
    )
