"""Roll-ups in a local cache: manifests never change once written, so what was read once is not read again.

One file holds the roll-up of a set of manifests. A snapshot's roll-up is the cached one of the largest set that is a
part of its manifests, merged with what is read of the rest. ICESTATS_CACHE names the folder, or is `off`. A folder that
another user owns or can write to is not used: its entries are neither read nor removed.

    bytes 0..8    b"ICESTAT1"
    bytes 8..40   blake2b-256 of the JSON header
    bytes 40..72  blake2b-256 of all that follows the header
    bytes 72..80  length of the header, little endian
    then          the JSON header, and one Arrow IPC stream for each table, each behind its length in 8 bytes
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from icestats.errors import MetadataError
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata
from icestats.iceberg.storage import Storage, expand_home, find_own_folder, open_regular
from icestats.read.manifests.manifest_pool import Progress
from icestats.read.manifests.manifests import ManifestToRead, RollUps, read_rollups
from icestats.read.private_folder import make_private
from icestats.read.rollups.rollup_merge import merge_rollups

Reader = Callable[[Sequence[ManifestToRead], Progress | None], RollUps]
"""Reads the roll-ups of manifests."""
_Read = Callable[[Sequence[ManifestToRead]], RollUps]

MAGIC = b"ICESTAT1"
_CACHE_VERSION = 3
_LEAST_SHARE_WRITTEN = 0.02
"""A part of the manifests that is smaller, in bytes, is read again rather than the whole roll-up written again."""
MOST_ENTRIES_A_TABLE = 3
MOST_ENTRIES = 1000
MOST_CACHE_BYTES = 2 << 30
"""The least recently used entries are removed beyond these."""
MOST_ENTRY_BYTES = 512 << 20
"""Larger roll-ups are not kept: while they are written, they are in memory three times."""
_Key = tuple[str, int, int | None]
_HEAD = len(MAGIC) + 32 + 32 + 8
_TABLES = "[0-9a-f]" * 32
"""Names of the folders of tables."""
_ENTRIES = ("*.rollup", "tmp*.part")
"""Names of the files in them: what else is there is not the cache's."""
_PLACES = re.compile(r"endpoint|\bhost\b|\bport\b|authority|account-(name|host)")
"""Names of the properties that say where a location is that names no host."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What an entry is of: manifests, and the snapshots that the table's metadata had when they were read."""

    manifests: frozenset[_Key]
    snapshot_ids: frozenset[int]
    newest: tuple[int, int]
    body_digest: bytes


def cache_folder() -> Path | None:
    """Return the cache's folder, None where ICESTATS_CACHE is `off`, or names none and the user has no home folder."""
    setting = os.environ.get("ICESTATS_CACHE", "")
    if setting.lower() == "off":
        return None
    if setting:
        return expand_home(setting, "ICESTATS_CACHE") / "rollups"
    from platformdirs import user_cache_path

    folder = find_own_folder(user_cache_path)
    return None if folder is None else folder / "rollups"


def read_cached_rollups(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: Storage,
    schema: Schema,
    *,
    progress: Progress | None = None,
    reader: Reader | None = None,
) -> RollUps:
    """Return the roll-ups of manifests, reading only those that the cache does not know.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        All manifests of a snapshot.
    metadata : TableMetadata
        The table.
    storage : Storage
        Where to read manifests from.
    schema : Schema
        Its columns are rolled up.
    progress : callable, optional
        As for `read_rollups`, about the manifests that are read.
    reader : Reader, optional
        What reads the manifests, in place of `read_rollups`.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged.
    """

    def read(wanted: Sequence[ManifestToRead]) -> RollUps:
        if reader is not None:
            return reader(wanted, progress)
        return read_rollups(wanted, metadata, storage, schema, progress=progress)

    folder = cache_folder()
    if folder is None or not manifests or not make_private(folder, "*"):
        return read(manifests)
    folder = folder / _fingerprint(metadata, schema, storage)
    if not make_private(folder, "*"):
        return read(manifests)
    wanted = frozenset(map(_key, manifests))
    paths = [manifest.path for manifest in manifests]
    for path, header in _find_entries(folder, wanted, metadata):
        missing = [m for m in manifests if _key(m) not in header.manifests]
        known, new = _read_both(path, metadata, missing, read)
        if known is None:
            continue
        rollups = merge_rollups([known] if new is None else [known, new], schema.columns, paths)
        if sum(m.length for m in missing) >= _LEAST_SHARE_WRITTEN * sum(m.length for m in manifests):
            _write_entry(folder, wanted, rollups, metadata)
        return rollups
    _write_entry(folder, wanted, rollups := read(manifests), metadata)
    return rollups


