"""Manifest lists: a snapshot's Avro file -> one Arrow row a manifest.

Fields go by their id: v1 writers gave some of them other names. Source: Iceberg spec, "Manifest Lists".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.schemas import MANIFEST_FILES
from icestats.answers.text import printable
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_records import Wanted, read_records

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
_WANTED: Wanted = {
    **dict.fromkeys(_FIELD_IDS.values()),
    _FIELD_IDS["partitions"]: dict.fromkeys((509, 518, 510, 511)),
}
_REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id")
_CONTENTS = ("data", "deletes")
_COUNTS = ("manifest_length", *(name for name in _FIELD_IDS if name.endswith("_count")))
_MOST_COUNTED = 1 << 53
"""What a snapshot's manifests have together, of bytes, files or rows: as the kernel counts."""


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
        The file is missing, cut, or not a manifest list; it names one manifest as of data and as of deletes; a count
        is negative, or all of a kind are more than 2**53.
    """
    if snapshot is None:
        return MANIFEST_FILES.empty_table()
    if snapshot.manifest_list is None:
        return _from_inline(storage, snapshot)
    path = snapshot.manifest_list
    return _take_distinct(_read_rows(storage.read(path), path), path)


def count_listed_rows(manifest_files: pa.Table) -> tuple[int, int] | None:
    """Return how many rows are live at least and at most, by `schemas.MANIFEST_FILES`; None: it lacks counts."""
    is_data = pc.equal(manifest_files["content"], "data")
    data, deletes = manifest_files.filter(is_data), manifest_files.filter(pc.invert(is_data))
    rows = pc.add(data["added_rows_count"], data["existing_rows_count"])
    if rows.null_count:
        return None
    most = pc.sum(rows).as_py() or 0
    return (0 if deletes.num_rows else most), most


def _read_rows(data: bytes, path: str) -> pa.Table:
    schema, batches = read_records(data, path, _WANTED)
    parts = [MANIFEST_FILES.empty_table()]
    try:
        names = _find_names(schema)
        for records in batches:
            parts.append(pa.Table.from_pydict(_build_columns(names, records), MANIFEST_FILES))
            records.clear()
        manifests = pa.concat_tables(parts).combine_chunks()
    except (ValueError, TypeError, OverflowError) as error:
        raise MetadataError(f"not a manifest list: {error}", path) from error
    for name in _REQUIRED:
        if manifests[name].null_count:
            raise MetadataError(f"not a manifest list: {name} of a manifest is null", path)
    for name in _COUNTS:
        counts = manifests[name]
        # As doubles, whose sum does not wrap.
        total = pc.sum(counts.cast(pa.float64(), safe=False)).as_py() or 0
        if (pc.min(counts).as_py() or 0) < 0 or total > _MOST_COUNTED:
            raise MetadataError(f"the {name} of a manifest is negative, or of all is above 2**53", path)
    return manifests


def _find_names(schema: Mapping[str, Any]) -> dict[int | None, str]:
    names = {field.get("field-id"): field["name"] for field in schema["fields"]}
    for name in _REQUIRED:
        if _FIELD_IDS[name] not in names:
            raise ValueError(f"it has no field {name} (id {_FIELD_IDS[name]})")
    return names


def _build_columns(names: Mapping[int | None, str], records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [record.get(names.get(field_id, "")) for record in records] for name, field_id in _FIELD_IDS.items()
    }
    for name in ("content", "sequence_number", "min_sequence_number"):
        columns[name] = [value or 0 for value in columns[name]]
    for content in set(columns["content"]) - {0, 1}:
        raise ValueError(f"a manifest's content is {content!r:.40}, expected 0 (data) or 1 (deletes)")
    # A summary that is null says nothing.
    columns["partitions"] = [value and [one or {} for one in value] for value in columns["partitions"]]
    columns["content"] = [_CONTENTS[content] for content in columns["content"]]
    return columns


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
        printable(path),
        repeated,
    )
    return manifests.take(pa.array(list(first.values()), pa.int64()))


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
    return pa.Table.from_pylist(rows, MANIFEST_FILES)
