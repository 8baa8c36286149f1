"""The columns of a part of a table: the roll-ups of some partitions or manifests, combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.schemas import COLUMNS, PARTITION_MAPS, STATISTICS, SUMMED_STATISTICS
from icestats.answers.text import counted
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.types import has_lengths
from icestats.iceberg.value_order import find_extreme
from icestats.stats.rollup_cells import NO_LENGTH, describe_rollup, start_row

_WHOLE = "unknown: sketches describe the whole table, or single partitions, not the selected part"


def build_part_columns(groups: pa.Table, schema: Schema, live_file_count: int, *, has_deletes: bool) -> pa.Table:
    """Build the table of columns of a part.

    Parameters
    ----------
    groups : pyarrow.Table
        Rows with `schemas.COLUMN_MAPS`: the partitions or data manifests that make up the part.
    schema : Schema
        The columns.
    live_file_count : int
        Live data files of these groups.
    has_deletes : bool
        Whether the table has live delete files: the sums and bounds of data files do not reflect them.

    Returns
    -------
    pyarrow.Table
        `schemas.COLUMNS`: one row per column, by the roll-up rule; NDV and lengths are known of single partitions only.

    Notes
    -----
    If one group lacks a statistic, it is unknown for the part; the numbers of files that lack it add up.
    """
    found = {statistic: _by_field(groups, f"{statistic}s") for statistic in STATISTICS}
    missing = {statistic: _by_field(groups, f"{statistic}s_missing_files") for statistic in STATISTICS}
    names = {field.name for field in PARTITION_MAPS}
    known: dict[str, dict[int, Any]] = {}
    if groups.num_rows == 1 and names <= set(groups.column_names):
        known = {name: dict(groups[name][0].as_py() or ()) for name in names}
    rows = [_row(field, found, missing, live_file_count, known, has_deletes) for field in schema.columns]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _by_field(groups: pa.Table, name: str) -> Callable[[int], pa.Array]:
    chunks = groups[name].chunks
    maps = pa.concat_arrays(chunks) if chunks else pa.array([], groups.schema.field(name).type)
    first, last = (maps.offsets[0].as_py(), maps.offsets[-1].as_py()) if len(maps) else (0, 0)
    keys, values = maps.keys.slice(first, last - first).to_numpy(), maps.items.slice(first, last - first)
    return lambda field_id: values.filter(pa.array(keys == field_id))


def _row(
    field: Field,
    found: dict[str, Any],
    missing: dict[str, Any],
    live_file_count: int,
    known: dict[str, dict[int, Any]],
    has_deletes: bool,
) -> dict[str, Any]:
    row = start_row(field, live_file_count)
    provenance = {"common_values": _WHOLE}
    lacking: dict[str, int] = {}
    for statistic in STATISTICS:
        if statistic == "nan_value_count" and not field.has_nan:
            provenance[statistic] = "not applicable: the type has no NaN"
            continue
        count = pc.sum(missing[statistic](field.field_id)).as_py() or 0
        if count:
            lacking[statistic] = count
        else:
            values, is_sum = found[statistic](field.field_id), statistic in SUMMED_STATISTICS
            row[statistic] = (
                pc.sum(values).as_py() or 0
                if is_sum
                else find_extreme(values, field.type, highest=statistic == "upper_bound")
            )
        provenance[statistic] = describe_rollup(
            statistic, field, row.get(statistic), count, live_file_count, has_deletes=has_deletes, of=" of the part"
        )
    for name in ("ndv", "avg_length", "max_length"):
        row[name] = known.get(f"{name}s", {}).get(field.field_id)
        if row[name] is None:
            provenance[name] = _WHOLE if name == "ndv" or has_lengths(field.type) else NO_LENGTH
        else:
            provenance[name] = _about_ndv(field, known) if name == "ndv" else "exact: over the partition's live rows"
    return {**row, "missing_files": list(lacking.items()), "provenance": list(provenance.items())}


def _about_ndv(field: Field, known: dict[str, dict[int, Any]]) -> str:
    error, age = (known[name][field.field_id] for name in ("ndv_relative_errors", "ndv_commits_behind"))
    when = f"{counted(age, 'commit')} behind" if age else "this snapshot"
    return f"estimate: the partition's Theta sketch, within {error:.1%} at 95% confidence, {when}"
