"""What PyIceberg cannot read, Spark's own scan reads: live rows, to the same sketches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import TimeType

import icestats
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import local_path
from icestats.scan.appended_files import find_appended_files, read_changed_files
from icestats.scan.scan_plan import prepare_scan
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch
from tests.spark_versions import SPARK, to_arrow
from tests.written_deletes import take_vector_away_in_java

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.compute"
ADDED = 37


def create(spark, name, properties="'comment'=''", partitioned=""):
    spark.sql(f"drop table if exists {NAMESPACE}.{name} purge")
    spark.sql(
        f"create table {NAMESPACE}.{name} (id bigint, day date, price double, name string, paid decimal(30, 2), "
        f"at timestamp, tags array<string>) using iceberg {partitioned} tblproperties ({properties})"
    )
    spark.sql(
        f"insert into {NAMESPACE}.{name} select id, date '2026-09-01' + cast(id % 4 as int), "
        "case when id % 11 = 0 then double('nan') else id / 7 end, concat('n\u00e9', id % 50), id * 1.25, "
        "timestamp '2026-09-01' + make_dt_interval(0, 0, 0, id), array('a') from range(4000)"
    )


COLUMNS = ("id", "day", "price", "name", "paid", "at")


def assert_describes(statistics, rows):
    """The statistics are those of exactly these rows: Theta to the hash, the rest to the value."""
    for name in COLUMNS:
        found = statistics.found.columns[name]
        gathered = ColumnAccumulator(Field(found.field_id, name, found.type, required=False, top_level=True))
        gathered.update(rows.column(name).combine_chunks())
        expected = gathered.result()
        sketches = {"theta": b"", "kll": None, "frequent_items": b""}
        assert replace(found, **sketches) == replace(expected, **sketches), name
        assert ThetaSketch.from_bytes(found.theta) == ThetaSketch.from_bytes(expected.theta), name
        ours, theirs = (KllSketch.from_bytes(one.item_type, one.kll) for one in (found, expected))
        assert (ours.n, ours.min_value, ours.max_value) == (theirs.n, theirs.min_value, theirs.max_value)
        probes = theirs.quantiles([0.1, 0.5, 0.9])
        assert np.abs(np.subtract(ours.ranks(probes), theirs.ranks(probes))).max() <= 2 * (ours.rank_error + 0.0133)


def rows_of(spark, name, version=""):
    return to_arrow(spark.sql(f"select {', '.join(COLUMNS)} from {NAMESPACE}.{name} {version}"))


@pytest.mark.parametrize(("kind", "version"), [("float", 3), ("double", 3), ("double", 2)])
def test_the_partition_of_nan_has_its_deletes(spark, namespace, kind, version):
    """To a dict of Python's one NaN is another key than the next; PyIceberg finds deletes by partition."""
    name = f"{NAMESPACE}.nan"
    spark.sql(f"drop table if exists {name} purge")
    spark.sql(
        f"create table {name} (id bigint, v {kind}) using iceberg partitioned by (v) tblproperties "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='partition')"
    )
    for start in (0, 10):
        rows = f"select /*+ repartition(1) */ id + {start}, cast('NaN' as {kind}) from range(10)"
        spark.sql(f"insert into {name} {rows}")
    spark.sql(f"delete from {name} where id % 10 < 4")
    table = icestats.load(name)
    assert table.compute().found.columns["id"].value_count == 12
    assert table.estimate("v is nan", actual=True).actual == 12
    assert table.estimate_groups(["id"], actual=True).actual == 12
    assert [len(paths) for paths in table.plan("true").files()["delete_files"].to_pylist()] == [1, 1]


@pytest.mark.parametrize("file_format", ["avro", "orc"])
def test_position_deletes_that_pyiceberg_cannot_read_leave_the_scan_to_spark(spark, namespace, file_format):
    """The data files are Parquet; what deletes some of their rows is not."""
    deletes = f"'write.delete.mode'='merge-on-read', 'write.delete.format.default'='{file_format}'"
    create(spark, "positions", f"'format-version'='2', {deletes}")
    spark.sql(f"delete from {NAMESPACE}.positions where id % 3 = 0")
    statistics = icestats.load(f"{NAMESPACE}.positions").compute(spark=spark)
    assert_describes(statistics, rows_of(spark, "positions"))
    reason = f"it has delete files in {file_format.upper()}, which PyIceberg cannot read safely"
    assert statistics.found.scan_reason == reason


