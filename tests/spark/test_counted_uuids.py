"""Spark counts uuids as the text that it has for them, without Iceberg's planning: not every writer has its order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, UUIDType

import icestats
from icestats.iceberg.filters.value_sets import BOTTOM, TOP, Interval, Leaf, ValueSet, above, below
from icestats.snapshot.filter_sql import build_sql
from icestats.spark.optimizer import count_with_spark

pytestmark = pytest.mark.spark
LEAST, MIDDLE, MOST = bytes(16), bytes(8) + b"\1" + bytes(7), b"\xff" * 16


@pytest.mark.parametrize(
    ("interval", "count"),
    [
        (Interval(below(MOST), above(MOST)), 1),
        (Interval(below(LEAST), above(LEAST)), 1),
        (Interval(above(MIDDLE), TOP), 1),
        (Interval(BOTTOM, above(MIDDLE)), 2),
    ],
)
def test_uuids_are_counted(spark, catalog, catalog_properties, interval, count):
    made = catalog.create_table("db.t", Schema(NestedField(1, "u", UUIDType(), required=False)))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([LEAST, MIDDLE, MOST, None], pa.binary(16)))
    made.append(pa.table({"u": ids}))
    table = icestats.load("db.t", catalog=catalog_properties)
    leaf = Leaf(1, "u", "uuid", ValueSet((interval,)), "u")
    conditions = [build_sql(leaf, table.schema, "spark", exact=True)]
    assert count_with_spark(spark, table._source, table.snapshot, table.schema, conditions) == [count]
