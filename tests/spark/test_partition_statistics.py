"""Partition statistics equal those of Iceberg's own procedure, and each goes on from the other's file."""

from __future__ import annotations

import duckdb
import pytest

import icestats
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.storage import local_path
from icestats.read.manifests.manifests import find_partition_types, manifests_to_read
from icestats.read.partitions.partition_history import read_snapshot_partitions
from icestats.read.partitions.partition_statistics import PartitionStatistics, read_partition_statistics
from icestats.table import preview, writers

pytestmark = pytest.mark.spark

COUNTS = (
    *("spec_id", "data_record_count", "data_file_count", "total_data_file_size_in_bytes"),
    *("position_delete_record_count", "position_delete_file_count"),
    *("equality_delete_record_count", "equality_delete_file_count", "total_record_count", "dv_count"),
)
UPDATED = ("last_updated_at", "last_updated_snapshot_id")


@pytest.fixture(scope="module")
def namespace(spark, demo_home) -> str:
    spark.sql("create namespace if not exists icestats.partition_statistics")
    return "partition_statistics"


def make_table(spark, name: str, version: int, default_format: str = "parquet") -> str:
    """Two specs, deletes in the middle of files, a partition that is emptied, one of null."""
    full = f"icestats.{name}"
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    spark.sql(
        f"create table {full} (id bigint, day date, name string, amount decimal(9, 2)) using iceberg "
        f"partitioned by (day) tblproperties ('format-version'='{version}', 'write.delete.mode'='{mode}', "
        f"'write.format.default'='{default_format}', 'write.delete.format.default'='parquet', "
        "'write.distribution-mode'='hash')"
    )
    rows = "select id, if(id % 11 = 0, null, date_add(date'2026-01-01', cast(id % 4 as int))) day"
    spark.sql(f"insert into {full} {rows}, concat('n', id) name, id / 7 amount from range(200)")
    spark.sql(f"delete from {full} where id % 5 = 0")
    spark.sql(f"alter table {full} add partition field bucket(3, id)")
    spark.sql(f"insert into {full} {rows}, null name, null amount from range(200, 260)")
    spark.sql(f"delete from {full} where day = date'2026-01-03'")
    spark.sql(f"delete from {full} where id = 201")
    return full


def full_computation(table: icestats.Table) -> PartitionStatistics:
    found = read_snapshot_partitions(
        table.metadata,
        table._source.storage,
        table.snapshot,
        table.manifest_files(),
        (),
        lambda: table._reader.rollups,
        incremental=False,
    )
    return found.statistics


def icebergs(table: icestats.Table) -> PartitionStatistics:
    file = next(f for f in table.metadata.partition_statistics if f.snapshot_id == table.snapshot.snapshot_id)
    storage = table._source.storage
    partition = find_partition_types(manifests_to_read(table.manifest_files()), table.metadata, storage)
    data, specs = storage.read(file.statistics_path), table.metadata.specs
    return read_partition_statistics(data, file.statistics_path, partition, (), specs)


def rows_of(found: PartitionStatistics, names) -> list[tuple]:
    rows = found.groups.select(["partition", *names]).to_pylist()
    return sorted((tuple(str(v) for v in row.pop("partition").values()), *row.values()) for row in rows)


def call(spark, name: str) -> None:
    spark.sql(f"call icestats.system.compute_partition_stats('{name}')")


@pytest.mark.parametrize(("version", "default_format"), [(1, "parquet"), (2, "parquet"), (2, "avro"), (3, "parquet")])
def test_a_full_computation_equals_icebergs(spark, namespace, version, default_format):
    name = f"{namespace}.full_{version}_{default_format}"
    full = make_table(spark, name, version, default_format)
    call(spark, name)
    table = icestats.load(full)
    ours, theirs = full_computation(table), icebergs(table)
    assert rows_of(ours, (*COUNTS, *UPDATED)) == rows_of(theirs, (*COUNTS, *UPDATED))
    assert ours.groups["partition"].equals(theirs.groups["partition"])
    counts = {column: sum(ours.groups[column].to_pylist()) for column in COUNTS if column != "total_record_count"}
    assert counts["data_file_count"] > 4
    assert (counts["dv_count"] > 0) == (version == 3)
    assert (counts["position_delete_file_count"] > 0) == (version == 2)
    assert 0 in ours.groups["data_file_count"].to_pylist()


@pytest.mark.parametrize("default_format", ["parquet", "avro"])
def test_iceberg_goes_on_from_our_file_and_we_from_icebergs(spark, namespace, default_format):
    name = f"{namespace}.taking_turns_{default_format}"
    full = make_table(spark, name, 2, default_format)
    spark.sql(f"alter table {full} set tblproperties ('commit.manifest-merge.enabled'='false')")
    icestats.load(full).compute(partitions=True, with_column_stats=True).commit()
    spark.sql(f"insert into {full} values (900, date'2026-01-02', 'x', 1.5)")
    call(spark, name)
    table = icestats.load(full)
    assert len(table.metadata.partition_statistics) == 2
    live = [row for row in rows_of(icebergs(table), COUNTS) if row[3]]
    assert live == [row for row in rows_of(full_computation(table), COUNTS) if row[3]]
    spark.sql(f"insert into {full} values (901, date'2026-01-02', 'y', 2.5)")
    table = icestats.load(full)
    made = table.compute(partitions=True)
    assert "added to the file of snapshot" in repr(made)
    made.commit()
    table = icestats.load(full)
    live = [row for row in rows_of(icebergs(table), COUNTS) if row[3]]
    assert live == [row for row in rows_of(full_computation(table), COUNTS) if row[3]]


