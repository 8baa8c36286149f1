"""Deletes by position: those that apply to a data file, and no others; deletion vectors within limits."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyroaring import BitMap

import icestats
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.types import decode_value
from icestats.scan import actual_rows, arrow_files, position_deletes
from icestats.scan.actual_rows import map_rows
from icestats.scan.position_deletes import (
    Allowance,
    DeletedPositions,
    read_position_deletes,
    read_positions,
    read_vectors,
)
from icestats.scan.scan_plan import open_scan, prepare_scan
from tests.computed_statistics import scan_table
from tests.written_deletes import compact, delete_positions, list_data_files

PATH = "d.puffin"


def vector(*bitmaps: tuple[int, bytes], count: int | None = None) -> bytes:
    """A vector of bitmaps by their keys, as Iceberg stores it."""
    number = len(bitmaps) if count is None else count
    body = bytes.fromhex("d1d33964") + number.to_bytes(8, "little")
    body += b"".join(key.to_bytes(4, "little") + bitmap for key, bitmap in bitmaps)
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def bits(positions: Sequence[int]) -> bytes:
    bitmap = BitMap(positions)
    bitmap.run_optimize()
    stored: bytes = bitmap.serialize()
    return stored


def puffin(vectors: dict[str, bytes] | Sequence[tuple[str, bytes]], **more: str) -> bytes:
    data, blobs = b"PFA1", []
    for path, stored in vectors.items() if isinstance(vectors, dict) else vectors:
        blob = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
        place = {"offset": len(data), "length": len(stored), "properties": {"referenced-data-file": path}}
        blobs.append(blob | place | more)
        data += stored
    footer = json.dumps({"blobs": blobs}).encode()
    return data + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"


def test_the_vectors_of_the_files_that_are_asked_for_are_read() -> None:
    """Positions beyond 2**32, an empty bitmap, and a vector of another file, which may be of any size."""
    large = vector((0, bits([0, 7])), (1, bits([])), (2, bits([3])))
    data = puffin({"a": vector((0, bits(range(5)))), "b": large, "c": vector((2**31, b""))})
    found = dict(read_vectors(data, PATH, {"a": 5, "b": 2**33 + 4, "other": 1}, Allowance()))
    assert {path: positions.to_pylist() for path, positions in found.items()} == {
        "a": [0, 1, 2, 3, 4],
        "b": [0, 7, 2**33 + 3],
    }


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (vector((2**31 - 2, bits([0]))), "beyond the rows of the file"),
        (vector((0, bits([1])), (0, bits([2]))), "its keys are out of order"),
        (vector((0, bits([5]))), "it deletes 1 rows, some beyond the 5 of the file"),
        (vector((0, bits(range(1 << 28)))), "it deletes 268,435,456 rows"),
        (vector((0, bits([1])), count=2**60), "it has 1,152,921,504,606,846,976 keys, expected 64 at most"),
        (vector((0, bits([1])[:3])), "deserialize"),
        (b"\x00\x00\x00\x04abcdefgh", "not a deletion vector"),
        (b"", "not a deletion vector"),
        (vector(count=1), "the deletion vector of a: "),
        (vector((0, b"")), "the deletion vector of a: "),
        (bytes(4) + vector((0, bits([0, 3])))[4:], "its length or its CRC-32 is wrong"),
        (vector((0, bits([0, 3])))[:-4] + bytes(4), "its length or its CRC-32 is wrong"),
        (vector((0, bits([0, 3]))).replace(b"\3\0", b"\4\0"), "its length or its CRC-32 is wrong"),
    ],
)
def test_a_damaged_vector_is_refused_with_its_place(stored: bytes, message: str) -> None:
    with pytest.raises(icestats.MetadataError, match=message) as caught:
        dict(read_vectors(puffin({"a": stored}), PATH, {"a": 5}, Allowance()))
    assert str(caught.value).startswith(f"{PATH} at byte 4: ")


def test_a_vector_of_many_keys_deletes_no_more_than_one_of_one_key() -> None:
    data = puffin({"a": vector(*((key, bits(range(9 << 22))) for key in range(4)))})
    with pytest.raises(icestats.MetadataError, match="its 37,748,736 deleted rows make more than 134,217,728 in all"):
        dict(read_vectors(data, PATH, {"a": 2**35}, Allowance()))


def test_all_delete_files_of_a_scan_have_one_limit(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes little; a table may name any number of them."""
    made = catalog.create_table("db.many", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    made.append(pa.table({"id": pa.array(range(100), pa.int64())}))
    (file,) = list_data_files(made)
    for first in range(0, 40, 10):
        delete_positions(made, [(file, row) for row in range(first, first + 10)])
    table = icestats.load(made.metadata_location)
    for limit in (40, 39):
        monkeypatch.setattr(position_deletes, "MOST_POSITIONS", limit)
        if limit == 40:
            assert table.estimate("id >= 0", actual=True).actual == 60
            continue
        with pytest.raises(icestats.MetadataError, match="its 10 deleted rows make more than 39 in all delete files"):
            table.estimate("id >= 0", actual=True)


def test_vectors_share_the_limit_of_a_scan() -> None:
    """Each is a run of a few bytes, and 300 MB as numbers."""
    run = vector((0, bits(range(9 << 22))))
    data = puffin(dict.fromkeys("abcd", run))
    with pytest.raises(icestats.MetadataError, match="vector of d: its 37,748,736 deleted rows make more than"):
        list(read_vectors(data, PATH, dict.fromkeys("abcd", 2**31), Allowance()))


@pytest.mark.parametrize("files", [1, 2])
def test_a_second_vector_of_a_data_file_is_refused(tmp_path: Path, files: int) -> None:
    """A data file has one at most; which of two a manifest means, PyIceberg does not read."""
    stored = [vector((0, bits([0, 1]))), vector((0, bits([5])))]
    each = [[("a", one)] for one in stored] if files == 2 else [[("a", one) for one in stored]]
    deletes = set()
    for number, vectors in enumerate(each):
        path = tmp_path / f"{number}.puffin"
        path.write_bytes(puffin(vectors))
        of = {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PUFFIN}
        deletes.add(DataFile.from_args(file_path=str(path), **of, record_count=2))
    data = DataFile.from_args(file_path="a", record_count=10, file_format=FileFormat.PARQUET)
    task = FileScanTask(data, delete_files=deletes)
    with pytest.raises(icestats.MetadataError, match="a second deletion vector of a, which may have one"):
        read_position_deletes(PyArrowFileIO(), [task])


def test_a_compressed_vector_is_refused() -> None:
    """The spec has none, and it may expand without end."""
    data = puffin({"a": vector((0, bits([1])))}, **{"compression-codec": "zstd"})
    with pytest.raises(icestats.MetadataError, match="not a deletion vector"):
        dict(read_vectors(data, PATH, {"a": 5}, Allowance()))


def test_deletes_of_a_file_that_was_added_again_do_not_apply(catalog: SqlCatalog) -> None:
    """The delete file is read for another data file; by its sequence number it is not about the newer one."""
    made = catalog.create_table("db.again", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    for first in (0, 10):
        made.append(pa.table({"id": pa.array(range(first, first + 10), pa.int64())}))
    again, other = list_data_files(made)
    delete_positions(made, [(again, 0), (again, 1), (other, 2)])
    with made.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        overwrite.delete_data_file(again)
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(again)
    table = icestats.load(made.metadata_location)
    assert table.estimate("id >= 0", actual=True).actual == 19
    assert table.estimate_workload(["id >= 0"]).answers[0].actual == 19
    found = scan_table(table)
    assert found.row_count == 19


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_files_that_are_read_together_lose_their_own_rows(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Of seven files, seven, two and one at a time; the deletes of one are no other's."""
    monkeypatch.setattr(actual_rows, "_PARTS", parts)
    made = catalog.create_table("db.together", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    for first in range(7):
        made.append(pa.table({"id": pa.array(range(first * 10, first * 10 + 10), pa.int64())}))
    files = sorted(list_data_files(made), key=lambda file: decode_value("long", file.lower_bounds[1]))
    delete_positions(made, [(files[place], row) for place, row in ((0, 0), (3, 1), (3, 2), (6, 9))])
    table = icestats.load(made.metadata_location)
    filters = {"id < 10": 9, "id between 30 and 39": 8, "id >= 60": 9, "id in (0, 31, 32, 69)": 0, "id >= 0": 66}
    answers = table.estimate_workload(list(filters)).answers
    assert {answer.row_filter: answer.actual for answer in answers} == filters


def test_positions_are_not_taken_up_again_for_each_batch(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector of 10,000,000 rows of a file of 20,000,000, 100 kB together, took minutes."""
    rows, taken = 400_000, []
    made = catalog.create_table("db.batches", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    made.append(pa.table({"id": pa.array(range(rows), pa.int64())}))
    (file,) = list_data_files(made)
    for first in (1, 0):
        delete_positions(made, [(file, row) for row in range(first, rows, 4)])
    is_in = pc.is_in

    def spy(values: Any, *given: Any, value_set: Any = None, **options: Any) -> Any:
        taken.append(0 if value_set is None else len(value_set))
        return is_in(values, *given, value_set=value_set, **options)

    monkeypatch.setattr(pc, "is_in", spy)
    table = icestats.load(made.metadata_location)
    assert table.estimate(f"id >= {rows // 2}", actual=True).actual == rows // 4
    assert sum(taken) < rows // 4


def test_rows_that_are_left_are_those_that_pyiceberg_finds() -> None:
    """Positions in any order, some of them twice, in more than one file, and below 0 or behind the last row."""
    numbers = random.Random(7)
    for _ in range(100):
        found = [
            pa.chunked_array([[numbers.randrange(-3, 60) for _ in range(numbers.randrange(9))]] * parts, pa.int64())
            for parts in numbers.choices((1, 2), k=2)
        ]
        start = numbers.randrange(40)
        for end in (start, start + numbers.randrange(30)):
            expected = arrow_files._find_left(found, start, end)
            assert DeletedPositions(found).find_left(start, end).equals(expected)


def test_positions_beyond_what_a_file_may_expand_to_are_not_read(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of one position takes a few bytes, whatever its length, and each of its rows twelve in memory."""
    made = catalog.create_table("db.runs", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    made.append(pa.table({"id": pa.array(range(10), pa.int64())}))
    (file,) = list_data_files(made)
    delete_positions(made, [(file, 3)] * 1_000)
    table = icestats.load(made.metadata_location)
    source = table._source
    tasks = prepare_scan(source, table.snapshot, table.schema).tasks
    assert read_position_deletes(load_iceberg_table(source).io, tasks)[file.file_path][0].to_pylist() == [3]
    assert table.estimate("id >= 0", actual=True).actual == 9
    monkeypatch.setattr(position_deletes, "expanded_limit", lambda _: 11_999)
    for count in (
        lambda: table.estimate("id >= 0", actual=True),
        lambda: table.estimate_workload(["id >= 0"]),
        lambda: scan_table(table),
    ):
        with pytest.raises(icestats.MetadataError, match=r"1,000 deleted positions in .* bytes, at most 999"):
            count()


def write_positions(rows: pa.Table, **how: Any) -> bytes:
    file = pa.BufferOutputStream()
    pq.write_table(rows, file, compression="zstd", **how)
    stored: bytes = file.getvalue().to_pybytes()
    return stored


def test_the_positions_of_the_files_that_are_asked_for_are_read() -> None:
    """In row groups of their own, with paths of other files, repeated and out of order."""
    rows = pa.table({"file_path": ["b", "a", "c", "b", "a", "b"], "pos": pa.array([7, 1, 9, 2, 1, 7], pa.int64())})
    coded = ({"column_encoding": {"file_path": f"DELTA_{kind}BYTE_ARRAY"}} for kind in ("", "LENGTH_"))
    plain = {"use_dictionary": False}
    for how in ({}, {"row_group_size": 2}, plain, *(plain | one for one in coded)):
        found = dict(read_positions(write_positions(rows, **how), PATH, {"a": 5, "b": 9, "other": 1}, Allowance()))
        assert {path: sorted(positions.to_pylist()) for path, positions in found.items()} == {"a": [1], "b": [2, 7]}
    assert dict(read_positions(write_positions(rows[:0]), PATH, {"a": 5}, Allowance())) == {}


def test_other_files_of_a_position_delete_file_are_not_looked_for() -> None:
    """Each was, among all rows: 200,000 of them took minutes."""
    rows = pa.table({"file_path": [f"{i}" for i in range(1_000_000)], "pos": pa.array(range(1_000_000), pa.int64())})
    found = dict(read_positions(write_positions(rows), PATH, {"7": 10}, Allowance()))
    assert found["7"].to_pylist() == [7]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"file_path": ["x" * (1 << 20)] * 200, "pos": pa.array(range(200), pa.int64())}), "take more than"),
        (pa.table({"file_path": [1], "pos": [1]}), "its columns are of type int64 and int64"),
        (pa.table({"file_path": [["a"]], "pos": [1]}), "no field"),
        (pa.table({"file_path": ["a"], "pos": ["1"]}), "its columns are of type dictionary"),
        (pa.table({"file_path": ["a"]}), "no field"),
    ],
)
def test_position_deletes_that_are_none_or_expand_without_end_are_refused(rows: pa.Table, message: str) -> None:
    with pytest.raises(icestats.MetadataError, match=message) as caught:
        dict(read_positions(write_positions(rows, use_dictionary=False), PATH, {"a": 5}, Allowance()))
    assert str(caught.value).startswith(f"{PATH}: position deletes cannot be read: ")


def test_rows_are_counted_a_part_of_a_file_at_a_time(catalog: SqlCatalog) -> None:
    """A kilobyte of Parquet may hold a thousand million rows."""
    made = catalog.create_table("db.long", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.nulls(1_000_000, pa.int64())}))
    table = icestats.load(made.metadata_location)
    scan = open_scan(table._source, table.snapshot, table.schema)
    counts = list(map_rows(scan, list(scan.plan_files()), len))
    assert sum(counts) == table.estimate("id is null", actual=True).actual == 1_000_000
    assert max(counts) < 500_000


def test_deletes_that_a_compaction_has_left_behind_are_not_said_to_apply(catalog, load):
    """Spark's leaves those of several files, as older files of other partitions keep them alive."""
    table = catalog.create_table("db.left", pa.schema([("id", pa.int64())]))
    for _ in range(2):
        table.append(pa.table({"id": range(5)}))
    files = list_data_files(table)
    delete_positions(table, [(file, 0) for file in files])
    compact(table, files, pa.table({"id": [1, 2, 3, 4] * 2}))
    found = load("db.left")
    assert found.overview().findings[-1] == (
        "2 delete records may apply: figures of data files do not deduct rows that are deleted."
    )
    assert found.plan("id >= 0").files()["delete_files"].to_pylist() == [[]]
