"""Roll-ups of the parts of a table, merged in any order, are the roll-up of the table."""

from __future__ import annotations

import io
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.commit.manifest_statistics_blob import write_manifest_statistics
from icestats.commit.partition_statistics_file import build_stored_table, write_stored_table
from icestats.errors import UnsupportedError
from icestats.metadata import (
    Field,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Schema,
    Snapshot,
    TableMetadata,
)
from icestats.read.manifest_list import read_manifest_list
from icestats.read.manifest_statistics import ManifestStatistics
from icestats.read.manifests import ManifestToRead, RollUps, read_rollups
from icestats.read.partition_history import SnapshotPartitions, read_snapshot_partitions
from icestats.read.rollup_merge import merge_groups_cells, merge_rollups
from icestats.rollup_tables import build_column_table, build_manifests
from icestats.schemas import MANIFEST_FILES
from icestats.types import encode_value

COLUMNS = (
    Field(1, "a_long", "long", True, True),
    Field(2, "an_int", "int", False, True),
    Field(3, "a_double", "double", False, True),
    Field(4, "a_float", "float", False, True),
    Field(5, "a_string", "string", False, True),
    Field(6, "a_decimal", "decimal(30, 4)", False, True),
    Field(7, "a_date", "date", False, True),
    Field(8, "a_boolean", "boolean", False, True),
    Field(9, "a_binary", "binary", False, True),
    Field(10, "a_uuid", "uuid", False, True),
)
DROPPED = 99
SPECS = {
    0: PartitionSpec(0, (PartitionField(1000, 3, "a_double", "identity"),)),
    1: PartitionSpec(1, (PartitionField(1001, 5, "a_string", "identity"), PartitionField(1002, 1, "b", "bucket[4]"))),
    2: PartitionSpec(2, ()),
    3: PartitionSpec(
        3, (PartitionField(1003, 6, "a_decimal", "identity"), PartitionField(1000, 3, "a_double", "void"))
    ),
    4: PartitionSpec(
        4, (PartitionField(1004, DROPPED, "gone", "identity"), PartitionField(1005, 8, "yes", "identity"))
    ),
}
PARTITION_AVRO: dict[int, Any] = {
    1000: "double",
    1001: "string",
    1002: "int",
    1003: {"type": "fixed", "name": "r1003", "size": 13, "logicalType": "decimal", "precision": 30, "scale": 4},
    1004: {"type": "int", "logicalType": "date"},
    1005: "boolean",
}
SNAPSHOTS = {100: 1_000, 101: 3_000, 102: 2_000, 103: 3_000}
METADATA = TableMetadata(
    format_version=2,
    table_uuid="",
    location="",
    last_updated_ms=0,
    schemas={0: Schema(0, COLUMNS)},
    current_schema_id=0,
    specs=SPECS,
    default_spec_id=0,
    snapshots={i: Snapshot(i, None, 0, ms, None, (), 0, {}) for i, ms in SNAPSHOTS.items()},
    current_snapshot_id=103,
    refs={},
    properties={},
    statistics=(),
    partition_statistics=(),
    snapshot_log=(),
)
METRICS = {
    ("column_sizes", 108, 117): "long",
    ("value_counts", 109, 119): "long",
    ("null_value_counts", 110, 121): "long",
    ("nan_value_counts", 137, 138): "long",
    ("lower_bounds", 125, 126): "bytes",
    ("upper_bounds", 128, 129): "bytes",
}
"""Name, field id and that of the keys (of the values: one more) to the type of the values."""


