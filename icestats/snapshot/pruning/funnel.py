"""The steps of the funnel: what is known of manifests, files and row groups rules out, one step behind the other.

Source: Iceberg spec, "Scan Planning"; the manifest-level statistics proposal, "During Scan Planning".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, take_rows, to_numpy
from icestats.answers.schemas import PLANNING_STATISTICS
from icestats.iceberg.filters.predicates import Constant
from icestats.iceberg.metadata import Field, Schema, TableMetadata
from icestats.iceberg.value_order import Longs
from icestats.read.manifests.manifests import RollUps
from icestats.snapshot.evaluation.column_metrics import cell_metrics, table_metrics
from icestats.snapshot.evaluation.evaluator import Evaluation, evaluate
from icestats.snapshot.evaluation.partition_groups import SpecGroups, group_manifests, group_values

if TYPE_CHECKING:
    from icestats.iceberg.filters.row_filter import RowFilter

Unit = Literal["manifest", "file", "row group", "row"]

SUMMARIES = "manifests by partition summaries"
ROLLUPS = "manifests by column bounds"
TUPLES = "data files by partition tuple"
BOUNDS = "data files by column bounds"
ROW_GROUPS = "row groups by column bounds"
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan. None is unknown, never 0."""

    step: str
    unit: Unit
    total: int
    """What the step before has left, of this unit."""
    kept: int | None
    kept_bytes: int | None
    """Of manifests: their own length. Of files and row groups: their size on disk."""
    kept_rows: int | None
    """Records in what is kept, row-level deletes not deducted."""
    duration_ms: float
    """With the reading that the step needs."""
    values_read: int = 0
    """Statistics that the step looked at."""
    bytes_read: int = 0
    """Of metadata files, read for this step."""
    note: str = ""

    @property
    def skipped(self) -> int | None:
        """What the step rules out."""
        return None if self.kept is None else self.total - self.kept

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON has it."""
        found = asdict(self)
        return {"step": found.pop("step"), "unit": found.pop("unit"), "total": found.pop("total"),
                "kept": found.pop("kept"), "skipped": self.skipped, **found}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one step says of some rows of its table: manifests or files of one partition spec."""

    step: str
    rows: Longs
    spec_id: int
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step has left of its table, and why."""

    step: PlanStep
    kept: Longs
    """Rows of the table."""
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """What each step has left, and why."""

    manifests: pa.Table
    """`schemas.MANIFEST_FILES`: the manifests of data that have live files."""
    by_manifest: tuple[StepResult, ...]
    files: pa.Table
    """`file_metrics_schema`, paths split: live files of the kept manifests; `manifest_index` is a place in those."""
    by_file: tuple[StepResult, ...]
    row_groups: pa.Table | None = None
    """`row_group_metrics_schema`: of the kept files; None: they were not asked for."""
    by_row_group: StepResult | None = None
    rows: PlanStep | None = None
    """None: how many rows match is not known."""

    @property
    def kept_manifests(self) -> Longs:
        """The manifests that are opened."""
        return self.by_manifest[-1].kept

    @property
    def kept_files(self) -> Longs:
        """The files that are read."""
        return self.by_file[-1].kept

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """All steps, in their order."""
        found = [result.step for result in (*self.by_manifest, *self.by_file)]
        found += [] if self.by_row_group is None else [self.by_row_group.step]
        return (*found, *(() if self.rows is None else (self.rows,)))


def select_live_data(manifest_files: pa.Table) -> pa.Table:
    """Return the manifests of data, those without a live file among them, which engines need not open, left out."""
    data = manifest_files.filter(pc.equal(manifest_files["content"], "data"))
    live = pc.add(data["added_files_count"], data["existing_files_count"])
    return data.filter(pc.fill_null(pc.greater(live, 0), True))


def judge_summaries(
    row_filter: RowFilter, manifests: pa.Table, metadata: TableMetadata, schema: Schema, bytes_read: int = 0
) -> StepResult:
    """Judge manifests by their partition summaries; `bytes_read` is the length of the manifest list."""
    started = time.perf_counter()
    by_spec = group_manifests(manifests, metadata.specs, schema, row_filter.partition_field_ids)
    found = _judge_partitions(SUMMARIES, row_filter, by_spec)
    rows = _keep(found)
    values = 4 * sum(len(one.metrics) * len(one.groups) for one in by_spec)
    step = _manifest_step(SUMMARIES, manifests, manifests.num_rows, rows, started, values)
    return StepResult(replace(step, bytes_read=bytes_read), rows, found)


def _judge_partitions(step: str, row_filter: RowFilter, by_spec: Sequence[SpecGroups]) -> tuple[Judgement, ...]:
    # Of a spec that the table does not have nothing is ruled out: reading the manifest says what is wrong.
    return tuple(
        Judgement(
            step,
            one.groups,
            one.spec.spec_id,
            evaluate(row_filter.by_spec.get(one.spec.spec_id, Constant(True)), one.metrics, len(one.groups)),
        )
        for one in by_spec
    )


def _keep(judgements: Sequence[Judgement]) -> Longs:
    left = [judgement.rows[judgement.evaluation.kept] for judgement in judgements]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *left]))


def judge_rollups(
    row_filter: RowFilter, manifests: pa.Table, kept: Longs, rollups: RollUps, columns: Sequence[Field]
) -> StepResult:
    """Judge the manifests that are left by the bounds of `columns`, as far as `rollups` knows these manifests."""
    started = time.perf_counter()
    paths = combine_chunks(manifests["manifest_path"]).take(pa.array(kept))
    where = pc.index_in(paths, combine_chunks(rollups.manifests["manifest_path"]))
    known = ~to_numpy(pc.is_null(where))
    places = to_numpy(where, null=0).astype(np.int64)[known]
    groups = rollups.manifests.take(pa.array(places))
    counts = to_numpy(groups["live_file_count"]), to_numpy(groups["record_count"])
    metrics = {
        field.field_id: cell_metrics(
            rollups.manifest_cells.take(pa.array(places * len(columns) + place)), field, *counts
        )
        for place, field in enumerate(columns)
        if field.field_id in row_filter.field_ids
    }
    evaluation = evaluate(row_filter.condition, metrics, len(places))
    rows = kept[known]
    skipped = rows[~evaluation.kept]
    left = kept[~np.isin(kept, skipped)]
    # All specs are judged alike: by the filter itself.
    values = 5 * len(metrics) * len(places)
    step = _manifest_step(ROLLUPS, manifests, len(kept), left, started, values)
    return StepResult(step, left, (Judgement(ROLLUPS, rows, -1, evaluation),))


def _manifest_step(step: str, manifests: pa.Table, total: int, rows: Longs, started: float, values: int) -> PlanStep:
    left = manifests.take(pa.array(rows))
    counts = pc.add(left["added_rows_count"], left["existing_rows_count"])
    return _step(step, "manifest", total, left["manifest_length"], counts, started, values)


def _step(
    step: str, unit: Unit, total: int, sizes: pa.ChunkedArray, counts: pa.ChunkedArray, started: float, values: int
) -> PlanStep:
    """Build the step that has left what has these sizes and counts of records."""
    return PlanStep(
        step=step,
        unit=unit,
        total=total,
        kept=len(sizes),
        kept_bytes=pc.sum(sizes).as_py() or 0,
        kept_rows=None if counts.null_count else pc.sum(counts).as_py() or 0,
        duration_ms=(time.perf_counter() - started) * 1000.0,
        values_read=values,
    )


def judge_tuples(
    row_filter: RowFilter, files: pa.Table, metadata: TableMetadata, schema: Schema, started: float, bytes_read: int
) -> StepResult:
    """Judge files by their partition; `started` is when their manifests' reading began, of `bytes_read`."""
    by_spec = group_values(files, metadata, schema, row_filter.partition_field_ids)
    found = _judge_partitions(TUPLES, row_filter, by_spec)
    rows = _keep(found)
    values = sum(len(one.metrics) * len(one.groups) for one in by_spec)
    step = _file_step(TUPLES, files, files.num_rows, rows, started, values)
    return StepResult(replace(step, bytes_read=bytes_read), rows, found)


