"""Sketches by partition are brought up to date from new files: within their limit, and never by guessing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StringType

import icestats
from icestats.answers.text import render_bytes
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.table_statistics_blobs import build_blobs, fit_partition_sketches
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES, THETA
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import scan_here
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import HEAD_SIZE_BYTES, parse_index_size
from icestats.stats.table_statistics import find_kll_k, find_theta_lg_k
from icestats.stats.theta import ThetaSketch
from icestats.table.statistics import Statistics, fit_partitions
from tests.computed_statistics import compute_here, scan_table

SIZES = Sizes(400, 12, 200, 10)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
FIELDS = (("day", IntegerType()), ("price", DoubleType()), ("text", StringType()))


def rows(day: int, start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table(
        {
            "day": pa.array([day] * len(numbers), pa.int32()),
            "price": numbers * 0.5,
            "text": [f"text {i:08}" for i in numbers.tolist()],
        }
    )


@pytest.fixture
def load(catalog_properties):
    return lambda: icestats.load("db.t", catalog=catalog_properties)


@pytest.fixture
def table(catalog):
    """Three days of 300, 600 and 900 rows."""
    schema = Schema(*(NestedField(i, *field, required=False) for i, field in enumerate(FIELDS, 1)))
    made = catalog.create_table("db.t", schema, partition_spec=BY_DAY)
    made.append(pa.concat_tables([rows(day, 1_000 * day, 1_000 * day + 300 * day) for day in (1, 2, 3)]))
    return made


@pytest.fixture
def without_spark(monkeypatch):
    """Full scans are done in this process."""
    monkeypatch.setattr("icestats.spark.statistics_refresh.find_session", lambda *_: None)
    monkeypatch.setattr(
        "icestats.spark.statistics_refresh.run_scan", lambda _, plan, sizes, **__: scan_here(plan, sizes)
    )


def by_day(found, column="price"):
    columns = found.by_partition.columns[column]
    return {int.from_bytes(dict(key.values)[1000], "little"): one for key, one in columns.items()}


def find_blobs(opened):
    """Return the nearest ones by column."""
    found = (row for row in opened.sketches().to_pylist() if row["type"] == PARTITION_SKETCHES)
    return {row["columns"][0]: row for row in found if row["used_by"]}


def commit(opened, limit=None, scanned=None):
    found = fit_partitions(scanned or scan_table(opened, by_partition=True, sizes=SIZES), limit, lambda: 0)
    Statistics(opened._source, found).commit()
    return found


def test_a_refresh_says_what_it_added_to_which_partitions(table, load):
    commit(load())
    base_id = load().snapshot.snapshot_id
    table.append(pa.concat_tables([rows(2, 5_000, 5_010), rows(4, 6_000, 6_005)]))
    refreshed = load().refresh_statistics()
    assert f"added to the sketches of 2 of 4 partitions of snapshot {base_id}: day, price, text" in repr(refreshed)
    assert "2 files with 15 rows were added since, and read" in repr(refreshed)
    said = refreshed.to_json()
    assert said["added_partitions"]["price"] == {
        "snapshot_id": str(base_id), "touched_count": 2, "partition_count": 4,
    }  # fmt: skip
    assert (said["added_file_count"], said["left"]) == (2, {})
    size = re.escape(render_bytes(sum(load().files()["file_size_in_bytes"].to_pylist())))
    preview = str(refreshed.commit(dry_run=True))
    assert re.match(rf"costs [\d,]+ bytes, [\d.]+% of the table \({size}\); brings histograms", preview)
    assert refreshed.commit().committed
    assert load().histogram("price", where="day = 2").n == 610
    again = load().refresh_statistics()
    assert (again.added_file_count, again.found.by_partition) == (0, None)
    assert str(again.commit()).startswith("nothing to commit")


def test_ranks_of_many_rows_are_within_the_error_of_the_sketch(table, load):
    """Of values that the sketch no longer keeps all: n, the smallest and the largest are exact."""
    commit(load())
    for start in (50_000, 20_000):
        table.append(rows(3, start, start + 20_000))
    found = by_day(load().refresh_statistics(columns=["price"]).found)[3]
    numbers = np.sort(np.concatenate([np.arange(3_000, 3_900), np.arange(20_000, 40_000), np.arange(50_000, 70_000)]))
    sketch = KllSketch.from_bytes(found.item_type, found.kll)
    assert (sketch.n, sketch.k, sketch.min_value, sketch.max_value) == (len(numbers), 200, 1_500.0, 34_999.5)
    points = sketch.quantiles([0.2, 0.5, 0.8])
    truth = np.searchsorted(numbers * 0.5, points, side="right") / len(numbers)
    assert np.abs(np.asarray(sketch.ranks(points)) - truth).max() <= 2 * sketch.rank_error


def test_a_partition_without_sketches_gets_counts_and_a_new_one_gets_sketches(table, load):
    """The sketches of new files alone would be taken for those of all its files."""
    found = scan_table(load(), by_partition=True, sizes=SIZES)
    alone = replace(
        found, by_partition=replace(found.by_partition, columns={"price": found.by_partition.columns["price"]})
    )
    size = len(write_puffin(build_blobs(alone)).data)
    fitted = next(
        one
        for one in (fit_partition_sketches(alone, limit) for limit in range(size, 0, -200))
        if not by_day(one)[1].theta
    )
    assert by_day(fitted)[3].theta
    Statistics(load()._source, fitted).commit()
    table.append(pa.concat_tables([rows(1, 5_000, 5_010), rows(4, 6_000, 6_005)]))
    refreshed = load().refresh_statistics(columns=["price"])
    days = by_day(refreshed.found)
    assert (days[1].value_count, days[1].theta, days[1].kll, days[1].min_value, days[1].max_value) == (
        310, b"", None, None, None,
    )  # fmt: skip
    assert KllSketch.from_bytes("double", days[4].kll).n == 5
    assert "1 of the 4 partitions of price had no sketches, and get none from new files alone" in repr(refreshed)
    assert refreshed.commit().committed
    assert load().histogram("price", where="day = 4").n == 5
    with pytest.raises(icestats.StatisticsMissingError, match="were left out to save space"):
        load().histogram("price", where="day = 1")


def test_the_limit_stays_that_of_the_committed_sketches_unless_told(table, load):
    whole = scan_table(load(), by_partition=True, sizes=SIZES)
    limit = len(write_puffin(build_blobs(whole)).data) + 3 * 512
    committed = commit(load(), limit, whole)
    assert committed.by_partition.left_out == ""
    assert {dict(row["properties"])["max-size-bytes"] for row in find_blobs(load()).values()} == {str(limit)}
    table.append(rows(4, 6_000, 8_000))
    refreshed = load().refresh_statistics()
    assert len(write_puffin(build_blobs(refreshed.found)).data) <= limit
    assert "sketches of partitions are left out to stay within" in repr(refreshed)
    assert all(one.theta for one in by_day(refreshed.found, "day").values())
    more = load().refresh_statistics(max_size_bytes=10 * limit)
    assert more.found.by_partition.left_out == ""
    more.commit()
    assert {dict(row["properties"])["max-size-bytes"] for row in find_blobs(load()).values()} == {str(10 * limit)}
    with pytest.raises(icestats.CallError, match="max_size_bytes is -1"):
        load().refresh_statistics(max_size_bytes=-1)


def test_without_a_limit_the_default_one_grows_with_the_table(table, load):
    commit(load())
    assert all("max-size-bytes" not in dict(row["properties"]) for row in find_blobs(load()).values())
    table.append(rows(2, 5_000, 5_010))
    limits = []
    fit_partitions(load().refresh_statistics().found, None, lambda: limits.append(1) or 0)
    assert limits == [1]
    assert load()._find_size_bytes() == sum(load().files()["file_size_in_bytes"].to_pylist())


@pytest.mark.parametrize("place", ["index", "sketches"])
def test_damaged_sketches_by_partition_are_left_as_they_are_and_named(table, load, place):
    """The statistics of the table are brought up to date nevertheless."""
    commit(load())
    (path,) = {row["statistics_path"] for row in find_blobs(load()).values()}
    blob = next(b.blob for b in load()._reader.blobs if b.blob.type == PARTITION_SKETCHES and b.blob.field_ids == (2,))
    file = local_path(path)
    data = bytearray(file.read_bytes())
    begin = blob.offset + HEAD_SIZE_BYTES
    size = parse_index_size(bytes(data[blob.offset : begin]))
    data[begin + 10 if place == "index" else begin + size + 10] ^= 0xFF
    file.write_bytes(data)
    table.append(rows(2, 5_000, 5_010))
    refreshed = load().refresh_statistics()
    assert refreshed.found.find("price").value_count == 1_810
    assert list(refreshed.found.by_partition.columns) == ["day", "text"]
    assert list(refreshed.left) == ["price"]
    assert f"sketches by partition of price are left as they are: {path}" in repr(refreshed)
    assert "\n" not in refreshed.left["price"]
    assert refreshed.commit().committed
    ages = {name: row["commits_behind"] for name, row in find_blobs(load()).items()}
    assert ages == {"day": 0, "price": 1, "text": 0}


def test_partitions_whose_column_was_promoted_are_added_to(table, load):
    """The keys of the committed sketches are as wide as the column was."""
    commit(load())
    with table.refresh().update_schema() as update:
        update.update_column("day", LongType())
    table.refresh().append(rows(2, 5_000, 5_010).set_column(0, "day", pa.array([2] * 10, pa.int64())))
    refreshed = load().refresh_statistics(columns=["price"])
    assert {day: one.value_count for day, one in by_day(refreshed.found).items()} == {1: 300, 2: 610, 3: 900}
    refreshed.commit()
    assert load().histogram("price", where="day = 2").n == 610


def test_sketches_by_partition_of_an_earlier_snapshot_than_the_tables_are_added_to(table, load):
    """As after a scan of the table alone: what came since either is read."""
    commit(load())
    base_id = load().snapshot.snapshot_id
    table.append(rows(2, 5_000, 5_010))
    opened = load()
    compute_here(opened, sizes=SIZES).commit()
    table.append(rows(2, 6_000, 6_010))
    refreshed = load().refresh_statistics()
    assert set(refreshed.added_to.values()) == {opened.snapshot.snapshot_id}
    assert {added.snapshot_id for added in refreshed.added_partitions.values()} == {base_id}
    assert (refreshed.added_file_count, refreshed.added_row_count) == (2, 20)
    assert refreshed.found.find("price").value_count == 1_820
    assert by_day(refreshed.found)[2].value_count == 620


def test_columns_keep_the_sizes_of_their_own_sketches(table, load):
    for column, sizes in (("price", Sizes(200, 12, 100, 9)), ("text", Sizes(200, 12, 64, 8))):
        opened = load()
        compute_here(opened, columns=[column], by_partition=True, sizes=sizes).commit()
    table.append(rows(2, 5_000, 5_010))
    refreshed = load().refresh_statistics()
    assert refreshed.found.by_partition.sizes == {"price": (100, 9), "text": (64, 8)}
    assert "lg_k 8, k 64" in repr(refreshed)
    refreshed.commit()
    known = {name: dict(row["properties"]) for name, row in find_blobs(load()).items()}
    assert {name: (one["k"], one["lg-k"]) for name, one in known.items()} == {
        "price": ("100", "9"),
        "text": ("64", "8"),
    }


@pytest.mark.parametrize(
    ("type_", "wider"),
    [
        (IntegerType(), LongType()),
        (FloatType(), DoubleType()),
        (DecimalType(18, 2), DecimalType(20, 2)),
    ],
    ids=str,
)
def test_sketches_keep_their_sizes_where_their_column_was_widened(catalog, load, without_spark, type_, wider):
    """They are made anew from all rows then."""
    table = catalog.create_table("db.t", Schema(NestedField(1, "v", type_, required=False)))
    table.append(pa.table({"v": pa.array(range(20_000), pa.int32())}).cast(table.schema().as_arrow()))
    compute_here(load(), sizes=Sizes(800, 14, 800, 14)).commit()
    with table.update_schema() as update:
        update.update_column("v", wider)
    refreshed = load().refresh_statistics()
    assert list(refreshed.scanned) == ["v"]
    column = refreshed.found.columns["v"]
    assert (find_kll_k(column), find_theta_lg_k(column.theta)) == (800, 14)
    assert load()._reader.find_committed_sizes(load().schema.fields) == (800, 14)


@pytest.mark.parametrize("nearer", ["a sketch of others", "a damaged file"])
def test_sketches_keep_their_sizes_whatever_has_come_since(table, load, nearer):
    table.append(rows(1, 10_000, 30_000))
    compute_here(load(), sizes=Sizes(800, 14, 800, 14)).commit()
    table.append(rows(1, 30_000, 30_010))
    made = scan_table(load(), columns=["price"], sizes=Sizes(200, 12, 200, 12))
    if nearer == "a sketch of others":
        snapshot, theta = load().snapshot, made.columns["price"].theta
        blob = NewBlob(THETA, (2,), snapshot.snapshot_id, snapshot.sequence_number, theta, {"ndv": "1"})
        commit_statistics(prepare_commit(table.refresh(), [blob], keep_earlier=False))
    else:
        Statistics(load()._source, made).commit(keep_earlier=False)
        (entry,) = (one for one in table.refresh().metadata.statistics if one.snapshot_id == made.snapshot_id)
        path = local_path(entry.statistics_path)
        footer = path.read_bytes()[-entry.file_footer_size_in_bytes :]
        path.write_bytes(b"PFA1".ljust(entry.file_size_in_bytes - len(footer), b"\0") + footer)
    assert load()._reader.find_committed_sizes(load().schema.fields[1:2]) == (800, 14)


@pytest.mark.parametrize("is_scanned", [False, True])
def test_sketches_of_partitions_keep_sizes_that_are_larger_than_the_table_s(table, load, without_spark, is_scanned):
    table.append(rows(1, 10_000, 40_000))
    compute_here(load(), columns=["price"], by_partition=True, sizes=Sizes(800, 13, 400, 13)).commit()
    compute_here(load(), columns=["price"], sizes=Sizes(200, 12, 200, 12)).commit()
    known = scan_table(load(), columns=["price"], by_partition=True, sizes=Sizes(400, 13, 400, 13))
    error = KllSketch.from_bytes("double", by_day(known)[1].kll).rank_error
    table.append(rows(1, 40_000, 60_000))
    if is_scanned:
        table.delete("day = 2")
    found = by_day(load().refresh_statistics().found)[1]
    assert KllSketch.from_bytes("double", found.kll).rank_error == pytest.approx(error, rel=0.1)
    assert len(ThetaSketch.from_bytes(found.theta).hashes) > 1 << 12


def test_sketches_keep_the_size_of_those_of_a_pair(catalog, load):
    """Its columns have few values, and their sketches hold them all."""
    table = catalog.create_table("db.t", Schema(*(NestedField(i, n, LongType()) for i, n in enumerate("ab", 1))))
    numbers = np.arange(200_000)
    table.append(pa.table({"a": numbers // 500, "b": numbers % 500}))
    compute_here(load(), together=[("a", "b")], sizes=Sizes(200, 17, 200, 17)).commit()
    assert load()._reader.find_committed_sizes(load().schema.fields) == (200, 17)
    assert load()._reader.find_committed_sizes(load().schema.fields[:1]) == (200, 16)


def test_sketches_keep_their_size_where_a_small_table_has_grown(table, load, without_spark):
    """Those of the small one held every value, and their bytes tell no size."""
    compute_here(load(), columns=["price"], sizes=Sizes(200, 14, 200, 14)).commit()
    table.append(rows(1, 30_000, 60_000))
    refreshed = load().refresh_statistics(columns=["price"])
    assert list(refreshed.added_to) == ["price"]
    assert find_theta_lg_k(refreshed.found.columns["price"].theta) == 14
    refreshed.commit()
    assert not load().refresh_statistics(columns=["price"]).commit().committed
    assert load()._reader.find_committed_sizes(load().schema.fields) == (200, 14)


@pytest.mark.parametrize(
    ("stated", "lg_k"), [("26", 16), ("13", 13), ("9", 12), ("27", 12), ("-1", 12), ("9" * 99, 12)]
)
def test_of_a_size_that_is_stated_beside_a_sketch_no_more_is_believed_than_half_a_megabyte(table, load, stated, lg_k):
    blobs = build_blobs(compute_here(load(), columns=["price"]).found)
    blobs = [replace(blob, properties={**blob.properties, "lg-k": stated}) for blob in blobs]
    commit_statistics(prepare_commit(table.refresh(), blobs))
    assert load()._reader.find_committed_sizes(load().schema.fields) == (200, lg_k)


@pytest.mark.parametrize("is_scanned", [False, True])
def test_what_did_not_fit_is_tried_again_and_changes_nothing(table, load, without_spark, is_scanned):
    """Neither is the table's own made anew, nor get further columns the room that those have which did fit."""
    commit(load(), 70_000)
    table.append(pa.concat_tables([rows(day, 0, 900) for day in range(4, 12)]))
    if is_scanned:
        table.delete("day = 1")
    first = load().refresh_statistics()
    assert first.commit().committed
    assert "max_size_bytes" in first.found.by_partition.left_out
    again = load().refresh_statistics()
    assert bool(again.scanned) == is_scanned
    assert not again.commit().committed


