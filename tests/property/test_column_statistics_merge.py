"""Statistics of two sets of rows, merged, are those of all the rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.iceberg.metadata import Field
from icestats.iceberg.types import to_arrow_type
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.frequent_items import read_frequent_values
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import ColumnStatistics, find_kll_k, find_theta_lg_k, merge_column_statistics
from icestats.stats.theta import ThetaSketch

VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, float("nan")])),
    "decimal(9, 2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "decimal(38, 0)": st.integers(-(10**37), 10**37).map(Decimal),
    "date": st.dates(dt.date(1, 1, 1), dt.date(9999, 1, 1)),
    "timestamp": st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 1, 1)),
    "string": st.text(st.characters(codec="utf-8"), max_size=8),
    "binary": st.binary(max_size=8),
    "fixed[3]": st.binary(min_size=3, max_size=3),
    "uuid": st.binary(min_size=16, max_size=16),
}


def summarize(type_text: str, values: list[object], lg_k: int = 12, k: int = 200) -> ColumnStatistics:
    accumulator = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True), k=k, lg_k=lg_k)
    accumulator.update(pa.array(values, to_arrow_type(type_text)))
    return accumulator.result()


@pytest.mark.parametrize("type_text", VALUES)
@given(data=st.data())
def test_merged_statistics_are_those_of_all_rows(type_text, data):
    """Counts, extremes, lengths and the Theta sketch exactly; the KLL sketch has the same n, smallest and largest."""
    rows = st.lists(st.none() | VALUES[type_text], max_size=30)
    first, second = data.draw(rows), data.draw(rows)
    merged = merge_column_statistics(summarize(type_text, first), summarize(type_text, second), lg_k=12)
    whole = summarize(type_text, first + second)
    items = [read_frequent_values(one.frequent_items) for one in (merged, whole)]
    assert items[0] == items[1]
    assert Counter(items[0].sample.values) == Counter(items[1].sample.values)
    assert replace(merged, kll=None, frequent_items=b"") == replace(whole, kll=None, frequent_items=b"")
    if whole.kll is not None:
        ours, theirs = (KllSketch.from_bytes(whole.item_type, c.kll) for c in (merged, whole))
        assert (ours.n, ours.min_value, ours.max_value, ours.k) == (
            theirs.n,
            theirs.min_value,
            theirs.max_value,
            theirs.k,
        )


@pytest.mark.parametrize("lg_k", [10, 12, 14])
def test_a_theta_sketch_beyond_its_size_stays_the_same_as_a_full_one(lg_k):
    first, second = (summarize("long", list(range(start, start + 40_000)), lg_k) for start in (0, 20_000))
    merged = merge_column_statistics(first, second, lg_k=lg_k)
    assert merged.theta == summarize("long", list(range(60_000)), lg_k).theta
    assert ThetaSketch.from_bytes(merged.theta).estimate() == pytest.approx(60_000, rel=3 / 2 ** (lg_k / 2))


def test_the_size_of_a_theta_sketch_is_never_taken_for_less_than_it_holds():
    """An exact sketch of many values stays exact when few are added."""
    assert find_theta_lg_k(summarize("long", list(range(5_000)), 14).theta) == 13
    assert find_theta_lg_k(summarize("long", list(range(50_000)), 14).theta) == 14
    assert find_theta_lg_k(summarize("long", list(range(50_000)), 10).theta) == 12
    assert find_theta_lg_k(summarize("long", []).theta) == 12


def test_the_merged_kll_sketch_is_within_its_error():
    rng = np.random.default_rng(7)
    first, second = rng.lognormal(size=50_000), rng.normal(100, 1, size=2_000)
    merged = merge_column_statistics(summarize("double", list(first)), summarize("double", list(second)), lg_k=12)
    sketch = KllSketch.from_bytes("double", merged.kll)
    values = np.sort(np.concatenate([first, second]))
    points = values[:: len(values) // 20]
    true_ranks = np.searchsorted(values, points, side="right") / len(values)
    assert np.abs(np.asarray(sketch.ranks(list(points))) - true_ranks).max() <= sketch.rank_error


def test_what_cannot_be_merged_is_refused():
    long, other = summarize("long", [1]), summarize("int", [1])
    with pytest.raises(ValueError, match="int"):
        merge_column_statistics(long, other, lg_k=12)
    smaller = summarize("long", [1], k=100)
    assert (find_kll_k(long), find_kll_k(smaller), find_kll_k(summarize("uuid", []))) == (200, 100, None)
    with pytest.raises(ValueError, match="k 200 and 100"):
        merge_column_statistics(long, smaller, lg_k=12)
