"""Single values: bytes, Python and JSON agree, and narrower encodings are read as the wider type."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.types import BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType

from icestats.iceberg.types import decode_json, decode_value, encode_value, json_value, parse_type


@pytest.mark.parametrize(
    ("type_text", "kind", "value"),
    [
        ("boolean", BooleanType(), True),
        ("int", IntegerType(), -7),
        ("long", LongType(), 2**62),
        ("float", FloatType(), -0.5),
        ("double", DoubleType(), 1e300),
        ("string", StringType(), "日本"),
        ("decimal(38, 6)", DecimalType(38, 6), Decimal("-12345678901234567890123456789012.123456")),
    ],
)
def test_bytes_are_those_of_pyiceberg(type_text, kind, value):
    assert encode_value(type_text, value) == to_bytes(kind, value)
    assert decode_value(type_text, to_bytes(kind, value)) == from_bytes(kind, to_bytes(kind, value))


@pytest.mark.parametrize(
    ("type_text", "data", "value"),
    [
        ("long", struct.pack("<i", -5), -5),
        ("double", struct.pack("<f", 0.1), struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("decimal(20, 2)", b"\xff\x38", Decimal("-2.00")),
        ("date", struct.pack("<i", -1), dt.date(1969, 12, 31)),
        ("timestamp", struct.pack("<q", -1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("timestamp", struct.pack("<i", 1), dt.datetime(1970, 1, 2)),
        ("timestamp_ns", struct.pack("<i", 1), 86_400 * 10**9),
        ("timestamp", struct.pack("<q", 2**62), 2**62),
        ("date", struct.pack("<i", 2**31 - 1), 2**31 - 1),
        ("uuid", uuid.UUID(int=7).bytes, uuid.UUID(int=7)),
    ],
)
def test_narrow_and_extreme_values_are_read(type_text, data, value):
    assert decode_value(type_text, data) == value


@pytest.mark.parametrize(
    ("type_text", "data"),
    [
        ("long", b"123"),
        ("double", b""),
        ("int", b"12345678"),
        ("string", b"\xff"),
        ("decimal(3, 1)", b""),
        ("decimal(38, 1)", bytes(17)),
        ("uuid", b"1"),
        # A date may become a timestamp without a zone, no other one.
        ("timestamptz", struct.pack("<i", 1)),
        ("timestamptz_ns", struct.pack("<i", 1)),
        ("time", struct.pack("<i", 1)),
    ],
)
def test_wrong_lengths_are_refused(type_text, data):
    with pytest.raises(ValueError, match=f"not a value of type {type_text.partition('(')[0]}"):
        decode_value(type_text, data)


def test_a_number_beyond_a_float_is_infinite():
    assert encode_value("float", 1e39) == struct.pack("<f", math.inf)
    assert encode_value("float", -1e39) == struct.pack("<f", -math.inf)


@pytest.mark.parametrize("text", ["decimal(9,2)", "decimal( 9 , 2 )", "fixed[16]", "timestamp_ns", "geometry(srid:1)"])
def test_types_are_read_however_they_are_spaced(text):
    assert parse_type(text).name == text.partition("(")[0].partition("[")[0]


def test_json_knows_what_json_has_no_number_for():
    assert json_value("double", math.nan) == "NaN"
    assert json_value("float", -math.inf) == "-Infinity"
    assert json_value("decimal(9, 2)", Decimal("1E+3")) == "1000"
    assert decode_json("string", b"caf\xc3") == "caf\ufffd"
    assert decode_json("long", None) is None
    assert decode_json("long", b"1") == "31"


_VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "time": st.times(),
    "decimal(38, 10)": st.decimals(-(10**20), 10**20, places=10),
    "uuid": st.uuids(),
    "timestamp_ns": st.integers(-(2**63), 2**63 - 1),
}


@given(st.sampled_from(sorted(_VALUES)).flatmap(lambda name: st.tuples(st.just(name), _VALUES[name])))
def test_every_value_comes_back_from_its_bytes(case):
    type_text, value = case
    assert decode_value(type_text, encode_value(type_text, value)) == value


@given(_VALUES["date"])
def test_dates_are_days_since_1970(value):
    assert encode_value("date", value) == to_bytes(DateType(), (value - dt.date(1970, 1, 1)).days)
