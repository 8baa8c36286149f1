"""Rows of uuids are counted in the data: PyIceberg's planning trusts bounds in an order that not every writer has."""

from __future__ import annotations

import itertools
import struct
import uuid

import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType, UUIDType

import icestats
from icestats.answers.schemas import FIELD_SUMMARY
from icestats.iceberg.filters.value_sets import BOTTOM, TOP, Interval, ValueSet, above, below
from icestats.snapshot.evaluation.column_metrics import summary_metrics
from icestats.snapshot.evaluation.evaluator import meets_any

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


def test_a_summary_by_signed_halves_skips_no_uuid_that_is_within_a_filter():
    """As Java before the mend of its order writes them: -1 is below 0, and the least of a manifest."""
    halves = [half.to_bytes(8, "big") for half in (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)]
    values = sorted((first + last for first, last in itertools.product(halves, halves)))
    signed = sorted(values, key=lambda value: struct.unpack(">qq", value))
    bounds = [(a, b) for place, a in enumerate(signed) for b in signed[place:]]
    summaries = [
        {"contains_null": False, "contains_nan": False, "lower_bound": low, "upper_bound": high} for low, high in bounds
    ]
    metrics = summary_metrics(pa.array(summaries, FIELD_SUMMARY), "uuid")
    ends = [
        *((BOTTOM, above(value)) for value in values),
        *((below(value), TOP) for value in values),
        *((below(a), above(b)) for a, b in itertools.combinations_with_replacement(values, 2)),
    ]
    for low, high in ends:
        met = meets_any(ValueSet((Interval(low, high),)), metrics)
        wanted = [value for value in signed if low <= below(value) and above(value) <= high]
        for (first, last), kept in zip(bounds, met.tolist(), strict=True):
            held = signed[signed.index(first) : signed.index(last) + 1]
            assert kept or not set(held) & set(wanted), (low, high, first, last)
    point = ValueSet((Interval(below(values[0]), above(values[0])),))
    assert not meets_any(point, metrics).all()
