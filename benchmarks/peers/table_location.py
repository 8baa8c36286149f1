"""A generated table's folder: its metadata.json and its manifest list."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def metadata_path(location: str) -> str:
    """Return the table's metadata.json; end with one line where it is not there."""
    path = f"{location}/metadata/v1.metadata.json"
    if not Path(path).exists():
        sys.exit(f"benchmarks: no table in {location}: expected a folder with metadata/v1.metadata.json")
    return path


def manifest_list_path(location: str) -> str:
    """Return the manifest list of the current snapshot."""
    metadata = _read_metadata(location)
    current = metadata["current-snapshot-id"]
    paths: list[str] = [s["manifest-list"] for s in metadata["snapshots"] if s["snapshot-id"] == current]
    return paths[0]


def last_field_id(location: str) -> int:
    """Return the highest field id of a column."""
    field_id: int = _read_metadata(location)["last-column-id"]
    return field_id


def column_types(location: str) -> dict[int, str]:
    """Return the type of each column by its field id."""
    metadata = _read_metadata(location)
    current = metadata["current-schema-id"]
    fields = next(schema["fields"] for schema in metadata["schemas"] if schema["schema-id"] == current)
    return {field["id"]: str(field["type"]) for field in fields}


def _read_metadata(location: str) -> dict[str, Any]:
    metadata: dict[str, Any] = json.loads(Path(metadata_path(location)).read_bytes())
    return metadata