@pytest.fixture(scope="module")
def equality_deleted(spark, namespace, delete_equal):
    """4,000 rows of 50 names, two of them deleted by equality; 37 more in partitions; on a branch one more."""
    create(spark, "eq", "'format-version'='2'")
    before = icestats.load(f"{NAMESPACE}.eq").snapshot.snapshot_id
    delete_equal(f"{NAMESPACE}.eq", "name", ["n\u00e95", "n\u00e96"])
    spark.sql(f"alter table {NAMESPACE}.eq add partition field day")
    spark.sql(f"insert into {NAMESPACE}.eq select * from {NAMESPACE}.eq where id < 40 and name != 'n\u00e97'")
    spark.sql(f"alter table {NAMESPACE}.eq create branch audit")
    spark.sql(f"insert into {NAMESPACE}.eq.branch_audit select 9999, null, null, null, null, null, null")
    return before


def test_equality_deletes_are_applied_and_the_result_says_who_read(spark, equality_deleted):
    statistics = icestats.load(f"{NAMESPACE}.eq").compute()
    assert statistics.found.row_count == 3_840 + ADDED
    assert statistics.found.scanned_by == "Spark"
    assert "read by Spark's own scan, the slower way: the table has equality deletes" in repr(statistics)
    assert_describes(statistics, rows_of(spark, "eq"))


def test_old_snapshots_and_branches_are_described_as_they_are(spark, equality_deleted):
    old = icestats.load(f"{NAMESPACE}.eq", snapshot=equality_deleted).compute()
    assert (old.found.row_count, old.found.scanned_by) == (4_000, "PyIceberg")
    branch = icestats.load(f"{NAMESPACE}.eq", ref="audit").compute()
    assert (branch.found.row_count, branch.found.scanned_by) == (3_841 + ADDED, "Spark")
    assert_describes(branch, rows_of(spark, "eq", "version as of 'audit'"))


def test_a_bare_metadata_file_with_equality_deletes_is_read_too_and_nothing_is_left_behind(spark, equality_deleted):
    location = icestats.load(f"{NAMESPACE}.eq")._source.metadata_location
    folder = local_path(location).parent
    before = sorted(folder.iterdir())
    statistics = icestats.load(location).compute(columns=["id", "name"])
    assert statistics.found.row_count == 3_840 + ADDED
    assert sorted(folder.iterdir()) == before


def test_partitions_are_told_apart_by_sparks_scan_too(spark, equality_deleted):
    found = icestats.load(f"{NAMESPACE}.eq").compute(columns=["id"], by="partition").found
    counts = sorted(column.value_count for column in found.by_partition.columns["id"].values())
    truth = spark.sql(
        f"select sum(record_count) from {NAMESPACE}.eq.files where spec_id = 1 group by partition"
    ).collect()
    assert counts == sorted([*(row[0] for row in truth), 3_840])


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_file_formats_give_the_same_statistics(spark, namespace, file_format):
    create(spark, file_format, f"'write.format.default'='{file_format}'")
    statistics = icestats.load(f"{NAMESPACE}.{file_format}").compute()
    assert f"it has data files in {file_format.upper()}" in statistics.found.scan_reason
    assert_describes(statistics, rows_of(spark, file_format))


def test_deletion_vectors_are_applied(spark, namespace):
    """Those of a file that was deleted from twice, with those of others in the same Puffin file."""
    create(spark, "vectors", "'format-version'='3','write.delete.mode'='merge-on-read'", "partitioned by (day)")
    spark.sql(f"delete from {NAMESPACE}.vectors where id % 10 = 3")
    spark.sql(f"delete from {NAMESPACE}.vectors where id % 20 = 4 and day = date '2026-09-01'")
    statistics = icestats.load(f"{NAMESPACE}.vectors").compute()
    assert statistics.found.scanned_by == "PyIceberg"
    assert_describes(statistics, rows_of(spark, "vectors"))


