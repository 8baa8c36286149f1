"""What the metrics of files give for a column: bounds in the order of its type, counts, and what is lacking."""

from __future__ import annotations

import itertools
import math
import struct

import pytest

from icestats.errors import MetadataError
from tests.written_manifests import Files, cells, entry, integer, table


def bounds(type_text: str, *values: bytes) -> tuple[bytes | None, bytes | None, int]:
    """The lower and the upper bound over files that have these as both, and how many count."""
    files = Files().add(*(entry(lower_bounds={1: v}, upper_bounds={1: v}) for v in values))
    cell = cells(files, table((1, type_text)))[0]
    assert cell["lower_bound_file_count"] == cell["upper_bound_file_count"]
    return cell["lower_bound"], cell["upper_bound"], cell["lower_bound_file_count"]


def double(value: float) -> bytes:
    return struct.pack("<d", value)


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("type_text", "ascending"),
    [
        ("boolean", [b"\x00", b"\x01"]),
        ("int", [integer(v, 4) for v in (-(2**31), -1, 0, 255, 256, 2**31 - 1)]),
        ("long", [integer(v, 8) for v in (-(2**63), -1, 0, 255, 256, 2**63 - 1)]),
        ("float", [struct.pack("<f", v) for v in (-math.inf, -2.5, -1e-40, -0.0, 0.0, 1e-40, 3.5, math.inf)]),
        ("double", [double(v) for v in (-math.inf, -2.5, -5e-324, -0.0, 0.0, 5e-324, 3.5, math.inf)]),
        ("date", [integer(v, 4) for v in (-719_162, -1, 0, 1)]),
        ("time", [integer(v, 8) for v in (0, 1, DAY - 1)]),
        ("timestamp", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("timestamptz", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("timestamp_ns", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("decimal(38, 2)", [v.to_bytes(16, "big", signed=True).lstrip(b"\x00") for v in (1, 127, 10**37)]),
        ("decimal(38, 2)", [(-(10**37)).to_bytes(16, "big", signed=True), b"\x80\x00", b"\x80", b"\xff", b"\x00"]),
        ("decimal(9, 2)", [b"\xff\x7f", b"\x80", b"\x7f", b"\x00\x80"]),
        ("string", [b"", b"a", b"a\x00", b"ab", "é".encode(), "日".encode(), "😀".encode()]),
        ("string", [b"sixteen bytes ..", b"sixteen bytes ..\x00", b"sixteen bytes ..a", b"sixteen bytes ..b"]),
        ("binary", [b"\x00", b"\x7f", b"\x80", b"\xff" * 16, b"\xff" * 17, b"\xff" * 17 + b"\x00"]),
        ("fixed[3]", [b"\x00\x00\x01", b"\x7f", b"\x80\x00\x00"]),
        ("uuid", [bytes(16), b"\x7f" * 16, b"\x80" + bytes(15), b"\x80" * 15 + b"\x81"]),
    ],
)
def test_bounds_keep_the_order_of_their_type(type_text: str, ascending: list[bytes]) -> None:
    """Of any two values, in either order, the roll-up has the smaller as lower and the larger as upper bound."""
    for low, high in itertools.pairwise(ascending):
        assert bounds(type_text, low, high) == (low, high, 2)
        assert bounds(type_text, high, low) == (low, high, 2)
    assert bounds(type_text, *ascending) == (ascending[0], ascending[-1], len(ascending))


@pytest.mark.parametrize(
    ("type_text", "old", "new"),
    [
        ("long", integer(-5, 4), integer(-5, 8)),
        ("double", struct.pack("<f", -1.5), double(-1.5)),
        ("double", struct.pack("<f", 1e-40), double(struct.unpack("<f", struct.pack("<f", 1e-40))[0])),
        ("timestamp", integer(-1, 4), integer(-DAY, 8)),
        ("timestamp_ns", integer(2, 4), integer(2_000 * DAY, 8)),
        ("decimal(38, 2)", b"\x00\x00\x05", b"\x05"),
        ("decimal(38, 2)", b"\xff" * 20 + b"\x80", b"\x80"),
        ("boolean", b"\x05", b"\x01"),
    ],
)
def test_bounds_of_an_older_type_are_widened(type_text: str, old: bytes, new: bytes) -> None:
    """A bound from before a promotion is returned as a value of the current type."""
    assert bounds(type_text, old) == (new, new, 1)


@pytest.mark.parametrize(
    ("type_text", "wrong"),
    [
        ("int", integer(1, 8)),
        ("long", b"\x01"),
        ("float", double(1.0)),
        ("float", struct.pack("<f", math.nan)),
        ("double", double(math.nan)),
        ("double", double(-math.nan)),
        ("date", b""),
        ("timestamptz", integer(1, 4)),
        ("timestamp", integer(2**31 - 1, 4)),
        ("timestamp_ns", integer(110_000, 4)),
        ("decimal(9, 2)", b""),
        ("decimal(38, 2)", b"\x01" + bytes(16)),
        ("decimal(38, 2)", b"\x00\x80" + bytes(15)),
        ("uuid", bytes(15)),
        ("fixed[3]", bytes(4)),
        ("boolean", b""),
        ("geometry", bytes(16)),
        ("variant", bytes(3)),
    ],
)
def test_what_is_no_bound_counts_as_lacking(type_text: str, wrong: bytes) -> None:
    """NaN, lengths that the type does not have, and types without order are unknown, not wrong."""
    assert bounds(type_text, wrong) == (None, None, 0)


def test_long_bounds_survive_many_winners() -> None:
    """Bounds that outgrow two words are kept whole, however often they are beaten and by whatever length."""
    values = [b"x" * 20 + b"%05d" % i * (1 + i % 50) for i in range(3000)]
    assert bounds("binary", *values) == (min(values), max(values), 3000)


def test_a_column_without_values_needs_no_bounds() -> None:
    """All null, all NaN or no values at all is not a lacking bound; one value more is."""
    metadata = table((1, "double"))
    counts = {"value_counts": {1: 5}}
    assert cells(Files().add(entry(**counts, null_value_counts={1: 5})), metadata)[0]["valueless_file_count"] == 1
    mixed = entry(**counts, null_value_counts={1: 2}, nan_value_counts={1: 3})
    assert cells(Files().add(mixed), metadata)[0]["valueless_file_count"] == 1
    assert cells(Files().add(entry(value_counts={1: 0})), metadata)[0]["valueless_file_count"] == 1
    nan = double(math.nan)
    assert (
        cells(Files().add(mixed | {}, entry(**counts, nan_value_counts={1: 5}, lower_bounds={1: nan})), metadata)[0][
            "valueless_file_count"
        ]
        == 2
    )
    assert cells(Files().add(entry(**counts, null_value_counts={1: 4})), metadata)[0]["valueless_file_count"] == 0
    assert cells(Files().add(entry(null_value_counts={1: 4})), metadata)[0]["valueless_file_count"] == 0
    bounded = entry(**counts, null_value_counts={1: 5}, upper_bounds={1: double(1)})
    assert cells(Files().add(bounded), metadata)[0]["valueless_file_count"] == 0


def test_counts_say_how_many_files_have_them() -> None:
    """Sums are over the live data files that have the statistic; deleted entries and delete files never count."""
    files = Files().add(
        entry(column_sizes={1: 5, 2: 7}, value_counts={1: 10}),
        entry(column_sizes={1: 6}, null_value_counts={1: -1}),
        entry(column_sizes={1: 1000}, status=2),
        entry(column_sizes={1: 1000}, content=1),
        entry(),
    )
    first, second = cells(files, table((1, "long"), (2, "string")))
    assert (first["column_size"], first["column_size_file_count"]) == (11, 2)
    assert (first["value_count"], first["value_count_file_count"]) == (10, 1)
    assert (first["null_value_count"], first["null_value_count_file_count"]) == (0, 0)
    assert (second["column_size"], second["column_size_file_count"]) == (7, 1)


@pytest.mark.parametrize("counts", [(5, 6, None), (5, 3, 3), (5, 2**63 - 1, 2**63 - 1), (0, None, 1)])
def test_counts_that_contradict_each_other_are_none(counts: tuple[int | None, ...]) -> None:
    """Nulls and NaN are values, of repeated fields too."""
    names = ("value_counts", "null_value_counts", "nan_value_counts")
    known = {name: {1: count} for name, count in zip(names, counts, strict=True) if count is not None}
    right = entry(value_counts={1: 5}, null_value_counts={1: 2}, nan_value_counts={1: 3})
    (cell,) = cells(Files().add(entry(**known), right), table((1, "double")))
    assert [cell[name[:-1]] for name in names] == [5, 2, 3]
    assert [cell[f"{name[:-1]}_file_count"] for name in names] == [1, 1, 1]
    assert cell["valueless_file_count"] == 1


def test_sums_do_not_wrap_around() -> None:
    """A sum beyond 64 bits is an error, in one manifest and over several."""
    half = entry(column_sizes={1: 2**62})
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(half, half, half), table((1, "long")))
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(half).add(half).add(half), table((1, "long")))
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(*[entry(record_count=2**53)] * 1_024), table((1, "long")))
