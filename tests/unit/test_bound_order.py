"""The extremes of single values are those of their type's order, however many are compared at once."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icestats.iceberg.types import decode_value, encode_value, find_width, to_arrow_type
from icestats.iceberg.value_order import Keys, build_keys, find_extreme, rank_values

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
    keys = build_keys(kind, pa.array(shuffled, pa.binary()))
    assert [shuffled[place] for place in np.argsort(keys.ranks()[0])] == values
    groups = np.arange(len(shuffled)) % 2
    for highest in (False, True):
        for group, row in enumerate(keys.find_extremes(groups, 3, highest=highest).tolist()):
            members = [value for value, own in zip(shuffled, groups, strict=True) if own == group]
            assert [shuffled[row]] == sorted(members, key=values.index)[-highest:][:1] if members else row == -1
    width = find_width(kind)
    assert width is None or {len(value) for value in values} == {width}


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("kind", ASCENDING)
def test_keys_at_or_below_a_bound_are_counted(kind: str, times: int):
    """However many there are, in any order."""
    bounds = build_keys(kind, pa.array([encode_value(kind, value) for value in ASCENDING[kind]], pa.binary()))
    keys = bounds.values.tolist() if isinstance(bounds.values, np.ndarray) else bounds.values.to_pylist()
    shuffled = [*keys[1::2], *keys[::2]] * times
    # -0.0 and 0.0 are one after the other, too.
    assert bounds.count_passed(shuffled, []).tolist() == [times * (place + 1) for place in range(len(keys))]
    assert bounds.count_passed([], shuffled).tolist() == [times * place for place in range(len(keys))]
    assert bounds.count_passed(shuffled, shuffled).tolist() == [times * (2 * at + 1) for at in range(len(keys))]


@pytest.mark.parametrize("times", [1, 20])
def test_keys_beyond_all_bounds_are_counted(times: int):
    bounds = Keys(np.array([-(1 << 63), 0, (1 << 63) - 1]), np.ones(3, np.bool_))
    keys = [1 << 70, 1 << 63, -(1 << 63), -(1 << 70)] * times
    assert bounds.count_passed(keys, []).tolist() == [2 * times] * 3
    assert bounds.count_passed([], keys).tolist() == [times, 2 * times, 2 * times]


def test_nothing_but_nulls_has_no_extreme_even_of_a_type_of_a_later_spec():
    assert find_extreme(pa.nulls(3, pa.binary()), "timestamp_ps", highest=True) is None
    assert find_width("timestamp_ps") is None


def test_a_uuid_of_another_length_is_no_bound():
    values = [b"", b"df7142dc-af29-e6f8-7774-4cca4d909eb2", bytes(16), None]
    assert build_keys("uuid", pa.array(values, pa.binary())).known.tolist() == [False, False, True, False]


def test_a_narrower_value_of_before_a_promotion_is_compared_as_the_wider_type():
    values = pa.array([struct.pack("<i", 5), struct.pack("<q", 4)], pa.binary())
    assert find_extreme(values, "long", highest=True) == struct.pack("<i", 5)
    assert find_extreme(pa.array([b"\x01\x02\x03"], pa.binary()), "long", highest=True) is None


@pytest.mark.parametrize(
    ("kind", "is_known"), [("timestamp_ns", True), ("timestamptz", False), ("timestamptz_ns", False)]
)
def test_a_date_is_a_bound_of_a_timestamp_without_a_zone_alone(kind: str, is_known: bool):
    assert build_keys(kind, pa.array([struct.pack("<i", 1)], pa.binary())).known.tolist() == [is_known]


@pytest.mark.parametrize("kind", ASCENDING)
def test_partition_values_order_as_their_bytes_do(kind: str):
    values = [decode_value(kind, encode_value(kind, value)) for value in ASCENDING[kind]]
    array = pa.array([values[-1], None, *values], to_arrow_type(kind))
    assert rank_values(array).tolist() == [len(values) + 1, 1, *range(2, len(values) + 2)]


def test_nan_is_no_bound_and_the_last_partition():
    nan = struct.pack("<d", math.nan)
    assert find_extreme(pa.array([nan, struct.pack("<d", 1.0)], pa.binary()), "double", highest=True) != nan
    other = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]
    assert rank_values(pa.array([math.nan, math.inf, None, other])).tolist() == [3, 2, 1, 3]
