"""Manifests as any writer may write them: random but valid choices of schemas, unions, blocks and codecs."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from icestats.iceberg.metadata import PartitionSpec
from tests.avro_bytes import CODECS, varint

PARTITION_AVRO = {1000: {"type": "int", "logicalType": "date"}, 1001: "string", 1002: "int"}
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
METRIC_IDS = {108: (117, 118), 109: (119, 120), 110: (121, 122), 137: (138, 139), 125: (126, 127), 128: (129, 130)}


@dataclass
class Node:
    schema: Any
    encode: Callable[[Any], bytes]


def text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


PRIMITIVES: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"",
    "boolean": lambda v: bytes([v]),
    "int": varint,
    "long": varint,
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
            return Node([node.schema], lambda v: varint(0) + node.encode(v))
        return node

    def optional(self, node: Node) -> Node:
        if self.rng.random() < 0.5:
            return Node(["null", node.schema], lambda v: varint(0) if v is None else varint(1) + node.encode(v))
        return Node([node.schema, "null"], lambda v: varint(1) if v is None else varint(0) + node.encode(v))

    def blocks(self, items: list[bytes]) -> bytes:
        """Items of an array or map, in blocks with and without their length."""
        out = b""
        while items:
            size = self.rng.randint(1, len(items))
            part = b"".join(items[:size])
            out += varint(-size) + varint(len(part)) + part if self.rng.random() < 0.3 else varint(size) + part
            items = items[size:]
        return out + varint(0)

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
            return Node({"type": "enum", "name": self.name(), "symbols": ["A", "B"]}, lambda _: varint(1))
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
        out = b"Obj\x01" + varint(len(meta)) + b"".join(text(a) + text(b) for a, b in meta.items()) + b"\x00" + sync
        while rows:
            size = self.rng.randint(1, len(rows))
            packed = CODECS[codec](b"".join(node.encode(row) for row in rows[:size]))
            out += varint(size) + varint(len(packed)) + packed + sync
            rows = rows[size:]
        return out