def test_partitions_stay_the_same_where_no_schema_knows_the_column_of_a_void_field(catalog, catalog_properties):
    """A dropped field of version 1 becomes void; `expire_snapshots` may remove the schemas that had its column."""
    fields = [("gone", StringType()), ("v", LongType()), ("day", IntegerType())]
    schema = Schema(*(NestedField(i, *field, required=False) for i, field in enumerate(fields, 1)))
    parts = [PartitionField(1, 1000, IdentityTransform(), "part"), PartitionField(3, 1001, IdentityTransform(), "day")]
    made = catalog.create_table(
        "db.v", schema, partition_spec=PartitionSpec(*parts), properties={"format-version": "1"}
    )
    with made.update_spec() as update:
        update.remove_field("part")
    made.append(pa.table({"gone": ["a"] * 5, "v": range(5), "day": pa.array([1] * 5, pa.int32())}))
    opened = icestats.load("db.v", catalog=catalog_properties)
    compute_here(opened, by_partition=True, sizes=SIZES).commit()
    made.refresh().append(pa.table({"gone": ["a"] * 7, "v": range(100, 107), "day": pa.array([1] * 7, pa.int32())}))
    with made.refresh().update_schema() as update:
        update.delete_column("gone")
    path = local_path(made.refresh().metadata_location)
    document = json.loads(path.read_text())
    current = document["current-schema-id"]
    document["schemas"] = [one for one in document["schemas"] if one["schema-id"] == current]
    for snapshot in document["snapshots"]:
        snapshot["schema-id"] = current
    expired = path.with_name("expired.metadata.json")
    expired.write_text(json.dumps(document))
    catalog.register_table("db.x", f"file://{expired}")
    refreshed = icestats.load("db.x", catalog=catalog_properties).refresh_statistics(columns=["v"])
    assert refreshed.added_partitions["v"].partition_count == 1
    refreshed.commit()
    table = icestats.load("db.x", catalog=catalog_properties)
    (row,) = table.partitions().to_pylist()
    assert (dict(row["ndvs"])[2], dict(row["ndv_commits_behind"])[2]) == (12, 0)
    assert table.estimate("v < 3")["kll-by-partition"].rows == 3


def test_what_did_not_fit_since_its_column_was_widened_changes_nothing_again(catalog, load, without_spark):
    """Sketches by partition of the narrower type stay the nearest ones, and are made anew in vain each time."""
    schema = Schema(NestedField(1, "day", IntegerType()), NestedField(2, "v", IntegerType()))
    table = catalog.create_table("db.t", schema, partition_spec=BY_DAY)

    def append(day, type_):
        days = pa.array([day] * 2_000, pa.int32())
        table.append(pa.table({"day": days, "v": pa.array(range(2_000 * day, 2_000 * day + 2_000), type_)}))

    append(1, pa.int32())
    commit(load(), 60_000)
    with table.update_schema() as update:
        update.update_column("v", LongType())
    for day in range(2, 9):
        append(day, pa.int64())
    first = load().refresh_statistics()
    assert (list(first.scanned), first.found.columns["v"].value_count) == (["v"], 16_000)
    assert first.commit().committed
    assert "all of v" in first.found.by_partition.left_out
    again = load().refresh_statistics()
    assert again.scanned == {"v": "its sketches by partition are of when its type was int"}
    assert not again.commit().committed
