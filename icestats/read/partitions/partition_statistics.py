"""Statistics by partition: what is in memory, merging, and reading a partition statistics file.

Source: Iceberg spec, "Partition Statistics File". Columns go by their field ids; a file whose ids are not the spec's
(Iceberg before 1.10 counted from 0) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import ROLLUP_CELLS, STATISTICS, SUMMED_STATISTICS, partition_groups_schema
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.partition_columns import PartitionColumn, struct_type
from icestats.read.partitions.partition_statistics_layout import (
    ADDED,
    ADDED_COLUMNS,
    COLUMNS_KEY,
    FileColumn,
    iceberg_columns,
    map_ids,
    map_value_type,
    stored_maps,
)
from icestats.read.partitions.partition_statistics_table import StoredTable, read_stored_table
from icestats.read.rollups.rollup_merge import LATEST, merge_cells, merge_partitions
from icestats.stats.rollup_cells import KnownCells, build_known_cells, has_column_statistic

_Words = npt.NDArray[np.int64]
_TIME = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """Statistics of partitions at one snapshot."""

    groups: pa.Table
    """`schemas.partition_groups_schema`, and `last_added_at` and `last_added_snapshot_id`. One row a partition of one
    spec, sorted; also of those whose last live file is gone, where the snapshot's manifests still say so."""
    cells: pa.Table
    """`schemas.ROLLUP_CELLS` of `groups`, for `columns`."""
    columns: tuple[Field, ...]
    """The columns that have statistics; none where only files and rows were counted."""
    knows_added: bool = True
    """Whether `last_added` is known: it is not in a file that Iceberg wrote."""


def merge_partition_statistics(parts: Sequence[PartitionStatistics]) -> PartitionStatistics:
    """Merge the statistics of distinct manifests, each with the same columns."""
    groups = pa.concat_tables([part.groups for part in parts], promote_options="permissive").combine_chunks()
    columns = parts[0].columns
    if not len(groups):
        return parts[0]
    merged, places = merge_partitions(groups, (LATEST, ADDED))
    cells = ROLLUP_CELLS.empty_table()
    if columns:
        cells = merge_cells([part.cells for part in parts], places, len(merged), columns)
    return PartitionStatistics(merged, cells, columns, all(part.knows_added for part in parts))


def read_partition_statistics(
    data: bytes, path: str, partition: Sequence[PartitionColumn], columns: Sequence[Field]
) -> PartitionStatistics:
    """Read a partition statistics file, Parquet or Avro.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        Its location; the end of its name says the format.
    partition : sequence of PartitionColumn
        The partition fields of all specs; those that the file has not are null.
    columns : sequence of Field
        The columns whose statistics are wanted. Those of the result are these, or none where the file does not have
        the statistics of each of them, of the type that it has now.

    Raises
    ------
    MetadataError
        The file is cut or damaged, or a figure in it is impossible.
    UnsupportedError
        Its field ids are not the spec's, or it is of another format.
    """
    stored = read_stored_table(data, path)
    _check_ids(stored)
    try:
        groups = _build_groups(stored, partition)
        found = _stored_columns(stored, columns)
        live = to_numpy(groups["data_file_count"])
        cells = build_known_cells(_known(stored, found, live), found, live) if found else ROLLUP_CELLS.empty_table()
    except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise MetadataError(f"not partition statistics: {' '.join(str(error).split())[:200]}", path) from error
    return PartitionStatistics(groups, cells, found, all(c.field_id in stored.by_id for c in ADDED_COLUMNS))


def _check_ids(stored: StoredTable) -> None:
    expected = {"partition": 1} | {column.name: column.field_id for column in iceberg_columns(3)}
    for name, field_id in expected.items():
        found = stored.id_of(name)
        if found is not None and found != field_id:
            raise UnsupportedError(
                f"{stored.path}: its field {name} has id {found}, expected {field_id}: Iceberg before 1.10 wrote such "
                "partition statistics; compute them again"
            )
    for column in (FileColumn(1, "partition", "struct", True), *iceberg_columns(2)):
        if column.required and column.field_id not in stored.by_id:
            raise MetadataError(f"not partition statistics: no field {column.name} (id {column.field_id})", stored.path)


def _build_groups(stored: StoredTable, partition: Sequence[PartitionColumn]) -> pa.Table:
    schema = partition_groups_schema(struct_type(partition))
    count = stored.row_count
    arrays: dict[str, pa.Array] = {"partition": stored.partition(partition)}
    for column in (*iceberg_columns(3), *ADDED_COLUMNS):
        numbers = stored.by_id.get(column.field_id, pa.nulls(count, pa.int64())).cast(pa.int64())
        if column.name.endswith(("_count", "_in_bytes")) and column.name != "total_record_count":
            numbers = pc.fill_null(numbers, 0)
            if count and pc.min(numbers).as_py() < 0:
                raise ValueError(f"{column.name} is negative (apache/iceberg#17915)")
        arrays[column.name] = numbers.cast(_TIME) if column.name.endswith("_at") else numbers
    for name in ADDED:
        schema = schema.append(pa.field(name, arrays[name].type))
    return pa.table({name: arrays[name] for name in schema.names}).cast(schema)


def _stored_columns(stored: StoredTable, columns: Sequence[Field]) -> tuple[Field, ...]:
    text = stored.metadata.get(COLUMNS_KEY)
    if text is None or any(map_ids(name)[0] not in stored.by_id for name in stored_maps(with_lengths=False)):
        return ()
    types = {int(field_id): str(kind) for field_id, kind in json.loads(text)}
    return tuple(columns) if all(types.get(c.field_id) == c.type for c in columns) else ()


def _known(stored: StoredTable, columns: Sequence[Field], live: _Words) -> KnownCells:
    values: dict[str, pa.Array] = {}
    missing: dict[str, _Words] = {}
    for statistic in STATISTICS:
        values[statistic] = _spread(stored, f"{statistic}s", columns)
        lacking = _spread(stored, f"{statistic}s_missing_files", columns)
        missing[statistic] = to_numpy(lacking, null=0).astype(np.int64)
        applies = np.array([has_column_statistic(column, statistic) for column in columns], np.bool_)
        missing[statistic] = np.where(np.tile(applies, len(live)), missing[statistic], np.repeat(live, len(columns)))
        if statistic in SUMMED_STATISTICS:
            absent = to_numpy(pc.is_null(values[statistic]))
            if (absent & (missing[statistic] == 0) & (np.repeat(live, len(columns)) > 0)).any():
                raise ValueError(f"{statistic} of a column is neither there nor missing")
    return KnownCells(values, missing)


def _spread(stored: StoredTable, name: str, columns: Sequence[Field]) -> pa.Array:
    """Return a map's values: every column, for each row in turn; null where the map has no entry."""
    array = stored.by_id[map_ids(name)[0]]
    kind = pa.binary() if map_value_type(name) == "binary" else pa.int64()
    pairs = array.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", kind)])))
    rows = to_numpy(pc.list_parent_indices(pairs))
    entries = pairs.flatten()
    if not len(entries):
        return pa.nulls(len(array) * len(columns), kind)
    ids = np.array([column.field_id for column in columns], np.int64)
    order = np.argsort(ids)
    keys = to_numpy(entries.field(0)).astype(np.int64)
    near = order[np.minimum(np.searchsorted(ids[order], keys), len(ids) - 1)]
    wanted = ids[near] == keys
    places = np.full(len(array) * len(columns), -1, np.int64)
    places[rows[wanted] * len(columns) + near[wanted]] = np.flatnonzero(wanted)
    return entries.field(1).take(pa.array(np.where(places < 0, 0, places), mask=places < 0))
