"""The manifests of one day of a generated table."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from benchmarks.avro_rows import Longs, Mask, Piece, beside, blocks, constant, entries, optional, text, varint
from benchmarks.generated_bounds import build_single_values, draw_bounds
from benchmarks.manifest_schemas import MANIFEST_ENTRY

PARTITION_FIELDS = [
    {"name": "event_time_day", "transform": "day", "source-id": 2, "field-id": 1000},
    {"name": "device_id_bucket", "transform": "bucket[64]", "source-id": 3, "field-id": 1001},
]
FIRST_DAY = date(2026, 8, 1)
FIRST_SNAPSHOT_ID = 4_000_000_000_000_000_000
BLOCK_SIZE = 64_000
DEFLATE_LEVEL = 9
EXISTING, ADDED, DELETED = 0, 1, 2
_DELETE_PATH, _DELETE_POSITION = 2_147_483_546, 2_147_483_545


@dataclass(frozen=True, slots=True)
class Day:
    """Where a day's manifests go, and what they hold."""

    folder: Path
    schema: dict[str, Any]
    """As metadata.json has it, with the columns that the day's files know."""
    number: int
    files: int
    """Live ones; rewritten manifests have 2 % more entries, which are DELETED."""
    manifests: int
    seed: int
    is_complete: bool = False
    """Every file has every statistic, and the first column counts up from manifest to manifest."""

    @property
    def name(self) -> str:
        """The date."""
        return (FIRST_DAY + timedelta(self.number)).isoformat()

    @property
    def epoch_day(self) -> int:
        """Days since 1970."""
        return (FIRST_DAY - date(1970, 1, 1)).days + self.number

    @property
    def snapshot_id(self) -> int:
        """The snapshot that added the day."""
        return FIRST_SNAPSHOT_ID + self.number


@dataclass(frozen=True, slots=True)
class Files:
    """The data files of a day, in the order of their manifests."""

    manifest: Longs
    status: Longs
    bucket: Longs
    records: Longs
    paths: list[str]


def write_day(day: Day) -> list[dict[str, Any]]:
    """Write a day's data manifests and its manifest of deletes; return their rows of the manifest list."""
    rng = np.random.default_rng((day.seed, day.number))
    files = _draw_files(day, rng)
    cells, mask = _build_rows(day, files, rng)
    manifests = []
    for number in range(day.manifests):
        own = files.manifest == number
        path = f"{day.folder}/metadata/{day.name}-{number:03d}-m0.avro"
        size = _write_rows(path, day.schema, (cells[own], mask[own]))
        manifests.append(_describe(day, path, size, 0, files.status[own], files.records[own], files.bucket[own]))
    return [*manifests, _write_deletes(day, files)]


def _draw_files(day: Day, rng: np.random.Generator) -> Files:
    live = np.arange(day.files) % day.manifests
    deleted = live[_is_rewritten(day, live)][::50]
    order = np.argsort(np.concatenate([live, deleted]), kind="stable")
    manifest = np.concatenate([live, deleted])[order]
    status = np.where(order >= day.files, DELETED, np.where(_is_rewritten(day, manifest), EXISTING, ADDED))
    bucket = rng.integers(0, 64, len(manifest))
    records = rng.integers(1, 1_600_000, len(manifest))
    folder = f"{day.folder}/data/event_time_day={day.name}"
    names = [f"{i:05d}-{day.number}-{uuid.UUID(bytes=rng.bytes(16))}.parquet" for i in range(len(manifest))]
    paths = [f"{folder}/device_id_bucket={b}/{name}" for b, name in zip(bucket.tolist(), names, strict=True)]
    return Files(manifest, status, bucket, records, paths)


def _is_rewritten(day: Day, manifest: Longs) -> Mask:
    rewritten: Mask = (day.number * day.manifests + manifest) % 6 == 5
    return rewritten


