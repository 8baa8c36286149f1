"""KLL sketches of arrays, and how far their ranks are from the truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestats.stats.kll import KllSketch

LONG_MAX = 2**63 - 1
PROBES = 199


def sketch_of(item_type: str, array: pa.Array, k: int = 200) -> KllSketch:
    sketch = KllSketch(item_type, k)
    sketch.update(array)
    return sketch


def worst_rank_error(sketch: KllSketch, ordered: np.ndarray) -> float:
    """The largest distance of a rank from the truth, at values spread over all ranks."""
    places = np.linspace(0, len(ordered) - 1, PROBES).astype(int)
    probes = np.unique(ordered[places]).tolist()
    inclusive = np.searchsorted(ordered, probes, "right") / len(ordered)
    exclusive = np.searchsorted(ordered, probes, "left") / len(ordered)
    return max(
        float(np.abs(np.array(sketch.ranks(probes)) - inclusive).max()),
        float(np.abs(np.array(sketch.ranks(probes, inclusive=False)) - exclusive).max()),
    )
