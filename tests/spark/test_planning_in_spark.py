"""Planning against Iceberg's own: the kept files, and what a rewrite of manifests brings."""

from __future__ import annotations

from typing import Any

import pytest

import icestats
from icestats.errors import UnsupportedError
from icestats.snapshot.layout.maintenance import Maintenance
from icestats.spark.table_writes import run_rewrite_manifests
from tests.spark_versions import SPARK

pytestmark = pytest.mark.spark

EVENTS = (
    "device_id = 74 and event_time > '2026-09-01T10:00:00' and event_time < '2026-09-04T20:00:00'",
    "event_time >= '2026-09-05' and event_time < '2026-09-06'",
    "price < 3",
    "price > 1000 or quantity > 12",
    "event_id in (1, 500000, 1000000)",
    "event_id not in (1, 2) and country = 'DE'",
    "app_version is null",
    "app_version is not null and device_id < 10",
    "price is nan",
    "message like 'Akku%' and device_id = 5",
    "country not like 'U%'",
    "amount = 12.50 or amount is null",
    "not (device_id > 3)",
    "event_type != 'view'",
)
FLIGHTS = (
    "carrier = 'UA' and month = 7",
    "time_hour >= '2013-03-10T05:00:00Z' and time_hour < '2013-03-11T05:00:00Z'",
    "carrier in ('HA', 'OO') or dep_delay > 1000",
    "carrier not in ('UA', 'AA', 'B6')",
    "tailnum is null",
    "carrier not like 'U%' and origin = 'JFK'",
)


def _plan_in_java(spark: Any, name: str, where: str) -> set[str]:
    """The data files that Iceberg's Java library plans for a condition that Spark has read."""
    jvm, session = spark._jvm, spark._jsparkSession
    converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(session, name, where)
    condition = converter.convertToIcebergExpression(resolved)
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, name)
    tasks = table.newScan().filter(condition).planFiles()
    found, iterator = set(), tasks.iterator()
    while iterator.hasNext():
        found.add(iterator.next().file().location())
    tasks.close()
    return found


def _as_sql(row_filter: str) -> str:
    # Spark has no predicate for NaN that Iceberg's converter knows.
    return row_filter.replace("price is nan", "price = double('NaN')")


