"""Statistics to commit, the table that they are of, and what its catalog and its folder then hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.statistics import StatisticsFile

from icestats.commit.puffin_writer import CarriedBlob, NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.statistics_removal import commit_removal, prepare_removal
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import PuffinBlob, read_blob, read_puffin_footer

THETA = "apache-datasketches-theta-v1"
KLL = "apache-datasketches-kll-v1"
ROWS = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"], "c": [0.5, 1.5]})


def open_catalog(folder: Path, options: str = "") -> SqlCatalog:
    return SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db{options}", warehouse=f"file://{folder}/warehouse")


def blob(table, kind, field_id, payload, snapshot=None, **properties):
    snapshot = snapshot or table.current_snapshot()
    return NewBlob(kind, (field_id,), snapshot.snapshot_id, snapshot.sequence_number, payload, properties)


def theta(table, field_id, payload=b"theta", ndv="2"):
    return blob(table, THETA, field_id, payload, ndv=ndv)


def kll(table, field_id, payload=b"kll"):
    return blob(table, KLL, field_id, payload, k="200")


def commit(table, *blobs, **options):
    return commit_statistics(prepare_commit(table, list(blobs), **options))


def remove(table, snapshot_id=None, **options):
    """Take the statistics of a snapshot, by default the current one, out of the table."""
    plan = prepare_removal(table, snapshot_id or table.current_snapshot().snapshot_id, **options)
    return commit_removal(plan)


def entries(table):
    return table.catalog.load_table(table.name()).metadata.statistics


def listed(table):
    return [(b.type, tuple(b.fields), (b.properties or {}).get("ndv")) for e in entries(table) for b in e.blob_metadata]


def stored(table, snapshot_id=None):
    """What the committed file of a snapshot holds: (type, fields) -> payload."""
    snapshot_id = snapshot_id or table.current_snapshot().snapshot_id
    path = next(e.statistics_path for e in entries(table) if e.snapshot_id == snapshot_id)
    footer = read_puffin_footer(Storage(), path)
    return {(b.type, b.field_ids): read_blob(Storage(), b, path) for b in footer.blobs}


def metadata_files(table):
    return sorted(Path(table.location().removeprefix("file://"), "metadata").glob("*.metadata.json"))


def statistics_files(table):
    return sorted(p.name for p in Path(table.location().removeprefix("file://"), "metadata").glob("*.stats"))


def register(table, path, field_ids, ndv="5", size=None, snapshot_id=None, **members):
    """Commit a statistics file as PyIceberg's own update does: whatever was there is replaced."""
    snapshot_id = snapshot_id or table.current_snapshot().snapshot_id
    entry = {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": size or Path(path[7:]).stat().st_size,
        "file-footer-size-in-bytes": 100,
        "blob-metadata": [
            {"type": THETA, "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [i], "properties": {"ndv": ndv}}
            for i in field_ids
        ],
        **members,
    }
    with table.catalog.load_table(table.name()).update_statistics() as update:
        update.set_statistics(StatisticsFile.model_validate(entry))


def write_foreign(table, *blobs):
    """Write a file as others do: whatever a blob is, the footer lists it."""
    path = f"{table.location()}/metadata/foreign-{len(statistics_files(table))}.stats"
    Path(path[7:]).write_bytes(write_puffin([as_of_others(blob) for blob in blobs]).data)
    return path


def as_of_others(new: NewBlob) -> CarriedBlob:
    ids = (new.field_ids, new.snapshot_id, new.sequence_number)
    return CarriedBlob(PuffinBlob(new.type, *ids, 0, len(new.payload), None, new.properties), new.payload)
