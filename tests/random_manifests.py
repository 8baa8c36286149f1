"""Manifests of random entries: metrics given or left out, bounds of every width, partitions of three specs."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass, field
from typing import Any

from icestats.iceberg.metadata import Field, PartitionField, PartitionSpec
from icestats.iceberg.metadata_json import build_metadata
from icestats.read.manifests.manifests import ManifestToRead
from tests.manifest_writer import METRICS, Writer

COLUMNS = (
    Field(1, "a_long", "long", True, True),
    Field(2, "an_int", "int", False, True),
    Field(3, "a_double", "double", False, True),
    Field(4, "a_float", "float", False, True),
    Field(5, "a_string", "string", False, True),
    Field(6, "a_decimal", "decimal(30, 4)", False, True),
    Field(7, "a_date", "date", False, True),
    Field(8, "a_timestamp", "timestamp", False, True),
    Field(9, "a_boolean", "boolean", False, True),
    Field(10, "a_uuid", "uuid", False, True),
    Field(11, "a_fixed", "fixed[5]", False, True),
    Field(70_001, "a_binary", "binary", False, True),
    Field(2_000_000_000, "a_geometry", "geometry", False, True),
    Field(13, "a_time", "time", False, True),
)
SPECS = {
    0: PartitionSpec(
        0, (PartitionField(1000, 7, "a_date", "identity"), PartitionField(1001, 5, "letter", "truncate[1]"))
    ),
    1: PartitionSpec(
        1, (PartitionField(1001, 5, "letter", "truncate[1]"), PartitionField(1002, 1, "bucket", "bucket[4]"))
    ),
    2: PartitionSpec(2, ()),
}
SNAPSHOTS = {100: 1_000, 101: 3_000, 102: 2_000, 103: 3_000}
METADATA = build_metadata(
    {
        "format-version": 3,
        "location": "s3://bucket/table",
        "schemas": [
            {
                "schema-id": 0,
                "fields": [{"id": c.field_id, "name": c.name, "type": c.type, "required": False} for c in COLUMNS],
            }
        ],
        "current-schema-id": 0,
        "partition-specs": [
            {
                "spec-id": spec.spec_id,
                "fields": [
                    {"field-id": f.field_id, "source-id": f.source_id, "name": f.name, "transform": f.transform}
                    for f in spec.fields
                ],
            }
            for spec in SPECS.values()
        ],
        "snapshots": [{"snapshot-id": i, "timestamp-ms": ms} for i, ms in SNAPSHOTS.items()],
    },
    "v1.metadata.json",
)


def bound(rng: random.Random, kind: str) -> bytes:
    """A bound as some writer may have left it: current or promoted width, now and then of no valid length."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.choice([0, 3, 7, 17, 33]))
    small = struct.pack("<i", rng.choice([0, 1, -1, rng.randint(-(2**31), 2**31 - 1)]))
    large = struct.pack("<q", rng.choice([0, 1, -1, rng.randint(-(2**63), 2**63 - 1)]))
    real = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, -1.5, rng.gauss(0, 1e3)])
    if kind.startswith("decimal"):
        number = rng.choice([0, -1, 127, 128, -128, -129, rng.randint(-(10**30), 10**30), rng.randint(-(2**63), 2**63)])
        size = (number.bit_length() + 8) // 8 + rng.choice([0, 0, 0, 1, 12])
        return number.to_bytes(size, "big", signed=True)
    return {
        "long": rng.choice([small, large]),
        "int": small,
        "date": small,
        "time": large,
        "timestamp": rng.choice([small, large]),
        "double": rng.choice([struct.pack("<d", real), struct.pack("<f", real)]),
        "float": struct.pack("<f", real),
        "boolean": rng.choice([b"\x00", b"\x01"]),
        "uuid": bytes([rng.choice([0, 127, 128, 255])]) + bytes(14) + bytes([rng.randrange(256)]),
        "fixed[5]": rng.randbytes(rng.choice([5, 5, 2])),
        "geometry": rng.randbytes(16),
    }.get(kind, b"prefix of sixteen "[: rng.choice([0, 3, 15, 16, 17, 18])] + rng.randbytes(rng.choice([0, 1, 2, 30])))


