"""Columns that an answer cannot be about: one line says so, and what is possible; other columns are answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import BinaryType, LongType, NestedField, StructType

import icestats
from icestats.scan.scan_plan import prepare_scan

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "raw", BinaryType(), required=False),
    NestedField(3, "place", StructType(NestedField(4, "x", LongType(), required=False)), required=False),
)
ROWS = pa.table(
    {"id": pa.array([1, 2, None], pa.int64()), "raw": [b"", b"x", None], "place": [{"x": 1}, {"x": 2}, None]}
)


@pytest.fixture
def location(catalog: SqlCatalog) -> str:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(ROWS)
    return table.metadata_location


@pytest.fixture
def variant(location: str) -> icestats.Table:
    """The same with a variant column, which PyIceberg refuses to open, by its location."""
    path = Path(location.removeprefix("file://"))
    document = json.loads(path.read_text())
    document["schemas"][0]["fields"].append({"id": 5, "name": "any", "required": False, "type": "variant"})
    changed = path.with_name("variant.metadata.json")
    changed.write_text(json.dumps(document))
    return icestats.load(str(changed))


@pytest.mark.parametrize("column", ["raw", "place", "place.x"])
def test_a_column_without_an_order_has_no_histogram_and_no_advice_to_compute_one(location: str, column: str) -> None:
    table = icestats.load(location)
    for where in (None, "id = 1"):
        with pytest.raises(
            icestats.CallError, match=f"column '{column}' has no histogram: .*; expected a top-"
        ) as caught:
            table.histogram(column, where=where)
        assert "compute" not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", ["place", "place.x"])
def test_a_nested_column_has_no_sketches_by_partition_and_no_advice_to_compute_them(location: str, column: str) -> None:
    with pytest.raises(icestats.CallError, match=f"column '{column}': .*nested") as caught:
        icestats.load(location).merge_partition_sketches(column, "id = 1")
    assert "compute" not in str(caught.value)


def test_a_join_of_a_table_with_a_variant_column_is_counted_by_nobody_and_says_so(variant: icestats.Table) -> None:
    with pytest.raises(icestats.UnsupportedError, match="its column any is of type variant, which") as caught:
        variant.estimate_join(variant, "id", actual=True)
    assert "\n" not in str(caught.value)


def test_the_scan_of_a_table_with_a_variant_column_is_left_to_spark(variant: icestats.Table) -> None:
    plan = prepare_scan(variant._source, variant.snapshot, variant.schema)
    assert [field.name for field in plan.fields] == ["id", "raw"]
    assert plan.skipped["any"] == "type variant has no single-value form to hash or to compare"
    assert (plan.fallback or "").startswith("its column any is of type variant")
    assert (plan.file_count, len(plan.tasks)) == (1, 0)


def test_orphans_of_a_table_with_a_variant_column_are_found(variant: icestats.Table, location: str) -> None:
    orphan = Path(location.removeprefix("file://")).with_name("1-a.stats")
    orphan.write_bytes(b"PFA1")
    assert [Path(path).name for path in variant.orphans()["path"].to_pylist()] == [orphan.name]


def test_metadata_alone_answers_for_the_other_columns(variant: icestats.Table) -> None:
    assert variant.plan("id = 1").steps[-1].kept == 1
    assert variant.estimate("id = 1")["table"].rows_upper == 2
    reported = {row["column"]: row for row in variant.reported_statistics().to_arrow().to_pylist()}
    assert reported["id"]["null_count"] == 1
    assert "type variant has no single-value form" in reported["any"]["sources"]
    with pytest.raises(icestats.FilterError, match="is about 'any', of type variant, which cannot be filtered"):
        variant.plan("any is null")


@pytest.mark.parametrize(
    "changes",
    [{"source-ids": [1, 2]}, {"source-ids": [1, 2], "source-id": 1}, {"source-id": 1, "transform": "bucketV2[8]"}],
    ids=["several columns", "one of them first", "unknown transform"],
)
def test_a_partition_field_that_pyiceberg_does_not_know_rules_nothing_out(
    catalog: SqlCatalog, changes: dict[str, Any]
) -> None:
    """PyIceberg refuses such tables: no filter is projected to the field, whose values say nothing of one column."""
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "both"))
    table = catalog.create_table("db.several", SCHEMA, partition_spec=spec)
    for number in range(8):
        table.append(ROWS.slice(0, 1).set_column(0, ROWS.schema.field("id"), pa.array([number], pa.int64())))
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    (field,) = document["partition-specs"][0]["fields"]
    field.pop("source-id")
    field |= changes
    changed = path.with_name("several.metadata.json")
    changed.write_text(json.dumps({**document, "format-version": 3, "next-row-id": 8}))
    found = icestats.load(str(changed))
    for number in range(8):
        steps = found.plan(f"id = {number}").steps
        assert [step.kept for step in steps if step.unit == "file"] == [8, 1]
    assert len(found.partitions()) == 2
    assert "no partition field is made of id" in str(found.plan("id = 1"))