def test_a_vector_that_the_table_no_longer_has_deletes_nothing(spark, namespace):
    """Its Puffin file is still there, for another vector; PyIceberg does not read which one a manifest means."""
    name = f"{NAMESPACE}.taken"
    spark.sql(
        f"create table {name} (id bigint) using iceberg "
        "tblproperties ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    for start in (0, 10):
        spark.sql(f"insert into {name} select /*+ coalesce(1) */ id + {start} from range(5)")
    spark.sql(f"delete from {name} where id in (1, 11)")
    between = take_vector_away_in_java(spark, name)
    assert spark.sql(f"select count(*) from {name} version as of {between}").collect()[0][0] == 9
    table = icestats.load(name, snapshot=between)
    assert table.compute().found.row_count == 9
    estimates = [table.estimate(row_filter, actual=True).actual for row_filter in ("id < 5", "id > 5")]
    assert sorted(estimates) == [4, 5]

    now = icestats.load(name)
    lying = {i: replace(s, summary={**s.summary, "operation": "append"}) for i, s in now.metadata.snapshots.items()}
    metadata, snapshot = replace(now.metadata, snapshots=lying), lying[now.snapshot.snapshot_id]
    changed = read_changed_files(now._source.storage, metadata, between, snapshot)
    found = find_appended_files(load_iceberg_table(now._source), metadata, between, snapshot, changed)
    assert found.reason == "rows have been deleted since: the delete files have changed"


@pytest.mark.parametrize("name", ["eq", "vectors"])
def test_columns_that_were_added_or_renamed_since_are_known_by_their_new_names(
    spark, namespace, equality_deleted, name
):
    """A snapshot's own schema has neither the new name nor the new column, whose values are all null."""
    spark.sql(f"alter table {NAMESPACE}.{name} add column extra int")
    spark.sql(f"alter table {NAMESPACE}.{name} rename column paid to `paid in`")
    found = icestats.load(f"{NAMESPACE}.{name}").compute(columns=["extra", "paid in"]).found
    assert found.columns["extra"].null_value_count == found.row_count > 0
    assert found.columns["paid in"].null_value_count == 0


def test_a_refresh_reads_all_with_spark_where_the_new_files_are_not_all_that_counts(spark, namespace, delete_equal):
    """After new equality deletes and after new ORC files; Parquet behind known equality deletes is read alone."""
    create(spark, "refreshed", "'format-version'='2'")
    name = f"{NAMESPACE}.refreshed"
    icestats.load(name).compute().commit()
    delete_equal(f"{NAMESPACE}.refreshed", "name", ["n\u00e95"])
    deleted = icestats.load(name).refresh_statistics()
    assert deleted.added_to == {}
    assert set(deleted.scanned) == set(COLUMNS)
    assert "is of the operation delete" in deleted.scanned["id"]
    assert "equality deletes" in deleted.found.scan_reason
    assert_describes(deleted, rows_of(spark, "refreshed"))
    deleted.commit()

    spark.sql(f"insert into {name} select * from {name} where id < 100")
    appended = icestats.load(name).refresh_statistics()
    assert (set(appended.added_to), appended.added_row_count) == (set(COLUMNS), 98)
    assert_describes(appended, rows_of(spark, "refreshed"))
    appended.commit()

    spark.sql(f"alter table {name} set tblproperties ('write.format.default'='orc')")
    spark.sql(f"insert into {name} select * from {name} where id < 50")
    orc = icestats.load(name).refresh_statistics()
    assert set(orc.scanned.values()) == {"a file added since is ORC, not Parquet"}
    assert orc.found.scanned_by == "Spark"
    assert_describes(orc, rows_of(spark, "refreshed"))


def test_files_that_pyiceberg_cannot_read_are_not_scanned_apart(spark, namespace):
    """Spark reads whole snapshots: statistics of these would count rows twice."""
    create(spark, "apart", "'write.format.default'='orc'")
    table = icestats.load(f"{NAMESPACE}.apart")
    tasks = list(load_iceberg_table(table._source).scan().plan_files())
    with pytest.raises(icestats.UnsupportedError, match="cannot be read alone: it has data files in ORC"):
        prepare_scan(table._source, table.snapshot, table.schema, tasks=tasks)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_a_wide_table_is_read_some_columns_at_a_time(spark, namespace, monkeypatch, file_format):
    create(spark, "wide", f"'write.format.default'='{file_format}'", "partitioned by (day)")
    table = icestats.load(f"{NAMESPACE}.wide")

    def compute():
        found = table.compute(k=8192, by="partition", together=[("paid", "id")], max_size_bytes=1 << 30).found
        columns = [found.columns, *found.by_partition.columns.values()]
        # The rows of a sample are drawn anew for each reading.
        plain = [[(key, replace(one, frequent_items=b"")) for key, one in column.items()] for column in columns]
        return plain, found.row_count, found.by_partition.sizes, found.together

    whole = compute()
    monkeypatch.setattr("icestats.spark.statistics_scan.MOST_COLUMNS", 2)
    assert compute() == whole


def test_a_column_that_hides_the_file_of_a_row_is_refused(spark, namespace):
    spark.sql(f"drop table if exists {NAMESPACE}.hiding purge")
    spark.sql(
        f"create table {NAMESPACE}.hiding (id bigint, `_FILE` string) using iceberg partitioned by (id) "
        "tblproperties ('write.format.default'='avro')"
    )
    spark.sql(f"insert into {NAMESPACE}.hiding select id % 2, 'a' from range(10)")
    table = icestats.load(f"{NAMESPACE}.hiding")
    with pytest.raises(icestats.UnsupportedError, match=r"the column '_FILE' of .* hides the one by which Spark says"):
        table.compute(by="partition")
    assert table.compute().found.row_count == 10


def test_equality_deletes_by_a_nested_column_are_refused_as_spark_applies_them_to_other_rows(
    spark, namespace, delete_equal
):
    """Of rows 1, 2 and 3 without the second Spark finds all three, or the first alone, unless it reads the struct."""
    name = f"{NAMESPACE}.nested_keys"
    spark.sql(f"create table {name} (n bigint, gone int, s struct<x: int, y: string>) using iceberg")
    spark.sql(
        f"insert into {name} select id, cast(id as int), named_struct('x', cast(id as int), 'y', 'q') from range(1, 4)"
    )
    delete_equal(name, "gone", [3])
    spark.sql(f"alter table {name} drop column gone")
    if SPARK == (3, 5):
        with pytest.raises(icestats.IcestatsError, match="Cannot find required field for ID 2"):
            icestats.load(name).compute()
    else:
        assert icestats.load(name).compute().found.row_count == 2
    delete_equal(name, "s.x", [2])
    table = icestats.load(name)
    reads = [
        table.compute,
        lambda: table.estimate("n = 2", actual=True),
        *([table.to_spark] if SPARK >= (4, 1) else []),
    ]
    for read in reads:
        with pytest.raises(icestats.UnsupportedError, match=r"deletes by the nested column 's\.x', which Spark's scan"):
            read()
    assert [(one.rows_lower, one.rows_upper) for one in table.estimate("n = 1") if one.source == "table"] == [(0, 3)]


def test_a_type_that_spark_does_not_know_is_one_clear_line(spark, namespace, delete_equal):
    """Neither can read: PyIceberg for the equality deletes, Spark for the time."""
    create(spark, "timed")
    opened = load_iceberg_table(icestats.load(f"{NAMESPACE}.timed")._source)
    with opened.update_schema() as update:
        update.add_column("clock", TimeType())
    opened.append(pa.table({"id": pa.array([1], pa.int64()), "clock": pa.array([5], pa.time64("us"))}))
    delete_equal(f"{NAMESPACE}.timed", "name", ["n\u00e95"])
    with pytest.raises(
        icestats.UnsupportedError, match=r"equality deletes.*Spark cannot read it either.*time"
    ) as caught:
        icestats.load(f"{NAMESPACE}.timed").compute()
    assert "\n" not in str(caught.value)
