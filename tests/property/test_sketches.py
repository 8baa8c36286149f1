"""What must hold of the sketches for any values and any damage."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.iceberg.metadata import Field
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.hashing import hash_values
from icestats.stats.histogram import build_histogram
from icestats.stats.kll import KllSketch
from icestats.stats.kll_layout import ITEM_TYPES
from icestats.stats.theta import ThetaSketch

LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ITEMS = {"long": LONGS, "double": DOUBLES, "string": TEXTS, "decimal": st.integers(-(10**37), 10**37)}
ARROW = {"long": pa.int64(), "double": pa.float64(), "string": pa.string()}


def to_array(item_type: str, items: list[Any]) -> pa.Array:
    if item_type != "decimal":
        return pa.array(items, ARROW[item_type])
    words = np.array([[n & (2**64 - 1), (n >> 64) & (2**64 - 1)] for n in items], np.uint64)
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(items), [None, pa.py_buffer(words.tobytes())])


def sketch_of(item_type: str, items: list[Any]) -> KllSketch:
    sketch = KllSketch(item_type)
    sketch.update(to_array(item_type, items))
    return sketch


typed_items = st.sampled_from(ITEM_TYPES).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(ITEMS[kind], min_size=1, max_size=150))
)


@given(st.lists(st.binary(max_size=70), max_size=40), st.integers(0, 5))
def test_any_bytes_hash_as_murmur3_of_them(values: list[bytes], skipped: int) -> None:
    expected = [mmh3.hash64(value, seed=9001, signed=False)[0] >> 1 for value in values[skipped:] if value]
    assert hash_values(pa.array(values, pa.binary()).slice(skipped), "binary").tolist() == expected


@given(st.lists(st.integers(1 - 10**38, 10**38 - 1), min_size=1, max_size=30))
def test_any_decimal_hashes_as_its_shortest_bytes(numbers: list[int]) -> None:
    sizes = [(n if n >= 0 else ~n).bit_length() // 8 + 1 for n in numbers]
    data = [n.to_bytes(size, "big", signed=True) for n, size in zip(numbers, sizes, strict=True)]
    expected = [mmh3.hash64(value, seed=9001, signed=False)[0] >> 1 for value in data]
    assert hash_values(to_array("decimal", numbers), "decimal(38, 0)").tolist() == expected


@given(st.lists(st.lists(st.integers(0, 3_000), max_size=200), max_size=8), st.randoms())
def test_theta_is_the_same_whatever_the_order_and_the_grouping(parts: list[list[int]], random: Any) -> None:
    whole = ThetaSketch(7)
    for part in parts:
        whole.update(hash_values(pa.array(part, pa.int64()), "long"))
    sketches = []
    for part in parts:
        sketch = ThetaSketch(7)
        sketch.update(hash_values(pa.array(part, pa.int64()), "long"))
        sketches.append(sketch)
    while len(sketches) > 1:
        random.shuffle(sketches)
        sketches[0].merge(sketches.pop())
    merged = sketches[0] if sketches else ThetaSketch(7)
    assert merged == whole
    assert ThetaSketch.from_bytes(merged.to_bytes(), 7) == whole


@given(typed_items)
def test_a_small_sketch_answers_exactly_and_survives_its_bytes(case: tuple[str, list[Any]]) -> None:
    item_type, items = case
    sketch = sketch_of(item_type, items)
    copy = KllSketch.from_bytes(item_type, sketch.to_bytes())
    ordered = sorted(items)
    for one in (sketch, copy):
        assert [item for item, _ in one.items()] == ordered
        assert (one.min_value, one.max_value, one.n) == (ordered[0], ordered[-1], len(items))
        ranks = [i / len(items) for i in range(1, len(items) + 1)]
        assert one.quantiles(ranks) == ordered


@given(typed_items, st.lists(st.integers(1, 10**6), min_size=150, max_size=150))
def test_counted_items_weigh_what_their_counts_say(case: tuple[str, list[Any]], counts: list[int]) -> None:
    item_type, items = case
    counts = counts[: len(items)]
    sketch = KllSketch(item_type)
    sketch.update_counted(items, counts)
    assert sketch.n == sum(counts)
    assert (sketch.min_value, sketch.max_value) == (min(items), max(items))
    assert KllSketch.from_bytes(item_type, sketch.to_bytes()).n == sum(counts)


@given(typed_items, st.integers(1, 30), st.sampled_from(["equi-width", "equi-height"]))
def test_histograms_cover_the_values_and_count_them_all(case: tuple[str, list[Any]], bins: int, kind: Any) -> None:
    item_type, items = case
    type_text = {"decimal": "decimal(38, 0)"}.get(item_type, item_type)
    made = build_histogram(sketch_of(item_type, items), column="c", type_text=type_text, bins=bins, kind=kind)
    assert sum(made.counts) == made.n == len(items)
    assert all(count >= 0 for count in made.counts)
    assert (made.edges[0], made.edges[-1]) == (min(items), max(items))
    assert all(a < b for a, b in pairwise(made.edges[:-1]))
    assert made.edges[-2] <= made.edges[-1]
    below = [sum(item < edge for item in items) for edge in made.edges[1:-1]]
    assert list(made.counts) == [b - a for a, b in pairwise([0, *below, len(items)])]
    assert made.to_arrow().num_rows == len(made.counts)


@given(
    st.lists(st.lists(st.none() | st.floats(width=32), max_size=20), min_size=1, max_size=5),
    st.sampled_from(["float", "double"]),
)
def test_exact_figures_of_floats_are_those_of_all_batches_together(
    parts: list[list[float | None]], type_text: str
) -> None:
    merged = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True))
    for part in parts:
        accumulator = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True))
        accumulator.update(pa.array(part, pa.float32()))
        merged.merge(accumulator)
    result = merged.result()
    values = [value for part in parts for value in part]
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    assert result.value_count == len(values)
    assert result.null_value_count == sum(value is None for value in values)
    assert result.nan_value_count == len(values) - result.null_value_count - len(numbers)
    ordered = sorted(numbers, key=lambda value: (value, math.copysign(1.0, value)))
    kind = np.dtype("<f4" if type_text == "float" else "<f8")
    if ordered:
        assert (result.min_value, result.max_value) == tuple(kind.type(v).tobytes() for v in (ordered[0], ordered[-1]))
    else:
        assert (result.min_value, result.max_value) == (None, None)


def _soundest(item_type: str) -> list[bytes]:
    many = {"string": [f"text é{i}" for i in range(900)]}.get(item_type, list(range(-450, 450)))
    return [sketch_of(item_type, many[:count]).to_bytes() for count in (0, 1, 30, 900)]


SOUND = [(item_type, data) for item_type in ITEM_TYPES for data in _soundest(item_type)]
damage = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4)


def damaged(data: bytes, changes: list[tuple[int, int]], near: int, cut: int) -> bytes:
    """Overwrite some bytes, half of them near the beginning, and cut off or add some at the end."""
    body = bytearray(data)
    for index, (place, value) in enumerate(changes):
        body[place % min(len(body), near if index % 2 else len(body))] = value
    return bytes(body[: len(body) + cut]) if cut < 0 else bytes(body) + b"\0" * cut


def attempt(read: Callable[[], Any]) -> tuple[Any, str]:
    """What was read and no reason, or nothing and why not; any other exception fails the test."""
    try:
        return read(), ""
    except ValueError as error:
        return None, str(error)


@settings(max_examples=600)
@given(st.sampled_from(SOUND), damage, st.sampled_from([0, 0, 0, 0, -1, -8, 1]))
def test_damaged_kll_bytes_are_refused_or_are_a_sound_sketch(
    case: tuple[str, bytes], changes: list[tuple[int, int]], cut: int
) -> None:
    item_type, data = case
    sketch, reason = attempt(lambda: KllSketch.from_bytes(item_type, damaged(data, changes, 40, cut)))
    assert "\n" not in reason
    if sketch is None:
        return
    assert sum(weight for _, weight in sketch.items()) == sketch.n
    if sketch.n:
        assert sketch.quantiles([0.0])[0] <= sketch.quantiles([0.5])[0] <= sketch.quantiles([1.0])[0]
    n = sketch.n
    sketch.merge(sketch_of(item_type, [""] if item_type == "string" else [1]))
    assert sketch.n == n + 1


THETAS = []
for count in (0, 1, 5, 6_000):
    made = ThetaSketch()
    made.update(hash_values(pa.array(range(count), pa.int64()), "long"))
    THETAS.append(made.to_bytes())
# Serial version 4 as Spark writes it: two hashes of 40 bits each.
THETAS.append(bytes([1, 4, 3, 40, 1, 0x1A, 0xCC, 0x93, 2]) + bytes(range(1, 11)))


@settings(max_examples=400)
@given(st.sampled_from(THETAS), damage, st.sampled_from([0, 0, 0, 0, -1, -8, 1]))
def test_damaged_theta_bytes_are_refused_or_are_a_sound_sketch(
    data: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    sketch, reason = attempt(lambda: ThetaSketch.from_bytes(damaged(data, changes, 24, cut)))
    assert "\n" not in reason
    if sketch is None:
        return
    lower, upper = sketch.bounds()
    assert 0 <= lower <= sketch.estimate() <= upper
    assert ThetaSketch.from_bytes(sketch.to_bytes()) == sketch


@pytest.mark.parametrize("item_type", ITEM_TYPES)
@given(data=st.binary(max_size=200))
def test_any_bytes_at_all_are_refused_or_read(item_type: str, data: bytes) -> None:
    for read in (lambda: KllSketch.from_bytes(item_type, data), lambda: ThetaSketch.from_bytes(data)):
        sketch, reason = attempt(read)
        assert (sketch is None) == bool(reason)
        assert "\n" not in reason
