"""Common values of partitions: counted with the sketches, merged by a filter, used in estimates, refreshed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, UUIDType

import icestats
from icestats.commit.table_statistics_blobs import fit_partition_sketches
from icestats.estimation import evidence
from icestats.read.puffin.committed_partitions import read_partition_index
from icestats.scan.scan_job import Sizes
from icestats.stats.frequent_items import FrequentItems, find_size_limit, read_frequent_values
from icestats.table.statistics import Statistics
from tests.computed_statistics import compute_here, scan_table
from tests.written_deletes import delete_positions, list_data_files

SIZES = Sizes(200, 12, 200, 12)
SOURCE = "frequent-items-by-partition"
DAYS = 4
ROWS = 3_000


def day_rows(day: int, seed: int, count: int = ROWS) -> pa.Table:
    """Each day has a status and a country of its own; names are skewed, and many."""
    rng = np.random.default_rng(seed)
    status = rng.choice([f"only {day}", "ok", "late"], count, p=[0.5, 0.45, 0.05])
    price = [None if one < 5 else float("nan") if one < 8 else one / 4 for one in rng.integers(0, 400, count)]
    return pa.table(
        {
            "day": pa.array([day] * count, pa.int64()),
            "status": status,
            "name": [f"n{one}" for one in rng.zipf(1.3, count) % 5_000],
            "number": rng.zipf(1.4, count) % 100_000,
            "price": pa.array(price, pa.float64()),
        }
    )


@pytest.fixture
def written(catalog):
    types = (("day", LongType()), ("status", StringType()), ("name", StringType()))
    types += (("number", LongType()), ("price", DoubleType()))
    schema = Schema(*(NestedField(i, *one, required=False) for i, one in enumerate(types, 1)))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    made = catalog.create_table("db.t", schema, partition_spec=spec)
    for day in range(DAYS):
        made.append(day_rows(day, day))
    return made


@pytest.fixture
def load(written, catalog_properties):
    return lambda: icestats.load("db.t", catalog=catalog_properties)


@pytest.fixture
def table(load):
    compute_here(load(), by_partition=True).commit()
    return load()


FILTERS = (
    "status = 'late'", "day = 2 and status = 'only 2'", "day = 2 and status = 'only 1'", "status in ('only 0', 'ok')",
    "day >= 2 and status != 'ok'", "day < 2 and name = 'n1'", "name in ('n1', 'n7', 'none')", "name like 'n1%'",
    "number = 1", "day = 3 and number < 4", "number >= 3 and number < 60", "price is null", "day = 1 and price = 20.5",
    "price < 10 and name = 'n1'", "day = 1 or status = 'only 2'", "price is nan and day in (1, 3)", "day is null",
)  # fmt: skip


def test_bounds_hold_the_truth_and_are_no_wider_than_the_tables(table):
    for row_filter in FILTERS:
        found = table.estimate(row_filter, actual=True)
        for source in (SOURCE, "combined"):
            one = found[source]
            assert one.rows_lower <= found.actual <= one.rows_upper, row_filter
            assert one.rows is None or one.rows_lower <= one.rows <= one.rows_upper, row_filter
        assert found["combined"].rows_upper <= found[SOURCE].rows_upper, row_filter
        assert found["combined"].rows_lower >= found[SOURCE].rows_lower, row_filter
        assert found["combined"].q_error <= 2, row_filter


def test_a_value_has_the_rows_of_the_partition_that_is_asked_for(table):
    """Over the table it is common everywhere: the partition alone tells where it is not."""
    for row_filter in ("day = 2 and status = 'only 2'", "day = 2 and status = 'only 1'", "day = 1 and status = 'late'"):
        found = table.estimate(row_filter, actual=True)
        assert found[SOURCE].rows == found[SOURCE].rows_upper == found[SOURCE].rows_lower == found.actual
        assert found["combined"].rows == found.actual
        assert found["frequent-items"].rows != found.actual
    assert found[SOURCE].bound.startswith("certain if the statistics file is right: ")


@pytest.mark.parametrize("row_filter", ["number in (1, 3, 5, 7, 9)", "number not in (1, 3, 5, 7)"])
def test_a_list_too_long_for_all_partitions_is_left_to_other_sources(table, monkeypatch, row_filter):
    found = table.estimate(row_filter, actual=True)
    for source in (SOURCE, "kll-by-partition"):
        assert found[source].rows is not None
    monkeypatch.setattr(evidence, "_MOST_LOOKUPS", 5 * DAYS - 1)
    again = table.estimate(row_filter, actual=True)
    for source in (SOURCE, "kll-by-partition"):
        assert again[source].rows is None
        assert (
            f"number: 5 values or ranges are too many to look up in each of {DAYS} partitions" in again[source].reason
        )
    assert again["combined"].rows_lower <= found.actual <= again["combined"].rows_upper
    assert again["combined"].q_error <= 2


def test_common_values_of_selected_partitions_are_those_of_their_rows(table):
    found = table.frequent_values("status", where="day >= 2")
    rows = pa.concat_tables([day_rows(day, day) for day in (2, 3)])
    truth = {one["values"]: one["counts"] for one in rows["status"].value_counts().to_pylist()}
    assert {one["value"]: one["rows_at_least"] for one in found.to_pylist()} == truth
    assert found["rows_at_most"].equals(found["rows_at_least"])
    assert sum(found["share"].to_pylist()) == pytest.approx(1)
    *kept, others = table.frequent_values("name", where="day in (0, 1)").to_pylist()
    rows = pa.concat_tables([day_rows(day, day) for day in (0, 1)])
    truth = {one["values"]: one["counts"] for one in rows["name"].value_counts().to_pylist()}
    assert all(one["rows_at_least"] <= truth[one["value"]] <= one["rows_at_most"] for one in kept)
    assert (
        max(count for name, count in truth.items() if name not in {one["value"] for one in kept})
        <= (others["rows_at_most"])
    )
    assert table.frequent_values("status", where="day = 9").num_rows == 0


def test_what_selects_parts_of_partitions_is_refused_or_counted_whole(table):
    with pytest.raises(icestats.FilterError, match="selects parts of 4 partitions"):
        table.frequent_values("status", where="price < 3")
    whole = table.frequent_values("status").select(["value", "rows_at_least"])
    assert table.frequent_values("status", where="price < 3", partial="include").select(whole.column_names) == whole
    with pytest.raises(icestats.CallError, match="expected one of refuse, include"):
        table.frequent_values("status", where="day = 1", partial="maybe")


def test_bounds_hold_after_rows_were_added_and_deleted(table, written, load):
    written.append(day_rows(1, 77, 500))
    written.append(day_rows(DAYS, 78, 500))
    written.delete("day = 2 and status = 'late'")
    (file,) = [one for one in list_data_files(written) if one.partition[0] == 3]
    delete_positions(written, [(file, place) for place in range(0, ROWS, 3)])
    now = load()
    for row_filter in FILTERS:
        for deletes in ("deduct", "positions"):
            found = now.estimate(row_filter, actual=True, deletes=deletes)
            for source in (SOURCE, "combined"):
                assert found[source].rows_lower <= found.actual <= found[source].rows_upper, (row_filter, deletes)
        assert row_filter == "day is null" or "commits" in found[SOURCE].assumes, row_filter


def test_a_refresh_adds_new_rows_to_the_partitions_that_they_are_in(table, written, load):
    written.append(day_rows(1, 77, 2_000))
    written.append(day_rows(DAYS, 78, 500))
    load().refresh_statistics().commit()
    now, base = load(), table.frequent_values("status", where="day = 2")
    found = scan_table(now, by_partition=True).by_partition.columns["status"]
    committed = read_partition_index(now._source.storage, now._reader.blobs, now.schema.find("status"))
    assert len(committed.index.partitions) == len(found) == DAYS + 1
    for day, key in enumerate(found):
        expected = read_frequent_values(found[key].frequent_items)
        rows = now.frequent_values("status", where=f"day = {day}").to_pylist()
        assert [one["rows_at_least"] for one in rows] == [item.lower for item in expected.items]
        assert {one["commits_behind"] for one in rows} == {0}
    assert now.frequent_values("status", where="day = 2").drop_columns(["snapshot_id", "commits_behind"]) == (
        base.drop_columns(["snapshot_id", "commits_behind"])
    )
    for row_filter in FILTERS:
        estimate = now.estimate(row_filter, actual=True)
        assert estimate[SOURCE].rows_lower <= estimate.actual <= estimate[SOURCE].rows_upper
    limit = find_size_limit(200)
    names = scan_table(now, by_partition=True).by_partition.columns["name"].values()
    assert all(len(one.frequent_items) <= limit for one in names)


@pytest.mark.parametrize(
    ("kind", "values"), [(LongType(), range(4)), (UUIDType(), [bytes([value]) * 16 for value in range(4)])]
)
def test_partitions_are_known_after_a_v1_table_has_dropped_its_buckets(catalog, catalog_properties, kind, values):
    """The dropped field is `void` since, of the column's type; the buckets of before are numbers still."""
    schema = Schema(NestedField(1, "key", kind, required=False), NestedField(2, "x", LongType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "bucket"))
    written = catalog.create_table("db.v1", schema, partition_spec=spec, properties={"format-version": "1"})
    arrow = pa.int64() if kind == LongType() else pa.binary(16)
    rows = pa.table({"key": pa.array(values, arrow), "x": [1, 2, 3, 4]})
    written.append(rows)
    with written.update_spec() as update:
        update.remove_field("bucket")
    written.append(rows)
    table = icestats.load("db.v1", catalog=catalog_properties)
    compute_here(table, by_partition=True).commit()
    found = table.refresh().estimate("x = 2")["frequent-items-by-partition"]
    assert (found.rows, found.rows_lower, found.rows_upper) == (2.0, 2.0, 2.0)


