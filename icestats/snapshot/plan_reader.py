"""Plans of a snapshot: the reading that the funnel needs, as little of it as possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.iceberg.metadata import Field
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.pruning.delete_index import PATH_FIELD_ID, DeleteIndex
from icestats.plan.pruning.funnel import (
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
from icestats.plan.pruning.plan import Plan
from icestats.plan.pruning.row_groups import read_row_groups
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_file_metrics
from icestats.scan.actual_rows import count_rows
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
) -> Plan:
    """Plan a scan: the steps of the funnel in their order; the parameters are those of `Table.plan`."""
    metadata, schema = reader.source.metadata, reader.schema
    manifests = select_live_data(reader.manifest_files)
    by_manifest = [judge_summaries(row_filter, manifests, metadata, schema, reader.manifest_list_bytes)]
    left = manifests.take(pa.array(by_manifest[-1].kept))
    rollups = _read_rollups(reader, manifest_statistics, left, row_filter.field_ids)
    if rollups is not None:
        by_manifest.append(judge_rollups(row_filter, manifests, by_manifest[-1].kept, *rollups))
        left = manifests.take(pa.array(by_manifest[-1].kept))
    started = time.perf_counter()
    files = _read_files(reader, left, row_filter.field_ids)
    by_tuple = judge_tuples(row_filter, files, metadata, schema, started, _total(left, "manifest_length"))
    by_bound = judge_bounds(row_filter, files, by_tuple.kept, schema)
    funnel = Funnel(manifests, tuple(by_manifest), files, (by_tuple, by_bound))
    if row_groups:
        funnel = _with_row_groups(reader, row_filter, funnel)
    funnel = replace(funnel, rows=_count_rows(reader, row_filter, funnel, read=rows))

    def find_deletes(chosen: pa.Table) -> list[list[str]]:
        return DeleteIndex(_read_deletes(reader, row_filter), metadata.specs).find(chosen)

    snapshot_id = None if reader.snapshot is None else reader.snapshot.snapshot_id
    return Plan(reader.source.name, snapshot_id, row_filter, funnel, find_deletes)


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


def _with_row_groups(reader: SnapshotReader, row_filter: RowFilter, funnel: Funnel) -> Funnel:
    started = time.perf_counter()
    files = funnel.files.take(pa.array(funnel.kept_files))
    fields = [field for field_id in row_filter.field_ids if (field := reader.schema.get(field_id)) is not None]
    groups, bytes_read = read_row_groups(
        reader.source.storage, files, [field for field in fields if field.is_primitive]
    )
    found = judge_row_groups(row_filter, groups, reader.schema, started, bytes_read)
    return replace(funnel, row_groups=groups, by_row_group=found)


def _count_rows(reader: SnapshotReader, row_filter: RowFilter, funnel: Funnel, *, read: bool) -> PlanStep | None:
    """Return the step of rows where their number is known: by reading them, or because every row left must match."""
    started = time.perf_counter()
    total = funnel.steps[-1].kept_rows or 0
    if read:
        kept: int | None = count_rows(reader.source, reader.snapshot, reader.schema, row_filter)
        note = "counted in the data, row-level deletes applied"
    else:
        judged = funnel.by_file[-1].judgements[0]
        sure = judged.evaluation.find_sure()[np.isin(judged.rows, funnel.kept_files)]
        has_deletes = pc.any(pc.equal(reader.manifest_files["content"], "deletes")).as_py()
        kept = total if sure.all() and not has_deletes and not row_filter.is_folded else None
        note = "the metadata proves that every row matches"
    if kept is None:
        return None
    return PlanStep(ROWS, "row", total, kept, None, kept, (time.perf_counter() - started) * 1000.0, note=note)


def _read_files(reader: SnapshotReader, manifests: pa.Table, field_ids: Sequence[int]) -> pa.Table:
    source = reader.source
    return read_file_metrics(manifests_to_read(manifests), source.metadata, source.storage, field_ids)


def _read_deletes(reader: SnapshotReader, row_filter: RowFilter) -> pa.Table:
    """Read the live delete files of those manifests whose partition summaries the filter does not rule out."""
    manifests = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "deletes"))
    kept = judge_summaries(row_filter, manifests, reader.source.metadata, reader.schema).kept
    return _read_files(reader, manifests.take(pa.array(kept)), [PATH_FIELD_ID])
