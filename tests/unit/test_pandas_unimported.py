"""Reading, planning and estimating import no pandas, and answer as in a process that has."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import icestats
from icestats.iceberg.storage import local_path

TYPES: dict[str, tuple[Any, list[Any]]] = {
    "flag": (BooleanType(), [True, False, None]),
    "small": (IntegerType(), [-1, 2**31 - 1, None]),
    "amount": (DecimalType(9, 2), [Decimal("-1.28"), Decimal("9999999.99"), None]),
    "wide": (DecimalType(38, 5), [Decimal("0.00001"), Decimal(10) ** 32, None]),
    "day": (DateType(), [dt.date(1969, 12, 31), dt.date(2026, 1, 1), None]),
    "time": (TimeType(), [dt.time(1), dt.time(2, 3, 4, 5), None]),
    "at": (TimestampType(), [dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1), None]),
    "zoned": (TimestamptzType(), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None]),
    "text": (StringType(), ["", "\U0001f600é", None]),
    "raw": (BinaryType(), [b"", b"\xff\x00", None]),
    "real": (DoubleType(), [-0.0, float("nan"), None]),
}


def location(table: IcebergTable) -> str:
    return str(local_path(table.metadata_location))


def numbered(count: int) -> pa.Table:
    ids = np.arange(count)
    names = pa.array([None if i % 5 == 0 else f"n{i % 20}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids), "gone": pa.array(ids), "name": names, "price": pa.array(ids / 4)})


@pytest.mark.parametrize("version", [1, 2])
def test_an_unpartitioned_table_with_a_dropped_column(
    catalog: SqlCatalog, version: int, check_routes: Callable[..., None]
) -> None:
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.plain", numbered(1).schema, properties=properties)
    table.append(numbered(40))
    with table.update_schema() as update:
        update.delete_column("gone")
        update.rename_column("name", "title")
        update.add_column("late", LongType())
    table.append(numbered(60).rename_columns(["id", "late", "title", "price"]).select(["id", "title", "price", "late"]))
    check_routes([location(table), "id < 50 and title = 'n3' or price is null or late in (1, 2, 3)"])


def test_partition_values_of_every_type_with_committed_statistics(
    catalog: SqlCatalog, catalog_properties: dict[str, str], check_routes: Callable[..., None]
) -> None:
    fields = [NestedField(i, name, kind, required=False) for i, (name, (kind, _)) in enumerate(TYPES.items(), 1)]
    spec = PartitionSpec(
        *(PartitionField(f.field_id, 999 + f.field_id, IdentityTransform(), f.name) for f in fields if f.name != "real")
    )
    table = catalog.create_table("db.types", Schema(*fields), partition_spec=spec)
    schema = table.schema().as_arrow()
    rows = pa.table([pa.array(TYPES[field.name][1], field.type) for field in schema], schema=schema)
    table.append(rows)
    table.append(rows.slice(1))
    filters = "amount > 0 and wide <= 5 and day > '2000-01-01' and text != 'x' or zoned < '2030-01-01T00:00:00+00:00'"
    check_routes([location(table), filters])
    opened = icestats.load("db.types", catalog=catalog_properties)
    opened.compute(table=False, partitions=True, manifests=True, with_column_stats=True).commit()
    check_routes([location(table.refresh()), filters])


def test_partitions_by_uuid_and_fixed(catalog: SqlCatalog, check_routes: Callable[..., None]) -> None:
    """Their files are made up: what is read is metadata."""
    schema = Schema(NestedField(1, "key", UUIDType()), NestedField(2, "code", FixedType(3)))
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "key"), PartitionField(2, 1001, IdentityTransform(), "code")
    )
    table = catalog.create_table("db.keys", schema, partition_spec=spec)
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for i in range(4):
            key = uuid.UUID(int=i << 126)
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{table.location()}/{i}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(key if i else None, b"ab%d" % i),
                record_count=10,
                file_size_in_bytes=100,
                value_counts={1: 10, 2: 10},
                null_value_counts={1: 0, 2: 0},
                lower_bounds={1: key.bytes, 2: b"ab%d" % i},
                upper_bounds={1: key.bytes, 2: b"ab%d" % i},
            )
            file.spec_id = table.spec().spec_id
            append.append_data_file(file)
    check_routes([location(table), f"key = '{uuid.UUID(int=1 << 126)}'"])


def test_another_commit_is_merged_with_the_cache(
    catalog: SqlCatalog, tmp_path: Path, check_routes: Callable[..., None]
) -> None:
    """The first process fills the cache by parts, the second one, which has pandas, finds all in it."""
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "at", TimestamptzType()), NestedField(3, "name", StringType())
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "day"),
        PartitionField(1, 1001, BucketTransform(4), "bucket"),
        PartitionField(3, 1002, TruncateTransform(1), "initial"),
    )
    table = catalog.create_table("db.growing", schema, partition_spec=spec)
    arguments = []
    for commit in range(3):
        ids = np.arange(commit * 10, commit * 15 + 20)
        at = pa.array(1_756_684_800_000_000 + ids * 3_600_000_000, pa.timestamp("us", tz="UTC"))
        table.append(pa.table({"id": ids, "at": at, "name": pa.array([f"{i % 3}" for i in ids])}))
        arguments += [location(table), f"id > 12 and at > '2025-09-01T{commit + 1:02}:00:00+00:00' and name != '1'"]
    table.delete("id < 5")
    check_routes([*arguments, location(table), "name is not null"], cache=tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*"))


def test_a_table_without_a_snapshot(empty_table: IcebergTable, check_routes: Callable[..., None]) -> None:
    check_routes([location(empty_table), "id = 5"])