def _read_both(
    path: Path, metadata: TableMetadata, missing: Sequence[ManifestToRead], read: _Read
) -> tuple[RollUps | None, RollUps | None]:
    """Read an entry, None where it is damaged, and at the same time the manifests that it lacks, None for none."""
    if not missing:
        return _load_entry(path, metadata), None
    with ThreadPoolExecutor(1, thread_name_prefix="icestats-cache") as pool:
        known = pool.submit(_load_entry, path, metadata)
        new = read(missing)
        return known.result(), new


def _key(manifest: ManifestToRead) -> _Key:
    # A table that was dropped and made again may have the same names, but not the same snapshots.
    return manifest.path, manifest.length, manifest.added_snapshot_id


def _fingerprint(metadata: TableMetadata, schema: Schema, storage: Storage) -> str:
    """What a roll-up depends on beside the manifests: where they are, how columns and partitions are read.

    A metadata.json may claim the UUID and the location of another table, and name its manifests, but lies elsewhere.
    """
    endpoints = {name: said for name, said in storage.properties.items() if _PLACES.search(name)}
    parts = {
        "place": [(storage.home or "").rpartition("/")[0], sorted(endpoints.items()), storage.opened_by],
        "version": _CACHE_VERSION,
        "table": [metadata.table_uuid, metadata.location],
        "columns": [(column.field_id, column.type) for column in schema.columns],
        "specs": [(spec_id, [str(field) for field in spec.fields]) for spec_id, spec in sorted(metadata.specs.items())],
        "schemas": [[(f.field_id, f.name, f.type) for f in s.fields] for _, s in sorted(metadata.schemas.items())],
    }
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _find_entries(folder: Path, wanted: frozenset[_Key], metadata: TableMetadata) -> list[tuple[Path, _Header]]:
    """Return the entries of a part of the wanted manifests, the largest first; what is damaged is removed."""
    found: list[tuple[Path, _Header]] = []
    for path in folder.glob("*.rollup"):
        try:
            with open_regular(path, str(path)) as file:
                header = _read_header(file)
        except (OSError, ValueError, MetadataError):
            _remove(path)
            continue
        if header.manifests <= wanted and _knows_no_more(metadata, header):
            found.append((path, header))
    return sorted(found, key=lambda entry: len(entry[1].manifests), reverse=True)


def _load_entry(path: Path, metadata: TableMetadata) -> RollUps | None:
    """Return an entry's roll-ups, None where they cannot be used; a damaged file is removed."""
    try:
        rollups = _read_entry(path)
    except (OSError, ValueError, MetadataError, pa.ArrowException):
        _remove(path)
        return None
    if not _knows_latest(metadata, rollups):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return rollups


def _knows_no_more(metadata: TableMetadata, header: _Header) -> bool:
    # Metadata from before snapshots were expired knows when they added files; the entry's did not.
    added = (s for s in metadata.snapshots.values() if s.snapshot_id not in header.snapshot_ids)
    return all(_age(snapshot) > header.newest for snapshot in added)


def _knows_latest(metadata: TableMetadata, rollups: RollUps) -> bool:
    # A snapshot that has been expired since would not be found by a reader without the cache.
    ids = rollups.partitions["last_updated_snapshot_id"].unique().to_pylist()
    return all(snapshot_id is None or snapshot_id in metadata.snapshots for snapshot_id in ids)


