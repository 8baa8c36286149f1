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
import uuid
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import fastavro

from benchmarks.generated_manifests import FIRST_SNAPSHOT_ID, PARTITION_FIELDS, Day, write_day
from benchmarks.manifest_schemas import MANIFEST_FILE

TYPES = (
    *("long", "int", "double", "float", "string", "date", "timestamp", "decimal(18, 4)"),
    *("boolean", "string", "double", "decimal(38, 6)", "timestamptz", "decimal(9, 2)", "string", "long"),
)
TIMESTAMP_MS = 1_793_491_200_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a table is."""

    days: int = 90
    files_per_day: int = 5000
    manifests_per_day: int = 24
    columns: int = 50
    seed: int = 0
    """Another one draws other files."""
    is_complete: bool = False
    """Every file has every statistic, and `event_id` counts up from manifest to manifest."""


def write_table(folder: Path, shape: Shape) -> None:
    """Write a table's metadata into a new folder, which is its location."""
    (folder / "metadata").mkdir(parents=True)
    columns = build_columns(shape.columns)
    schemas = [{"type": "struct", "schema-id": n, "fields": found} for n, found in enumerate((columns[:-1], columns))]
    days = [
        Day(
            folder,
            schemas[number >= shape.days // 2],
            number,
            shape.files_per_day,
            shape.manifests_per_day,
            shape.seed,
            shape.is_complete,
        )
        for number in range(shape.days)
    ]
    with ProcessPoolExecutor() as pool:
        manifests = [manifest for found in pool.map(write_day, days) for manifest in found]
    snapshot_id = FIRST_SNAPSHOT_ID + len(manifests)
    path = f"{folder}/metadata/snap-{snapshot_id}-1-{uuid.UUID(int=snapshot_id)}.avro"
    with Path(path).open("wb") as file:
        fastavro.writer(file, MANIFEST_FILE, manifests, "deflate", metadata={"format-version": "2"})
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=1)),
        "location": str(folder),
        "last-sequence-number": shape.days + 1,
        "last-updated-ms": TIMESTAMP_MS,
        "last-column-id": shape.columns,
        "current-schema-id": 1,
        "schemas": schemas,
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


def generate(folder: Path, shape: Shape) -> Path:
    """Write the table of a shape below a folder, unless it is there, and return its location."""
    location = folder / "-".join(str(size) for size in ("table", *astuple(shape)))
    if not (location / "metadata" / "v1.metadata.json").exists():
        write_table(location, shape)
    return location
