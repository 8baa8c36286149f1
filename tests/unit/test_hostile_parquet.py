"""Damaged footers are refused in one line, and a Parquet file takes no more memory than its length allows."""

from __future__ import annotations

import datetime as dt
import io
import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import Storage
from icestats.iceberg.types import encode_value
from icestats.read.parquet.parquet_footer import ParquetFooter, RowGroup, check_places, parse_footer
from icestats.read.parquet.parquet_pages import measure_chunk
from icestats.read.rollups.stored_table import MAX_ROWS, damage_in, open_parquet, read_parquet
from icestats.snapshot.pruning import row_groups as row_groups_module
from icestats.snapshot.pruning.row_groups import read_row_groups
from tests.parquet_footers import build_empty_file

TYPES = {
    "int": (pa.int32(), [3, 1, None]),
    "long": (pa.int64(), [-1, 2**60, 5]),
    "float": (pa.float32(), [0.5, None, -2.0]),
    "double": (pa.float64(), [1.5, 2.5, 9.0]),
    "boolean": (pa.bool_(), [True, False, None]),
    "string": (pa.string(), ["é", "a", None]),
    "binary": (pa.binary(), [b"\xff", b"\0", b"a"]),
    "fixed[3]": (pa.binary(3), [b"abc", b"abd", None]),
    "date": (pa.date32(), [dt.date(2026, 1, 2), dt.date(1969, 1, 1), None]),
    "time": (pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(0), None]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2026, 1, 2, 3), dt.datetime(1900, 1, 1), None]),
    "timestamptz": (pa.timestamp("ms", "UTC"), [dt.datetime(2026, 1, 2, tzinfo=dt.UTC)] * 3),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("1.23"), Decimal("-4567.89"), None]),
    "decimal(38,4)": (pa.decimal128(38, 4), [Decimal("-" + "9" * 34 + ".9999"), Decimal("1.0000"), None]),
}
COLUMNS = [Field(i, f"c{i}", kind, False, True, False) for i, kind in enumerate(TYPES, 1)]


