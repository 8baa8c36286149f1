"""Data files without rows or without a type, as `add_files` and `migrate` take them in, stand in the way of no scan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from tests.computed_statistics import scan_table

ROWS = pa.table({"id": pa.array([1, 2, None], pa.int64()), "word": ["a", None, "b"]})


@pytest.mark.parametrize(("row_counts", "rows"), [((0,), 0), ((3, 0), 3), ((0, 0, 3), 3)])
def test_files_without_rows_are_scanned_beside_others(
    catalog: SqlCatalog, catalog_properties: dict[str, str], tmp_path: Path, row_counts: tuple[int, ...], rows: int
) -> None:
    made = catalog.create_table("db.migrated", ROWS.schema)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(len(row_counts))]
    for path, count in zip(paths, row_counts, strict=True):
        pq.write_table(ROWS.slice(0, count), path)
    made.add_files(paths)
    table = icestats.load("db.migrated", catalog=catalog_properties)
    found = scan_table(table).find("id")
    assert (found.value_count, found.null_value_count) == (rows, int(rows > 0))
    assert table.files().num_rows == len(row_counts)
    assert table.estimate("id >= 1", actual=True).actual == max(rows - 1, 0)
    for one in table.columns().to_pylist():
        assert (one["value_count"], one["null_value_count"]) == (rows, int(rows > 0)), one["name"]
        lacking = {name for name, count in one["missing_files"] if count}
        assert not lacking & {"value_count", "null_value_count", "lower_bound", "upper_bound"}
    assert not any("without bounds" in finding.title for finding in table.layout().findings)
    assert table.plan("id = 2").steps[-1].kept == min(rows, 1)


def test_a_column_that_has_no_type_in_a_file_is_null_there(
    catalog: SqlCatalog, catalog_properties: dict[str, str], tmp_path: Path
) -> None:
    """PyIceberg takes in no such file; Spark's `add_files` does."""
    made = catalog.create_table("db.untyped", ROWS.schema)
    paths = [str(tmp_path / "0.parquet"), str(tmp_path / "1.parquet")]
    for path in paths:
        pq.write_table(ROWS, path)
    made.add_files(paths)
    pq.write_table(ROWS.set_column(1, "word", pa.nulls(3)), paths[1])
    table = icestats.load("db.untyped", catalog=catalog_properties)
    found = scan_table(table).find("word")
    assert (found.value_count, found.null_value_count, found.max_value) == (6, 4, b"b")
    assert table.estimate("word = 'a'", actual=True).actual == 1
