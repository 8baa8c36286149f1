"""Files of many writers, added without field ids: counts, sketches and row groups are those of the same rows."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StructType

import icestats
from icestats.iceberg.types import decode_value
from icestats.stats.table_statistics import count_distinct
from tests.computed_statistics import compute_here
from tests.parquet_footers import edit_statistics

NUMBERS = [None if i % 10 == 3 else i for i in range(-200, 200)]


def each(make: Callable[[int], Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if i is None else make(i) for i in NUMBERS], kind)


EPOCH = dt.datetime(1970, 1, 1)
ROWS = pa.table(
    {
        "b": each(lambda i: i % 3 == 0, pa.bool_()),
        "i": each(lambda i: i, pa.int32()),
        "l": each(lambda i: i * 10**10, pa.int64()),
        "f": each(lambda i: i / 4, pa.float32()),
        "d": each(lambda i: {100: math.nan, 5: -0.0}.get(i, i / 8), pa.float64()),
        "small": each(lambda i: Decimal(i).scaleb(-2), pa.decimal128(9, 2)),
        "large": each(lambda i: Decimal(i * 10**25 + 1).scaleb(-10), pa.decimal128(38, 10)),
        "s": each(lambda i: f"é{i + 200:03}", pa.string()),
        "raw": each(lambda i: bytes([(i + 200) // 2, 255]), pa.binary()),
        "day": each(lambda i: EPOCH.date() + dt.timedelta(i), pa.date32()),
        "ts": each(lambda i: EPOCH + dt.timedelta(hours=i), pa.timestamp("us")),
        "tz": each(lambda i: EPOCH + dt.timedelta(days=99 * i), pa.timestamp("us", "UTC")),
        "tags": each(lambda i: [f"t{i % 4}", None][: i % 3], pa.list_(pa.string())),
        "item": each(lambda i: {"p": i / 2}, pa.struct([("p", pa.float64())])),
    }
)
COUNTED = {
    "b = true": lambda row: row["b"],
    "i >= 10 and i < 50": lambda row: row["i"] is not None and 10 <= row["i"] < 50,
    "l < -1900000000000": lambda row: row["l"] is not None and row["l"] < -1_900_000_000_000,
    "f = 2.5": lambda row: row["f"] == 2.5,
    "d = 0": lambda row: row["d"] == 0,
    "d > 20": lambda row: row["d"] is not None and row["d"] > 20,
    "small = -1.00": lambda row: row["small"] == -1,
    "large < 0.0": lambda row: row["large"] is not None and row["large"] < 0,
    "s >= 'é390'": lambda row: row["s"] is not None and row["s"] >= "é390",
    "s like 'é00%'": lambda row: row["s"] is not None and row["s"].startswith("é00"),
    "day < '1970-01-01'": lambda row: row["day"] is not None and row["day"] < EPOCH.date(),
    "ts > '1970-01-05T00:00:00'": lambda row: row["ts"] is not None and row["ts"] > dt.datetime(1970, 1, 5),
    "tz < '1950-01-01T00:00:00+00:00'": lambda row: row["tz"] is not None and row["tz"].year < 1950,
    "item.p > 90": lambda row: row["item"] is not None and row["item"]["p"] > 90,
    "tags is null": lambda row: row["tags"] is None,
}  # fmt: skip


def arrow(*casts: tuple[str, pa.DataType], **options: Any) -> Callable[[pa.Table, Path], None]:
    def write(rows: pa.Table, path: Path) -> None:
        for name, kind in casts:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, rows.schema.field(name).with_type(kind), rows[name].cast(kind))
        pq.write_table(rows, path, row_group_size=100, **options)

    return write


def edited(edit: Callable[[str, dict[int, Any]], None], **options: Any) -> Callable[[pa.Table, Path], None]:
    def write(rows: pa.Table, path: Path) -> None:
        arrow()(rows, path)
        edit_statistics(path, edit, **options)

    return write


def by_duckdb(rows: pa.Table, path: Path) -> None:
    with duckdb.connect(config={"autoload_known_extensions": "false"}) as connection:
        connection.register("r", rows)
        connection.execute(f"copy r to '{path}' (format parquet)")


def use_old_bounds(path: str, statistics: dict[int, Any]) -> None:
    """As parquet-mr before 1.8: bounds in the order of signed bytes (PARQUET-251, PARQUET-686)."""
    upper, lower = (statistics.pop(place, None) for place in (5, 6))
    if upper is not None:
        wrong = path in ("s", "raw", "large")
        statistics[1], statistics[2] = (lower, lower) if wrong else (upper, lower)


def hide_in_nan(path: str, statistics: dict[int, Any]) -> None:
    if path == "d":
        statistics[5] = statistics[6] = (8, struct.pack("<d", math.nan))


def cut_texts(path: str, statistics: dict[int, Any]) -> None:
    if path in ("s", "raw"):
        statistics |= {5: (8, "ê".encode()), 6: (8, b""), 7: (2, False), 8: (2, False)}
        statistics[5] = (8, b"\xff\xff\xff") if path == "raw" else statistics[5]


DELTA = dict.fromkeys(("i", "l", "day"), "DELTA_BINARY_PACKED") | {
    "s": "DELTA_BYTE_ARRAY", "raw": "DELTA_LENGTH_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT", "d": "BYTE_STREAM_SPLIT",
}  # fmt: skip
DIALECTS: dict[str, Callable[[pa.Table, Path], None]] = {
    "oldest pages": arrow(version="1.0", store_schema=False),
    "newest pages": arrow(data_page_version="2.0", write_page_index=True, compression="zstd"),
    "delta": arrow(use_dictionary=False, column_encoding=DELTA, compression="lz4"),
    "no statistics": arrow(write_statistics=False, compression="gzip"),
    "whole decimals": arrow(store_decimal_as_integer=True, compression="brotli"),
    "INT96": arrow(use_deprecated_int96_timestamps=True),
    "milliseconds": arrow(("ts", pa.timestamp("ms")), ("tz", pa.timestamp("ms", "UTC"))),
    "nanoseconds": arrow(("ts", pa.timestamp("ns")), ("tz", pa.timestamp("ns", "UTC"))),
    "legacy lists": arrow(use_compliant_nested_type=False),
    "large texts": arrow(("s", pa.large_string()), ("raw", pa.large_binary())),
    "categories": arrow(("s", pa.dictionary(pa.int16(), pa.string()))),
    "narrow numbers": arrow(("i", pa.int16()), ("d", pa.float32())),
    "DuckDB": by_duckdb,
    "old parquet-mr": edited(use_old_bounds, created_by="parquet-mr version 1.6.0", has_orders=False),
    "nulls uncounted": edited(lambda _path, statistics: statistics.pop(3, None)),
    "bounds of NaN": edited(hide_in_nan),
    "cut texts": edited(cut_texts),
}


def register(table: IcebergTable, path: Path) -> None:
    """Add a file as Spark's `add_files` does, also where PyIceberg refuses to or knows no statistics of it."""
    try:
        table.add_files([str(path)])
    except (KeyError, ValueError, UnsupportedPyArrowTypeException):
        size, count = path.stat().st_size, len(NUMBERS)
        file = DataFile.from_args(
            content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
            partition=Record(), record_count=count, file_size_in_bytes=size,
        )  # fmt: skip
        file.spec_id = 0
        mapping = table.schema().name_mapping.model_dump_json(by_alias=True)
        with table.transaction() as transaction:
            transaction.set_properties({"schema.name-mapping.default": mapping})
            with transaction.update_snapshot().fast_append() as append:
                append.append_data_file(file)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_file_says_the_same_whoever_wrote_it(catalog: SqlCatalog, tmp_path: Path, dialect: str) -> None:
    made = catalog.create_table("db.t", ROWS.schema)
    DIALECTS[dialect](ROWS, tmp_path / "0.parquet")
    register(made, tmp_path / "0.parquet")
    table, rows = icestats.load(made.metadata_location), ROWS.to_pylist()
    listed, found = {row["name"]: row for row in table.columns().to_pylist()}, compute_here(table).found
    for name in ROWS.column_names[:12]:
        values = [value for value in ROWS[name].to_pylist() if value is not None]
        numbers, column = [value for value in values if value == value], found.find(name)
        assert listed[name]["null_value_count"] in (None, 40)
        assert (column.value_count, column.null_value_count) == (400, 40)
        ends = [decode_value(column.type, end or b"") for end in (column.min_value, column.max_value)]
        assert ends == [min(numbers), max(numbers)]
        assert count_distinct(column) == pytest.approx(len(set(values)), rel=0.05)
    skipped = 0
    for text, matches in COUNTED.items():
        plan, count = table.plan(text, row_groups=True), sum(bool(matches(row)) for row in rows)
        estimates = table.estimate(text, actual=True, sources=["table"])
        assert estimates.actual == count
        assert estimates["table"].rows_lower <= count <= estimates["table"].rows_upper
        groups, first = plan.row_groups().to_pylist(), 0
        for group in groups:
            first, start = first + group["row_count"], first
            assert group["kept"] or not any(matches(row) for row in rows[start:first])
            skipped += not group["kept"]
    assert (skipped > 15) == (dialect not in ("no statistics", "DuckDB"))