def test_partitions_are_known_after_their_field_and_its_column_were_dropped(written, load):
    with written.update_spec() as update:
        update.remove_field("day")
    with written.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("day")
    written.append(day_rows(1, 1).drop_columns(["day"]))
    compute_here(load(), by_partition=True).commit()
    found = load().estimate("status = 'only 1'", actual=True)
    assert found["kll-by-partition"].rows is not None, found["kll-by-partition"].reason
    assert (found[SOURCE].rows_lower, found[SOURCE].rows_upper) == (found.actual, found.actual), found[SOURCE].reason


def test_partitions_whose_common_values_do_not_fit_are_unknown(load):
    """A limit that has room for the sketches and not for these."""
    whole = scan_table(load(), by_partition=True)
    parts = whole.by_partition
    bare = {name: {k: replace(c, frequent_items=b"") for k, c in one.items()} for name, one in parts.columns.items()}
    limits = range(60_000, 600_000, 1_000)
    fitted = next(f for f in (fit_partition_sketches(whole, limit) for limit in limits) if _has_all_sketches(f))
    assert "common values of " in fitted.by_partition.left_out
    name = fitted.by_partition.left_out.partition("common values of ")[2].partition(".")[0].split(", ")[-1]
    assert fitted.by_partition.columns[name] == bare[name]
    Statistics(load()._source, fitted).commit()
    table, value = load(), "'n1'" if name == "name" else "1"
    found = table.estimate(f"{name} = {value} and day >= 1", actual=True)
    assert found[SOURCE].rows is None
    assert f"no common values of {name} for 3 of 3 partitions" in found[SOURCE].reason
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper
    with pytest.raises(icestats.StatisticsMissingError, match="in 3 of the 3 partitions that 'day >= 1' selects were"):
        table.frequent_values(name, where="day >= 1")


