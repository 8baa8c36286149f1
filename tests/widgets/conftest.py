from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

import icestats

HOSTILE = "<img src=x onerror=alert(1)>"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "at", TimestamptzType(), required=False),
    NestedField(3, "price", DoubleType(), required=False),
    NestedField(4, HOSTILE, StringType(), required=False),
)


@pytest.fixture
def empty_table(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> icestats.Table:
    """A table that nothing has been written to."""
    catalog.create_table("db.empty", SCHEMA)
    return icestats.load("db.empty", catalog=catalog_properties)


@pytest.fixture
def hostile_table(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> icestats.Table:
    """120 rows in two commits without statistics; a column and its values, which are partitions too, hold HTML."""
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"), PartitionField(4, 1001, IdentityTransform(), HOSTILE)
    )
    table = catalog.create_table("db.hostile", SCHEMA, partition_spec=spec)
    for commit in range(2):
        table.append(build_rows(commit))
    return icestats.load("db.hostile", catalog=catalog_properties)


@pytest.fixture
def hostile_location(catalog: SqlCatalog, hostile_table: icestats.Table) -> str:
    """The metadata.json of `hostile_table`."""
    return catalog.load_table("db.hostile").metadata_location


def build_rows(commit: int) -> pa.Table:
    ids = list(range(commit * 60, commit * 60 + 60))
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "at": pa.array([1_756_684_800_000_000 + i * 3_600_000_000 for i in ids], pa.timestamp("us", tz="UTC")),
        "price": pa.array([None if i % 6 == 0 else i / 4 for i in ids], pa.float64()),
        HOSTILE: pa.array([HOSTILE if i % 2 else "<b>bold</b>" for i in ids], pa.string()),
    }
    return pa.table(columns)
