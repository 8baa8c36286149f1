"""Equi-height bins: what an optimizer asserts of them, and what they promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.equi_height import MOST_BINS, build_equi_height, find_deviation
from icestats.stats.kll import KllSketch


def _sketch(item_type, values, k=200):
    sketch = KllSketch(item_type, k)
    sketch.update(pa.array(values))
    return sketch


@pytest.mark.parametrize("k", [8, 200, 2_000])
def test_bins_are_as_high_as_each_other(k):
    """Edges never fall, the ends are exact, each rank is within the sketch's error, and NDVs add up."""
    values = np.exp(np.random.default_rng(3).standard_normal(100_000))
    sketch = _sketch("double", values, k)
    bins = build_equi_height(sketch, 90_000, ends=(values.min(), values.max()))
    count = len(bins.ndvs)
    assert 1 <= count <= MOST_BINS
    assert (bins.edges[0], bins.edges[-1]) == (values.min(), values.max())
    assert all(low <= high for low, high in pairwise(bins.edges))
    ranks = [float((values <= edge).mean()) for edge in bins.edges[1:]]
    assert max(abs(rank - (i + 1) / count) for i, rank in enumerate(ranks)) <= sketch.rank_error + 1 / count
    assert sum(bins.ndvs) == pytest.approx(90_000, rel=0.01)


def test_a_frequent_value_fills_bins_and_an_item_kept_by_chance_does_not():
    random = np.random.default_rng(5)
    values = np.where(random.random(200_000) < 0.3, 7, random.integers(1_000, 9_000_000, 200_000))
    bins = build_equi_height(_sketch("long", values), 130_000, ends=(7, int(values.max())))
    repeated = [low for low, high in pairwise(bins.edges) if low == high]
    assert set(repeated) == {7}
    assert len(repeated) / len(bins.ndvs) == pytest.approx(0.3, abs=0.03)


def test_whole_numbers_have_no_more_distinct_values_than_fit():
    values = np.round(np.random.default_rng(2).lognormal(3.5, 0.95, 180_000)).astype(np.int64)
    ndv = len(np.unique(values))
    bins = build_equi_height(_sketch("long", values), ndv, ends=(int(values.min()), int(values.max())))
    assert all(count <= max(1, high - low) for (low, high), count in zip(pairwise(bins.edges), bins.ndvs, strict=True))


@pytest.mark.parametrize(
    ("values", "is_even"),
    [
        (np.arange(50_000), True),
        (np.arange(50_000) % 10, True),
        ([3, 3], True),
        (np.arange(50_000) ** 2, False),
        (np.arange(50_000) % 10 // 4 * 100, False),
        (np.where(np.arange(50_000) % 5, np.arange(50_000) % 10, 7), False),
    ],
)
def test_even_values_are_told_from_uneven_ones(values, is_even):
    sketch, values = _sketch("long", values), np.asarray(values)
    bins = build_equi_height(sketch, len(np.unique(values)), ends=(int(values.min()), int(values.max())))
    assert (find_deviation(bins) <= sketch.rank_error) == is_even
