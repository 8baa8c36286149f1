"""What is stored of manifests and partitions answers, and is added to, as the manifests themselves are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icestats.answers.schemas import MANIFEST_FILES, STATISTICS, SUMMED_STATISTICS
from icestats.commit.partition_statistics_file import build_stored_table, write_stored_table
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import Field, PartitionStatisticsFile, Schema, Snapshot, TableMetadata
from icestats.iceberg.types import encode_value, find_width
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import ManifestToRead, RollUps, read_rollups
from icestats.read.partitions.partition_history import SnapshotPartitions, read_snapshot_partitions
from icestats.read.rollups.content_stats import decode_content_stats, encode_content_stats
from icestats.read.rollups.manifest_statistics import ManifestStatistics, write_manifest_statistics
from icestats.read.rollups.rollup_merge import merge_groups_cells
from icestats.read.rollups.stored_table import open_parquet, read_parquet, stored_field, write_parquet
from icestats.snapshot.snapshot_reader import build_column_table, build_manifests
from icestats.stats.rollup_cells import KnownCells, build_known_cells, has_column_statistic
from tests.mergeable_tables import COLUMNS, METADATA, WrittenTable, are_same, roll_up, write_table

LIST_FIELDS = {
    "manifest_path": (500, "string"),
    "manifest_length": (501, "long"),
    "partition_spec_id": (502, "int"),
    "content": (517, "int"),
    "added_snapshot_id": (503, "long"),
    "added_files_count": (504, "int"),
    "existing_files_count": (505, "int"),
    "deleted_files_count": (506, "int"),
    "added_rows_count": (512, "long"),
    "existing_rows_count": (513, "long"),
}


def write_list(table: WrittenTable, manifests: Sequence[ManifestToRead], path: str) -> pa.Table:
    """Write a manifest list, and return it as it is read."""
    rows = []
    for manifest in manifests:
        entries = list(fastavro.reader(io.BytesIO(table.files[manifest.path])))
        counts = [[e["data_file"]["record_count"] for e in entries if e["status"] == s] for s in range(3)]
        rows.append(
            {
                "manifest_path": manifest.path,
                "manifest_length": manifest.length,
                "partition_spec_id": manifest.spec_id,
                "content": int(manifest.content == "deletes"),
                "added_snapshot_id": manifest.added_snapshot_id,
                "added_files_count": len(counts[1]),
                "existing_files_count": len(counts[0]),
                "deleted_files_count": len(counts[2]),
                "added_rows_count": sum(counts[1]),
                "existing_rows_count": sum(counts[0]),
            }
        )
    listed = [{"name": n, "field-id": i, "type": ["null", kind]} for n, (i, kind) in LIST_FIELDS.items()]
    stream = io.BytesIO()
    fastavro.writer(stream, {"type": "record", "name": "manifest_file", "fields": listed}, rows)
    table.files[path] = stream.getvalue()
    return read_manifest_list(table, Snapshot(0, None, 0, 0, path, (), 0, {}))


def only_manifests(table: WrittenTable) -> pa.Table:
    return write_list(table, table.manifests, "list.avro")


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_stored_manifest_statistics_answer_as_the_manifests_do(seed: int, count: int) -> None:
    """Whatever files lack, the tables of manifests and of columns from a blob equal those from the manifests."""
    table = write_table(seed, count)
    files, rollups = only_manifests(table), roll_up(table, table.manifests)
    found = ManifestStatistics(write_manifest_statistics(files, rollups, COLUMNS), "blob")
    cells = found.build_cells(COLUMNS)
    again = RollUps(found.manifests, cells, found.manifests, cells, merge_groups_cells(cells, COLUMNS))
    schema = Schema(0, COLUMNS)
    assert files.schema.equals(MANIFEST_FILES)
    assert are_same(build_manifests(files, again, schema), build_manifests(files, rollups, schema))
    of_table = [build_column_table(files, one, schema, {}) for one in (again, rollups)]
    assert are_same(*of_table)
    assert found.manifest_lengths == tuple(manifest.length for manifest in table.manifests)


TYPES = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz_ns", "string", "uuid"),
    *("binary", "fixed[3]", "fixed[0]", "decimal(9, 2)", "decimal(38, 0)", "geometry", "of a later spec"),
)


@st.composite
def known_cells(draw: st.DrawFn) -> tuple[KnownCells, tuple[Field, ...], pa.Array]:
    """Figures of any kind, among them bounds that no writer means: cut characters, digits beyond the precision."""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))
    columns = tuple(Field(i, f"c.{i}", kind, False, True) for i, kind in enumerate(kinds, 1))
    live = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    values: dict[str, list[Any]] = {name: [] for name in STATISTICS}
    missing: dict[str, list[int]] = {name: [] for name in STATISTICS}
    for count in live:
        for column in columns:
            for name in STATISTICS:
                applies = has_column_statistic(column, name)
                lacking = draw(st.integers(0, count)) if applies else count
                bounds, sums = st.none() | bound_of(column.type), st.integers(0, 2**63 - 1)
                drawn = draw(sums if name in SUMMED_STATISTICS else bounds)
                values[name].append(drawn if applies and not lacking else None)
                missing[name].append(lacking)
    arrays = {n: pa.array(v, pa.int64() if n in SUMMED_STATISTICS else pa.binary()) for n, v in values.items()}
    return KnownCells(arrays, {n: np.array(v) for n, v in missing.items()}), columns, pa.array(live)


def bound_of(kind: str) -> st.SearchStrategy[bytes]:
    """A bound as roll-ups have it: of the width of its type, decimals as short as can be, NaN never."""
    if kind == "boolean":
        return st.sampled_from([b"\x00", b"\x01"])
    if kind in ("float", "double"):
        return st.floats(width=32 if kind == "float" else 64, allow_nan=False).map(lambda v: encode_value(kind, v))
    if kind.startswith("decimal"):
        widest = st.integers(-(2**127), 2**127 - 1)
        return (st.integers(-(10**9), 10**9) | widest).map(lambda v: encode_value("decimal(38, 0)", v))
    width = find_width(kind)
    if width is None or kind.startswith("fixed"):
        return st.binary(max_size=20 if width is None else width)
    return st.binary(min_size=width, max_size=width)


def least_decimal() -> tuple[KnownCells, tuple[Field, ...], pa.Array]:
    """A bound of -2^127, of more digits than any decimal has."""
    values = {
        n: pa.array([0], pa.int64()) if n in SUMMED_STATISTICS else pa.array([None], pa.binary()) for n in STATISTICS
    }
    values |= {"nan_value_count": pa.array([None], pa.int64()), "upper_bound": pa.array([b"\x80" + bytes(15)])}
    column = Field(1, "c", "decimal(9, 2)", False, True)
    return KnownCells(values, {name: np.array([0]) for name in STATISTICS}), (column,), pa.array([1])


@settings(max_examples=300)
@given(known_cells())
@example(least_decimal())
def test_content_stats_come_back_as_they_were(case: tuple[KnownCells, tuple[Field, ...], pa.Array]) -> None:
    """Every figure of every type, to the bit, through a Parquet file; of all columns, and of one by itself."""
    known, columns, live = case
    stats = encode_content_stats(known, columns, np.ones(len(live), np.bool_))
    schema = pa.schema([stored_field("content_stats", stats.type, 146)])
    stored = read_parquet(open_parquet(write_parquet(pa.table([stats], schema), "none")))
    counts = live.to_numpy()
    for wanted in (columns, columns[-1:]):
        places = [n * len(columns) + columns.index(column) for n in range(len(live)) for column in wanted]
        rows = pa.array(places)
        expected = KnownCells(
            {name: array.take(rows) for name, array in known.values.items()},
            {name: array[places] for name, array in known.missing.items()},
        )
        found = decode_content_stats(stored.column(0).combine_chunks(), wanted, np.arange(len(live)))
        cells = [build_known_cells(one, wanted, counts) for one in (found, expected)]
        assert are_same(*cells)


@pytest.fixture(scope="module")
def payload() -> bytes:
    table = write_table(3, 4)
    return write_manifest_statistics(only_manifests(table), roll_up(table, table.manifests), COLUMNS)


@settings(max_examples=300)
@given(st.integers(0, 99_999), st.integers(1, 255), st.integers(0, 4))
def test_damaged_manifest_statistics_are_refused_or_still_a_roll_up(
    payload: bytes, place: int, flipped: int, cut: int
) -> None:
    """Whatever is changed or cut off: an error of the package's own, or a cell for each manifest and column."""
    place = place % len(payload)
    damaged = bytearray(payload[: len(payload) - (cut if cut < 4 else place)])
    if place < len(damaged):
        damaged[place] ^= flipped
    try:
        found = ManifestStatistics(bytes(damaged), "blob", 1_000)
        cells = found.build_cells(COLUMNS)
    except (MetadataError, UnsupportedError):
        return
    assert len(cells) == len(found.manifests) * len(COLUMNS)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, int, bool, str, bool]:
    count = draw(st.integers(1, 6))
    return (
        draw(st.integers(0, 2**32 - 1)),
        count,
        draw(st.integers(0, count)),
        draw(st.booleans()),
        draw(st.sampled_from(["parquet", "avro"])),
        draw(st.booleans()),
    )


