"""Ranks of KLL sketches are within the error that they state, however their values come."""

from __future__ import annotations

import math
from collections.abc import Callable

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.kll import KllSketch, find_rank_error, merge_parts, thin
from tests.kll_sketches import LONG_MAX, sketch_of, worst_rank_error


def partitioned(item_type: str, values: np.ndarray, partitions: int, batch: int) -> KllSketch:
    merged = KllSketch(item_type)
    for part in np.array_split(values, partitions):
        sketch = KllSketch(item_type)
        for start in range(0, len(part), batch):
            sketch.update(pa.array(part[start : start + batch]))
        merged.merge(sketch)
    return merged


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda random, n: random.random(n),
    "lognormal": lambda random, n: random.lognormal(0, 3, n),
    "zipf": lambda random, n: random.zipf(1.3, n).clip(0, 2**62),
    "sorted": lambda random, n: np.sort(random.integers(-(2**62), 2**62, n)),
    "reversed": lambda random, n: np.sort(random.normal(size=n))[::-1],
    "constant": lambda random, n: np.full(n, 42),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(("partitions", "batch"), [(1, 100_000), (1, 700), (7, 5_000), (1_000, 100), (10_000, 3)])
def test_ranks_are_within_the_stated_error_whatever_the_distribution_and_merges(
    name: str, partitions: int, batch: int
) -> None:
    """At 99 %: of 12 sketches held against the double-sided error, more than 2 beyond it would be a wrong sketch."""
    random = np.random.default_rng(11)
    limit = datasketches.kll_doubles_sketch(200).normalized_rank_error(True)
    rounds = {1_000: 3, 10_000: 1}.get(partitions, 12)
    beyond = 0
    for _ in range(rounds):
        values = DISTRIBUTIONS[name](random, 30_000)
        sketch = partitioned("double" if values.dtype == np.float64 else "long", values, partitions, batch)
        assert sketch.n == 30_000
        assert (sketch.min_value, sketch.max_value) == (values.min(), values.max())
        beyond += worst_rank_error(sketch, np.sort(values)) > limit
    assert beyond <= (2 if rounds == 12 else 1 if rounds == 3 else 0)


def test_the_stated_error_is_datasketches_own_and_zero_while_all_values_are_kept() -> None:
    few, many = (sketch_of("double", pa.array(np.arange(n, dtype=float))) for n in (200, 5_000))
    assert few.rank_error == 0.0
    assert many.rank_error == datasketches.kll_doubles_sketch(200).normalized_rank_error(False)
    assert sketch_of("long", pa.array(range(5_000)), k=800).rank_error < many.rank_error / 3


def test_merging_a_smaller_k_gives_the_larger_error() -> None:
    fine, coarse = (sketch_of("long", pa.array(range(50_000)), k) for k in (800, 100))
    fine.merge(coarse)
    assert fine.rank_error == coarse.rank_error
    assert (fine.n, coarse.n) == (100_000, 50_000)


@pytest.mark.parametrize("item_type", ["double", "long", "string"])
@pytest.mark.parametrize("count", [40, 400])
def test_parts_err_less_together_than_each(item_type: str, count: int) -> None:
    """They err independently. Of 40 all that they keep is kept, of 400 not."""
    values = np.random.default_rng(5).permutation(count * 500).reshape(count, 500).astype(float)
    arrays = [pa.array(part) if item_type == "double" else cast(part, item_type) for part in values]
    parts = [sketch_of(item_type, array, k=20) for array in arrays]
    merged = merge_parts(item_type, iter(parts))
    kept = sum(part.retained_count for part in parts)
    assert (merged.n, merged.retained_count == kept) == (count * 500, count == 40)
    of_merging = 0.0 if count == 40 else find_rank_error(4096)
    assert merged.rank_error == pytest.approx(parts[0].rank_error / math.sqrt(count) + of_merging)
    ordered = np.sort(np.concatenate([array.to_numpy(zero_copy_only=False) for array in arrays]))
    assert worst_rank_error(merged, ordered) < 2 * merged.rank_error
    merged.update(arrays[0])
    assert merged.rank_error == parts[0].rank_error


