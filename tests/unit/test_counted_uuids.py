"""Rows of uuids are counted in the data: PyIceberg's planning trusts bounds in an order that not every writer has."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType, UUIDType

import icestats

LEAST, MIDDLE, MOST = (uuid.UUID(int=number) for number in (0, 1 << 64, (1 << 128) - 1))
INNER = StructType(NestedField(3, "u", UUIDType(), required=False))
SCHEMA = Schema(NestedField(1, "u", UUIDType(), required=False), NestedField(2, "st", INNER, required=False))


@pytest.fixture
def table(catalog, catalog_properties):
    values = [LEAST.bytes, MIDDLE.bytes, MOST.bytes, None]
    made = catalog.create_table("db.t", SCHEMA)
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))
    made.append(pa.table({"u": ids, "st": pa.StructArray.from_arrays([ids], ["u"])}))
    return icestats.load("db.t", catalog=catalog_properties)


@pytest.mark.parametrize("column", ["u", "st.u"])
def test_comparisons_with_uuids_are_counted(table, column):
    filters = [
        (e.EqualTo(column, MOST), 1),
        (e.EqualTo(column, LEAST), 1),
        (e.GreaterThan(column, MIDDLE), 1),
        (e.LessThanOrEqual(column, MIDDLE), 2),
        (e.In(column, [LEAST, MOST]), 2),
        (e.NotEqualTo(column, MOST), 2),
        (e.IsNull(column), 1),
        (e.Or(e.EqualTo(column, MIDDLE), e.IsNull(column)), 2),
    ]
    for row_filter, count in filters:
        assert table.estimate(row_filter, actual=True).actual == count, row_filter
        assert table.plan(row_filter, rows=True).steps[-1].kept == count, row_filter
    answers = table.estimate_workload([row_filter for row_filter, _ in filters]).answers
    assert [answer.actual for answer in answers] == [count for _, count in filters]


def test_a_join_by_uuids_is_counted(table):
    assert table.estimate_join(table, "u", row_filter=e.GreaterThan("u", LEAST), actual=True).actual == 2


def test_bounds_of_uuids_are_said_to_be_no_proof(table):
    """A writer of the other order gives the middle one for the least of these."""
    provenance = dict(table.columns().to_pylist()[0]["provenance"])
    assert [provenance[f"{side}_bound"].partition(":")[0] for side in ("lower", "upper")] == ["estimate"] * 2