def _has_all_sketches(found) -> bool:
    return all(one.theta for parts in found.by_partition.columns.values() for one in parts.values())


def test_damaged_common_values_are_one_line_and_the_sketches_beside_them_answer(table):
    committed = read_partition_index(table._source.storage, table._reader.blobs, table.schema.find("name"))
    path = Path(committed.statistics_path.removeprefix("file://"))
    data, entry = bytearray(path.read_bytes()), committed.index.partitions[1]
    begin = committed.body_offset + entry.offset + entry.theta_length + entry.kll_length
    data[begin + 20] ^= 0xFF
    path.write_bytes(bytes(data))
    now = table.refresh()
    found = now.estimate("name = 'n1' and day >= 1", actual=True)
    assert found[SOURCE].rows is None
    combined, rows = found["combined"], found.actual
    assert combined.rows_lower <= rows <= combined.rows_upper
    assert combined.rows == pytest.approx(rows, rel=0.5)
    assert [path.name in finding.evidence for finding in found.findings] == [True], "said once"
    assert "\n" not in found[SOURCE].reason
    assert "common values" in found[SOURCE].reason
    assert found["frequent-items"].rows is not None
    assert found["kll-by-partition"].rows_upper is not None
    assert now.histogram("name", where="day >= 1").n == 3 * ROWS
    with pytest.raises(icestats.MetadataError, match="a partition's common values") as raised:
        now.frequent_values("name", where="day >= 1")
    assert "\n" not in str(raised.value)
    assert now.frequent_values("name", where="day >= 2").num_rows > 100
    assert now.frequent_values("status", where="day >= 1").num_rows == 5


def test_values_that_are_there_once_take_no_room():
    items = FrequentItems()
    for one in scan_unique():
        items.merge(one)
    cut = read_frequent_values(items.to_bytes("long", find_size_limit(32)))
    assert (cut.items, cut.others_at_most, cut.value_count) == ((), 1, 500)
    assert len(read_frequent_values(items.to_bytes("long")).items) == 500


def scan_unique():
    ones = np.ones(250, np.int64)
    for start in (0, 250):
        yield FrequentItems.restore(pa.array(range(start, start + 250)), ones, ones * 0, 250, 0)