def _build_rows(day: Day, files: Files, rng: np.random.Generator) -> Piece:
    """Manifest entries, in the order of the fields of `MANIFEST_ENTRY`."""
    rows = len(files.status)
    every = np.ones(rows, np.bool_)
    sequence_number = optional(varint(np.full(rows, 1 + day.number // 2)), files.status != ADDED)
    return beside(
        varint(files.status),
        optional(varint(np.full(rows, day.snapshot_id)), every),
        sequence_number,
        sequence_number,
        constant(b"\0", rows),  # content: data
        text([path.encode() for path in files.paths]),
        text([b"PARQUET"] * rows),
        optional(varint(np.full(rows, day.epoch_day)), every),
        optional(varint(files.bucket), every),
        varint(files.records),
        varint(files.records * 300 + rng.integers(2000, 60_000, rows)),
        _build_metrics(day, files, rng),
        # No key_metadata, split_offsets [4], no equality_ids, sort_order_id 0, no referenced_data_file.
        constant(b"\0" + b"\2\2\10\0" + b"\0" + b"\2\0" + b"\0", rows),
    )


def _build_metrics(day: Day, files: Files, rng: np.random.Generator) -> Piece:
    records, columns = files.records, day.schema["fields"]
    shape = (len(records), len(columns))
    ids = np.array([column["id"] for column in columns])
    floating = np.array([column["type"] in ("float", "double") for column in columns])
    all_null = (rng.random(shape) < 0.01) & (ids > 2)
    values = np.broadcast_to(records[:, None], shape)
    nulls = np.where(all_null, values, (values * rng.random(shape) * (ids % 3 == 0)).astype(np.int64))
    sizes = ((values - nulls) * rng.uniform(1, 8, shape)).astype(np.int64) + 40
    nans = ((values - nulls) * rng.random(shape) / 1000).astype(np.int64)
    every = np.ones(shape, np.bool_)
    maps = [entries(ids, varint(figures), every) for figures in (sizes, values, nulls)]
    maps.append(entries(ids[floating], varint(nans[:, floating]), every[:, floating]))
    bounds = [draw_bounds(column["type"], rng, len(records), day.epoch_day) for column in columns]
    if day.is_complete:
        all_null[:] = False
        first = (day.number * day.manifests + files.manifest) * 10**6
        low = first + rng.integers(0, 5 * 10**5, len(records))
        bounds[0] = build_single_values("long", low), build_single_values("long", low + 5 * 10**5)
    for side in zip(*bounds, strict=True):
        cells, mask = (np.stack(parts, 1) for parts in zip(*side, strict=True))
        maps.append(entries(ids, (cells, mask), ~all_null))
    has_maps: Mask = (rng.random(len(records)) >= 0.01) | day.is_complete
    return beside(*(optional(found, has_maps) for found in maps))


def _write_rows(path: str, schema: dict[str, Any], rows: Piece) -> int:
    buffer, sync = BytesIO(), uuid.uuid5(uuid.NAMESPACE_URL, path).bytes
    properties = _properties(schema, "data")
    fastavro.writer(buffer, MANIFEST_ENTRY, [], "deflate", metadata=properties, sync_marker=sync)
    for count, block in blocks(rows, BLOCK_SIZE):
        engine = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, -15)
        data = engine.compress(block) + engine.flush()
        sizes, mask = varint(np.array([count, len(data)]))
        buffer.write(sizes[mask].tobytes() + data + sync)
    return Path(path).write_bytes(buffer.getbuffer())


def _write_deletes(day: Day, files: Files) -> dict[str, Any]:
    live = np.flatnonzero(files.status != DELETED)[:5]
    found = [_position_delete(day, files, place) for place in live.tolist()]
    if day.number % 7 == 3:
        found.append({**found[0], "content": 2, "equality_ids": [1], "lower_bounds": None, "upper_bounds": None})
    path = f"{day.folder}/metadata/{day.name}-deletes-m0.avro"
    rows = [{"status": ADDED, "snapshot_id": day.snapshot_id, "data_file": entry} for entry in found]
    with Path(path).open("wb") as file:
        fastavro.writer(file, MANIFEST_ENTRY, rows, "deflate", metadata=_properties(day.schema, "deletes"))
        size = file.tell()
    buckets = np.array([entry["partition"]["device_id_bucket"] for entry in found])
    records = np.array([entry["record_count"] for entry in found])
    return _describe(day, path, size, 1, np.full(len(found), ADDED), records, buckets)


def _position_delete(day: Day, files: Files, place: int) -> dict[str, Any]:
    path = files.paths[place]
    bounds = [
        {"key": _DELETE_PATH, "value": path.encode()},
        {"key": _DELETE_POSITION, "value": struct.pack("<q", place)},
    ]
    return {
        "content": 1,
        "file_path": path.replace(".parquet", "-deletes.parquet"),
        "file_format": "PARQUET",
        "partition": {"event_time_day": day.epoch_day, "device_id_bucket": int(files.bucket[place])},
        "record_count": 1 + place,
        "file_size_in_bytes": 1500 + place,
        "column_sizes": [{"key": _DELETE_PATH, "value": 154}, {"key": _DELETE_POSITION, "value": 43}],
        "lower_bounds": bounds,
        "upper_bounds": bounds,
    }


def _properties(schema: dict[str, Any], content: str) -> dict[str, str]:
    return {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json.dumps(PARTITION_FIELDS),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": content,
    }


def _describe(
    day: Day, path: str, size: int, content: int, status: Longs, records: Longs, buckets: Longs
) -> dict[str, Any]:
    """A manifest's row of the manifest list."""
    figures: dict[str, Any] = {}
    for name, code in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
        figures[f"{name}_files_count"] = int((status == code).sum())
        figures[f"{name}_rows_count"] = int(records[status == code].sum())
    return {
        "manifest_path": path,
        "manifest_length": size,
        "partition_spec_id": 0,
        "content": content,
        "sequence_number": 1 + day.number,
        "min_sequence_number": 1 + day.number // 2,
        "added_snapshot_id": day.snapshot_id,
        "partitions": [_summary((day.epoch_day, day.epoch_day)), _summary((int(buckets.min()), int(buckets.max())))],
        **figures,
    }


def _summary(bounds: Sequence[int]) -> dict[str, Any]:
    low, high = (struct.pack("<i", bound) for bound in bounds)
    return {"contains_null": False, "contains_nan": False, "lower_bound": low, "upper_bound": high}
