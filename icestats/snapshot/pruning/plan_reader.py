"""The plan of a scan: what is read for each step of the funnel, which is as little as possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import join_paths, take_rows
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.iceberg.metadata import Field
from icestats.read.manifests.manifests import RollUps, find_repeated_files, manifests_to_read, read_file_metrics
from icestats.snapshot.pruning.delete_index import PATH_FIELD_ID, DeleteIndex
from icestats.snapshot.pruning.funnel import (
    ROWS,
    Funnel,
    PlanStep,
    judge_bounds,
    judge_rollups,
    judge_row_groups,
    judge_summaries,
    judge_tuples,
    select_live_data,
)
from icestats.snapshot.pruning.plan import Plan, PlanOutlook
from icestats.snapshot.pruning.row_groups import read_row_groups
from icestats.snapshot.snapshot_reader import SnapshotReader

LEAST_BYTES_SPARED = 64 << 20
"""Committed statistics of manifests are read only where so many bytes of manifests are left."""


def read_plan(
    reader: SnapshotReader,
    row_filter: RowFilter,
    *,
    row_groups: bool = False,
    rows: bool = False,
    manifest_statistics: bool | None = None,
    manifests: pa.Table | None = None,
) -> Plan:
    """Plan a scan: the steps of the funnel in their order.

    The parameters are those of `Table.plan`; `manifests` are the only ones to read.
    """
    metadata, schema = reader.source.metadata, reader.schema
    manifests = select_live_data(reader.manifest_files if manifests is None else manifests)
    by_manifest = [judge_summaries(row_filter, manifests, metadata, schema, reader.manifest_list_bytes)]
    left = manifests.take(pa.array(by_manifest[-1].kept))
    rollups = _read_rollups(reader, manifest_statistics, left, row_filter.field_ids)
    if rollups is not None:
        by_manifest.append(judge_rollups(row_filter, manifests, by_manifest[-1].kept, *rollups))
        left = manifests.take(pa.array(by_manifest[-1].kept))
    started = time.perf_counter()
    columns = schema.select(row_filter.field_ids)
    files = reader.planned_files.read(left, row_filter.field_ids)
    by_tuple = judge_tuples(row_filter, files, metadata, schema, started, _total(left, "manifest_length"))
    by_bound = judge_bounds(row_filter, files, by_tuple.kept, columns)
    funnel = Funnel(manifests, tuple(by_manifest), files, (by_tuple, by_bound))
    if row_groups:
        funnel = _with_row_groups(reader, row_filter, funnel, columns)
    funnel = replace(funnel, rows=_count_rows(reader, row_filter, funnel, rows))

    @cache
    def index_deletes() -> DeleteIndex:
        return DeleteIndex(_read_deletes(reader, row_filter), metadata.specs)

    def find_deletes(chosen: pa.Table) -> list[list[str]]:
        return index_deletes().find(chosen)

    snapshot_id = None if reader.snapshot is None else reader.snapshot.snapshot_id
    kept = take_rows(files.select(["content", "folder", "file_name"]), funnel.kept_files)
    return Plan(reader.source.name, snapshot_id, row_filter, funnel, find_deletes, find_repeated_files(kept))


def read_outlook(reader: SnapshotReader, row_filter: RowFilter, *, manifests: pa.Table | None = None) -> PlanOutlook:
    """Foresee what `read_plan` of the same reads and keeps at most, from the manifest list."""
    manifests = select_live_data(reader.manifest_files if manifests is None else manifests)
    found = judge_summaries(row_filter, manifests, reader.source.metadata, reader.schema)
    left = manifests.take(pa.array(found.kept))
    counts = pc.add(left["added_files_count"], left["existing_files_count"])
    missing = reader.planned_files.find_missing(left, row_filter.field_ids)
    return PlanOutlook(len(missing), None if counts.null_count else pc.sum(counts).as_py() or 0)


def _read_rollups(
    reader: SnapshotReader, wanted: bool | None, manifests: pa.Table, field_ids: Sequence[int]
) -> tuple[RollUps, Sequence[Field]] | None:
    """Read what manifests are judged by: by default what the table itself offers, not what happens to be known."""
    if wanted is False or not manifests.num_rows or not field_ids:
        return None
    if wanted:
        return reader.read_manifest_rollups(field_ids)
    if _total(manifests, "manifest_length") < LEAST_BYTES_SPARED:
        return None
    return reader.read_committed_rollups(field_ids)


def _total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def _with_row_groups(reader: SnapshotReader, row_filter: RowFilter, funnel: Funnel, columns: Sequence[Field]) -> Funnel:
    started = time.perf_counter()
    files = join_paths(take_rows(funnel.files, funnel.kept_files))
    mapping = reader.source.metadata.name_mapping
    groups, bytes_read = read_row_groups(reader.source.storage, files, columns, mapping)
    found = judge_row_groups(row_filter, groups, columns, started, bytes_read)
    return replace(funnel, row_groups=groups, by_row_group=found)


def _count_rows(reader: SnapshotReader, row_filter: RowFilter, funnel: Funnel, is_asked: bool) -> PlanStep | None:
    """Return the step of rows where their number is known: by reading them, or because every row left must match."""
    started = time.perf_counter()
    total = funnel.steps[-1].kept_rows or 0
    if is_asked:
        # PyIceberg's scans are slow to import: only counting needs them.
        from icestats.snapshot.pruning.counted_rows import count_matching

        kept: int | None = count_matching(reader, row_filter, None)[0]
        note = "counted in the data, row-level deletes applied"
    else:
        judged = funnel.by_file[-1].judgements[0]
        sure = judged.evaluation.find_sure()[np.isin(judged.rows, funnel.kept_files)]
        has_deletes = pc.any(pc.equal(reader.manifest_files["content"], "deletes")).as_py()
        kept = total if sure.all() and not has_deletes else None
        note = "the metadata proves that every row matches"
    if kept is None:
        return None
    return PlanStep(ROWS, "row", total, kept, None, kept, (time.perf_counter() - started) * 1000.0, note=note)


def _read_deletes(reader: SnapshotReader, row_filter: RowFilter) -> pa.Table:
    """Read the live delete files of those manifests whose partition summaries the filter does not rule out."""
    manifests = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "deletes"))
    found = judge_summaries(row_filter, manifests, reader.source.metadata, reader.schema)
    left = manifests.take(pa.array(found.kept))
    return read_file_metrics(manifests_to_read(left), reader.source.metadata, reader.source.storage, [PATH_FIELD_ID])
