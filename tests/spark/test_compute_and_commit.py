"""One scan makes the sketches; the commit is seen by Spark and PyIceberg; the histogram needs no data."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.commit.statistics_plan import is_spark_trapped
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_files import KLL, PARTITION_SKETCHES, THETA

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def committed(demo_home) -> icestats.Table:
    """`demo.events` with the statistics of every column committed."""
    return icestats.load("demo.events")


@pytest.fixture(scope="module")
def prices(live_rows) -> np.ndarray:
    rows = live_rows.sql("select price from events where not isnan(price) order by price")
    return rows.fetchnumpy()["price"]


def test_pyiceberg_still_loads_the_table(committed):
    """Only blob types that PyIceberg knows are listed in metadata.json."""
    statistics = load_iceberg_table(committed._source).metadata.statistics
    assert statistics[-1].snapshot_id == committed.snapshot.snapshot_id
    assert {blob.type for blob in statistics[-1].blob_metadata} == {THETA}


def test_spark_still_reads_the_table_and_plans_with_the_ndv(spark, committed):
    assert spark.table("icestats.demo.events").count() == 1_078_773
    query = "explain cost select * from icestats.demo.events where event_type = 'view'"
    assert "rowCount=2.16E+5" not in spark.sql(query).first()[0]
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan = spark.sql(query).first()[0]
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert "rowCount=2.16E+5" in plan, "an equality is one of five values: 1,080,700 / 5"


def test_every_sketched_column_has_both_sketches(committed):
    sketches = committed.sketches().to_pylist()
    both = {(row["type"], row["columns"][0]) for row in sketches if row["type"] in (THETA, KLL)}
    names = {field.name for field in committed.schema.top_level}
    assert both == {(kind, name) for kind in (THETA, KLL) for name in names}
    assert all(row["commits_behind"] == 0 for row in sketches)
    assert {row["listed"] for row in sketches if row["type"] == THETA} == {True}
    assert {row["listed"] for row in sketches if row["type"] == KLL} == {False}


def test_ndv_equals_icebergs_own(spark, committed):
    """Iceberg's procedure counts the same, in a column of each type of the first commit's rows."""
    columns = ("device_id", "event_time", "price", "quantity", "amount", "message")
    first = next(reversed(list(committed.metadata.ancestors(committed.snapshot))))
    spark.sql("create namespace if not exists icestats.scratch")
    spark.sql("drop table if exists icestats.scratch.ndv")
    rows = f"select {', '.join(columns)} from icestats.demo.events version as of {first.snapshot_id}"
    spark.sql(f"create table icestats.scratch.ndv using iceberg as {rows}")
    try:
        icestats.load("icestats.scratch.ndv").compute().commit()
        ours = ndvs("icestats.scratch.ndv")
        spark.sql("call icestats.system.compute_table_stats(table => 'scratch.ndv')").collect()
        theirs = ndvs("icestats.scratch.ndv")
        assert theirs.keys() == set(columns)
        for name, ndv in theirs.items():
            # Iceberg says of a column of 25,000 different values that it has 25,193.
            assert ours[name] == pytest.approx(min(ndv, 25_000), rel=0.005), name
    finally:
        spark.sql("drop table icestats.scratch.ndv purge")


def ndvs(name: str) -> dict[str, int]:
    rows = icestats.load(name).sketches().to_pylist()
    return {row["columns"][0]: row["ndv"] for row in rows if row["type"] == THETA}


def test_the_histogram_is_that_of_the_live_rows(committed, prices):
    """Counts are within the sketch's error of the truth, deletes applied; nulls and NaN stand apart."""
    found = committed.histogram("price", bins=50)
    assert found.n == len(prices)
    assert found.null_count + found.nan_count + found.n == 1_078_773
    assert (found.edges[0], found.edges[-1]) == (prices[0], prices[-1])
    truth = np.diff(np.searchsorted(prices, found.edges))
    assert np.abs(truth - np.asarray(found.counts)).max() <= 2 * found.rank_error * len(prices)
    assert sum(found.counts) == pytest.approx(len(prices))


def test_the_exact_figures_are_exact(live_rows, committed):
    row = next(r for r in committed.columns().to_pylist() if r["name"] == "message")
    average, longest = live_rows.sql("select avg(strlen(message)), max(strlen(message)) from events").fetchall()[0]
    assert row["max_length"] == longest
    assert row["avg_length"] == pytest.approx(average)
    assert dict(row["provenance"])["max_length"].startswith("exact")


@pytest.fixture
def own_table(tmp_path, committed):
    """A table of 1,000 longs in a catalog of its own."""
    import pyarrow as pa

    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    rows = pa.table({"x": pa.array(range(1000), pa.int64()), "tags": pa.array([["a"]] * 1000)})
    catalog.create_table("db.t", rows.schema).append(rows)
    yield icestats.load("db.t", catalog=properties)
    catalog.close()


