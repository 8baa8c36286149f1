"""What the pages' examples run on: the demo warehouse, and a catalog that a reader might have configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import MonthTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

SCHEMA = Schema(
    NestedField(1, "order_id", LongType(), required=False),
    NestedField(2, "ordered_at", TimestamptzType(), required=False),
    NestedField(3, "customer_id", LongType(), required=False),
    NestedField(4, "status", StringType(), required=False),
    NestedField(5, "price", DoubleType(), required=False),
)
ROWS = 8_000


def orders(month: int) -> pa.Table:
    """A month of orders, the same at each call."""
    random = np.random.default_rng(month)
    seconds = np.sort(random.integers(0, 28 * 86_400, ROWS)) * 1_000_000
    start = int(np.datetime64(f"2026-{month:02}-01T00:00:00", "us").astype(np.int64))
    columns = {
        "order_id": np.arange(month * ROWS, (month + 1) * ROWS),
        "ordered_at": pa.array(start + seconds, pa.timestamp("us", "UTC")),
        "customer_id": random.integers(1, 2_000, ROWS),
        "status": random.choice(["new", "paid", "sent", "returned"], ROWS, p=[0.1, 0.5, 0.35, 0.05]),
        "price": pa.array(np.round(random.lognormal(3, 1, ROWS), 2), mask=random.random(ROWS) < 0.02),
    }
    return pa.table(columns, schema=SCHEMA.as_arrow())


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The catalog `lake` with the table `shop.orders`, three months in three commits; its folder."""
    folder = tmp_path_factory.mktemp("lake")
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": f"file://{folder / 'warehouse'}",
    }
    catalog = SqlCatalog("lake", **properties)
    catalog.create_namespace("shop")
    spec = PartitionSpec(PartitionField(2, 1000, MonthTransform(), "ordered_at_month"))
    table = catalog.create_table("shop.orders", SCHEMA, partition_spec=spec)
    for month in (1, 2, 3):
        table.append(orders(month))
    catalog.close()
    names = {f"PYICEBERG_CATALOG__LAKE__{name.upper()}": value for name, value in properties.items()}
    os.environ.update(names)
    yield folder
    for name in names:
        del os.environ[name]
