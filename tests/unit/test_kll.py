"""KLL sketches take every value that they are given, and answer by the definition."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_beside, item_type_of
from icestats.stats.kll_layout import ITEM_TYPES, TEXT_LENGTH
from tests.kll_sketches import LONG_MAX, sketch_of


@pytest.mark.parametrize("item_type", ["double", "long", "decimal"])
@pytest.mark.parametrize("count", [1, 2, 199, 200, 4_095, 4_096, 70_001])
def test_no_number_is_lost(item_type: str, count: int) -> None:
    numbers = range(-7, count - 7)
    array = pa.array(map(Decimal, numbers), pa.decimal128(38, 0)) if item_type == "decimal" else pa.array(numbers)
    sketch = sketch_of(item_type, array)
    assert (sketch.n, sketch.min_value, sketch.max_value) == (count, -7, count - 8)
    assert sum(weight for _, weight in sketch.items()) == count


def test_arrays_of_more_than_a_million_are_taken_whole() -> None:
    sketch = sketch_of("long", pa.array(np.arange(2_100_003)[::-1].copy()))
    assert (sketch.n, sketch.min_value, sketch.max_value) == (2_100_003, 0, 2_100_002)


def test_nulls_and_nan_stay_out() -> None:
    sketch = sketch_of("double", pa.array([1.0, None, float("nan"), float("inf")]))
    assert (sketch.n, sketch.min_value, sketch.max_value) == (2, 1.0, float("inf"))
    assert sketch_of("double", pa.array([float("nan")] * 10_000)).n == 0


def test_longs_beyond_the_precision_of_doubles_stay_exact() -> None:
    values = [2**53 + 1, 2**53, -(2**53) - 1, 0, 1, -1, 2**62 + 1]
    assert sorted(item for item, _ in sketch_of("long", pa.array(values)).items()) == sorted(values)


@pytest.mark.parametrize(
    "value", [2**53 - 1, 2**53 + 1, -(2**53) - 1, 0x7FE0 << 48, 0x7FF0 << 48, LONG_MAX, -LONG_MAX, -LONG_MAX - 1]
)
def test_the_ends_of_64_bits_are_exact_and_survive_bytes_and_merges(value: int) -> None:
    sketch = sketch_of("long", pa.array([value, 0]))
    assert sorted(item for item, _ in sketch.items()) == sorted([value, 0])
    copy = KllSketch.from_bytes("long", sketch.to_bytes())
    assert (copy.min_value, copy.max_value) == (min(value, 0), max(value, 0))
    plain = sketch_of("long", pa.array(range(10_000)))
    plain.merge(copy)
    copy.merge(sketch_of("long", pa.array(range(10_000))))
    for merged in (plain, copy):
        assert (merged.n, merged.min_value, merged.max_value) == (10_002, min(value, 0), max(value, 9_999))
        merged.update(pa.array([1, 2, 3]))
        assert merged.n == 10_005


@pytest.mark.parametrize(
    ("array", "items"),
    [
        (pa.array([dt.date(1970, 1, 3)]), [2]),
        (pa.array([dt.time(0, 0, 1)], pa.time64("us")), [1_000_000]),
        (pa.array([3], pa.timestamp("us", "UTC")), [3]),
        (pa.array([3], pa.timestamp("ns")), [3]),
        (pa.array([True, False]), [0, 1]),
        (pa.array([Decimal("1.25"), Decimal("-0.01")], pa.decimal128(9, 2)), [-1, 125]),
        (pa.array([7], pa.uint8()), [7]),
        (pa.array([8, 7, None], pa.int16()).slice(1), [7]),
        (pa.array([7, 7]).dictionary_encode(), [7, 7]),
    ],
    ids=str,
)
def test_all_that_is_an_integer_at_heart_goes_into_a_sketch_of_longs(array: pa.Array, items: list[int]) -> None:
    assert [item for item, _ in sketch_of("long", array).items()] == items


@pytest.mark.parametrize(
    ("item_type", "array"),
    [
        ("long", pa.array(["a"])),
        ("long", pa.array([2**63], pa.uint64())),
        ("long", pa.array([1.5])),
        ("long", pa.array([Decimal(1)], pa.decimal128(19, 0))),
        ("double", pa.array(["a"])),
        ("decimal", pa.array([1])),
        ("string", pa.array([[1]])),
    ],
    ids=str,
)
def test_values_of_another_kind_are_refused(item_type: str, array: pa.Array) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        sketch_of(item_type, array)
    assert "\n" not in str(caught.value)


def test_decimals_beyond_64_bits_are_exact() -> None:
    values = [10**37, -(10**37), 0, 2**64, -(2**64) - 1]
    sketch = sketch_of("decimal", pa.array([Decimal(v).scaleb(-2) for v in values], pa.decimal128(38, 2)))
    assert [item for item, _ in sketch.items()] == sorted(values)
    copy = KllSketch.from_bytes("decimal", sketch.to_bytes())
    assert [item for item, _ in copy.items()] == sorted(values)


def test_strings_are_ordered_as_their_utf8_bytes_are() -> None:
    texts = ["\uffff", "\U0001f600", "z", "é", ""]
    sketch = sketch_of("string", pa.array(texts))
    assert [item for item, _ in sketch.items()] == sorted(texts, key=str.encode)


def test_long_strings_are_cut_to_their_documented_length() -> None:
    sketch = sketch_of("string", pa.array(["é" * 1_000, "a"]))
    assert sketch.max_value == "é" * TEXT_LENGTH
    sketch.update_counted(["ü" * 1_000], [3])
    assert sketch.max_value == "ü" * TEXT_LENGTH
    assert sketch.n == 5


def test_counted_values_are_exact() -> None:
    sketch = KllSketch("string")
    sketch.update_counted(["b", "a", "c"], [70_000, 1, 2**33])
    total = 70_000 + 1 + 2**33
    assert sketch.n == total
    assert sketch.ranks(["a", "b", "c"]) == [1 / total, 70_001 / total, 1.0]


def test_quantiles_of_few_values_are_those_of_the_definition() -> None:
    sketch = sketch_of("long", pa.array(range(1, 101)))
    assert sketch.quantiles([0.0, 0.07, 0.1, 0.5, 0.501, 0.99, 1.0]) == [1, 7, 10, 50, 51, 99, 100]
    assert sketch.ranks([0, 1, 50, 100, 101]) == [0.0, 0.01, 0.5, 1.0, 1.0]
    assert sketch.ranks([0, 1, 50, 100, 101], inclusive=False) == [0.0, 0.0, 0.49, 0.99, 1.0]


def test_an_empty_sketch_has_no_quantiles_but_bytes() -> None:
    for item_type in ITEM_TYPES:
        sketch = KllSketch.from_bytes(item_type, KllSketch(item_type).to_bytes())
        assert (sketch.n, sketch.min_value, sketch.max_value, sketch.rank_error) == (0, None, None, 0.0)
        assert list(sketch.items()) == []
        for ask in (sketch.quantiles, sketch.ranks):
            with pytest.raises(ValueError, match="empty"):
                ask([0.5])


def test_merging_leaves_the_other_as_it_was_and_asks_for_one_item_type() -> None:
    left, right = (sketch_of("string", pa.array([f"{side}{i}" for i in range(5_000)])) for side in "lr")
    before = right.to_bytes()
    left.merge(right)
    assert right.to_bytes() == before
    assert (left.n, left.min_value, left.max_value) == (10_000, "l0", "r999")
    with pytest.raises(ValueError, match="long"):
        left.merge(KllSketch("long"))


def test_answers_follow_updates() -> None:
    sketch = sketch_of("long", pa.array([1]))
    assert sketch.quantiles([1.0]) == [1]
    sketch.update(pa.array([2]))
    assert sketch.quantiles([1.0]) == [2]
    sketch.update_counted([3], [1])
    assert sketch.max_value == 3
    sketch.merge(sketch_of("long", pa.array([4])))
    assert sketch.max_value == 4


@pytest.mark.parametrize(
    ("type_text", "item_type"),
    [
        ("boolean", "long"),
        ("int", "long"),
        ("date", "long"),
        ("timestamptz_ns", "long"),
        ("decimal(18,2)", "long"),
        ("decimal(19, 2)", "decimal"),
        ("float", "double"),
        ("string", "string"),
        ("uuid", None),
        ("fixed[16]", None),
        ("binary", None),
    ],
)
def test_each_type_has_its_items(type_text: str, item_type: str | None) -> None:
    assert item_type_of(type_text) == item_type


@pytest.mark.parametrize(("item_type", "k"), [("int", 200), ("long", 7), ("long", 65_536)])
def test_unknown_items_and_sizes_are_refused(item_type: str, k: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        KllSketch(item_type, k)


@pytest.mark.parametrize("k", [8, 65_535])
def test_the_smallest_and_the_largest_k_work(k: int) -> None:
    sketch = sketch_of("long", pa.array(range(200_000)), k)
    assert sketch.n == 200_000
    assert KllSketch.from_bytes("long", sketch.to_bytes()).n == 200_000


def test_longs_too_large_for_doubles_widen_a_sketch_of_small_ones() -> None:
    sketch = KllSketch("long")
    sketch.update(pa.array([1, 2, 3]))
    sketch.update(pa.array([2**63 - 1, -(2**63)]))
    assert [item for item, _ in sketch.items()] == [-(2**63), 1, 2, 3, 2**63 - 1]


@pytest.mark.parametrize("way", [-1, 1])
def test_beside_the_greatest_float_is_infinity(way: int) -> None:
    """Without a warning, which a table of such a value would have printed."""
    assert item_beside("float", way * float(np.finfo(np.float32).max), way) == way * np.inf
    with np.errstate(all="raise"):
        assert 0 < way * item_beside("float", 0.0, way) < 1e-44
