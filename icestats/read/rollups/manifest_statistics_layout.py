"""What an `icestats-manifest-stats-v1` blob holds: one Avro record a manifest.

Fields 521 to 527 are those of the manifest-level statistics proposal, by its names and ids; a statistic that one live
file lacks is in none of its maps. The proposal has no value counts and does not say how many files lack a statistic:
these are the kit's own fields, with ids from 1,500,000,000 up. Every variable-length number comes before the bounds, so
that they are decoded many at a time.
"""

from __future__ import annotations

from typing import Any

from icestats.answers.schemas import STATISTICS, SUMMED_STATISTICS

MANIFEST_STATISTICS = "icestats-manifest-stats-v1"
COLUMNS_KEY = "icestats.columns"
"""The Avro file's metadata: [[field id, type], ...], the columns that were rolled up, with the types of bounds."""
OWN_FIELDS = 1_500_000_000

COUNTS = (
    *("live_file_count", "record_count", "file_size_in_bytes"),
    *("position_delete_file_count", "equality_delete_file_count", "dv_count"),
)
"""The kit's counts of a manifest, of deletes too, as `schemas.MANIFEST_GROUPS` has them."""
SUM_MAPS = {
    "column_size": "total_column_sizes",
    "value_count": "total_value_counts",
    "null_value_count": "total_null_value_counts",
    "nan_value_count": "total_nan_value_counts",
}
"""Statistics that add up, and the name of their map."""
MISSING_MAPS = {statistic: f"{statistic}s_missing_files" for statistic in STATISTICS}
"""For each statistic the map that says how many live files lack it, where any does."""
BOUND_MAPS = {"lower_bound": "lower_bounds", "upper_bound": "upper_bounds"}
OPTIONAL_MAPS = ("total_column_sizes", "total_null_value_counts", "total_nan_value_counts", *BOUND_MAPS.values())
"""The proposal's maps: null for manifests of deletes. The kit's own maps are empty there."""
NUMBER_MAPS = (*SUM_MAPS.values(), *MISSING_MAPS.values())
"""The maps of numbers, in the order of a record's fields, before those of bounds."""

_IDS = {
    "manifest_path": 500,
    "manifest_length": 501,
    "content": 517,
    "total_record_count": 521,
    "total_file_size_in_bytes": 522,
    "total_column_sizes": 523,
    "total_null_value_counts": 524,
    "total_nan_value_counts": 525,
    "lower_bounds": 526,
    "upper_bounds": 527,
}
_KEY_VALUE_IDS = {523: (528, 529), 524: (530, 531), 525: (532, 533), 526: (534, 535), 527: (536, 537)}
"""The proposal numbers no keys and values: these follow its last field."""


def proposal_fields() -> list[dict[str, Any]]:
    """Return the proposal's fields 521 to 527 as Avro has them, in the order of their ids."""
    fields = [_optional_long(name) for name in ("total_record_count", "total_file_size_in_bytes")]
    fields += [_map(SUM_MAPS[s], "long", optional=True) for s in SUMMED_STATISTICS if SUM_MAPS[s] in _IDS]
    return [*fields, *(_map(name, "bytes", optional=True) for name in BOUND_MAPS.values())]


def blob_schema() -> dict[str, Any]:
    """Return the Avro schema of a blob's records.

    Examples
    --------
    >>> [field["name"] for field in blob_schema()["fields"]][:4]
    ['manifest_path', 'manifest_length', 'content', 'total_record_count']
    """
    fields: list[dict[str, Any]] = [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "content", "type": "int", "field-id": 517},
        *(_optional_long(name) for name in ("total_record_count", "total_file_size_in_bytes")),
        *({"name": name, "type": "long", "field-id": _own_id(name)} for name in COUNTS),
        *(_map(name, "long", optional=name in _IDS) for name in SUM_MAPS.values()),
        *(_map(name, "long", optional=False) for name in MISSING_MAPS.values()),
        *(_map(name, "bytes", optional=True) for name in BOUND_MAPS.values()),
    ]
    return {"type": "record", "name": "manifest_statistics", "fields": fields}


def _optional_long(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "default": None, "field-id": _IDS[name]}


def _map(name: str, value_type: str, *, optional: bool) -> dict[str, Any]:
    field_id = _IDS.get(name, _own_id(name))
    key_id, value_id = _KEY_VALUE_IDS.get(field_id, (field_id + 1, field_id + 2))
    entries = [{"name": "key", "type": "int", "field-id": key_id}]
    entries += [{"name": "value", "type": value_type, "field-id": value_id}]
    record = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": entries}
    kind: Any = {"type": "array", "items": record, "logicalType": "map"}
    if not optional:
        return {"name": name, "type": kind, "field-id": field_id}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _own_id(name: str) -> int:
    own = [*COUNTS, "total_value_counts", *MISSING_MAPS.values()]
    return OWN_FIELDS + 3 * own.index(name) if name in own else 0
