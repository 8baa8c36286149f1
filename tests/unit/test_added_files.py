"""Files that PyIceberg's `add_files` has taken into the partition of some of their values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, Transform, TruncateTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

import icestats
from tests.committed_statistics import open_catalog

SCHEMA = Schema(
    NestedField(1, "n", LongType()), NestedField(2, "at", TimestampType()), NestedField(3, "text", StringType())
)
NOON = dt.datetime(2026, 1, 1, 12)
ROWS = pa.table(
    {
        "n": pa.array([1, None, 3, 4, 5], pa.int64()),
        "at": pa.array([NOON, None, NOON, NOON, NOON], pa.timestamp("us")),
        "text": ["aa", None, "ac", "ad", "ae"],
    }
)
FULL = ROWS.slice(2)


def add(folder: Path, column: str, transform: Transform[Any, Any], rows: pa.Table, **options: Any) -> icestats.Table:
    catalog = open_catalog(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    with table.update_spec() as update:
        update.add_field(column, transform, "part")
    pq.write_table(rows, folder / "rows.parquet", **options)
    table = catalog.load_table("db.t")
    table.add_files([str(folder / "rows.parquet")])
    return icestats.load("db.t", catalog={"name": "c", "type": "sql", **catalog.properties})


@pytest.mark.parametrize(
    ("column", "transform", "row_filter", "count"),
    [
        ("at", DayTransform(), "at is not null", 4),
        ("at", DayTransform(), "at >= '2026-01-01T00:00:00'", 4),
        ("at", DayTransform(), "at is null", 0),
        ("at", DayTransform(), "at is null or n = 4", 2),
        ("n", TruncateTransform(10), "n is not null", 4),
        ("n", TruncateTransform(10), "n < 10", 4),
        ("text", TruncateTransform(1), "text like 'a%'", 4),
    ],
)
def test_nulls_beside_the_values_of_a_partition_are_known(
    tmp_path: Path, column: str, transform: Transform[Any, Any], row_filter: str, count: int
) -> None:
    """Readers skip the file by `is null` alone, and find its null where they read it for something else."""
    table = add(tmp_path, column, transform, ROWS)
    found = table.estimate(row_filter, actual=True, sources=["data-files", "manifests", "partitions", "combined"])
    assert found.actual == count
    assert all(one.rows_lower <= count <= one.rows_upper for one in found)


@pytest.mark.parametrize(
    ("column", "transform", "row_filter", "count"),
    [
        ("n", BucketTransform(4), "n >= 4", 2),
        ("n", BucketTransform(4), "n != 3", 2),
        ("n", TruncateTransform(10), "n != 3", 2),
        ("n", TruncateTransform(10), "n is null", 0),
        ("at", DayTransform(), "at != '2026-01-01T00:00:00'", 3),
    ],
)
def test_a_null_partition_value_of_a_file_without_bounds_says_nothing(
    tmp_path: Path, column: str, transform: Transform[Any, Any], row_filter: str, count: int
) -> None:
    table = add(tmp_path, column, transform, FULL, write_statistics=False)
    found = table.estimate(row_filter, actual=True)
    assert found.actual == count
    assert all(one.rows_lower <= count <= one.rows_upper for one in found if one.rows_lower is not None)


def test_rows_of_an_identity_partition_have_its_value_for_readers(tmp_path: Path) -> None:
    rows = ROWS.set_column(0, "n", pa.array([3, None, 3, 3, 3], pa.int64()))
    found = add(tmp_path, "n", IdentityTransform(), rows).estimate("n = 3", actual=True)
    assert found.actual == 5
    assert {(one.rows_lower, one.rows_upper) for one in found if one.source == "combined"} == {(5.0, 5.0)}
