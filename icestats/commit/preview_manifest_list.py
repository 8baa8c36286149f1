"""The manifest-level statistics proposal as it would be: fields 521 to 527 in the manifest list itself.

Source: "Add manifest-level statistics to Apache Iceberg for CBO estimation". PyIceberg 0.12 cannot read such a list,
and the V4 draft has given ids 520 to 523 to other fields, so it is written into a copy of the table's metadata, never
into the table.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_records import read_records
from icestats.read.rollups.manifest_statistics_layout import proposal_fields

_MAPS = {
    "total_column_sizes": "column_sizes",
    "total_null_value_counts": "null_value_counts",
    "total_nan_value_counts": "nan_value_counts",
    "lower_bounds": "lower_bounds",
    "upper_bounds": "upper_bounds",
}
_SYNC_INTERVAL = 64_000


def build_preview_manifest_list(storage: FileReader, snapshot: Snapshot, manifests: pa.Table) -> bytes:
    """Return a snapshot's manifest list with the proposal's fields.

    Parameters
    ----------
    storage : FileReader
        Where to read the present list from; its fields and values are kept.
    snapshot : Snapshot
        Whose list.
    manifests : pyarrow.Table
        `schemas.MANIFESTS` of the snapshot. What a live file lacks is in no map.

    Raises
    ------
    UnsupportedError
        The snapshot lists its manifests in metadata.json, as format version 1 may.
    """
    import fastavro

    if snapshot.manifest_list is None:
        raise UnsupportedError(f"snapshot {snapshot.snapshot_id} has no manifest list, so none can get more fields")
    schema, records = read_records(storage.read(snapshot.manifest_list), snapshot.manifest_list)
    own = [dict(field) for field in schema["fields"] if field["name"] not in {f["name"] for f in proposal_fields()}]
    extended = {**schema, "fields": [*own, *proposal_fields()]}
    found = {row["manifest_path"]: row for row in manifests.to_pylist()}
    path_name = next(field["name"] for field in own if field.get("field-id") == 500)
    rows = [{**record, **_proposal_values(found[record[path_name]])} for record in records]
    stream = io.BytesIO()
    fastavro.writer(
        stream, extended, rows, codec="deflate", sync_interval=_SYNC_INTERVAL, metadata={"format-version": "2"}
    )
    return stream.getvalue()


def _proposal_values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    if manifest["content"] != "data":
        return dict.fromkeys(field["name"] for field in proposal_fields())
    values: dict[str, Any] = {name: manifest[name] for name in ("total_record_count", "total_file_size_in_bytes")}
    for name, of in _MAPS.items():
        values[name] = [{"key": key, "value": value} for key, value in manifest[of] if value is not None]
    return values


def build_preview_metadata(document: Mapping[str, Any], snapshot_id: int, location: str, manifest_list: str) -> bytes:
    """Return the metadata.json of a copy of a table at one snapshot, with another manifest list.

    Parameters
    ----------
    document : mapping
        The table's metadata.json.
    snapshot_id : int
        The snapshot that the copy has; its data files and manifests stay where they are.
    location : str
        Where the copy is.
    manifest_list : str
        Its manifest list.
    """
    kept = [{**s, "manifest-list": manifest_list} for s in document["snapshots"] if s["snapshot-id"] == snapshot_id]
    for snapshot in kept:
        snapshot.pop("parent-snapshot-id", None)
    copy = {
        **document,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, location)),
        "location": location,
        "current-snapshot-id": snapshot_id,
        "snapshots": kept,
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "statistics": [],
        "partition-statistics": [],
    }
    return json.dumps(copy).encode()


def read_proposal_fields(storage: FileReader, manifest_list: str) -> pa.Table:
    """Read the proposal's fields from a manifest list, by name and id together: the V4 draft has some of these ids.

    Returns
    -------
    pyarrow.Table
        One row a manifest: `manifest_path`, then `total_record_count` (rows), `total_file_size_in_bytes`, and the maps
        field id -> bytes, values or single-value bytes; null where the list does not have a field.
    """
    schema, records = read_records(storage.read(manifest_list), manifest_list)
    present = {(field["name"], field.get("field-id")) for field in schema["fields"]}
    path_name = next(field["name"] for field in schema["fields"] if field.get("field-id") == 500)
    columns: dict[str, pa.Array] = {"manifest_path": pa.array([r[path_name] for r in records], pa.string())}
    for field in proposal_fields():
        known = (field["name"], field["field-id"]) in present
        values = [record[field["name"]] if known else None for record in records]
        columns[field["name"]] = _column(field, values)
    return pa.table(columns)


def _column(field: Mapping[str, Any], values: Sequence[Any]) -> pa.Array:
    kind = field["type"][1]
    if kind == "long":
        return pa.array(values, pa.int64())
    value = pa.binary() if kind["items"]["fields"][1]["type"] == "bytes" else pa.int64()
    pairs = [None if v is None else [(pair["key"], pair["value"]) for pair in v] for v in values]
    return pa.array(pairs, pa.map_(pa.int32(), value))
