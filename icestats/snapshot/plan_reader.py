"""Plans of a snapshot: the reading that the funnel needs, as little of it as possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field
from icestats.plan.filters.predicates import Constant, find_predicates
from icestats.plan.filters.row_filter import FilterSchema, RowFilter, build_row_filter
from icestats.plan.pruning.certainty import all_rows_match
from icestats.plan.pruning.delete_index import PATH_FIELD_ID, DeleteIndex
from icestats.plan.pruning.evaluation import Evaluation, evaluate
from icestats.plan.pruning.funnel import Funnel, column_figures, judge_row_groups, run_funnel
from icestats.plan.pruning.manifest_summaries import build_summary_figures, specs_of
from icestats.plan.pruning.plan import Plan, build_plan
from icestats.plan.pruning.row_groups import read_row_groups
from icestats.plan.pruning.steps import ROWS, PlanStep
from icestats.read.manifests.file_figures import read_file_figures
from icestats.read.manifests.manifests import RollUps, manifests_to_read
from icestats.read.rollups.manifest_statistics_layout import MANIFEST_STATISTICS
from icestats.read.rollups.rollup_cache import find_cached_rollups
from icestats.scan.actual_rows import count_rows
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

LEAST_BYTES_SPARED = 64 << 20
"""Statistics of manifests that are not in memory are read only where so many bytes of manifests are left."""


def plan_scan(
    reader: SnapshotReader,
    known: FilterSchema,
    row_filter: str | BooleanExpression,
    *,
    row_groups: bool = False,
    rows: bool = False,
    manifest_statistics: bool | None = None,
) -> Plan:
    """Plan a scan; the parameters are those of `Table.plan`."""
    parsed = build_row_filter(row_filter, known)
    funnel = run_funnel(
        parsed,
        reader.manifest_files,
        reader.source.metadata,
        reader.schema,
        find_rollups=lambda manifests: _find_rollups(reader, manifest_statistics, manifests, parsed.field_ids),
        read_files=lambda manifests, field_ids: _read_files(reader, manifests, field_ids),
        list_bytes=reader.manifest_list_bytes,
    )

    def find_deletes(files: pa.Table) -> list[list[str]]:
        return DeleteIndex(_read_deletes(reader, parsed), reader.source.metadata.specs).find(files)

    more: list[PlanStep] = []
    judged = None
    if row_groups:
        step, judged = _judge_row_groups(reader, parsed, funnel)
        more.append(step)
    counted = _count_rows(reader, parsed, row_filter, funnel, more or list(funnel.steps), read=rows)
    more += [counted] if counted is not None else []
    snapshot_id = None if reader.snapshot is None else reader.snapshot.snapshot_id
    return build_plan(reader.source.name, snapshot_id, parsed, funnel, find_deletes, tuple(more), judged)


def _judge_row_groups(
    reader: SnapshotReader, row_filter: RowFilter, funnel: Funnel
) -> tuple[PlanStep, tuple[pa.Table, Evaluation]]:
    started = time.perf_counter()
    files = funnel.files.take(pa.array(funnel.kept_files))
    columns = [
        field
        for field_id in row_filter.field_ids
        if (field := reader.schema.get(field_id)) is not None and field.is_primitive
    ]
    groups, bytes_read = read_row_groups(reader.source.storage, files, columns)
    step, evaluation = judge_row_groups(row_filter, groups, reader.schema, started, bytes_read)
    return step, (groups, evaluation)


def _count_rows(
    reader: SnapshotReader,
    row_filter: RowFilter,
    text: str | BooleanExpression,
    funnel: Funnel,
    steps: Sequence[PlanStep],
    *,
    read: bool,
) -> PlanStep | None:
    """Return the step of rows where their number is known: by reading them, or because every row left must match."""
    started = time.perf_counter()
    files = funnel.files.take(pa.array(funnel.kept_files))
    total = steps[-1].kept_rows or 0
    if read:
        kept: int | None = count_rows(reader.source, reader.snapshot, reader.schema, text)
        note = "counted in the data, row-level deletes applied"
    else:
        sure = all_rows_match(row_filter.condition, column_figures(row_filter, files, reader.schema), files.num_rows)
        has_deletes = pc.any(pc.equal(reader.manifest_files["content"], "deletes")).as_py()
        kept = total if sure.all() and not has_deletes and not row_filter.is_folded else None
        note = "the metadata proves that every row matches"
    if kept is None:
        return None
    return PlanStep(ROWS, "row", total, kept, None, kept, (time.perf_counter() - started) * 1000.0, note=note)


def _find_rollups(
    reader: SnapshotReader, wanted: bool | None, manifests: pa.Table, field_ids: Sequence[int]
) -> tuple[RollUps, Sequence[Field]] | None:
    if wanted is False or not manifests.num_rows:
        return None
    if wanted or reader.knows_manifest_rollups:
        return reader.read_manifest_rollups(field_ids)
    if (pc.sum(manifests["manifest_length"]).as_py() or 0) < LEAST_BYTES_SPARED:
        return None
    return _read_known(reader, field_ids)


def _read_known(reader: SnapshotReader, field_ids: Sequence[int]) -> tuple[RollUps, Sequence[Field]] | None:
    """Return roll-ups that have been committed, or that the local cache knows: of all manifests or of most."""
    try:
        if any(found.blob.type == MANIFEST_STATISTICS for found in reader.blobs):
            return reader.read_manifest_rollups(field_ids)
    except MetadataError:
        # A damaged statistics file is none: the manifests are still there.
        return None
    found = find_cached_rollups(manifests_to_read(reader.manifest_files), reader.source.metadata, reader.schema)
    return None if found is None else (found, reader.schema.columns)


def _read_files(reader: SnapshotReader, manifests: pa.Table, field_ids: Sequence[int]) -> pa.Table:
    source = reader.source
    return read_file_figures(manifests_to_read(manifests), source.metadata, source.storage, field_ids)


def _read_deletes(reader: SnapshotReader, row_filter: RowFilter) -> pa.Table:
    """Read the live delete files of those manifests whose partition summaries the filter does not rule out."""
    manifests = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "deletes"))
    partitions = combine_chunks(manifests["partitions"])
    kept: list[int] = []
    for spec_id, rows in specs_of(manifests).items():
        condition = row_filter.by_spec.get(spec_id, Constant(True))
        wanted = [predicate.field_id for predicate in find_predicates(condition)]
        taken, specs = partitions.take(pa.array(rows)), reader.source.metadata.specs
        figures = build_summary_figures(taken, specs[spec_id], reader.schema, wanted) if wanted else {}
        kept += rows[evaluate(condition, figures, len(rows)).kept].tolist()
    return _read_files(reader, manifests.take(pa.array(sorted(kept), pa.int64())), [PATH_FIELD_ID])
