"""Roll-ups and files of manifests: one rule of Iceberg a test."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icestats.answers.arrays import join_paths
from icestats.errors import MetadataError
from icestats.iceberg.storage import Storage
from icestats.read.avro.block_inflater import BlockInflater
from icestats.read.manifests import row_store
from icestats.read.manifests.group_store import GroupStore, build_kinds
from icestats.read.manifests.manifests import ManifestToRead, read_file_metrics, read_files, read_rollups
from tests.written_manifests import IDENTITY, Files, cells, entry, entry_schema, integer, table


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"status": 3}, "a status is none of"),
        ({"content": 3}, "a content is none of"),
        ({"record_count": -1}, "a record count or file size is negative"),
        ({"file_size_in_bytes": -1}, "a record count or file size is negative"),
        ({"record_count": 2**53 + 1}, r"a record count or file size is negative or above 2\*\*53"),
        ({"file_size_in_bytes": 2**63 - 1}, r"a record count or file size is negative or above 2\*\*53"),
    ],
)
def test_impossible_entries_are_errors(change: dict[str, int], what: str) -> None:
    """An entry that no writer can mean stops the reading, with the entry's place."""
    files = Files().add(entry(), entry(**change))
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=what) as caught:
            read(files.manifests, table((1, "long")), files)
        assert (caught.value.path, "entry 1 of the block" in str(caught.value)) == ("m0.avro", True)


def test_deletes_are_counted_apart() -> None:
    """Position deletes, deletion vectors and equality deletes each have their counts, and none is a data file."""
    files = Files().add(entry(), entry())
    files.add(
        entry(content=1, record_count=3),
        entry(content=1, record_count=4, file_format="puffin"),
        entry(content=2, record_count=5, equality_ids=[1]),
        content="deletes",
    )
    rollups = read_rollups(files.manifests, table((1, "long")), files)
    group = rollups.partitions.to_pylist()[0]
    assert (group["data_file_count"], group["data_record_count"], group["total_data_file_size_in_bytes"]) == (
        2,
        20,
        200,
    )
    assert (group["position_delete_file_count"], group["position_delete_record_count"], group["dv_count"]) == (1, 7, 1)
    assert (group["equality_delete_file_count"], group["equality_delete_record_count"]) == (1, 5)
    deletes = rollups.manifests.to_pylist()[1]
    assert (deletes["live_file_count"], deletes["record_count"], deletes["file_size_in_bytes"]) == (3, 12, 300)
    assert rollups.manifest_cells.num_rows == 2
    contents = read_files(files.manifests, table((1, "long")), files)["content"].to_pylist()
    assert contents == ["data", "data", "position_deletes", "position_deletes", "equality_deletes"]


@pytest.mark.parametrize(
    ("schema", "more", "what"),
    [
        (entry_schema([(1001, "int")]), {}, "no field of id 1000"),
        (entry_schema([(1000, "string")]), {}, "Avro type string, expected a number"),
        (entry_schema([(1000, "int")]), {"spec_id": 4}, "partition spec 4, which the table does not have"),
        ({"type": "record", "name": "r", "fields": []}, {}, "no field of id 0"),
    ],
)
def test_files_that_are_no_manifest_of_the_table(schema: Any, more: dict[str, Any], what: str) -> None:
    """A manifest of another table, or another kind of Avro file, is an error."""
    files = Files().add(schema=schema, **more)
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=what):
            read(files.manifests, table((1, "int"), specs={0: IDENTITY}), files)


def test_no_manifests_and_no_entries() -> None:
    """Nothing gives tables without rows, and cells that nothing has contributed to."""
    metadata = table((1, "long"), (2, "string"), specs={0: [(1000, 1, "key", "identity")]})
    rollups = read_rollups([], metadata, Files())
    assert (rollups.manifests.num_rows, rollups.partitions.num_rows, rollups.table_cells.num_rows) == (0, 0, 2)
    assert read_files([], metadata, Files()).num_rows == 0
    files = Files().add(schema=entry_schema([(1000, "long")]))
    rollups = read_rollups(files.manifests, metadata, files)
    assert rollups.manifests["live_file_count"].to_pylist() == [0]
    assert rollups.manifest_cells["column_size_file_count"].to_pylist() == [0, 0]
    assert (rollups.partitions.num_rows, rollups.partition_cells.num_rows) == (0, 0)


def test_only_what_is_wanted() -> None:
    """`by` leaves tables out; the table's cells are there in any case."""
    files = Files().add(entry(column_sizes={1: 3}))
    metadata = table((1, "long"))
    full = read_rollups(files.manifests, metadata, files)
    for by in ((), ("manifest",), ("partition",)):
        part = read_rollups(files.manifests, metadata, files, by=by)
        assert part.table_cells.equals(full.table_cells)
        assert part.manifest_cells.num_rows == ("manifest" in by)
        assert part.partition_cells.num_rows == ("partition" in by)


def test_another_schema() -> None:
    """Columns are those of the schema given, by id: dropped ones are left out, later ones have nothing."""
    files = Files().add(entry(column_sizes={1: 3, 2: 4}))
    metadata = table((1, "long"), (2, "string"))
    assert [c["column_size"] for c in cells(files, metadata, schema=table((2, "string"), (9, "int")).schema)] == [4, 0]
    assert cells(files, metadata, schema=replace(metadata.schema, fields=())) == []


