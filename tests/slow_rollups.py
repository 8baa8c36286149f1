"""The slow way to roll manifests up: entry by entry, in plain Python."""

from __future__ import annotations

import math
import struct
from typing import Any

from icestats.iceberg.metadata import Field
from icestats.read.manifests.manifests import ManifestToRead
from tests.manifest_writer import METRICS
from tests.random_manifests import SNAPSHOTS, Case


def order_of(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    """What a bound compares by, and its bytes in the current type; None for no bound."""
    if kind in ("float", "double"):
        return order_of_real(kind, raw)
    if kind.startswith("decimal"):
        number = int.from_bytes(raw, "big", signed=True)
        length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
        return (number, number.to_bytes(length, "big", signed=True)) if raw and length <= 16 else None
    if kind == "boolean":
        return (raw != b"\x00", bytes([raw != b"\x00"])) if len(raw) == 1 else None
    if kind in INTEGER_SIZES:
        return order_of_integer(kind, raw)
    valid = {"uuid": len(raw) == 16, "fixed[5]": len(raw) <= 5, "geometry": False}.get(kind, True)
    return (raw, raw) if valid else None


INTEGER_SIZES = {"int": (4,), "date": (4,), "long": (8, 4), "time": (8,), "timestamp": (8, 4)}


def order_of_integer(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    if len(raw) not in INTEGER_SIZES[kind]:
        return None
    number = int.from_bytes(raw, "little", signed=True)
    if kind == "timestamp" and len(raw) == 4:
        number *= 86_400_000_000
    fits = -(2**63) <= number < 2**63
    return (number, number.to_bytes(INTEGER_SIZES[kind][0], "little", signed=True)) if fits else None


def order_of_real(kind: str, raw: bytes) -> tuple[Any, bytes] | None:
    if len(raw) != 4 and not (kind == "double" and len(raw) == 8):
        return None
    value = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
    if math.isnan(value):
        return None
    return (value, math.copysign(1, value)), struct.pack("<f" if kind == "float" else "<d", value)


def slow_cell(files: list[dict[str, Any]], column: Field) -> dict[str, Any]:
    cell: dict[str, Any] = {"field_id": column.field_id, "valueless_file_count": 0}
    maps = [{name: dict(f[name] or []) for name in METRICS} for f in files]
    for f, m in zip(files, maps, strict=True):
        if f["record_count"] == 0:
            m |= {name: {column.field_id: 0} | m[name] for name in METRICS[1:4]}
        counted = [max(m[name].get(column.field_id, 0), 0) for name in METRICS[2:4]]
        if 0 <= m["value_counts"].get(column.field_id, -1) < sum(counted):
            m |= {name: {} for name in METRICS[1:4]}
    for name in METRICS[:4]:
        found = [m[name][column.field_id] for m in maps if m[name].get(column.field_id, -1) >= 0]
        cell[name[:-1]] = sum(found)
        cell[f"{name[:-1]}_file_count"] = len(found)
    for name, best in (("lower_bounds", min), ("upper_bounds", max)):
        raw = [order_of(column.type, m[name][column.field_id]) for m in maps if column.field_id in m[name]]
        keys = [k for k in raw if k is not None]
        cell[name[:-1]] = best(keys)[1] if keys else None
        cell[f"{name[:-1]}_file_count"] = len(keys)
    for m in maps:
        counts = {name: m[name].get(column.field_id, -1) for name in METRICS[1:4]}
        bounds = [order_of(column.type, m[n][column.field_id]) for n in METRICS[4:] if column.field_id in m[n]]
        if all(b is None for b in bounds) and counts["value_counts"] >= 0:
            nothing = max(counts["null_value_counts"], 0) + max(counts["nan_value_counts"], 0)
            cell["valueless_file_count"] += counts["value_counts"] == nothing
    return cell


def live(case: Case) -> list[tuple[int, ManifestToRead, dict[str, Any]]]:
    return [
        (i, manifest, row)
        for i, (manifest, rows) in enumerate(zip(case.manifests, case.entries, strict=True))
        for row in rows
        if row["status"] != 2
    ]


def is_data(row: dict[str, Any]) -> bool:
    return not row["data_file"]["content"]


def slow_partitions(case: Case) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    groups: dict[tuple[Any, ...], list[tuple[ManifestToRead, dict[str, Any]]]] = {}
    for _, manifest, row in live(case):
        values = row["data_file"]["partition"]
        key = (*(values.get(name) for name in ("a_date", "letter", "bucket")), manifest.spec_id)
        groups.setdefault(key, []).append((manifest, row))
    out = []
    for key in sorted(groups, key=lambda k: tuple((v is not None, v.encode() if isinstance(v, str) else v) for v in k)):
        files = [(row["data_file"], row) for _, row in groups[key]]
        of = {c: [f for f, _ in files if (f["content"] or 0) == c] for c in (0, 1, 2)}
        vectors = [f for f in of[1] if f["file_format"] == "PUFFIN"]
        ids = [m.added_snapshot_id if r["snapshot_id"] is None else r["snapshot_id"] for m, r in groups[key]]
        latest = max(((SNAPSHOTS[i], i) for i in ids if i in SNAPSHOTS), default=(None, None))
        group = {
            "key": key,
            "data_record_count": sum(f["record_count"] for f in of[0]),
            "data_file_count": len(of[0]),
            "total_data_file_size_in_bytes": sum(f["file_size_in_bytes"] for f in of[0]),
            "position_delete_record_count": sum(f["record_count"] for f in of[1]),
            "position_delete_file_count": len(of[1]) - len(vectors),
            "equality_delete_record_count": sum(f["record_count"] for f in of[2]),
            "equality_delete_file_count": len(of[2]),
            "dv_count": len(vectors),
            "last_updated_snapshot_id": latest[1],
        }
        out.append((group, of[0]))
    return out


def expected(files: list[dict[str, Any]], column: Field) -> dict[str, Any]:
    return dict(sorted(slow_cell(files, column).items(), key=lambda item: ROLLUP_NAMES.index(item[0])))


ROLLUP_NAMES = [
    "field_id",
    *(n for name in METRICS for n in (name[:-1], f"{name[:-1]}_file_count")),
    "valueless_file_count",
]
