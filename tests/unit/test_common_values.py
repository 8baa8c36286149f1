"""Common values and columns that go together: what is committed of them, and estimates where they matter."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType

import icestats
from icestats.estimation.formulas.source_estimates import q_error
from icestats.iceberg.storage import local_path
from icestats.scan.scan_job import Sizes
from icestats.table.statistics import Statistics
from tests.computed_statistics import compute_here

ROWS = 40_000


def planted(seed: int, count: int = ROWS) -> pa.Table:
    """A city decides its country in 97 of 100 rows; keys are skewed; most rows have one status."""
    rng = np.random.default_rng(seed)
    city = rng.zipf(1.3, count) % 3_000
    country = np.where(rng.random(count) < 0.97, city % 50, rng.integers(0, 50, count))
    price = np.round(rng.lognormal(3, 1, count), 2)
    return pa.table(
        {
            "city": [f"city{one}" for one in city],
            "country": [f"C{one}" if one else None for one in country],
            "key": rng.zipf(1.2, count) % 100_000,
            "status": rng.choice(["ok", "bad", "late"], count, p=[0.97, 0.02, 0.01]),
            "price": pa.array([None if one < 2 else one for one in price], pa.float64()),
            "place": pa.array([{"x": 1}] * count, pa.struct([("x", pa.int64())])),
        }
    )


@pytest.fixture(scope="module")
def properties(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("common")
    made = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    with SqlCatalog("catalog", **made) as catalog:
        catalog.create_namespace("db")
    return made


@pytest.fixture(scope="module")
def bare(properties) -> icestats.Table:
    with SqlCatalog("catalog", **properties) as catalog:
        rows = planted(1)
        table = catalog.create_table("db.t", rows.schema)
        table.append(rows.slice(0, ROWS // 2))
        table.append(rows.slice(ROWS // 2))
    return icestats.load("db.t", catalog=properties)


@pytest.fixture(scope="module")
def table(bare, properties) -> icestats.Table:
    compute_here(bare, together="auto").commit()
    return icestats.load("db.t", catalog=properties)


FILTERS = (
    "status = 'ok'", "status != 'ok'", "status in ('bad', 'late', 'none')", "city = 'city1'", "city = 'city2999'",
    "city in ('city1', 'city5', 'nowhere')", "city not in ('city1', 'city2')", "city like 'city1%'", "country is null",
    "country is not null", "price is not null", "key = 1", "key < 3", "key >= 2 and key <= 40", "key in (1, 2, 99)",
    "price < 5", "price = 20.5", "city = 'city1' and country = 'C1'", "city = 'city2' and country = 'C9'",
    "city in ('city3', 'city4') and country in ('C3', 'C5')", "country is null and city = 'city50'",
    "city like 'city1%' and country = 'C1' and price < 30", "status = 'late' or country = 'C3'",
    "not (status = 'ok' and key = 1)",
)  # fmt: skip


@pytest.mark.parametrize("row_filter", FILTERS)
def test_bounds_by_common_values_hold_the_truth(table, row_filter):
    found = table.estimate(row_filter, actual=True)
    for source in ("frequent-items", "combined"):
        one = found[source]
        assert one.rows_lower <= found.actual <= one.rows_upper
        assert one.rows is None or one.rows_lower <= one.rows <= one.rows_upper
    assert found["combined"].q_error <= 3


def test_rows_of_common_values_are_counted(table):
    status = table.frequent_values("status").to_pylist()
    rows = planted(1)["status"].value_counts().to_pylist()
    truth = sorted(((one["counts"], one["values"]) for one in rows), reverse=True)
    assert [(one["rows_at_least"], one["value"]) for one in status] == truth
    assert all(one["rows_at_least"] == one["rows_at_most"] for one in status)
    *kept, others = table.frequent_values("key").to_pylist()
    assert others["value"] is None
    assert 0 < others["rows_at_most"] <= kept[20]["rows_at_least"]
    assert 500 < len(kept) <= 1_024


def test_columns_have_their_five_most_common_values(bare, table):
    found = {row["name"]: row for row in table.columns().to_pylist()}
    for name in ("city", "status", "key"):
        rows = table.frequent_values(name).slice(0, 5).to_pylist()
        expected = [{key: row[key] for key in ("value", "rows_at_least", "rows_at_most", "share")} for row in rows]
        assert found[name]["common_values"] == [one for one in expected if one["value"] is not None]
        assert "rows at least and at most" in dict(found[name]["provenance"])["common_values"]
    assert (found["place.x"]["common_values"], bare.columns()["common_values"].null_count) == (None, 6)
    assert dict(found["place.x"]["provenance"])["common_values"].startswith("unknown")
    said = repr(icestats.show(table.columns(), "name", "common_values"))
    assert f"ok ({found['status']['common_values'][0]['share']:.1%}), bad (2." in said
    assert "–" in said


def test_hostile_common_values_are_cut_and_escaped(properties):
    rows = pa.table({"text": ["<script>alert(1)</script>\x1b[31m"] * 9 + ["long " * 90] * 3})
    with SqlCatalog("catalog", **properties) as catalog:
        catalog.create_table("db.hostile", rows.schema).append(rows)
    compute_here(icestats.load("db.hostile", catalog=properties)).commit()
    shown = icestats.show(icestats.load("db.hostile", catalog=properties).columns(), "name", "common_values")
    assert "<script>alert(1)</scrip… (75.0%), long long long long lon… (25.0%)" in repr(shown)
    assert "&lt;script&gt;alert" in shown._repr_html_()
    assert "<script" not in shown._repr_html_()


def test_columns_that_go_together_are_found_with_their_strength(table):
    (pair,) = table.columns_together().to_pylist()
    assert (pair["first"], pair["second"]) == ("city", "country")
    assert pair["first_decides_second"] > 0.9
    assert pair["second_decides_first"] < pair["first_decides_second"]
    most = pair["common_pairs"][0]
    assert (most["first"], most["second"]) == ("city1", "C1")
    assert most["rows_at_least"] == table.estimate("city = 'city1' and country = 'C1'", actual=True).actual


def test_an_and_of_such_columns_is_no_product(bare, table):
    found = table.estimate("city = 'city1' and country = 'C1'", actual=True)
    assert found["combined"].rows == found.actual
    assert q_error(found["kll"].rows, found.actual) > 2
    assert "columns that have no statistics together independent" in found["combined"].assumes


@pytest.mark.parametrize(
    ("columns", "row_filter", "most"),
    [
        (["city"], "true", 1.05),
        (["country"], "true", 1.0),
        (["city", "country"], "true", 1.1),
        (["country", "city", "status"], "true", 1.3),
        (["city", "country"], "price < 5", 1.3),
        (["city"], "city in ('city1', 'city2')", 1.0),
        (["country"], "country is not null", 1.0),
    ],
)
def test_groups_are_estimated_by_what_goes_together(table, columns, row_filter, most):
    found = table.estimate_groups(columns, row_filter, actual=True)
    assert found["groups-together"].q_error <= most
    if columns == ["city", "country"] and row_filter == "true":
        assert found["groups-independent"].q_error > 2


@pytest.mark.parametrize(
    ("on", "row_filter"),
    [("key", "true"), ("city", "status = 'late'"), ("key", "key in (1, 5, 77)"), ("price", "true")],
)
def test_a_join_on_skewed_keys_counts_the_common_ones(table, on, row_filter):
    found = table.estimate_join(table, on, row_filter=row_filter, actual=True)
    assert found["join-frequent-items"].q_error <= 1.3
    assert found["join-frequent-items"].q_error < found["join-ndv"].q_error


@pytest.mark.parametrize(
    "of_key", ["key = 5", "key >= 300 and key <= 2000", "key in (1, 7, 99999)", "key != 1", "(key = 3 or key > 50)"]
)
def test_what_one_side_demands_of_the_key_holds_on_both(table, of_key):
    """Whichever side names the key, the answer is the same, and near the truth."""
    late = "status = 'late'"
    found = [
        table.estimate_join(table, "key", row_filter=ours, other_filter=theirs, actual=True)
        for ours, theirs in ((of_key, late), ("true", f"{of_key} and {late}"), (of_key, f"{of_key} and {late}"))
    ]
    for source in ("join-ndv", "join-theta", "join-frequent-items"):
        assert len({round(one[source].rows, 3) for one in found}) == 1
    assert found[0]["join-frequent-items"].q_error <= 1.5


def test_a_filter_that_may_leave_a_row_joins_at_least_that_row(table):
    """Rare values of two columns, each of which is there, and which are not counted together."""
    found = table.estimate_join(table, "city", row_filter="city = 'city1' and key > 2000 and key < 2010 and price = 5")
    assert found["join-frequent-items"].rows >= table.estimate("city = 'city1'", actual=True).actual


def test_keys_of_one_side_alone_join_nothing(table, properties):
    with SqlCatalog("catalog", **properties) as catalog:
        other = catalog.create_table("db.other", pa.schema([("key", pa.int64())]))
        other.append(pa.table({"key": np.arange(500_000, 501_000)}))
    compute_here(icestats.load("db.other", catalog=properties)).commit()
    found = table.estimate_join(icestats.load("db.other", catalog=properties), "key", actual=True)
    assert found.actual == 0
    assert found["join-frequent-items"].rows < found["join-ndv"].rows


def test_statistics_of_an_earlier_snapshot_say_so_and_their_bounds_hold(properties):
    with SqlCatalog("catalog", **properties) as catalog:
        rows = planted(2, 5_000)
        late = catalog.create_table("db.late", rows.schema)
        late.append(rows)
        compute_here(icestats.load("db.late", catalog=properties), together=[("country", "city")]).commit()
        late.append(planted(3, 2_000))
        late.delete("status = 'late'")
    now = icestats.load("db.late", catalog=properties)
    for row_filter in FILTERS:
        found = now.estimate(row_filter, actual=True)
        for source in ("frequent-items", "combined"):
            assert found[source].rows_lower <= found.actual <= found[source].rows_upper
    assert "commits" in now.estimate("status = 'ok'")["frequent-items"].assumes
    assert now.columns_together()["commits_behind"].to_pylist() == [2]


def test_a_refresh_adds_new_rows_to_common_values_and_pairs(properties):
    with SqlCatalog("catalog", **properties) as catalog:
        first, second = planted(4, 5_000), planted(5, 3_000)
        grown = catalog.create_table("db.grown", first.schema)
        grown.append(first)
        compute_here(icestats.load("db.grown", catalog=properties), together=[("country", "city")]).commit()
        grown.append(second)
    icestats.load("db.grown", catalog=properties).refresh_statistics().commit()
    now = icestats.load("db.grown", catalog=properties)
    (pair,) = now.columns_together().to_pylist()
    assert (pair["row_count"], pair["commits_behind"]) == (8_000, 0)
    assert now.frequent_values("status")["commits_behind"].unique().to_pylist() == [0]
    for row_filter in FILTERS:
        found = now.estimate(row_filter, actual=True)
        assert found["frequent-items"].rows_lower <= found.actual <= found["frequent-items"].rows_upper
    most = now.estimate("city = 'city1' and country = 'C1'", actual=True)
    assert most["frequent-items"].rows == most.actual


def make_late_pair(catalog, properties, name):
    """Return a table whose columns a and b have statistics together of an earlier snapshot than their own."""
    ids = np.arange(100)
    rows = pa.table({"a": ids % 5, "b": ids % 10, "c": ids % 3, "d": ids % 7})
    created = catalog.create_table(name, rows.schema)
    for pair in (("a", "b"), ("c", "d")):
        created.append(rows)
        compute_here(icestats.load(name, catalog=properties), together=[pair]).commit()
    created.append(rows)
    return created


def test_a_refresh_adds_new_rows_to_pairs_of_other_snapshots_than_their_columns(catalog, catalog_properties):
    make_late_pair(catalog, catalog_properties, "db.late_pair")
    found = icestats.load("db.late_pair", catalog=catalog_properties).refresh_statistics()
    assert (list(found.added_together), found.left_together) == (["a, b"], {})
    assert ": a, b together" in str(found)
    found.commit()
    now = icestats.load("db.late_pair", catalog=catalog_properties)
    pairs = now.columns_together().to_pylist()
    assert {(p["first"], p["second"], p["row_count"], p["commits_behind"]) for p in pairs} == {
        ("a", "b", 300, 0),
        ("c", "d", 300, 0),
    }
    assert sum(one["rows_at_least"] for p in pairs if p["first"] == "a" for one in p["common_pairs"]) == 300
    assert not now.refresh_statistics().commit().committed


def test_a_refresh_adds_to_a_pair_of_columns_with_sketches_of_two_sizes(catalog, catalog_properties):
    ids = np.arange(100)
    rows = pa.table({"a": ids % 5, "b": ids % 10})
    created, larger = catalog.create_table("db.two_sizes", rows.schema), Sizes(400, 12, 400, 12)
    created.append(rows)
    compute_here(icestats.load("db.two_sizes", catalog=catalog_properties), together=[("a", "b")]).commit()
    compute_here(icestats.load("db.two_sizes", catalog=catalog_properties), columns=["b"], sizes=larger).commit()
    created.append(rows)
    found = icestats.load("db.two_sizes", catalog=catalog_properties).refresh_statistics()
    assert found.left_together == {}
    assert [(one.field_ids, one.row_count) for one in found.found.together] == [((1, 2), 200)]


def test_pairs_of_nested_fields_hinder_no_refresh(catalog, catalog_properties):
    rows = pa.table({"a": [1, 2], "b": [1, 2], "s": [{"x": 1}, {"x": 2}]})
    created = catalog.create_table("db.nested_pair", rows.schema)
    created.append(rows)
    opened = icestats.load("db.nested_pair", catalog=catalog_properties)
    computed = compute_here(opened, together=[("a", "b")]).found
    nested = replace(computed.together[0], field_ids=(1, created.schema().find_field("s.x").field_id))
    Statistics(opened._source, replace(computed, together=(nested,))).commit()
    created.append(rows)
    found = icestats.load("db.nested_pair", catalog=catalog_properties).refresh_statistics()
    assert (list(found.added_to), found.found.together, found.left_together) == (["a", "b"], (), {})


def test_a_pair_of_other_types_is_named(catalog, catalog_properties):
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "b": [1, 2]})
    created = catalog.create_table("db.widened_pair", rows.schema)
    created.append(rows)
    compute_here(icestats.load("db.widened_pair", catalog=catalog_properties), together=[("a", "b")]).commit()
    with created.update_schema() as changed:
        changed.update_column("a", LongType())
    compute_here(icestats.load("db.widened_pair", catalog=catalog_properties), together=()).commit()
    created.append(rows)
    found = icestats.load("db.widened_pair", catalog=catalog_properties).refresh_statistics()
    assert found.left_together == {"a, b": "they are of when these had other types"}


def test_pairs_beyond_the_most_of_a_refresh_are_named(catalog, catalog_properties):
    names = "abcdefghijkl"
    rows = pa.table({name: np.arange(20) % (2 + at) for at, name in enumerate(names)})
    created, pairs = catalog.create_table("db.many_pairs", rows.schema), list(combinations(names, 2))
    created.append(rows)
    for some in (pairs[:33], pairs[33:]):
        compute_here(icestats.load("db.many_pairs", catalog=catalog_properties), together=some).commit()
    created.append(rows)
    found = icestats.load("db.many_pairs", catalog=catalog_properties).refresh_statistics()
    assert [len(found.found.together), len(found.left_together)] == [64, 2]
    assert "a refresh adds to 64 pairs at most" in str(found)


def test_a_pair_is_carried_over_a_snapshot_that_adds_nothing(catalog, catalog_properties):
    created = make_late_pair(catalog, catalog_properties, "db.nothing_new")
    icestats.load("db.nothing_new", catalog=catalog_properties).refresh_statistics().commit()
    created.refresh().append(created.scan(limit=0).to_arrow())
    icestats.load("db.nothing_new", catalog=catalog_properties).refresh_statistics().commit()
    now = icestats.load("db.nothing_new", catalog=catalog_properties)
    assert now.columns_together()["commits_behind"].to_pylist() == [0, 0]


def test_a_pair_that_a_refresh_cannot_add_to_is_named(catalog, catalog_properties):
    created = make_late_pair(catalog, catalog_properties, "db.left_pair")
    created.delete("a == 1 and b == 6")
    compute_here(icestats.load("db.left_pair", catalog=catalog_properties), together=()).commit()
    found = icestats.load("db.left_pair", catalog=catalog_properties).refresh_statistics()
    assert list(found.left_together) == ["c, d", "a, b"]
    assert "a, b together are left as they are: " in str(found)


def test_a_pair_whose_files_cannot_be_read_leaves_the_rest_of_a_refresh(catalog, catalog_properties):
    """The columns, of a later snapshot than the pair, need no file of the one that is lost."""
    created = make_late_pair(catalog, catalog_properties, "db.lost_file")
    before, now = (one.snapshot_id for one in created.refresh().metadata.snapshots[:2])
    paths = [set(created.inspect.files(one)["file_path"].to_pylist()) for one in (before, now)]
    (lost,) = paths[1] - paths[0]
    local_path(lost).unlink()
    found = icestats.load("db.lost_file", catalog=catalog_properties).refresh_statistics()
    assert list(found.left_together) == ["a, b"]
    found.commit()
    pairs = icestats.load("db.lost_file", catalog=catalog_properties).columns_together().to_pylist()
    assert {(pair["first"], pair["commits_behind"]) for pair in pairs} == {("a", 2), ("c", 0)}


def test_pairs_that_are_committed_are_made_anew_without_asking(table):
    assert [one.field_ids for one in compute_here(table).found.together] == [(1, 2)]
    assert compute_here(table, together=()).found.together == ()


@pytest.mark.parametrize(
    ("together", "message"),
    [
        ("city", "expected pairs of columns, or 'auto'"),
        ([("city",)], "expected pairs of columns, such as"),
        ([("city", "city")], "has 'city' twice"),
        ([("city", "nope")], "no column 'nope'"),
        ([("city", "place")], "names column 'place', which has no statistics: type struct"),
        ([("city", "place.x")], "names column 'place.x', which is nested"),
        (3, "expected pairs of columns"),
    ],
)
def test_a_wrong_pair_is_said_in_one_line(bare, together, message):
    with pytest.raises(icestats.IcestatsError, match=message) as raised:
        compute_here(bare, together=together)
    assert "\n" not in str(raised.value)


def test_too_many_pairs_are_refused_with_their_cost(properties):
    with SqlCatalog("catalog", **properties) as catalog:
        wide = catalog.create_table("db.wide", pa.schema([(f"c{i}", pa.int64()) for i in range(12)]))
        wide.append(pa.table({f"c{i}": [1, 2] for i in range(12)}))
    pairs = [(f"c{i}", f"c{j}") for i in range(12) for j in range(i)]
    with pytest.raises(icestats.CallError, match="66 pairs of columns: expected 64 at most, as each takes about"):
        compute_here(icestats.load("db.wide", catalog=properties), together=pairs)


def test_wrong_groups_are_said_in_one_line(table):
    with pytest.raises(icestats.CallError, match="columns is empty"):
        table.estimate_groups([])
    with pytest.raises(icestats.CallError, match="expected a primitive top-level column"):
        table.estimate_groups(["place"])
    with pytest.raises(icestats.ColumnNotFoundError, match="no column 'nope'"):
        table.estimate_groups(["nope"])


@pytest.mark.parametrize("kind", ["icestats-frequent-items-v1", "icestats-joint-stats-v1"])
def test_a_damaged_blob_takes_no_other_answer_with_it(table, kind):
    (blob,) = [b for b in table.sketches().to_pylist() if b["type"] == kind and b["columns"][0] == "city"][:1]
    path = Path(blob["statistics_path"].removeprefix("file://"))
    whole = path.read_bytes()
    (own,) = [
        b.blob for b in table._reader.blobs if b.blob.type == kind and b.blob.field_ids == tuple(blob["field_ids"])
    ]
    damaged = bytearray(whole)
    damaged[own.offset + 30 : own.offset + 60] = bytes(30)
    path.write_bytes(bytes(damaged))
    try:
        found = table.refresh().estimate("city = 'city1' and country = 'C1'")
        assert found["frequent-items"].rows is None
        assert "\n" not in found["frequent-items"].reason
        assert found["data-files"].rows_upper is not None
        assert found["kll"].rows is not None
    finally:
        path.write_bytes(whole)