@pytest.mark.parametrize(
    "mapping",
    [
        "{",
        "[[]]",
        "[" * 100_000,
        '[{"field-id": 1, "names": ["i"]}, {"field-id": 2, "names": ["i"]}]',
        '[{"field-id": 2, "names": ["b"]}]',
        '[{"field-id": 2, "names": "i"}]',
    ],
)
def test_where_names_say_nothing_of_a_column_no_row_group_is_skipped(
    catalog: SqlCatalog, tmp_path: Path, mapping: str
) -> None:
    made = catalog.create_table("db.t", ROWS.schema)
    arrow()(ROWS, tmp_path / "0.parquet")
    made.add_files([str(tmp_path / "0.parquet")])
    made.transaction().set_properties({"schema.name-mapping.default": mapping}).commit_transaction()
    groups = icestats.load(made.metadata_location).plan("i > 150", row_groups=True).row_groups()
    assert groups["kept"].to_pylist() == [True] * 4


def test_what_is_known_of_a_column_proves_nothing_once_another_has_its_old_name(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], tmp_path: Path
) -> None:
    """Readers find its values in the new column, as the name mapping has it, and nulls in the renamed one."""
    path = tmp_path / "prices.parquet"
    rows = pa.table({"id": pa.array(range(50), pa.int64()), "price": pa.array(range(100, 150), pa.int64())})
    pq.write_table(rows, path)
    made = catalog.create_table("db.renamed", rows.schema)
    made.add_files([str(path)])
    compute_here(load("db.renamed")).commit()
    with made.refresh().update_schema() as update:
        update.rename_column("price", "old")
    renamed = load("db.renamed")
    assert (renamed.estimate("old >= 100")["kll"].rows_lower, renamed.columns()["ndv"].to_pylist()) == (50, [50, 50])
    with made.update_schema() as update:
        update.add_column("price", LongType())
    table = load("db.renamed")
    for row_filter, rows_read in (("old >= 100", 0), ("price >= 100", 50), ("old is not null", 0), ("id >= 0", 50)):
        estimates = table.estimate(row_filter, actual=True)
        assert estimates.actual == rows_read
        for one in estimates:
            assert one.rows_lower is None or one.rows_lower <= rows_read <= one.rows_upper, (row_filter, one)
    known = {row["name"]: row for row in table.columns().to_pylist()}
    assert known["id"]["null_value_count"] == 0
    assert known["old"]["null_value_count"] is known["old"]["lower_bound"] is known["old"]["ndv"] is None
    assert "name mapping" in dict(known["old"]["provenance"])["null_value_count"]


def test_fields_of_a_struct_whose_old_names_others_have_are_known(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], tmp_path: Path
) -> None:
    struct = pa.struct([("a", pa.int64()), ("c", pa.int64())])
    rows = pa.table({"id": pa.array([1], pa.int64()), "s": pa.array([{"a": 2, "c": 3}], struct)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    made = catalog.create_table("db.nested", rows.schema)
    made.add_files([str(tmp_path / "rows.parquet")])
    moved = []
    for old, new in (("s.a", "b"), ("s", "z")):
        with made.update_schema() as update:
            update.rename_column(old, new)
        moved.append(load("db.nested").metadata.find_moved())
        with made.update_schema() as update:
            path = ("s", "a") if old == "s.a" else "s"
            update.add_column(path, LongType() if old == "s.a" else StructType(NestedField(9, "a", LongType())))
        moved.append(load("db.nested").metadata.find_moved())
    ids = {field.name: field.field_id for field in load("db.nested").schema.fields}
    assert moved[:3] == [set(), {ids["z.b"]}, {ids["z.b"]}]
    assert moved[3] == {ids[name] for name in ("z", "z.a", "z.b", "z.c")}