def test_every_engine_reads_a_table_with_all_kinds_committed(spark, namespace):
    """DuckDB 1.5 has an Iceberg extension on PyPI, 2.0 has none: it reads data files by path, deletes not applied."""
    name = f"{namespace}.all_kinds"
    full = make_table(spark, name, 2)
    before = spark.sql(f"select count(*), sum(id), sum(amount) from {full}").collect()
    report = icestats.load(full).compute(partitions=True, manifests=True, table=True, with_column_stats=True).commit()
    assert len(report.files) == 2
    spark.sql(f"refresh table {full}")
    assert spark.sql(f"select count(*), sum(id), sum(amount) from {full}").collect() == before
    table = icestats.load(full)
    scanned = load_iceberg_table(table._source).scan().to_arrow()
    assert (len(scanned), sum(scanned["id"].to_pylist())) == (before[0][0], before[0][1])
    files = [row for row in table.files().to_pylist() if row["content"] == "data"]
    paths = [str(local_path(row["file_path"])) for row in files]
    read = duckdb.execute("select count(*) from read_parquet(?)", [paths]).fetchall()
    assert read == [(sum(row["record_count"] for row in files),)]


def test_lengths_stand_where_a_scan_by_partition_has_made_them(spark, namespace):
    full = make_table(spark, f"{namespace}.lengths", 2)
    made = icestats.load(full).compute(
        partitions=True, with_column_stats=True, table=True, by="partition", columns=["id", "name"]
    )
    rows = made.of_metadata.partitions.to_pylist()
    query = f"select day, max(length(name)) longest, round(avg(length(name))) mean from {full} group by day"
    expected = {row["day"]: row for row in spark.sql(query).collect() if row["longest"] is not None}
    first_spec = [row for row in rows if row["spec_id"] == 0 and row["data_file_count"]]
    assert first_spec
    for row in first_spec:
        day = row["partition"]["day"]
        assert dict(row["max_lengths"]) == {3: expected[day]["longest"]}
        assert abs(dict(row["avg_lengths"])[3] - expected[day]["mean"]) <= 1
    made.commit()
    table = icestats.load(full)
    assert not table.compute(partitions=True).commit().committed
    fewer = table.compute(partitions=True, with_column_stats=True, columns=["name"]).of_metadata.partitions
    assert fewer["max_lengths"].to_pylist() == [[p for p in row["max_lengths"] if p[0] == 3] for row in rows]
    assert table.partitions().equals(icestats.load(full).read().partitions())
    shown = {(row["spec_id"], str(row["partition"])): row for row in table.partitions().to_pylist()}
    stored = {(row["spec_id"], str(row["partition"])): row for row in table.partition_statistics().to_pylist()}
    for row in first_spec:
        for found in (shown, stored):
            read = found[row["spec_id"], str(row["partition"])]
            for lengths in ("avg_lengths", "max_lengths"):
                assert read[lengths] == row[lengths]
    query = f"select day, count(distinct name) names from {full} group by day"
    names = {row["day"]: row["names"] for row in spark.sql(query).collect()}
    for row in first_spec:
        assert dict(shown[0, str(row["partition"])]["ndvs"])[3] == names[row["partition"]["day"]]


def test_a_dataframe_is_written_with_the_statistics_of_its_manifests(spark, namespace):
    full = make_table(spark, f"{namespace}.written", 2)
    frame = spark.sql("select 1000L id, date'2026-02-01' day, 'w' name, cast(2.5 as decimal(9, 2)) amount")
    for write, rows in ((writers.append_dataframe, 1), (writers.overwrite_partitions, 1)):
        written = write(icestats.load(full), frame)
        assert written.message == ""
        table = icestats.load(full)
        assert table.snapshot.snapshot_id == written.snapshot_id
        assert not table._reader._by_manifest
        assert table.manifests().equals(icestats.load(full).read().manifests())
        assert spark.sql(f"select count(*) from {full} where id = 1000").first()[0] == rows
    with pytest.raises(icestats.errors.CommitError, match="Spark could not write"):
        writers.append_dataframe(icestats.load(full), spark.sql("select 'x' id"))


def test_spark_reads_the_proposed_manifest_list(spark, namespace, tmp_path):
    full = make_table(spark, f"{namespace}.previewed", 2)
    preview.write_preview_manifest_list(icestats.load(full), tmp_path / "copy", i_know_this_breaks_pyiceberg=True)
    copy = spark.read.format("iceberg").load(str(tmp_path / "copy"))
    assert sorted(map(tuple, copy.collect()), key=str) == sorted(map(tuple, spark.table(full).collect()), key=str)
