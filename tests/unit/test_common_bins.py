"""Bins around common values, asked as Spark's `EstimationUtils.numBinsHoldingRange` asks them."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.equi_height import MOST_BINS, build_around_common, build_equi_height
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_beside
from icestats.stats.reported_statistics import _bin_ends

RANDOM = np.random.default_rng(3)
ROWS = 100_000


def _zipf(exponent, count=20_000):
    shares = np.cumsum(np.arange(1, count + 1) ** -exponent)
    return RANDOM.permutation(count)[np.searchsorted(shares, RANDOM.random(ROWS) * shares[-1])]


COLUMNS = {
    "one of 97 %": np.where(RANDOM.random(ROWS) < 0.97, 500, RANDOM.integers(0, 100_000, ROWS)),
    "the least and the largest": RANDOM.choice([0, 0, 5, 6, 90, 90, 90], ROWS),
    "a power law": _zipf(1.0),
    "a steep power law": _zipf(2.0),
    "few, far apart": RANDOM.integers(0, 20, ROWS) ** 3,
    "as many as a sketch keeps": RANDOM.integers(0, 1_000, ROWS) * 1_000,
}


def _build(type_text, values, kept=1_024, **options):
    sketch = KllSketch("double" if type_text in ("float", "double") else "long")
    sketch.update(pa.array(values))
    counts = Counter(values.tolist())
    common = {value: float(count) for value, count in counts.most_common(kept)}
    options = {"common": common, "beside": partial(item_beside, type_text)} | options
    ends = min(counts), max(counts)
    return build_around_common(sketch, len(counts), ends=ends, **options), counts


def _share(ends, bins, value):
    """Return what Spark estimates for an equality, and fail where Spark's assertions do."""
    lows, highs = ends
    first = next(place for place, high in enumerate(highs) if value <= high)
    last = max(place for place, low in enumerate(lows) if value >= low)
    assert first <= last, f"no bin holds {value}"

    def hold(place, low, high):
        assert lows[place] <= low <= high <= highs[place]
        if lows[place] == highs[place]:
            return 1.0
        return 1 / bins.ndvs[place] if low == high else min((high - low) / (highs[place] - lows[place]), 1.0)

    if first == last:
        return hold(first, value, value) / len(lows)
    return (hold(first, value, highs[first]) + hold(last, lows[last], value) + last - first - 1) / len(lows)


@pytest.mark.parametrize("title", COLUMNS)
def test_a_value_with_bins_of_its_own_has_nearly_its_share(title):
    """Off by half a bin, by what the bins beside it add, and by bins that are added for what lies between values."""
    bins, counts = _build("long", COLUMNS[title])
    assert bins.common
    ends = _bin_ends("long", bins)
    for value in list(bins.common)[:200]:
        assert _share(ends, bins, value) == pytest.approx(counts[value] / ROWS, abs=1.1 / len(bins.ndvs), rel=0.06)
    assert all(low <= high for low, high in pairwise(bins.edges))
    assert sum(count for low, count in zip(bins.edges, bins.ndvs, strict=False) if low not in bins.common) <= len(
        counts
    )


@pytest.mark.parametrize("title", COLUMNS)
def test_each_value_between_the_ends_is_in_a_bin(title):
    bins, _ = _build("long", COLUMNS[title])
    low, high, ends = bins.edges[0], bins.edges[-1], _bin_ends("long", bins)
    own = [value for one in list(bins.common)[:60] for value in (one, min(one + 1, high))]
    for value in [*RANDOM.integers(low, high + 1, 100).tolist(), *own, low, high]:
        assert 0 < _share(ends, bins, value) <= 1


@pytest.mark.parametrize("type_text", ["float", "double"])
def test_neighbours_of_a_floating_point_value_are_in_a_bin(type_text):
    """0.0 and the smallest value beside it; a NaN counts to the largest value."""
    kind = np.float32 if type_text == "float" else np.float64
    values = np.where(RANDOM.random(ROWS) < 0.5, kind(0), RANDOM.standard_normal(ROWS).astype(kind))
    bins, counts = _build(type_text, values, added=[(float(values.max()), 1_000.0)])
    assert list(bins.common) == [0.0]
    assert _share(_bin_ends(type_text, bins), bins, -0.0) == pytest.approx(
        counts[0.0] / (ROWS + 1_000), abs=1.5 / len(bins.ndvs)
    )
    for item in (0.0, float(values.max()), float(values.min()), 0.25):
        for way in (-1, 1):
            beside = min(max(item_beside(type_text, item, way), bins.edges[0]), bins.edges[-1])
            assert 0 < _share(_bin_ends(type_text, bins), bins, beside) <= 1


@pytest.mark.parametrize("title", COLUMNS)
def test_joins_find_few_pairs_of_bins_of_the_same_value(title):
    """A join in Spark takes time by the square of the number of these pairs."""
    bins, counts = _build("long", COLUMNS[title])
    assert sum(count * count for count in bins.common.values()) <= 6_500
    assert len(bins.ndvs) <= 1.2 * MOST_BINS
    sketch = KllSketch("long", 2_000)
    sketch.update(pa.array(COLUMNS[title]))
    plain = build_equi_height(sketch, len(counts), ends=(min(counts), max(counts)))
    repeated = Counter(low for low, high in pairwise(plain.edges) if low == high)
    assert sum(count * count for count in repeated.values()) <= 6_500


@pytest.mark.parametrize(
    "common",
    [
        {},
        {-5: 1e6, 10**9: 1e6},
        dict.fromkeys(range(1000), 1.0),
        {math.nan: 1e5},
        {5: 0.0},
    ],
    ids=["none", "outside", "rare", "NaN", "no rows"],
)
def test_there_are_none_where_no_common_value_fills_half_a_bin(common):
    bins, _ = _build("long", RANDOM.integers(0, 1_000_000, ROWS), common=common)
    assert bins is None


def test_counts_that_contradict_the_sketch_make_bins_all_the_same():
    """More common values than there are values, each as common as all of them together."""
    bins, _ = _build("long", COLUMNS["a power law"], common=dict.fromkeys(range(0, 20000, 2), 1000000000.0))
    assert bins is None or len(bins.ndvs) <= 20_000
    bins, _ = _build("long", COLUMNS["one of 97 %"], common={500: 1e12, 501: 1e12})
    assert [_share(_bin_ends("long", bins), bins, value) for value in (500, 501)] == pytest.approx([0.5, 0.5], abs=0.05)
