"""What the selection contains: its partitions, columns and totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.schemas import COLUMN_MAPS, PARTITION_MAPS
from icestats.iceberg.metadata import Schema
from icestats.iceberg.value_order import rank_values
from icestats.table.table import Table
from icestats_widgets.reading.part_columns import build_part_columns
from icestats_widgets.reading.selection import Selection, manifest_fields, manifest_mask

_SUMS = {
    "data_record_count": ("data", "record_count"),
    "data_file_count": ("data", None),
    "total_data_file_size_in_bytes": ("data", "file_size_in_bytes"),
    "position_delete_record_count": ("position_deletes", "record_count"),
    "equality_delete_record_count": ("equality_deletes", "record_count"),
}


@dataclass(frozen=True)
class SelectedPart:
    """A part of a table. Counts cover live data files; row-level deletes are not deducted."""

    selection: Selection
    manifest_paths: frozenset[str]
    """Manifests that are selected, or that may hold files of the selected partitions."""
    partitions: pa.Table
    """One row per partition: `partition`, `spec_id`, and the sums to draw."""
    record_count: int
    file_count: int
    size_bytes: int
    build_columns: Callable[[], pa.Table] = field(repr=False, compare=False)
    """Builds `columns`, which takes longer than all the rest; the rest need not wait for it."""

    @cached_property
    def columns(self) -> pa.Table:
        """`schemas.COLUMNS` of the part."""
        return self.build_columns()


def read_part(table: Table, selection: Selection) -> SelectedPart:
    """Read what a selection contains, as the explorer shows it.

    Parameters
    ----------
    table : Table
        The table.
    selection : Selection
        Partitions or manifests.
    """
    manifests = table.manifests()
    fields = manifest_fields(manifests, table.metadata, table.schema)
    return read_selected_part(table, selection, manifests=manifests, fields=fields)


def read_selected_part(
    table: Table,
    selection: Selection,
    *,
    manifests: pa.Table,
    fields: Sequence[Mapping[str, Any]],
) -> SelectedPart:
    """Read what a selection contains.

    Parameters
    ----------
    table : Table
        The table; reads the entries of selected manifests.
    selection : Selection
        What is selected.
    manifests : pyarrow.Table
        `schemas.MANIFESTS`.
    fields : sequence of mapping
        `manifest_fields` of the manifests.
    """
    is_marked = manifest_mask(manifests, fields, selection)
    marked = manifests.filter(pa.array(is_marked, pa.bool_()))
    paths = frozenset(marked["manifest_path"].to_pylist())
    if selection.ranges:
        partitions = table.partitions()
        rows = partitions.filter(selection.mask(partitions))
        return _part(selection, paths, drop_statistics(rows), rows, table.schema)
    rows = sum_partitions(table.files(manifest_paths=sorted(paths)))
    return _part(selection, paths, rows, marked.filter(pc.equal(marked["content"], "data")), table.schema)


def drop_statistics(rows: pa.Table) -> pa.Table:
    """Return partitions or manifests without their maps of column statistics, which take most of the memory."""
    maps = {field.name for field in (*COLUMN_MAPS, *PARTITION_MAPS)}
    return rows.select([name for name in rows.column_names if name not in maps])


def sum_partitions(files: pa.Table) -> pa.Table:
    """Return sums by partition over some files: `schemas.files_schema` -> one row per partition.

    Parameters
    ----------
    files : pyarrow.Table
        Live files.
    """
    partition = files["partition"].combine_chunks()
    ranks = [rank_values(partition.field(i)) for i in range(partition.type.num_fields)]
    keys = np.stack([*ranks, files["spec_id"].to_numpy()], axis=1)
    _, first, places = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    columns: dict[str, Any] = {"partition": partition.take(pa.array(first)), "spec_id": files["spec_id"].take(first)}
    contents = files["content"].to_numpy(zero_copy_only=False)
    for name, (content, figure) in _SUMS.items():
        values = np.ones(len(files), np.int64) if figure is None else files[figure].to_numpy()
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, places.reshape(-1), np.where(contents == content, values, 0))
        columns[name] = pa.array(sums)
    return pa.table(columns)


def _part(
    selection: Selection, paths: frozenset[str], partitions: pa.Table, groups: pa.Table, schema: Schema
) -> SelectedPart:
    totals = [pc.sum(partitions[name]).as_py() or 0 for name in list(_SUMS)[:3]]
    build = partial(build_part_columns, groups, schema, totals[1])
    return SelectedPart(selection, paths, partitions, totals[0], totals[1], totals[2], build)
