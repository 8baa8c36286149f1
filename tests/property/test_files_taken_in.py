"""Bounds over files that PyIceberg's `add_files` has taken in hold what PyIceberg finds there."""

from __future__ import annotations

import datetime as dt
import random
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

import icestats
from tests.committed_statistics import open_catalog
from tests.computed_statistics import compute_here

SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "text", StringType()),
    NestedField(4, "x", IntegerType()),
)
PARTITIONS = [
    *(("n", one) for one in (IdentityTransform(), TruncateTransform(10), BucketTransform(4))),
    *(("at", one) for one in (DayTransform(), HourTransform(), MonthTransform())),
    *(("text", one) for one in (TruncateTransform(1), IdentityTransform())),
]
FIRST = dt.datetime(2026, 1, 1)
NUMBERS = count()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> SqlCatalog:
    found = open_catalog(tmp_path_factory.mktemp("taken_in"))
    found.create_namespace("db")
    return found


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique_by=lambda one: one[0]),
    st.sampled_from(["full", "counts", "none", "truncate(16)"]),
    st.integers(0, 2**32 - 1),
)
def test_bounds_hold_what_is_found_in_files_taken_in(
    catalog: SqlCatalog, tmp_path_factory: pytest.TempPathFactory, partitions: Any, mode: str, seed: int
) -> None:
    """Nulls beside a partition's value, files without statistics, and rows that the table's writer has appended."""
    chance = random.Random(seed)
    name = f"db.t{next(NUMBERS)}"
    table = catalog.create_table(name, SCHEMA, properties={"write.metadata.metrics.default": mode})
    with table.update_spec() as update:
        for place, (column, transform) in enumerate(partitions):
            update.add_field(column, transform, f"part_{place}")
    for _ in range(chance.randint(1, 4)):
        take_in(catalog.load_table(name), tmp_path_factory.mktemp("files") / "rows.parquet", chance)
    if chance.random() < 0.3:
        catalog.load_table(name).append(pa.table([[5, None], [FIRST, None], ["a", None], [1, None]], SCHEMA.as_arrow()))
    known = icestats.load(name, catalog={"name": "c", "type": "sql", **catalog.properties})
    if known.snapshot is not None and chance.random() < 0.6:
        compute_here(known, by_partition=True).commit()
        known = known.refresh()
    for _ in range(8):
        row_filter = draw(chance)
        found = known.estimate(row_filter, actual=True)
        counts = [found.actual]
        # PyIceberg compares null partition values with literals.
        with suppress(TypeError):
            counts.append(catalog.load_table(name).scan(row_filter=row_filter).to_arrow().num_rows)
        for one in found:
            if one.source != "actual" and one.rows_lower is not None and one.rows_upper is not None:
                assert one.rows_lower <= min(counts) <= max(counts) <= one.rows_upper, (row_filter, one, counts)


def take_in(table: Table, path: Path, chance: random.Random) -> None:
    """Take in a file whose rows have one value, or several of one partition; PyIceberg refuses those of several."""
    tens, day, is_one, null_share = (
        10 * chance.randint(0, 2),
        chance.randint(0, 2),
        chance.random() < 0.5,
        chance.random(),
    )
    rows = [
        {
            "n": tens + (1 if is_one else chance.randint(0, 9)),
            "at": FIRST + dt.timedelta(days=day, hours=12 if is_one else chance.randint(0, 23)),
            "text": "abc"[day] + ("" if is_one else chance.choice("xyz")),
            "x": tens + (0 if is_one else chance.randint(0, 1)),
        }
        for _ in range(chance.randint(1, 6))
    ]
    has_nulls = chance.random() < 0.5
    drawn = [
        {name: None if has_nulls and chance.random() < null_share else value for name, value in row.items()}
        for row in rows
    ]
    plain = pa.schema([field.remove_metadata() for field in SCHEMA.as_arrow()])
    pq.write_table(pa.Table.from_pylist(drawn, plain), path, write_statistics=chance.random() < 0.75)
    with suppress(ValueError):
        table.add_files([str(path)])


def draw(chance: random.Random) -> str:
    found = draw_leaf(chance)
    for _ in range(chance.choice([0, 0, 1, 2])):
        found = f"({found}) {chance.choice(['and', 'or'])} ({draw_leaf(chance)})"
    return f"not ({found})" if chance.random() < 0.1 else found


def draw_leaf(chance: random.Random) -> str:
    column = chance.choice(SCHEMA.column_names)
    time = FIRST + dt.timedelta(days=chance.randint(0, 3), hours=chance.choice([0, 0, 12, 23]))
    literals = {"at": f"'{time.isoformat()}'", "text": f"'{chance.choice('abc')}{chance.choice(['', 'x', 'y'])}'"}
    literal = literals.get(column, str(chance.randint(0, 29)))
    compared = f"{column} {chance.choice(['=', '!=', '<', '<=', '>', '>='])} {literal}"
    return chance.choice([f"{column} is null", f"{column} is not null", compared, compared])
