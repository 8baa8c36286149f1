"""Files that PyIceberg's `add_files` has taken into the partition of some of their values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, Transform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

import icestats
from tests.committed_statistics import open_catalog
from tests.computed_statistics import compute_here

SCHEMA = Schema(
    NestedField(1, "n", LongType()), NestedField(2, "at", TimestampType()), NestedField(3, "text", StringType())
)
NOON = dt.datetime(2026, 1, 1, 12)
ROWS = pa.table(
    {
        "n": pa.array([1, None, 3, 4, 5], pa.int64()),
        "at": pa.array([NOON, None, NOON, NOON, NOON], pa.timestamp("us")),
        "text": ["aa", None, "ac", "ad", "ae"],
    }
)
FULL = ROWS.slice(2)
_PARTITION = 3
"""Where a data file of PyIceberg's has its partition."""


def add(
    folder: Path, column: str, transform: Transform[Any, Any], rows: pa.Table, mode: str = "full", **options: Any
) -> icestats.Table:
    catalog = open_catalog(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.metrics.default": mode})
    with table.update_spec() as update:
        update.add_field(column, transform, "part")
    return take_in(folder, rows, "rows.parquet", **options)


def take_in(folder: Path, rows: pa.Table, name: str, **options: Any) -> icestats.Table:
    """Take in one more file."""
    pq.write_table(rows, folder / name, **options)
    catalog = open_catalog(folder)
    catalog.load_table("db.t").add_files([str(folder / name)])
    return icestats.load("db.t", catalog={"name": "c", "type": "sql", **catalog.properties})


@pytest.mark.parametrize(
    ("column", "transform", "row_filter", "count"),
    [
        ("at", DayTransform(), "at is not null", 4),
        ("at", DayTransform(), "at >= '2026-01-01T00:00:00'", 4),
        ("at", DayTransform(), "at is null", 0),
        ("at", DayTransform(), "at is null or n = 4", 2),
        ("n", TruncateTransform(10), "n is not null", 4),
        ("n", TruncateTransform(10), "n < 10", 4),
        ("text", TruncateTransform(1), "text like 'a%'", 4),
    ],
)
def test_nulls_beside_the_values_of_a_partition_are_known(
    tmp_path: Path, column: str, transform: Transform[Any, Any], row_filter: str, count: int
) -> None:
    """Readers skip the file by `is null` alone, and find its null where they read it for something else."""
    table = add(tmp_path, column, transform, ROWS)
    check(table, row_filter, [count])


def check(table: icestats.Table, row_filter: str, counts: list[int]) -> None:
    """Check that bounds hold what all engines find, of which PyIceberg is the first."""
    found = table.estimate(row_filter, actual=True)
    assert found.actual == counts[0]
    known = [one for one in found if one.source != "actual" and None not in (one.rows_lower, one.rows_upper)]
    assert {"data-files", "manifests", "manifests-each", "partitions", "table", "combined"} <= {
        one.source for one in known
    }
    for count in counts:
        assert [one.source for one in known if not one.rows_lower <= count <= one.rows_upper] == []


@pytest.mark.parametrize(
    ("column", "transform", "row_filter", "count"),
    [
        ("n", BucketTransform(4), "n >= 4", 2),
        ("n", BucketTransform(4), "n != 3", 2),
        ("n", TruncateTransform(10), "n != 3", 2),
        ("n", TruncateTransform(10), "n is null", 0),
        ("at", DayTransform(), "at != '2026-01-01T00:00:00'", 3),
    ],
)
def test_a_null_partition_value_of_a_file_without_bounds_says_nothing(
    tmp_path: Path, column: str, transform: Transform[Any, Any], row_filter: str, count: int
) -> None:
    table = add(tmp_path, column, transform, FULL, write_statistics=False)
    check(table, row_filter, [count])


@pytest.mark.parametrize("row_filter", ["at is not null", "at >= '2026-01-01T00:00:00'"])
def test_files_whose_nulls_are_counted_may_have_a_null_partition(tmp_path: Path, row_filter: str) -> None:
    check(add(tmp_path, "at", DayTransform(), FULL, mode="counts"), row_filter, [0, 3])


@pytest.mark.parametrize(
    ("row_filter", "counts"),
    [
        ("n = 3", [5, 4]),
        ("n != 4", [4, 5]),
        ("n >= 3", [5, 4]),
        ("n is null", [0]),
        ("n is null or text = 'ac'", [2, 1]),
    ],
)
def test_nulls_beside_the_value_of_an_identity_partition_are_its_value_to_some_engines(
    tmp_path: Path, row_filter: str, counts: list[int]
) -> None:
    """Spark gives all rows the partition's value, PyIceberg where it need not filter them."""
    rows = ROWS.set_column(0, "n", pa.array([3, None, 3, 3, 3], pa.int64()))
    check(add(tmp_path, "n", IdentityTransform(), rows), row_filter, counts)


@pytest.mark.parametrize(
    ("row_filter", "counts"), [("n != 3", [2, 0]), ("n is null", [3, 0]), ("n is not null or text = 'ac'", [3, 1])]
)
def test_a_null_identity_partition_of_a_file_without_bounds_is_read_in_two_ways(
    tmp_path: Path, row_filter: str, counts: list[int]
) -> None:
    """Spark gives all rows null; PyIceberg reads their values where it reads the file."""
    check(add(tmp_path, "n", IdentityTransform(), FULL, write_statistics=False), row_filter, counts)


def test_partitions_settle_what_no_null_can_be_beside(tmp_path: Path) -> None:
    """Also where several files are in a manifest: what is known to have no nulls is certain, as in other tables."""
    add(tmp_path, "at", DayTransform(), FULL)
    later = FULL.set_column(1, "at", pa.array([NOON + dt.timedelta(days=1)] * 3, pa.timestamp("us")))
    table = take_in(tmp_path, later, "later.parquet")
    for row_filter in ("at >= '2026-01-02T00:00:00'", "at is null", "at is not null"):
        found = table.estimate(row_filter, actual=True, sources=["data-files", "partitions", "combined"])
        assert {(one.rows_lower, one.rows_upper) for one in found} == {(found.actual, found.actual)}


def test_nulls_that_no_statistics_count_beside_other_days(tmp_path: Path) -> None:
    """Of files in one manifest, readers take all rows of some for matching, and nulls of others for none."""
    add(tmp_path, "at", DayTransform(), ROWS)
    later = ROWS.set_column(1, "at", pa.array([NOON + dt.timedelta(days=1), *[None] * 4], pa.timestamp("us")))
    table = take_in(tmp_path, later, "later.parquet")
    check(table, "at >= '2026-01-02T00:00:00'", [1, 5])
    check(table, "at < '2026-01-02T00:00:00'", [4, 5])


def test_sketches_by_partition_beside_partitions_that_nulls_may_be_in(tmp_path: Path) -> None:
    """One day is within the filter, nulls beside it: its sketches are asked as those of days that the filter cuts."""
    table = add(tmp_path, "at", DayTransform(), ROWS)
    for days in (1, 2):
        later = ROWS.set_column(1, "at", pa.array([NOON + dt.timedelta(days=days), *[None] * 4], pa.timestamp("us")))
        table = take_in(tmp_path, later, f"{days}.parquet")
    table = sketch(table)
    for row_filter in ("at > '2026-01-01T06:00:00' and at < '2026-01-03T18:00:00'", "at < '2026-01-03T18:00:00'"):
        check(table, row_filter, [6])
        assert table.estimate(row_filter)["kll-by-partition"].rows is not None


def take_in_folders(folder: Path, folders: list[tuple[Any, list[Any] | int]], column: str = "n") -> icestats.Table:
    """Take in files from Hive-style folders, as Spark does: each with the folder's value, and those of the file.

    A file without the column has so many rows.
    """
    catalog = open_catalog(folder)
    catalog.create_namespace("db")
    mapping = '[{"field-id": 1, "names": ["n"]}, {"field-id": 3, "names": ["text"]}]'
    table = catalog.create_table("db.t", SCHEMA, properties={"schema.name-mapping.default": mapping})
    files = []
    for place, (value, own) in enumerate(folders):
        path, kind = str(folder / f"{place}.parquet"), pa.int64() if column == "n" else pa.string()
        found = {} if isinstance(own, int) else {column: pa.array(own, kind)}
        pq.write_table(pa.table({"text": ["aa"] * (own if isinstance(own, int) else len(own))} | found), path)
        files.append(parquet_file_to_data_file(table.io, table.metadata, path))
        files[-1]._data[_PARTITION] = Record(value)
    with table.update_spec() as update:
        update.add_identity(column)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as change:
        for file in files:
            file.spec_id = table.spec().spec_id
            change.append_data_file(file)
    return icestats.load("db.t", catalog={"name": "c", "type": "sql", **catalog.properties})


@pytest.mark.parametrize("is_sketched", [False, True])
@pytest.mark.parametrize(
    ("row_filter", "counts"),
    [
        ("n = 1", [0, 3]),
        ("n = 1 and text = 'aa'", [0, 3]),
        ("n != 1", [2, 2]),
        ("n > 1", [2, 2]),
        ("n = 5", [0]),
        ("n = 5 or text = 'aa'", [5]),
        ("n is null", [0]),
        ("n is not null", [5]),
    ],
)
def test_folders_that_say_other_values_than_their_files_are_read_in_two_ways(
    tmp_path: Path, row_filter: str, counts: list[int], *, is_sketched: bool
) -> None:
    """Spark gives all rows the folder's value, PyIceberg the file's own; both skip files by both."""
    table = take_in_folders(tmp_path, [(1, [5, 5, 5]), (2, [6, 6])])
    check(sketch(table) if is_sketched else table, row_filter, counts)


def sketch(table: icestats.Table) -> icestats.Table:
    compute_here(table, by_partition=True).commit()
    return table.refresh()


@pytest.mark.parametrize("is_sketched", [False, True])
def test_folders_that_say_some_values_of_another_one(tmp_path: Path, *, is_sketched: bool) -> None:
    """Of both together the folders say what the files have."""
    table = take_in_folders(tmp_path, [(1, [1, 2, 2, 2]), (2, [2, 1, 1])])
    table = sketch(table) if is_sketched else table
    check(table, "n = 1", [4, 1])
    check(table, "n = 2", [3, 1])
    check(table, "n < 3", [7])


@pytest.mark.parametrize("is_sketched", [False, True])
@pytest.mark.parametrize(("own", "row_filter", "counts"), [([5, 5], "n = 1", [3, 5]), ([None] * 2, "n > 0", [3, 5])])
def test_folders_of_files_with_other_values_and_without_the_column(
    tmp_path: Path, own: list[Any], row_filter: str, counts: list[int], *, is_sketched: bool
) -> None:
    table = take_in_folders(tmp_path, [(1, 3), (1, own)])
    check(sketch(table) if is_sketched else table, row_filter, counts)


def test_folders_of_files_without_the_column_are_certain(tmp_path: Path) -> None:
    found = take_in_folders(tmp_path, [(1, 3), (1, 2), (2, 4)]).estimate("n = 1", actual=True)
    assert {one.rows_lower for one in found if one.source in ("data-files", "partitions", "combined", "actual")} == {5}


def test_folders_that_say_what_their_files_have_are_certain(tmp_path: Path) -> None:
    table = take_in_folders(tmp_path, [(day, [day] * 3) for day in ("2026-01-01", "2026-01-02")], "text")
    found = table.estimate("text = '2026-01-01'", actual=True)
    assert (found.actual, found["combined"].rows_lower, found["combined"].rows_upper) == (3, 3, 3)


def test_folders_of_long_text_are_not_held_against_bounds_that_are_cut(tmp_path: Path) -> None:
    one = "2026-01-01T00:00:00Z"
    check(take_in_folders(tmp_path, [(one, [one] * 3), ("z", ["z"] * 2)], "text"), f"text = '{one}'", [3])
