"""Histograms from KLL sketches, in the column's own values."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.errors import CallError
from icestats.iceberg.types import to_arrow_type
from icestats.stats.histogram import QUANTILE_RANKS, Histogram, build_histogram, histogram_schema
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of, item_value, to_item

UTC = dt.UTC


def histogram(type_text: str, array: pa.Array, **options: Any) -> Histogram:
    item_type = item_type_of(type_text)
    assert item_type is not None
    sketch = KllSketch(item_type)
    sketch.update(array)
    return build_histogram(sketch, column="c", type_text=type_text, **options)


def long_histogram(values: Any, **options: Any) -> Histogram:
    return histogram("long", pa.array(values, pa.int64()), **options)


COLUMNS = [
    ("int", [5, -3, 1], -3, 5),
    ("long", [2**62, -(2**62), 2**53 + 1], -(2**62), 2**62),
    ("float", [1.5, 2.5], 1.5, 2.5),
    ("double", [0.1, 0.7, 0.2], 0.1, 0.7),
    ("decimal(9, 2)", [Decimal("1.50"), Decimal("-3.25")], Decimal("-3.25"), Decimal("1.50")),
    ("decimal(38, 2)", [Decimal("-1e30"), Decimal("2e30")], Decimal("-1e30"), Decimal("2e30")),
    ("date", [dt.date(2026, 9, 1), dt.date(2020, 2, 29)], dt.date(2020, 2, 29), dt.date(2026, 9, 1)),
    ("time", [dt.time(1), dt.time(23)], dt.time(1), dt.time(23)),
    (
        "timestamp",
        [dt.datetime(2026, 9, 1, 10), dt.datetime(1969, 1, 1)],
        dt.datetime(1969, 1, 1),
        dt.datetime(2026, 9, 1, 10),
    ),
    (
        "timestamptz",
        [dt.datetime(2026, 9, 1, tzinfo=UTC), dt.datetime(1969, 1, 1, tzinfo=UTC)],
        dt.datetime(1969, 1, 1, tzinfo=UTC),
        dt.datetime(2026, 9, 1, tzinfo=UTC),
    ),
    ("timestamp_ns", [10**18 + 1, 5], 5, 10**18 + 1),
    ("string", ["b", "é", "a"], "a", "é"),
    ("boolean", [True, False], False, True),
]


@pytest.mark.parametrize(("type_text", "values", "low", "high"), COLUMNS, ids=[c[0] for c in COLUMNS])
@pytest.mark.parametrize("kind", ["equi-width", "equi-height"])
def test_edges_are_values_of_the_column_from_smallest_to_largest(
    type_text: str, values: list[Any], low: Any, high: Any, kind: Any
) -> None:
    made = histogram(type_text, pa.array(values, to_arrow_type(type_text)), bins=4, kind=kind)
    assert (made.edges[0], made.edges[-1]) == (low, high)
    assert {type(edge) for edge in made.edges} == {type(low)}
    assert (made.quantiles[0.0], made.quantiles[1.0]) == (low, high)
    assert tuple(made.quantiles) == QUANTILE_RANKS
    assert len(made.counts) == len(made.edges) - 1
    assert sum(made.counts) == made.n == len(values)
    assert all(a < b for a, b in pairwise(made.edges[:-1]))
    assert made.edges[-2] <= made.edges[-1]


@pytest.mark.parametrize(("type_text", "values", "low", "high"), COLUMNS, ids=[c[0] for c in COLUMNS])
def test_the_table_has_the_documented_schema_and_the_json_is_json(
    type_text: str, values: list[Any], low: Any, high: Any
) -> None:
    made = histogram(type_text, pa.array(values, to_arrow_type(type_text)), bins=3)
    made = replace(made, snapshot_id=2**62 + 1)
    table = made.to_arrow()
    assert table.schema == histogram_schema(type_text)
    assert table.num_rows == len(made.counts)
    assert table["count"].to_pylist() == list(made.counts)
    assert table["lower_edge"].to_pylist()[1:] == table["upper_edge"].to_pylist()[:-1]
    if not type_text.endswith("_ns"):
        assert table["lower_edge"][0].as_py() == low
        assert table["upper_edge"][-1].as_py() == high
    shown = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert shown["snapshot_id"] == str(2**62 + 1)
    assert len(shown["edges"]) == len(shown["counts"]) + 1
    assert list(shown["quantiles"]) == ["0", "0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99", "1"]


def test_the_json_has_the_contract_s_keys() -> None:
    made = replace(long_histogram([1, 2]), null_count=3)
    expected = [
        "column",
        "source",
        "snapshot_id",
        "n",
        "null_count",
        "nan_count",
        "rank_error",
        "edges",
        "counts",
        "quantiles",
    ]
    shown = made.to_json()
    assert list(shown) == expected
    assert (shown["null_count"], shown["nan_count"], shown["snapshot_id"], shown["source"]) == (3, None, None, "kll")
    decimals = histogram("decimal(9, 2)", pa.array([Decimal("1.50")])).to_json()
    assert decimals["edges"] == ["1.50", "1.50"]


@pytest.mark.parametrize("kind", ["equi-width", "equi-height"])
def test_counts_of_a_sketch_that_keeps_everything_are_exact(kind: Any) -> None:
    values = np.random.default_rng(8).integers(0, 1_000, 200)
    made = long_histogram(values, bins=7, kind=kind)
    edges = [*made.edges[:-1], made.edges[-1] + 1]
    assert list(made.counts) == np.histogram(values, edges)[0].tolist()
    assert made.count_error == 0.0


@pytest.mark.parametrize("kind", ["equi-width", "equi-height"])
def test_counts_are_within_their_error(kind: Any) -> None:
    values = np.random.default_rng(9).lognormal(0, 1, 100_000)
    made = histogram("double", pa.array(values), bins=15, kind=kind)
    truth = np.histogram(values, made.edges)[0]
    assert made.count_error == 2 * made.rank_error * 100_000
    assert np.abs(np.array(made.counts) - truth).max() < made.count_error
    assert sum(made.counts) == 100_000


def test_equi_width_bins_are_of_the_same_width() -> None:
    made = histogram("double", pa.array([-1.0, 0.3, 9.0]), bins=10)
    assert np.diff(made.edges) == pytest.approx([1.0] * 10)
    assert made.kind == "equi-width"


def test_equi_height_bins_are_of_about_the_same_count() -> None:
    made = long_histogram(np.random.default_rng(1).zipf(1.2, 50_000).clip(0, 2**60), bins=5, kind="equi-height")
    spread = long_histogram(range(50_000), bins=5, kind="equi-height")
    assert max(spread.counts) - min(spread.counts) < 2 * spread.count_error
    assert sum(made.counts) == 50_000


def test_a_heavy_value_lies_in_the_bin_that_it_opens() -> None:
    made = long_histogram([1] + [5] * 98 + [9], bins=4, kind="equi-height")
    assert made.edges == (1, 5, 9)
    assert made.counts == (1.0, 99.0)


@pytest.mark.parametrize(("last", "bins"), [(12, 20), (31, 20), (60, 7), (99, 10)])
def test_bins_of_few_whole_numbers_have_as_many_each(last: int, bins: int) -> None:
    """Months and days of a month are no comb: each bin but the last holds the same number of whole numbers."""
    made = histogram("int", pa.array(range(1, last + 1), pa.int32()), bins=bins)
    assert len(made.counts) <= bins
    assert len(set(made.counts[:-1])) == 1
    assert made.counts[-1] <= made.counts[0]


def test_few_strings_have_a_bin_each() -> None:
    """Five values are five bins: the largest does not share one with the second largest."""
    made = histogram("string", pa.array(["a", "b", "b", "c", "d", "e", "e"]), bins=5)
    assert made.edges == ("a", "b", "c", "d", "e", "e")
    assert made.counts == (1, 2, 1, 1, 2)


def test_strings_are_always_of_equal_height_and_say_so() -> None:
    made = histogram("string", pa.array(["a", "b", "c", "d"]), bins=2, kind="equi-width")
    assert made.kind == "equi-height"
    assert (made.edges, made.counts) == (("a", "b", "d"), (1.0, 3.0))


def test_longer_strings_of_another_writer_lie_within_a_limit_that_is_cut() -> None:
    """All but those of `a` begin like the upper limit, of which 256 characters count."""
    theirs = datasketches.kll_items_sketch(200)
    for value in ["a"] * 20 + ["b" * 300] * 60 + ["b" * 256 + "c" * 10] * 20:
        theirs.update(value)
    sketch = KllSketch.from_bytes("string", theirs.serialize(datasketches.PyStringsSerDe()))
    found = build_histogram(sketch, column="s", type_text="string", upper="b" * 300)
    assert (found.below, found.above, found.edges, found.counts) == (0, 0, ("a", "b" * 256, "b" * 256), (20, 80))
    assert found.upper_is_cut


def test_no_values_have_no_edges_and_no_counts() -> None:
    made = long_histogram([])
    assert (made.n, made.edges, made.counts, dict(made.quantiles), made.count_error) == (0, (), (), {}, 0.0)
    assert made.to_arrow().num_rows == 0
    assert made.to_json()["edges"] == []


@pytest.mark.parametrize("count", [1, 3, 100_000])
@pytest.mark.parametrize("kind", ["equi-width", "equi-height"])
def test_a_constant_column_has_one_bin_from_its_value_to_its_value(count: int, kind: Any) -> None:
    made = long_histogram([42] * count, bins=10, kind=kind)
    assert (made.edges, made.counts) == ((42, 42), (float(count),))
    assert set(made.quantiles.values()) == {42}


def test_few_whole_numbers_make_fewer_bins_never_empty_ones() -> None:
    made = long_histogram([1, 2, 3, 3], bins=20)
    assert (made.edges, made.counts) == ((1, 2, 3, 3), (1.0, 1.0, 2.0))
    wide = long_histogram([0, 2**63 - 1, -(2**63)], bins=3)
    assert wide.edges == (-(2**63), -3074457345618258603, 3074457345618258602, 2**63 - 1)


def test_a_boolean_column_has_a_bin_for_each_value() -> None:
    made = histogram("boolean", pa.array([True, False, True]))
    assert (made.edges, made.counts) == ((False, True, True), (1.0, 2.0))


def test_floats_next_to_each_other_make_fewer_bins() -> None:
    low = 1.0
    high = math.nextafter(math.nextafter(low, 2), 2)
    made = histogram("double", pa.array([low, high]), bins=10)
    assert all(a < b for a, b in pairwise(made.edges))
    assert sum(made.counts) == 2


def test_the_widest_floats_and_infinities_have_finite_edges_between() -> None:
    wide = histogram("double", pa.array([-1.7e308, 1.7e308]), bins=4)
    assert all(map(math.isfinite, wide.edges))
    endless = histogram("double", pa.array([-math.inf, 0.0, 8.0, math.inf]), bins=4)
    assert endless.edges == (-math.inf, 0.0, 2.0, 4.0, 6.0, 8.0, math.inf)
    assert endless.counts == (1.0, 1.0, 0.0, 0.0, 0.0, 2.0)
    assert histogram("double", pa.array([-math.inf, math.inf])).counts == (2.0,)


def test_a_far_tail_shows_in_the_quantiles() -> None:
    values = np.concatenate([np.random.default_rng(3).random(99_900) * 10, [1e6] * 100])
    made = histogram("double", pa.array(values), bins=10)
    assert made.counts[0] > 99_000
    assert made.quantiles[0.95] < 10 < made.quantiles[1.0] == 1e6


def test_dates_that_python_cannot_hold_are_shown_as_their_integers() -> None:
    made = histogram("date", pa.array([0, 10**7], pa.int32()).view(pa.date32()), bins=1)
    assert made.edges == (dt.date(1970, 1, 1), 10**7)
    assert made.to_arrow().num_rows == 1
    assert made.to_json()["edges"] == ["1970-01-01", 10**7]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"bins": 0}, "bins is 0"), ({"bins": 10**9}, "from 1 to 100,000"), ({"kind": "v-optimal"}, "v-optimal")],
)
def test_a_wrong_call_is_said_in_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CallError, match=said):
        long_histogram([1], **options)


def test_items_that_do_not_go_with_the_type_are_a_wrong_call() -> None:
    sketch = KllSketch("long")
    sketch.update(pa.array([1]))
    for type_text in ("string", "double"):
        with pytest.raises(CallError, match=type_text):
            build_histogram(sketch, column="c", type_text=type_text)
    with pytest.raises(CallError, match="uuid"):
        item_value("uuid", b"x")


@pytest.mark.parametrize("kind", ["equi-width", "equi-height"])
@pytest.mark.parametrize(
    ("type_text", "values", "lower", "upper", "inside"),
    [
        ("long", list(range(100)), 10, 19, 10),
        ("long", list(range(100)), "10", None, 90),
        ("double", [i / 10 for i in range(100)], "0.95", 2.0, 11),
        ("decimal(9, 2)", [Decimal(i).scaleb(-2) for i in range(100)], "0.10", Decimal("0.19"), 10),
        ("date", [dt.date(2026, 9, 1) + dt.timedelta(i) for i in range(30)], "2026-09-11", dt.date(2026, 9, 20), 10),
        ("timestamp", [dt.datetime(2026, 9, 1, i % 24) for i in range(48)], "2026-09-01T10:00", "2026-09-01T11:00", 4),
        ("string", [f"{i:02d}" for i in range(100)], "10", "19", 10),
        ("timestamp", [dt.datetime(2026, 9, i) for i in range(1, 31)], dt.date(2026, 9, 11), dt.date(2026, 9, 20), 10),
        (
            "timestamptz",
            [dt.datetime(2026, 9, 1, i, tzinfo=dt.UTC) for i in range(24)],
            dt.datetime(2026, 9, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "2026-09-01T12:00:00+02:00",
            1,
        ),
        ("timestamp_ns", [10**18 + i for i in range(100)], "2001-09-09T01:46:40.00000001", 10**18 + 19, 10),
        ("boolean", [False, True, True], "true", True, 2),
        ("date", [2_932_897 + i for i in range(10)], "2932900", 2_932_901, 2),
        ("long", list(range(100)), 200, 300, 0),
        ("long", list(range(100)), -5, -1, 0),
        ("long", list(range(100)), 7, 7, 1),
    ],
)
def test_a_part_of_the_range_is_drawn_and_the_rest_is_counted_apart(
    type_text: str, values: list[Any], lower: Any, upper: Any, inside: int, kind: Any
) -> None:
    sketch = KllSketch(item_type_of(type_text) or "", 200)
    sketch.update(pa.array(values, to_arrow_type(type_text)))
    found = build_histogram(sketch, column="c", type_text=type_text, bins=5, kind=kind, lower=lower, upper=upper)
    assert sum(found.counts) == inside
    assert found.below + inside + found.above == found.n == len(values)
    if lower == -5:
        assert found.above == 100


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("long", "a"),
        ("long", Decimal("1.5")),
        ("int", dt.date(2026, 9, 1)),
        ("date", "yesterday"),
        ("date", dt.datetime(2026, 9, 1)),
        ("time", "10:00:00+02:00"),
        ("time", dt.time(10, tzinfo=dt.UTC)),
        ("timestamp", dt.time(10)),
        ("timestamp", "2026-09-01T10:00:00.0000001"),
        ("timestamp_ns", "2026-09-01T10:00:00.0000000001"),
        ("boolean", 5),
        ("double", "nan"),
        ("float", 1e39),
        ("string", 3),
    ],
)
def test_a_limit_of_another_type_is_a_wrong_call(type_text: str, value: Any) -> None:
    sketch = KllSketch(item_type_of(type_text) or "", 200)
    with pytest.raises(CallError, match="expected one such as") as caught:
        build_histogram(sketch, column="c", type_text=type_text, lower=value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("type_text", "lower", "upper"), [("long", 5, 3), ("date", "2026-09-02", "2026-09-01"), ("string", "b", "a")]
)
def test_a_range_that_ends_before_it_begins_is_a_wrong_call(type_text: str, lower: Any, upper: Any) -> None:
    with pytest.raises(CallError, match=r"above upper, which is .* expected a lower end up to the upper one") as caught:
        build_histogram(
            KllSketch(item_type_of(type_text) or ""), column="c", type_text=type_text, lower=lower, upper=upper
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["int", "long", "date", "timestamp", "decimal(9, 2)", "decimal(38, 10)"])
@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "9e999999999999999999", "inf", "nan"])
def test_ends_with_exponents_without_end_are_no_values(kind, number):
    """Of a billion digits, which Python writes out, or beyond what it counts with."""
    for given in (number, Decimal(number)):
        with pytest.raises(CallError, match="is not a value of type"):
            to_item(kind, given)
