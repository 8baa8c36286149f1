"""A large table's metadata, without its data files: what the benchmarks of reading metadata read.

The table is partitioned by days(event_time) and bucket[64](device_id) and has three columns of its own and then a cycle
of 16 types. Each day has some data manifests and one manifest of position deletes, on each seventh day of an equality
delete too. Every file has the six maps of metrics of all its columns, with exceptions as tables have them: each sixth
manifest is a rewritten one with EXISTING and some DELETED entries; 1 % of the files have no maps; 1 % of the columns of
a file are all null and have no bounds; the last column was added half-way. Manifests are those of format version 2,
deflated at level 9 in blocks of 64,000 bytes, as Iceberg's Java library writes them.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from benchmarks.avro_rows import (
    Bytes,
    Longs,
    Mask,
    Piece,
    beside,
    blocks,
    constant,
    entries,
    optional,
    padded,
    text,
    varint,
)
from benchmarks.manifest_schemas import MANIFEST_FILE, manifest_entry

TYPES = (
    *("long", "int", "double", "float", "string", "date", "timestamp", "decimal(18, 4)"),
    *("boolean", "string", "double", "decimal(38, 6)", "timestamptz", "decimal(9, 2)", "string", "long"),
)
FIXED_WIDTH = {
    **dict.fromkeys(("long", "timestamp", "timestamptz"), "<i8"),
    **dict.fromkeys(("int", "date"), "<i4"),
    **{"float": "<f4", "double": "<f8", "boolean": "u1"},
}
PARTITION_FIELDS = [
    {"name": "event_time_day", "transform": "day", "source-id": 2, "field-id": 1000},
    {"name": "device_id_bucket", "transform": "bucket[64]", "source-id": 3, "field-id": 1001},
]
FIRST_DAY = date(2026, 8, 1)
FIRST_SNAPSHOT_ID = 4_000_000_000_000_000_000
TIMESTAMP_MS = 1_793_491_200_000
BLOCK_SIZE = 64_000
DEFLATE_LEVEL = 9
LONGEST_BOUND = 16
_DELETE_PATH, _DELETE_POSITION = 2_147_483_546, 2_147_483_545


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a table is."""

    days: int = 90
    files_per_day: int = 5000
    manifests_per_day: int = 24
    columns: int = 50


def write_table(folder: Path, shape: Shape) -> None:
    """Write a table's metadata into a folder, which is its location."""
    (folder / "metadata").mkdir(parents=True)
    with ProcessPoolExecutor() as pool:
        days = list(pool.map(_write_day, [folder] * shape.days, [shape] * shape.days, range(shape.days)))
    manifests = [manifest for day in days for manifest in day]
    snapshot_id = FIRST_SNAPSHOT_ID + len(manifests)
    path = f"{folder}/metadata/snap-{snapshot_id}-1-{uuid.UUID(int=snapshot_id)}.avro"
    with Path(path).open("wb") as file:
        fastavro.writer(file, MANIFEST_FILE, manifests, "deflate", metadata={"format-version": "2"})
    columns = build_columns(shape.columns)
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=1)),
        "location": str(folder),
        "last-sequence-number": shape.days + 1,
        "last-updated-ms": TIMESTAMP_MS,
        "last-column-id": shape.columns,
        "current-schema-id": 1,
        "schemas": [_schema(columns[:-1], 0), _schema(columns, 1)],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": PARTITION_FIELDS}],
        "last-partition-id": 1001,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": snapshot_id,
        "snapshots": [
            {
                "snapshot-id": snapshot_id,
                "sequence-number": shape.days + 1,
                "timestamp-ms": TIMESTAMP_MS,
                "manifest-list": path,
                "schema-id": 1,
                "summary": {"operation": "overwrite"},
            }
        ],
    }
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))