@pytest.mark.parametrize(
    ("name", "row_filter"), [("events", text) for text in EVENTS] + [("flights", text) for text in FLIGHTS]
)
def test_the_kept_files_are_those_of_spark(spark, demo_home, name, row_filter):
    """With manifest-level statistics and without."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        expected = _plan_in_java(spark, f"icestats.demo.{name}", _as_sql(row_filter))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    table = icestats.load(f"demo.{name}")
    for manifest_statistics in (False, True):
        plan = table.plan(row_filter, manifest_statistics=manifest_statistics)
        assert set(plan.kept_file_paths()) == expected
        assert all(step.kept + step.skipped == step.total for step in plan.steps)


@pytest.mark.skipif(SPARK != (4, 0), reason="its Iceberg sorts manifests")
def test_an_iceberg_that_does_not_sort_manifests_is_said_in_one_line(spark, demo_home):
    table = icestats.load("demo.events")
    with pytest.raises(UnsupportedError, match="leave sort_by out, or rewrite with Spark"):
        table.rewrite_manifests(sort_by="event_time_day", dry_run=False)


@pytest.mark.skipif(SPARK == (4, 0), reason="Iceberg 1.11 does not sort manifests")
def test_a_rewrite_of_manifests_brings_what_was_predicted(spark, demo_home):
    """On a table of its own: files and rows stay, and manifests hold fewer days."""
    spark.sql("DROP TABLE IF EXISTS icestats.demo.rewritten")
    spark.sql("CREATE TABLE icestats.demo.rewritten (day INT, id BIGINT) USING iceberg PARTITIONED BY (day)")
    for commit in range(6):
        rows = f"SELECT CAST(id % 10 AS INT) AS day, id + {commit * 10} AS id FROM range(10)"
        spark.sql(f"INSERT INTO icestats.demo.rewritten {rows}")
    try:
        table = icestats.load("icestats.demo.rewritten")
        size = sum(table.manifest_files()["manifest_length"].to_pylist()) // 3
        arguments = {"sort_by": "day", "workload": ["day = 3"], "manifest_size_bytes": size}
        preview = table.rewrite_manifests(**arguments)
        done = table.rewrite_manifests(**arguments, dry_run=False)
        rows = {(row["subject"], row["figure"]): row for row in done.to_arrow().to_pylist()}
        opened = rows["day = 3", "manifests by partition summaries kept"]
        files = rows["day = 3", "data files by column bounds kept"]
        assert (done.is_done, done.rewritten_manifest_count) == (True, 6)
        assert preview.to_arrow().drop_columns(["after"]) == done.to_arrow().drop_columns(["after"])
        assert opened["before"] == 6
        assert opened["predicted"] == 1
        assert opened["after"] <= 2
        assert files["before"] == files["predicted"] == files["after"] == 6
        now = table.refresh()
        assert now.snapshot.operation == "replace"
        assert set(now.plan("day = 3").kept_file_paths()) == set(table.plan("day = 3").kept_file_paths())
        _run_every_statement(spark, Maintenance("icestats", ("demo", "rewritten"), {}))
        assert set(table.refresh().plan("day = 3").partition_filters.values()) == {"day = 3"}
    finally:
        spark.sql("DROP TABLE icestats.demo.rewritten")


@pytest.mark.parametrize(
    ("before", "behind", "kept", "mean"),
    [
        ("", "ALTER TABLE {} ADD PARTITION FIELD id", False, False),
        ("", "ALTER TABLE {} DROP COLUMN id", False, False),
        ("", "DELETE FROM {}", True, False),
        ("ALTER TABLE {} ADD PARTITION FIELD id", "DELETE FROM {} WHERE part = 1", True, True),
    ],
)
def test_a_rewrite_that_others_have_written_behind_is_answered(spark, monkeypatch, before, behind, kept, mean):
    """It is done then: figures of today are shown where they are of the fields and filters that were asked about."""
    name = "icestats.demo.written_behind"

    def change(statement: str) -> None:
        spark.sql(statement.format(name))
        if "FIELD" in statement:
            spark.sql(f"INSERT INTO {name} VALUES (1, 1)")

    def rewrite(*arguments: Any) -> tuple[int, int]:
        counts = run_rewrite_manifests(*arguments)
        change(behind)
        return counts

    try:
        spark.sql(f"CREATE TABLE {name} (part BIGINT, id BIGINT) USING iceberg PARTITIONED BY (part)")
        for _ in range(3):
            spark.sql(f"INSERT INTO {name} SELECT id % 4, id FROM range(12)")
        if before:
            change(before)
        monkeypatch.setattr("icestats.spark.table_writes.run_rewrite_manifests", rewrite)
        done = icestats.load(name).rewrite_manifests(workload=["part = 2 and id > 5"], dry_run=False)
    finally:
        spark.sql(f"DROP TABLE {name}")
    assert done.is_done
    after = {(outcome.subject, outcome.figure.partition(" ")[0]): outcome.after for outcome in done.outcomes}
    assert (after["part = 2 and id > 5", "data"] is not None, after["part", "manifests"] is not None) == (kept, mean)


def test_a_table_is_partitioned_anew_by_the_statements_of_what_if(spark, demo_home):
    """Fields that stay, go and come; one is of a struct, and a name has to be quoted."""
    spark.sql("DROP TABLE IF EXISTS icestats.demo.repartitioned")
    spark.sql(
        "CREATE TABLE icestats.demo.repartitioned (id BIGINT, `odd name` STRING, deep STRUCT<at: TIMESTAMP>) "
        "USING iceberg PARTITIONED BY (`odd name`, bucket(4, id))"
    )
    spark.sql(
        "INSERT INTO icestats.demo.repartitioned SELECT id * 997 % 4000, concat('n', id % 3), named_struct('at', "
        "timestamp '2026-09-01 00:00:00' + make_interval(0, 0, 0, 0, id % 96)) FROM range(4000)"
    )
    try:
        table = icestats.load("icestats.demo.repartitioned")
        found = table.layout().what_if(["id < 1000"], partition_by="day(deep.at), truncate(500, id), `odd name`")
        for statement in found.statement.split(";\n"):
            spark.sql(statement).collect()
        now = table.refresh()
        spec = now.metadata.specs[now.metadata.default_spec_id]
        assert [field.transform for field in spec.fields] == ["identity", "day", "truncate[500]"]
        kept = now.plan("id < 1000").steps[-1].kept_rows
        assert kept == 1000
        assert found.comparisons[0].then[-1].kept_rows == pytest.approx(kept, rel=0.05)
        assert f"some {now.partitions().num_rows} partitions" in found.change
    finally:
        spark.sql("DROP TABLE icestats.demo.repartitioned")


def test_a_rewrite_touches_the_table_that_was_asked_for(spark):
    """Not the one that its name would be of, were the dot in it one between namespaces."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS icestats.demo.orders")
    names = ("icestats.demo.`orders.2026`", "icestats.demo.orders.`2026`")
    try:
        for name in names:
            spark.sql(f"CREATE TABLE {name} (price DECIMAL(9, 2), id BIGINT, id_bucket_2 INT) USING iceberg")
            for _ in range(2):
                spark.sql(f"INSERT INTO {name} VALUES (1.50, 1, 1), (2.50, 2, 1)")
        table = icestats.load(names[0], spark=spark)
        done = table.rewrite_manifests(manifest_size_bytes=1_000_000, dry_run=False, spark=spark)
        assert (done.rewritten_manifest_count, table.refresh().manifest_files().num_rows) == (2, 1)
        other = icestats.load(names[1], spark=spark)
        assert other.manifest_files().num_rows == 2
        assert "commit.manifest.target-size-bytes" not in other.metadata.properties
        layout = table.refresh().layout(columns=["id", "price"])
        for statement in (
            *layout.what_if(["id = 1"], partition_by="bucket(2, id)").statement.split(";\n"),
            *(found.fix for found in layout.findings if "overlap" in found.title),
        ):
            spark.sql(statement).collect()
        assert [field.name for field in table.refresh().metadata.specs[1].fields] == ["id_bucket_2_2"]
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql("DROP NAMESPACE icestats.demo.orders")


def test_delete_files_are_gone_once_they_are_applied(spark):
    name = "icestats.demo.undeleted"
    try:
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT) USING iceberg "
            "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
        )
        for _ in range(2):
            spark.sql(f"INSERT INTO {name} SELECT id FROM range(40)")
        spark.sql(f"DELETE FROM {name} WHERE id % 5 = 0")
        table = icestats.load(name)
        (found,) = (one for one in table.layout().findings if "Delete files" in one.title)
        spark.sql(found.fix).collect()
        assert table.refresh().overview().delete_file_count == 0
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def _run_every_statement(spark: Any, maintenance: Maintenance) -> None:
    """What findings propose is valid: Spark runs it."""
    spark.sql(maintenance.set_property("write.metadata.metrics.column.id", "truncate(16)"))
    for statement in (
        maintenance.sort_files(("id",)),
        maintenance.sort_files(("day", "id")),
        maintenance.sort_files(("day", "id"), along_curve=False),
        maintenance.compact_files(),
        maintenance.apply_deletes(),
        maintenance.rewrite_manifests(),
    ):
        spark.sql(statement).collect()
