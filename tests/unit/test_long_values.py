"""Decimals of 38 digits, and strings longer than a sketch keeps: answers about them are exact, or bounds that hold."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, DecimalType, IntegerType, NestedField, StringType

import icestats
from tests.computed_statistics import compute_here

LONG = Decimal("1234567890123456789012345678.1234567891")
NEXT = Decimal("1234567890123456789012345678.1234567892")
Make = Callable[[Any, pa.Array], icestats.Table]


@pytest.fixture
def make(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> Make:
    """Return a table of one column `v`, with committed statistics."""

    def made(kind: Any, values: pa.Array) -> icestats.Table:
        catalog.create_table("db.t", Schema(NestedField(1, "v", kind))).append(pa.table({"v": values}))
        table = icestats.load("db.t", catalog=catalog_properties)
        compute_here(table).commit()
        return icestats.load("db.t", catalog=catalog_properties)

    return made


@pytest.fixture(params=[28, 5])
def _digits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Python's default number of digits, and one that a user has set."""
    with decimal.localcontext() as context:
        context.prec = request.param
        yield


@pytest.mark.usefixtures("_digits")
@pytest.mark.parametrize(
    ("row_filter", "actual"),
    [
        (f"v = {LONG}", 10),
        (f"v > {LONG}", 5),
        (f"v >= {LONG}", 15),
        (f"v < {NEXT}", 11),
        (f"v in ('{LONG}', '{NEXT}')", 15),
        (f"v != {NEXT}", 11),
        (f"v = -{LONG}", 1),
    ],
)
def test_every_digit_of_a_decimal_counts(make: Make, row_filter: str, actual: int) -> None:
    """Two values that differ in the 38th digit are two values, in all bounds and in sketches."""
    values = [LONG] * 10 + [NEXT] * 5 + [LONG.copy_negate(), None]
    estimates = make(DecimalType(38, 10), pa.array(values, pa.decimal128(38, 10))).estimate(row_filter, actual=True)
    assert estimates.actual == actual
    assert all(one.rows_lower <= actual <= one.rows_upper for one in estimates)
    assert estimates["kll"].rows == pytest.approx(actual)


@pytest.mark.usefixtures("_digits")
def test_a_part_of_a_histogram_ends_at_the_last_digit(make: Make) -> None:
    values = [LONG] * 10 + [NEXT] * 5
    found = make(DecimalType(38, 10), pa.array(values, pa.decimal128(38, 10))).histogram("v", lower=NEXT)
    assert (found.edges[0], found.below, sum(found.counts)) == (NEXT, 10, 5)


COMMON = "x" * 256


@pytest.mark.parametrize("tail", ["", "a", "a" * 100, "~", "\U0010ffff"])
@pytest.mark.parametrize("operator", [e.EqualTo, e.LessThan, e.LessThanOrEqual, e.GreaterThan, e.GreaterThanOrEqual])
def test_what_a_sketch_cuts_off_is_an_error_of_the_estimate(make: Make, tail: str, operator: Any) -> None:
    """Of texts that begin alike the sketch says how many there are, and no bound claims to know their order."""
    values = [COMMON + tail for tail in ("a", "b" * 60, "\U0010ffff")] * 10 + ["b", "z"] * 5
    estimates = make(StringType(), pa.array(values)).estimate(operator("v", COMMON + tail), actual=True)
    assert all(one.rows_lower <= estimates.actual <= one.rows_upper for one in estimates)
    kll = estimates["kll"]
    assert kll.rows_upper - kll.rows_lower == pytest.approx(30 if tail or operator in _SPLIT else 0, abs=3)
    if operator is e.EqualTo:
        assert kll.rows is None
        assert "longer than the characters that are kept by the sketch, at most" in kll.reason


_SPLIT = (e.EqualTo, e.LessThanOrEqual, e.GreaterThan)
"""What 256 characters alone do not decide: the longer values of the same beginning are above them."""


@pytest.mark.parametrize(("row_filter", "actual"), [(f"v > '{COMMON}4'", 0), (f"v <= '{COMMON}4'", 30)])
def test_what_the_sketches_of_partitions_cut_off_is_no_chance(
    catalog: SqlCatalog, catalog_properties: dict[str, str], row_filter: str, actual: int
) -> None:
    """The values of all partitions begin alike, and all lie on one side: errors that add up."""
    table = catalog.create_table(
        "db.t", Schema(NestedField(1, "day", IntegerType()), NestedField(2, "v", StringType()))
    )
    with table.update_spec() as change:
        change.add_identity("day")
    table.append(pa.table({"day": pa.array(range(30), pa.int32()), "v": [f"{COMMON}{n % 4}" for n in range(30)]}))
    opened = icestats.load("db.t", catalog=catalog_properties)
    compute_here(opened, by_partition=True).commit()
    estimates = icestats.load("db.t", catalog=catalog_properties).estimate(row_filter, actual=True)
    assert estimates.actual == actual
    assert all(one.rows_lower <= actual <= one.rows_upper for one in estimates), estimates


