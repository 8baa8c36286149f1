"""Hashes against an independent MurmurHash3 over the single-value bytes of the spec."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import mmh3
import numpy as np
import pyarrow as pa
import pytest

from icestats.iceberg.types import encode_value
from icestats.stats.hashing import hash_values

UTC = dt.UTC


def oracle(data: bytes) -> int:
    return mmh3.hash64(data, seed=9001, signed=False)[0] >> 1


UNSCALED = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1]
UNSCALED += [2**71 - 1, 2**71, -(2**71), -(2**71) - 1, 10**37, 10**38 - 1, 1 - 10**38]
SHORT = [number for number in UNSCALED if abs(number) < 10**18]

CASES = [
    ("boolean", [True, False], pa.bool_()),
    ("int", [0, 1, -1, 2**31 - 1, -(2**31)], pa.int32()),
    ("long", [0, 1, -1, 2**63 - 1, -(2**63)], pa.int64()),
    ("float", [0.0, -0.0, 1.5, float("inf"), float("-inf")], pa.float32()),
    ("double", [0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324], pa.float64()),
    ("decimal(18, 4)", [Decimal(number).scaleb(-4) for number in SHORT], pa.decimal128(18, 4)),
    ("date", [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(2026, 9, 1)], pa.date32()),
    ("time", [dt.time(0), dt.time(23, 59, 59, 999_999)], pa.time64("us")),
    ("timestamp", [dt.datetime(1969, 12, 31, 23, 59, 59, 1), dt.datetime(2026, 9, 1)], pa.timestamp("us")),
    ("timestamptz", [dt.datetime(2026, 9, 1, 10, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
    ("timestamp_ns", [1_234_567_890_123_456_789, -1], pa.int64()),
    ("timestamptz_ns", [1_234_567_890_123_456_789, -1], pa.int64()),
    ("string", ["a", "é😀", "x" * 15, "x" * 16, "x" * 17, "y" * 31, "y" * 32, "y" * 33, "z" * 5_000], pa.string()),
    ("binary", [b"\0", b"\0\0", bytes(range(40))], pa.binary()),
    ("fixed[3]", [b"abc", b"\0\0\0"], pa.binary(3)),
]


@pytest.mark.parametrize(("type_text", "values", "arrow"), CASES, ids=[case[0] for case in CASES])
def test_hash_of_each_type_is_murmur3_of_its_single_value_bytes(
    type_text: str, values: list, arrow: pa.DataType
) -> None:
    expected = [oracle(encode_value(type_text, value)) for value in values]
    assert hash_values(pa.array(values, arrow), type_text).tolist() == expected


def test_decimals_of_any_size_hash_as_their_shortest_two_s_complement() -> None:
    words = np.array([[n & (2**64 - 1), (n >> 64) & (2**64 - 1)] for n in UNSCALED], np.uint64)
    array = pa.Array.from_buffers(pa.decimal128(38, 2), len(words), [None, pa.py_buffer(words.tobytes())])
    lengths = [(n if n >= 0 else ~n).bit_length() // 8 + 1 for n in UNSCALED]
    expected = [oracle(n.to_bytes(size, "big", signed=True)) for n, size in zip(UNSCALED, lengths, strict=True)]
    assert hash_values(array, "decimal(38, 2)").tolist() == expected


def test_uuid_is_hashed_as_the_36_characters_that_spark_shows() -> None:
    values = [uuid.UUID(int=0), uuid.UUID("F79C3E09-677C-4BBD-A479-3F349CB785E7"), uuid.UUID(int=2**128 - 1)]
    expected = [oracle(str(value).encode()) for value in values]
    as_bytes = pa.array([value.bytes for value in values], pa.binary(16))
    assert hash_values(as_bytes, "uuid").tolist() == expected
    assert hash_values(pa.array([str(value).upper() for value in values]), "uuid").tolist() == expected
    extension = pa.ExtensionArray.from_storage(pa.uuid(), as_bytes)
    assert hash_values(extension, "uuid").tolist() == expected


def test_nulls_and_empty_strings_have_no_hash() -> None:
    assert hash_values(pa.array(["", None, "a", ""]), "string").tolist() == [oracle(b"a")]
    assert hash_values(pa.array([b"", None]), "binary").tolist() == []
    assert hash_values(pa.nulls(3), "decimal(9, 2)").tolist() == []
    assert hash_values(pa.array([], pa.int64()), "long").tolist() == []


def test_signed_zeros_and_nans_of_different_bits_are_different_values() -> None:
    bits = np.array([0, 1 << 63, 0x7FF8 << 48, 0xFFF8 << 48], np.uint64)
    hashes = hash_values(pa.array(bits.view(np.float64)), "double")
    assert hashes.tolist() == [oracle(int(b).to_bytes(8, "little")) for b in bits]
    assert len(set(hashes.tolist())) == 4


WORDS = ["kiwi", "fig", None, "", "pomegranate, ripe", "fig"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(WORDS),
        pa.array(WORDS, pa.large_string()),
        pa.array(WORDS, pa.string_view()),
        pa.array(WORDS).dictionary_encode(),
        pa.array(["cut off", *WORDS, "cut off"]).slice(1, len(WORDS)),
        pa.array([w if w is None else w.encode() for w in WORDS], pa.binary()).cast(pa.large_string()),
        pa.chunked_array([WORDS[:2], WORDS[2:]]),
    ],
    ids=["string", "large", "view", "dictionary", "slice", "large binary", "chunked"],
)
def test_hashes_do_not_depend_on_how_arrow_holds_strings(array: pa.Array) -> None:
    assert hash_values(array, "string").tolist() == [oracle(w.encode()) for w in WORDS if w]


@pytest.mark.parametrize(
    ("array", "type_text", "same"),
    [
        (pa.array([1, None, -5], pa.int32()), "long", pa.array([1, -5], pa.int64())),
        (pa.array([1, -5], pa.int8()), "int", pa.array([1, -5], pa.int32())),
        (pa.array([1.5], pa.float32()), "double", pa.array([1.5])),
        (pa.array([9, 1, 2]).slice(1), "long", pa.array([1, 2])),
        (pa.array([True, False, True]).slice(1), "boolean", pa.array([False, True])),
        (pa.array([1_999_999, -1], pa.timestamp("ns")), "timestamp", pa.array([1_999, -1], pa.timestamp("us"))),
        (pa.array([2, -1], pa.timestamp("ms", "UTC")), "timestamptz", pa.array([2_000, -1_000], pa.timestamp("us"))),
        (pa.array([2], pa.timestamp("us", "Europe/Berlin")), "timestamptz", pa.array([2], pa.timestamp("us"))),
        (pa.array([2], pa.timestamp("us")), "timestamp_ns", pa.array([2_000], pa.timestamp("ns"))),
        (pa.array([1_000], pa.time32("ms")), "time", pa.array([1_000_000], pa.time64("us"))),
        (pa.array([5], pa.date32()), "timestamp", pa.array([5 * 86_400_000_000], pa.timestamp("us"))),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), "decimal(9, 2)", pa.array([Decimal("1.50")])),
        (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), "decimal(9, 2)", pa.array([Decimal("1.50")])),
        (pa.array([b"abc"], pa.binary()), "fixed[3]", pa.array([b"abc"], pa.binary(3))),
        (pa.array([7, 7]).dictionary_encode(), "long", pa.array([7, 7])),
    ],
    ids=str,
)
def test_hashes_do_not_depend_on_arrow_s_width_or_unit(array: pa.Array, type_text: str, same: pa.Array) -> None:
    hashes = hash_values(array, type_text).tolist()
    assert hashes == hash_values(same, type_text).tolist()
    assert hashes


def test_time_before_1970_is_floored_to_the_microsecond() -> None:
    assert hash_values(pa.array([-1], pa.timestamp("ns")), "timestamp").tolist() == [oracle(b"\xff" * 8)]


@pytest.mark.parametrize(
    ("array", "type_text"),
    [
        (pa.array(["a"]), "long"),
        (pa.array(["5"]), "long"),
        (pa.array(["01:00:00"]), "time"),
        (pa.array([5]), "string"),
        (pa.array([2**40]), "int"),
        (pa.array([1.5]), "decimal(9, 2)x"),
        (pa.array([[1]]), "long"),
        (pa.array(["not a uuid"]), "uuid"),
        (pa.array([1]), "struct"),
        (pa.array([b"x"]), "geometry"),
    ],
    ids=str,
)
def test_an_array_of_another_type_is_refused_in_one_line(array: pa.Array, type_text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        hash_values(array, type_text)
    assert "\n" not in str(caught.value)


def test_a_slice_of_a_large_buffer_is_read_where_it_lies() -> None:
    whole = pa.array([f"value {i}" for i in range(100_000)])
    assert hash_values(whole.slice(99_990, 5), "string").tolist() == [
        oracle(f"value {i}".encode()) for i in range(99_990, 99_995)
    ]


def test_a_few_very_long_values_hash_as_the_short_ones_do() -> None:
    random = np.random.default_rng(5)
    values = [random.bytes(size) for size in (100_000, 1, 33, 70_001, 16, 2_047)]
    assert hash_values(pa.array(values), "binary").tolist() == [oracle(value) for value in values]
