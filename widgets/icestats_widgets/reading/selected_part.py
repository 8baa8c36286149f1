"""What is asked of a table, as far as whole partitions and manifests can say it: its partitions, columns and totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import COLUMN_MAPS, PARTITION_MAPS
from icestats.iceberg.value_order import rank_values
from icestats.snapshot.evaluation.partition_groups import group_values
from icestats.snapshot.evaluation.partition_projection import judge_partitions
from icestats.table.table import Table
from icestats_widgets.reading.filters.filter_words import join_filters
from icestats_widgets.reading.part_columns import build_part_columns
from icestats_widgets.reading.selection import Selection, may_hold

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

    selection: Selection | None
    manifest_paths: frozenset[str]
    """Manifests that are selected, or that may hold files of the selected partitions."""
    partitions: pa.Table
    """One row per partition: `partition`, `spec_id`, and the sums to draw."""
    record_count: int
    file_count: int
    size_bytes: int
    build_columns: Callable[[], pa.Table] = field(repr=False, compare=False)
    """Builds `columns`, which takes longer than all the rest; the rest need not wait for it."""
    row_filter: str = ""
    """What is asked beside the selection; empty for nothing."""
    is_narrowed: bool = False
    """Whether the filter leaves out partitions of the selection, or of the table where nothing is selected."""
    holds_more: bool = False
    """Whether these partitions or manifests may hold rows that the filter does not select."""
    where: str | None = None
    """The filter that says these partitions to those who know sketches; None for the whole table, and if none can."""

    @cached_property
    def columns(self) -> pa.Table:
        """`schemas.COLUMNS` of the part."""
        return self.build_columns()

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole table."""
        return self.selection is None and not self.is_narrowed

    @property
    def partial(self) -> Literal["refuse", "include"]:
        """What becomes of partitions of which `where` selects some rows only."""
        return "include" if self.is_narrowed and self.holds_more else "refuse"

    def answers(self, selection: Selection | None, row_filter: str) -> bool:
        """Return whether it is what a selection and a filter ask for, and no earlier ones."""
        return self.selection == selection and self.row_filter == row_filter


def read_part(
    table: Table, selection: Selection | None = None, row_filter: str = "", *, partitions: pa.Table | None = None
) -> SelectedPart:
    """Read what a selection and a row filter ask for, as the explorer shows it.

    Parameters
    ----------
    table : Table
        The table.
    selection : Selection, optional
        Partitions or manifests; by default everything.
    row_filter : str
        Of these, the partitions that the filter may select rows of; `holds_more` says whether they may have other rows
        too. It chooses among partitions only, not among manifests.
    partitions : pyarrow.Table, optional
        What `drop_statistics` leaves of the table's partitions, if that is known.

    Raises
    ------
    FilterError
        The filter cannot be read.
    """
    if selection is None:
        if partitions is None:
            partitions = drop_statistics(table.partitions())
        whole = _part(None, frozenset(), partitions, table.partitions, table)
        return narrow_part(table, replace(whole, build_columns=table.columns), row_filter)
    return narrow_part(table, read_selected_part(table, selection), row_filter)


def narrow_part(table: Table, part: SelectedPart, row_filter: str) -> SelectedPart:
    """Return those partitions of a part that a filter may select rows of.

    Parameters
    ----------
    table : Table
        The table.
    part : SelectedPart
        What is narrowed.
    row_filter : str
        The filter; an empty one leaves nothing out, and so does every one of a part that is manifests.
    """
    selection = part.selection
    if not row_filter or (selection is not None and not selection.ranges):
        return replace(part, row_filter=row_filter, holds_more=bool(row_filter))
    groups = part.partitions
    by_spec = group_values(groups, table.metadata, table.schema)
    may, must = judge_partitions(table.bind(row_filter), by_spec, len(groups))
    holds_rows = to_numpy(groups["data_file_count"]) > 0
    holds_more = bool((may & ~must & holds_rows).any())
    if may[holds_rows].all():
        return replace(part, row_filter=row_filter, holds_more=holds_more)
    chosen = pa.array(may)

    def read() -> pa.Table:
        return _read_partitions(table, selection).filter(chosen)

    found = _part(selection, part.manifest_paths, groups.filter(chosen), read, table)
    where = None
    if selection is None:
        where = row_filter
    elif part.where is not None:
        where = join_filters([row_filter, part.where])
    return replace(found, row_filter=row_filter, is_narrowed=True, holds_more=holds_more, where=where)


def read_selected_part(table: Table, selection: Selection) -> SelectedPart:
    """Read what a selection contains.

    Parameters
    ----------
    table : Table
        The table; reads the entries of selected manifests.
    selection : Selection
        What is selected.
    """
    manifests = table.manifests()
    is_marked = may_hold(manifests, selection, table.metadata, table.schema)
    marked = manifests.filter(pa.array(is_marked, pa.bool_()))
    paths = frozenset(marked["manifest_path"].to_pylist())
    if selection.ranges:
        read = partial(_read_partitions, table, selection)
        return replace(_part(selection, paths, drop_statistics(read()), read, table), where=_say(selection, table))
    rows = sum_partitions(table.files(manifest_paths=sorted(paths)))
    data = marked.filter(pc.equal(marked["content"], "data"))
    return _part(selection, paths, rows, lambda: data, table)


def _read_partitions(table: Table, selection: Selection | None) -> pa.Table:
    groups = table.partitions()
    return groups if selection is None else groups.filter(selection.mask(groups))


def _say(selection: Selection, table: Table) -> str | None:
    # A filter on a column would choose partitions of other specs too.
    is_said = not selection.untold(table.schema) and len(table.metadata.specs) == 1
    return selection.row_filter(table.schema) if is_said else None


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
    selection: Selection | None,
    paths: frozenset[str],
    partitions: pa.Table,
    read_groups: Callable[[], pa.Table],
    table: Table,
) -> SelectedPart:
    """Build a part; its groups are read again for its columns, as their statistics take most of the memory."""
    totals = [pc.sum(partitions[name]).as_py() or 0 for name in list(_SUMS)[:3]]

    def build() -> pa.Table:
        return build_part_columns(read_groups(), table.schema, totals[1], has_deletes=table._reader.has_deletes)

    return SelectedPart(selection, paths, partitions, totals[0], totals[1], totals[2], build)
