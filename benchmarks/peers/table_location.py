"""A generated table's folder: its metadata.json and its manifest list."""

from __future__ import annotations

import json
from pathlib import Path


def metadata_path(location: str) -> str:
    """Return the table's metadata.json."""
    return f"{location}/metadata/v1.metadata.json"


def manifest_list_path(location: str) -> str:
    """Return the manifest list of the current snapshot."""
    metadata = json.loads(Path(metadata_path(location)).read_bytes())
    current = metadata["current-snapshot-id"]
    paths: list[str] = [s["manifest-list"] for s in metadata["snapshots"] if s["snapshot-id"] == current]
    return paths[0]
