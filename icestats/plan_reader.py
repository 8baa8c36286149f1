"""Plans of a snapshot: the reading that the funnel needs, as little of it as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icestats.plan.deletes import PATH_FIELD_ID, DeleteIndex
from icestats.plan.evaluation import evaluate
from icestats.plan.funnel import run_funnel
from icestats.plan.manifest_summaries import build_summary_figures, specs_of
from icestats.plan.plan import Plan, build_plan
from icestats.plan.predicates import find_predicates
from icestats.plan.row_filter import FilterSchema, RowFilter, build_row_filter
from icestats.read.file_figures import read_file_figures
from icestats.read.manifests import RollUps, manifests_to_read
from icestats.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


def plan_scan(
    reader: SnapshotReader,
    known: FilterSchema,
    row_filter: str | BooleanExpression,
    *,
    manifest_statistics: bool | None = None,
) -> Plan:
    """Plan a scan; the parameters are those of `Table.plan`."""
    parsed = build_row_filter(row_filter, known)
    funnel = run_funnel(
        parsed,
        reader.manifest_files,
        reader.source.metadata,
        reader.schema,
        rollups=_find_rollups(reader, manifest_statistics),
        read_files=lambda manifests, field_ids: _read_files(reader, manifests, field_ids),
    )

    def find_deletes(files: pa.Table) -> list[list[str]]:
        return DeleteIndex(_read_deletes(reader, parsed), reader.source.metadata.specs).find(files)

    snapshot_id = None if reader.snapshot is None else reader.snapshot.snapshot_id
    return build_plan(reader.source.name, snapshot_id, parsed, funnel, find_deletes)


def _find_rollups(reader: SnapshotReader, wanted: bool | None) -> RollUps | None:
    if wanted is False:
        return None
    if wanted or "rollups" in reader.__dict__:
        return reader.rollups
    return None


def _read_files(reader: SnapshotReader, manifests: pa.Table, field_ids: Sequence[int]) -> pa.Table:
    source = reader.source
    return read_file_figures(manifests_to_read(manifests), source.metadata, source.storage, field_ids)


def _read_deletes(reader: SnapshotReader, row_filter: RowFilter) -> pa.Table:
    """Read the live delete files of those manifests whose partition summaries the filter does not rule out."""
    manifests = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "deletes"))
    partitions = manifests["partitions"].combine_chunks()
    kept: list[int] = []
    for spec_id, rows in specs_of(manifests).items():
        condition = row_filter.by_spec[spec_id]
        wanted = [predicate.field_id for predicate in find_predicates(condition)]
        spec = reader.source.metadata.specs[spec_id]
        taken = partitions.take(pa.array(rows))
        figures = build_summary_figures(taken, spec, reader.schema, wanted) if wanted else {}
        kept += rows[evaluate(condition, figures, len(rows)).kept].tolist()
    return _read_files(reader, manifests.take(pa.array(sorted(kept), pa.int64())), [PATH_FIELD_ID])