def optional(name: str, field_id: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": ["null", kind], "default": None}


def metric(name: str, field_id: int, key_id: int, value: str) -> dict[str, Any]:
    pair = [{"name": "key", "field-id": key_id, "type": "int"}]
    pair.append({"name": "value", "field-id": key_id + 1, "type": value})
    items = {"type": "record", "name": f"k_{field_id}", "fields": pair}
    return optional(name, field_id, {"type": "array", "logicalType": "map", "items": items})


def avro_schema(spec: PartitionSpec) -> dict[str, Any]:
    partition = [optional(f.name, f.field_id, PARTITION_AVRO[f.field_id]) for f in spec.fields]
    data_file = [
        {"name": "content", "field-id": 134, "type": "int"},
        {"name": "file_path", "field-id": 100, "type": "string"},
        {"name": "file_format", "field-id": 101, "type": "string"},
        {"name": "partition", "field-id": 102, "type": {"type": "record", "name": "r102", "fields": partition}},
        {"name": "record_count", "field-id": 103, "type": "long"},
        {"name": "file_size_in_bytes", "field-id": 104, "type": "long"},
        *(metric(*names, value) for names, value in METRICS.items()),
    ]
    entry = [
        {"name": "status", "field-id": 0, "type": "int"},
        optional("snapshot_id", 1, "long"),
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": data_file}},
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


REALS = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, -1.5, 5e-324, 1.7e308)
WORDS = ("", "a", "ab", "é", "z" * 40, "z" * 41, "\U0001f600")
DECIMALS = (Decimal(0), Decimal("-0.0001"), Decimal("12.8"), Decimal(-12), Decimal(10**25), Decimal(-(10**25)))


def bound(rng: random.Random, column: Field) -> bytes:
    if column.type in ("float", "double"):
        value = rng.choice(REALS[:8])
        # A file from before a promotion has the narrower value.
        return struct.pack("<f" if column.type == "float" or rng.random() < 0.3 else "<d", value)
    if column.name == "a_long" and rng.random() < 0.3:
        return struct.pack("<i", rng.choice([-1, 0, 2**31 - 1]))
    return {
        "long": lambda: struct.pack("<q", rng.choice([0, -1, 2**63 - 1, -(2**63)])),
        "int": lambda: struct.pack("<i", rng.choice([0, -1, 2**31 - 1])),
        "date": lambda: struct.pack("<i", rng.choice([-1, 20_000])),
        "string": lambda: rng.choice(WORDS).encode(),
        "binary": lambda: rng.choice([b"", b"\x00", b"\xff\xff", rng.randbytes(20)]),
        "boolean": lambda: rng.choice([b"\x00", b"\x01"]),
        "uuid": lambda: rng.choice([b"\x00", b"\x7f", b"\x80", b"\xff"]) + bytes(15),
        "decimal(30, 4)": lambda: encode_value("decimal(30, 4)", rng.choice(DECIMALS)),
    }[column.type]()


def metrics(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (name, *_), kind in METRICS.items():
        known = [column for column in COLUMNS if rng.random() < 0.7]
        pairs = [
            {"key": c.field_id, "value": bound(rng, c) if kind == "bytes" else rng.choice([0, 3, 2**40])} for c in known
        ]
        found[name] = None if rng.random() < 0.1 else pairs
    return found


def partition(rng: random.Random, spec: PartitionSpec) -> dict[str, Any]:
    choices: dict[int, Any] = {
        1000: REALS,
        1001: WORDS,
        1002: (0, 3),
        1003: DECIMALS,
        1004: (-1, 9),
        1005: (True, False),
    }
    return {
        f.name: None if f.transform == "void" or rng.random() < 0.2 else rng.choice(choices[f.field_id])
        for f in spec.fields
    }


def entry(rng: random.Random, spec: PartitionSpec, content: int) -> dict[str, Any]:
    data_file = {
        "content": content,
        "file_path": f"s3://bucket/{rng.random()}",
        "file_format": "PUFFIN" if content == 1 and rng.random() < 0.5 else "PARQUET",
        "partition": partition(rng, spec),
        "record_count": rng.choice([0, 1, 10**12]),
        "file_size_in_bytes": rng.choice([1, 2**40]),
        **metrics(rng),
    }
    return {"status": rng.choice([0, 1, 2]), "snapshot_id": rng.choice([None, *SNAPSHOTS, 999]), "data_file": data_file}


@dataclass
class WrittenTable:
    manifests: list[ManifestToRead] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.files[location][offset:][:length]

    def size(self, location: str) -> int:
        return len(self.files[location])


def write_table(seed: int, count: int) -> WrittenTable:
    rng = random.Random(seed)
    table = WrittenTable()
    for index in range(count):
        spec = SPECS[rng.randrange(len(SPECS))]
        content = rng.choice([0, 0, 0, 1])
        rows = [entry(rng, spec, content and rng.choice([1, 2])) for _ in range(rng.randint(0, 8))]
        stream = io.BytesIO()
        fastavro.writer(stream, avro_schema(spec), rows, codec="deflate")
        path = f"m{index}.avro"
        table.files[path] = stream.getvalue()
        kind = "deletes" if content else "data"
        added = rng.choice([None, 102])
        table.manifests.append(ManifestToRead(path, len(stream.getvalue()), spec.spec_id, kind, 1, added))
    return table


def differing(first: RollUps, second: RollUps) -> list[str]:
    return [f.name for f in fields(RollUps) if not are_same(getattr(first, f.name), getattr(second, f.name))]


def are_same(first: pa.Table, second: pa.Table) -> bool:
    # As text NaN is NaN, and -0.0 is not 0.0.
    return first.schema.equals(second.schema) and repr(first.to_pylist()) == repr(second.to_pylist())


def roll_up(table: WrittenTable, manifests: list[ManifestToRead]) -> RollUps:
    return read_rollups(manifests, METADATA, table, threads=1)


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.data())
def test_parts_in_any_split_and_order_are_the_whole(seed: int, count: int, data: st.DataObject) -> None:
    """Every table of the merged roll-ups equals that of the whole, to the type and the bit."""
    table = write_table(seed, count)
    order = data.draw(st.permutations(table.manifests))
    numbers = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    groups = [[m for m, number in zip(order, numbers, strict=True) if number == part] for part in range(4)]
    parts = [roll_up(table, group) for group in groups if group]
    paths = [manifest.path for manifest in table.manifests]
    whole = roll_up(table, table.manifests)
    assert differing(merge_rollups(parts, COLUMNS, paths), whole) == []


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_what_was_merged_can_be_merged_again(seed: int) -> None:
    """Adding one manifest after the other, as commits do, gives the whole too."""
    table = write_table(seed, 5)
    merged = roll_up(table, table.manifests[:1])
    for done in range(1, 5):
        paths = [manifest.path for manifest in table.manifests[: done + 1]]
        merged = merge_rollups([merged, roll_up(table, table.manifests[done : done + 1])], COLUMNS, paths)
    assert differing(merged, roll_up(table, table.manifests)) == []


def test_these_tables_have_what_is_hard_to_merge() -> None:
    """The generated tables do have partitions and bounds that several parts dispute."""
    table = write_table(1, 60)
    parts = [roll_up(table, [manifest]) for manifest in table.manifests]
    whole = roll_up(table, table.manifests)
    assert sum(len(part.partitions) for part in parts) > 2 * len(whole.partitions)
    values = {repr(row["a_double"]) for row in whole.partitions["partition"].to_pylist()}
    assert values >= {"0.0", "-0.0", "inf", "-inf", "nan", "None"}
    assert {spec_id.as_py() for spec_id in whole.partitions["spec_id"]} == set(SPECS)
    lower = whole.partition_cells["lower_bound"].to_pylist()
    assert struct.pack("<d", -0.0) in lower
    assert None in lower


def test_a_sum_beyond_64_bits_is_an_error_and_no_number() -> None:
    table = write_table(3, 6)
    parts = [roll_up(table, [manifest]) for manifest in table.manifests]
    index = parts[0].table_cells.column_names.index("column_size")
    for i, part in enumerate(parts):
        cells = part.table_cells
        huge = cells.column(index).to_pylist()
        huge[0] = 2**62
        cells = cells.set_column(index, cells.schema.field(index), [huge])
        parts[i] = RollUps(part.manifests, part.manifest_cells, part.partitions, part.partition_cells, cells)
    with pytest.raises(UnsupportedError, match="64 bits"):
        merge_rollups(parts, COLUMNS, [manifest.path for manifest in table.manifests])


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
