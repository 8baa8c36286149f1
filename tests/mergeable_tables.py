"""Tables that are hard to merge: manifests of several specs whose files share partitions and dispute bounds."""

from __future__ import annotations

import io
import math
import random
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from icestats.iceberg.metadata import Field, PartitionField, PartitionSpec, Schema, Snapshot, TableMetadata
from icestats.iceberg.types import encode_value
from icestats.read.manifests.manifests import ManifestToRead, RollUps, read_rollups

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


def are_same(first: pa.Table, second: pa.Table) -> bool:
    # As text NaN is NaN, and -0.0 is not 0.0.
    return first.schema.equals(second.schema) and repr(first.to_pylist()) == repr(second.to_pylist())


def roll_up(table: WrittenTable, manifests: list[ManifestToRead]) -> RollUps:
    return read_rollups(manifests, METADATA, table, threads=1)
