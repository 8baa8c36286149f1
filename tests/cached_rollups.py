"""Roll-ups as the cache gives them and as a full reading does, and the files that each of them needs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa

import icestats
from icestats.iceberg.storage import local_path
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.rollups.rollup_cache import read_cached_rollups


def what_to_read(table: icestats.Table) -> tuple[Any, ...]:
    return manifests_to_read(table.manifest_files()), table.metadata, table._source.storage, table.schema


def read(table: icestats.Table) -> RollUps:
    return read_cached_rollups(*what_to_read(table))


def read_all(table: icestats.Table) -> RollUps:
    return read_rollups(*what_to_read(table))


def differing(first: RollUps, second: RollUps) -> list[str]:
    return [f.name for f in fields(RollUps) if not getattr(first, f.name).equals(getattr(second, f.name))]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*"))


def manifest_paths(table: icestats.Table) -> list[Path]:
    return [path for name in table.manifest_files()["manifest_path"].to_pylist() if (path := local_path(name))]


def spoil(paths: list[Path]) -> None:
    """Overwrite files with as many zeros: whoever reads them raises."""
    for path in paths:
        path.write_bytes(bytes(path.stat().st_size))


def more_rows(first: int) -> pa.Table:
    ids = range(first, first + 5)
    at = pa.array([1_756_684_800_000_000 + i for i in ids], pa.timestamp("us", tz="UTC"))
    names = [f"new {i}" for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "at": at, "price": [-0.0, 0.0, 1.0, 2.0, None], "name": names})