def compute(
    table: WrittenTable, metadata: TableMetadata, manifests: Sequence[ManifestToRead], columns: Sequence[Field]
) -> SnapshotPartitions:
    files = write_list(table, manifests, f"list-{len(manifests)}.avro")
    snapshot = metadata.snapshots[metadata.current_snapshot_id or 0]
    return read_snapshot_partitions(
        metadata, table, snapshot, files, columns, lambda: read_rollups(manifests, metadata, table, threads=1)
    )


@settings(max_examples=60)
@given(histories())
def test_adding_to_an_ancestors_file_gives_what_all_manifests_give(history: tuple[Any, ...]) -> None:
    """Rows, figures, what is unknown: equal in every cell as stored, for both formats, or all manifests are read."""
    seed, count, kept, with_columns, file_format, expire = history
    table = write_table(seed, count)
    columns = COLUMNS if with_columns else ()
    before = replace(METADATA, current_snapshot_id=100, format_version=3)
    old = table.manifests[:kept]
    first = compute(table, before, old, columns)
    if any(column.type is None for column in first.partition):
        with pytest.raises(UnsupportedError, match="source column is gone"):
            build_stored_table(first.statistics, first.partition, 3)
        return
    stored = build_stored_table(first.statistics, first.partition, 3)
    path = f"stats.{file_format}"
    table.files[path] = write_stored_table(stored, first.partition, file_format)
    write_list(table, old, "list-100.avro")
    snapshots = {i: s for i, s in METADATA.snapshots.items() if not (expire and i == 101)}
    snapshots[100] = replace(snapshots[100], manifest_list="list-100.avro")
    snapshots[103] = replace(snapshots[103], parent_snapshot_id=100)
    file = PartitionStatisticsFile(100, path, len(table.files[path]))
    after = replace(before, current_snapshot_id=103, snapshots=snapshots, partition_statistics=(file,))
    added = compute(table, after, table.manifests, columns)
    full = compute(table, replace(after, partition_statistics=()), table.manifests, columns)
    tables = [build_stored_table(found.statistics, found.partition, 3) for found in (added, full)]
    assert are_same(*tables)
    named = {row for row in first.statistics.groups["last_updated_snapshot_id"].to_pylist() if row is not None}
    # Only a file with columns says when files were added.
    named |= added_ids(first) if with_columns else set()
    assert (added.base_snapshot_id == 100) == (not expire or 101 not in named)
    assert added.manifests_read == (count - kept if added.base_snapshot_id else count)


def added_ids(found: SnapshotPartitions) -> set[int]:
    return {i for i in found.statistics.groups["last_added_snapshot_id"].to_pylist() if i is not None}