def test_the_last_edge_of_a_histogram_says_that_it_is_cut(make: Make) -> None:
    """It is a beginning of the largest value, not the largest value; shorter edges are exact and say nothing."""
    table = make(StringType(), pa.array(["b", COMMON + "y", COMMON + "z"]))
    found = table.histogram("v")
    assert found.edges[-1] == COMMON
    assert found.upper_is_cut
    assert found.to_json()["upper_is_cut"]
    part = table.histogram("v", upper=COMMON + "yyy")
    assert (sum(part.counts), part.above, part.edges[-1]) == (3, 0, COMMON)
    short = table.histogram("v", upper="c")
    assert not short.upper_is_cut
    assert "upper_is_cut" not in short.to_json()


@pytest.mark.parametrize(("kind", "encode"), [(StringType(), str), (BinaryType(), str.encode)])
def test_values_that_begin_alike_say_nothing_of_one_another_nor_of_others(make: Make, kind: Any, encode: Any) -> None:
    """1,000 long values with one beginning are counted as one: a single one of them has few rows, a short one none."""
    long, short = [encode("z" * 256 + str(n % 1_000)) for n in range(4_000)], [encode("a"), encode("b")] * 100
    table = make(kind, pa.array([*long, *short]))
    for row_filter, rows, upper in (
        (e.EqualTo("v", long[7]), 4, 4_000),
        (e.In("v", [long[7], long[8], short[0]]), 108, 4_100),
        (e.EqualTo("v", short[0]), 100, 100),
        (e.NotEqualTo("v", short[0]), 4_100, 4_100),
        (e.EqualTo("v", encode("y" * 300)), 0, 0),
    ):
        found = table.estimate(row_filter, actual=True)
        assert found.actual == rows
        for source in ("frequent-items", "combined"):
            assert found[source].rows_lower <= rows <= found[source].rows_upper <= upper
            assert found[source].rows == pytest.approx(rows, rel=0.1)


@pytest.mark.parametrize("beginning", ["", "z" * 256], ids=["beginnings differ", "one beginning"])
def test_long_values_are_groups_and_keys_of_joins(make: Make, beginning: str) -> None:
    """50 long values of 10 rows each: none of them is counted by itself, and Theta knows each."""
    table = make(StringType(), pa.array([f"{beginning}{n:02d}" + "x" * 300 for n in range(50) for _ in range(10)]))
    groups = table.estimate_groups(["v"], actual=True)
    assert groups.actual == 50
    assert groups["groups-independent"].rows == pytest.approx(50)
    joined = table.estimate_join(table, "v", actual=True)
    assert joined.actual == 5_000
    for one in joined:
        assert one.rows == pytest.approx(5_000), one.source


def test_keys_that_begin_with_64_bytes_alike_are_not_joined_by_their_beginnings(make: Make) -> None:
    """Sampled rows keep 64 bytes: by these alone, each row of 500 would meet each."""
    table = make(StringType(), pa.array(["s3://bucket/" + "folder/" * 10 + f"{n % 50:02d}" for n in range(500)]))
    joined = table.estimate_join(table, "v", actual=True)
    assert joined.actual == 5_000
    assert joined["join-frequent-items"].rows == pytest.approx(5_000)


@pytest.mark.parametrize(("kind", "encode"), [(StringType(), str), (BinaryType(), str.encode)])
def test_a_common_value_that_may_be_longer_says_so(make: Make, kind: Any, encode: Any) -> None:
    """No row has the 256 characters that are kept: two rows begin so. A table without longer values has just these."""
    beginning, short = "é" * 256 if kind == StringType() else "e" * 256, encode("b")
    table = make(kind, pa.array([encode(beginning + "y"), encode(beginning + "z"), short]))
    kept = encode(beginning) if kind == StringType() else encode(beginning).hex()
    found = {row["value"]: row["rows_at_least"] for row in table.frequent_values("v").to_pylist()}
    assert found == {f"{kept}…": 2, short if kind == StringType() else short.hex(): 1}
    (column,) = table.columns().to_pylist()
    assert [one["value"] for one in column["common_values"]] == list(found)


def test_a_common_value_of_256_characters_is_whole_where_none_is_longer(make: Make) -> None:
    assert make(StringType(), pa.array([COMMON])).frequent_values("v")["value"].to_pylist() == [COMMON]
