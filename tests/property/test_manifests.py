"""Manifests of random writer schemas, codecs and entries, against a slow reading of the same entries in Python."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import math
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cramjam
import fastavro
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.metadata import Field, PartitionField, PartitionSpec
from icestats.metadata_json import build_metadata
from icestats.read import group_store
from icestats.read.manifests import ManifestToRead, read_files, read_rollups

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
PARTITION_AVRO = {1000: {"type": "int", "logicalType": "date"}, 1001: "string", 1002: "int"}
SNAPSHOTS = {100: 1_000, 101: 3_000, 102: 2_000, 103: 3_000}
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
METRIC_IDS = {108: (117, 118), 109: (119, 120), 110: (121, 122), 137: (138, 139), 125: (126, 127), 128: (129, 130)}
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


# Avro: a schema together with the function that encodes its values ----------------------------------------------------


@dataclass
class Node:
    schema: Any
    encode: Callable[[Any], bytes]


def long(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return long(len(raw)) + raw


PRIMITIVES: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"",
    "boolean": lambda v: bytes([v]),
    "int": long,
    "long": long,
    "float": lambda v: struct.pack("<f", v),
    "double": lambda v: struct.pack("<d", v),
    "bytes": text,
    "string": text,
}


class Writer:
    """Random but valid choices of how a manifest is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def plain(self, schema: Any) -> Node:
        return Node(schema, PRIMITIVES[schema["type"] if isinstance(schema, dict) else schema])

    def maybe_union(self, node: Node) -> Node:
        """A required value may be written as a union of one branch."""
        if self.rng.random() < 0.1:
            return Node([node.schema], lambda v: long(0) + node.encode(v))
        return node

    def optional(self, node: Node) -> Node:
        if self.rng.random() < 0.5:
            return Node(["null", node.schema], lambda v: long(0) if v is None else long(1) + node.encode(v))
        return Node([node.schema, "null"], lambda v: long(1) if v is None else long(0) + node.encode(v))

    def blocks(self, items: list[bytes]) -> bytes:
        """Items of an array or map, in blocks with and without their length."""
        out = b""
        while items:
            size = self.rng.randint(1, len(items))
            part = b"".join(items[:size])
            out += long(-size) + long(len(part)) + part if self.rng.random() < 0.3 else long(size) + part
            items = items[size:]
        return out + long(0)

    def array(self, item: Node, **more: Any) -> Node:
        return Node({"type": "array", "items": item.schema, **more}, lambda v: self.blocks([item.encode(x) for x in v]))

    def record(self, fields: list[tuple[str, int | None, Node]]) -> Node:
        self.rng.shuffle(fields)
        schema = {
            "type": "record",
            "name": self.name(),
            "fields": [
                {"name": name, "type": node.schema, **({} if i is None else {"field-id": i})}
                for name, i, node in fields
            ],
        }
        return Node(schema, lambda v: b"".join(node.encode(v.get(name)) for name, _, node in fields))

    def constant(self, node: Node, value: Any) -> Node:
        return Node(node.schema, lambda _: node.encode(value))

    def unknown(self, depth: int = 2) -> Node:
        """A field that no spec knows, of any type, with a random value."""
        rng = self.rng
        simple = {
            "null": None,
            "boolean": True,
            "int": rng.randint(-(2**31), 2**31 - 1),
            "long": rng.randint(-(2**63), 2**63 - 1),
            "float": 1.5,
            "double": -2.5,
            "bytes": rng.randbytes(rng.randint(0, 20)),
            "string": "é" * rng.randint(0, 9),
        }
        kind = rng.choice([*simple, "fixed", "enum", "array", "map", "record", "union"] if depth else list(simple))
        if kind in simple:
            return self.constant(self.plain(kind), simple[kind])
        if kind == "fixed":
            size = rng.randint(0, 9)
            return Node({"type": "fixed", "name": self.name(), "size": size}, lambda _: bytes(size))
        if kind == "enum":
            return Node({"type": "enum", "name": self.name(), "symbols": ["A", "B"]}, lambda _: long(1))
        inner = self.unknown(depth - 1)
        count = rng.randint(0, 4)
        if kind == "array":
            return self.constant(self.array(inner), [None] * count)
        if kind == "map":
            items = [text(f"key{i}") + inner.encode(None) for i in range(count)]
            return Node({"type": "map", "values": inner.schema}, lambda _: self.blocks(list(items)))
        if kind == "record":
            fields = [(f"f{i}", rng.choice([None, 103, 2]), self.unknown(depth - 1)) for i in range(count)]
            return self.constant(self.record(fields), {})
        if inner.schema == "null" or isinstance(inner.schema, list):
            return inner
        return self.constant(self.optional(inner), rng.choice([None, True]))

    def metric(self, field_id: int) -> Node:
        """A metrics map: an array of records whose fields may be in any order, with one that nobody knows."""
        key_id, value_id = METRIC_IDS[field_id]
        value = self.plain("bytes" if field_id in (125, 128) else "long")
        key = self.plain(self.rng.choice(["int", "long"]))
        fields = [("key", key_id, key), ("value", value_id, value)]
        if self.rng.random() < 0.5:
            schema = {
                "type": "record",
                "name": self.name(),
                "fields": [{"name": n, "type": node.schema, "field-id": i} for n, i, node in fields],
            }
            item = Node(schema, lambda v: key.encode(v["key"]) + value.encode(v["value"]))
        else:
            if self.rng.random() < 0.5:
                fields.append(("unknown", None, self.unknown(1)))
            if self.rng.random() < 0.3:
                fields[1] = ("value", value_id, self.optional(value))
            item = self.record(fields)
        node = self.array(item, logicalType="map")
        return Node(node.schema, lambda v: node.encode([{"key": a, "value": b} for a, b in v]))

    def entry(self, spec: PartitionSpec, has: Callable[[str], bool]) -> Node:
        def option(name: str, field_id: int, node: Node) -> list[tuple[str, int | None, Node]]:
            return [(name, field_id, self.optional(node))] if has(name) or self.rng.random() < 0.5 else []

        number = self.plain
        partition = self.record(
            [(f.name, f.field_id, self.optional(self.plain(PARTITION_AVRO[f.field_id]))) for f in spec.fields]
        )
        files: list[tuple[str, int | None, Node]] = [
            ("file_path", 100, self.maybe_union(number("string"))),
            ("file_format", 101, number("string")),
            ("partition", 102, self.maybe_union(partition)),
            ("record_count", 103, self.maybe_union(number("long"))),
            ("file_size_in_bytes", 104, number("long")),
            *option("content", 134, number("int")),
            *option("sort_order_id", 140, number("int")),
            *option("split_offsets", 132, self.array(number("long"))),
            *option("equality_ids", 135, self.array(number("int"))),
            *option("referenced_data_file", 143, number("string")),
            *option("content_offset", 144, number("long")),
            *option("content_size_in_bytes", 145, number("long")),
            *option("first_row_id", 142, number("long")),
            *option("key_metadata", 131, number("bytes")),
        ]
        for name, field_id in zip(METRICS, METRIC_IDS, strict=True):
            files += option(name, field_id, self.metric(field_id))
        entries: list[tuple[str, int | None, Node]] = [
            ("status", 0, number("int")),
            *option("snapshot_id", 1, number("long")),
            *option("sequence_number", 3, number("long")),
            *option("file_sequence_number", 4, number("long")),
        ]
        for fields in (files, entries):
            for _ in range(self.rng.randint(0, 2)):
                fields.append((f"unknown{len(fields)}", self.rng.choice([None, 9_999]), self.unknown()))
        data_file = self.record(files)
        entries.append(("data_file", 2, data_file))
        return self.record(entries)

    def file(self, node: Node, rows: list[Any]) -> bytes:
        codec = self.rng.choice(list(CODECS))
        sync = self.rng.randbytes(16)
        meta = {"avro.schema": json.dumps(node.schema).encode(), "avro.codec": codec.encode(), "content": b"data"}
        out = b"Obj\x01" + long(len(meta)) + b"".join(text(a) + text(b) for a, b in meta.items()) + b"\x00" + sync
        while rows:
            size = self.rng.randint(1, len(rows))
            packed = CODECS[codec](b"".join(node.encode(row) for row in rows[:size]))
            out += long(size) + long(len(packed)) + packed + sync
            rows = rows[size:]
        return out


def deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush()


def zstandard_stream(data: bytes) -> bytes:
    engine = zstandard.ZstdCompressor().compressobj()
    return engine.compress(data) + engine.flush()


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflate,
    "zstandard": zstandard_stream,
    "snappy": lambda d: bytes(cramjam.snappy.compress_raw(d)) + zlib.crc32(d).to_bytes(4, "big"),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


# Entries --------------------------------------------------------------------------------------------------------------


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


# The slow way --------------------------------------------------------------------------------------------------------


def order_of(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    """What a bound compares by, and its bytes in the current type; None for no bound."""
    if kind in ("float", "double"):
        return order_of_real(kind, raw)
    if kind.startswith("decimal"):
        number = int.from_bytes(raw, "big", signed=True)
        length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
        return (number, number.to_bytes(length, "big", signed=True)) if raw and length <= 16 else None
    if kind == "boolean":
        return (raw != b"\x00", bytes([raw != b"\x00"])) if len(raw) == 1 else None
    if kind in INTEGER_SIZES:
        return order_of_integer(kind, raw)
    valid = {"uuid": len(raw) == 16, "fixed[5]": len(raw) <= 5, "geometry": False}.get(kind, True)
    return (raw, raw) if valid else None


INTEGER_SIZES = {"int": (4,), "date": (4,), "long": (8, 4), "time": (8,), "timestamp": (8, 4)}


def order_of_integer(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    if len(raw) not in INTEGER_SIZES[kind]:
        return None
    number = int.from_bytes(raw, "little", signed=True)
    if kind == "timestamp" and len(raw) == 4:
        number *= 86_400_000_000
    fits = -(2**63) <= number < 2**63
    return (number, number.to_bytes(INTEGER_SIZES[kind][0], "little", signed=True)) if fits else None


def order_of_real(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    if len(raw) != 4 and not (kind == "double" and len(raw) == 8):
        return None
    value = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
    if math.isnan(value):
        return None
    return (value, math.copysign(1, value)), struct.pack("<f" if kind == "float" else "<d", value)


def slow_cell(files: list[dict[str, Any]], column: Field) -> dict[str, Any]:
    cell: dict[str, Any] = {"field_id": column.field_id, "valueless_file_count": 0}
    maps = [{name: dict(f[name] or []) for name in METRICS} for f in files]
    for name in METRICS[:4]:
        found = [m[name][column.field_id] for m in maps if m[name].get(column.field_id, -1) >= 0]
        cell[name[:-1]] = sum(found)
        cell[f"{name[:-1]}_file_count"] = len(found)
    for name, best in (("lower_bounds", min), ("upper_bounds", max)):
        raw = [order_of(column.type, m[name][column.field_id]) for m in maps if column.field_id in m[name]]
        keys = [k for k in raw if k is not None]
        cell[name[:-1]] = best(keys)[1] if keys else None
        cell[f"{name[:-1]}_file_count"] = len(keys)
    for m in maps:
        counts = {name: m[name].get(column.field_id, -1) for name in METRICS[1:4]}
        bounds = [order_of(column.type, m[n][column.field_id]) for n in METRICS[4:] if column.field_id in m[n]]
        if all(b is None for b in bounds) and counts["value_counts"] >= 0:
            nothing = max(counts["null_value_counts"], 0) + max(counts["nan_value_counts"], 0)
            cell["valueless_file_count"] += counts["value_counts"] == nothing
    return cell


def live(case: Case) -> list[tuple[int, ManifestToRead, dict[str, Any]]]:
    return [
        (i, manifest, row)
        for i, (manifest, rows) in enumerate(zip(case.manifests, case.entries, strict=True))
        for row in rows
        if row["status"] != 2
    ]


def is_data(row: dict[str, Any]) -> bool:
    return not row["data_file"]["content"]


def slow_partitions(case: Case) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    groups: dict[tuple[Any, ...], list[tuple[ManifestToRead, dict[str, Any]]]] = {}
    for _, manifest, row in live(case):
        values = row["data_file"]["partition"]
        key = (*(values.get(name) for name in ("a_date", "letter", "bucket")), manifest.spec_id)
        groups.setdefault(key, []).append((manifest, row))
    out = []
    for key in sorted(groups, key=lambda k: tuple((v is not None, v.encode() if isinstance(v, str) else v) for v in k)):
        files = [(row["data_file"], row) for _, row in groups[key]]
        of = {c: [f for f, _ in files if (f["content"] or 0) == c] for c in (0, 1, 2)}
        vectors = [f for f in of[1] if f["file_format"] == "PUFFIN"]
        ids = [m.added_snapshot_id if r["snapshot_id"] is None else r["snapshot_id"] for m, r in groups[key]]
        latest = max(((SNAPSHOTS[i], i) for i in ids if i in SNAPSHOTS), default=(None, None))
        group = {
            "key": key,
            "data_record_count": sum(f["record_count"] for f in of[0]),
            "data_file_count": len(of[0]),
            "total_data_file_size_in_bytes": sum(f["file_size_in_bytes"] for f in of[0]),
            "position_delete_record_count": sum(f["record_count"] for f in of[1]),
            "position_delete_file_count": len(of[1]) - len(vectors),
            "equality_delete_record_count": sum(f["record_count"] for f in of[2]),
            "equality_delete_file_count": len(of[2]),
            "dv_count": len(vectors),
            "last_updated_snapshot_id": latest[1],
        }
        out.append((group, of[0]))
    return out


def cells_of(table: Any, group: int) -> list[dict[str, Any]]:
    return table.slice(group * len(COLUMNS), len(COLUMNS)).to_pylist()


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(SEEDS)
def test_what_these_tests_write_is_avro(seed: int) -> None:
    """fastavro reads the files of these tests as the entries that they were written from."""
    case = build_case(seed)
    for path, rows in zip(case.files, case.entries, strict=True):
        if b"zstandard" in case.files[path][:20_000]:
            continue  # fastavro takes only another package for this codec
        read: list[Any] = list(fastavro.reader(io.BytesIO(case.files[path])))
        assert [r["status"] for r in read] == [r["status"] for r in rows]
        assert [r["data_file"]["file_path"] for r in read] == [r["data_file"]["file_path"] for r in rows]


@pytest.mark.parametrize("crowded", [False, True])
@settings(max_examples=100)
@given(SEEDS)
def test_roll_ups_equal_the_slow_way(crowded: bool, seed: int) -> None:
    """Every figure of every manifest, partition and column equals what a plain reading of the entries gives.

    Crowded: accumulators have room for two groups and hardly any bound, so that they are emptied and grow all the time.
    """
    case = build_case(seed)
    with pytest.MonkeyPatch.context() as patch:
        if crowded:
            patch.setattr(group_store, "LOCAL_SIZE", 1)
            patch.setattr(group_store, "LOCAL_GROUPS", 2)
            patch.setattr(group_store, "WHOLE_GROUPS", 1)
            patch.setattr(group_store, "ARENA_SIZE", 1)
        rollups = read_rollups(case.manifests, METADATA, case, threads=2)
    rows = rollups.manifests.to_pylist()
    for i in range(len(case.manifests)):
        mine = [row for j, _, row in live(case) if j == i]
        assert rows[i]["live_file_count"] == len(mine)
        assert rows[i]["record_count"] == sum(r["data_file"]["record_count"] for r in mine)
        assert rows[i]["file_size_in_bytes"] == sum(r["data_file"]["file_size_in_bytes"] for r in mine)
        data = [row["data_file"] for row in mine if is_data(row)]
        assert cells_of(rollups.manifest_cells, i) == [expected(data, column) for column in COLUMNS]
    data = [row["data_file"] for _, _, row in live(case) if is_data(row)]
    assert rollups.table_cells.to_pylist() == [expected(data, column) for column in COLUMNS]
    groups = slow_partitions(case)
    found = rollups.partitions.to_pylist()
    assert len(found) == len(groups)
    for i, (group, files) in enumerate(groups):
        values = list(found[i]["partition"].values())
        days = None if values[0] is None else values[0].toordinal() - 719_163
        assert (days, *values[1:], found[i]["spec_id"]) == group.pop("key")
        assert {name: found[i][name] for name in group} == group
        assert cells_of(rollups.partition_cells, i) == [expected(files, column) for column in COLUMNS]


def expected(files: list[dict[str, Any]], column: Field) -> dict[str, Any]:
    return dict(sorted(slow_cell(files, column).items(), key=lambda item: ROLLUP_NAMES.index(item[0])))


ROLLUP_NAMES = [
    "field_id",
    *(n for name in METRICS for n in (name[:-1], f"{name[:-1]}_file_count")),
    "valueless_file_count",
]


@settings(max_examples=100)
@given(SEEDS, st.sampled_from([(), (5,), (1, 70_001, 2_000_000_000)]))
def test_files_equal_the_slow_way(seed: int, wanted: tuple[int, ...]) -> None:
    """Every live entry is one row, in order, with what it inherits and with the metrics that were asked for."""
    case = build_case(seed)
    table = read_files(case.manifests, METADATA, case, wanted, threads=2)
    table.validate(full=True)
    next_row_id = {m.path: m.first_row_id for m in case.manifests}
    rows = table.to_pylist()
    assert len(rows) == len(live(case))
    for row, (_, manifest, source) in zip(rows, live(case), strict=True):
        given_file = source["data_file"]
        content = given_file["content"] or 0
        assert row["content"] == ("data", "position_deletes", "equality_deletes")[content]
        assert row["partition"]["letter"] == given_file["partition"].get("letter")
        assert row["partition"]["bucket"] == given_file["partition"].get("bucket")
        for name in (
            *("file_path", "file_format", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets"),
            *("equality_ids", "sort_order_id", "referenced_data_file", "content_offset", "content_size_in_bytes"),
        ):
            assert row[name] == given_file[name], name
        first = given_file["first_row_id"]
        following = next_row_id[manifest.path]
        if content or following is None:
            first = None
        elif first is None:
            first = following
            next_row_id[manifest.path] = following + given_file["record_count"]
        assert row["first_row_id"] == first
        assert row["snapshot_id"] == (
            manifest.added_snapshot_id if source["snapshot_id"] is None else source["snapshot_id"]
        )
        for name in ("sequence_number", "file_sequence_number"):
            inherits = source["status"] == 1 or manifest.sequence_number == 0
            inherited = manifest.sequence_number if inherits else None
            assert row[name] == (inherited if source[name] is None else source[name])
        for name in METRICS:
            items = given_file[name]
            if items is None:
                assert row[name] is None
            else:
                assert dict(row[name]) == {i: v for i, v in dict(items).items() if i in wanted}


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_do_not_change_the_answer(threads: int) -> None:
    """The tables are the same whatever the number of threads."""
    case = build_case(7)
    assert read_files(case.manifests, METADATA, case, threads=threads).equals(
        read_files(case.manifests, METADATA, case, threads=2)
    )
