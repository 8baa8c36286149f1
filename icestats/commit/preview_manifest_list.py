"""The manifest-level statistics proposal as it would be: fields 521 to 527 in the manifest list itself.

Source: "Add manifest-level statistics to Apache Iceberg for CBO estimation". PyIceberg 0.12 cannot read such a list,
and format version 4 gives ids 520 to 522 to other fields, so it is written into a copy of the table's metadata, never
into the table.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Container, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.reach import PLACES_OF_DATA
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_records import read_records

_TOTALS = {"total_record_count": 521, "total_file_size_in_bytes": 522}
_MAPS = {
    "total_column_sizes": (523, "long", "column_sizes"),
    "total_null_value_counts": (524, "long", "null_value_counts"),
    "total_nan_value_counts": (525, "long", "nan_value_counts"),
    "lower_bounds": (526, "bytes", "lower_bounds"),
    "upper_bounds": (527, "bytes", "upper_bounds"),
}
"""Each map's id, the type of its values, and the column of `schemas.MANIFESTS` that it is from."""
_KEY_IDS = 528
"""The proposal numbers no keys and values: these follow its last field."""
_SYNC_INTERVAL = 64_000
_PLACES = (*PLACES_OF_DATA, "write.metadata.path")
"""Properties that say where a table's next files go."""


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
    schema, batches = read_records(storage.read(snapshot.manifest_list), snapshot.manifest_list)
    own = [dict(field) for field in schema["fields"] if field["name"] not in (*_TOTALS, *_MAPS)]
    extended = {**schema, "fields": [*own, *_proposal_fields()]}
    places = {path: place for place, path in enumerate(manifests["manifest_path"].to_pylist())}
    path_name = next(field["name"] for field in own if field.get("field-id") == 500)
    rows = (
        {**record, **_proposal_values(manifests.slice(places[record[path_name]], 1).to_pylist()[0])}
        for record in chain.from_iterable(batches)
    )
    stream = io.BytesIO()
    fastavro.writer(
        stream, extended, rows, codec="deflate", sync_interval=_SYNC_INTERVAL, metadata={"format-version": "2"}
    )
    return stream.getvalue()


def _proposal_fields() -> list[dict[str, Any]]:
    fields = [_optional(name, "long", field_id) for name, field_id in _TOTALS.items()]
    for place, (name, (field_id, kind, _)) in enumerate(_MAPS.items()):
        key_id = _KEY_IDS + 2 * place
        entry = [{"name": "key", "type": "int", "field-id": key_id}]
        entry += [{"name": "value", "type": kind, "field-id": key_id + 1}]
        items = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": entry}
        fields.append(_optional(name, {"type": "array", "items": items, "logicalType": "map"}, field_id))
    return fields


def _optional(name: str, kind: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _proposal_values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    if manifest["content"] != "data":
        return dict.fromkeys((*_TOTALS, *_MAPS))
    values: dict[str, Any] = {name: manifest[name] for name in _TOTALS}
    for name, (_, _, of) in _MAPS.items():
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
        "properties": _own_properties(document.get("properties") or {}),
        "current-snapshot-id": snapshot_id,
        "snapshots": kept,
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "statistics": [],
        "partition-statistics": [],
    }
    return json.dumps(copy).encode()


def _own_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's properties for its copy: nobody deletes the files that they share by the copy, or adds to them.

    As Iceberg's procedure `snapshot` has them.
    """
    return {name: value for name, value in properties.items() if name not in _PLACES} | {"gc.enabled": "false"}


def read_proposal_fields(storage: FileReader, manifest_list: str) -> pa.Table:
    """Read the proposal's fields from a manifest list, by name and id together: format version 4 has some of these ids.

    Returns
    -------
    pyarrow.Table
        One row a manifest: `manifest_path`, then `total_record_count` (rows), `total_file_size_in_bytes`, and the maps
        field id -> bytes, values or single-value bytes; null where the list does not have a field.
    """
    schema, batches = read_records(storage.read(manifest_list), manifest_list)
    present = {(field["name"], field.get("field-id")) for field in schema["fields"]}
    path_name = next(field["name"] for field in schema["fields"] if field.get("field-id") == 500)
    parts = [_build_proposal_columns(records, path_name, present) for records in chain([[]], batches)]
    return pa.concat_tables(parts).combine_chunks()


def _build_proposal_columns(
    records: Sequence[Mapping[str, Any]], path_name: str, present: Container[tuple[str, int]]
) -> pa.Table:
    columns = {"manifest_path": pa.array([record[path_name] for record in records], pa.string())}
    for name, field_id in _TOTALS.items():
        values = [record[name] if (name, field_id) in present else None for record in records]
        columns[name] = pa.array(values, pa.int64())
    for name, (field_id, kind, _) in _MAPS.items():
        maps = [record[name] if (name, field_id) in present else None for record in records]
        pairs = [None if one is None else [(pair["key"], pair["value"]) for pair in one] for one in maps]
        columns[name] = pa.array(pairs, pa.map_(pa.int32(), pa.int64() if kind == "long" else pa.binary()))
    return pa.table(columns)
