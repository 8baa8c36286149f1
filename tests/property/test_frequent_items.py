"""Bounds of common values and pairs hold for whatever rows, batches and merges; a payload is read as it was written."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.iceberg.metadata import Field
from icestats.iceberg.types import encode_value
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.frequent_items import (
    VALUE_LENGTH,
    FrequentItems,
    merge_frequent_items,
    read_frequent_values,
)
from icestats.stats.joint_statistics import (
    PairAccumulator,
    encode_column,
    read_joint_statistics,
    write_joint_statistics,
)

TYPES = {
    "boolean": (pa.bool_(), st.booleans()),
    "int": (pa.int32(), st.integers(-3, 40)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 30)),
    "double": (pa.float64(), st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.5])),
    "float": (pa.float32(), st.floats(width=32)),
    "decimal(9,2)": (pa.decimal128(9, 2), st.decimals(-99, 99, places=2)),
    "decimal(38,2)": (pa.decimal128(38, 2), st.decimals(-99, 99, places=2)),
    "string": (pa.string(), st.text(max_size=4) | st.sampled_from(["", "a", "b" * 300, "b" * 299])),
    "binary": (pa.binary(), st.binary(max_size=2) | st.sampled_from([b"", b"\xff" * 300])),
    "uuid": (pa.binary(16), st.binary(min_size=16, max_size=16)),
    "date": (pa.date32(), st.dates()),
}


def field(type_text, field_id=1):
    return Field(field_id, f"c{field_id}", type_text, required=False, top_level=True)


def single_value(type_text, value):
    if isinstance(value, float):
        value += 0.0
    if isinstance(value, str | bytes) and type_text != "uuid":
        value = value[:VALUE_LENGTH]
    return encode_value(type_text, value)


@st.composite
def batches(draw, type_text):
    kind, values = TYPES[type_text]
    few = draw(st.lists(values, min_size=1, max_size=6))
    found = st.lists(st.none() | st.sampled_from(few) | values, max_size=60)
    return [pa.array(draw(found), kind) for _ in range(draw(st.integers(1, 5)))]


def count(type_text, arrays):
    plain = [value for array in arrays for value in array.to_pylist() if value is not None and value == value]
    return Counter(single_value(type_text, value) for value in plain)


def check(found, truth):
    assert found.value_count == sum(truth.values())
    for item in found.items:
        assert item.lower <= truth[item.value] <= item.upper
    kept = {item.value for item in found.items}
    assert max((rows for value, rows in truth.items() if value not in kept), default=0) <= found.others_at_most


@pytest.mark.parametrize("type_text", TYPES)
@given(data=st.data())
def test_rows_of_common_values_are_within_their_bounds(type_text, data):
    arrays = data.draw(batches(type_text))
    capacity = data.draw(st.sampled_from([1, 2, 3, 8, 1024]))
    parts = []
    for array in arrays:
        part = ColumnAccumulator(field(type_text))
        part._items = FrequentItems(capacity)
        half = len(array) // 2
        part.update(array.slice(0, half))
        part.update(array.slice(half))
        parts.append(part)
    for part in parts[1:]:
        parts[0].merge(part)
    truth = count(type_text, arrays)
    found = read_frequent_values(parts[0].result().frequent_items)
    check(found, truth)
    if capacity > len(truth):
        assert {item.value: item.lower for item in found.items} == dict(truth)


@pytest.mark.parametrize("type_text", ["long", "string", "decimal(38,2)"])
@given(data=st.data())
def test_payloads_of_two_sets_of_rows_merge(type_text, data):
    sets = [data.draw(batches(type_text)) for _ in range(2)]
    payloads = []
    for arrays in sets:
        one = ColumnAccumulator(field(type_text))
        one._items = FrequentItems(data.draw(st.sampled_from([2, 1024])))
        for array in arrays:
            one.update(array)
        payloads.append(one.result().frequent_items)
    merged = read_frequent_values(merge_frequent_items(*payloads))
    check(merged, count(type_text, [array for arrays in sets for array in arrays]))


def test_a_batch_of_many_values_keeps_what_is_common_in_all_of_them():
    """More distinct values than are kept: those that are there once in a batch are not looked at one by one."""
    rng = np.random.default_rng(3)
    for type_text in ("long", "string"):
        accumulator, truth = ColumnAccumulator(field(type_text)), Counter()
        for _ in range(6):
            drawn = (rng.zipf(1.3, 20_000) % 1_000_000).tolist()
            accumulator.update(pa.array(drawn if type_text == "long" else [f"v{one}" for one in drawn]))
            truth.update(drawn)
        found = read_frequent_values(accumulator.result().frequent_items)
        top = [rows for _, rows in truth.most_common(50)]
        assert [item.lower for item in found.items[:50]] == top
        assert [item.upper for item in found.items[:50]] == top


PAIRS = [("string", "long"), ("double", "boolean"), ("decimal(9,2)", "date"), ("binary", "string"), ("uuid", "int")]


def whole_value(type_text, value):
    if isinstance(value, float):
        # One NaN, whatever its bits, and one zero.
        value = math.nan if math.isnan(value) else value + 0.0
    return None if value is None else encode_value(type_text, value)


def check_pairs(found, truth):
    assert found.row_count == sum(truth.values())
    for item in found.items:
        assert item.lower <= truth[item.pair] <= item.upper
    kept = {item.pair for item in found.items}
    assert max((rows for pair, rows in truth.items() if pair not in kept), default=0) <= found.others_at_most
    assert all(len(value or b"") <= VALUE_LENGTH for pair in kept for value in pair)


@pytest.mark.parametrize("types", PAIRS)
@given(data=st.data())
def test_rows_of_common_pairs_are_within_their_bounds(types, data):
    fields = field(types[0], 1), field(types[1], 2)
    parts, truths = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        one, other = data.draw(batches(types[0]))[0], data.draw(batches(types[1]))[0]
        size = min(len(one), len(other))
        one, other = one.slice(0, size), other.slice(0, size)
        part = PairAccumulator(*fields)
        part._items = FrequentItems(data.draw(st.sampled_from([2, 1024])))
        part.update(encode_column(one, types[0]), encode_column(other, types[1]))
        parts.append(part)
        rows = zip(one.to_pylist(), other.to_pylist(), strict=True)
        truths.append(Counter((whole_value(types[0], v), whole_value(types[1], w)) for v, w in rows))
    whole = PairAccumulator(*fields)
    for part in parts:
        whole.merge(part)
    truth = sum(truths, Counter())
    found = whole.result((3, 3))
    check_pairs(found, truth)
    assert read_joint_statistics(write_joint_statistics(found), (1, 2)) == found
    again = PairAccumulator.from_statistics(found, fields)
    assert again.result((3, 3)) == found
    again.merge(parts[-1])
    check_pairs(again.result((3, 3)), truth + truths[-1])


def test_there_are_no_more_distinct_pairs_than_rows():
    """Whatever a small Theta sketch estimates."""
    for count in range(20, 400, 20):
        pairs = PairAccumulator(field("long", 1), field("long", 2), lg_k=4)
        numbers = encode_column(pa.array(range(count), pa.int64()), "long")
        pairs.update(numbers, numbers)
        assert pairs.result((count, count)).ndv <= count


def test_every_nan_of_a_pair_is_one_value_and_is_read_without_a_warning():
    bits = np.array([0x7FF0000000000001, 0x7FF8000000000000, -1], np.int64)
    found = encode_column(pa.array(bits.view(np.float64)), "double")
    assert found.values.to_numpy().view(np.int64).tolist() == [bits[1]] * 3
    assert len(set(found.hashes[:3].tolist())) == 1
