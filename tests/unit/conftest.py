"""What unit tests share: two tables, how they are loaded, and the cache that is used or is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

import icestats
from icestats.iceberg.storage import local_path

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "at", TimestamptzType(), required=False),
    NestedField(3, "price", DoubleType(), required=False),
    NestedField(4, "name", StringType(), required=False),
)


@pytest.fixture
def empty_table(catalog: SqlCatalog):
    """A table that nothing has been written to."""
    return catalog.create_table("db.empty", SCHEMA)


@pytest.fixture
def small_table(catalog: SqlCatalog):
    """Two commits of 100 rows, partitioned by day and bucket, with nulls and NaN."""
    return write_small_table(catalog)


@pytest.fixture(scope="session")
def read_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergTable]:
    """A `small_table` for all tests that only read; its catalog's properties are those of `table.catalog`."""
    folder = tmp_path_factory.mktemp("read")
    properties = {"uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}
    with SqlCatalog("catalog", type="sql", **properties) as catalog:
        catalog.create_namespace("db")
        table = write_small_table(catalog)
        before = list_files(folder)
        yield table
    assert list_files(folder) == before, "a test has changed the table that others read"


def list_files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def write_small_table(catalog: SqlCatalog) -> IcebergTable:
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"), PartitionField(1, 1001, BucketTransform(4), "id_bucket")
    )
    table = catalog.create_table("db.small", SCHEMA, partition_spec=spec)
    for commit in range(2):
        table.append(small_rows(commit))
    return table


def small_rows(commit: int) -> pa.Table:
    ids = np.arange(commit * 100, commit * 100 + 100)
    prices = np.where(ids % 10 == 0, np.nan, ids / 4.0)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array(1_756_684_800_000_000 + ids * 3_600_000_000, pa.timestamp("us", tz="UTC")),
            "price": pa.array(prices, pa.float64(), mask=ids % 7 == 0),
            "name": pa.array([None if i % 5 == 0 else f"n{i % 20}" for i in ids], pa.string()),
        }
    )


@pytest.fixture
def document(read_table: IcebergTable) -> dict[str, Any]:
    """The metadata of `read_table`, to be changed."""
    return json.loads(local_path(read_table.metadata_location).read_bytes())


@pytest.fixture
def changed(document: dict[str, Any], tmp_path: Path) -> Callable[[], str]:
    """Write the document as it is now; return its location."""

    def write() -> str:
        path = tmp_path / "changed.metadata.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write


@pytest.fixture
def load(catalog_properties: dict[str, str]) -> Callable[..., icestats.Table]:
    """Load `small_table`, or another of the catalog, as it is now."""
    return lambda name="db.small": icestats.load(name, catalog=catalog_properties)


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICESTATS_CACHE", "off")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder of roll-ups, empty."""
    monkeypatch.setenv("ICESTATS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rollups"
