"""The funnel: manifests by partition summaries, manifests by column bounds, files by partition, files by column bounds.

Source: Iceberg spec, "Scan Planning"; the manifest-level statistics proposal, "During Scan Planning".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import Field, Schema, TableMetadata
from icestats.iceberg.partition_columns import find_partition_columns
from icestats.iceberg.partition_values import partition_field_type
from icestats.plan.filters.predicates import Constant, find_predicates
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.pruning.evaluation import Evaluation, evaluate
from icestats.plan.pruning.figures import ColumnFigures, file_figures, value_figures
from icestats.plan.pruning.keys import Longs
from icestats.plan.pruning.manifest_summaries import (
    build_rollup_figures,
    build_summary_figures,
    select_live_data,
    specs_of,
)
from icestats.plan.pruning.steps import BOUNDS, ROLLUPS, ROW_GROUPS, SUMMARIES, TUPLES, PlanStep
from icestats.read.manifests.manifests import RollUps

ReadFiles = Callable[[pa.Table, Sequence[int]], pa.Table]
"""Reads `file_figures_schema` of manifests (`schemas.MANIFEST_FILES`) with the statistics of some columns."""

FindRollups = Callable[[pa.Table], tuple[RollUps, Sequence[Field]] | None]
"""Gives the roll-ups of manifests (`schemas.MANIFEST_FILES`), of others too, with the columns they have, or None."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one step says of some rows of its table: manifests or files of one partition spec."""

    step: str
    rows: Longs
    spec_id: int
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Funnel:
    """What each step has left, and why."""

    steps: tuple[PlanStep, ...]
    manifests: pa.Table
    """`schemas.MANIFEST_FILES`: the manifests of data that have live files."""
    kept_manifests: Longs
    manifest_judgements: tuple[Judgement, ...]
    files: pa.Table
    """`file_figures_schema`: the live files of `kept_manifests`; `manifest_index` is a place in those."""
    kept_files: Longs
    file_judgements: tuple[Judgement, ...]


def run_funnel(
    row_filter: RowFilter,
    manifest_files: pa.Table,
    metadata: TableMetadata,
    schema: Schema,
    *,
    find_rollups: FindRollups,
    read_files: ReadFiles,
    list_bytes: int = 0,
) -> Funnel:
    """Run all steps.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES` of the snapshot.
    metadata : TableMetadata
        Partition specs and schemas.
    schema : Schema
        The schema that the snapshot is read with.
    find_rollups : callable
        Gives the statistics of those manifests that summaries leave, as far as they are known; None: the step by column
        bounds is left out.
    read_files : callable
        Reads the files of those manifests that are left.
    list_bytes : int, optional
        The length of the manifest list.
    """
    manifests = select_live_data(manifest_files)
    steps, judgements = [], []
    kept = np.arange(manifests.num_rows)
    step, kept, found = _by_summaries(row_filter, manifests, kept, metadata, schema)
    steps.append(_with_bytes(step, list_bytes))
    judgements += found
    rollups = find_rollups(manifests.take(pa.array(kept))) if row_filter.field_ids else None
    if rollups is not None:
        step, kept, found = _by_rollups(row_filter, manifests, kept, *rollups)
        steps.append(step)
        judgements += found
    started = time.perf_counter()
    left = manifests.take(pa.array(kept))
    files = read_files(left, row_filter.field_ids)
    read_ms = _milliseconds(started)
    rows = np.arange(files.num_rows)
    step, rows, by_tuple = _by_tuples(row_filter, files, rows, metadata, schema)
    steps.append(_with_bytes(step, pc.sum(left["manifest_length"]).as_py() or 0, read_ms))
    step, rows, by_bounds = _by_bounds(row_filter, files, rows, schema)
    steps.append(step)
    return Funnel(tuple(steps), manifests, kept, tuple(judgements), files, rows, (*by_tuple, *by_bounds))


def _by_summaries(
    row_filter: RowFilter, manifests: pa.Table, kept: Longs, metadata: TableMetadata, schema: Schema
) -> tuple[PlanStep, Longs, list[Judgement]]:
    started = time.perf_counter()
    found, left, values = [], [np.zeros(0, np.int64)], 0
    partitions = combine_chunks(manifests["partitions"])
    for spec_id, rows in specs_of(manifests).items():
        # Of a spec that the table does not have nothing is ruled out: reading the manifest says what is wrong.
        condition = row_filter.by_spec.get(spec_id, Constant(True))
        wanted = [predicate.field_id for predicate in find_predicates(condition)]
        taken = partitions.take(pa.array(rows))
        figures = build_summary_figures(taken, metadata.specs[spec_id], schema, wanted) if wanted else {}
        evaluation = evaluate(condition, figures, len(rows))
        found.append(Judgement(SUMMARIES, rows, spec_id, evaluation))
        left.append(rows[evaluation.kept])
        values += 4 * len(figures) * len(rows)
    rows = np.sort(np.concatenate(left))
    return _manifest_step(SUMMARIES, manifests, len(kept), rows, started, values), rows, found


def _by_rollups(
    row_filter: RowFilter, manifests: pa.Table, kept: Longs, rollups: RollUps, columns: Sequence[Field]
) -> tuple[PlanStep, Longs, list[Judgement]]:
    started = time.perf_counter()
    paths = combine_chunks(manifests["manifest_path"]).take(pa.array(kept))
    places, figures = build_rollup_figures(rollups, columns, paths, row_filter.field_ids)
    evaluation = evaluate(row_filter.condition, figures, len(places))
    rows = kept[places]
    skipped = rows[~evaluation.kept]
    left = kept[~np.isin(kept, skipped)]
    # All specs are judged alike: by the filter itself.
    found = [Judgement(ROLLUPS, rows, -1, evaluation)]
    values = 5 * len(figures) * len(places)
    return _manifest_step(ROLLUPS, manifests, len(kept), left, started, values), left, found


