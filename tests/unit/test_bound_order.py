"""The extremes of single values are those of their type's order, however many are compared at once."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from icestats.iceberg.types import encode_value
from icestats.iceberg.value_order import find_extreme, find_width, order_of

ASCENDING = {
    "boolean": [False, True],
    "int": [-(2**31), -1, 0, 255, 256, 2**31 - 1],
    "date": [-719_162, -1, 0, 20_000],
    "long": [-(2**63), -(2**32), -1, 0, 255, 2**33, 2**63 - 1],
    "timestamptz": [-1, 0, 2**50],
    "float": [-1e30, -1.5, -0.0, 0.0, 1e-40, 1.5, 1e30],
    "double": [-1e300, -1.5, -0.0, 0.0, 5e-324, 1.5, 1e300],
    "decimal(38, 2)": [
        Decimal("-1e30"),
        Decimal("-1.28"),
        Decimal("-0.01"),
        Decimal(0),
        Decimal("1.28"),
        Decimal("1e30"),
    ],
    "string": ["", "a", "ab", "b", "z\uffff", "z\U0001f600"],
    "binary": [b"", b"\x00", b"\x7f", b"\x80\x00", b"\xff"],
    "fixed[2]": [b"\x00\x01", b"\x7f\xff", b"\x80\x00"],
}


@pytest.mark.parametrize("kind", ASCENDING)
def test_the_first_and_the_last_of_ascending_values_are_found(kind: str):
    values = [encode_value(kind, value) for value in ASCENDING[kind]]
    mixed = pa.array([None, *values[1::2], *values[::-2], None, *values[::2]], pa.binary())
    assert find_extreme(mixed, kind, highest=False) == values[0]
    assert find_extreme(mixed, kind, highest=True) == values[-1]
    assert find_extreme(mixed.slice(1, 1), kind, highest=True) == values[1]
    shuffled = [*values[1::2], *values[::2]]
    assert sorted(shuffled, key=order_of(kind)) == values
    width = find_width(kind)
    assert width is None or {len(value) for value in values} == {width}


def test_nothing_but_nulls_has_no_extreme_even_of_a_type_of_a_later_spec():
    assert find_extreme(pa.nulls(3, pa.binary()), "timestamp_ps", highest=True) is None
    assert find_width("timestamp_ps") is None


def test_a_value_of_another_width_than_its_type_has_is_refused():
    with pytest.raises(pa.ArrowInvalid):
        find_extreme(pa.array([struct.pack("<i", 5)], pa.binary()), "long", highest=True)