def judge_bounds(row_filter: RowFilter, files: pa.Table, rows: Longs, columns: Sequence[Field]) -> StepResult:
    """Judge the files that are left by the bounds of the filter's columns."""
    started = time.perf_counter()
    names = [f"{name}_{field.field_id}" for field in columns for name in PLANNING_STATISTICS]
    taken = take_rows(files.select(["record_count", *names]), rows)
    metrics = table_metrics(taken, columns)
    evaluation = evaluate(row_filter.condition, metrics, len(rows))
    # A file without records holds no row that matches.
    left = rows[evaluation.kept & (taken["record_count"].to_numpy() > 0)]
    step = _file_step(BOUNDS, files, len(rows), left, started, 5 * len(metrics) * len(rows))
    return StepResult(step, left, (Judgement(BOUNDS, rows, -1, evaluation),))


def _file_step(step: str, files: pa.Table, total: int, rows: Longs, started: float, values: int) -> PlanStep:
    sizes, counts = (files[name].take(pa.array(rows)) for name in ("file_size_in_bytes", "record_count"))
    return _step(step, "file", total, sizes, counts, started, values)


def judge_row_groups(
    row_filter: RowFilter, row_groups: pa.Table, columns: Sequence[Field], started: float, bytes_read: int
) -> StepResult:
    """Judge the row groups of the files that are left; `started` is when their footers' reading began."""
    metrics = table_metrics(row_groups, columns)
    evaluation = evaluate(row_filter.condition, metrics, row_groups.num_rows)
    left = row_groups.filter(pa.array(evaluation.kept))
    values = 5 * len(metrics) * row_groups.num_rows
    step = _step(ROW_GROUPS, "row group", row_groups.num_rows, left["size_bytes"], left["row_count"], started, values)
    judgement = Judgement(ROW_GROUPS, np.arange(row_groups.num_rows), -1, evaluation)
    return StepResult(replace(step, bytes_read=bytes_read), np.flatnonzero(evaluation.kept), (judgement,))
