from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

import icestats
from icestats.scan.actual_rows import count_rows, count_rows_of_many
from icestats.snapshot.filter_sql import build_sql

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "at", TimestamptzType()),
    NestedField(3, "price", DoubleType()),
    NestedField(4, "name", StringType()),
    NestedField(5, "on_day", DateType()),
    NestedField(6, "amount", DecimalType(9, 2)),
    NestedField(7, "flag", BooleanType()),
)
SPECS = {
    "plain": PartitionSpec(),
    "day_and_bucket": PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"), PartitionField(1, 1001, BucketTransform(3), "id_bucket")
    ),
    "truncated": PartitionSpec(
        PartitionField(4, 1000, TruncateTransform(1), "name_trunc"),
        PartitionField(6, 1001, TruncateTransform(1000), "amount_trunc"),
    ),
    "identity": PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "on_day")),
}
CERTAIN = ("data-files", "manifests", "manifests-each", "partitions", "table", "ndv", "combined")
START = dt.datetime(1969, 12, 30, tzinfo=dt.UTC)


def rows(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    n = 120

    def gaps(share: float = 0.1) -> Any:
        return random.random(n) < share

    ids = random.integers(0, 12, n)
    prices = np.where(gaps(), np.nan, random.integers(-4, 8, n) / 2)
    times = [START + dt.timedelta(hours=int(hour)) for hour in random.integers(0, 24 * 5, n)]
    amounts = [Decimal(int(i) * 725 - 1900).scaleb(-2) for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64(), mask=gaps()),
            "at": pa.array(times, pa.timestamp("us", tz="UTC"), mask=gaps()),
            "price": pa.array(prices, pa.float64(), mask=gaps()),
            "name": pa.array([("a", "ab", "b", "é", "")[i % 5] * (1 + i % 2) for i in ids], pa.string(), mask=gaps()),
            "on_day": pa.array([dt.date(2026, 1, 1) + dt.timedelta(days=int(i) % 3) for i in ids], mask=gaps()),
            "amount": pa.array(amounts, pa.decimal128(9, 2), mask=gaps()),
            "flag": pa.array(ids % 3 == 0, mask=gaps()),
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, icestats.Table]]:
    folder = tmp_path_factory.mktemp("estimates")
    properties = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    for number, (name, spec) in enumerate(SPECS.items()):
        made = catalog.create_table(f"db.{name}", SCHEMA, partition_spec=spec)
        for commit in range(3):
            made.append(rows(10 * number + commit))
    yield {name: icestats.load(f"db.{name}", catalog=properties) for name in SPECS}
    catalog.close()


VALUES = {
    "id": st.integers(-1, 13).map(str),
    "at": st.integers(-20, 140).map(lambda h: f"'{(START + dt.timedelta(hours=h)).isoformat()}'"),
    "price": st.integers(-9, 16).map(lambda i: str(i / 4)),
    "name": st.sampled_from(["'a'", "'aa'", "'ab'", "'b'", "'é'", "''", "'zz'"]),
    "on_day": st.integers(0, 4).map(lambda d: f"'{dt.date(2025, 12, 31) + dt.timedelta(days=d)}'"),
    "amount": st.integers(-3, 10).map(lambda i: f"{i * 7.25 - 19:.2f}"),
    "flag": st.sampled_from(["true", "false"]),
}


@st.composite
def predicates(draw: Any) -> str:
    column = draw(st.sampled_from(sorted(VALUES)))
    value = VALUES[column]
    kinds = ["=", "!=", "in", "not in", "is null", "is not null"]
    kinds += [] if column == "flag" else ["<", "<=", ">", ">="]
    kinds += ["is nan", "is not nan"] if column == "price" else ["like", "not like"] if column == "name" else []
    kind = draw(st.sampled_from(kinds))
    if kind in ("in", "not in"):
        return f"{column} {kind} ({', '.join(draw(st.lists(value, min_size=2, max_size=3)))})"
    if kind in ("like", "not like"):
        return f"{column} {kind} '{draw(st.sampled_from(['a', 'ab', 'é', 'z']))}%'"
    return f"{column} {kind}" if kind.startswith("is ") else f"{column} {kind} {draw(value)}"


filters = st.recursive(
    predicates(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]} and {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} or {p[1]})"),
        inner.map(lambda p: f"not ({p})"),
    ),
    max_leaves=4,
)


@settings(max_examples=50)
@given(st.sampled_from(sorted(SPECS)), filters)
def test_the_truth_lies_within_every_certain_bound(
    tables: dict[str, icestats.Table], spec: str, row_filter: str
) -> None:
    """Whatever the filter and the partitioning, bounds that are called certain hold, and estimates lie within them."""
    table = tables[spec]
    estimates = table.estimate(row_filter)
    actual = count_rows(table._source, table.snapshot, table.schema, table.bind(row_filter))
    for source in CERTAIN:
        found = estimates[source]
        assert found.rows_lower is not None
        assert found.rows_upper is not None
        assert found.rows_lower <= actual <= found.rows_upper, (source, found)
        if found.rows is not None:
            assert found.rows_lower - 1e-6 <= found.rows <= found.rows_upper + 1e-6, (source, found)
        else:
            assert found.reason


@settings(max_examples=8)
@given(st.sampled_from(sorted(SPECS)), st.lists(filters, min_size=1, max_size=5))
def test_counting_many_filters_at_once_is_counting_each(
    tables: dict[str, icestats.Table], spec: str, row_filters: list[str]
) -> None:
    """One pass for all filters gives what a scan with each gives."""
    table = tables[spec]
    bound = [table.bind(one) for one in row_filters]
    each = [count_rows(table._source, table.snapshot, table.schema, one) for one in bound]
    assert count_rows_of_many(table._source, table.snapshot, table.schema, bound) == each


@settings(max_examples=40)
@given(filters)
def test_the_sql_of_a_filter_selects_the_same_rows(tables: dict[str, icestats.Table], row_filter: str) -> None:
    """What engines are asked about is the filter: its exact SQL counts the rows that a scan with it returns."""
    table = tables["plain"]
    question = table._ask(row_filter)
    rows_ = pa.concat_tables([rows(commit) for commit in range(3)])
    with duckdb.connect() as connection:
        connection.register("t", rows_)
        connection.execute("set timezone = 'UTC'")
        condition = build_sql(question.predicate, table.schema, "duckdb", exact=True)
        (counted,) = connection.execute(f"select count(*) from t where {condition}").fetchone() or (None,)
    assert counted == count_rows(table._source, table.snapshot, table.schema, table.bind(row_filter))