def _age(snapshot: Snapshot) -> tuple[int, int]:
    # Sequence numbers are all 0 in tables of format version 1.
    return snapshot.sequence_number, snapshot.timestamp_ms


def _read_header(file: BinaryIO) -> _Header:
    head = file.read(_HEAD)
    size = int.from_bytes(head[72:], "little")
    if head[: len(MAGIC)] != MAGIC or size > os.fstat(file.fileno()).st_size:
        raise ValueError("not a roll-up")
    data = file.read(size)
    if _digest(data) != head[8:40]:
        raise ValueError("the header's checksum is wrong")
    header = json.loads(data)
    manifests = frozenset(map(tuple, header["manifests"]))
    return _Header(manifests, frozenset(header["snapshot_ids"]), tuple(header["newest"]), head[40:72])


def _read_entry(path: Path) -> RollUps:
    with open_regular(path, str(path)) as file:
        header = _read_header(file)
        # Bytes of their own are aligned: Arrow warns of arrays that are not.
        body = memoryview(file.read())
    if _digest(body) != header.body_digest:
        raise ValueError("the checksum is wrong")
    start = 0
    tables = {}
    for field in fields(RollUps):
        length = int.from_bytes(body[start : start + 8], "little")
        stream = pa.py_buffer(body[start + 8 : start + 8 + length])
        tables[field.name] = pa.ipc.open_stream(stream).read_all()
        start += 8 + length
    return RollUps(**tables)


def _write_entry(folder: Path, manifests: frozenset[_Key], rollups: RollUps, metadata: TableMetadata) -> None:
    """Write an entry beside its name and put it in place whole; a cache that cannot be written is no error."""
    if sum(getattr(rollups, field.name).nbytes for field in fields(RollUps)) > MOST_ENTRY_BYTES:
        return
    listed = sorted(manifests)
    newest = max(map(_age, metadata.snapshots.values()), default=(0, 0))
    document = {"manifests": listed, "snapshot_ids": sorted(metadata.snapshots), "newest": newest}
    header = json.dumps(document).encode()
    body = _pack(rollups)
    name = hashlib.blake2b(json.dumps(listed).encode(), digest_size=16).hexdigest()
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
            try:
                file.write(MAGIC + _digest(header) + _digest(body) + len(header).to_bytes(8, "little") + header)
                file.write(body)
                file.close()
                Path(file.name).replace(folder / f"{name}.rollup")
            except BaseException:
                _remove(Path(file.name))
                raise
        _remove_oldest(folder)


def _pack(rollups: RollUps) -> memoryview:
    body = io.BytesIO()
    for field in fields(RollUps):
        data = write_stream(getattr(rollups, field.name))
        body.write(data.size.to_bytes(8, "little"))
        body.write(data)
    return body.getbuffer()


def write_stream(table: pa.Table) -> pa.Buffer:
    """Return a table as an Arrow IPC stream."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def _remove_oldest(folder: Path) -> None:
    for path, _ in _newest_first(folder.glob("*.rollup"))[MOST_ENTRIES_A_TABLE:]:
        _remove(path)
    total = 0
    entries = (path for name in _ENTRIES for path in folder.parent.glob(f"{_TABLES}/{name}"))
    for count, (path, size_bytes) in enumerate(_newest_first(entries), 1):
        total += size_bytes
        if total > MOST_CACHE_BYTES or count > MOST_ENTRIES:
            _remove(path)
    for path in folder.parent.glob(_TABLES):
        # What is not empty stays.
        with contextlib.suppress(OSError):
            path.rmdir()


def _newest_first(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """Return paths and their sizes."""
    found = sorted(((path.stat(), path) for path in paths), key=lambda one: one[0].st_mtime, reverse=True)
    return [(path, status.st_size) for status, path in found]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