def build_columns(count: int) -> list[dict[str, Any]]:
    """Return the columns as metadata.json has them; there are at least four."""
    own = [("event_id", "long"), ("event_time", "timestamp"), ("device_id", "long")]
    cycle = [(f"c{i:03d}_{TYPES[i % 16].partition('(')[0]}", TYPES[i % 16]) for i in range(count - len(own))]
    return [
        {"id": field_id, "name": name, "required": field_id < 3, "type": type_text}
        for field_id, (name, type_text) in enumerate([*own, *cycle], 1)
    ]


def _schema(columns: list[dict[str, Any]], schema_id: int) -> dict[str, Any]:
    return {"type": "struct", "schema-id": schema_id, "fields": columns}


def _write_day(folder: Path, shape: Shape, day: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(day)
    columns = build_columns(shape.columns)
    schema = _schema(columns[:-1], 0) if day < shape.days // 2 else _schema(columns, 1)
    number = np.sort(np.arange(shape.files_per_day) % shape.manifests_per_day)
    rewritten = (day * shape.manifests_per_day + number) % 6 == 5
    status = np.where(rewritten, np.where(rng.random(len(number)) < 0.02, 2, 0), 1)
    bucket = rng.integers(0, 64, len(number))
    records = rng.integers(1, 1_600_000, len(number))
    sizes = records * 300 + rng.integers(2000, 60_000, len(number))
    name = (FIRST_DAY + timedelta(day)).isoformat()
    paths = [
        f"{folder}/data/event_time_day={name}/device_id_bucket={b}/{i:05d}-{day}-{uuid.UUID(bytes=rng.bytes(16))}.parquet"
        for i, b in enumerate(bucket.tolist())
    ]
    epoch_day = (FIRST_DAY - date(1970, 1, 1)).days + day
    known = len(schema["fields"])
    rows = beside(
        varint(status),
        optional(varint(np.full(len(number), FIRST_SNAPSHOT_ID + day)), np.ones(len(number), np.bool_)),
        *[optional(varint(np.full(len(number), 1 + day // 2)), status != 1)] * 2,
        constant(b"\0", len(number)),
        text([path.encode() for path in paths]),
        text([b"PARQUET"] * len(paths)),
        *(optional(varint(value), value >= 0) for value in (np.full(len(number), epoch_day), bucket)),
        varint(records),
        varint(sizes),
        _metrics(rng, columns[:known], records, epoch_day),
        constant(b"\0\2\2\10\0\0\2\0\0", len(number)),
    )
    manifests = []
    for index in range(shape.manifests_per_day):
        own = number == index
        path = f"{folder}/metadata/{name}-{index:03d}-m0.avro"
        part = (rows[0][own], rows[1][own])
        data = _write_manifest(path, schema, "data", part)
        live = status[own]
        figures = [(int((live == s).sum()), int(records[own][live == s].sum())) for s in (1, 0, 2)]
        manifests.append(_manifest_file(path, data, 0, day, figures, epoch_day, bucket[own]))
    return [*manifests, _write_deletes(folder, schema, day, epoch_day, bucket, paths)]


def _metrics(rng: np.random.Generator, columns: list[dict[str, Any]], records: Longs, epoch_day: int) -> Piece:
    shape = (len(records), len(columns))
    ids = np.array([column["id"] for column in columns])
    floating = np.array([column["type"] in ("float", "double") for column in columns])
    has_maps = rng.random(len(records)) >= 0.01
    all_null = (rng.random(shape) < 0.01) & (ids > 2)
    present = np.ones(shape, np.bool_)
    nulls = np.where(all_null, records[:, None], (records[:, None] * rng.random(shape) * (ids % 3 == 0)).astype(int))
    values = np.broadcast_to(records[:, None], shape)
    sizes = ((values - nulls) * rng.uniform(1, 8, shape)).astype(np.int64) + 40
    counts = [entries(ids, varint(figures), present) for figures in (sizes, values, nulls)]
    nans = ((values - nulls) * rng.random(shape) * 0.001).astype(np.int64)[:, floating]
    counts.append(entries(ids[floating], varint(nans), present[:, floating]))
    bounds = [_bounds(column["type"], rng, len(records), epoch_day) for column in columns]
    for side in (0, 1):
        cells = np.stack([bound[side][0] for bound in bounds], 1)
        mask = np.stack([bound[side][1] for bound in bounds], 1)
        counts.append(entries(ids, (cells, mask), ~all_null))
    return beside(*(optional(piece, has_maps) for piece in counts))


def _bounds(type_text: str, rng: np.random.Generator, rows: int, epoch_day: int) -> tuple[Piece, Piece]:
    if type_text == "string":
        letters = rng.integers(97, 123, (2, rows, LONGEST_BOUND)).astype(np.uint8)
        letters[np.arange(LONGEST_BOUND) >= rng.integers(4, 40, (2, rows, 1))] = 0
        low, high = np.sort(letters.view(f"S{LONGEST_BOUND}")[..., 0], axis=0)
        return _single_values(type_text, low), _single_values(type_text, high)
    if type_text in ("float", "double"):
        low = rng.normal(0, 1000, rows)
        return _single_values(type_text, low), _single_values(type_text, low + rng.exponential(1000, rows))
    first, spread = {
        "boolean": (0, 2),
        "date": (epoch_day - 400, 400),
        "int": (-(10**9), 10**9),
        "decimal(9, 2)": (-(10**8), 10**8),
    }.get(type_text, ((epoch_day * 86_400_000_000, 10**10) if type_text.startswith("timestamp") else (-(10**12), 10**12)))
    low = rng.integers(first, first + spread, rows)
    high = np.maximum(low, rng.integers(first, first + spread, rows) + (spread if spread > 2 else 0))
    return _single_values(type_text, low), _single_values(type_text, high)


def _single_values(type_text: str, values: Any) -> Piece:
    """Single values as bytes behind their length (spec, Appendix D), all of the same width."""
    rows = len(values)
    if type_text in FIXED_WIDTH:
        data: Bytes = values.astype(FIXED_WIDTH[type_text]).view(np.uint8).reshape(rows, -1)
        lengths = np.full(rows, data.shape[1])
    elif type_text == "string":
        data, lengths = values.view(np.uint8).reshape(rows, -1), np.char.str_len(values).astype(np.int64)
    else:
        data, lengths = _unscaled(values, 5 if type_text == "decimal(38, 6)" else 0)
    cells: Bytes = np.zeros((rows, LONGEST_BOUND), np.uint8)
    cells[:, : data.shape[1]] = data
    return beside(varint(lengths), padded(cells, lengths))


def _unscaled(values: Longs, zeros: int) -> tuple[Bytes, Longs]:
    """Decimals: the fewest big-endian bytes, and behind them some zeros, which make the value larger."""
    data = values.astype(">i8").view(np.uint8).reshape(-1, 8)
    needed = 1 + sum(((values < -(1 << bits)) | (values >= 1 << bits)).astype(np.int64) for bits in range(7, 63, 8))
    places = np.arange(8 + zeros) + (8 - needed)[:, None]
    return np.where(places < 8, np.take_along_axis(data, np.minimum(places, 7), 1), 0).astype(np.uint8), needed + zeros


def _write_manifest(path: str, schema: dict[str, Any], content: str, rows: Piece) -> int:
    buffer = BytesIO()
    sync = uuid.uuid5(uuid.NAMESPACE_URL, path).bytes
    fastavro.writer(buffer, manifest_entry(), [], "deflate", metadata=_file_metadata(schema, content), sync_marker=sync)
    for count, block in blocks(rows, BLOCK_SIZE):
        engine = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, -15)
        data = engine.compress(block) + engine.flush()
        sizes, _ = varint(np.array([count, len(data)]))
        mask = varint(np.array([count, len(data)]))[1]
        buffer.write(sizes[mask].tobytes() + data + sync)
    return Path(path).write_bytes(buffer.getbuffer())


def _file_metadata(schema: dict[str, Any], content: str) -> dict[str, str]:
    return {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json.dumps(PARTITION_FIELDS),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": content,
    }