def test_the_histogram_touches_no_data(own_table):
    """With the data files gone, the committed sketch still answers."""
    computed = own_table.compute()
    assert computed.found.skipped.keys() == {"tags"}
    assert computed.commit().committed
    shutil.rmtree(local_path(own_table.metadata.location) / "data")
    found = own_table.refresh().histogram("x", bins=10)
    assert (found.n, found.edges[0], found.edges[-1]) == (1000, 0, 999)


def test_a_dry_run_changes_nothing(own_table):
    folder = local_path(own_table.metadata.location)
    before = sorted(folder.rglob("*"))
    report = own_table.compute(columns=["x"]).commit(dry_run=True)
    assert not report.committed
    assert "would write" in str(report)
    assert sorted(folder.rglob("*")) == before
    assert own_table.refresh().metadata == own_table.metadata


def test_a_second_commit_keeps_the_blobs_of_other_columns(spark, committed, demo_home, tmp_path):
    """A commit of one column replaces its blobs and carries the others over."""
    report = committed.compute(columns=["quantity"]).commit(dry_run=True)
    kept = {(blob["type"], tuple(blob["columns"])) for blob in report.kept_blobs}
    assert (THETA, ("price",)) in kept
    assert (KLL, ("price",)) in kept
    assert {(blob["type"], tuple(blob["field_ids"])) for blob in report.replaced} >= {(THETA, (6,)), (KLL, (6,))}


def test_the_report_says_whether_this_spark_estimates_no_rows(spark, own_table):
    """And Spark does what it says: 0 rows before 4.2 (SPARK-52868, SPARK-56485)."""
    report = str(own_table.compute(columns=["x"], spark=spark).commit())
    assert "Spark before 4.2 with spark.sql.cbo.enabled=true estimates 0 rows for an equality on x (" in report
    trapped = is_spark_trapped(spark.version)
    assert f"the Spark that runs here, {spark.version}, {'does so' if trapped else 'does not'}" in report
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan = spark.sql("explain cost select * from icestats.demo.events where device_id = 74").first()[0]
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    said = plan.split("Filter", 1)[1].partition("\n")[0]
    assert ("rowCount=0)" in said or "rowCount=1)" in said) is trapped, said


def test_spark_joins_a_table_with_timestamps_without_a_zone(spark):
    """With their NDV listed, a range and an IN on them are a MatchError in FilterEstimation."""
    name = "icestats.zoneless.times"
    spark.sql("create namespace if not exists icestats.zoneless")
    spark.sql(f"create table {name} (k bigint, at timestamp_ntz) using iceberg")
    spark.sql(f"insert into {name} select id, timestamp_ntz'2026-01-01' from range(100)")
    icestats.load(name, spark=spark).compute().commit()
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        joined = f"select count(*) from {name} a join {name} b on a.k = b.k where a.at"
        for condition in ("> timestamp_ntz'2025-01-01'", "in (timestamp_ntz'2026-01-01', timestamp_ntz'2026-01-02')"):
            assert spark.sql(f"{joined} {condition}").first()[0] == 100
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
        spark.sql(f"drop table {name} purge")


def test_the_tables_sketches_keep_their_sizes_and_those_of_partitions_fit_in_a_hundredth(committed):
    """Of 640 partitions only a few fit; the histogram of the table stays as good as it was."""
    before = committed.histogram("price").rank_error
    made = committed.compute(columns=["event_type", "price", "quantity"], by="partition")
    assert made.histogram("price").rank_error == before < 0.003
    report = made.commit(dry_run=True)
    size, (file,) = sum(committed.partitions()["total_data_file_size_in_bytes"].to_pylist()), report.files
    kept = [(blob["type"], blob["columns"]) for blob in report.kept_blobs]
    added = sum(blob["length"] for blob in file["blobs"] if (blob["type"], blob["columns"]) not in kept)
    assert 0.9 * size / 100 < added <= size / 100
    assert str(report).startswith(f"costs {file['bytes']:,} bytes, ")
    assert "of the table with ranks within 0.28%, of partitions within 7.90%" in str(report).splitlines()[0]
    assert "raise max_size_bytes" in repr(made)
    assert {blob["type"] for blob in file["blobs"]} >= {PARTITION_SKETCHES}


def test_progress_is_told_to_the_end(own_table):
    seen = []
    own_table.compute(columns=["x"], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


def test_an_old_snapshot_can_be_computed(spark, committed):
    first = next(reversed(list(committed.metadata.ancestors(committed.snapshot))))
    old = icestats.load("demo.events", snapshot=first.snapshot_id)
    found = old.compute(columns=["quantity"]).found
    rows = spark.sql(f"select count(*) from icestats.demo.events version as of {first.snapshot_id}").first()[0]
    assert found.row_count == rows