def test_parts_that_keep_all_are_exact_together() -> None:
    parts = [sketch_of("long", pa.array(range(start, start + 10))) for start in range(0, 100, 10)]
    assert (merge_parts("long", parts).rank_error, merge_parts("long", []).rank_error) == (0.0, 0.0)
    assert merge_parts("long", parts).ranks([49]) == [0.5]


def cast(values: np.ndarray, item_type: str) -> pa.Array:
    numbers = pa.array(values.astype(np.int64))
    return numbers if item_type == "long" else pa.array([f"{one:09d}" for one in numbers.to_pylist()])


def test_random_longs_of_all_64_bits_are_ranked_within_the_error() -> None:
    values = np.random.default_rng(2).integers(-LONG_MAX - 1, LONG_MAX, 200_000)
    values[:2] = LONG_MAX, -LONG_MAX - 1
    sketch = sketch_of("long", pa.array(values))
    assert worst_rank_error(sketch, np.sort(values)) < 2 * sketch.rank_error
    assert (sketch.min_value, sketch.max_value) == (-LONG_MAX - 1, LONG_MAX)


def random_texts(kind: str, count: int) -> list[str]:
    random = np.random.default_rng(3)
    if kind == "numbered":
        return [f"Customer#{v:012d}" for v in random.integers(0, 10**9, count)]
    if kind == "shared":
        return [f"{'p' if v % 2 else 'q'}{'-' * 90}{v:09d}" for v in random.integers(0, 10**9, count)]
    if kind == "nested":
        return ["x" * int(v) for v in random.integers(0, 200, count)]
    return ["".join(map(chr, random.choice([65, 233, 8364, 128_512, 0], 6))) for _ in range(count)]


@pytest.mark.parametrize("kind", ["numbered", "shared", "nested", "unicode"])
@pytest.mark.parametrize("batch", [500, 40_000])
def test_ranks_of_strings_are_within_the_error(kind: str, batch: int) -> None:
    texts = random_texts(kind, 40_000)
    sketch = KllSketch("string")
    for start in range(0, len(texts), batch):
        sketch.update(pa.array(texts[start : start + batch]))
    ordered = np.array(sorted(texts), dtype=object)
    assert (sketch.n, sketch.min_value, sketch.max_value) == (len(texts), ordered[0], ordered[-1])
    assert worst_rank_error(sketch, ordered) < 2 * sketch.rank_error


def test_a_batch_becomes_levels_that_ascend_and_weigh_as_much() -> None:
    levels = thin(40_007, 800, np.random.default_rng(1))
    assert sum(len(level) << height for height, level in enumerate(levels)) == 40_007
    assert all((np.diff(level) > 0).all() for level in levels)
    assert np.abs((levels[-1] >> (len(levels) - 1)) - np.arange(len(levels[-1]))).max() == 0


def test_which_value_stands_for_its_neighbours_is_random_and_unbiased() -> None:
    """Of 64 neighbours the mean pick over 400 draws is within 5 standard errors of their middle."""
    random = np.random.default_rng(12)
    offsets = np.array([thin(1_024, 16, random)[-1] for _ in range(400)]) % 64
    assert abs(offsets.mean() - 31.5) < 5 * 64 / 12**0.5 / offsets.size**0.5
    assert len(np.unique(offsets[:, 0])) > 32


def test_counted_values_may_be_many() -> None:
    values = np.random.default_rng(1).permutation(9_999).tolist()
    sketch = KllSketch("long")
    sketch.update_counted(values, [value % 100 + 1 for value in values])
    ordered = np.repeat(np.arange(9_999), np.arange(9_999) % 100 + 1)
    assert sketch.n == len(ordered)
    assert worst_rank_error(sketch, ordered) < 2 * sketch.rank_error
