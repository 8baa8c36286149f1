"""Manifest lists: a snapshot's Avro file -> one Arrow row a manifest.

Fields go by their id: v1 writers named some of them otherwise. Source: Iceberg spec, "Manifest Lists".
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icestats.arrays import empty_table
from icestats.arrow_values import from_columns, from_rows, from_values
from icestats.errors import MetadataError
from icestats.metadata import Snapshot
from icestats.read.avro_records import read_records
from icestats.schemas import MANIFEST_FILES
from icestats.storage import FileReader

_FIELD_IDS = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "content": 517,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "partitions": 507,
    "key_metadata": 519,
    "first_row_id": 520,
}
_CONTENTS = {0: "data", 1: "deletes"}
_REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id")


def read_manifest_list(storage: FileReader, snapshot: Snapshot | None) -> pa.Table:
    """Read the manifests of a snapshot.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    snapshot : Snapshot or None
        The snapshot; None, for a table without one, gives no rows.

    Returns
    -------
    pyarrow.Table
        `schemas.MANIFEST_FILES`: one row a manifest, in the list's order. Counts that a v1 writer left out are null.
        A manifest that the list names twice is there once, as it is named first: Iceberg's Java library (Spark, Trino)
        reads it once, PyIceberg 0.12 twice. The logger `icestats` warns of it.

    Raises
    ------
    MetadataError
        The file is missing, cut, or not a manifest list; it names one manifest as of data and as of deletes.
    """
    if snapshot is None:
        return empty_table(MANIFEST_FILES)
    if snapshot.manifest_list is None:
        return _from_inline(storage, snapshot)
    path = snapshot.manifest_list
    schema, records = read_records(storage.read(path), path)
    by_id = {field.get("field-id"): field["name"] for field in schema["fields"]}
    names = {name: by_id[field_id] for name, field_id in _FIELD_IDS.items() if field_id in by_id}
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise MetadataError(f"not a manifest list: it has no field {missing[0]} (id {_FIELD_IDS[missing[0]]})", path)
    columns: dict[str, list[Any]] = {
        name: [record.get(names[name]) if name in names else None for record in records] for name in _FIELD_IDS
    }
    columns["content"] = [_content(value, path) for value in columns["content"]]
    for name in ("sequence_number", "min_sequence_number"):
        columns[name] = [value or 0 for value in columns[name]]
    try:
        return _take_distinct(from_columns(columns, MANIFEST_FILES), path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        raise MetadataError(f"not a manifest list: {error}", path) from error


def _take_distinct(manifests: pa.Table, path: str) -> pa.Table:
    first: dict[str, int] = {}
    paths: Sequence[str] = manifests["manifest_path"].to_pylist()
    contents = manifests["content"].to_pylist()
    for row, manifest in enumerate(paths):
        if contents[first.setdefault(manifest, row)] != contents[row]:
            raise MetadataError(f"the manifest {manifest} is named as one of data and as one of deletes", path)
    if len(first) == len(paths):
        return manifests
    repeated = len(paths) - len(first)
    logging.getLogger("icestats").warning(
        "%s names %s of its manifests again: each is read once, as by Spark; PyIceberg reads it as often",
        path,
        repeated,
    )
    return manifests.take(from_values(list(first.values()), pa.int64()))


def _content(value: int | None, path: str) -> str:
    try:
        return _CONTENTS[value or 0]
    except KeyError:
        raise MetadataError(f"a manifest's content is {value}, expected 0 (data) or 1 (deletes)", path) from None


def _from_inline(storage: FileReader, snapshot: Snapshot) -> pa.Table:
    # v1 snapshots may list their manifests in metadata.json; such manifests hold data files of spec 0.
    rows = [
        {
            "manifest_path": path,
            "manifest_length": storage.size(path),
            "partition_spec_id": 0,
            "content": "data",
            "sequence_number": 0,
            "min_sequence_number": 0,
            "added_snapshot_id": snapshot.snapshot_id,
        }
        for path in dict.fromkeys(snapshot.manifests)
    ]
    return from_rows(rows, MANIFEST_FILES)
