"""Sketches as Hive's metastore keeps them: the committed KLL as floats, HyperLogLog from values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.hive_sketches import (
    REGISTER_COUNT,
    has_bit_vector,
    update_registers,
    write_bit_vector,
    write_float_kll,
)
from icestats.stats.kll import KllSketch

DAY = dt.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("item_type", "type_text", "values", "floats"),
    [
        ("long", "long", list(range(50_000)), (0.0, 49_999.0)),
        ("double", "double", [i / 8 for i in range(50_000)], (0.0, 6_249.875)),
        ("long", "decimal(9, 2)", [Decimal(i) / 4 for i in range(50_000)], (0.0, 12_499.75)),
        ("decimal", "decimal(38, 2)", [Decimal(i) / 4 for i in range(2_000)], (0.0, 499.75)),
        ("long", "date", [DAY, DAY + dt.timedelta(days=9)], (1_577_836_800.0, 1_578_614_400.0)),
        ("long", "timestamp", [dt.datetime(1970, 1, 1, 0, 0, 7, 900_000)], (7.0, 7.0)),
        ("long", "long", [5], (5.0, 5.0)),
    ],
)
def test_a_histogram_has_the_committed_sketches_items(item_type, type_text, values, floats):
    """The same weights, so the same ranks; dates and timestamps in seconds."""
    sketch = KllSketch(item_type)
    kind = {"decimal(9, 2)": pa.decimal128(9, 2), "decimal(38, 2)": pa.decimal128(38, 2)}.get(type_text)
    sketch.update(pa.array(values, kind))
    found = datasketches.kll_floats_sketch.deserialize(write_float_kll(sketch, type_text))
    assert (found.n, found.k, found.num_retained) == (sketch.n, sketch.k, sketch.retained_count)
    assert (found.get_min_value(), found.get_max_value()) == pytest.approx(floats, rel=2**-23)
    if type_text == "long" and sketch.n > 1:
        assert found.get_quantiles([0.25, 0.5]) == pytest.approx([float(v) for v in sketch.quantiles([0.25, 0.5])])


@pytest.mark.parametrize(("item_type", "type_text"), [("string", "string"), ("long", "boolean"), ("long", "time")])
def test_hive_has_no_histogram_of_some_types(item_type, type_text):
    assert write_float_kll(KllSketch(item_type), type_text) is None


def test_an_empty_sketch_is_no_histogram():
    assert write_float_kll(KllSketch("long"), "long") is None


def test_registers_of_parts_merge_to_those_of_the_whole():
    values = pa.array([*range(20_000), None], pa.int64())
    whole, parts = np.zeros(REGISTER_COUNT, np.uint8), np.zeros((2, REGISTER_COUNT), np.uint8)
    update_registers(whole, values, "long")
    for own, part in zip(parts, (values[:9_000], values[8_000:]), strict=True):
        update_registers(own, part, "long")
    assert np.array_equal(parts.max(axis=0), whole)


@pytest.mark.parametrize("count", [0, 1, 100, 5_000, 1_000_000])
def test_a_bit_vector_says_how_many_values_there_are(count):
    """Its head has the estimate, as a varint; Hive 4.0.1 reads 5,048 from the same registers of 5,000 numbers."""
    registers = np.zeros(REGISTER_COUNT, np.uint8)
    update_registers(registers, pa.array(np.arange(count)), "long")
    data = write_bit_vector(registers)
    assert data[:4] == b"HLL\xa7"
    assert data[-REGISTER_COUNT:] == registers.tobytes()
    estimate = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[4:-REGISTER_COUNT]))
    assert estimate == pytest.approx(count, rel=0.12)


@pytest.mark.parametrize(
    ("values", "type_text", "same_as"),
    [
        (pa.array([2.0], pa.float32()), "float", pa.array([2.0])),
        (pa.array([Decimal("2.00")]), "decimal(3, 2)", pa.array([2.0])),
        (pa.array([Decimal("0.7")], pa.decimal128(9, 2)), "decimal(9, 2)", pa.array([0.7])),
        (pa.array([float("nan")]), "double", pa.array(np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64))),
    ],
)
def test_numbers_that_are_equal_to_hive_are_hashed_alike(values, type_text, same_as):
    """It takes floats and decimals as doubles, and each NaN as the same."""
    found = np.zeros((2, REGISTER_COUNT), np.uint8)
    update_registers(found[0], values, type_text)
    update_registers(found[1], same_as, "double")
    assert np.array_equal(*found)


def test_times_are_hashed_as_hive_keeps_them():
    """A date by its days, a timestamp by its whole seconds, rounded down."""
    found = np.zeros((3, REGISTER_COUNT), np.uint8)
    update_registers(found[0], pa.array([dt.date(1969, 12, 31)]), "date")
    update_registers(found[1], pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 1)]), "timestamp")
    update_registers(found[2], pa.array([-1]), "long")
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[2])


def test_what_hive_reads_as_text_has_no_bit_vector():
    assert [kind for kind in ("long", "uuid", "time", "boolean", "binary", "fixed[3]") if has_bit_vector(kind)] == [
        "long"
    ]