class OneFile:
    """A storage of one file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def size(self, location: str) -> int:
        return len(self.data)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[offset : None if length is None else offset + length]


def written(table: pa.Table, **options) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **options)
    return file.getvalue()


def typed_file(**options) -> bytes:
    """A column of each type, and one inside of a list, which has no bounds of rows."""
    fields = [
        pa.field(c.name, kind, metadata={b"PARQUET:field_id": str(c.field_id).encode()})
        for c, (kind, _) in zip(COLUMNS, TYPES.values(), strict=True)
    ]
    arrays = [pa.array(values, kind) for kind, values in TYPES.values()]
    nested = pa.array([{"deep": {"x": [1, 2]}}] * 3)
    schema = pa.schema([pa.field("nested", nested.type), *fields])
    return written(pa.table([nested, *arrays], schema=schema), **options)


def row_groups(data: bytes) -> pa.Table:
    row = {"file_path": "x", "file_format": "PARQUET", "record_count": 3, "file_size_in_bytes": len(data)}
    return read_row_groups(OneFile(data), pa.Table.from_pylist([row]), COLUMNS)[0]


def test_a_file_that_is_named_without_end_has_its_footer_read_so_often_as_the_limit_allows(monkeypatch):
    """One of 32 MB takes twenty seconds, and a manifest of 100 kB may name it 1,000 times."""
    data = typed_file()
    length = int.from_bytes(data[-8:-4], "little") + 8
    row = {"file_path": "x", "file_format": "PARQUET", "record_count": 3, "file_size_in_bytes": len(data)}
    monkeypatch.setattr(row_groups_module, "MOST_FOOTER_BYTES", 3 * length)
    found, _ = read_row_groups(OneFile(data), pa.Table.from_pylist([row] * 3), COLUMNS)
    assert found["file_index"].to_pylist() == [0, 1, 2]
    with pytest.raises(MetadataError, match=f"more than {3 * length:,} bytes together: plan with a filter"):
        read_row_groups(OneFile(data), pa.Table.from_pylist([row] * 4), COLUMNS)


def test_a_file_that_is_named_often_is_parsed_once_and_its_row_groups_count_each_time(tmp_path, monkeypatch):
    """Half a million row groups without columns lie in three megabytes: five seconds, and ninety megabytes, a time."""
    (tmp_path / "x").write_bytes(typed_file(row_group_size=1))
    (tmp_path / "y").symlink_to("x")
    parsed = []
    monkeypatch.setattr(row_groups_module, "parse_footer", lambda tail: parsed.append(tail) or parse_footer(tail))
    monkeypatch.setattr(row_groups_module, "MOST_ROW_GROUPS", 9)
    row = {"file_format": "PARQUET", "record_count": 3, "file_size_in_bytes": (tmp_path / "x").stat().st_size}
    rows = [row | {"file_path": f"{tmp_path}/{name}"} for name in ("x", "./x", "y", "x")]
    found, _ = read_row_groups(Storage(), pa.Table.from_pylist(rows[:3]), COLUMNS)
    assert found["file_index"].to_pylist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found["row_group"].to_pylist() == [0, 1, 2] * 3
    assert len(parsed) == 1
    with pytest.raises(MetadataError, match="more than 9 row groups together: plan with a filter"):
        read_row_groups(Storage(), pa.Table.from_pylist(rows), COLUMNS)


def test_columns_are_no_more_and_no_longer_than_row_groups_would_repeat():
    """A name of a struct is in the path of each column in it: 220 kB took 8 GB."""
    assert len(parse_footer(build_empty_file(["a"], 20_000)).columns) == 20_000
    assert len(parse_footer(build_empty_file(["a" * 100_000], 5)).columns) == 5
    for data in (build_empty_file(["a" * 10_000], 2_000), build_empty_file(["a"], 200_000)):
        with pytest.raises(ValueError, match="its schema has more columns, or longer names, than a footer of"):
            parse_footer(data)
    deep = pa.array([{"a" * 1000: {f"b{i}": i for i in range(3_000)}}])
    assert len(parse_footer(written(pa.table({"c": deep}))).columns) == 3_000


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"store_decimal_as_integer": True}])
def test_bounds_of_each_type_are_those_that_were_written(options):
    found = row_groups(typed_file(**options)).to_pylist()
    assert [row["row_count"] for row in found] == [3]
    for column, (_, values) in zip(COLUMNS, TYPES.values(), strict=True):
        known = [value for value in values if value is not None]
        bounds = [encode_value(column.type, bound) for bound in (min(known), max(known))]
        names = [f"{name}_{column.field_id}" for name in ("lower_bound", "upper_bound", "null_value_count")]
        assert [found[0][name] for name in names] == [*bounds, values.count(None)], column.type


def test_bounds_are_dropped_where_they_bound_nothing():
    for array in (pa.array([1, 2], pa.uint64()), pa.array([0, 1], pa.timestamp("ns")), pa.array([np.nan, np.nan])):
        schema = pa.schema([pa.field("c", array.type, metadata={b"PARQUET:field_id": b"2"})])
        assert row_groups(written(pa.table([array], schema=schema)))["upper_bound_2"].to_pylist() == [None]


def damaged(data: bytes, seed: int, start: int, end: int) -> bytes:
    draw = random.Random(seed)
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(start, end)
        changed[place] = draw.choice((draw.randrange(256), changed[place] ^ 1 << draw.randrange(8)))
    return bytes(changed)


def test_a_damaged_footer_is_refused_in_one_line_or_read():
    """pyarrow ends the process on some 1 in 140 of these."""
    data, refused = typed_file(row_group_size=2), []
    length = int.from_bytes(data[-8:-4], "little")
    for seed in range(2_000):
        try:
            row_groups(damaged(data, seed, len(data) - 8 - length, len(data) - 8))
        except MetadataError as error:
            refused.append(str(error))
    assert 500 < len(refused) < 2_000
    assert not any("\n" in text for text in refused)


def test_a_damaged_file_of_statistics_is_refused_in_one_line_or_read():
    refused = []
    for number, options in enumerate(({}, {"use_dictionary": False}, {"data_page_version": "2.0"})):
        data = typed_file(compression="zstd", **options)
        for seed in range(300):
            try:
                with damage_in("x", "damaged"):
                    read_parquet(open_parquet(damaged(data, 1_000 * number + seed, 4, len(data) - 8)))
            except MetadataError as error:
                refused.append(str(error))
    assert len(refused) > 300
    assert not any("\n" in text for text in refused)


def of_one_entry(count: int, length: int, **options) -> bytes:
    entries = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * length]))
    return written(pa.table({"a": entries}), dictionary_pagesize_limit=1 << 25, **options)


BOMBS = {
    "an entry of a dictionary, often": lambda: of_one_entry(200_000, 1_000_000, compression="zstd"),
    "the same, by snappy": lambda: of_one_entry(2_000, 1_000_000, compression="snappy"),
    "a page of zeros": lambda: written(pa.table({"a": ["\0" * 90_000_000]}), compression="zstd", use_dictionary=False),
    "a row with values without end": lambda: written(pa.table({"a": pa.array([[None] * 9_000_000])})),
    "values of a fixed length": lambda: written(
        pa.table({"a": pa.array([b"x" * 100_000] * 1_000, pa.binary(100_000))})
    ),
    "strings as changes of the one before": lambda: written(
        pa.table({"a": ["x" * 10_000] * 7_000}), use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_pages_that_expand_beyond_the_limit_are_not_read(name):
    data = BOMBS[name]()
    assert len(data) < 200_000
    with pytest.raises(ValueError, match="the values of its columns take more than 67,108,864 bytes"):
        read_parquet(open_parquet(data))


def test_pages_that_many_columns_share_are_not_read(monkeypatch):
    """Each row group would go through all of them once more: minutes for a file of three megabytes."""
    file = written(pa.table({"a": ["a"]}), compression="none", use_dictionary=False)
    chunk = parse_footer(file).row_groups[0].chunks[0]
    shared = ParquetFooter((), (RowGroup(1, 1, (chunk, chunk)),) * 1000)
    with pytest.raises(ValueError, match=r"the pages of its columns have [\d,]+ bytes, the file has"):
        check_places(shared, len(file))
    assert open_parquet(file)
    monkeypatch.setattr("icestats.read.rollups.stored_table.parse_footer", lambda _: shared)
    with pytest.raises(ValueError, match="the pages of its columns have"):
        open_parquet(file)


def test_pages_without_values_are_not_gone_through_without_end():
    """Twenty million of them lie in 256 MB: over a minute."""
    empty = bytes.fromhex("15 00 15 00 15 00 2c 15 00 15 00 15 00 15 00 00 00")
    file = written(pa.table({"a": pa.array([1], pa.int32())}), compression="none", use_dictionary=False)
    footer = parse_footer(file)
    chunk = footer.row_groups[0].chunks[0]
    pages = file[chunk.offset : chunk.offset + chunk.compressed_size]

    def measure(count: int) -> int:
        data = count * empty + pages
        return measure_chunk(data, replace(chunk, offset=0, compressed_size=len(data)), footer.columns[0], 64 << 20)

    assert measure(2) < measure(200) < 64 << 20
    with pytest.raises(ValueError, match="take more than 67,108,864 bytes"):
        measure(2_000)


def test_a_file_of_too_many_rows_is_not_read():
    data = written(pa.table({"a": pa.array(np.zeros(MAX_ROWS + 1, np.int8))}))
    with pytest.raises(ValueError, match="2,000,001 rows, expected 2,000,000 at most"):
        open_parquet(data)


def test_what_honest_writers_make_is_read():
    table = pa.table({"a": [f"day={i % 900}" for i in range(100_000)], "b": [[i, None] for i in range(100_000)]})
    for options in ({}, {"compression": "zstd"}, {"data_page_version": "2.0"}, {"use_dictionary": False}):
        assert read_parquet(open_parquet(written(table, **options))).equals(table)
    some = read_parquet(open_parquet(of_one_entry(1_000, 50_000)))
    assert some.nbytes > 50_000_000