def metrics(rng: random.Random) -> dict[str, list[tuple[int, Any]] | None]:
    out: dict[str, list[tuple[int, Any]] | None] = {}
    values = {c.field_id: rng.choice([0, 1, 5, 1000]) for c in COLUMNS}
    for name in METRICS:
        if rng.random() < 0.15:
            out[name] = None
            continue
        items: list[tuple[int, Any]] = []
        for column in COLUMNS:
            if rng.random() < 0.2:
                continue
            if name.endswith("bounds"):
                items.append((column.field_id, bound(rng, column.type)))
            elif name == "column_sizes":
                items.append((column.field_id, rng.choice([0, 7, 2**40, -1])))
            else:
                items.append((column.field_id, values[column.field_id] if rng.random() < 0.7 else rng.randint(0, 5)))
        items.append((rng.choice([999, 65_536, 2_147_483_546]), b"" if name.endswith("bounds") else 3))
        if rng.random() < 0.2:
            items += items[:2]
        rng.shuffle(items)
        out[name] = items
    return out


def partition(rng: random.Random, spec: PartitionSpec) -> dict[str, Any]:
    values = {1000: [None, -5, 0, 20_000], 1001: [None, "", "a", "é"], 1002: [None, 0, 3]}
    return {f.name: rng.choice(values[f.field_id]) for f in spec.fields}


def entry(rng: random.Random, spec: PartitionSpec, number: int) -> dict[str, Any]:
    content = rng.choice([0, 0, 0, 0, 1, 2])
    data_file = {
        "content": content if content or rng.random() < 0.5 else None,
        "file_path": f"s3://bucket/é/{number}",
        "file_format": "PUFFIN" if content == 1 and rng.random() < 0.5 else "PARQUET",
        "partition": partition(rng, spec),
        "record_count": rng.choice([0, 1, 10**12]),
        "file_size_in_bytes": rng.randint(0, 2**40),
        "sort_order_id": rng.choice([None, 0, 3]),
        "split_offsets": rng.choice([None, [], [4], [4, 2**33]]),
        "equality_ids": [1, 2] if content == 2 else None,
        "referenced_data_file": rng.choice([None, "s3://x"]),
        "content_offset": rng.choice([None, 4]),
        "content_size_in_bytes": rng.choice([None, 2**33]),
        "first_row_id": rng.choice([None, None, 77]),
        "key_metadata": rng.choice([None, b"", b"\x00key"]),
        **metrics(rng),
    }
    return {
        "status": rng.choice([0, 1, 1, 2]),
        "snapshot_id": rng.choice([None, *SNAPSHOTS, 999]),
        "sequence_number": rng.choice([None, 5]),
        "file_sequence_number": rng.choice([None, 4]),
        "data_file": data_file,
    }


@dataclass
class Case:
    manifests: list[ManifestToRead] = field(default_factory=list)
    entries: list[list[dict[str, Any]]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.files[location][offset:][:length]

    def size(self, location: str) -> int:
        return len(self.files[location])


def build_case(seed: int) -> Case:
    rng = random.Random(seed)
    case = Case()
    for index in range(rng.randint(1, 4)):
        spec = SPECS[rng.randrange(3)]
        rows = [entry(rng, spec, 100 * index + i) for i in range(rng.randint(0, 12))]
        writer = Writer(rng)

        def has(name: str, rows: list[dict[str, Any]] = rows) -> bool:
            return any(row.get(name) is not None or row["data_file"].get(name) is not None for row in rows)

        node = writer.entry(spec, has)
        data = writer.file(node, rows)
        path = f"m{index}.avro"
        case.files[path] = data
        case.entries.append(rows)
        case.manifests.append(
            ManifestToRead(
                path,
                len(data),
                spec.spec_id,
                "data",
                rng.choice([0, 9]),
                rng.choice([None, 102]),
                rng.choice([None, 1_000]),
            )
        )
    return case
