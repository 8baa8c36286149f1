"""A refresh after appends finds for each partition what a scan of all files finds, from the new files alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, NestedField, StringType

import icestats
from icestats.iceberg.storage import local_path
from icestats.scan.scan_job import Sizes
from icestats.stats.kll import KllSketch
from tests.computed_statistics import compute_here, scan_table

SCHEMA = Schema(
    NestedField(1, "day", IntegerType(), required=False),
    NestedField(2, "price", DoubleType(), required=False),
    NestedField(3, "text", StringType(), required=False),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
SIZES = Sizes(400, 12, 200, 4)
"""Theta of partitions keeps 16 hashes, so that it is no exact one; KLL keeps all values, so that ranks are exact."""
ARROW = pa.schema([("day", pa.int32()), ("price", pa.float64()), ("text", pa.string())])
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-1, 2),
        st.none() | st.sampled_from([float("nan"), -0.0, 0.0]) | st.integers(0, 60).map(float),
        st.none() | st.just("") | st.integers(0, 60).map(str),
    ),
    min_size=1,
    max_size=60,
)
NUMBERS = count()


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder: Path = tmp_path_factory.mktemp("refreshed")
    made = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    with SqlCatalog("catalog", **made) as catalog:
        catalog.create_namespace("db")
    return made


def to_arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=ARROW)


def find_paths(table: Any) -> set[str]:
    return {task.file.file_path for task in table.refresh().scan().plan_files()}


@settings(max_examples=25)
@given(ROWS, st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_a_refresh_after_appends_equals_a_scan_of_all_files(
    properties: dict[str, str], first: list[Any], appends: list[list[Any]], again: bool
) -> None:
    """Counts, extremes, lengths and Theta the same; KLL with the same count and ranks."""
    name = f"db.t{next(NUMBERS)}"
    with SqlCatalog("catalog", **properties) as catalog:
        table = catalog.create_table(name, SCHEMA, partition_spec=BY_DAY)
        table.append(to_arrow(first))
        opened = icestats.load(name, catalog=properties)
        compute_here(opened, by_partition=True, sizes=SIZES).commit()
        known = find_paths(table)
        if again:
            # Of a commit between two refreshes.
            table.append(to_arrow(appends[0]))
            assert icestats.load(name, catalog=properties).refresh_statistics().commit().committed
            known = find_paths(table)
        for rows in appends:
            table.append(to_arrow(rows))
        opened = icestats.load(name, catalog=properties)
        whole = scan_table(opened, by_partition=True, sizes=SIZES).by_partition
        added = find_paths(table) - known
        for path in known:
            local_path(path).unlink()
    refreshed = opened.refresh_statistics()
    assert refreshed.added_file_count == len(added)
    assert refreshed.added_row_count == sum(map(len, appends))
    found = refreshed.found.by_partition
    assert whole is not None
    assert found is not None
    assert found.sizes == whole.sizes
    for column, partitions in whole.columns.items():
        assert list(found.columns[column]) == list(partitions)
        for key, expected in partitions.items():
            own = found.columns[column][key]
            assert replace(own, kll=None) == replace(expected, kll=None), (column, key)
            ours, theirs = (KllSketch.from_bytes(one.item_type, one.kll) for one in (own, expected))
            assert (ours.n, ours.k, ours.min_value, ours.max_value) == (
                theirs.n,
                theirs.k,
                theirs.min_value,
                theirs.max_value,
            )
            if theirs.n:
                points = theirs.quantiles([0.1, 0.5, 0.9])
                assert list(ours.ranks(points)) == list(theirs.ranks(points))
    touched = {row[0] for rows in appends for row in rows}
    assert {added.touched_count for added in refreshed.added_partitions.values()} == {len(touched)}
    assert refreshed.commit().committed
    assert {tuple(dict(row["ndv_commits_behind"]).values()) for row in opened.refresh().partitions().to_pylist()} == {
        (0, 0, 0)
    }
