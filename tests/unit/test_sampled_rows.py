"""What sampled rows add to estimates: ranges that go together, rare numbers, joins whose filters say much of a key."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue, EqualTo

import icestats
from icestats.estimation.formulas.frequent_sources import FrequentColumn, count_values_in
from icestats.estimation.formulas.group_shares import build_shares
from icestats.estimation.formulas.joint_sources import JointColumns, estimate_pair
from icestats.estimation.formulas.sampled_rows import shrink
from icestats.estimation.formulas.sketch_sources import Distribution, SketchedRows
from icestats.estimation.formulas.source_estimates import q_error
from icestats.iceberg.filters.value_sets import Interval, Leaf, ValueSet, above, below, build_points, build_prefix
from icestats.iceberg.types import encode_value
from icestats.stats.frequent_items import FrequentItem, FrequentValues
from icestats.stats.joint_statistics import JointItem, JointStatistics
from icestats.stats.kll import KllSketch
from icestats.stats.row_sample import RowSample
from icestats.stats.theta import ThetaSketch
from tests.computed_statistics import compute_here

ROWS = 60_000


def build_rows(seed: int, count: int = ROWS) -> pa.Table:
    """Parcels arrive some days after they are ordered; prices are cents; large shops sell to a few regions."""
    rng = np.random.default_rng(seed)
    ordered = rng.permutation(count) // 40
    shop = np.minimum(rng.zipf(1.3, count), 5_000)
    return pa.table(
        {
            "ordered": ordered,
            "arrived": ordered + rng.integers(1, 30, count),
            "late": pa.array([None if one < 1_000 else int(one) for one in ordered], pa.int64()),
            "price": np.round(rng.lognormal(3, 1, count), 2),
            "shop": shop,
            "region": np.where(rng.random(count) < 0.95, shop % 7, rng.integers(0, 7, count)),
            "weight": np.round(rng.gamma(2, 3, count), 3),
        }
    )


@pytest.fixture(scope="module")
def properties(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sampled")
    return {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}


@pytest.fixture(scope="module")
def table(properties) -> icestats.Table:
    with SqlCatalog("catalog", **properties) as catalog:
        catalog.create_namespace("db")
        rows = build_rows(1)
        made = catalog.create_table("db.t", rows.schema)
        made.append(rows.slice(0, ROWS // 2))
        made.append(rows.slice(ROWS // 2))
    compute_here(icestats.load("db.t", catalog=properties), together=()).commit()
    return icestats.load("db.t", catalog=properties)


@pytest.fixture(scope="module")
def divided(properties, table) -> icestats.Table:
    """The same rows in 20 partitions, with the pair of shop and region."""
    rows = build_rows(1)
    rows = rows.append_column("day", pa.array(np.arange(ROWS) % 20))
    with SqlCatalog("catalog", **properties) as catalog:
        made = catalog.create_table("db.divided", rows.schema)
        with made.update_spec() as spec:
            spec.add_identity("day")
        made.append(rows)
    compute_here(icestats.load("db.divided", catalog=properties), together=[("shop", "region")]).commit()
    return icestats.load("db.divided", catalog=properties)


@pytest.mark.parametrize("days", ["day = 3", "day >= 10", "day in (1, 2, 19)"])
@pytest.mark.parametrize(
    "row_filter",
    ["shop = 1 and region = 1", "shop = 1 and weight < 6", "price < 20", "ordered < 600 and arrived >= 400"],
)
def test_what_goes_together_does_so_in_the_partitions_that_are_left(divided, days, row_filter):
    found = divided.estimate(f"{days} and {row_filter}", actual=True)
    assert found["combined"].q_error <= 1.6
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper


@pytest.mark.parametrize(
    "row_filter",
    [
        "ordered < 300 and arrived >= 200 and arrived < 400",
        "ordered >= 700 and ordered < 750 and arrived >= 720 and arrived < 760",
        "ordered < 400 and arrived < 400 and late is null",
        "shop = 1 and region = 1 and weight < 6",
        "shop in (2, 3) and region >= 2 and region < 4",
    ],
)
def test_columns_that_go_together_need_no_pairs(table, row_filter):
    found = table.estimate(row_filter, actual=True)
    assert found["combined"].q_error <= 1.5
    assert found["kll"].q_error > 1.5
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper


@pytest.mark.parametrize(
    "row_filter", ["price < 20 and weight < 5", "region = 2 and price > 50", "shop = 1 and weight > 9"]
)
def test_independent_columns_stay_independent(table, row_filter):
    assert table.estimate(row_filter, actual=True)["combined"].q_error <= 1.25


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("true", "true"), ("region = 1", "true"), ("region = 1", "region = 2"), ("region = 1", "weight < 3")],
)
def test_a_filter_that_says_much_of_the_key_is_no_even_share_of_each_key(table, ours, theirs):
    found = table.estimate_join(table, "shop", row_filter=ours, other_filter=theirs, actual=True)
    assert found["join-frequent-items"].q_error <= (3 if theirs == "region = 2" else 1.4)
    if ours != "true":
        assert found["join-ndv"].q_error > 2


def test_keys_are_thinned_by_common_pairs_where_no_row_is_sampled(properties):
    with SqlCatalog("catalog", **properties) as catalog:
        rng = np.random.default_rng(5)
        city = np.minimum(rng.zipf(1.2, 40_000), 900)
        made = catalog.create_table("db.cities", pa.schema([("city", pa.int64()), ("state", pa.int64())]))
        made.append(pa.table({"city": city, "state": city // 3}))
    compute_here(icestats.load("db.cities", catalog=properties), together="auto").commit()
    cities = icestats.load("db.cities", catalog=properties)
    for state in (1, 20, 100):
        found = cities.estimate_join(cities, "city", row_filter=f"state = {state}", actual=True)
        assert found["join-frequent-items"].q_error <= 1.3


def test_a_group_of_dependent_columns_leaves_room_for_another_pair(properties):
    rng = np.random.default_rng(3)
    base, seen = rng.integers(0, 4_000, 20_000), rng.zipf(1.4, 20_000) % 300
    columns = {f"of_base_{i}": base // 2**i for i in range(9)}
    blurred = np.where(rng.random(20_000) < 0.02, rng.integers(0, 8, 20_000), seen % 8)
    with SqlCatalog("catalog", **properties) as catalog:
        rows = pa.table(columns | {"seen": seen, "of_seen": blurred, "apart": rng.integers(0, 9, 20_000)})
        catalog.create_table("db.wide", rows.schema).append(rows)
    compute_here(icestats.load("db.wide", catalog=properties), together="auto").commit()
    found = icestats.load("db.wide", catalog=properties).columns_together().to_pylist()
    pairs = {(one["first"], one["second"]) for one in found}
    assert len(pairs) == 24
    assert ("seen", "of_seen") in pairs
    assert not any("apart" in pair for pair in pairs)


def test_the_best_estimate_is_never_the_worst(table):
    """`combined` is at least as good as one of the sources by themselves, on every filter of a workload."""
    for answer in table.estimate_workload(n=80, seed=11).answers:
        errors = {one.source: one.q_error for one in answer if one.q_error is not None}
        assert errors.pop("combined") <= 1.001 * max(errors.values()), answer.row_filter


def test_samples_of_different_scans_are_not_compared(properties, table):
    """Columns that were computed one after the other have no sampled rows in common."""
    with SqlCatalog("catalog", **properties) as catalog:
        rows = build_rows(2, 9_000).select(["ordered", "arrived"])
        catalog.create_table("db.apart", rows.schema).append(rows)
    for column in ("ordered", "arrived"):
        made = icestats.load("db.apart", catalog=properties)
        compute_here(made, columns=[column], together=()).commit()
    apart = icestats.load("db.apart", catalog=properties)
    row_filter = "ordered < 50 and arrived > 60"
    whole = 9_000 * (50 / 225) * (1 - 60 / 240)
    assert apart.estimate(row_filter)["combined"].rows == pytest.approx(whole, rel=0.1)


def test_what_may_be_chance_corrects_nothing():
    assert shrink(1.3, 1 / 30) == 1.0
    assert shrink(1.3, 1 / 3_000) == pytest.approx(1.3, rel=0.02)
    assert shrink(0.01, 0.2) < 0.02


def test_a_table_whose_rows_are_gone_has_none_that_match(properties):
    """What was sampled before corrects nothing."""
    with SqlCatalog("catalog", **properties) as catalog:
        rows = build_rows(3, 5_000).select(["ordered", "arrived", "shop"])
        made = catalog.create_table("db.gone", rows.schema)
        made.append(rows)
        compute_here(icestats.load("db.gone", catalog=properties), together=()).commit()
        made.delete(AlwaysTrue())
    gone = icestats.load("db.gone", catalog=properties)
    found = gone.estimate("ordered < 50 and arrived > 60 and shop = 1")["combined"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (0.0, 0.0, 0.0)
    joined = gone.estimate_join(gone, "shop", row_filter="ordered < 50 and arrived > 60")
    grouped = gone.estimate_groups(["shop"], "ordered < 50 and arrived > 60")
    assert [one.rows for one in (*joined, *grouped)] == [0.0] * 5


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.7e308])
def test_a_number_beyond_all_others_is_one_that_is_not_there(table, value):
    found = table.estimate(EqualTo("price", value))
    assert found["combined"].rows == 0.0
    assert found["frequent-items"].rows_lower <= found["frequent-items"].rows <= found["frequent-items"].rows_upper


def test_no_rows_meet_no_groups():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build_shares([10.0], 0.0, 0.0).count_met(0.0) == 0.0


def build_column(
    kind: str, values: list[Any], common: dict[Any, int], others_at_most: int, step: int
) -> FrequentColumn:
    """Build what is committed of a column; of the rows, in their order, one of so many is sampled."""
    sample = [encode_value(kind, value).hex() for value in values[::step]]
    sketch, count = KllSketch(kind), float(len(values))
    sketch.update(pa.array(values))
    return FrequentColumn(
        values=FrequentValues(
            kind,
            len(values),
            others_at_most,
            tuple(FrequentItem(encode_value(kind, value), rows, rows) for value, rows in common.items()),
            sample=RowSample.from_document({"row-count": len(values), "seed": 7, "values": sample}),
        ),
        null_count=0,
        nan_count=0,
        ndv=float(len(set(values))),
        distribution=Distribution(sketch, 0.0, 0.0, 0),
        size_bytes=0,
        ends=(min(values), max(values)),
        rows=SketchedRows(np.array([count]), np.zeros(1), np.zeros(1)),
    )


def test_a_prefix_narrower_than_the_error_of_ranks_has_the_rows_that_are_sampled_of_it():
    """A sketch keeps one value of some 200, so that it has none or two of a prefix of a hundred."""
    texts = build_column("string", [f"{number:06}" for number in range(110_000)], {}, 200, 27)
    for start in range(0, 1_100, 57):
        rows, lower, upper = count_values_in(build_prefix(f"{start:04}"), texts)
        assert q_error(rows, 100) <= 1.4
        assert lower <= 100 <= upper


@pytest.mark.parametrize(("low", "actual"), [(5_000, 10_100), (20_000, 100)])
def test_few_numbers_have_as_many_rows_as_others_unless_sampled_rows_contradict(low, actual):
    crowd = np.repeat(np.arange(5_000, 5_100), 100)
    numbers = build_column("long", np.sort(np.append(np.arange(100_000), crowd)).tolist(), {}, 200, 27)
    rows, lower, upper = count_values_in(ValueSet((Interval(below(low), above(low + 99)),)), numbers)
    assert q_error(rows, actual) <= 1.15
    assert lower <= actual <= upper


def build_pairs(rows: dict[tuple[int, int], int], least: int) -> JointColumns:
    """Build what is committed of two columns: as common those pairs that have so many rows."""
    every = [pair for pair, count in rows.items() for _ in range(count)]
    sides = [[pair[side] for pair in every] for side in (0, 1)]
    counts = [{value: values.count(value) for value in set(values)} for values in sides]
    columns = [build_column("long", *one, 0, 25) for one in zip(sides, counts, strict=True)]
    common = {pair: count for pair, count in rows.items() if count >= least}
    items = [JointItem(tuple(encode_value("long", value) for value in pair), n, n) for pair, n in common.items()]
    others = max(count for count in rows.values() if count < least)
    ndvs, theta = tuple(map(len, counts)), ThetaSketch().to_bytes()
    found = JointStatistics((1, 2), ("long", "long"), len(every), others, ndvs, theta, tuple(items))
    return JointColumns(found, columns[0].rows, 0, (columns[0], columns[1]))


def estimate_rows(found: JointColumns, pair: tuple[int, int]) -> float:
    leaves = [Leaf(side + 1, "ab"[side], "long", build_points([pair[side]]), "") for side in (0, 1)]
    shares = [count_values_in(leaf.values, column)[0] for leaf, column in zip(leaves, found.columns, strict=True)]
    count = found.statistics.row_count
    return float(estimate_pair(found, tuple(leaves), (shares[0] / count, shares[1] / count)).estimate[0]) * count


def test_beside_its_common_partner_a_value_has_noise():
    """Of a value that has no partner among the common pairs, the one that is asked for may be it."""
    decided = {(number, number % 20): 100 for number in range(200)}
    noise = {(number, (number + 1) % 20): 10 for number in range(200)}
    rare = {(number, number % 20): 40 for number in range(200, 400)}
    found = build_pairs(decided | noise | rare, 50)
    assert estimate_rows(found, (7, 8)) < 10
    assert q_error(estimate_rows(found, (300, 0)), 40) <= 1.1
