"""Roll-ups in a local cache: manifests never change once written, so what was read once is not read again.

One file holds the roll-up of a set of manifests. A snapshot's roll-up is the cached one of the largest set that is a
part of its manifests, merged with what is read of the rest. ICESTATS_CACHE names the folder, or is `off`.

    bytes 0..8    b"ICESTAT1"
    bytes 8..40   blake2b-256 of all that follows
    bytes 40..48  length of the JSON header, little endian
    then          the JSON header, and one Arrow IPC stream for each table, each behind its length in 8 bytes
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa

from icestats.metadata import Schema, TableMetadata
from icestats.read.manifest_pool import Progress
from icestats.read.manifests import ManifestToRead, RollUps, read_rollups
from icestats.read.rollup_merge import merge_rollups
from icestats.storage import FileReader

MAGIC = b"ICESTAT1"
CACHE_VERSION = 1
MOST_ENTRIES_A_TABLE = 3
MOST_CACHE_BYTES = 2 << 30
"""The least recently used entries are removed beyond this."""
_HEAD = len(MAGIC) + 32


@dataclass(frozen=True, slots=True)
class _Entry:
    manifests: frozenset[tuple[str, int]]
    rollups: RollUps


def cache_folder() -> Path | None:
    """Return the cache's folder, None where ICESTATS_CACHE is `off`."""
    setting = os.environ.get("ICESTATS_CACHE", "")
    if setting.lower() == "off":
        return None
    if setting:
        return Path(setting).expanduser() / "rollups"
    from platformdirs import user_cache_path

    return user_cache_path("icestats", appauthor=False) / "rollups"


def read_cached_rollups(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: FileReader,
    schema: Schema,
    *,
    progress: Progress | None = None,
) -> RollUps:
    """Return the roll-ups of manifests, reading only those that the cache does not know.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        All manifests of a snapshot.
    metadata : TableMetadata
        The table.
    storage : FileReader
        Where to read manifests from.
    schema : Schema
        Its columns are rolled up.
    progress : callable, optional
        As for `read_rollups`, about the manifests that are read.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged.
    """
    folder = cache_folder()
    if folder is None or not manifests:
        return read_rollups(manifests, metadata, storage, schema, progress=progress)
    folder = folder / _fingerprint(metadata, schema)
    wanted = frozenset((manifest.path, manifest.length) for manifest in manifests)
    paths = [manifest.path for manifest in manifests]
    known = _find_entry(folder, wanted, metadata)
    if known is None:
        rollups = read_rollups(manifests, metadata, storage, schema, progress=progress)
    elif known.manifests == wanted:
        return merge_rollups([known.rollups], schema.columns, paths)
    else:
        missing = [m for m in manifests if (m.path, m.length) not in known.manifests]
        added = read_rollups(missing, metadata, storage, schema, progress=progress)
        rollups = merge_rollups([known.rollups, added], schema.columns, paths)
    _write_entry(folder, wanted, rollups)
    return rollups


def _fingerprint(metadata: TableMetadata, schema: Schema) -> str:
    """What a roll-up depends on beside the manifests: how columns and partitions are read."""
    parts = {
        "version": CACHE_VERSION,
        "table": [metadata.table_uuid, metadata.location],
        "columns": [(column.field_id, column.type) for column in schema.columns],
        "specs": [(spec_id, [str(field) for field in spec.fields]) for spec_id, spec in sorted(metadata.specs.items())],
        "schemas": [[(f.field_id, f.name, f.type) for f in s.fields] for _, s in sorted(metadata.schemas.items())],
    }
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _find_entry(folder: Path, wanted: frozenset[tuple[str, int]], metadata: TableMetadata) -> _Entry | None:
    """Return the entry of the most manifests among those that are wanted; what is damaged is removed."""
    best: tuple[int, Path] | None = None
    for path in folder.glob("*.rollup"):
        try:
            manifests = _read_header(path)
        except (OSError, ValueError):
            _remove(path)
            continue
        if manifests <= wanted and (best is None or len(manifests) > best[0]):
            best = (len(manifests), path)
    if best is None:
        return None
    try:
        entry = _read_entry(best[1])
    except (OSError, ValueError, pa.ArrowException):
        _remove(best[1])
        return None
    with contextlib.suppress(OSError):
        os.utime(best[1])
    return entry if _is_current(entry.rollups, metadata) else None


def _is_current(rollups: RollUps, metadata: TableMetadata) -> bool:
    # A snapshot that has been expired since would not be found by a reader without the cache.
    ids = rollups.partitions["last_updated_snapshot_id"].unique().to_pylist()
    return all(snapshot_id is None or snapshot_id in metadata.snapshots for snapshot_id in ids)


def _read_header(path: Path) -> frozenset[tuple[str, int]]:
    with path.open("rb") as file:
        head = file.read(_HEAD + 8)
        if head[: len(MAGIC)] != MAGIC:
            raise ValueError("not a roll-up")
        header = json.loads(file.read(int.from_bytes(head[_HEAD:], "little")))
    return frozenset((str(path), int(length)) for path, length in header["manifests"])


def _read_entry(path: Path) -> _Entry:
    data = path.read_bytes()
    body = memoryview(data)[_HEAD:]
    if hashlib.blake2b(body, digest_size=32).digest() != data[len(MAGIC) : _HEAD]:
        raise ValueError("the checksum is wrong")
    manifests = _read_header(path)
    start = 8 + int.from_bytes(body[:8], "little")
    tables = {}
    for field in fields(RollUps):
        length = int.from_bytes(body[start : start + 8], "little")
        stream = pa.py_buffer(body[start + 8 : start + 8 + length])
        tables[field.name] = pa.ipc.open_stream(stream).read_all()
        start += 8 + length
    return _Entry(manifests, RollUps(**tables))


def _write_entry(folder: Path, manifests: frozenset[tuple[str, int]], rollups: RollUps) -> None:
    """Write an entry beside its name and put it in place whole; a cache that cannot be written is no error."""
    header = json.dumps({"manifests": sorted(manifests)}).encode()
    body = io.BytesIO()
    body.write(len(header).to_bytes(8, "little") + header)
    for field in fields(RollUps):
        table: pa.Table = getattr(rollups, field.name)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        data = stream.getvalue()
        body.write(data.size.to_bytes(8, "little"))
        body.write(data)
    payload = body.getbuffer()
    name = hashlib.blake2b(header, digest_size=16).hexdigest()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
            try:
                file.write(MAGIC + hashlib.blake2b(payload, digest_size=32).digest())
                file.write(payload)
                file.close()
                Path(file.name).replace(folder / f"{name}.rollup")
            except OSError:
                _remove(Path(file.name))
                raise
        _remove_oldest(folder)


def _remove_oldest(folder: Path) -> None:
    for path in _newest_first(folder.glob("*.rollup"))[MOST_ENTRIES_A_TABLE:]:
        _remove(path)
    total = 0
    for path in _newest_first(folder.parent.glob("*/*")):
        total += path.stat().st_size
        if total > MOST_CACHE_BYTES:
            _remove(path)


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
