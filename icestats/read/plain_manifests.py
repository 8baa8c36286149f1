"""Temporary plain reader."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

from icestats.metadata import Schema, TableMetadata
from icestats.partition_values import partition_field_type
from icestats.schemas import BOUNDS, COUNTS, MANIFEST_GROUPS, ROLLUP_CELLS, SUMMED_STATISTICS, partition_groups_schema
from icestats.storage import FileReader
from icestats.types import decode_value, encode_value, to_arrow_type


@dataclass(frozen=True)
class ManifestToRead:
    path: str
    length: int
    spec_id: int
    content: str
    sequence_number: int
    added_snapshot_id: int | None
    first_row_id: int | None


@dataclass(frozen=True)
class RollUps:
    manifests: pa.Table
    manifest_cells: pa.Table
    partitions: pa.Table
    partition_cells: pa.Table
    table_cells: pa.Table


def manifests_to_read(mf: pa.Table) -> list[ManifestToRead]:
    return [
        ManifestToRead(r["manifest_path"], r["manifest_length"], r["partition_spec_id"], r["content"], r["sequence_number"], r["added_snapshot_id"], r["first_row_id"])
        for r in mf.to_pylist()
    ]


def _entries(m: ManifestToRead, storage: FileReader):
    for e in fastavro.reader(io.BytesIO(storage.read(m.path))):
        if e["status"] != 2:
            if e.get("snapshot_id") is None:
                e["snapshot_id"] = m.added_snapshot_id
            yield e, e["data_file"]


MAPS = {"column_size": "column_sizes", "value_count": "value_counts", "null_value_count": "null_value_counts", "nan_value_count": "nan_value_counts", "lower_bound": "lower_bounds", "upper_bound": "upper_bounds"}


class Group:
    def __init__(self, columns):
        self.columns = columns
        self.n = [0] * 12
        self.updated = (None, None)
        self.cells = {f.field_id: dict.fromkeys(SUMMED_STATISTICS, 0) | {f"{s}_file_count": 0 for s in MAPS} | {"lower_bound": None, "upper_bound": None, "valueless_file_count": 0} for f in columns}

    def add(self, f):
        kv = {s: {x["key"]: x["value"] for x in (f.get(n) or [])} for s, n in MAPS.items()}
        for col in self.columns:
            c = self.cells[col.field_id]
            for s in SUMMED_STATISTICS:
                v = kv[s].get(col.field_id)
                if v is not None:
                    c[s] += v
                    c[f"{s}_file_count"] += 1
            nulls, values, nans = (kv[s].get(col.field_id) for s in ("null_value_count", "value_count", "nan_value_count"))
            has = False
            for s, pick in (("lower_bound", min), ("upper_bound", max)):
                v = kv[s].get(col.field_id)
                if v is None:
                    continue
                has = True
                c[f"{s}_file_count"] += 1
                d = decode_value(col.type, v)
                c[s] = d if c[s] is None else pick(c[s], d)
            if not has and values is not None and nulls is not None and values == nulls + (nans or 0):
                c["valueless_file_count"] += 1


def _cells(groups: list[Group], columns) -> pa.Table:
    rows = []
    for g in groups:
        for col in columns:
            c = dict(g.cells[col.field_id], field_id=col.field_id)
            for s in ("lower_bound", "upper_bound"):
                c[s] = None if c[s] is None else encode_value(col.type, c[s])
            rows.append(c)
    return pa.Table.from_pylist(rows, schema=ROLLUP_CELLS)


def partition_type(metadata: TableMetadata) -> pa.StructType:
    fields = {}
    for spec in metadata.specs.values():
        for f in spec.fields:
            t = partition_field_type(f, metadata.schema)
            fields[f.field_id] = pa.field(f.name, to_arrow_type(t) if t else pa.null())
    return pa.struct([fields[k] for k in sorted(fields)])


def read_rollups(manifests: Sequence[ManifestToRead], metadata: TableMetadata, storage: FileReader, schema: Schema) -> RollUps:
    cols = schema.columns
    mg, parts, table = [], {}, Group(cols)
    rows = []
    for m in manifests:
        g = Group(cols)
        mg.append(g)
        r = dict(manifest_path=m.path, live_file_count=0, record_count=0, file_size_in_bytes=0, position_delete_file_count=0, equality_delete_file_count=0, dv_count=0)
        for e, f in _entries(m, storage):
            key = (m.spec_id, tuple(f["partition"].items()))
            p = parts.setdefault(key, Group(cols))
            content = f.get("content") or 0
            r["live_file_count"] += 1
            r["record_count"] += f["record_count"]
            r["file_size_in_bytes"] += f["file_size_in_bytes"]
            ts = metadata.snapshots[e["snapshot_id"]].timestamp_ms if e["snapshot_id"] in metadata.snapshots else None
            if ts is not None and (p.updated[0] is None or ts > p.updated[0]):
                p.updated = (ts, e["snapshot_id"])
            if content == 0:
                for x in (g, p, table):
                    x.add(f)
                p.n[0] += f["record_count"]; p.n[1] += 1; p.n[2] += f["file_size_in_bytes"]
            elif content == 1:
                dv = f["file_format"].upper() == "PUFFIN"
                r["dv_count" if dv else "position_delete_file_count"] += 1
                p.n[3] += f["record_count"]; p.n[7 if dv else 4] += 1
            else:
                r["equality_delete_file_count"] += 1
                p.n[5] += f["record_count"]; p.n[6] += 1
        rows.append(r)
    pt = partition_type(metadata)
    prow = []
    items = sorted(parts.items(), key=lambda kv: (kv[0][0], [(v is not None, v) for _, v in kv[0][1]]))
    for (spec, part), p in items:
        n = p.n
        prow.append(dict(partition=dict(part), spec_id=spec, data_record_count=n[0], data_file_count=n[1], total_data_file_size_in_bytes=n[2], position_delete_record_count=n[3], position_delete_file_count=n[4], equality_delete_record_count=n[5], equality_delete_file_count=n[6], total_record_count=None, last_updated_at=p.updated[0], last_updated_snapshot_id=p.updated[1], dv_count=n[7]))
    return RollUps(
        pa.Table.from_pylist(rows, schema=MANIFEST_GROUPS), _cells(mg, cols),
        pa.Table.from_pylist(prow, schema=partition_groups_schema(pt)), _cells([p for _, p in items], cols), _cells([table], cols))


def read_files(manifests, metadata, storage, field_ids=()) -> pa.Table:
    rows = []
    for m in manifests:
        for e, f in _entries(m, storage):
            rows.append(dict(content=["data", "position_deletes", "equality_deletes"][f.get("content") or 0], file_path=f["file_path"], file_format=f["file_format"], spec_id=m.spec_id, partition=f["partition"], record_count=f["record_count"], file_size_in_bytes=f["file_size_in_bytes"], manifest_path=m.path, snapshot_id=e["snapshot_id"]))
    return pa.Table.from_pylist(rows)
