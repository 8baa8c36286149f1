"""Sketches by partition fit in a budget: the table's keep their sizes, what does not fit is left out and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.expressions import LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import icestats
from icestats.commit.puffin_writer import write_puffin
from icestats.commit.table_statistics_blobs import build_blobs, fit_partition_sketches, without_samples
from icestats.iceberg.metadata import Field
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import prepare_scan
from icestats.stats.kll import KllSketch, find_rank_error
from icestats.stats.partition_sketches import MOST_GATHERED_BYTES, choose_size, find_default_limit
from icestats.stats.table_statistics import PartitionKey
from icestats.table.statistics import Statistics, choose_sizes
from tests.computed_statistics import compute_here, scan_table

DAYS = 8
SIZES = Sizes(1_000, 12, 32, 6)


def rows(start: int) -> pa.Table:
    """The later a day, the more rows it has; one value in five is an empty text, and as many are null."""
    days = np.repeat(np.arange(DAYS), np.arange(1, DAYS + 1) * 200)
    numbers = np.arange(len(days)) + start
    texts = [None if i % 5 == 0 else "" if i % 5 == 1 else f"text {i % 50}" for i in numbers]
    return pa.table({"day": days, "price": numbers * 0.5, "text": pa.array(texts, pa.string())})


@pytest.fixture
def table(catalog):
    fields = (("day", LongType()), ("price", DoubleType()), ("text", StringType()))
    schema = Schema(*(NestedField(i, *field, required=False) for i, field in enumerate(fields, 1)))
    table = catalog.create_table(
        "db.t", schema, partition_spec=PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    )
    table.append(rows(0))
    return table


@pytest.fixture
def load(table, catalog_properties):
    return lambda: icestats.load("db.t", catalog=catalog_properties)


def test_a_budget_below_nothing_is_refused(load):
    with pytest.raises(icestats.CallError, match="max_size_bytes is -1: expected a whole number from 0"):
        load().compute(by="partition", max_size_bytes=-1)


def size_of(found) -> int:
    return len(write_puffin(build_blobs(found)).data)


def kept(found) -> dict[str, int]:
    return {name: sum(bool(c.theta) for c in parts.values()) for name, parts in found.by_partition.columns.items()}


def test_what_does_not_fit_is_left_out_and_the_tables_sketches_stay(load):
    """First the sample of rows, then common values, then whole columns; at last the partitions with the fewest rows."""
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    assert fit_partition_sketches(found, size_of(found) + 3 * 512) is found
    bare = without_samples(found)
    own, whole = size_of(replace(bare, by_partition=None)), size_of(bare)
    fitted = fit_partition_sketches(found, whole + 3 * 512)
    assert (fitted.columns, kept(fitted)) == (bare.columns, kept(found))
    assert "the sample of rows is left out to stay within" in fitted.by_partition.left_out
    seen, with_items = [], set()
    for limit in np.linspace(own, whole, 40).astype(int).tolist():
        fitted = fit_partition_sketches(found, limit)
        assert size_of(fitted) <= limit
        assert fitted.columns == bare.columns
        counts = kept(fitted)
        seen.append(counts)
        partial = [name for name, count in counts.items() if 0 < count < DAYS]
        assert not partial or sum(map(bool, counts.values())) == 1
        for name in partial:
            days = [dict(key.values)[1000] for key, one in fitted.by_partition.columns[name].items() if one.theta]
            assert min(days) == (DAYS - counts[name]).to_bytes(8, "little")
        said, _, advice = fitted.by_partition.left_out.partition("; all those of ")
        left_out, _, common = said.partition("common values of ")
        for name, parts in fitted.by_partition.columns.items():
            has_items = {bool(one.frequent_items) for one in parts.values() if one.theta}
            assert (name in left_out) == (counts[name] < DAYS)
            assert (name in common) == (has_items == {False})
            assert len(has_items) <= 1
            assert name not in partial or has_items == {False}
            with_items.add((sum(map(bool, counts.values())), has_items == {True}))
        assert bool(advice) == all(count < DAYS for count in counts.values())
        if advice:
            name, _, needed = advice.partition(" alone need max_size_bytes=")
            assert kept(fit_partition_sketches(found, int(needed)))[name] == DAYS
        assert all(
            one.without_sketches() == other.without_sketches()
            for name, parts in found.by_partition.columns.items()
            for one, other in zip(parts.values(), fitted.by_partition.columns[name].values(), strict=True)
        )
    assert kept(fit_partition_sketches(found, own)) == {"day": 0, "price": 0, "text": 0}
    assert {sum(count == DAYS for count in counts.values()) for counts in seen} >= {0, 1, 2}
    assert {(3, False), (3, True)} <= with_items
    assert any(0 < count < DAYS for counts in seen for count in counts.values())


def test_the_limit_that_a_column_needs_has_room_for_the_next_scan(load):
    """KLL sketches keep values at random, so that those of two scans compress to other sizes, by some 0.3 %."""
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    said = fit_partition_sketches(found, 0).by_partition.left_out
    name, _, needed = said.partition("; all those of ")[2].partition(" alone need max_size_bytes=")
    assert kept(fit_partition_sketches(found, int(needed) * 995 // 1000))[name] == DAYS


def test_a_table_without_rows_has_nothing_to_leave_out(table, load):
    table.delete("day >= 0")
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    assert not any(found.by_partition.columns.values())
    assert fit_partition_sketches(found, 0) is found


def test_a_filter_on_a_partition_whose_sketches_were_left_out_is_refused(load):
    """Its rows would be missing from the histogram without a word."""
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    alone = {"price": found.by_partition.columns["price"]}
    found = replace(found, by_partition=replace(found.by_partition, columns=alone))
    limits = range(size_of(replace(without_samples(found), by_partition=None)), size_of(found), 500)
    fitted = next(f for f in (fit_partition_sketches(found, limit) for limit in limits) if kept(f)["price"] == 5)
    Statistics(load()._source, fitted).commit()
    table = load()
    assert table.histogram("price", where="day >= 3").n == sum(range(4, DAYS + 1)) * 200
    with pytest.raises(icestats.StatisticsMissingError, match="in 1 of the 6 partitions that 'day >= 2' selects"):
        table.histogram("price", where="day >= 2")
    (blob,) = (row for row in table.sketches().to_pylist() if row["type"] == PARTITION_SKETCHES)
    assert blob["columns"] == ["price"]
    estimates = {row["source"]: row for row in table.estimate("price > 700 and day >= 2").to_arrow().to_pylist()}
    assert estimates["kll-by-partition"]["rows"] is None
    assert "for 1 of 6 partitions" in estimates["kll-by-partition"]["reason"]


def test_a_preview_begins_with_what_it_costs_and_brings(load):
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    assert found.table_size_bytes == sum(load().files()["file_size_in_bytes"].to_pylist())
    report = Statistics(load()._source, found).commit(dry_run=True)
    first, size = str(report).splitlines()[0], report.files[0]["bytes"]
    assert first.startswith(f"costs {size:,} bytes, {size / found.table_size_bytes:.2%} of the table (")
    assert "histograms of the table with ranks within 0.28%, of partitions within 7.90%" in first
    assert first.endswith("(8 of 8 partitions, 3 of 3 columns)")
    alone = replace(found, by_partition=None)
    assert "partitions" not in str(Statistics(load()._source, alone).commit(dry_run=True)).splitlines()[0]


def test_a_preview_without_columns_speaks_of_no_ndv(load):
    """An empty list of columns is a scan of none, with what the metadata alone gives."""
    first = str(load().compute(columns=[], table=True, manifests=True).commit(dry_run=True)).splitlines()[0]
    assert "NDV" not in first


def test_partitions_tell_the_ndv_and_the_lengths_that_are_committed(table, load):
    """An empty text, which Theta leaves out, is counted; a partition without sketches is unknown."""
    before = load().partitions()
    assert before["ndvs"].null_count == before["max_lengths"].null_count == DAYS
    compute_here(load(), by_partition=True).commit()
    data = rows(0).to_pylist()
    for row in load().partitions().to_pylist():
        mine = [one for one in data if one["day"] == row["partition"]["day"]]
        texts = [one["text"].encode() for one in mine if one["text"] is not None]
        assert dict(row["ndvs"]) == {1: 1, 2: len(mine), 3: len(set(texts))}
        assert dict(row["ndv_relative_errors"]) == {1: 0.0, 2: 0.0, 3: 0.0}
        assert dict(row["ndv_commits_behind"]) == {1: 0, 2: 0, 3: 0}
        assert dict(row["max_lengths"]) == {3: max(map(len, texts))}
        assert dict(row["avg_lengths"]) == {3: round(sum(map(len, texts)) / len(texts))}
    table.append(pa.table({"day": [DAYS], "price": [0.5], "text": ["new"]}))
    *old, new = load().partitions().to_pylist()
    assert {tuple(dict(row["ndv_commits_behind"]).values()) for row in old} == {(1, 1, 1)}
    assert {row["max_lengths"] for row in old} == {None}
    assert (new["ndvs"], new["ndv_commits_behind"]) == (None, None)


def test_an_ndv_by_partition_is_no_more_than_it_has_values_now(table, load):
    """The sketches are of rows that others have taken the place of: all of them null, or half of them."""
    compute_here(load(), by_partition=True).commit()
    table.delete(LessThan("day", 2))
    nothing = pa.array([None] * 200, pa.string())
    for day, prices in ((0, [None] * 200), (1, [0.5, None] * 100)):
        table.append(pa.table({"day": [day] * 200, "price": pa.array(prices, pa.float64()), "text": nothing}))
    empty, half, *_ = load().partitions().to_pylist()
    assert (dict(empty["ndvs"]), dict(half["ndvs"])) == ({1: 1, 2: 0, 3: 0}, {1: 1, 2: 100, 3: 0})
    assert set(dict(half["ndv_commits_behind"]).values()) == {3}


def test_an_ndv_by_partition_that_is_an_estimate_says_its_error(load):
    compute_here(load(), by_partition=True, sizes=Sizes(200, 12, 200, 6)).commit()
    for row in load().partitions().to_pylist():
        count, error = dict(row["ndvs"])[2], dict(row["ndv_relative_errors"])[2]
        assert 0.2 < error < 0.5
        assert abs(count - row["data_record_count"]) <= 2 * error * count
        assert count <= row["data_record_count"]


@pytest.mark.parametrize(
    ("type_text", "is_bound"),
    [("long", True), ("decimal(38, 2)", True), ("fixed[32]", True), ("fixed[33]", False), ("string", False)],
)
def test_sizes_are_said_to_be_bounds_only_where_no_value_can_be_longer(type_text, is_bound):
    size = choose_size([Field(1, "x", type_text, required=False, top_level=True)], [300] * 40, 1 << 30, k=200, lg_k=12)
    assert ("will take up to" in str(size), "a text taken as 32 bytes" in str(size)) == (is_bound, not is_bound)


def test_sizes_come_from_the_limit_and_the_committed_sketches(load, capsys):
    plan = prepare_scan(load()._source, load().snapshot, load().schema, by_partition=True)
    assert choose_sizes(plan, 1_000, 12, (None, None), 64 << 20) == Sizes(1_000, 12, 1_000, 12)
    small = choose_sizes(plan, 1_000, 12, (None, None), 1_000)
    assert small == SIZES
    assert "(lg_k 6, k 32) will take about " in capsys.readouterr().err
    assert choose_sizes(plan, 1_000, 12, (64, None), 1_000) == Sizes(1_000, 12, 64, 12)
    assert load()._reader.find_committed_sizes(plan.fields) == (200, 12)
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    Statistics(load()._source, found).commit()
    assert load()._reader.find_committed_sizes(plan.fields) == (1_000, 12)
    assert load().histogram("price").rank_error == KllSketch.from_bytes("double", found.columns["price"].kll).rank_error


def test_what_the_driver_cannot_hold_is_refused_before_the_scan(load):
    plan = prepare_scan(load()._source, load().snapshot, load().schema, by_partition=True)
    many = {PartitionKey(0, ((1000, i.to_bytes(8, "little")),)): 100_000 for i in range(200_000)}
    with pytest.raises(icestats.CallError, match="more than the 268 MB that are gathered here: name fewer columns"):
        choose_sizes(replace(plan, partition_row_counts=many), 200, 12, (None, None), 1 << 20)


def test_the_default_limit_is_a_hundredth_of_the_table():
    assert find_default_limit(29_795_745) == 297_957
    assert find_default_limit(0) == 256 << 10
    assert find_default_limit(1 << 60) == MOST_GATHERED_BYTES


def test_the_largest_sizes_that_fit_are_chosen(load):
    fields = load().schema.top_level
    counts = [1_000_000] * 10
    sizes = [choose_size(fields, counts, limit, k=1_000, lg_k=12) for limit in (10**9, 10**6, 10**5, 0)]
    assert [(size.k, size.lg_k) for size in sizes] == sorted(((s.k, s.lg_k) for s in sizes), reverse=True)
    assert (sizes[0].k, sizes[-1].k) == (1_000, 32)


def test_the_first_line_says_how_accurate_the_histograms_are_that_come(catalog, catalog_properties):
    """A binary column has no histogram, of the table or of partitions: its sizes say nothing of others'."""
    rows = pa.table({"day": [1, 1, 2], "v": [1, 2, 3], "b": pa.array([b"a", b"b", b"c"])})
    created = catalog.create_table("db.binary", rows.schema)
    with created.update_spec() as update:
        update.add_identity("day")
    created.append(rows)
    table = icestats.load("db.binary", catalog=catalog_properties)
    found = compute_here(table, columns=["v", "b"], by_partition=True).found
    bare = {"b": {key: replace(one, theta=b"") for key, one in found.by_partition.columns["b"].items()}}
    sized = replace(found.by_partition, sizes={"v": (200, 9), "b": (8, 9)})
    brings = [
        str(Statistics(table._source, replace(found, by_partition=one, table_size_bytes=1)).commit(dry_run=True))
        for one in (sized, replace(sized, columns={"b": sized.columns["b"]}), replace(sized, columns=bare))
    ]
    assert f"of partitions within {find_rank_error(200):.2%} (2 of 2 partitions, 2 of 2 columns)" in brings[0]
    assert "of partitions NDV only (2 of 2 partitions, 1 of 1 column)" in brings[1]
    assert "of partitions nothing (0 of 2 partitions, 0 of 1 column)" in brings[2]
