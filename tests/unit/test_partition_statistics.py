"""Partition statistics files: what is computed, stored, registered and read back."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

import icestats
from icestats.answers.schemas import ROLLUP_CELLS, partition_groups_schema
from icestats.commit.partition_statistics_commit import commit_partition_statistics, prepare_partition_commit
from icestats.commit.partition_statistics_file import build_stored_table, write_stored_table
from icestats.errors import CommitError
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.storage import local_path
from icestats.iceberg.types import to_arrow_type
from icestats.read.partitions.partition_statistics import PartitionStatistics, read_partition_statistics
from tests.added_rows import numbers
from tests.stored_partitions import expire_all_but_current, make, stored_path

pytestmark = pytest.mark.usefixtures("no_cache")


def rows_of(table: icestats.Table) -> list[dict]:
    return table.partition_statistics().to_pylist()


def test_a_committed_file_answers_in_place_of_the_manifests(small_table, load):
    expected = load().partitions()
    report = make(load()).commit()
    assert report.committed
    table = load()
    for location in table.manifest_files()["manifest_path"].to_pylist():
        path = local_path(location)
        path.write_bytes(bytes(path.stat().st_size))
    assert load().partitions().equals(expected)
    assert stored_path(table).name.startswith(f"partition-stats-{table.snapshot.snapshot_id}-")
    assert stored_path(table).stat().st_size == report.to_json()["files"][0]["bytes"]


def test_a_file_without_columns_answers_its_rows_only(small_table, load):
    make(load(), with_column_stats=False).commit()
    names = pq.read_schema(stored_path(load())).names
    assert names[:2] == ["partition", "spec_id"]
    assert names[-1] == "last_updated_snapshot_id"
    assert load().partitions().equals(load().read().partitions())
    assert {row["value_counts"] is None for row in rows_of(load())} == {True}


def test_only_the_columns_that_were_asked_for_are_stored(small_table, load):
    statistics = make(load(), columns=["price"])
    keys = {key for row in statistics.of_metadata.partitions.to_pylist() for key, _ in row["value_counts"]}
    assert keys == {3}
    statistics.commit()
    assert load().partitions().equals(load().read().partitions())
    with small_table.refresh().update_schema() as update:
        update.add_column("late", LongType())
    assert [dict(row["value_counts"]) for row in rows_of(load())] == [
        {3: row["data_record_count"]} for row in rows_of(load())
    ]


def test_a_file_has_the_columns_that_the_one_before_had(small_table, load):
    """A commit of partitions alone took the statistics of columns away from whoever had made them."""
    make(load(), columns=["price", "id"]).commit()
    assert not load().compute(partitions=True).commit().committed
    small_table.refresh().append(numbers([500]))
    load().compute(partitions=True, columns=["name"]).commit()
    keys = {key for row in rows_of(load()) for key, _ in row["value_counts"]}
    assert (keys, rows_of(load())[0]["commits_behind"]) == ({1, 3}, 0)
    make(load(), with_column_stats=False).commit()
    assert load().compute(partitions=True).commit().committed is False
    assert {row["value_counts"] is None for row in rows_of(load())} == {True}


def test_avro_by_the_tables_default_format(small_table, load):
    with small_table.transaction() as change:
        change.set_properties({"write.format.default": "avro"})
    expected = load().partitions()
    make(load()).commit()
    assert stored_path(load()).suffix == ".avro"
    assert load().partitions().equals(expected)
    rows = list(fastavro.reader(io.BytesIO(stored_path(load()).read_bytes())))
    assert [row["partition"]["at_day"] for row in rows] == [row["partition"]["at_day"] for row in expected.to_pylist()]


def test_orc_tables_get_parquet_and_a_note(small_table, load):
    with small_table.transaction() as change:
        change.set_properties({"write.format.default": "orc"})
    statistics = make(load())
    assert "write.format.default is orc: partition statistics are written as Parquet" in repr(statistics)
    statistics.commit()
    assert stored_path(load()).suffix == ".parquet"


def test_an_unpartitioned_table_says_so_and_has_its_one_row(catalog: SqlCatalog, load):
    catalog.create_table("db.flat", numbers([1]).schema).append(numbers([1, 2, 3]))
    statistics = load("db.flat").compute(partitions=True)
    assert "db.flat is not partitioned" in repr(statistics)
    assert statistics.of_metadata.partitions["data_record_count"].to_pylist() == [3]
    report = statistics.commit()
    assert (report.committed, report.files) == (False, ())
    assert load("db.flat").metadata.partition_statistics == ()


def test_missing_statistics_are_said_with_the_column(small_table, load):
    line = "nan_value_counts not aggregated in 35 of 35 partitions, since one or more files lack it: price"
    assert line in repr(make(load())).splitlines()[-1]


def test_a_dry_run_writes_nothing(small_table, load):
    report = make(load(), manifests=True).commit(dry_run=True)
    assert not report.committed
    assert len(report.files) == 2
    assert "would write" in str(report)
    assert load().metadata.partition_statistics == ()
    assert list((local_path(load().metadata.location) / "metadata").glob("partition-stats-*")) == []


def test_one_commit_registers_all_that_was_made(small_table, load):
    steps: list[str] = []
    versions = len(load().metadata.metadata_log)
    report = make(load(), manifests=True).commit(on_step=steps.append)
    assert Path(report.files[0]["path"]).name.startswith("partition-stats-")
    table = load()
    assert steps == ["prepared", *["writing", "written"] * 2, "committing", "committed"]
    assert len(table.metadata.metadata_log) == versions + 1
    assert len(table.metadata.partition_statistics) == len(table.metadata.statistics) == 1
    small_table.update_schema().add_column("more", LongType()).commit()
    again = make(load(), manifests=True).commit()
    assert [entry["type"] for entry in again.replaced] == ["partition-statistics", "icestats-manifest-stats-v1"]


TYPES = {
    "flag": (BooleanType(), pa.bool_(), [True, False, None]),
    "day": (DateType(), pa.date32(), [dt.date(1969, 12, 31), dt.date(2026, 1, 1), None]),
    "time": (TimeType(), pa.time64("us"), [dt.time(1), dt.time(2, 3, 4, 5), None]),
    "at": (TimestampType(), pa.timestamp("us"), [dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1), None]),
    "zoned": (TimestamptzType(), pa.timestamp("us", tz="UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None]),
    "amount": (DecimalType(9, 2), pa.decimal128(9, 2), [Decimal("-1.28"), Decimal("9999999.99"), None]),
    "raw": (BinaryType(), pa.large_binary(), [b"", b"\xff\x00", None]),
    "text": (StringType(), pa.large_string(), ["", "\U0001f600é", None]),
}


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_partition_values_of_every_type_survive(catalog: SqlCatalog, load, file_format):
    fields = [NestedField(i, name, kind, required=False) for i, (name, (kind, _, _)) in enumerate(TYPES.items(), 1)]
    spec = PartitionSpec(*(PartitionField(f.field_id, 999 + f.field_id, IdentityTransform(), f.name) for f in fields))
    table = catalog.create_table("db.types", Schema(*fields), partition_spec=spec)
    table.append(pa.table({name: pa.array(values, kind) for name, (_, kind, values) in TYPES.items()}))
    with table.transaction() as change:
        change.set_properties({"write.format.default": file_format})
    expected = load("db.types").partitions()
    assert len(expected) == 3
    make(load("db.types")).commit()
    assert load("db.types").partitions().equals(expected)
    assert load("db.types").partition_statistics()["partition"].equals(expected["partition"])


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_uuids_fixed_and_nanoseconds_survive(file_format):
    """PyIceberg cannot partition by these; Java can, and reads a uuid only where the file says that it is one."""
    columns = (
        PartitionColumn(1000, "key", "uuid"),
        PartitionColumn(1001, "code", "fixed[3]"),
        PartitionColumn(1002, "at", "timestamp_ns"),
    )
    values = [{"key": bytes(15) + b"\x07", "code": b"abc", "at": 1_700_000_000_000_000_001}, dict.fromkeys(("key",))]
    partition = pa.array(values, pa.struct([(c.name, to_arrow_type(c.type)) for c in columns]))
    schema = partition_groups_schema(partition.type)
    arrays = [partition, *(pa.nulls(2, f.type) if f.nullable else pa.array([1, 2], f.type) for f in list(schema)[1:])]
    groups = pa.table(arrays, schema=schema)
    for name, of in (("last_added_at", "last_updated_at"), ("last_added_snapshot_id", "last_updated_snapshot_id")):
        groups = groups.append_column(name, groups[of])
    stored = build_stored_table(PartitionStatistics(groups, ROLLUP_CELLS.empty_table(), ()), columns, 3)
    data = write_stored_table(stored, columns, file_format)
    found = read_partition_statistics(data, f"stats.{file_format}", columns, (), {})
    assert found.groups.equals(groups)
    if file_format == "parquet":
        assert pq.ParquetFile(io.BytesIO(data)).schema.column(0).logical_type.type == "UUID"


def test_a_snapshot_that_was_expired_takes_no_statistics(small_table, load):
    first = load().metadata.find_snapshot().parent_snapshot_id
    table = small_table.refresh()
    planned = prepare_partition_commit(table, first, b"PAR1", "parquet")
    expire_all_but_current(table)
    with pytest.raises(CommitError, match="was expired meanwhile"):
        commit_partition_statistics(table, planned)
    assert not local_path(planned.file.statistics_path).exists()
    assert load().metadata.partition_statistics == ()


def test_commits_of_others_meanwhile_do_not_matter(small_table, load, catalog: SqlCatalog):
    statistics = make(load())
    catalog.load_table("db.small").append(numbers([1000]))
    of = load().metadata.find_snapshot().parent_snapshot_id
    steps = []
    assert statistics.commit(on_step=steps.append).committed
    assert [file.snapshot_id for file in load().metadata.partition_statistics] == [of]
    assert steps == ["writing", "written", "committing", "committed"]
    assert len(catalog.load_table("db.small").scan().to_arrow()) == 201


def test_the_nearest_file_is_read_and_says_its_age(small_table, load, catalog: SqlCatalog):
    make(load()).commit()
    made_for = load().snapshot.snapshot_id
    rows = load().partition_statistics()
    assert set(rows["commits_behind"].to_pylist()) == {0}
    catalog.load_table("db.small").append(numbers([1000]))
    older = load().partition_statistics()
    assert older.drop_columns(["commits_behind"]).equals(rows.drop_columns(["commits_behind"]))
    assert set(zip(older["snapshot_id"].to_pylist(), older["commits_behind"].to_pylist(), strict=True)) == {
        (made_for, 1)
    }


def test_a_table_that_cannot_be_written_leaves_no_file(small_table, load):
    location = load()._source.metadata_location
    with pytest.raises(CommitError, match="read-only"):
        make(icestats.load(location)).commit()
    assert list(local_path(location).parent.glob("partition-stats-*")) == []