def _manifest_step(step: str, manifests: pa.Table, total: int, rows: Longs, started: float, values: int) -> PlanStep:
    left = manifests.take(pa.array(rows))
    counts = pc.add(left["added_rows_count"], left["existing_rows_count"])
    return PlanStep(
        step=step,
        unit="manifest",
        total=total,
        kept=len(rows),
        kept_bytes=pc.sum(left["manifest_length"]).as_py() or 0,
        kept_rows=None if counts.null_count else pc.sum(counts).as_py() or 0,
        duration_ms=_milliseconds(started),
        values_read=values,
    )


def _by_tuples(
    row_filter: RowFilter, files: pa.Table, rows: Longs, metadata: TableMetadata, schema: Schema
) -> tuple[PlanStep, Longs, list[Judgement]]:
    started = time.perf_counter()
    places = partition_places(metadata, schema)
    partition: Any = combine_chunks(files["partition"])
    spec_ids = to_numpy(files["spec_id"])
    found, left, values = [], [np.zeros(0, np.int64)], 0
    for spec_id in np.unique(spec_ids).tolist():
        mine = np.flatnonzero(spec_ids == spec_id)
        condition = row_filter.by_spec[spec_id]
        wanted = {predicate.field_id for predicate in find_predicates(condition)}
        fields = [field for field in metadata.specs[spec_id].fields if field.field_id in wanted]
        taken = partition if len(mine) == files.num_rows else partition.take(pa.array(mine))
        figures = {
            field.field_id: value_figures(
                taken.field(places[field.field_id]), partition_field_type(field, schema) or ""
            )
            for field in fields
        }
        evaluation = evaluate(condition, figures, len(mine))
        found.append(Judgement(TUPLES, mine, spec_id, evaluation))
        left.append(mine[evaluation.kept])
        values += len(figures) * len(mine)
    rows_left = np.sort(np.concatenate(left))
    return _file_step(TUPLES, files, len(rows), rows_left, started, values), rows_left, found


def _by_bounds(
    row_filter: RowFilter, files: pa.Table, rows: Longs, schema: Schema
) -> tuple[PlanStep, Longs, list[Judgement]]:
    started = time.perf_counter()
    taken = files.take(pa.array(rows))
    figures = column_figures(row_filter, taken, schema)
    evaluation = evaluate(row_filter.condition, figures, len(rows))
    # A file without records holds no row that matches.
    left = rows[evaluation.kept & (to_numpy(taken["record_count"]) > 0)]
    step = _file_step(BOUNDS, files, len(rows), left, started, 5 * len(figures) * len(rows))
    return step, left, [Judgement(BOUNDS, rows, -1, evaluation)]


def _file_step(step: str, files: pa.Table, total: int, rows: Longs, started: float, values: int) -> PlanStep:
    left = pa.array(rows)
    return PlanStep(
        step=step,
        unit="file",
        total=total,
        kept=len(rows),
        kept_bytes=pc.sum(files["file_size_in_bytes"].take(left)).as_py() or 0,
        kept_rows=pc.sum(files["record_count"].take(left)).as_py() or 0,
        duration_ms=_milliseconds(started),
        values_read=values,
    )


def _with_bytes(step: PlanStep, bytes_read: int, more_ms: float = 0.0) -> PlanStep:
    return replace(step, bytes_read=bytes_read, duration_ms=step.duration_ms + more_ms)


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000.0


def judge_row_groups(
    row_filter: RowFilter, row_groups: pa.Table, schema: Schema, started: float, bytes_read: int
) -> tuple[PlanStep, Evaluation]:
    """Judge the row groups of the files that are left; `started` is when their reading began.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    row_groups : pyarrow.Table
        `row_group_figures_schema`.
    schema : Schema
        The schema that the snapshot is read with.
    started : float
        Of `time.perf_counter`.
    bytes_read : int
        How much of footers was read.
    """
    evaluation = evaluate(row_filter.condition, column_figures(row_filter, row_groups, schema), row_groups.num_rows)
    left = row_groups.filter(pa.array(evaluation.kept))
    step = PlanStep(
        step=ROW_GROUPS,
        unit="row group",
        total=row_groups.num_rows,
        kept=left.num_rows,
        kept_bytes=pc.sum(left["size_bytes"]).as_py() or 0,
        kept_rows=pc.sum(left["row_count"]).as_py() or 0,
        duration_ms=_milliseconds(started),
        values_read=5 * len(evaluation.figures) * row_groups.num_rows,
        bytes_read=bytes_read,
    )
    return step, evaluation


def column_figures(row_filter: RowFilter, table: pa.Table, schema: Schema) -> dict[int, ColumnFigures]:
    """Return the figures of the filter's columns from a table that has them flat: of files or of row groups."""
    return {
        field_id: file_figures(table, field_id, field.type)
        for field_id in row_filter.field_ids
        if (field := schema.get(field_id)) is not None and field.is_primitive
    }


def partition_places(metadata: TableMetadata, schema: Schema) -> Mapping[int, int]:
    """Return the place of each partition field, by field id, in the `partition` of files."""
    columns = find_partition_columns(metadata.specs, [schema, metadata.schema, *metadata.schemas.values()])
    return {column.field_id: place for place, column in enumerate(columns)}