def test_the_length_must_be_that_of_the_list() -> None:
    """A file that is longer or shorter than the manifest list says is an error; an unknown length is not checked."""
    files = Files().add(entry())
    for length in (1, len(files.data["m0.avro"]) + 1):
        with pytest.raises(MetadataError, match="the manifest list says"):
            read_rollups([replace(files.manifests[0], length=length)], table((1, "long")), files)
    assert read_files([replace(files.manifests[0], length=0)], table((1, "long")), files).num_rows == 1


def test_progress_counts_manifests_and_may_stop() -> None:
    """Progress ends at all of all; an exception that it raises comes out, and nothing goes on behind it."""
    files = Files()
    for _ in range(20):
        files.add(entry())
    seen: list[tuple[int, int]] = []
    read_rollups(files.manifests, table((1, "long")), files, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 20) for i in range(1, 21)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_files(files.manifests, table((1, "long")), files, progress=stop)


def test_more_rows_than_are_captured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows keep their order, and row ids go on, across the captures of one manifest."""
    monkeypatch.setattr(row_store, "CAPACITY", 64)
    rows = [entry(file_path=f"f{i}", lower_bounds={1: b"%d" % i}, record_count=2) for i in range(1000)]
    files = Files().add(*rows, first_row_id=10)
    read = read_files(files.manifests, table((1, "binary")), files, [1])
    assert read["file_path"].to_pylist() == [f"f{i}" for i in range(1000)]
    assert read["first_row_id"].to_pylist() == [10 + 2 * i for i in range(1000)]
    assert read["lower_bounds"].to_pylist() == [[(1, b"%d" % i)] for i in range(1000)]


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_of_pyiceberg(version: int, tmp_path: Path) -> None:
    """What PyIceberg writes reads as PyIceberg reads it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
        write_manifest,
    )
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "a_bucket"), PartitionField(2, 1001, IdentityTransform(), "b")
    )

    def added_entry(data_file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=55,
            sequence_number=3,
            file_sequence_number=3,
            data_file=data_file,
        )

    path = str(tmp_path / "m.avro")
    with write_manifest(version, spec, schema, PyArrowFileIO().new_output(path), 55, "deflate") as writer:
        for i in range(50):
            data_file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"s3://bucket/{i}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(i % 4, None if i % 5 == 0 else "x"),
                record_count=i,
                file_size_in_bytes=100 + i,
                column_sizes={1: i, 2: 2 * i},
                value_counts={1: i, 2: i},
                null_value_counts={1: 0, 2: i},
                nan_value_counts={},
                lower_bounds={1: integer(i, 8)},
                upper_bounds={1: integer(2 * i, 8)},
                split_offsets=[4],
                sort_order_id=0,
            )
            writer.add_entry(added_entry(data_file))
        written = writer.to_manifest_file()
    metadata = table(
        *((1, "long"), (2, "string")), specs={0: [(1000, 1, "a_bucket", "bucket[4]"), (1001, 2, "b", "identity")]}
    )
    manifest = ManifestToRead(path, written.manifest_length, 0, "data", 3, 55)
    files = read_files([manifest], metadata, Storage(), [1, 2])
    theirs = written.fetch_manifest_entry(PyArrowFileIO())
    assert files["file_path"].to_pylist() == [e.data_file.file_path for e in theirs]
    assert [dict(m) for m in files["column_sizes"].to_pylist()] == [e.data_file.column_sizes for e in theirs]
    assert [dict(m) for m in files["lower_bounds"].to_pylist()] == [e.data_file.lower_bounds for e in theirs]
    assert [tuple(p.values()) for p in files["partition"].to_pylist()] == [
        (e.data_file.partition[0], e.data_file.partition[1]) for e in theirs
    ]
    rollups = read_rollups([manifest], metadata, Storage())
    cell = rollups.table_cells.to_pylist()[0]
    assert (cell["column_size"], cell["lower_bound"], cell["upper_bound"]) == (1225, integer(0, 8), integer(98, 8))
    assert rollups.table_cells["valueless_file_count"].to_pylist() == [0, 50]
    assert sum(rollups.partitions["data_file_count"].to_pylist()) == 50


def test_large_memory_is_given_back_as_a_whole() -> None:
    """What reading takes for a moment is not the C library's: that keeps as much in each thread's arena."""
    groups = GroupStore.whole(build_kinds(table((1, "long")).schema.columns), 1).groups
    rows = row_store.RowStore(["long"], [1]).rows
    inflated, _ = BlockInflater().inflate(b"", [], 0)
    for array in (groups.cells, groups.arena, rows.numbers, rows.values, inflated):
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(getattr(owner, "obj", owner), mmap.mmap)


def test_split_paths_make_the_paths_again() -> None:
    """Folder and name make each path, whatever slashes it has; a folder is kept once."""
    paths = ["a", "/b", "s3://x/y z", "d/", "e//f", "", "e//ü", "no"]
    files = Files().add(*(entry(file_path=path) for path in paths))
    found = read_file_metrics(files.manifests, table((1, "long")), files, splits_paths=True)
    assert join_paths(found)["file_path"].to_pylist() == paths
    assert found["folder"].chunk(0).dictionary.to_pylist() == ["", "/", "s3://x/", "d/", "e//"]
