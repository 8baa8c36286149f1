"""Sketches by partition as a stranger may have written them: of other rows than the partitions have."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import icestats
from icestats.iceberg.storage import local_path
from icestats.stats.table_statistics import ColumnStatistics
from icestats.table.statistics import Statistics
from tests.computed_statistics import compute_here, scan_table

SCHEMA = Schema(NestedField(1, "day", LongType(), required=False), NestedField(2, "key", LongType(), required=False))
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
SOURCES = ("kll-by-partition", "frequent-items-by-partition", "combined")
Change = Callable[[ColumnStatistics, ColumnStatistics], ColumnStatistics]


def write(
    catalog: SqlCatalog,
    properties: dict[str, str],
    name: str,
    row_count: int,
    *,
    first: int = 0,
    metrics: str = "counts",
) -> tuple[icestats.Table, Any]:
    rows = {"day": [1] * row_count + [2] * row_count, "key": [*range(first, first + row_count)] * 2}
    made = catalog.create_table(
        name, SCHEMA, partition_spec=BY_DAY, properties={"write.metadata.metrics.default": metrics}
    )
    made.append(pa.table(rows, pa.schema([("day", pa.int64()), ("key", pa.int64())])))
    table = icestats.load(name, catalog=properties)
    return table, scan_table(table, by_partition=True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda own, other: other, "are of 10 rows of a partition"),
        (lambda own, other: replace(own, value_count=51), "are of 51 rows of a partition"),
        (lambda own, other: replace(own, kll=other.kll), "a KLL sketch of 10 values, expected 50"),
        (lambda own, other: replace(own, null_value_count=30), "a KLL sketch of 50 values, expected 20"),
        (lambda own, other: replace(own, min_value=b"1"), "31 (1 bytes) is not a value of type long"),
    ],
    ids=["of another table", "of other rows", "of another sketch", "of other nulls", "of another type"],
)
def test_sketches_of_other_rows_than_a_partition_has_prove_nothing(
    catalog: SqlCatalog, catalog_properties: dict[str, str], change: Change, reason: str
) -> None:
    table, found = write(catalog, catalog_properties, "db.lie", 50)
    _, of_other = write(catalog, catalog_properties, "db.other", 10)
    others = list(of_other.by_partition.columns["key"].values())
    own = found.by_partition.columns["key"]
    changed = {key: change(column, other) for (key, column), other in zip(own.items(), others, strict=True)}
    lying = replace(found.by_partition, columns={**found.by_partition.columns, "key": changed})
    Statistics(table._source, replace(found, by_partition=lying)).commit()
    table = icestats.load("db.lie", catalog=catalog_properties)
    for row_filter in ("key < 30", "key = 7", "day = 1 and key < 30", "key is null"):
        estimates = table.estimate(row_filter, actual=True)
        assert reason in estimates["kll-by-partition"].reason
        assert any(reason in one.evidence for one in estimates.findings)
        for one in (estimates[source] for source in SOURCES):
            if one.rows_lower is not None:
                assert one.rows_lower <= estimates.actual <= one.rows_upper, (row_filter, one)


def test_sketches_of_values_that_no_data_file_has_prove_nothing(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    table, found = write(catalog, catalog_properties, "db.lie", 50, metrics="full")
    _, of_other = write(catalog, catalog_properties, "db.other", 50, first=1_000)
    lying = replace(found.by_partition, columns={**of_other.by_partition.columns})
    Statistics(table._source, replace(found, by_partition=lying)).commit()
    estimates = icestats.load("db.lie", catalog=catalog_properties).estimate("key = 7", actual=True)
    for one in (estimates[source] for source in SOURCES[:2]):
        assert one.rows is None
        assert "have values beyond the bounds of data files" in one.reason
    assert estimates["combined"].rows_lower <= estimates.actual <= estimates["combined"].rows_upper


def test_values_that_were_deleted_from_one_partition_since_are_no_lie(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    properties = {"write.metadata.metrics.default": "full"}
    made = catalog.create_table("db.shrunk", SCHEMA, partition_spec=BY_DAY, properties=properties)
    rows = {"day": [1] * 10 + [2] * 100, "key": [*range(10), *range(100)]}
    made.append(pa.table(rows, pa.schema([("day", pa.int64()), ("key", pa.int64())])))
    table = icestats.load("db.shrunk", catalog=catalog_properties)
    compute_here(table, by_partition=True).commit()
    catalog.load_table("db.shrunk").delete("key >= 50")
    estimates = icestats.load("db.shrunk", catalog=catalog_properties).estimate("key < 30", actual=True)
    assert not [one for one in estimates.findings if "beyond the bounds" in one.evidence]
    found = estimates["kll-by-partition"]
    assert found.rows is not None
    assert found.rows_lower <= estimates.actual <= found.rows_upper


def test_sketches_of_when_a_column_was_not_nested_are_left_out(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """`create or replace table` gives a struct the id of the column of its name; branches keep the statistics."""
    table, found = write(catalog, catalog_properties, "db.replaced", 50)
    Statistics(table._source, found).commit()
    path = local_path(catalog.load_table("db.replaced").metadata_location)
    document = json.loads(path.read_text())
    inside = {"id": 3, "name": "a", "type": "int", "required": False}
    document["schemas"][0]["fields"][1]["type"] = {"type": "struct", "fields": [inside]}
    path.with_name("replaced.metadata.json").write_text(json.dumps(document))
    table = icestats.load(str(path.with_name("replaced.metadata.json")))
    assert [dict(ndvs).keys() for ndvs in table.partitions()["ndvs"].to_pylist()] == [{1}, {1}]
    held = {(row["column"], row["statistic"]) for row in table.coverage().to_pylist() if row["source"]}
    assert ("day", "histogram") in held
    assert ("key", "histogram") not in held
